"""``planner compare`` as a user runs it: clusters, layouts, money."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cli.compare_sizes import Goal, sizes_of
from cli.planner_app import main
from cli.planner_inputs import Asked
from planner.procure.price_file import read_prices
from tests.conftest import Ran

Planner = Callable[..., Ran]
SCHEMA = Path(__file__).parents[2] / "cli" / "schemas" / "compare.json"
FEW = ("--cp", "1", "--zero", "1", "--micro-batch", "1", "--recompute", "selective", "--vpp", "1")
"""Held fast, so that little is searched."""
NARROW = ("--tp", "2", "--pp", "1")
MOE = ("--gpus", "64", "--model", "mixtral-8x7b")


def documented(planner: Planner, *arguments: str) -> dict[str, Any]:
    ran = planner("compare", *arguments, "--json")
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run of the command left: its page, its document, its table."""

    page: str
    document: dict[str, Any]
    table: list[dict[str, str]]


@pytest.fixture(scope="module")
def experts(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a comparison of a small model with experts, run once for all that ask about it."""
    folder, page = tmp_path_factory.mktemp("compare"), io.StringIO()
    out, table = folder / "out.json", folder / "table.csv"
    with contextlib.redirect_stdout(page), contextlib.redirect_stderr(io.StringIO()):
        code = main(["compare", "--gpus", "16", "--model", "mixtral-8x7b", "--supernode", "4",
                     "--supernode", "16", *FEW, "--global-batch", "128", "--out", str(out),
                     "--csv", str(table)])  # fmt: skip
    assert code == 0
    return Run(page=page.getvalue(), document=json.loads(out.read_text()),
               table=list(csv.DictReader(table.read_text().splitlines())))  # fmt: skip


def test_supernodes_are_ranked_with_what_falls_on_each_cut(experts: Run) -> None:
    document = experts.document

    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    ranked = document["ranked"]
    assert {one["supernode"] for one in ranked} == {4, 16}
    steps = [one["step"]["total_s"] for one in ranked]
    assert steps == sorted(steps)
    by_size = {one["supernode"]: one for one in ranked}
    assert by_size[16]["seated_bytes"] == 0
    assert by_size[4]["seated_bytes"] > 0
    assert by_size[16]["fastest"]["step_s"] <= by_size[4]["fastest"]["step_s"]
    for one in ranked:
        # what is taken ties with the fastest: within 2 %, and what placing it changes
        assert one["step"]["total_s"] <= 1.03 * one["fastest"]["step_s"]
        assert sum(one["crossed_bytes"].values()) == pytest.approx(one["seated_bytes"])


def test_a_table_has_the_shards_and_the_least_cut_beside_the_seats_of_the_step(
    experts: Run,
) -> None:
    for row, one in zip(experts.table, experts.document["ranked"], strict=True):
        assert int(row["dp_shard"]) == one["layout"]["dp"]
        assert float(row["least_cut_bytes"]) == one["cut"]["checked_bytes"]
        assert float(row["cut_bytes"]) == one["seated_bytes"] >= float(row["least_cut_bytes"])


def test_the_page_fits_eighty_columns_and_answers_the_questions(experts: Run) -> None:
    for part in ("Take generic-sn", "Ranked", "What falls on the cut", "Where the winner flips",
                 "They start from the fastest layout", "Where to spend", "What it is made of",
                 "zero: ZeRO stage", "No money: no price list"):  # fmt: skip
        assert part in experts.page
    assert max(map(len, experts.page.splitlines())) <= 80


def test_one_cluster_is_the_verdict_of_a_page(experts: Run) -> None:
    head = " ".join(experts.page.split("Ranked")[0].split())
    (taken,) = re.findall(r"Take (generic-sn\d+)", head)

    assert re.findall(r"(generic-sn\d+): a step takes", head) == [taken]
    assert "is first" not in head
    tied = {one["cluster"] for one in experts.document["ranked"] if one["tie_with_first"]}
    assert taken in tied
    for other in tied - {taken}:
        assert f"{other} (" in head.split("A tie with")[1]


def test_flips_are_told_by_what_changes(experts: Run) -> None:
    flips = experts.page.split("Where the winner flips")[1].split("Where to spend")[0]
    asked = {"winner": "The fastest cluster is no longer", "tie": "No longer a tie at the top",
             "layout": "The best layout on"}  # fmt: skip

    kinds = {one["kind"] for one in experts.document["flips"]}
    assert len(kinds) > 1
    for kind in kinds:
        words = flips.split(asked[kind])[1]
        for one in (flip for flip in experts.document["flips"] if flip["kind"] == kind):
            assert one["before"] in f"{asked[kind]} {words.splitlines()[0]}"
            assert one["after"] in words


def test_no_name_is_broken_over_lines_and_memory_is_that_of_the_document(experts: Run) -> None:
    document = experts.document
    cuts = experts.page.split("What falls on the cut")[1].split("Where the winner flips")[0]

    for one in (*document["ranked"], *document["moved"]):
        assert f"  {one['cluster']} " in cuts
        if one["seating"] == "rank-order":
            assert f"{one['cluster']}" in cuts.split("rank order for")[1]
    assert "least" in cuts.splitlines()[1]
    memory = document["ranked"][0]["memory"]
    used = memory["worst_stage_bytes"] + memory["margin_bytes"]
    assert f"{used / 1e9:.1f} GB" in experts.page.split("Ranked")[1].split("What falls")[0]


def test_experts_wider_than_a_supernode_cross_and_those_that_fit_do_not(
    planner: Planner, tmp_path: Path
) -> None:
    layout = tmp_path / "layout.yaml"
    layout.write_text("ep: 8\npp: 4\nmicro_batch: 1\nglobal_batch: 4096\nzero_stage: 1\n")

    document = documented(planner, *MOE, "--supernode", "4,8", "--layout", str(layout))

    crossed = {one["supernode"]: one["crossed_bytes"] for one in document["ranked"]}
    assert crossed[4]["ep"] > 0
    assert crossed[8]["ep"] == 0
    assert crossed[8]["dp"] > 0


def test_given_layouts_are_compared_on_every_cluster(planner: Planner, tmp_path: Path) -> None:
    wide, deep = tmp_path / "wide.yaml", tmp_path / "deep.yaml"
    wide.write_text("tp: 8\npp: 1\n")
    deep.write_text("tp: 2\npp: 4\n")
    table = tmp_path / "table.csv"

    document = documented(
        planner, "--gpus", "32", "--model", "llama-3.1-8b", "--supernode", "4,8", "--layout",
        str(wide), "--layout", str(deep), "--csv", str(table),
    )  # fmt: skip

    found = {(one["supernode"], one["label"]): one for one in document["ranked"]}
    assert set(found) == {(4, "wide"), (4, "deep"), (8, "wide"), (8, "deep")}
    assert found[4, "wide"]["crossed_bytes"]["tp"] > 0
    assert found[8, "wide"]["crossed_bytes"]["tp"] == 0
    assert found[4, "deep"]["layout"]["pp"] == 4
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["label"] for row in rows] == [one["label"] for one in document["ranked"]]


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


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--cluster", "nope", "--cluster", "nada"), 2, ("nope", "nada")),
        (("--supernode", "8,x"), 2, ("8,64,384",)),
        (("--supernode", "8,16", "--gpus", "16", "--model", "llama-3.1-405b"), 3,
         ("generic-sn8, generic-sn16: ", "too much")),
        (("one.json",), 2, ("two plans",)),
        (("--equal", "money"), 2, ("--prices",)),
        (("--equal", "power"), 2, ("nobody said what these draw", "leaf")),
        (("--equal", "power", "--cluster", "hgx-h100", "--cluster", "cloudmatrix384", "--model",
          "llama-3.1-8b"), 2, ("hgx-h100: nobody", "cloudmatrix384: nobody", "Ascend-910C, nic")),
        (("--days", "30"), 2, ("--tokens",)),
        (("--days", "0", "--tokens", "1T"), 2, ("above 0",)),
        (("--goodput", "1.2"), 2, ("at most 1",)),
        (("--goodput", "nan"), 2, ("at most 1",)),
        (("--budget", "1M"), 2, ("--equal money",)),
        (("--days", "30", "--tokens", "1T", "--gpus", "64"), 2, ("--gpus",)),
        (("--supernode", "8", "--model", "llama-3.1-405b", "--tokens", "1e19", "--days", "1"), 3,
         ("no size up to 131,072 GPUs",)),
    ],
)  # fmt: skip
def test_all_that_is_wrong_is_said_at_once(
    planner: Planner, arguments: tuple[str, ...], code: int, said: tuple[str, ...]
) -> None:
    ran = planner("compare", *arguments)

    assert ran.code == code
    assert all(part in ran.err for part in said), ran.err
    assert "Traceback" not in ran.err


def test_clusters_of_the_catalogue_are_compared_at_the_same_gpus(
    planner: Planner, tmp_path: Path
) -> None:
    layout = tmp_path / "layout.yaml"
    layout.write_text("tp: 4\nzero_stage: 1\nglobal_batch: 1152\n")

    document = documented(
        planner, "--cluster", "hgx-h100", "--cluster", "gb200-nvl72", "--gpus", "144", "--model",
        "llama-3.1-8b", "--layout", str(layout),
    )  # fmt: skip

    ranked = document["ranked"]
    assert [one["cluster"] for one in ranked] == ["gb200-nvl72", "hgx-h100"]
    for one in ranked:
        layout = one["layout"]
        assert layout["tp"] * layout["cp"] * layout["dp"] * layout["pp"] == 144
        assert one["seated_bytes"] > 0
    assert document["bills"]["hgx-h100"]["total"] is None
    assert {line["item"] for line in document["bills"]["gb200-nvl72"]["lines"]} >= {"GB200", "nic"}
