"""``planner compare`` at equal money, power or work: how large each cluster becomes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from cli.compare_sizes import Goal, sizes_of
from cli.planner_inputs import Asked, read_inputs
from planner.procure.price_file import read_prices
from tests.cli.test_compare import FEW, NARROW, SCHEMA, documented
from tests.conftest import Ran

Planner = Callable[..., Ran]

KINDS = """
currency: USD
gpu_hour:
  H100-SXM: {price: 2.0, source: quote, date: 2026-01-01}
  B200-SXM: {price: 4.0, source: quote, date: 2026-01-01}
"""


def test_at_equal_rent_the_dearer_gpu_comes_in_smaller_numbers(
    planner: Planner, tmp_path: Path
) -> None:
    prices = tmp_path / "kinds.yaml"
    prices.write_text(KINDS)

    document = documented(
        planner, "--cluster", "hgx-h100", "--cluster", "hgx-b200", "--gpus", "64", "--model",
        "llama-3.1-8b", "--equal", "money", "--prices", str(prices), "--tokens", "1T",
        *FEW, *NARROW,
    )  # fmt: skip

    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    gpus = {one["cluster"]: one["gpus"] for one in document["ranked"]}
    assert gpus == {"hgx-h100": 64, "hgx-b200": 32}
    sizes = document["inputs"]["sizes"]
    assert (sizes["budget"], sizes["basis"]) == (128.0, "rent per hour")
    assert sizes["spent"] == [128.0, 128.0]
    rates = [one["step"]["tokens_per_s"] for one in document["ranked"]]
    assert rates == sorted(rates, reverse=True)
    assert document["cheapest"] == document["ranked"][0]["cluster"]
    for one in document["ranked"]:
        assert one["run"]["cost"] == pytest.approx(128.0 * one["run"]["days"] * 24)
    ranked = document["ranked"]
    for flip in document["flips"]:
        if flip["kind"] == "cheapest":
            ratio = ranked[0]["step"]["tokens_per_s"] / ranked[1]["step"]["tokens_per_s"]
            # At equal rent the balance is where one costs as much more as it trains more.
            assert max(flip["factor"], 1 / flip["factor"]) == pytest.approx(ratio, rel=2e-3)


def test_within_so_many_watts_each_cluster_has_as_many_supernodes_as_they_feed(
    planner: Planner, tmp_path: Path
) -> None:
    prices, table = tmp_path / "parts.yaml", tmp_path / "table.csv"
    parts = {"H100-SXM": 700, "nic": 30, "scale_up_switch": 0.5, "leaf": 1000, "spine": 1000}
    prices.write_text(
        "currency: USD\noverhead: 1.5\nitems:\n"
        + "".join(f"  {name}: {{price: 1, power: {watts} W, source: s, date: 2026-01-01}}\n"
                  for name, watts in parts.items())
    )  # fmt: skip

    document = documented(
        planner, "--supernode", "8,16", "--model", "llama-3.1-8b", "--equal", "power", "--budget",
        "50 kW", "--prices", str(prices), "--csv", str(table), *FEW, *NARROW,
    )  # fmt: skip

    # 32 GPUs: 32 x 730.25 W and one leaf, 1.5 times that is 36.6 kW; 40 of them are 45.3 kW.
    watts = {gpus: 1.5 * (gpus * (730 + 0.5 * 4 / 8) + 1000) for gpus in (32, 40, 48)}
    assert watts[40] < 50e3 < watts[48]
    by_size = {one["supernode"]: one for one in document["ranked"]}
    assert by_size[8]["gpus"] == 40
    assert by_size[16]["gpus"] == 32
    assert document["inputs"]["sizes"]["spent"][0] == pytest.approx(watts[40])
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {row["gpus"] for row in rows} == {"40", "32"}
    assert {row["cluster"] for row in rows if row["on_front"] == "True"} == set(document["pareto"])


PARTS = """
currency: EUR
years: 4
kwh: {price: 0.12, source: s, date: 2026-01-01}
items:
  H100-SXM: {price: 30000, source: s, date: 2026-01-01}
  nic: {price: 1500, power: 25 W, source: s, date: 2026-01-01}
  scale_up_switch: {price: 8000, power: 300 W, source: s, date: 2026-01-01}
  leaf: {price: 40000, power: 1.5 kW, source: s, date: 2026-01-01}
  spine: {price: 40000, power: 1.5 kW, source: s, date: 2026-01-01}
  nic-leaf: {price: 800, source: s, date: 2026-01-01}
  leaf-spine: {price: 1200, source: s, date: 2026-01-01}
