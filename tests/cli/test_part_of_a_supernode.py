"""A job smaller than a supernode gets part of one, and every command says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Ran

Planner = Callable[..., Ran]
JOB = ("--gpus", "4", "--model", "llama-3.1-8b")


def words_of(ran: Ran) -> str:
    return " ".join(ran.out.split())


def test_four_gpus_are_part_of_one_supernode_and_nothing_leaves_it(
    planner: Planner, tmp_path: Path
) -> None:
    file, page = tmp_path / "plan.json", tmp_path / "plan.html"

    ran = planner("place", "--supernode", "8", *JOB, "--out", str(file))

    assert ran.code == 0, ran.err
    document = json.loads(file.read_text())
    assert document["inputs"]["supernode"] == 8
    assert [one["capacity"] for one in document["placement"]["domains"]] == [4]
    assert document["cut"]["objective_bytes"] == 0
    assert "generic-sn8: 4 H100-SXM in supernodes of 8 (part of one)" in words_of(ran)
    assert "The 4 GPUs are part of one supernode of 8" in words_of(ran)
    timed = planner("step", "--placement", str(file), "--json")
    assert json.loads(timed.out)["step"]["total_s"] == document["step"]["total_s"]
    assert planner("report", str(file), "--out", str(page)).code == 0
    assert "The 4 GPUs are part of one supernode of 8" in page.read_text()
    assert "planner place --supernode 8 --gpus 4" in page.read_text()


def test_search_step_and_the_cluster_say_so_too(planner: Planner) -> None:
    said = "The 4 GPUs are part of one supernode of 8"
    few = (*JOB, "--tp", "2", "--pp", "1")

    for command in (("search", *few), ("step", *few), ("topology", "show", "--gpus", "4")):
        ran = planner(*command, "--supernode", "8")

        assert ran.code == 0, ran.err
        assert said in words_of(ran), command


def test_supernodes_larger_than_the_job_are_compared_and_not_left_out(planner: Planner) -> None:
    ran = planner("compare", "--supernode", "2,64", *JOB, "--json")
    page = planner("compare", "--supernode", "2,64", *JOB)

    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert {one["cluster"]: one["supernode"] for one in document["ranked"]} == {
        "generic-sn2": 2,
        "generic-sn64": 64,
    }
    assert "generic-sn64: The 4 GPUs are part of one supernode of 64" in words_of(page)
    # 4 GPUs and the switches of the whole supernode: 4 for each eight of its 64 GPUs.
    counts = {one["item"]: one["count"] for one in document["bills"]["generic-sn64"]["lines"]}
    assert (counts["H100-SXM"], counts["scale_up_switch"]) == (4, 32)


def test_one_gpu_is_placed_and_one_too_small_says_what_is_missing(planner: Planner) -> None:
    ran = planner("place", "--supernode", "8", "--gpus", "1", "--model", "llama-3.1-8b",
                  "--ignore-memory", "--json")  # fmt: skip
    refused = planner("search", "--supernode", "8", "--gpus", "1", "--model", "llama-3.1-8b")

    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["placement"]["rank_to_gpu"] == [0]
    assert refused.code == 3
    assert "none of 8 layouts fits in memory" in refused.err
    assert refused.err.strip().endswith("take more GPUs")
