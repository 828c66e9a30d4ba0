"""torchtitan, DeepSpeed and GPT-NeoX files."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import LayoutError, SpecError
from tests.launch_texts import read_run, written
from topologies.imported_run import layout_of

TITAN = """# NOTE: this toml config is a preset for 128 H100 GPUs.
[model]
name = "llama3"
flavor = "405B"
converters = ["float8"]
[training]
local_batch_size = 2
seq_len = 8192
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
[activation_checkpoint]
mode = "full"
"""


def test_a_torchtitan_file_shards_over_what_is_left(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, "run.toml", TITAN))

    assert run.model is not None
    assert run.model.name == "llama-3.1-405b"
    assert run.gpus == 128
    assert "comment" in run.assumed["gpus"]
    layout = layout_of(run)
    assert (layout.tp, layout.dp, layout.zero_stage, layout.micro_batch) == (8, 16, 3, 2)
    assert (layout.precision, layout.recompute, layout.global_batch) == ("fp8", "full", 32)
    assert layout_of(run, gpus=64).dp == 8


def test_a_torchtitan_pipeline_has_micro_batches_of_one_and_two_stages_a_rank(
    tmp_path: Path,
) -> None:
    text = TITAN.replace(
        "[activation",
        'pipeline_parallel_degree = 4\npipeline_parallel_schedule = "Interleaved1F1B"\n[activation',
    )

    run = read_run(written(tmp_path, "run.toml", text))

    assert (run.layout["vpp"], run.layout["micro_batch"], run.layout["zero_stage"]) == (2, 1, 2)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("= 8192", '= "8192"', "training.seq_len: expected a whole number"),
        ("= -1", "= 0", "data_parallel_shard_degree"),
        ('"full"', '"sometimes"', "activation_checkpoint.mode"),
        ("[parallelism]", "[parallelism", "no valid TOML"),
        ("tensor_parallel_degree = 8", "tensor_parallel_degree = 0", ":12: parallelism.tensor"),
        ("local_batch_size = 2", "local_batch_size = 2\nlocal_batch_size = 2", "no valid TOML"),
    ],
)
def test_a_torchtitan_file_names_its_fault(tmp_path: Path, old: str, new: str, reason: str) -> None:
    path = written(tmp_path, "run.toml", TITAN.replace(old, new))

    with pytest.raises(SpecError) as caught:
        read_run(path)

    assert reason in str(caught.value)


def test_deepspeed_states_zero_and_batches_and_auto_is_not_stated(tmp_path: Path) -> None:
    stated = read_run(written(tmp_path, "a.json", """{
        "train_batch_size": 256, "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 3, "overlap_comm": true},
        "bf16": {"enabled": true}, "reduce_bucket_size": 2e8}"""))  # fmt: skip
    auto = read_run(written(tmp_path, "b.json", """{"train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "zero_optimization": {"stage": 2}}"""))  # fmt: skip

    assert (stated.layout["dp"], stated.layout["zero_stage"]) == (32, 3)
    assert layout_of(stated).micro_batches == 2
    assert "micro_batch" not in auto.layout
    assert "auto" in auto.assumed["train_batch_size"]


def test_an_offload_to_no_device_is_none(tmp_path: Path) -> None:
    for device, told in (("none", False), ("cpu", True)):
        zero = f'{{"stage": 3, "offload_optimizer": {{"device": "{device}"}}}}'

        run = read_run(written(tmp_path, "ds.json", f'{{"zero_optimization": {zero}}}'))

        assert ("offload_optimizer" in run.assumed) == told


def test_deepspeeds_sequence_parallel_ranks_exchange_heads(tmp_path: Path) -> None:
    text = """{"train_batch_size": 256, "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2},
        "bf16": {"enabled": true}, "tensor_parallel": {"autotp_size": 4},
        "sequence_parallel_size": 2}"""

    layout = layout_of(read_run(written(tmp_path, "ds.json", text)), gpus=256)

    # 256 = 2 x 4 x 32 sequences a step, each over 2 x 4 GPUs
    assert (layout.dp, layout.tp, layout.cp, layout.cp_kind) == (32, 4, 2, "ulysses")


def test_a_deepspeed_template_or_contradiction_is_refused(tmp_path: Path) -> None:
    template = written(tmp_path, "a.json", '{"train_batch_size": CONFIG_BATCH_SIZE}')
    clash = written(
        tmp_path, "b.json", '{"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4}'
    )

    with pytest.raises(SpecError, match="CONFIG_BATCH_SIZE"):
        read_run(template)
    with pytest.raises(SpecError, match="no multiple"):
        read_run(clash)


