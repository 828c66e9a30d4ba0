"""``planner place --objective`` and ``--reductions`` as a user runs them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]

SCHEMA = Path(__file__).parents[2] / "cli" / "schemas" / "place.json"
UNEVEN = ("--supernode", "5", "--gpus", "12", "--model", "llama-3.1-8b", "--tp", "2", "--dp", "3",
          "--pp", "2", "--vpp", "1", "--cp", "1", "--zero", "1", "--micro-batch", "1",
          "--global-batch", "12")  # fmt: skip
SMALL = ("--supernode", "4", "--gpus", "16", "--model", "llama-3.1-8b", "--tp", "1", "--dp", "4",
         "--pp", "4", "--cp", "1", "--global-batch", "16", "--seq", "4096")  # fmt: skip

_SEEN: dict[tuple[str, ...], dict[str, Any]] = {}


def documented(planner: Planner, *arguments: str) -> dict[str, Any]:
    if arguments not in _SEEN:
        ran = planner("place", *arguments, "--with-groups", "--json")
        assert ran.code == 0, ran.err
        _SEEN[arguments] = json.loads(ran.out)
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator(schema).validate(_SEEN[arguments])
    return _SEEN[arguments]


def homes(document: dict[str, Any]) -> dict[int, str]:
    return {
        rank: domain["name"]
        for domain in document["placement"]["domains"]
        for rank in domain["ranks"]
    }


def cut_of(document: dict[str, Any]) -> float:
    """The published table, on what the document lists."""
    home, total = homes(document), 0.0
    for entry in document["traffic"]:
        for group in entry["members"]:
            at = [home[rank] for rank in group]
            k = len(set(at))
            units = {
                "all_reduce": 2.0 * (k - 1),
                "reduce_scatter": float(k - 1),
                "all_gather": float(k - 1),
                "ring": float(k if k > 1 else 0),
                "chain": float(sum(a != b for a, b in pairwise(at))),
                "all_to_all": float(sum(n * (len(at) - n) for n in Counter(at).values())),
                "domain_all_to_all": sum(
                    (len(at) - n) * reach(entry["experts"], entry["top_k"], n, len(at))
                    for n in Counter(at).values()
                )
                if "experts" in entry
                else 0.0,
            }[entry["collective"]]
            total += units * entry["payload_bytes"] * entry["times_per_step"]
    return total


def reach(experts: int, top_k: int, members: int, of_all: int) -> float:
    """The share of all choices of experts that has one on the first *members* members."""
    there = set(range(experts // of_all * members))
    choices = list(combinations(range(experts), top_k))
    return sum(bool(there & set(chosen)) for chosen in choices) / len(choices)


@pytest.mark.parametrize("arguments", [UNEVEN, SMALL], ids=["uneven", "small"])
def test_the_bottleneck_is_the_busiest_border_and_bounded_in_seconds(
    planner: Planner, arguments: tuple[str, ...]
) -> None:
    total = documented(planner, *arguments)
    document = documented(planner, *arguments, "--objective", "bottleneck")

    cut = document["cut"]
    busiest = {one["tier"]: one["cut_time_s"] for one in document["tiers"]}["supernode"]
    least_cut_s = {one["tier"]: one["cut_time_s"] for one in total["tiers"]}["supernode"]
    assert cut["objective"] == document["inputs"]["objective"] == "bottleneck"
    assert cut["objective_s"] == pytest.approx(busiest)
    assert cut["objective_s"] <= least_cut_s * (1 + 1e-9)
    assert 0 < cut["lower_bound_s"] <= cut["objective_s"]
    assert cut["gap"] == pytest.approx(1 - cut["lower_bound_s"] / cut["objective_s"], abs=1e-9)
    assert cut["objective_bytes"] >= total["cut"]["objective_bytes"] * (1 - 1e-9)
    assert cut["lower_bound_bytes"] <= total["cut"]["objective_bytes"] * (1 + 1e-9)
    assert cut["objective_bytes"] == pytest.approx(cut_of(document), rel=1e-12)
    if cut["proof"] != "time_limit":
        assert cut["gap"] == 0


def test_time_keeps_the_shortest_step_of_all_it_timed(planner: Planner) -> None:
    total = documented(planner, *SMALL)
    document = documented(planner, *SMALL, "--objective", "time")

    cut = document["cut"]
    steps = [one["step_s"] for one in cut["rounds"]]
    assert cut["rounds"][0]["origin"] == "total"
    assert cut["objective_s"] == min(steps) == steps[cut["kept_round"]]
    assert cut["objective_s"] == pytest.approx(document["step"]["total_s"])
    assert 0 < cut["lower_bound_s"] <= cut["objective_s"]
    assert document["step"]["total_s"] <= total["step"]["total_s"] * (1 + 1e-12)
    assert document["step"]["total_s"] <= min(b["step_s"] for b in document["baselines"]) + 1e-12
    assert isinstance(cut["fixed_point"], bool)
    exposed = sum(
        cut["by_family"][entry["family"]] * cut["exposed_share"][entry["digit"]]
        for entry in document["traffic"]
    )
    assert cut["exposed_bytes"] == pytest.approx(exposed)
    gap = 1 - cut["exposed_bound_bytes"] / exposed if exposed else 0.0
    assert cut["gap"] == pytest.approx(gap, abs=1e-9)
    assert cut["objective_bytes"] == pytest.approx(cut_of(document), rel=1e-12)


@pytest.mark.parametrize("objective", ["bottleneck", "time"])
def test_the_page_says_what_was_made_least_and_how_far_that_is_proved(
    planner: Planner, objective: str
) -> None:
    ran = planner("place", *SMALL, "--objective", objective)

    assert ran.code == 0, ran.err
    page = " ".join(ran.out.split())
    if objective == "bottleneck":
        assert "The busiest border of a supernode takes" in page
        assert "some border takes at least" in page
    else:
        assert "placed for the shortest step of" in page
        assert "fixed point" in page
        assert "No placement's step is shorter than" in page


@pytest.mark.parametrize("reductions", ["flat", "flat-in-rank-order"])
def test_flat_rings_are_listed_in_the_traffic_and_priced_by_it(
    planner: Planner, reductions: str
) -> None:
    usual = documented(planner, *SMALL)
    document = documented(planner, *SMALL, "--reductions", reductions)

    collectives = {entry["collective"] for entry in document["traffic"]}
    assert collectives <= {"ring", "chain"}
    assert document["inputs"]["reductions"] == reductions
    assert document["inputs"]["sha256"] != usual["inputs"]["sha256"]
    assert document["cut"]["objective_bytes"] == pytest.approx(cut_of(document), rel=1e-12)
    assert document["step"]["total_s"] > 0


def test_experts_of_one_copy_a_domain_are_priced_by_every_choice_of_experts(
    planner: Planner, tmp_path: Path
) -> None:
    layout = tmp_path / "layout.yaml"
    layout.write_text(
        "tp: 1\ndp: 8\nep: 8\npp: 1\nglobal_batch: 64\nep_copies: domain\n", encoding="utf-8"
    )
    document = documented(
        planner, "--supernode", "4", "--gpus", "8", "--model", "mixtral-8x7b", "--layout",
        str(layout), "--ignore-memory",
    )  # fmt: skip

    exchanges = [e for e in document["traffic"] if e["collective"] == "domain_all_to_all"]
    assert len(exchanges) == 4
    assert {(e["experts"], e["top_k"]) for e in exchanges} == {(8, 2)}
    assert document["cut"]["objective_bytes"] == pytest.approx(cut_of(document), rel=1e-12)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--objective", "fastest"), "expected one of total, bottleneck, time"),
        (("--objective", "bottleneck", "--tiers", "weighted"), "one tier"),
        (("--objective", "time", "--tiers", "weighted"), "no rules"),
        (("--reductions", "tree"), "flat-in-rank-order"),
    ],
)
def test_what_does_not_go_together_is_refused(
    planner: Planner, more: tuple[str, ...], said: str
) -> None:
    ran = planner("place", *SMALL, *more)

    assert ran.code == 2
    assert said in " ".join(ran.err.split())
