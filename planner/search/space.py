"""The layouts that a model and a number of GPUs leave open, as columns; the rest by reason.

Degrees come first (tp x cp x dp x pp = gpus, ep, and dp_shard), then how a step is run (virtual
stages, micro-batch, recomputation): a degree that cannot be strikes all its runs at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.layout import Layout
from planner.search.reasons import degree_reasons, rule_reasons, run_reasons
from planner.steptime.columns import CP_KINDS, RECOMPUTE, SCHEDULES, LayoutColumns, columns_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.model import ModelSpec
    from planner.search.rules import Rule

    Ints = NDArray[np.int64]

DEGREES = ("tp", "cp", "ep", "etp", "dp", "pp")
RUN = (
    "vpp", "micro_batch", "recompute", "zero_stage", "sequence_parallel", "cp_kind", "ep_copies",
    "schedule", "overlap_gradients", "overlap_parameters",
)  # fmt: skip
_WORDS: dict[str, tuple[Any, ...]] = {
    "recompute": RECOMPUTE, "cp_kind": CP_KINDS, "ep_copies": ("expert", "domain"),
    "sequence_parallel": (False, True), "schedule": SCHEDULES,
    "overlap_gradients": (False, True), "overlap_parameters": (False, True),
}  # fmt: skip
_BLOCK_ROWS = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What each way to run a step is tried with, where it is not fixed; the usual one first.

    Selective recomputation stands for none, too: with fused attention they keep the same. ZeRO 2
    keeps whole gradients between micro-batches, or scatters them each time: only on request.
    Of ``dp_shard`` None stands for every number from 2 on that divides dp, and 0 for all of dp.
    """

    vpp: tuple[int, ...] = (1, 2, 3, 4, 6, 8)
    micro_batch: tuple[int, ...] = (1, 2, 4, 8)
    recompute: tuple[str, ...] = ("selective", "full")
    zero_stage: tuple[int, ...] = (1,)
    sequence_parallel: tuple[bool, ...] = (True,)
    cp_kind: tuple[str, ...] = ("ring",)
    ep_copies: tuple[str, ...] = ("expert",)
    schedule: tuple[str, ...] = ("1f1b",)
    overlap_gradients: tuple[bool, ...] = (True,)
    overlap_parameters: tuple[bool, ...] = (True,)
    etp: tuple[int, ...] = (1,)
    dp_shard: tuple[int, ...] | None = (0,)


USUAL = Choices()
WIDE_DENSE = Choices(
    vpp=(*range(1, 17), 20, 24, 32, 48),
    micro_batch=(1, 2, 3, 4, 6, 8, 12, 16, 32),
    zero_stage=(1, 0, 3),
    sequence_parallel=(True, False),
    cp_kind=("ring", "all_gather", "ulysses"),
)
WIDE_EXPERTS = Choices(zero_stage=(1, 3), etp=(1, 2, 4))


def wide_choices(model: ModelSpec, rules: Sequence[Rule] = ()) -> Choices:
    """Return all that ``planner search`` tries; with experts fewer runs of many more degrees.

    Some only where a rule speaks of them: see ``on_request``.
    """
    return on_request(WIDE_EXPERTS if model.experts else WIDE_DENSE, model, rules)


def on_request(choices: Choices, model: ModelSpec, rules: Sequence[Rule]) -> Choices:
    """Return *choices* with what is tried only where a rule speaks of it.

    Schedules beside 1F1B, one copy of a token for each domain, and shards of less than all of dp,
    none of which every framework has; no overlap, which is never faster.

    >>> from planner.search.rules import parse_rule
    >>> from planner.model import Attention, ModelSpec
    >>> heads = Attention(heads=32, kv_heads=8, head_dim=128, v_head_dim=128)
    >>> model = ModelSpec(name="m", hidden=4096, vocab=128256, layers=32, attention=heads,
    ...                   ffn=14336)
    >>> on_request(USUAL, model, [parse_rule("dp_replicate > 1")]).dp_shard is None
    True
    """
    spoken = frozenset[str]().union(*(rule.names for rule in rules))
    asked: dict[str, Any] = {
        name: some
        for name, some in _ON_REQUEST.items()
        if name in spoken and (model.experts or name != "ep_copies")
    }
    if spoken & {"dp_shard", "dp_replicate"}:
        asked["dp_shard"] = None
    return replace(choices, **asked)


