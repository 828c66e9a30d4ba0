"""Laws of a step's phases: links, what recomputation repeats, and the totals that it leaves."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from planner.layout import Layout
from planner.search.placed import placed_spreads
from planner.steptime.columns import columns_of
from planner.steptime.shared_links import Seating, active_families, seated_step_time
from planner.steptime.step import Step
from planner.traffic import step_families
from topologies.fabric_catalogue import generic_cluster, load_cluster
from topologies.model_reader import read_model

MODELS = {name: read_model(name) for name in ("llama-3.1-8b", "deepseek-v3", "mixtral-8x7b")}
FABRICS = {"generic": generic_cluster(8, 64), "hgx-h100": load_cluster("hgx-h100", gpus=64)}
LINKED = {  # GPU to GPU: full meshes of eight, a mesh of meshes, a torus
    "mi300x": load_cluster("mi300x", gpus=64),
    "ub-mesh-64": load_cluster("ub-mesh-64", gpus=64),
    "tpu-torus": load_cluster("tpu-torus", gpus=64),
}
CASES = [
    (model, fabric, {"tp": tp, "pp": pp, "ep": ep, "zero_stage": zero, "recompute": recompute})
    for model, tp, pp, ep, zero in (
        ("llama-3.1-8b", 8, 1, 1, 0),
        ("llama-3.1-8b", 8, 4, 1, 1),
        ("llama-3.1-8b", 1, 4, 1, 1),
        ("mixtral-8x7b", 1, 4, 8, 1),
        ("deepseek-v3", 1, 1, 16, 0),
        ("deepseek-v3", 8, 4, 8, 1),
        ("deepseek-v3", 1, 4, 16, 1),
    )
    for fabric in FABRICS
    for recompute in ("none", "full")
]


def layout_of(shape: dict[str, object]) -> Layout:
    dp = 64 // (int(str(shape["tp"])) * int(str(shape["pp"])))
    return Layout(dp=dp, global_batch=256, seq=4096, micro_batch=1, **shape)  # type: ignore[arg-type]


HEAVY: list[tuple[str, str, dict[str, object]]] = [
    ("mixtral-8x7b", fabric, {"tp": 2, "pp": 2, "ep": 8, "zero_stage": 3})
    for fabric in ("generic", *LINKED)
]
CROWDED = [
    *HEAVY,
    *(("llama-3.1-8b", fabric, {"tp": 8, "pp": 2, "zero_stage": 3}) for fabric in LINKED),
    *(("llama-3.1-8b", fabric, {"tp": 16, "pp": 1, "zero_stage": 1}) for fabric in LINKED),
]


def seated_step(model: str, fabric: str, layout: Layout, shuffled: bool) -> Step:
    cluster, seats = {**FABRICS, **LINKED}[fabric], list(range(64))
    if shuffled:
        random.Random(1).shuffle(seats)
    seating = Seating(
        fabric=cluster, families=step_families(MODELS[model], layout), rank_to_gpu=seats,
        spreads=placed_spreads(layout, seats, cluster),
    )  # fmt: skip
    return seated_step_time(MODELS[model], layout, seating)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(("model", "fabric", "shape"), [*CASES, *CROWDED])
def test_no_link_is_busy_longer_than_its_phase(
    model: str, fabric: str, shape: dict[str, object], shuffled: bool
) -> None:
    step = seated_step(model, fabric, layout_of(shape), shuffled)

    assert {phase.phase for phase in step.phases} >= {"forward", "backward"}
    for phase in step.phases:
        for link in phase.links:
            assert link.busy_s <= (phase.phase_s or link.busy_s) * (1 + 1e-9), phase
            assert phase.phase_s is None or link.busy_share == link.busy_s / phase.phase_s


def test_a_phase_that_its_busiest_link_binds_lasts_as_long_as_the_link_is_busy() -> None:
    """Shuffled over eight servers, gathers fill a NIC longer than the layers' formulas allow."""
    model, fabric, shape = HEAVY[0]

    step = seated_step(model, fabric, layout_of(shape), shuffled=True)

    (forward,) = [phase for phase in step.phases if phase.phase == "forward"]
    assert forward.links[0].kind == "network"
    assert forward.links[0].busy_share == pytest.approx(1.0, abs=2e-3)


def test_both_passes_last_as_long_as_the_step_less_what_is_in_neither() -> None:
    shape: dict[str, object] = {"tp": 1, "pp": 4, "zero_stage": 1}

    step = seated_step("llama-3.1-8b", "generic", layout_of(shape), shuffled=True)

    lasts_s = sum(phase.phase_s or 0.0 for phase in step.phases)
    neither_s = step.bubble_s + step.update_s + step.fixed_s + step.straggling_s
    assert float(step.exposed_s["pp"]) > 1e-3 * float(step.total_s)
    assert lasts_s == pytest.approx(float(step.total_s) - float(neither_s), rel=1e-6)


def test_a_family_of_linked_gpus_takes_what_its_fullest_link_takes() -> None:
    """On a torus a gather by neighbours goes several ways round; far seats share few links."""
    shape: dict[str, object] = {"tp": 8, "pp": 4, "zero_stage": 1}

    near, far = (
        seated_step("llama-3.1-8b", "tpu-torus", layout_of(shape), shuffled=shuffled)
        for shuffled in (False, True)
    )

    near_busy_s, far_busy_s = (
        sum(one.busy_s for phase in step.phases for one in phase.families if one.digit == "tp")
        for step in (near, far)
    )
    longer_s = float(far.communication_s["tp"]) - float(near.communication_s["tp"])
    # start-ups, the same in both, fall out
    assert longer_s == pytest.approx(far_busy_s - near_busy_s, rel=0.05)
    assert float(far.total_s) > 2 * float(near.total_s)


@pytest.mark.parametrize("model", MODELS)
def test_what_full_recomputation_repeats_runs_in_the_backward(model: str) -> None:
    """The forward carries what it carries without recomputation; the repeats join the backward."""
    shape = {"tp": 2, "pp": 2, "ep": 1 if model.startswith("llama") else 8, "zero_stage": 1}
    full = layout_of({**shape, "recompute": "full"})
    counted = {}
    for layout in (full, replace(full, recompute="none")):
        families = step_families(MODELS[model], layout)
        active = active_families(layout, families, columns_of(layout))
        times = {}
        for one in active:
            times[one.phase, one.family.name] = one.family.times_per_step
        for family in families:  # nothing is lost
            parts = [count for (_, name), count in times.items() if name == family.name]
            assert sum(parts) == pytest.approx(family.times_per_step)
        counted[layout.recompute] = times

    full_times, once = counted["full"], counted["none"]
    assert {k: v for k, v in full_times.items() if k in once} == pytest.approx(once)
    repeats = {k: v for k, v in full_times.items() if k not in once}
    layered = {name for phase, name in once if phase == "forward" and name[:2] in {"tp", "ep"}}
    assert set(repeats) == {("backward", name) for name in layered - {"tp_cross_entropy"}}
