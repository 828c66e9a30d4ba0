"""Laws of a step's phases: links, what recomputation repeats, and the totals that it leaves."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from planner.layout import Layout
from planner.search.placed import placed_spreads
from planner.steptime.columns import columns_of
from planner.steptime.shared_links import Seating, active_families, seated_step_time
from planner.traffic import step_families
from topologies.fabric_catalogue import generic_cluster, load_cluster
from topologies.model_reader import read_model

MODELS = {name: read_model(name) for name in ("llama-3.1-8b", "deepseek-v3", "mixtral-8x7b")}
FABRICS = {"generic": generic_cluster(8, 64), "hgx-h100": load_cluster("hgx-h100", gpus=64)}
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


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(("model", "fabric", "shape"), CASES)
def test_no_link_is_busy_longer_than_its_phase(
    model: str, fabric: str, shape: dict[str, object], shuffled: bool
) -> None:
    layout, cluster = layout_of(shape), FABRICS[fabric]
    seats = list(range(64))
    if shuffled:
        random.Random(1).shuffle(seats)
    seating = Seating(
        fabric=cluster, families=step_families(MODELS[model], layout), rank_to_gpu=seats,
        spreads=placed_spreads(layout, seats, cluster),
    )  # fmt: skip

    step = seated_step_time(MODELS[model], layout, seating)

    assert {phase.phase for phase in step.phases} >= {"forward", "backward"}
    for phase in step.phases:
        for link in phase.links:
            assert link.busy_s <= (phase.phase_s or link.busy_s) * (1 + 1e-9), phase
            assert phase.phase_s is None or link.busy_share == link.busy_s / phase.phase_s


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