_ON_REQUEST: dict[str, tuple[Any, ...]] = {
    "ep_copies": ("expert", "domain"),
    "schedule": SCHEDULES,
    "overlap_gradients": (True, False),
    "overlap_parameters": (True, False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Layouts that can run.

    Args:
        table: name of a degree, ``dp_shard`` or one of ``RUN`` to one whole number a layout.
        considered: combinations looked at [1].
        rejected: reason to how many fell to it, each counted once, at its first.
        alike: names of the table that have one value in all rows.
    """

    table: Mapping[str, Ints]
    considered: int
    rejected: Mapping[str, int]
    alike: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """Layouts that can run [1]."""
        return len(self.table["tp"])

    def degrees(self, rows: Ints) -> Ints:
        """Return the parallel degrees of *rows*, shape [rows, 6]."""
        return np.stack([self.table[name][rows] for name in DEGREES], axis=1)

    def sets(self, rows: Ints) -> Ints:
        """Return which set of degrees each of *rows* has, as a number from 0 on.

        Rows of one set usually follow each other: only where it changes is it looked up.
        """
        degrees = [self.table[name][rows] for name in DEGREES]
        changes = np.ones(len(rows), dtype=bool)
        changes[1:] = np.logical_or.reduce([one[1:] != one[:-1] for one in degrees])
        starts = np.flatnonzero(changes)
        _, number = np.unique(
            np.stack([one[starts] for one in degrees], axis=1), axis=0, return_inverse=True
        )
        return np.repeat(number.ravel(), np.diff(np.append(starts, len(rows))))

    def rows_like(self, layout: Layout) -> Ints:
        """Return the rows with all that *layout* has of what the table varies."""
        alike = np.ones(self.size, dtype=bool)
        for name, column in self.table.items():
            alike &= column == _code(name, getattr(layout, name))
        return np.flatnonzero(alike)

    def layout(self, row: int, fixed: Mapping[str, Any]) -> Layout:
        """Return the layout of one row with the *fixed* fields.

        Of a length that its ranks cannot share: at the next one that they can.
        """
        chosen: dict[str, Any] = {name: int(column[row]) for name, column in self.table.items()}
        if fixed.get("seq", 0) % chosen["cp"]:
            chosen["seq"] = lcm(fixed["seq"], chosen["tp"] * chosen["cp"])
        for name, words in _WORDS.items():
            chosen[name] = words[chosen[name]]
        return Layout(**{**fixed, **chosen})

    def columns(self, fixed: Mapping[str, Any], rows: Any = slice(None)) -> LayoutColumns:
        """Return some rows, all where left out, as columns of the step-time model.

        What is alike in all of the space is a scalar: most of the model then runs once, not a row.
        """
        varied: dict[str, Any] = {
            name: float(column[0]) if name in self.alike else column[rows].astype(float)
            for name, column in self.table.items()
        }
        varied["domain_copies"] = varied.pop("ep_copies")
        varied["overlap_tensor"] = varied["sequence_parallel"]
        shard = varied.pop("dp_shard")
        varied["shard_gpus"] = varied["cp"] * shard if np.any(shard) else 0.0
        if "seq" in fixed:
            varied["seq"] = float(fixed["seq"])
        return replace(columns_of(self.layout(0, fixed)), **varied)


def layout_space(
    model: ModelSpec,
    gpus: int,
    fixed: Mapping[str, Any],
    choices: Choices = USUAL,
    *,
    rules: Sequence[Rule] = (),
    domain_gpus: Sequence[int] = (),
) -> Space:
    """Return the layouts on *gpus* GPUs that the *fixed* fields of ``Layout`` leave open.

    ``fixed`` holds at least ``seq`` and ``global_batch``; what is neither fixed nor among the
    *choices* is the field's default. The table is made block by block, so that what cannot be
    is never held at once.

    Args:
        model: the transformer's shape.
        gpus: GPUs every layout occupies [1].
        fixed: fields that are given.
        choices: what is tried for the others.
        rules: the user's conditions.
        domain_gpus: sizes of the supernodes; one copy of a token for each of them is not tried
            where they hold whole expert groups, for then nothing differs.
    """
    defaults = {f.name: f.default for f in fields(Layout)} | dict(fixed)
    degrees = _degrees(model, gpus, fixed, choices)
    runs = _runs(fixed, choices)
    per_degree = len(runs["vpp"])
    rejected: dict[str, int] = {}
    considered = len(degrees["tp"]) * per_degree
    degrees = _sift(degrees, degree_reasons(model, defaults, degrees), rejected, per_degree)
    of_runs = frozenset((*RUN, "zero", "micro_batches"))
    early = [rule for rule in rules if not rule.names & of_runs]
    late = [rule for rule in rules if rule.names & of_runs]
    degrees = _sift(degrees, rule_reasons(early, defaults, degrees), rejected, per_degree)
    many = max(1, _BLOCK_ROWS // per_degree)
    blocks = []
    for start in range(0, max(1, len(degrees["tp"])), many):
        some = {name: column[start : start + many] for name, column in degrees.items()}
        kept = len(some["tp"])
        table = {name: np.repeat(column, per_degree) for name, column in some.items()}
        table |= {name: np.tile(column, kept) for name, column in runs.items()}
        table = _sift(table, run_reasons(model, defaults, table, runs, domain_gpus), rejected, 1)
        table = _sift(table, rule_reasons(late, defaults, table), rejected, 1)
        blocks.append({name: column.astype(np.int32) for name, column in table.items()})
    whole = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    alike = {name for name in RUN if len(np.unique(runs[name])) == 1}
    shard = whole["dp_shard"]
    alike |= {"dp_shard"} if shard.size and shard.min() == shard.max() else set()
    return Space(table=whole, considered=considered, rejected=rejected,
                 alike=frozenset(alike))  # fmt: skip


def first_of_each(group: Ints, *keys: NDArray[Any]) -> Ints:
    """Return the position of the least entry of each group, the groups by their least entries.

    Args:
        group: the group of each entry, a number from 0 on.
        keys: what entries are ordered by, the most important first; then the one that is first.

    >>> first_of_each(np.array([0, 1, 0, 1]), np.array([3, 2, 1, 2])).tolist()
    [2, 1]
    """
    first, *others = keys
    least = np.full(int(group.max(initial=-1)) + 1, np.inf)
    np.minimum.at(least, group, first)
    few = np.flatnonzero(first == least[group])
    order = few[np.lexsort([few, *(key[few] for key in reversed(others)), first[few]])]
    _, leaders = np.unique(group[order], return_index=True)
    return order[np.sort(leaders)]


def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of *number*, ascending.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}))


def _degrees(
    model: ModelSpec, gpus: int, fixed: Mapping[str, Any], choices: Choices
) -> dict[str, Ints]:
    def options(name: str, among: tuple[int, ...]) -> Ints:
        return np.array([fixed[name]] if name in fixed else among, dtype=np.int64)

    every = divisors(gpus)
    experts = divisors(model.experts) if model.experts else (1,)
    shards = (0, *every[1:]) if choices.dp_shard is None else choices.dp_shard
    mesh = np.meshgrid(
        options("tp", every), options("cp", every), options("pp", every),
        options("ep", experts), options("etp", choices.etp if model.experts else (1,)),
        options("dp_shard", shards), indexing="ij",
    )  # fmt: skip
    tp, cp, pp, ep, etp, shard = (axis.ravel() for axis in mesh)
    whole = gpus % (tp * cp * pp) == 0
    dp = np.where(whole, gpus // (tp * cp * pp), 0)
    if "dp" in fixed:
        whole &= dp == fixed["dp"]
    if "dp_shard" in fixed:
        shard = np.where(shard == dp, 0, shard)  # one spelling of one layout
    else:
        whole &= (shard == 0) | ((shard < dp) & (dp % np.maximum(shard, 1) == 0))
    table = {"tp": tp, "cp": cp, "ep": ep, "etp": etp, "dp": dp, "pp": pp, "dp_shard": shard}
    return {name: column[whole] for name, column in table.items()}


def _runs(fixed: Mapping[str, Any], choices: Choices) -> dict[str, Ints]:
    options = [
        [_code(name, v) for v in ([fixed[name]] if name in fixed else getattr(choices, name))]
        for name in RUN
    ]
    mesh = np.meshgrid(*(np.array(one, dtype=np.int64) for one in options), indexing="ij")
    return {name: axis.ravel() for name, axis in zip(RUN, mesh, strict=True)}


def _code(name: str, value: Any) -> int:
    return _WORDS[name].index(value) if name in _WORDS else int(value)


def _sift(
    table: Mapping[str, Ints],
    reasons: Mapping[str, NDArray[np.bool_]],
    rejected: dict[str, int],
    each: int,
) -> dict[str, Ints]:
    """Return the rows that fall to no reason; count the others at their first."""
    kept = np.ones(len(table["tp"]), dtype=bool)
    for reason, falls in reasons.items():
        count = int((kept & falls).sum())
        if count:
            rejected[reason] = rejected.get(reason, 0) + count * each
        kept &= ~falls
    return {name: column[kept] for name, column in table.items()}
