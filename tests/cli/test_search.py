"""``planner search`` as a user runs it: the document, the page, the refusals."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
SCHEMA = Path(__file__).parents[2] / "cli" / "schemas" / "search.json"
SMALL = ("--supernode", "8", "--gpus", "32", "--model", "llama-3.1-8b", "--global-batch", "64",
         "--seq", "8192")  # fmt: skip


def documented(planner: Planner, *arguments: str) -> dict[str, Any]:
    ran = planner("search", *arguments, "--json")
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    return document


def test_the_document_keeps_its_schema_and_its_promises(planner: Planner) -> None:
    document = documented(planner, *SMALL, "--best", "4")

    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert document["layouts_considered"] == document["layouts_feasible"] + sum(
        document["layouts_rejected"].values()
    )
    best = document["best"]
    assert len(best) == 4
    steps = [one["step"]["total_s"] for one in best[1:]]
    assert steps == sorted(steps)
    for one in best:
        layout, memory = one["layout"], one["memory"]
        assert layout["tp"] * layout["cp"] * layout["dp"] * layout["pp"] == 32
        assert memory["fits"]
        assert one["step"]["interval_s"][0] < one["step"]["total_s"] < one["step"]["interval_s"][1]
        assert one["cut"]["objective_bytes"] == pytest.approx(one["cut"]["checked_bytes"])
        assert one["seated_bytes"] >= one["cut"]["objective_bytes"] * (1 - 1e-9)


def test_the_best_layout_cuts_and_takes_what_place_says_of_it(planner: Planner) -> None:
    one = documented(planner, *SMALL, "--best", "1")["best"][0]
    layout = one["layout"]
    options = [text for name in ("tp", "cp", "dp", "pp", "vpp", "zero", "micro_batch", "recompute")
               for text in (f"--{name.replace('_', '-')}", str(layout[name]))]  # fmt: skip

    ran = planner("place", *SMALL, *options, "--json")

    assert ran.code == 0, ran.err
    placed = json.loads(ran.out)
    assert one["cut"]["objective_bytes"] == pytest.approx(placed["cut"]["objective_bytes"])
    if one["seating"] == "least-cut" and layout["sequence_parallel"]:
        assert one["step"]["total_s"] == pytest.approx(placed["step"]["total_s"])


@pytest.mark.parametrize(
    "question",
    [
        SMALL,
        ("--supernode", "24", "--gpus", "64", "--model", "llama-3.1-8b"),
        ("--supernode", "64", "--gpus", "128", "--model", "llama-3.1-70b"),
        ("--supernode", "8", "--gpus", "64", "--model", "mixtral-8x7b", "--tp", "2"),
    ],
)
def test_place_without_degrees_takes_what_search_lists_first(
    planner: Planner, question: tuple[str, ...]
) -> None:
    listed = documented(planner, *question, "--best", "3")["best"]

    ran = planner("place", *question, "--json")

    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["inputs"]["layout"] == listed[0]["layout"]
    fastest = min(listed, key=lambda one: float(one["step"]["total_s"]))
    assert fastest["tie_with_first"] or fastest is listed[0]


def test_the_same_search_says_the_same_but_for_the_time_it_took(planner: Planner) -> None:
    first, second = (documented(planner, *SMALL, "--best", "2") for _ in range(2))

    assert {**first, "wall_s": 0} == {**second, "wall_s": 0}


def test_a_way_to_run_that_nobody_but_search_tries_leads_where_it_is_surely_faster(
    planner: Planner,
) -> None:
    # Groups of 8 straddle supernodes of 5: what sequence parallelism sends costs most of the step.
    document = documented(planner, "--supernode", "5", "--gpus", "24", "--model", "llama-3.1-8b",
                          "--tp", "8", "--best", "2")  # fmt: skip

    first, _ = document["best"]
    least_s = min(point["step_s"] for point in document["pareto"])
    assert first["estimated_step_s"] == pytest.approx(least_s, rel=1e-9)
    assert (first["layout"]["dp"], first["layout"]["sequence_parallel"]) == (3, False)


def test_what_is_given_stays_and_the_rest_is_searched(planner: Planner) -> None:
    document = documented(planner, *SMALL, "--tp", "2", "--zero", "3", "--best", "3")

    assert {one["layout"]["tp"] for one in document["best"]} == {2}
    assert {one["layout"]["zero"] for one in document["best"]} == {3}
    assert document["inputs"]["layout"]["tp"] == 2


def test_the_page_names_the_winner_the_ties_and_what_fell_out(planner: Planner) -> None:
    ran = planner("search", *SMALL)

    assert ran.code == 0
    for part in ("Best of ", "The best, seated", "What tells them apart", "Pareto",
                 "does not fit in memory", "no money: no price list was given"):  # fmt: skip
        assert part in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_memory_has_its_margin_and_the_front_says_that_its_steps_are_estimates(
    planner: Planner, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    ran = planner("search", *SMALL, "--out", str(out))

    assert ran.code == 0, ran.err
    document = json.loads(out.read_text())
    first, *rest = document["best"]
    used = first["memory"]["worst_stage_bytes"] + first["memory"]["margin_bytes"]
    seated = ran.out.split("The best, seated")[1].split("What tells them")[0]
    assert f"{used / 1e9:.3g} GB" in seated
    for row in document["pareto"]:
        room = first["memory"]["capacity_bytes"] - row["memory_bytes"]
        assert row["head_room_bytes"] == pytest.approx(room)
        assert row["head_room_bytes"] >= 0
    front = " ".join(ran.out.split("Less memory for more time")[1].split())
    assert "estimated before seating" in front
    assert "as seated." in front
    fastest = min(one["step"]["total_s"] for one in rest)
    gain = 1.0 - fastest / first["step"]["total_s"]
    if gain > 1e-4:  # one figure above and in the table
        assert ran.out.count(f"{gain * 100:.3g} % faster") == 2


def test_the_front_is_written_as_csv_with_money_where_there_is_a_price(
    planner: Planner, tmp_path: Path
) -> None:
    prices, front = tmp_path / "prices.yaml", tmp_path / "front.csv"
    prices.write_text("currency: USD\ngpu_hour: {price: 2.0, source: quote, date: 2026-01-01}\n")

    ran = planner("search", *SMALL, "--best", "1", "--prices", str(prices), "--tokens", "1T",
                  "--csv", str(front), "--json")  # fmt: skip

    assert ran.code == 0, ran.err
    run = json.loads(ran.out)["best"][0]["run"]
    assert run["cost"] == pytest.approx(32 * 2.0 * run["days"] * 24)
    rows = list(csv.DictReader(front.read_text().splitlines()))
    steps = [float(row["step_s"]) for row in rows]
    memory = [float(row["memory_bytes"]) for row in rows]
    assert steps == sorted(steps)
    assert {row["timed"] for row in rows} == {"before seating"}
    assert memory == sorted(memory, reverse=True)
    assert [row["dp_shard"] for row in rows] == [row["dp"] for row in rows]  # none is hybrid
    tokens = 64 * 8192
    assert float(rows[0]["cost_per_million_tokens"]) == pytest.approx(
        32 * 2.0 / 3600 * steps[0] / tokens * 1e6, rel=1e-6
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--tp", "7", "--gpus", "32"), 2, "tp=7 does not divide"),
        (("--model", "nobody"), 2, "nobody"),
        (("--best", "0"), 2, "--best"),
        (("--tokens", "many"), 2, "--tokens: expected a number"),
        (("--prices", "no-such.yaml"), 2, "no-such.yaml"),
        (("--gpus", "8", "--model", "llama-3.1-405b"), 3, "too much"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    planner: Planner, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ran = planner("search", *arguments)

    assert ran.code == code
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert "--ignore-memory" not in ran.err
    assert ran.out == ""


def test_layouts_that_are_the_same_to_the_model_are_shown_as_one(planner: Planner) -> None:
    best = documented(planner, *SMALL, "--best", "6")["best"]

    figures = {
        (round(one["estimated_step_s"], 6), round(one["memory"]["worst_stage_bytes"]))
        for one in best
    }
    assert len(figures) == 6
    assert best[0]["break_even_price_share"] == 1
    for one in best:
        share = best[0]["step"]["total_s"] / one["step"]["total_s"]
        assert one["break_even_price_share"] == pytest.approx(share)


def test_only_layouts_that_meet_the_conditions_are_listed(planner: Planner) -> None:
    document = documented(planner, *SMALL, "--where", "tp * pp == 4", "--where",
                          "recompute == 'full'", "--best", "3")  # fmt: skip

    for one in (*document["best"], *document["pareto"]):
        assert one["layout"]["tp"] * one["layout"]["pp"] == 4
        assert one["layout"]["recompute"] == "full"
    assert document["inputs"]["where"] == ["tp * pp == 4", "recompute == 'full'"]
    assert document["layouts_rejected"]["the rule tp * pp == 4"] > 0


@pytest.mark.parametrize(
    ("condition", "code", "said"),
    [("tp <", 2, "is no condition"), ("tp == 7", 2, "the rule tp == 7"),
     ("pp ** 2 == 4", 2, "no place in a rule")],
)  # fmt: skip
def test_conditions_that_cannot_be_met_are_named(
    planner: Planner, condition: str, code: int, said: str
) -> None:
    ran = planner("search", *SMALL, "--where", condition)

    assert ran.code == code
    assert said in ran.err


def test_one_copy_a_domain_is_tried_where_experts_leave_their_supernode(planner: Planner) -> None:
    question = ("--gpus", "64", "--model", "mixtral-8x7b", "--ep", "8", "--tp", "1", "--zero", "1",
                "--where", "ep_copies == 'domain'", "--best", "1")  # fmt: skip

    inside = planner("search", "--supernode", "8", *question, "--where", "ep == 8 and etp == 1")
    across = documented(planner, "--supernode", "4", *question)

    assert inside.code == 2
    assert "nothing to act on" in inside.err
    assert across["best"][0]["layout"]["ep_copies"] == "domain"
