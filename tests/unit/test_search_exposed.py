"""Placing by what a step exposes: rounds, fixed points, cycles, and never a longer step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from planner.collectives.links import links_of
from planner.fabric import Fabric
from planner.layout import Layout
from planner.place import place
from planner.place.answer import Placement, Proof
from planner.search.exposed import LEAST_SHARE, Exposed, exposed_shares, place_exposed
from planner.search.placed import placed_spreads
from planner.steptime.step import step_time
from planner.traffic import Family, step_families
from topologies.fabric_catalogue import generic_cluster
from topologies.model_reader import read_model

LAYOUT = Layout(dp=4, pp=4, global_batch=16)
MODEL = read_model("llama-3.1-8b")
FAMILIES = step_families(MODEL, LAYOUT)
CLUSTER = generic_cluster(4, 16)


def _seat(families: Sequence[Family]) -> Placement:
    return place(LAYOUT, families, CLUSTER, time_limit_s=2.0)


def _step(total_s: float, exposed: Mapping[str, float]) -> Any:
    return SimpleNamespace(
        total_s=total_s, communication_s=dict.fromkeys(exposed, 1.0), exposed_s=dict(exposed)
    )


def _placed(step_of: Callable[[Sequence[int]], Any], rounds: int = 8) -> Exposed:
    return place_exposed(LAYOUT, FAMILIES, CLUSTER, seat=_seat, step_of=step_of, rounds=rounds)


def _crossing(placement: Placement, digit: str) -> float:
    return sum(placement.by_family[f.name] for f in FAMILIES if f.digit == digit)


def test_shares_are_what_of_a_digits_time_lengthens_the_step() -> None:
    step: Any = SimpleNamespace(
        communication_s={"dp": 4.0, "pp": 2.0, "tp": 0.0},
        exposed_s={"dp": 1.0, "pp": 0.0, "tp": 0.0},
    )

    assert exposed_shares(step, ("dp", "edp", "pp", "tp")) == {
        "dp": 0.25, "edp": 0.25, "pp": LEAST_SHARE, "tp": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("ended", [1, 2])
def test_an_interrupted_round_is_the_last_and_the_best_so_far_is_told_to_be_that(
    ended: int,
) -> None:
    asked: list[Placement] = []

    def seat(families: Sequence[Family]) -> Placement:
        placed = _seat(families)
        asked.append(replace(placed, interrupted=len(asked) + 1 == ended))
        return asked[-1]

    shares = iter([{"dp": 0.9, "pp": 0.1}, {"dp": 0.1, "pp": 0.9}] * 20)
    found = place_exposed(
        LAYOUT, FAMILIES, CLUSTER, seat=seat, step_of=lambda _: _step(1.0, next(shares))
    )

    assert len(asked) == ended
    assert found.placement.interrupted


def test_a_step_that_always_exposes_the_same_is_a_fixed_point_and_proved() -> None:
    least = _seat(FAMILIES).rank_to_gpu

    def step_of(seats: Sequence[int]) -> Any:
        return _step(2.0 if tuple(seats) == least else 1.0, {"dp": 0.001, "pp": 1.0})

    found = _placed(step_of)

    assert found.fixed_point
    assert found.placement.objective == "time"
    assert found.placement.proof in (Proof.BOUND, Proof.SOLVER)
    assert found.placement.gap == pytest.approx(0.0)
    assert found.rounds[0].origin == "total"


def test_what_is_hidden_crosses_instead_of_what_is_exposed() -> None:
    least = _seat(FAMILIES)
    exposed, hidden = ("dp", "pp") if _crossing(least, "dp") > _crossing(least, "pp") else (
        "pp", "dp",
    )  # fmt: skip

    def step_of(seats: Sequence[int]) -> Any:
        home = CLUSTER.domain_index("supernode")[list(seats)]
        groups = next(f for f in FAMILIES if f.digit == exposed).members(LAYOUT)
        crossing = float(sum(len(set(home[group].tolist())) - 1 for group in groups))
        return _step(1.0 + crossing, {exposed: 1.0, hidden: 0.0})

    found = _placed(step_of)

    assert _crossing(least, exposed) > 0
    assert _crossing(found.placement, exposed) == 0
    assert found.placement.objective_s == 1.0
    assert found.rounds[found.kept].origin == "exposed"
    assert found.placement.objective_bytes >= least.objective_bytes
    assert found.placement.checked_bytes == pytest.approx(found.placement.objective_bytes)
    assert found.placement.lower_bound_bytes == pytest.approx(least.lower_bound_bytes)
    assert found.placement.proof in (Proof.BOUND, Proof.SOLVER)
    assert found.fixed_point


def test_shares_that_never_come_back_end_and_are_said_not_to() -> None:
    def step_of(seats: Sequence[int]) -> Any:
        """Expose whatever crosses less: it chases its own tail."""
        home = CLUSTER.domain_index("supernode")[list(seats)]
        groups = next(f for f in FAMILIES if f.digit == "pp").members(LAYOUT)
        inside = all(len(set(home[group].tolist())) == 1 for group in groups)
        return _step(5.0 if inside else 4.0, {"dp": float(inside), "pp": float(not inside)})

    found = _placed(step_of)

    assert not found.fixed_point
    assert len(found.rounds) < 20
    assert found.placement.objective_s == 4.0


def test_rounds_end_when_they_are_used_up() -> None:
    share = iter(range(1, 1000))
    seen: dict[tuple[int, ...], Any] = {}

    def step_of(seats: Sequence[int]) -> Any:
        return seen.setdefault(tuple(seats), _step(1.0, {"dp": next(share) / 1000.0, "pp": 1.0}))

    found = _placed(step_of, rounds=1)

    assert sum(one.origin == "exposed" for one in found.rounds) <= 2


_ZERO_3 = Layout(tp=2, dp=4, pp=2, global_batch=16, zero_stage=3)
_CONTEXT = Layout(tp=2, cp=2, dp=2, pp=2, global_batch=32)
_SERIAL = Layout(dp=8, pp=2, global_batch=16, overlap_gradients=False)


@pytest.mark.parametrize(
    ("layout", "supernode"),
    [
        (_ZERO_3, 4),
        (_ZERO_3, 8),
        (_CONTEXT, 4),
        (_SERIAL, 6),  # 24 GPUs of which 16 are used
        pytest.param(_CONTEXT, 6, marks=pytest.mark.nightly),
        (_SERIAL, 4),
        (_SERIAL, 8),
    ],
)
def test_no_placement_by_time_is_slower_than_the_least_cut_or_a_baseline(
    layout: Layout, supernode: int
) -> None:
    cluster: Fabric = generic_cluster(supernode, 24 if supernode == 6 else 16)
    families = step_families(MODEL, layout)

    def step_of(seats: Sequence[int]) -> Any:
        return step_time(
            MODEL, layout, accelerator=cluster.accelerator, links=links_of(cluster),
            spreads=placed_spreads(layout, seats, cluster), efficiency=None,
        )  # fmt: skip

    def seat(moved: Sequence[Family]) -> Placement:
        return place(layout, moved, cluster, time_limit_s=0.2)

    found = place_exposed(layout, families, cluster, seat=seat, step_of=step_of)

    total = seat(families)
    rivals = [total.rank_to_gpu, *(rival.rank_to_gpu for rival in total.baselines)]
    shortest_s = min(float(step_of(seats).total_s) for seats in rivals)
    assert found.placement.objective_s <= shortest_s * (1 + 1e-12)
    own_s = float(step_of(found.placement.rank_to_gpu).total_s)
    assert found.placement.objective_s == pytest.approx(own_s)
    exposed = sum(found.placement.by_family[f.name] * found.shares[f.digit] for f in families)
    assert found.placement.exposed_bytes == pytest.approx(exposed)
    assert found.placement.exposed_bound_bytes <= exposed * (1 + 1e-12)
    assert found.rounds[found.kept].step_s == found.placement.objective_s


def test_a_seating_that_comes_back_counts_once_among_those_timed() -> None:
    asked: list[tuple[int, ...]] = []

    def step_of(seats: Sequence[int]) -> Any:
        asked.append(tuple(seats))
        return _step(1.0, dict.fromkeys(("dp", "pp"), 0.5))

    found = _placed(step_of)

    assert found.seatings == len(set(asked))
    assert found.seatings < len(found.rounds)
