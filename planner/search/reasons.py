"""Why a layout cannot run, is the same as another, or breaks a rule of the user's: by columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.search.shards import shard_degree_reasons, shard_run_reasons
from planner.steptime.columns import CP_KINDS, SCHEDULES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.model import ModelSpec
    from planner.search.rules import Rule

    Ints = NDArray[np.int64]


def degree_reasons(
    model: ModelSpec, defaults: Mapping[str, Any], t: Mapping[str, Ints]
) -> dict[str, NDArray[np.bool_]]:
    """Return, for each reason, which degrees fall to it."""
    tp, cp, ep, etp, dp, pp = (t[name] for name in ("tp", "cp", "ep", "etp", "dp", "pp"))
    shape, seq = model.attention, defaults["seq"]
    uneven = (shape.heads % tp != 0) | (model.hidden % tp != 0)
    if shape.kind == "gqa":
        uneven |= (shape.kv_heads % tp != 0) & (tp % shape.kv_heads != 0)
    if model.dense_layer_count:
        uneven |= model.ffn % tp != 0
    split = seq % cp != 0
    inside, whole = etp * ep, tp * cp
    reasons = {
        "tp does not divide the model's heads or widths": uneven,
        "cp does not divide the sequence": split,
        "more pipeline stages than layers": pp > model.layers,
        "dp does not divide the global batch": defaults["global_batch"] % dp != 0,
    }
    if model.experts:
        reasons |= {
            "ep does not divide the experts, or etp their width": (model.experts % ep != 0)
            | (model.expert_ffn % etp != 0),
            "etp x ep does not divide tp x cp x dp": (whole * dp) % inside != 0,
            "dense and expert groups cannot share ranks": ~(
                _aligned(tp, etp) & _aligned(tp, inside)
                & _aligned(whole, etp) & _aligned(whole, inside)
            ),
        }  # fmt: skip
    reasons |= shard_degree_reasons(t)
    if not defaults["order"].endswith("pp"):
        reasons["the rank order needs etp x ep = tp x cp"] = (
            (pp > 1) & (inside > 1) & (inside != whole)
        )
    return reasons


def _aligned(left: Ints, right: Ints) -> NDArray[np.bool_]:
    nested: NDArray[np.bool_] = (left % right == 0) | (right % left == 0)
    return nested


def run_reasons(
    model: ModelSpec,
    defaults: Mapping[str, Any],
    t: Mapping[str, Ints],
    runs: Mapping[str, Ints],
    domain_gpus: Sequence[int],
) -> dict[str, NDArray[np.bool_]]:
    """Return, for each reason, which runs fall to it."""
    dp, pp, vpp, micro = t["dp"], t["pp"], t["vpp"], t["micro_batch"]
    batch, whole = defaults["global_batch"], t["tp"] * t["cp"]
    count = batch // (dp * micro)
    idle = (t["sequence_parallel"] != runs["sequence_parallel"][0]) & (t["tp"] == 1)
    idle |= (t["cp_kind"] != runs["cp_kind"][0]) & (t["cp"] == 1)
    inside = t["etp"] * t["ep"]
    whole_groups = t["ep"] == 1
    if domain_gpus:
        whole_groups |= np.logical_and.reduce([size % inside == 0 for size in domain_gpus])
    idle |= (t["ep_copies"] != runs["ep_copies"][0]) & whole_groups
    replicas = t["cp"] * dp * np.maximum(1, whole * dp // (t["etp"] * t["ep"]))
    idle |= (t["zero_stage"] != runs["zero_stage"][0]) & (replicas == 1)
    several = len(np.unique(runs["schedule"])) > 1
    other = t["schedule"] != SCHEDULES.index("1f1b")
    idle |= other & several & (pp == 1)
    alone = t["cp"] * dp == 1
    for name in ("overlap_gradients", "overlap_parameters"):
        idle |= (t[name] != runs[name][0]) & alone
    ulysses = t["cp_kind"] == CP_KINDS.index("ulysses")
    return {
        "dp x micro-batch does not divide the global batch": batch % (dp * micro) != 0,
        "virtual stages without a pipeline, or more of them than layers": (vpp > 1)
        & ((pp == 1) | (pp * vpp > model.layers)),
        "virtual stages are interleaved by 1F1B alone": other & (vpp > 1),
        "DualPipe needs an even pipeline and micro-batches, 2 x pp at least": (pp > 1)
        & (t["schedule"] == SCHEDULES.index("dualpipe"))
        & ((pp % 2 != 0) | (count % 2 != 0) | (count < 2 * pp)),
        "interleaving needs micro-batches in multiples of pp": (vpp > 1) & (count % pp != 0),
        "tp x cp does not divide the sequence": (t["sequence_parallel"] == 1)
        & (defaults["seq"] % whole != 0),
        "Ulysses needs tp x cp to divide the heads": ulysses & (model.attention.heads % whole != 0),
        **shard_run_reasons(t),
        "the same as another: what differs has nothing to act on": idle,
    }


def rule_reasons(
    rules: Sequence[Rule], defaults: Mapping[str, Any], t: Mapping[str, Ints]
) -> dict[str, NDArray[np.bool_]]:
    """Return, for each of the user's rules, which layouts break it.

    Args:
        rules: of the columns in *t* alone.
        defaults: ``seq`` and ``global_batch``, which all share.
        t: degrees, and where a rule speaks of them how they are run.
    """
    values = rule_values(t, defaults) if rules else {}
    return {
        f"the rule {rule.text}": ~np.broadcast_to(rule.holds(values), t["dp"].shape).astype(bool)
        for rule in rules
    }


def rule_values(t: Mapping[str, Ints], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a rule may speak of, for the layouts of a table.

    Args:
        t: their degrees, with or without how they are run.
        fixed: ``seq`` and ``global_batch``, which all share.
    """
    whole, batch = t["tp"] * t["cp"] * t["dp"], fixed["global_batch"]
    shard = np.where(t["dp_shard"] > 0, t["dp_shard"], t["dp"])
    runs = {} if "zero_stage" not in t else {
        "zero": t["zero_stage"], "micro_batches": batch // (t["dp"] * t["micro_batch"]),
    }  # fmt: skip
    return {
        **t, **runs, "edp": whole // (t["etp"] * t["ep"]), "global_batch": batch,
        "seq": fixed["seq"], "gpus": whole * t["pp"], "dp_shard": shard,
        "dp_replicate": t["dp"] // shard,
    }  # fmt: skip
