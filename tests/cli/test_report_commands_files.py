"""The command in a report names every file and option that the plan hangs on."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.report_html_origin import compare_command
from cli.report_html_words import command_of
from tests.conftest import Ran

Planner = Callable[..., Ran]
ARGUMENTS = (
    "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --num-layers 32 "
    "--hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 "
    "--ffn-hidden-size 14336 --swiglu --seq-length 4096 --max-position-embeddings 8192 "
    "--position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 128256 "
    "--normalization RMSNorm --disable-bias-linear --micro-batch-size 1 --global-batch-size 64 "
    "--use-distributed-optimizer --bf16"
)
RUN = f"torchrun --nnodes 4 --nproc_per_node=8 pretrain_gpt.py {ARGUMENTS}\n"
TITAN = """
[model]
name = "llama3"
flavor = "8B"
[training]
seq_len = 4096
local_batch_size = 1
global_batch_size = 64
[parallelism]
data_parallel_shard_degree = 8
data_parallel_replicate_degree = 4
"""
FIT = """
H100-SXM:
  gemm: {bf16: 0.61}
  attention: {fused: 0.4}
  memory: {fused: 0.5}
  inner: 0.7
  outer: 0.6
  host: {fused: 10us}
  step: 5ms
  spread: 0.08
  rows: 12
  source: by hand
"""
SHIPPED = "hgx-h100"
EIGHT_B = ("--model", "llama-3.1-8b", "--global-batch", "64")
ASKED: dict[str, tuple[str, ...]] = {
    "a launch file that says all": ("--layout", "run.sh", "--supernode", "8"),
    "a launch file, --dp": ("--layout", "run.sh", "--supernode", "8", "--dp", "4"),
    "a launch file, another model": (
        "--layout", "run.sh", "--cluster", SHIPPED, "--model", "llama-3.1-8b"),
    "torchtitan with replicas": ("--layout", "titan.toml", "--supernode", "8"),
    "an own fit": (*EIGHT_B, "--gpus", "32", "--cluster", SHIPPED, "--efficiency", "own.yaml"),
    "hybrid sharding": (*EIGHT_B, "--gpus", "32", "--supernode", "8", "--dp-shard", "8",
                        "--zero", "3", "--tp", "1", "--pp", "1"),
    "a free list, a rule": (
        *EIGHT_B, "--cluster", SHIPPED, "--free", "named.txt", "--gpus", "32",
        "--rule", "tp within supernode", "--tp", "2"),
    "a free list of a cluster by size, weighted tiers": (
        *EIGHT_B, "--supernode", "8", "--gpus", "64", "--free", "free.txt", "--tiers", "weighted"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("run.sh").write_text(RUN, encoding="utf-8")
    Path("titan.toml").write_text(TITAN, encoding="utf-8")
    Path("own.yaml").write_text(FIT, encoding="utf-8")
    Path("free.txt").write_text("sn00\nsn02\nsn03\nsn05\n", encoding="utf-8")
    Path("named.txt").write_text("sn000\nsn002\nsn003\nsn005\n", encoding="utf-8")
    return tmp_path


def documented(planner: Planner, *arguments: str) -> dict[str, Any]:
    ran = planner("place", *arguments, "--json")
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    return document


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ASKED)
def test_the_command_of_a_plan_of_files_makes_it_again(planner: Planner, name: str) -> None:
    document = documented(planner, *ASKED[name])

    again = documented(planner, *shlex.split(command_of(document))[2:-1])

    assert again["inputs"]["sha256"] == document["inputs"]["sha256"]
    assert again["placement"] == document["placement"]
    assert again["step"]["total_s"] == document["step"]["total_s"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [
        (
            "--model",
            "llama-3.1-8b",
            "--where",
            "tp <= 2",
            "--pp",
            "1",
            "--cp",
            "1",
            "--zero",
            "1",
            "--micro-batch",
            "1",
            "--recompute",
            "full",
            "--seq",
            "512",
            "--efficiency",
            "own.yaml",
        ),
        ("--layout", "titan.toml"),
    ],
)
def test_the_command_of_a_comparison_of_files_makes_it_again(
    planner: Planner, words: tuple[str, ...]
) -> None:
    ran = planner("compare", "--supernode", "8,16", "--gpus", "32", *words, "--json")
    assert ran.code == 0, ran.err
    inputs = json.loads(ran.out)["inputs"]

    again = planner(*shlex.split(compare_command(inputs))[1:])

    assert again.code == 0, again.err
    assert json.loads(again.out)["inputs"]["sha256"] == inputs["sha256"]