def test_gpt_neox_is_json_with_comments_and_hyphens(tmp_path: Path) -> None:
    path = written(tmp_path, "neox.yml", """{
  # parallelism
  "pipe-parallel-size": 4, "model-parallel-size": 2,
  "num-layers": 44, "hidden-size": 6144, "num-attention-heads": 64, "seq-length": 2048,
  "max-position-embeddings": 2048, "pos-emb": "rotary", "no-weight-tying": true,
  "gpt-j-residual": true, "make_vocab_size_divisible_by": 256, "padded_vocab_size": 50432,
  "train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 1},
  "fp16": {"fp16": true, "enabled": true}
}""")  # fmt: skip

    run = read_run(path)

    assert run.model is not None
    assert run.model.parameters() == 20_554_567_680
    assert run.model.parallel_block
    assert (run.layout["tp"], run.layout["pp"], run.layout["precision"]) == (2, 4, "fp16")


def test_a_torchtitan_file_of_2024_has_its_degrees_in_other_tables(tmp_path: Path) -> None:
    old = (
        '[model]\nname = "llama3"\nflavor = "70B"\n[training]\nbatch_size = 8\nseq_len = 8192\n'
        "data_parallel_degree = -1\ntensor_parallel_degree = 8\n"
        "[experimental]\npipeline_parallel_degree = 2\n"
    )

    run = read_run(written(tmp_path, "run.toml", old))

    assert (run.layout["tp"], run.layout["pp"], run.layout["seq"]) == (8, 2, 8192)


def test_replicas_of_a_sharded_model_leave_the_rest_to_a_shard_group(tmp_path: Path) -> None:
    text = TITAN.replace("replicate_degree = 1", "replicate_degree = 2")

    layout = layout_of(read_run(written(tmp_path, "run.toml", text)))

    assert (layout.dp_shard * 2, layout.dp_replicate) == (layout.dp, 2)


def test_the_rest_of_the_ranks_is_a_shard_group_once_the_gpus_are_known(tmp_path: Path) -> None:
    text = "[parallelism]\ntensor_parallel_degree = 2\ndata_parallel_replicate_degree = 4\n"
    run = read_run(written(tmp_path, "rest.toml", text))

    assert layout_of(run, gpus=64).dp_shard == 64 // 2 // 4
    with pytest.raises(LayoutError, match="dp_replicate=4 does not divide dp = 6"):
        layout_of(run, gpus=12)


def test_ranks_that_context_parallelism_splits_are_sharded_over_without_a_shard_degree(
    tmp_path: Path,
) -> None:
    head = "[parallelism]\ncontext_parallel_degree = 4\ndata_parallel_replicate_degree = 2\n"
    text = head + "data_parallel_shard_degree = 1\n"

    layout = layout_of(read_run(written(tmp_path, "cp.toml", text)))

    assert (layout.zero_stage, layout.cp, layout.dp, layout.dp_shard) == (3, 4, 2, 1)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("zero_hpz_partition_size", "8", "gathered within"),
        ("mics_shard_size", "8", "MiCS sums them with the last alone"),
        ("zero_quantized_weights", "true", "weights travel quantised"),
        ("offload_optimizer", '{"device": "cpu"}', "kept off the GPU"),
    ],
)
def test_what_changes_zeros_traffic_and_is_not_modelled_is_said(
    tmp_path: Path, key: str, value: str, said: str
) -> None:
    text = f'{{"train_batch_size": 512, "zero_optimization": {{"stage": 3, "{key}": {value}}}}}'
    off = '{"train_batch_size": 512, "zero_optimization": {"stage": 3, "mics_shard_size": -1}}'

    assert said in read_run(written(tmp_path, "ds.json", text)).assumed[key]
    assert "mics_shard_size" not in read_run(written(tmp_path, "off.json", off)).assumed


def test_a_trainers_file_that_only_names_a_deepspeed_file_is_none(tmp_path: Path) -> None:
    text = "base_model: x/y\ngradient_accumulation_steps: 4\ndeepspeed: ds.json\n"

    with pytest.raises(SpecError, match="no launch file of a kind we know"):
        read_run(written(tmp_path, "ax.yaml", text))


def test_replicas_of_what_is_not_sharded_are_plain_data_parallel(tmp_path: Path) -> None:
    degrees = "data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = {}\n"
    head = "[training]\nlocal_batch_size = 1\n[parallelism]\n"

    plain = read_run(written(tmp_path, "plain.toml", head + degrees.format(1)))
    hybrid = read_run(written(tmp_path, "hybrid.toml", head + degrees.format(8)))

    assert (plain.layout["dp"], plain.layout["zero_stage"]) == (4, 0)
    assert "data_parallel_replicate_degree" not in plain.assumed
    assert "dp_shard" not in plain.layout
    assert (hybrid.layout["dp"], hybrid.layout["zero_stage"]) == (32, 3)
    assert hybrid.layout["dp_shard"] == 8
