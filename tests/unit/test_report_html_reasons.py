"""Reasons, prices of rules, second answers and ports: told from the plan's own figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.report_html import report
from cli.report_html_reasons import port_premises, ports_table, reasons_section
from planner.errors import InputError
from tests.report_plans import HOSTILE, Tags, saved, small_plan


def kept(least: float, most: float) -> dict[str, Any]:
    return {"cut_bytes": 220.0, "lower_bound_bytes": 220.0, "proof": "bound", "tile": {"pp": 2},
            "price_least_bytes": least, "price_most_bytes": most,
            "more_by_digit_bytes": {"dp": 220.0, "pp": -120.0}}  # fmt: skip


def told(**pp: Any) -> dict[str, Any]:
    """Return the small plan, whose 120 bytes are of PP, with its reasons."""
    tp = {"digit": "tp", "group_size": 2, "groups": 4, "split_groups": 0, "cut_bytes": 0.0,
          "impossible": None, "kept_whole": None}  # fmt: skip
    reasons = [tp, {**tp, "digit": "pp", "split_groups": 4, "cut_bytes": 120.0, **pp}]
    explain = {"tile": {}, "domains": [{"capacity": 4, "count": 2}], "reasons": reasons}
    return {**small_plan(), "explain": explain}


def gate(**more: Any) -> dict[str, Any]:
    premise = {"states": "Senders slow down in time", "otherwise": "the queue grows", "holds": None}
    return {"tier": "supernode", "family": "pp_forward", "degree": 3, "passes": True, "why": "fits",
            "deadline_s": None, "feedback_s": 1e-5, "peak_bytes": 3e6, "room_bytes": 4e6,
            "margin_share": 0.25, "lost_bytes": 0.0, "safe_degree": 4, "premises": [premise],
            **more}  # fmt: skip


def test_why_a_family_crosses_has_its_price(tmp_path: Path) -> None:
    page = report([saved(tmp_path, told(kept_whole=kept(100.0, 100.0)))])

    assert "it stays inside" in page
    assert "keeping it whole costs exactly 100 B more, for DP 220 B more would cross" in page


def test_what_cannot_be_says_so_and_what_is_open_has_a_range() -> None:
    assert "PP 2 &gt; 1 GPUs" in reasons_section(told(impossible="PP 2 > 1 GPUs of a supernode"))
    assert "costs 50 B to 100 B more" in reasons_section(told(kept_whole=kept(50.0, 100.0)))
    assert "could stay inside for nothing more" in reasons_section(told(kept_whole=kept(0.0, 0.0)))


def test_rules_say_what_they_cost() -> None:
    rules = {"rules": ["tp within supernode"], "cut_bytes": 120.0, "free_cut_bytes": 90.0,
             "free_lower_bound_bytes": 90.0, "free_proof": "bound", "price_least_bytes": 30.0,
             "price_most_bytes": 30.0, "step_s": 102.0, "free_step_s": 100.0}  # fmt: skip

    section = reasons_section({**small_plan(), "rules": rules})

    assert "tp within supernode" in section
    assert "They cost exactly 30 B a step: 120 B cross with them, 90 B without" in section
    assert "In time: 2 s of a step (2 %): 102 s with the rules, 100 s without." in section
    free = {**rules, "price_least_bytes": 0.0, "price_most_bytes": 0.0}
    assert "They cost no bytes" in reasons_section({**small_plan(), "rules": free})


def test_second_answers_stand_against_the_plan() -> None:
    other = {"method": "equal tiles", "cut_bytes": 150.0, "by_family": {}, "step_s": 1.9,
             "rank_to_gpu": []}  # fmt: skip

    section = reasons_section({**small_plan(), "alternatives": [other]})

    assert "+25 %" in section
    assert "-5 %" in section


def test_ports_that_do_not_stand_it_say_how_many_may_start(tmp_path: Path) -> None:
    document = {**small_plan(), "incast": [gate(), gate(tier="leaf", passes=False, safe_degree=2),
                                           gate(tier="pod", degree=0)]}  # fmt: skip

    page = report([saved(tmp_path, document)])

    assert "no: at most 2 together" in page
    assert "nothing from outside" in page
    assert "ports: Senders slow down in time" in page
    assert "assumed; otherwise the queue grows" in page


def test_a_plan_without_any_of_it_says_nothing() -> None:
    plan = small_plan()

    assert reasons_section(plan) == ports_table(plan) == ""
    assert port_premises(plan) == {}


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_names(tmp_path: Path, name: str) -> None:
    pages = [
        report(
            [saved(tmp_path, {**told(impossible=text), "incast": [gate(family=text, tier=text)]})]
        )
        for text in ("plain", name)
    ]

    assert sorted(set(Tags(pages[0]).tags)) == sorted(set(Tags(pages[1]).tags))


def test_what_is_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        saved(tmp_path, {**small_plan(), "incast": [gate(peak_bytes="much", premises=[{}])]})

    faults = " ".join(caught.value.faults)
    assert "incast[0].peak_bytes: expected number" in faults
    assert "incast[0].premises[0].states: is missing" in faults


def ruled(rank_order_bytes: float) -> dict[str, Any]:
    """Return the small plan under a rule, its 120 bytes against those of rank order."""
    document = small_plan()
    free = min(rank_order_bytes, 120.0)
    document["rules"] = {
        "rules": ["dp within supernode"], "cut_bytes": 120.0, "free_cut_bytes": free,
        "free_lower_bound_bytes": free, "free_proof": "bound",
        "price_least_bytes": 120.0 - free, "price_most_bytes": 120.0 - free,
    }  # fmt: skip
    document["baselines"] = [
        {"name": "megatron-order", "cut_bytes": rank_order_bytes, "step_s": 2.0}
    ]
    return document


def test_a_rule_that_lets_more_cross_than_rank_order_is_not_called_as_good(tmp_path: Path) -> None:
    page = report([saved(tmp_path, ruled(20.0))])

    assert "more than the 20 B of Megatron&#x27;s rank order, which need not keep the rules" in page
    assert "as many as in" not in page
    assert "120 B, of placements keeping the rules" in page
    assert "The seatings beside it need not keep the rules." in page


def test_bytes_that_differ_by_less_than_is_told_are_as_many(tmp_path: Path) -> None:
    page = report([saved(tmp_path, ruled(120.01))])

    assert "as many as in Megatron&#x27;s rank order" in page
