"""Quick seats: against pricing every seating anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.layout import Layout
from planner.place.expand import seats
from planner.place.fill import ways_to_fill
from planner.place.nested_fill import nested_fillings
from planner.place.question import ask, cut_bytes
from planner.search.quick_seats import QuickSeats
from planner.traffic import step_families
from topologies.fabric_catalogue import generic_cluster
from topologies.model_reader import read_model

WIDE = Layout(tp=2, ep=4, dp=8, pp=2, global_batch=64)
CASES = [
    WIDE, replace(WIDE, recompute="full"), replace(WIDE, micro_batch=2), replace(WIDE, vpp=2),
    Layout(tp=4, ep=2, dp=8, global_batch=64), replace(WIDE, micro_batch=4),
]  # fmt: skip


@pytest.mark.parametrize("supernode", [5, 9, 16])
def test_seats_found_after_others_of_the_same_degrees_are_those_found_alone(supernode: int) -> None:
    model, fabric = read_model("mixtral-8x7b"), generic_cluster(supernode, 32)
    one_after_another = QuickSeats(fabric)

    for layout in CASES:
        families = step_families(model, layout)
        question = ask(layout, families, fabric.capacities("supernode"))
        homes = [h for held in ways_to_fill(question) for h in nested_fillings(question, held)]
        least = min(homes, key=lambda home: cut_bytes(question, home))

        found = one_after_another.of(layout, families)

        assert found[0] == seats(least, fabric, "supernode")
        assert found[-1] == tuple(range(32))
