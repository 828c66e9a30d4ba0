"""Links and ports of a plan as a user reads them: what binds, who slows whom, the incast gate."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

SCHEMA = Path(__file__).parents[2] / "cli" / "schemas" / "place.json"
# experts of 16 ranks over supernodes of 8: their exchange crosses, beside pipeline and gradients
SPREAD = ("--gpus", "64", "--supernode", "8", "--model", "mixtral-8x7b", "--tp", "4", "--ep", "8",
          "--etp", "2", "--pp", "2", "--dp", "8", "--global-batch", "256", "--seq", "4096",
          "--micro-batch", "1", "--ignore-memory")  # fmt: skip
WHOLE = ("--gpus", "64", "--supernode", "8", "--model", "llama-3.1-8b", "--tp", "8", "--dp", "8",
         "--global-batch", "64", "--seq", "8192", "--micro-batch", "1")  # fmt: skip

Planner = Callable[..., Any]


@pytest.fixture
def spread(planner: Planner) -> dict[str, Any]:
    ran = planner("place", *SPREAD, "--json")
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    return document


def test_a_plan_names_the_busiest_links_of_each_phase(spread: dict[str, Any]) -> None:
    step = spread["step"]

    jsonschema.validate(spread, json.loads(SCHEMA.read_text(encoding="utf-8")))
    phases = {phase["phase"]: phase for phase in step["phases"]}
    assert set(phases) >= {"forward", "backward"}
    for phase in phases.values():
        for link in phase["links"]:
            assert link["load_bytes"] == pytest.approx(sum(link["by_family_bytes"].values()))
            assert link["busy_s"] == pytest.approx(link["load_bytes"] / link["reached_bytes_per_s"])
            assert link["busy_share"] <= 1  # a phase is no shorter than its busiest link
    assert step["slowdown_ratio"].keys() == {e["digit"] for e in spread["traffic"]}


def test_a_spread_exchange_fails_the_incast_gate_and_the_page_says_what_would_pass(
    planner: Planner, spread: dict[str, Any]
) -> None:
    (gate,) = spread["incast"]
    sizes = [len(domain["ranks"]) for domain in spread["placement"]["domains"]]

    page = planner("place", *SPREAD).out

    assert max(sizes) == 8
    # 8 expert ranks sit 4 and 4 in two supernodes: 4 send to one port of the other side
    assert (gate["tier"], gate["degree"]) == ("supernode", 4)
    assert gate["family"].startswith("ep_")
    assert not gate["passes"]
    assert gate["peak_bytes"] == pytest.approx(3 * 50e9 * 20e-6)
    assert "incast, supernode  fails" in page
    assert "up to 2 started together pass" in page


def test_a_plan_of_rings_passes_the_gate(planner: Planner) -> None:
    page = planner("place", *WHOLE).out

    assert "incast, supernode  passes: 1 sender at once to one port" in page
    assert "no family takes 1 % longer" in page or "against the tiers' even rates" in page


def test_the_step_page_names_links_and_the_path_says_what_sharing_costs(planner: Planner) -> None:
    page = planner("step", *SPREAD[:-1]).out
    told = json.loads(planner("step", *SPREAD[:-1], "--json").out)["step"]

    assert re.search(r"^  forward +[\d.]+ m?s: .* busy ", page, re.MULTILINE)
    premises = {entry["name"]: entry["premise"] for entry in told["critical_path"]}
    assert "shares its links as reckoned" in premises["ep"]
    assert told["assumed"]["shared_links"]
