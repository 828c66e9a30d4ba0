"""A launch file as ``--layout`` also says the model and the GPUs: taken, told, held against."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
SCHEMAS = Path(__file__).resolve().parents[2] / "cli" / "schemas"
EIGHT_B = (
    "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention "
    "--num-query-groups 8 --ffn-hidden-size 14336 --swiglu --max-position-embeddings 8192 "
    "--position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 128256 "
    "--normalization RMSNorm --disable-bias-linear"
)
DEGREES = (
    "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --seq-length 4096 "
    "--micro-batch-size 1 --global-batch-size 64 --use-distributed-optimizer --bf16"
)
TORCHRUN = "torchrun --nnodes 4 --nproc_per_node=8 pretrain_gpt.py"
WHOLE = f"{TORCHRUN} {DEGREES} {EIGHT_B}\n"
TITAN = (
    '[model]\nname = "llama3"\nflavor = "8B"\n'
    "[parallelism]\ntensor_parallel_degree = 2\ndata_parallel_shard_degree = -1\n"
)


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], str]:
    def written(text: str, name: str = "run.sh") -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return written


def asked(planner: Planner, *words: str) -> dict[str, Any]:
    ran = planner(*words, "--json")
    assert ran.code == 0, ran.err
    inputs: dict[str, Any] = json.loads(ran.out)["inputs"]
    return inputs


@pytest.mark.parametrize("command", ["place", "step", "search"])
def test_what_the_file_says_is_taken_and_told(
    planner: Planner, run: Callable[[str], str], command: str
) -> None:
    file = run(WHOLE)

    inputs = asked(planner, command, "--layout", file, "--supernode", "8")

    shape = inputs["model_shape"]
    assert (inputs["gpus"], shape["layers"], shape["hidden"], shape["ffn"]) == (32, 32, 4096, 14336)
    assert inputs["assumed"]["gpus"] == f"32: of Megatron script {file}, for --gpus was not given"
    assert "run.sh, for --model was not given" in inputs["assumed"]["model"]
    assert inputs["layout_file"]["file"] == file


def test_a_comparison_takes_the_model_too(planner: Planner, run: Callable[[str], str]) -> None:
    words = ("--layout", run(WHOLE), "--supernode", "8,16", "--gpus", "32")

    clusters = asked(planner, "compare", *words)["clusters"]

    assert {one["model_shape"]["ffn"] for one in clusters} == {14336}
    assert all("for --model was not given" in one["assumed"]["model"] for one in clusters)


def test_documents_with_a_launch_file_follow_their_schemas(
    planner: Planner, run: Callable[[str], str]
) -> None:
    for command in ("place", "step"):
        ran = planner(command, "--layout", run(WHOLE), "--supernode", "8", "--json")
        schema = json.loads((SCHEMAS / f"{command}.json").read_text(encoding="utf-8"))
        jsonschema.validate(json.loads(ran.out), schema)


@pytest.mark.parametrize(
    ("launcher", "gpus"),
    [
        ("torchrun --nnodes=2 --nproc_per_node 8 pretrain_gpt.py", 16),
        ("#SBATCH --nodes=8\n#SBATCH --gres=gpu:8\nsrun python pretrain_gpt.py", 64),
        ("WORLD_SIZE=48\npython pretrain_gpt.py", 48),
    ],
)
def test_the_gpus_are_those_of_the_launcher(
    planner: Planner, run: Callable[[str], str], launcher: str, gpus: int
) -> None:
    text = f"{launcher} {DEGREES} {EIGHT_B}\n".replace("--global-batch-size 64", "")

    assert asked(planner, "step", "--layout", run(text), "--supernode", "8")["gpus"] == gpus


def test_options_go_before_the_file(planner: Planner, run: Callable[[str], str]) -> None:
    words = ("step", "--layout", run(WHOLE), "--supernode", "8")

    other = asked(planner, *words, "--gpus", "64", "--model", "llama-3.1-70b")
    fewer = asked(planner, *words, "--dp", "4")

    assert (other["gpus"], other["model"]) == (64, "llama-3.1-70b")
    assert "model" not in other["assumed"]
    assert "vocab" not in other["assumed"]  # the file's model is not the one that is planned
    assert fewer["gpus"] == 16
    assert "not the 32 that Megatron script" in fewer["assumed"]["gpus"]


def test_every_contradiction_is_refused_at_once(
    planner: Planner, run: Callable[[str], str]
) -> None:
    file = run(f"{TORCHRUN} {DEGREES} --num-layers 32\n".replace("-size 2", "-size 5"))

    ran = planner("place", "--layout", file, "--cluster", "hgx-h100", "--dp", "3")

    assert ran.code == 2
    assert "product of 75 does not divide the 32 GPUs that Megatron script" in ran.err
    assert "hidden_size, num_attention_heads not stated" in ran.err


def test_a_run_larger_than_the_cluster_is_refused_by_name(
    planner: Planner, run: Callable[[str], str]
) -> None:
    file = run(WHOLE.replace("--nnodes 4", "--nnodes 4000"))

    ran = planner("place", "--layout", file, "--cluster", "hgx-h100")

    assert ran.code == 3
    assert "32000 ranks do not fit" in ran.err
    assert "run.sh runs on 32000: --gpus N takes another number" in ran.err


@pytest.mark.parametrize("command", ["place", "step", "search", "compare"])
def test_half_a_model_is_refused_and_not_replaced(
    planner: Planner, run: Callable[[str], str], command: str
) -> None:
    file = run(WHOLE.replace("--num-attention-heads 32", ""))

    ran = planner(command, "--layout", file, "--supernode", "8")

    assert ran.code == 2
    assert "num_attention_heads not stated; expected all of it there, or --model" in ran.err


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("t.toml", TITAN.replace("8B", "9B"), "llama3 9b is not in the catalogue"),
        ("n.yml", '{"pipe_parallel_size": 2, "model_parallel_size": 2, "num_layers": 32}',
         "num_attention_heads or the vocabulary is not stated"),
    ],
)  # fmt: skip
def test_half_a_model_of_other_frameworks_is_refused_too(
    planner: Planner, run: Callable[..., str], name: str, text: str, why: str
) -> None:
    ran = planner("place", "--layout", run(text, name), "--supernode", "8")

    assert ran.code == 2
    assert why in ran.err


def test_a_file_without_a_model_leaves_the_default_and_says_so(
    planner: Planner, run: Callable[[str], str]
) -> None:
    words = ("place", "--layout", run(f"{TORCHRUN} {DEGREES}\n"), "--supernode", "8")

    model = asked(planner, *words, "--ignore-memory")["assumed"]["model"]

    assert model.startswith("llama-3.1-8b: the default for 32 GPUs")
    assert model.endswith("run.sh describes none")


def test_a_torchtitan_comment_is_told_as_what_it_is(
    planner: Planner, run: Callable[..., str]
) -> None:
    text = f"# preset for 64 H100 GPUs\n{TITAN}"

    told = asked(planner, "step", "--layout", run(text, "t.toml"), "--supernode", "8")
    other = asked(planner, "step", "--layout", run(text, "t.toml"), "--gpus", "32")

    assert (told["gpus"], told["model"]) == (64, "llama-3.1-8b")
    assert "64, from the comment" in told["assumed"]["gpus"]
    assert "comment" not in other["assumed"]["gpus"]


def test_layouts_of_several_models_are_not_compared_as_one(
    planner: Planner, run: Callable[..., str]
) -> None:
    files = ("--layout", run(WHOLE), "--layout", run(TITAN, "t.toml"))

    ran = planner("compare", "--supernode", "8", "--gpus", "32", *files)

    assert ran.code == 2
    assert "llama-3.1-8b" in ran.err
    assert "--model NAME takes one" in ran.err


def test_a_plan_has_its_layout_already(planner: Planner, run: Callable[[str], str]) -> None:
    file = run(WHOLE)
    plan = str(Path(file).with_name("plan.json"))
    words = ("--layout", file, "--supernode", "8")
    assert planner("place", *words, "--out", plan).code == 0

    ran = planner("step", "--placement", plan, *words)

    assert ran.code == 2
    assert ran.err.startswith(f"error: --layout {file}: the layout is that of the plan")


def test_a_comparison_takes_the_gpus_of_its_files_and_refuses_several(
    planner: Planner, run: Callable[[str], str]
) -> None:
    four = run(WHOLE, "four.sh")  # type: ignore[call-arg]
    two = run(WHOLE.replace("--nnodes 4", "--nnodes 2"), "two.sh")  # type: ignore[call-arg]

    one = planner("compare", "--layout", four, "--supernode", "8", "--json")
    both = planner("compare", "--layout", four, "--layout", two, "--supernode", "8")

    assert one.code == 0, one.err
    assert [one["gpus"] for one in json.loads(one.out)["inputs"]["clusters"]] == [32]
    assert both.code == 2
    assert "four.sh on 32" in both.err
    assert "two.sh on 16" in both.err
    assert "give --gpus" in both.err
