"""``planner place --tiers``: the table of tiers and what the document says of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cli.report_html_schema import published_schema, schema_faults

DENSE = (
    "--cluster", "dragonfly-plus", "--model", "llama-3.1-8b", "--tp", "8", "--cp", "2",
    "--pp", "8", "--vpp", "1", "--dp", "8", "--zero", "1", "--micro-batch", "1",
    "--global-batch", "256", "--ignore-memory",
)  # fmt: skip
Planner = Callable[..., Any]


def test_every_tier_has_a_bound_a_gap_and_a_proof(planner: Planner) -> None:
    ran = planner("place", *DENSE, "--json")

    document = json.loads(ran.out)
    assert list(schema_faults(document, published_schema("place"))) == []
    assert document["inputs"]["tiers"] == "lexicographic"
    assert document["tier_order"]["order"] == ["supernode", "leaf", "pod"]
    proved = document["tier_order"]["proved"]
    cuts = {cut["tier"]: cut for cut in document["tiers"]}
    for place, tier in enumerate(document["tier_order"]["order"]):
        cut = cuts[tier]
        assert cut["checked_bytes"] == pytest.approx(cut["cut_bytes"])
        assert cut["lower_bound_bytes"] <= cut["cut_bytes"]
        assert cut["gap"] == pytest.approx(1 - cut["lower_bound_bytes"] / cut["cut_bytes"])
        assert place >= proved or cut["proof"] != "time_limit"


def test_the_page_shows_the_tiers_in_their_order(planner: Planner) -> None:
    ran = planner("place", *DENSE)

    rows = [
        line.split()[0]
        for line in ran.out.splitlines()
        if line.rstrip().endswith(("met", "before"))
    ]
    assert rows[:3] == ["supernode", "leaf", "pod"]
    assert "Tiers in this order: supernode, leaf, pod." in ran.out


def test_the_asked_tier_comes_first_and_inner_ones_last(planner: Planner) -> None:
    ran = planner("place", *DENSE, "--tier", "leaf", "--json")

    assert json.loads(ran.out)["tier_order"]["order"] == ["leaf", "pod", "supernode"]


def test_weighted_tiers_have_a_sum_and_its_bound(planner: Planner) -> None:
    document = json.loads(planner("place", *DENSE, "--tiers", "weighted", "--json").out)

    assert 0 < document["tier_order"]["weighted_bound_s"] <= document["tier_order"]["weighted_s"]


def test_an_unknown_way_is_refused(planner: Planner) -> None:
    ran = planner("place", *DENSE, "--tiers", "all")

    assert ran.code == 2
    assert "lexicographic" in ran.err
