"""Hybrid sharding (HSDP) as a user asks for it: options, files, plans and what reads them."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import ROOT, Ran

Planner = Callable[..., Ran]

SCHEMA = ROOT / "cli" / "schemas" / "place.json"
ON = ("--supernode", "8", "--gpus", "32", "--model", "llama-3.1-8b")
ASKED = (*ON, "--tp", "1", "--cp", "1", "--pp", "1", "--dp", "32", "--zero", "3",
         "--global-batch", "32", "--seq", "4096")  # fmt: skip
TITAN = """
[training]
seq_len = 4096
local_batch_size = 1
global_batch_size = 32
[parallelism]
data_parallel_replicate_degree = {}
"""
MEGATRON = """torchrun --nnodes=4 --nproc-per-node=8 pretrain_gpt.py \\
  --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --context-parallel-size 1 \\
  --micro-batch-size 1 --global-batch-size 32 --seq-length 4096 --bf16 \\
  {} --num-distributed-optimizer-instances {}
"""


def documented(planner: Planner, command: str, *words: str) -> dict[str, Any]:
    ran = planner(command, *words, "--json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def test_a_shard_group_of_all_ranks_gives_the_document_of_none_byte_for_byte(
    planner: Planner,
) -> None:
    plain = planner("place", *ASKED, "--json")
    named = planner("place", *ASKED, "--dp-shard", "32", "--json")

    assert named.code == plain.code == 0
    assert named.out == plain.out


def test_a_plan_records_the_shard_group_and_every_command_reads_it_back(
    planner: Planner, tmp_path: Path
) -> None:
    plan, flags = tmp_path / "plan.json", tmp_path / "train.sh"
    document = documented(planner, "place", *ASKED, "--dp-shard", "8", "--out", str(plan))
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)
    told = {entry["family"]: entry for entry in document["traffic"]}

    assert document["inputs"]["layout"]["dp_shard"] == 8
    assert told["dp_scatter"]["part"] == "dp_shard"
    assert told["dp_replica_reduce"]["part"] == "dp_replicate"
    assert [axis["size"] for axis in document["axes"]] == [8, 4]
    step = documented(planner, "step", "--placement", str(plan))
    assert step["step"]["total_s"] == pytest.approx(document["step"]["total_s"])
    assert planner("export", str(plan), "--to", "megatron", "--out", str(flags)).code == 0
    assert "--num-distributed-optimizer-instances 4" in flags.read_text()
    again = documented(planner, "place", *ON, "--layout", str(flags))
    void = {"sequence_parallel": True}  # of one TP rank
    assert again["inputs"]["layout"] | void == document["inputs"]["layout"] | void
    page = tmp_path / "page.html"
    assert planner("report", str(plan), "--out", str(page)).code == 0
    assert "DP (replicas of shards)" in page.read_text()
    assert "--dp-shard 8" in page.read_text()


def test_replicas_of_a_file_are_shards_of_the_ranks_that_the_gpus_leave(
    planner: Planner, tmp_path: Path
) -> None:
    titan, megatron = tmp_path / "titan.toml", tmp_path / "train.sh"
    titan.write_text(TITAN.format(4))
    megatron.write_text(MEGATRON.format("--use-distributed-optimizer", 2))

    for file, shard in ((titan, 8), (megatron, 16)):
        document = documented(planner, "place", *ON, "--layout", str(file))
        assert document["inputs"]["layout"]["dp_shard"] == shard, file


def test_what_contradicts_is_refused_with_every_fault(planner: Planner, tmp_path: Path) -> None:
    titan, megatron = tmp_path / "titan.toml", tmp_path / "train.sh"
    titan.write_text(TITAN.format(4))
    megatron.write_text(MEGATRON.format("", 2))

    odd = planner("place", *ON, "--dp", "32", "--dp-shard", "5", "--zero", "0")
    assert odd.code == 2
    assert "dp_shard=5 does not divide dp = 32" in odd.err
    assert "dp_shard=5 needs zero 1, 2 or 3" in odd.err
    twice = planner("place", *ON, "--layout", str(titan), "--dp-shard", "4")
    assert twice.code == 2
    assert "dp_shard=4 contradicts dp_replicate=4: dp / dp_replicate = 32 / 4 = 8" in twice.err
    unsharded = planner("place", *ON, "--layout", str(megatron))
    assert unsharded.code == 2
    assert "2 replicas of what nothing shards" in unsharded.err
    wide = planner("step", *ON, "--tp", "8", "--dp-shard", "16")
    assert wide.code == 2
    assert "tp x dp_shard = 8 x 16 = 128 does not divide the 32 GPUs" in wide.err


def test_a_search_keeps_the_shard_group_that_is_given(planner: Planner) -> None:
    document = documented(planner, "search", *ON, "--dp-shard", "4", "--where", "tp <= 2")

    layouts = [entry["layout"] for entry in document["best"]]
    assert layouts
    for layout in layouts:
        assert layout.get("dp_shard", layout["dp"]) == 4
        assert layout["dp"] % 4 == 0
    assert document["layouts_rejected"]["dp_shard does not divide dp"] > 0


def test_a_search_tries_shard_groups_when_a_rule_speaks_of_them(
    planner: Planner, tmp_path: Path
) -> None:
    front = tmp_path / "front.csv"
    rules = ("--where", "dp_shard <= 8 and dp_replicate > 1", "--where", "tp == 1 and zero == 3")

    document = documented(planner, "search", *ON, *rules, "--csv", str(front))

    layouts = [entry["layout"] for entry in document["best"]]
    assert layouts
    for layout in layouts:
        assert 2 <= layout["dp_shard"] <= 8
        assert layout["dp"] % layout["dp_shard"] == 0
    rows = list(csv.DictReader(front.read_text().splitlines()))
    assert {int(row["dp"]) % int(row["dp_shard"]) for row in rows} == {0}
    assert all(int(row["dp"]) > int(row["dp_shard"]) for row in rows)


def test_a_sweep_keeps_the_rule_and_tells_shard_groups_in_its_table_and_file(
    planner: Planner, tmp_path: Path
) -> None:
    sweep, into = tmp_path / "sweep.yaml", tmp_path / "sweep.sqlite"
    sweep.write_text("models: [llama-3.1-8b]\nsupernodes: [4, 8]\ngpus: [16]\n")
    asked = ("search", "--sweep", str(sweep), "--into", str(into), "--where",
             "dp_shard == 4 and dp == 16")  # fmt: skip

    page = planner(*asked)

    assert page.code == 0, page.err
    assert page.out.count("shard4") == 2
    with closing(sqlite3.connect(into)) as database:
        shards = database.execute(documented_query()).fetchall()
    assert [row[-2:] for row in shards] == [(16, 4), (16, 4)]


def documented_query() -> str:
    """Return the query that the page of sweeps shows."""
    text = (ROOT / "docs" / "sweeps.md").read_text()
    return text.partition("```sql\n")[2].partition("```")[0]


def test_a_rule_can_speak_of_shard_groups(planner: Planner) -> None:
    shuffled = ("--dp-shard", "8", "--rule", "dp_shard within supernode")
    page = planner("place", *ASKED, *shuffled, "--explain")

    assert page.code == 0, page.err
    assert "DP_SHARD 8 x 4" in page.out
    assert "DP_REPLICATE 4 x 8" in page.out
