"""``planner compare`` under a user's rules, and at equal power."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from cli.compare_sizes import Goal, sizes_of
from cli.planner_inputs import Asked
from planner.procure.price_file import read_prices
from tests.cli.test_compare import FEW, MOE, NARROW, SCHEMA, documented
from tests.conftest import Ran

Planner = Callable[..., Ran]


def test_a_rule_holds_for_every_layout_of_a_comparison(planner: Planner) -> None:
    found = documented(
        planner, "--gpus", "32", "--model", "mixtral-8x7b", "--supernode", "8,32", "--cp", "1",
        "--micro-batch", "1", "--where", "tp * pp == 8", "--where", "zero == 1",
    )  # fmt: skip

    jsonschema.validate(found, json.loads(SCHEMA.read_text()))
    assert found["inputs"]["where"] == ["tp * pp == 8", "zero == 1"]
    for one in (*found["ranked"], *found["moved"]):
        assert one["layout"]["tp"] * one["layout"]["pp"] == 8
        assert one["layout"]["zero"] == 1
    for flip in found["flips"]:
        if flip["kind"] == "layout":
            for text in (flip["before"], flip["after"]):
                degrees = dict(re.findall(r"([a-z]+)(\d+)", text))
                fits = text == "nothing fits"
                assert fits or int(degrees.get("tp", 1)) * int(degrees.get("pp", 1)) == 8, flip


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("tpp <= 8", "'tpp' is no field of a layout"),
        ("tp <= ", "is no condition"),
        ("tp", "is a number, not a condition"),
        ("__import__('os')", "has no place in a rule"),
    ],
)
@pytest.mark.parametrize("command", ["compare", "search", "sweep"])
def test_a_rule_that_says_nothing_is_refused(
    planner: Planner, tmp_path: Path, command: str, condition: str, said: str
) -> None:
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text("gpus: [8]\n")
    asked = {
        "compare": ("compare",), "search": ("search",),
        "sweep": ("search", "--sweep", str(sweep), "--into", str(tmp_path / "a.sqlite")),
    }[command]  # fmt: skip

    ran = planner(*asked, "--where", condition)

    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "a.sqlite").exists()


def test_a_rule_that_no_layout_meets_is_named(planner: Planner) -> None:
    ran = planner("compare", *MOE, "--supernode", "8,32", "--where", "tp > 64")

    assert ran.code == 2
    assert "the rule tp > 64" in ran.err


def test_at_equal_power_tokens_a_second_rank_and_tokens_a_joule_are_said(
    planner: Planner, tmp_path: Path
) -> None:
    """Watts of two hosts by hand: 16 x 700 + 16 NICs x 25 + 8 switches x 1000 + 1 leaf x 1000.

    A third host would be 30.9 kW: within 25 kW there are two, in supernodes of 16 as many GPUs.
    """
    prices = tmp_path / "prices.yaml"
    draws = {"H100-SXM": 700, "nic": 25, "scale_up_switch": 1000, "leaf": 1000, "spine": 1000}
    prices.write_text("currency: USD\nitems:\n" + "".join(
        f"  {item}: {{price: 0, power: {power} W, source: s, date: 2026-01-01}}\n"
        for item, power in draws.items()
    ))  # fmt: skip
    asked = ("compare", "--supernode", "8,16", "--model", "llama-3.1-8b", "--equal", "power",
             "--budget", "25 kW", "--prices", str(prices), *FEW, *NARROW)  # fmt: skip

    found = documented(planner, *asked[1:])
    page = planner(*asked).out

    hosts = 16 * 700 + 16 * 25 + 8 * 1000 + 1000
    runs = {one["cluster"]: one for one in found["ranked"]}
    assert runs["generic-sn8"]["gpus"] == 16
    assert runs["generic-sn8"]["run"]["power_w"] == hosts
    for one in found["ranked"]:
        per_s, run = one["step"]["tokens_per_s"], one["run"]
        assert run["tokens_per_j"] == pytest.approx(per_s / run["power_w"])
        assert f"{one['cluster']} {run['tokens_per_j']:,.4g}" in " ".join(page.split())
    rates = [one["step"]["tokens_per_s"] for one in found["ranked"]]
    assert rates == sorted(rates, reverse=True)
    most = max(found["ranked"], key=lambda one: one["run"]["tokens_per_j"])["cluster"]
    first = found["ranked"][0]["cluster"]
    said = "also trains most" if most == first else f"but {most}"
    assert f"{said} for each joule" in " ".join(page.split())


def prices_of(tmp_path: Path, text: str) -> str:
    path = tmp_path / "prices.yaml"
    path.write_text(f"currency: USD\n{text}\n")
    return str(path)


RENT = "gpu_hour: {{price: {price}, source: s, date: 2026-01-01}}"


def test_what_costs_nothing_no_budget_bounds(planner: Planner, tmp_path: Path) -> None:
    ran = planner("compare", "--supernode", "8", "--model", "llama-3.1-8b", "--equal", "money",
                  "--prices", prices_of(tmp_path, RENT.format(price=0)))  # fmt: skip

    assert ran.code == 2
    assert "generic-sn8 costs nothing at these prices" in ran.err


@pytest.mark.parametrize("budget", ["0 MW", "1e40 MW", "5"])
def test_a_power_that_cannot_be_is_refused(planner: Planner, tmp_path: Path, budget: str) -> None:
    items = "".join(
        f"\n  {item}: {{price: 0, power: 1 W, source: s, date: 2026-01-01}}"
        for item in ("H100-SXM", "nic", "scale_up_switch", "leaf", "spine")
    )
    prices = prices_of(tmp_path, f"items:{items}")

    ran = planner("compare", "--supernode", "8", "--model", "llama-3.1-8b", "--equal", "power",
                  "--budget", budget, "--prices", prices)  # fmt: skip

    assert ran.code == 2
    assert budget in ran.err


@pytest.mark.parametrize("most", [1_024, pytest.param(131_072, marks=pytest.mark.nightly)])
def test_a_budget_without_end_says_where_it_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("cli.compare_sizes.MOST_GPUS", most)
    prices = read_prices(prices_of(tmp_path, RENT.format(price=2)))
    layout = {"cp": 1, "tp": 2, "pp": 1, "zero_stage": 1, "global_batch": 131_072}

    sizes = sizes_of([Asked(supernode=8, model="llama-3.1-8b", layout=layout)],
                     Goal(equal="money", budget="900B", prices=prices))  # fmt: skip

    assert sizes.each[0].why_unspent == f"no more than {most:,} GPUs are looked at"


def test_a_run_in_so_many_days_says_who_does_it_for_the_money(
    planner: Planner, tmp_path: Path
) -> None:
    rents = "gpu_hour: {price: 2, source: s, date: 2026-01-01}"
    asked = ("--supernode", "8,16", "--model", "llama-3.1-8b", "--tokens", "500B", "--days", "30",
             "--prices", prices_of(tmp_path, rents), *FEW, *NARROW)  # fmt: skip
    free = documented(planner, *asked)["ranked"]
    costs = sorted((one["run"]["cost"], one["cluster"]) for one in free)
    (low, _), (high, _) = costs
    assert low < high

    def page(budget: float) -> str:
        return " ".join(planner("compare", *asked, "--budget", f"{budget:.0f}").out.split())

    assert "by none of them" in page(low / 2)
    between = page((low + high) / 2)
    assert f"by {costs[0][1]} (" in between
    assert f"not by {costs[1][1]} (" in between
    assert "not by" not in page(high * 2)
    sizes = documented(planner, *asked, "--budget", "1M")["inputs"]["sizes"]
    assert (sizes["budget"], sizes["basis"]) == (1e6, "cost of the run")


def test_a_runs_budget_needs_prices(planner: Planner) -> None:
    ran = planner("compare", "--model", "llama-3.1-8b", "--tokens", "1T", "--days", "30",
                  "--budget", "30M")  # fmt: skip

    assert ran.code == 2
    assert "needs --prices" in ran.err


@pytest.mark.parametrize(
    ("budget", "said"),
    [("30", "the budget of 30 EUR buys 0 supernodes; one costs"), ("10q", "--budget: expected")],
)
def test_a_budget_too_small_is_said_in_its_currency(
    planner: Planner, tmp_path: Path, budget: str, said: str
) -> None:
    line = "{price: 30000, source: s, date: 2026-01-01}"
    items = ("H100-SXM", "nic", "scale_up_switch", "leaf", "spine", "nic-leaf", "leaf-spine")
    prices = tmp_path / "prices.yaml"
    prices.write_text("currency: EUR\nitems:\n" + "".join(f"  {one}: {line}\n" for one in items))

    ran = planner("compare", "--supernode", "8", "--model", "llama-3.1-8b", "--equal", "money",
                  "--budget", budget, "--prices", str(prices))  # fmt: skip

    assert ran.code in {2, 3}
    assert said in ran.err
    assert ran.err.count("EUR") == (2 if budget == "30" else 0)


def test_prices_that_nothing_is_counted_with_are_named(planner: Planner, tmp_path: Path) -> None:
    line = "{price: 3, source: s, date: 2026-01-01}"
    names = ("niks", "servers", "server", "GB200", "spine-core", "nic", "leaf")
    prices = tmp_path / "prices.yaml"
    prices.write_text("currency: EUR\nitems:\n" + "".join(f"  {one}: {line}\n" for one in names))

    ran = planner("search", "--supernode", "8", "--gpus", "16", "--model", "llama-3.1-8b", "--tp",
                  "8", "--prices", str(prices))  # fmt: skip

    assert ran.code == 0, ran.err
    told = re.findall(r"--prices: '(.*?)' under items is not used", ran.err)
    assert told == ["niks", "servers"]
    assert "not everywhere is it known how many servers there are" not in ran.err


def test_servers_that_a_plan_does_not_count_are_noted_where_the_list_prices_them(
    planner: Planner, tmp_path: Path
) -> None:
    plan, prices = tmp_path / "plan.json", tmp_path / "prices.yaml"
    asked = ("place", "--supernode", "8", "--gpus", "16", "--model", "llama-3.1-8b", "--tp", "8")
    assert planner(*asked, "--out", str(plan)).code == 0
    document = json.loads(plan.read_text())
    document["bill"]["lines"] = [
        line for line in document["bill"]["lines"] if line["item"] != "server"
    ]
    plan.write_text(json.dumps(document))
    line = "{price: 3, source: s, date: 2026-01-01}"
    prices.write_text(f"currency: EUR\nitems:\n  server: {line}\n")

    ran = planner("report", str(plan), "--prices", str(prices))

    assert ran.code == 0, ran.err
    assert "not everywhere is it known how many servers there are" in ran.err
    assert "The price of a server is not used where a plan" in ran.out
