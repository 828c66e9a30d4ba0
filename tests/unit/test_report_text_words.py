"""The page's words: which placements a claim is about, one and many, and readable ratios."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from cli.planner_inputs import Asked, read_inputs
from cli.planner_plan import make_plan
from cli.report_text_parts import seat_lines, verdict
from cli.report_text_terms import terms_line
from planner.place.answer import Baseline, Proof, RulePrice

if TYPE_CHECKING:
    from cli.planner_plan import Plan

LAYOUT = {"tp": 2, "cp": 1, "dp": 4, "pp": 4, "micro_batch": 1, "global_batch": 64}
PRICE = RulePrice(
    rules=("pp within supernode",), free_bytes=1e9, free_bound_bytes=1e9, free_proof=Proof.BOUND,
    least_bytes=0.0, most_bytes=9e9,
)  # fmt: skip


@cache
def plan(supernode: int = 8) -> Plan:
    return make_plan(
        read_inputs(
            Asked(cluster=None, supernode=supernode, gpus=32, model="llama-3.1-8b", layout=LAYOUT,
                  ignore_memory=True)
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("price", "said"),
    [
        (PRICE, "of which another placement that keeps the rules could save at most 25 %"),
        (None, "of which another placement could save at most 25 %"),
    ],
)
def test_what_could_be_saved_is_said_of_the_placements_that_the_bound_holds_for(
    price: RulePrice | None, said: str
) -> None:
    found = plan()
    open_placement = replace(
        found.placement, objective_bytes=4e9, lower_bound_bytes=3e9, proof=Proof.INCUMBENT,
        rule_price=price,
    )  # fmt: skip

    assert said in verdict(replace(found, placement=open_placement))


def test_a_placement_far_worse_than_rank_order_is_told_as_so_many_times_it() -> None:
    found = plan()
    seats = found.placement.rank_to_gpu
    worse = replace(
        found.placement,
        objective_bytes=60e9,
        baselines=(Baseline(name="megatron-order", cut_bytes=1e9, rank_to_gpu=seats),),
    )

    assert "(60 times rank order)" in verdict(replace(found, placement=worse))


def test_one_stage_is_a_stage_and_one_idle_leaf_holds_no_rank() -> None:
    found = plan()
    first, *others = found.placement.domains
    emptied = replace(
        found.placement, tier="leaf", domains=(replace(first, ranks=()), *others)
    )  # fmt: skip

    lines = dict(seat_lines(replace(found, placement=emptied), 8))

    assert lines["idle"] == "1 leaf holds no rank"
    for text in lines.values():
        assert "stages 0;" not in text
    assert any(text.startswith(("stage ", "stages ")) for text in lines.values())


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("equal tiles 2x4", ""),
        ("boxes within boxes, groups kept whole", "boxes within boxes fills what one box"),
    ],
)
def test_only_words_that_stand_on_the_page_are_explained(method: str, said: str) -> None:
    line = terms_line(["tp", "pp"], ["this plan", "megatron-order"], method)

    assert line.startswith(said)
    assert bool(line) is bool(said)
    assert "EDP" not in line
    assert "greedy" not in line