"""


@pytest.mark.nightly  # at equal rent the balance is held against the rates in every run
def test_both_sides_of_a_flip_of_a_price_are_what_a_comparison_at_that_price_finds(
    planner: Planner, tmp_path: Path
) -> None:
    prices = tmp_path / "kinds.yaml"
    prices.write_text(KINDS)
    asked = ("--cluster", "hgx-h100", "--cluster", "hgx-b200", "--gpus", "32", "--model",
             "llama-3.1-8b", "--prices", str(prices), *FEW, *NARROW)  # fmt: skip

    found = documented(planner, *asked)["flips"]

    flips = [one for one in found if one["kind"] == "cheapest"]
    assert {one["property"] for one in flips} == {
        "price gpu_hour H100-SXM", "price gpu_hour B200-SXM",
    }  # fmt: skip
    for flip in flips:
        kind = flip["property"].split()[-1]
        now = {"H100-SXM": "2.0", "B200-SXM": "4.0"}[kind]
        for value, said in ((flip["value"] / flip["factor"], flip["before"]),
                            (flip["value"], flip["after"])):  # fmt: skip
            line = f"{kind}: {{price: "
            prices.write_text(KINDS.replace(f"{line}{now}", f"{line}{value!r}"))
            assert documented(planner, *asked)["cheapest"] == said, flip


def test_what_of_the_money_is_unspent_is_said_and_unlike_jobs_compare_by_tokens_a_second(
    planner: Planner, tmp_path: Path
) -> None:
    prices, out = tmp_path / "parts.yaml", tmp_path / "out.json"
    prices.write_text(PARTS)

    ran = planner(
        "compare", "--supernode", "8", "--supernode", "64", "--model", "llama-3.1-8b", "--equal",
        "money", "--budget", "3.5M", "--prices", str(prices), "--tokens", "1T", "--out", str(out),
        *FEW, *NARROW,
    )  # fmt: skip

    assert ran.code == 0, ran.err
    document = json.loads(out.read_text())
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    first, second = document["ranked"]
    assert first["gpus"] != second["gpus"]
    assert first["step"]["tokens_per_s"] > second["step"]["tokens_per_s"]
    sizes = document["inputs"]["sizes"]
    head, page = ran.out.split("Ranked", 1)
    said = " ".join(head.split())
    assert f"{second['gpus']} to {first['gpus']} GPUs" in said
    left = 3.5e6 - min(sizes["spent"])
    assert left > 0.1 * 3.5e6
    assert f"({left / 3.5e6 * 100:.3g} %) unspent" in said
    assert "unspent: the 64 GPUs of a whole supernode cost more than that" in said
    assert "slower" not in page.split("What falls on the cut")[0]
    fewer = 1.0 - second["step"]["tokens_per_s"] / first["step"]["tokens_per_s"]
    assert f"{fewer * 100:.3g} %" in page
    for one in (first, second):  # sequences and tokens a second of every row
        assert f"{one['layout']['global_batch']:,}" in page
        assert f"{one['step']['tokens_per_s'] / 1e3:,.4g} k" in page
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "memory\n" in page  # the last column is whole
    words = " ".join(page.split())
    assert "Power is without: server, supernode; nobody gave it." in words
    assert "Not in the purchase, for want of a price in the list: server, supernode." in words


def test_money_left_over_buys_a_part_of_a_supernode(tmp_path: Path) -> None:
    prices = tmp_path / "parts.yaml"
    prices.write_text(PARTS)
    goal = Goal(equal="money", budget="3.5M", prices=read_prices(prices))

    sized = sizes_of([Asked(supernode=48, gpus=48, model="llama-3.1-8b")], goal).each[0]

    # A GPU with its share is about 40,000: 87 of them, of which 48 + 32 are whole parts of 16.
    assert sized.gpus in (64, 80)
    assert sized.spent is not None
    assert 64 * 38e3 < sized.spent <= 3.5e6


def test_as_many_gpus_as_do_the_run_in_time_and_not_an_eighth_fewer(planner: Planner) -> None:
    document = documented(
        planner, "--supernode", "8,16", "--model", "llama-3.1-8b", "--tokens", "500B", "--days",
        "30", *FEW, *NARROW,
    )  # fmt: skip

    for one in document["ranked"]:
        fewer = one["gpus"] - max(one["supernode"], one["gpus"] // 8)
        assert one["run"]["days"] <= 30 < one["run"]["days"] * one["gpus"] / fewer * 1.02
    gpus = [one["gpus"] for one in document["ranked"]]
    assert gpus == sorted(gpus)


def test_a_run_takes_no_more_whole_supernodes_than_one_of_another_number_does() -> None:
    """234 supernodes of 8 do it in 89.41 days: by asking with --gpus 1872 --tokens 15T."""
    asked = Asked(supernode=8, gpus=8, model="deepseek-v3")

    sized = sizes_of([asked], Goal(equal="run", tokens=15e12, days=90)).each[0]

    assert sized.gpus <= 1_872
    assert sized.gpus % 8 == 0
    assert sized.all_tried is False
    inputs = read_inputs(replace(asked, gpus=sized.gpus))  # the layout that is shown does it, too
    tokens_per_s = inputs.layout.global_batch * inputs.layout.seq / inputs.choice.seated_s
    assert 15e12 / tokens_per_s / 86_400 <= 90


def test_a_run_says_how_rows_stand_and_which_sizes_were_tried(
    planner: Planner, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    ran = planner("compare", "--supernode", "4,16", "--model", "llama-3.1-8b", "--tokens", "600B",
                  "--days", "30", "--out", str(out), *FEW, *NARROW)  # fmt: skip

    assert ran.code == 0, ran.err
    document = json.loads(out.read_text())
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    page = " ".join(ran.out.split())
    assert "rows: fewest GPUs first; vs first: tokens a second more (+) or fewer (-)" in page
    first, second = (one["step"]["tokens_per_s"] for one in document["ranked"])
    more = 100 * (second / first - 1)
    assert f" {more:+.3g} % " in page
    all_tried = document["inputs"]["sizes"]["all_tried"]
    assert ("of the sizes tried: others" in page) == (not all(all_tried))


def test_time_lost_to_faults_takes_days_and_money_in_proportion(
    planner: Planner, tmp_path: Path
) -> None:
    prices = tmp_path / "kinds.yaml"
    prices.write_text(KINDS)
    layout = tmp_path / "layout.yaml"
    layout.write_text("tp: 2\nzero_stage: 1\n")
    question = ("--supernode", "8", "--gpus", "16", "--model", "llama-3.1-8b", "--tokens", "1T",
                "--prices", str(prices), "--layout", str(layout))  # fmt: skip

    whole = documented(planner, *question)["ranked"][0]["run"]
    lossy = documented(planner, *question, "--goodput", "0.8")["ranked"][0]["run"]

    assert lossy["days"] == pytest.approx(whole["days"] / 0.8)
    assert lossy["cost"] == pytest.approx(whole["cost"] / 0.8)
    assert lossy["energy_j"] == pytest.approx(whole["energy_j"] / 0.8)
