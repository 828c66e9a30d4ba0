"""``planner compare a.json b.json``: what changed between two plans, and what is no plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
SCHEMA = Path(__file__).parents[2] / "cli" / "schemas" / "compare.json"
PLANS_SCHEMA = SCHEMA.with_name("compare-plans.json")
MOE = ("--gpus", "64", "--model", "mixtral-8x7b")


KINDS = """
currency: USD
gpu_hour:
  H100-SXM: {price: 2.0, source: quote, date: 2026-01-01}
  B200-SXM: {price: 4.0, source: quote, date: 2026-01-01}
"""


def plan(planner: Planner, path: Path, *arguments: str) -> Path:
    ran = planner("place", "--gpus", "32", "--model", "llama-3.1-8b", "--global-batch", "64",
                  *arguments, "--out", str(path))  # fmt: skip
    assert ran.code == 0, ran.err
    return path


def test_two_plans_differ_by_what_was_changed(planner: Planner, tmp_path: Path) -> None:
    one = plan(planner, tmp_path / "a.json", "--supernode", "8", "--tp", "8", "--pp", "1")
    two = plan(planner, tmp_path / "b.json", "--supernode", "8", "--tp", "4", "--pp", "1")

    ran = planner("compare", str(one), str(two), "--json")

    assert ran.code == 0, ran.err
    diff = json.loads(ran.out)
    before, after = (json.loads(path.read_text()) for path in (one, two))
    assert diff["changed_layout"]["tp"] == {"before": 8, "after": 4}
    assert not diff["same"]
    figures = {figure["name"]: figure for figure in diff["figures"]}
    assert figures["cut.objective_bytes"]["change"] == pytest.approx(
        after["cut"]["objective_bytes"] - before["cut"]["objective_bytes"]
    )
    assert figures["step.total_s"]["change"] == pytest.approx(
        after["step"]["total_s"] - before["step"]["total_s"]
    )
    page = planner("compare", str(one), str(two)).out
    assert "~ tp: 8 -> 4" in page
    assert max(map(len, page.splitlines())) <= max(80, len(f"From {one} to {two}"))


def test_a_faster_plan_costs_less_a_token_and_the_same_to_buy(
    planner: Planner, tmp_path: Path
) -> None:
    one = plan(planner, tmp_path / "a.json", "--supernode", "8", "--tp", "8", "--pp", "1")
    two = plan(planner, tmp_path / "b.json", "--supernode", "8", "--tp", "1", "--pp", "1")
    prices = tmp_path / "prices.yaml"
    prices.write_text(KINDS)

    ran = planner("compare", str(one), str(two), "--prices", str(prices), "--json")

    assert ran.code == 0, ran.err
    diff = json.loads(ran.out)
    jsonschema.validate(diff, json.loads((SCHEMA.parent / "compare-plans.json").read_text()))
    money = {figure["name"]: figure for figure in diff["money"]}
    rates = [json.loads(path.read_text())["step"]["tokens_per_s"] for path in (one, two)]
    costs = [32 * 2.0 / 3600 / rate * 1e6 for rate in rates]
    assert money["cost_per_million_tokens"]["before"] == pytest.approx(costs[0])
    assert money["cost_per_million_tokens"]["after"] == pytest.approx(costs[1])
    assert diff["why_no_money"] == []
    page = planner("compare", str(one), str(two), "--prices", str(prices)).out
    assert "Money (USD)" in page


def test_a_price_of_servers_that_an_old_plan_does_not_count_is_told(
    planner: Planner, tmp_path: Path
) -> None:
    new = plan(planner, tmp_path / "new.json", "--supernode", "8", "--tp", "8", "--pp", "1")
    old = plan(planner, tmp_path / "old.json", "--supernode", "8", "--tp", "1", "--pp", "1")
    document = json.loads(old.read_text())
    document["bill"]["lines"] = [
        line for line in document["bill"]["lines"] if line["item"] != "server"
    ]
    old.write_text(json.dumps(document))
    prices = tmp_path / "prices.yaml"
    prices.write_text("currency: USD\nitems:\n  server: {price: 5, source: s, date: 2026-01-01}\n")

    page = planner("compare", str(old), str(new), "--prices", str(prices)).out

    words = " ".join(page.split())
    assert "the servers of the first plan: its file counts none; place it again" in words
    assert "the servers of the second plan" not in words


def test_a_plan_does_not_differ_from_itself(planner: Planner, tmp_path: Path) -> None:
    one = plan(planner, tmp_path / "a.json", "--supernode", "8", "--tp", "8")

    ran = planner("compare", str(one), str(one))

    assert ran.code == 0
    assert ran.out.startswith("No change")


def test_swapped_ranks_are_counted_as_moved_and_regrouped(planner: Planner, tmp_path: Path) -> None:
    one = plan(planner, tmp_path / "a.json", "--supernode", "8", "--tp", "8")
    document = json.loads(one.read_text())
    seats, domains = document["placement"]["rank_to_gpu"], document["placement"]["domains"]
    home = {rank: domain for domain in domains for rank in domain["ranks"]}
    a, b = 0, next(rank for rank in home if home[rank] is not home[0])
    seats[a], seats[b] = seats[b], seats[a]
    home[a]["ranks"][home[a]["ranks"].index(a)] = b
    home[b]["ranks"][home[b]["ranks"].index(b)] = a
    two = tmp_path / "b.json"
    two.write_text(json.dumps(document))

    diff = json.loads(planner("compare", str(one), str(two), "--json").out)

    assert diff["moved_ranks"] == 2
    assert diff["regrouped_ranks"] == 16
    jsonschema.validate(diff, json.loads(PLANS_SCHEMA.read_text()))
    seated = {one["digit"]: one for one in diff["groups"]}
    # two TP groups of 8 had a supernode each; now each has one rank in the other's
    assert seated["tp"]["moved_groups"] == 2
    assert seated["tp"]["before"] == {"groups": 4, "group_size": 8, "min_domains": 1,
                                      "max_domains": 1}  # fmt: skip
    assert seated["tp"]["after"]["max_domains"] == 2
    said = planner("compare", str(one), str(two)).out
    assert "~ TP: 2 moved of 4 groups of 8, each in 1 supernode -> 4 groups of 8" in said


def test_other_degrees_are_other_groups_and_more_ranks_are_told(
    planner: Planner, tmp_path: Path
) -> None:
    few = plan(planner, tmp_path / "a.json", "--supernode", "8", "--tp", "8", "--pp", "1")
    many = plan(planner, tmp_path / "b.json", "--supernode", "8", "--tp", "4", "--pp", "1",
                "--gpus", "64")  # fmt: skip

    diff = json.loads(planner("compare", str(few), str(many), "--json").out)
    back = json.loads(planner("compare", str(many), str(few), "--json").out)

    assert (diff["ranks"], diff["new_ranks"], diff["gone_ranks"]) == (32, 32, 0)
    assert (back["ranks"], back["new_ranks"], back["gone_ranks"]) == (32, 0, 32)
    (tp,) = (one for one in diff["groups"] if one["digit"] == "tp")
    assert tp["moved_groups"] is None
    assert (tp["before"]["groups"], tp["before"]["group_size"]) == (4, 8)
    assert (tp["after"]["groups"], tp["after"]["group_size"]) == (16, 4)
    assert not any(one["digit"] == "edp" for one in diff["groups"])  # no experts


@pytest.mark.parametrize(
    "beside",
    [("--gpus", "16"), ("--tokens", "1T"), ("--days", "3"), ("--model", "llama-3.1-8b"),
     ("--seed", "1"), ("--equal", "power"), ("--tp", "2"), ("--csv", "a.csv")],
)  # fmt: skip
def test_what_two_plans_have_no_use_for_is_refused(
    planner: Planner, tmp_path: Path, beside: tuple[str, str]
) -> None:
    ran = planner("compare", str(tmp_path / "a.json"), str(tmp_path / "b.json"), *beside)

    assert ran.code == 2
    assert f"{beside[0]}: two plans are compared as they are" in ran.err


def test_a_layout_that_cannot_be_is_refused(planner: Planner, tmp_path: Path) -> None:
    one = plan(planner, tmp_path / "a.json", "--supernode", "8", "--tp", "8")
    forged = json.loads(one.read_text())
    two = tmp_path / "b.json"

    for broken in ({"tp": 16}, {"tp": 0}, {"dp": "x"}, {"order": 3}, {"tp": 1e9}):
        document = json.loads(one.read_text())
        document["inputs"]["layout"] = {**forged["inputs"]["layout"], **broken}
        two.write_text(json.dumps(document))
        ran = planner("compare", str(one), str(two))
        assert ran.code == 2, (broken, ran.err)
        assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"schema": "planner.search/1"}', '{"schema": "planner.place/1"}',
     '{"schema": "planner.place/1", "inputs": 1, "placement": [], "cut": {}, "step": {}}'],
)  # fmt: skip
def test_what_is_no_plan_is_refused_with_its_name(
    planner: Planner, tmp_path: Path, text: str
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(text)

    ran = planner("compare", str(bad), str(tmp_path / "missing.json"))

    assert ran.code == 2
    assert "bad.json" in ran.err
    assert "missing.json" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("number", "said"),
    [("NaN", "is no JSON"), ("-Infinity", "is no JSON"), ("1e999", "is no JSON")],
)
def test_a_figure_that_is_no_number_is_refused(
    planner: Planner, tmp_path: Path, number: str, said: str
) -> None:
    one = plan(planner, tmp_path / "a.json", "--supernode", "8", "--tp", "8")
    document = json.loads(one.read_text())
    document["step"]["compute_s"] = "here"
    two = tmp_path / "b.json"
    two.write_text(json.dumps(document).replace('"here"', number))

    ran = planner("compare", str(one), str(two), "--json")

    assert ran.code == 2, ran.err
    assert said in ran.err


def test_two_ranks_on_one_gpu_are_no_plan(planner: Planner, tmp_path: Path) -> None:
    one = plan(planner, tmp_path / "a.json", "--supernode", "8", "--tp", "8")
    document = json.loads(one.read_text())
    document["placement"]["rank_to_gpu"][0] = document["placement"]["rank_to_gpu"][5]
    two = tmp_path / "b.json"
    two.write_text(json.dumps(document))

    ran = planner("compare", str(one), str(two))

    assert ran.code == 2
    forged = json.loads(one.read_text())
    forged["step"]["total_s"] = 10**400
    two.write_text(json.dumps(forged))
    assert "step.total_s is no number" in planner("compare", str(one), str(two)).err
    assert f"has GPU {document['placement']['rank_to_gpu'][5]} for several ranks" in ran.err
