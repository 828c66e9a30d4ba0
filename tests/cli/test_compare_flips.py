"""A flip that is printed holds where a comparison is made on either side of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
ASKED = ("compare", "--supernode", "8,32", "--gpus", "32", "--global-batch", "256", "--json")


def best_of(document: dict[str, Any], cluster: str) -> str:
    entry = next(one for one in document["ranked"] if one["cluster"] == cluster)
    names = ("tp", "cp", "ep", "etp", "dp", "pp")
    degrees = [f"{name}{entry['layout'][name]}" for name in names if entry["layout"][name] > 1]
    return " ".join(degrees) or "dp1"


@pytest.mark.parametrize(
    "model", ["llama-3.1-8b", pytest.param("mixtral-8x7b", marks=pytest.mark.nightly)]
)
def test_both_sides_of_a_flip_of_the_length_are_what_a_comparison_there_finds(
    planner: Planner, model: str
) -> None:
    found = json.loads(planner(*ASKED, "--model", model, "--seq", "4096", "--seat-flips").out)

    flips = [one for one in found["flips"] if one["property"] == "seq"]
    assert flips
    for flip in flips:
        assert flip["seated"]["holds"] == (
            (flip["seated"]["before"], flip["seated"]["after"]) == (flip["before"], flip["after"])
        )
        for value, said in (
            (flip["held_value"], flip["seated"]["before"]),
            (flip["value"], flip["seated"]["after"]),
        ):
            assert value == int(value)
            there = planner(*ASKED, "--model", model, "--seq", str(int(value)))
            document = json.loads(there.out)
            if flip["kind"] == "layout":
                assert best_of(document, found["ranked"][0]["cluster"]) == said
            elif flip["kind"] == "winner":
                assert document["ranked"][0]["cluster"] == said
            else:
                assert (document["ranked"][1]["tie_with_first"]) == (said == "a tie at the top")


def test_flips_of_the_network_are_not_seated_and_the_page_says_what_is(planner: Planner) -> None:
    asked = [one for one in ASKED if one != "--json"]
    page = " ".join(planner(*asked, "--model", "mixtral-8x7b").out.split())

    assert "--seat-flips seats both sides" in page
    assert "8 values on each side, x 1.54 apart" in page
