"""``planner place`` with rules, reasons, second answers and a free list, as a user runs it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cli.report_html_words import command_of
from tests.conftest import Ran

Planner = Callable[..., Ran]

SCHEMA = Path(__file__).parents[2] / "cli" / "schemas" / "place.json"
JOB = ("--model", "llama-3.1-8b", "--tp", "2", "--cp", "1", "--dp", "4", "--pp", "4", "--vpp", "1",
       "--zero", "1", "--micro-batch", "1", "--global-batch", "64", "--ignore-memory",
       "--time-limit", "30")  # fmt: skip
SMALL = ("--supernode", "8", "--gpus", "32", *JOB)


def documented(planner: Planner, *arguments: str) -> dict[str, Any]:
    ran = planner("place", *arguments, "--json")
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)
    return document


def test_a_rule_is_kept_priced_and_told(planner: Planner) -> None:
    free = documented(planner, *SMALL)
    ruled = documented(planner, *SMALL, "--rule", "pp within supernode")
    page = planner("place", *SMALL, "--rule", "pp within supernode").out

    price = ruled["rules"]
    assert price["free_cut_bytes"] == free["cut"]["objective_bytes"]
    assert price["price_least_bytes"] == price["price_most_bytes"]
    assert price["price_most_bytes"] == pytest.approx(
        ruled["cut"]["objective_bytes"] - free["cut"]["objective_bytes"]
    )
    assert ruled["inputs"]["rules"] == ["pp within supernode"]
    assert "proved the least possible under the" in page
    assert "both proved the least" in " ".join(page.split())


def test_a_rule_that_cannot_be_kept_ends_with_3_and_says_by_how_much(planner: Planner) -> None:
    ran = planner("place", *SMALL, "--rule", "dp within supernode", "--rule", "pp within supernode")

    assert ran.code == 3
    assert "'dp within supernode' and 'pp within supernode' cannot be kept" in ran.err
    assert "16 ranks, 8 more than the 8 usable GPUs" in ran.err


def test_rules_that_are_none_end_with_2_each_named(planner: Planner) -> None:
    ran = planner("place", *SMALL, "--rule", "dp inside rack", "--rule", "stage 9 on sn00")

    assert ran.code == 2
    assert "'dp inside rack' is not understood" in ran.err
    assert "has 4 stages: expected 0 to 3" in ran.err


def test_why_it_crosses_and_what_else_would(planner: Planner) -> None:
    document = documented(planner, *SMALL, "--explain", "--alternatives", "2")
    page = planner("place", *SMALL, "--explain", "--alternatives", "2").out

    reasons = {entry["digit"]: entry for entry in document["explain"]["reasons"]}
    assert set(reasons) == {"tp", "dp", "pp"}
    crossed = sum(entry["cut_bytes"] for entry in reasons.values())
    assert crossed == pytest.approx(document["cut"]["objective_bytes"])
    assert len(document["alternatives"]) == 2
    assert "stays inside" in page
    assert "Keeping it whole needs" in page
    assert "The best others tried that cross something else" in page


def test_without_being_asked_nothing_of_it_is_said(planner: Planner) -> None:
    document = documented(planner, *SMALL)

    assert not {"rules", "explain", "alternatives"} & set(document)
    assert not {"rules", "free"} & set(document["inputs"])
    assert document["idle"] == {"gpus": 0, "hosts": ""}


def test_a_job_sits_on_free_gpus_only_and_its_plan_is_read_back(
    planner: Planner, tmp_path: Path
) -> None:
    free, plan = tmp_path / "free.txt", tmp_path / "plan.json"
    free.write_text("sn[1-3]\nsn04.board00:0-3\nsn[06-07].board00\n".replace("[1-3]", "[01-03]"))
    asked = ("--supernode", "8", "--gpus", "64", "--free", str(free), *JOB)

    document = documented(planner, *asked, "--out", str(plan))
    mapped = planner("export", str(plan), "--to", "rank-map")

    used = {name.split(".")[0] for name in document["placement"]["gpus"]}
    assert used <= {"sn01", "sn02", "sn03", "sn04", "sn06", "sn07"}
    assert not {f"sn04.gpu{n:02d}" for n in range(4, 8)} & set(document["placement"]["gpus"])
    assert document["idle"]["gpus"] == 44 - 32
    assert document["inputs"]["free"]["cluster_gpus"] == 64
    assert mapped.code == 0, mapped.err
    by_rank = [line.split(",")[3] for line in mapped.out.splitlines() if line[:1].isdigit()]
    assert by_rank == document["placement"]["gpus"]


def test_the_idle_gpus_are_a_free_list_for_the_next_job(planner: Planner, tmp_path: Path) -> None:
    first = documented(planner, "--supernode", "8", "--gpus", "64", "--free",
                       str(_listed(tmp_path, "sn[00-07]")), *JOB)  # fmt: skip
    second = documented(planner, "--supernode", "8", "--gpus", "64", "--free",
                        str(_listed(tmp_path, first["idle"]["hosts"])), *JOB)  # fmt: skip

    assert not set(first["placement"]["gpus"]) & set(second["placement"]["gpus"])
    assert second["idle"] == {"gpus": 0, "hosts": ""}


def _listed(folder: Path, text: str) -> Path:
    path = folder / f"free{len(text)}.txt"
    path.write_text(text)
    return path


def test_too_few_free_gpus_end_with_3_and_say_how_many_are_missing(
    planner: Planner, tmp_path: Path
) -> None:
    ran = planner("place", "--supernode", "8", "--gpus", "64", "--free",
                  str(_listed(tmp_path, "sn[00-02]")), *JOB)  # fmt: skip

    assert ran.code == 3
    assert "32 ranks do not fit on the 24 GPUs that" in ran.err
    assert "8 too few" in ran.err


def test_a_wrong_free_list_ends_with_2_and_names_its_lines(
    planner: Planner, tmp_path: Path
) -> None:
    ran = planner("place", "--supernode", "8", "--gpus", "64", "--free",
                  str(_listed(tmp_path, "sn[00-02]\nsn01\nsn42")), *JOB)  # fmt: skip

    assert ran.code == 2
    assert ".txt:2: sn01.gpu00 is free already on line 1" in ran.err
    assert ".txt:3: the cluster has no host 'sn42'" in ran.err


def test_the_page_names_the_gpus_that_are_left_idle(planner: Planner) -> None:
    asked = ("--cluster", "cloudmatrix384-3x384", "--tp", "8", "--dp", "8", "--pp", "16",
             "--ignore-memory", "--time-limit", "30")  # fmt: skip

    document = documented(planner, *asked)
    page = planner("place", *asked).out

    assert document["idle"]["gpus"] == 3 * 384 - 1024
    assert f"Idle: 128 of 1152 GPUs: {document['idle']['hosts'][:30]}" in page


def test_a_plan_is_read_back_where_no_supernode_is_free_as_a_whole(
    planner: Planner, tmp_path: Path
) -> None:
    free, plan = tmp_path / "free.txt", tmp_path / "plan.json"
    free.write_text("sn[00-07].board00:0-5")
    asked = ("--supernode", "8", "--gpus", "64", "--free", str(free), *JOB)

    document = documented(planner, *asked, "--out", str(plan))
    mapped = planner("export", str(plan), "--to", "rank-map")

    assert document["inputs"]["free"]["cluster_supernode"] == 8
    assert mapped.code == 0, mapped.err
    by_rank = [line.split(",")[3] for line in mapped.out.splitlines() if line[:1].isdigit()]
    assert by_rank == document["placement"]["gpus"]


def test_the_reports_command_asks_for_the_same_plan_again(planner: Planner, tmp_path: Path) -> None:
    free = _listed(tmp_path, "sn[00-07].board00:0-5")
    document = documented(planner, "--supernode", "8", "--gpus", "64", "--free", str(free), *JOB,
                          "--rule", "tp within board")  # fmt: skip

    words = shlex.split(command_of(document))
    again = documented(planner, *words[2:])

    assert again["inputs"]["sha256"] == document["inputs"]["sha256"]


def test_where_no_second_answer_keeps_the_rules_the_page_says_so(planner: Planner) -> None:
    # Two supernodes of two GPUs, TP pinned inside: replicas are all there is to seat.
    job = ("--supernode", "2", "--gpus", "4", "--model", "llama-3.1-8b", "--tp", "2", "--cp", "1",
           "--dp", "2", "--pp", "1", "--global-batch", "64", "--ignore-memory",
           "--rule", "tp within supernode", "--alternatives", "3")  # fmt: skip

    page = " ".join(planner("place", *job).out.split())
    document = documented(planner, *job)

    assert document["alternatives"] == []
    assert (
        "The best others tried that cross something else None: no other placement that was tried "
        "keeps the rules and crosses other bytes of any degree, to 1 % of this plan's cut."
    ) in page


def test_degrees_that_nobody_asked_for_are_not_called_impossible_alone(planner: Planner) -> None:
    words = ("place", "--supernode", "8", "--gpus", "64", "--model", "llama-3.1-8b")

    chosen = planner(*words, "--dp-shard", "8", "--rule", "dp_shard within supernode")
    given = planner(
        *words, "--tp", "1", "--cp", "1", "--dp", "64", "--pp", "1",
        "--dp-shard", "8", "--rule", "dp_shard within supernode",
    )  # fmt: skip

    assert chosen.code == 3
    assert "chosen for the shortest step, without the rules" in chosen.err
    assert "give --tp" in chosen.err
    assert given.code == 0, given.err
