"""``planner compare`` as a user runs it: clusters, layouts, and what is refused."""

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

from cli.planner_app import main
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
    steps = [one["fastest"]["step_s"] for one in ranked]
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


def test_the_first_of_the_ranking_is_where_flips_start(experts: Run) -> None:
    said = " ".join(experts.page.split())

    first = experts.document["ranked"][0]["cluster"]
    assert f"by which they are ranked: {first} is first, with a step of" in said
    assert "Ranked by 'fastest', the step of the fastest layout found on each cluster" in said


def test_a_rounded_batch_is_said_before_the_ranking(planner: Planner, tmp_path: Path) -> None:
    asked = ("--gpus", "6", "--supernode", "6", "--model", "llama-3.1-8b", "--tp", "2", "--dp", "3")
    out = tmp_path / "out.json"
    ran = planner("compare", *asked, "--tokens", "15T", "--out", str(out))
    head = " ".join(ran.out.split("Ranked")[0].split())

    # Llama 3's 2,048 sequences of 8,192 tokens are no multiple of 3; 2,046 and 2,049 are.
    assert re.search(r"whole micro-batches: 2,049 for 2,048 sequences; --global-batch", head)
    told = re.search(r"15T tokens take ([\d,]+) days or more on these: planner compare", head)
    assert told
    (one,) = json.loads(out.read_text())["ranked"]
    layout = one["fastest"]["layout"]
    rate_per_s = layout["global_batch"] * layout["seq"] / one["fastest"]["step_s"]
    days = min(one["run"]["days"], 15e12 / rate_per_s / 86_400)
    assert 0 <= days - int(told[1].replace(",", "")) < 1


def test_flips_are_told_by_what_changes(experts: Run) -> None:
    flips = experts.page.split("Where the winner flips")[1].split("Where to spend")[0]
    asked = {"winner": "The fastest cluster is no longer", "tie": "No longer a tie at the top",
             "layout": "The best layout on"}  # fmt: skip

    kinds = {one["kind"] for one in experts.document["flips"]}
    assert len(kinds) > 1
    for one in experts.document["flips"]:
        ends = one["after"] == "nothing fits"
        title = "No layout fits any longer" if ends else asked[one["kind"]]
        told = flips.split(title)[1:]
        assert any(one["before"] in f"{title}{part.splitlines()[0]}" for part in told)
        assert any(one["after"] in " ".join(part.split()) for part in told)  # wrapped cells


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


def test_what_a_file_leaves_open_is_taken_so_that_it_fits(planner: Planner, tmp_path: Path) -> None:
    for name, tp in (("wide", 2), ("deep", 4)):
        (tmp_path / f"{name}.yaml").write_text(f"tp: {tp}\npp: 1\n")
    asked = ("--gpus", "16", "--model", "llama-3.1-8b", "--layout", str(tmp_path / "wide.yaml"))
    more = ("--layout", str(tmp_path / "deep.yaml"))

    found = documented(planner, "--supernode", "8", *asked, *more)
    page = planner("compare", "--supernode", "8", *asked, *more)
    placed = planner("place", "--supernode", "8", *asked, "--json")

    assert [one["memory"]["fits"] for one in found["ranked"]] == [True, True]
    wide = next(one for one in found["ranked"] if one["label"] == "wide")
    taken = json.loads(placed.out)["inputs"]["layout"]
    degrees = ("tp", "dp", "micro_batch", "recompute")
    assert {name: wide["layout"][name] for name in degrees} == {
        name: taken[name] for name in degrees
    }
    front = " ".join(page.out.split("Not beaten")[1].split())
    assert re.search(r"[12] generic-sn8 wide", front)


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
         ("of the sizes tried, up to 131,072 GPUs, none trains",)),
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
