"""The judge of borders: counts by itself, and its veto is kept."""

from __future__ import annotations

import numpy as np
import pytest

import planner.place as door
from planner.errors import PlannerError
from planner.layout import Layout
from planner.place import place
from planner.place.check import CheckedEntry, CheckError
from planner.place.check_border import checked_border_s
from planner.place.copies import copy_units
from planner.place.question import Charge, Kind, Question
from planner.traffic import step_families
from tests.oracles import slow_border_bytes
from topologies.fabric_catalogue import generic_cluster
from topologies.model_reader import read_model

CLUSTER = generic_cluster(4, 16)
KINDS = {
    "all_reduce": (Kind.TOUCH, 2.0),
    "reduce_scatter": (Kind.TOUCH, 1.0),
    "all_to_all": (Kind.PAIRS, 1.0),
    "domain_all_to_all": (Kind.COPIES, 1.0),
    "ring": (Kind.RING, 1.0),
    "chain": (Kind.CHAIN, 1.0),
}


def _border_s(entry: CheckedEntry, seats: list[int], uplinks: list[float]) -> float:
    return checked_border_s(
        CLUSTER.graph, CLUSTER.gpus, seats, [entry], tier="supernode",
        tiers=[tier.name for tier in CLUSTER.tiers], uplink_bytes_per_s=uplinks,
    )  # fmt: skip


@pytest.mark.parametrize("collective", sorted(KINDS))
def test_each_collective_is_counted_message_by_message(collective: str) -> None:
    random = np.random.default_rng(11)
    kind, passes = KINDS[collective]
    units = copy_units(8, 16, 3) if kind is Kind.COPIES else ()
    charge = Charge(axes=(0,), kind=kind, weight_bytes=passes * 7.0 * 2.0, units=units)
    question = Question(sizes=(8, 2), charges=(charge,), capacities=(4,) * 4)
    members = [[*range(8)], [*range(8, 16)]]
    entry = CheckedEntry(
        collective=collective, payload_bytes=7.0, times_per_step=2.0, members=members,
        experts=16, top_k=3,
    )  # fmt: skip
    home = np.asarray(CLUSTER.domain_index("supernode"))
    rates = np.array([1.0, 2.0, 3.0, 4.0])
    for _ in range(10):
        seats = random.permutation(16)

        found_s = _border_s(entry, seats.tolist(), rates[home].tolist())

        sent = slow_border_bytes(question, home[seats].tolist())
        assert found_s == pytest.approx(max(b / r for b, r in zip(sent, rates, strict=True)))


def test_a_domain_that_sends_without_an_uplink_is_named() -> None:
    entry = CheckedEntry(collective="ring", payload_bytes=7.0, times_per_step=2.0, members=[[0, 4]])

    with pytest.raises(CheckError, match="domain 1 sends 14 bytes and has no uplink"):
        _border_s(entry, list(range(16)), [1.0] * 4 + [0.0] * 4 + [1.0] * 8)


def test_a_border_that_the_judge_counts_otherwise_is_withheld(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layout = Layout(dp=8, pp=2, global_batch=16)
    families = step_families(read_model("llama-3.1-8b"), layout)
    true_s = place(layout, families, CLUSTER, objective="bottleneck").objective_s
    monkeypatch.setattr(door, "checked_border_s", lambda *_, **__: true_s * 1.001)

    with pytest.raises(PlannerError, match="withheld"):
        place(layout, families, CLUSTER, objective="bottleneck")
