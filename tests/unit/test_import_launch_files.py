"""Training launch files of every kind: what they say, and what they leave unsaid."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.errors import LayoutError, SpecError
from topologies.import_megatron import import_megatron_script
from topologies.import_mlperf import import_mlperf_name
from topologies.imported_run import ImportedRun, layout_of
from topologies.launch_reader import read_run
from topologies.model_reader import read_model
from topologies.pattern_text import parse_pattern

DEEPSEEK = r"""#!/bin/bash
#SBATCH --nodes=256
set -x
GPUS_PER_NODE=8
NNODES=${NNODES:-"256"}
N_DENSE_LAYERS=3
N_MOE_LAYERS=58
export TP=${TP:-2}

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES   # from the scheduler
    --master_addr $(hostname)
)
MODEL_ARGS=(
	--num-layers	$((N_DENSE_LAYERS + N_MOE_LAYERS))
    --moe-layer-freq "'([0]*3+[1]*58)'"
    --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128
    --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512
    --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128
    --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048
    --moe-shared-expert-intermediate-size 2048 --moe-router-enable-expert-bias
    --moe-router-num-groups 8 --moe-router-group-topk 4
    --swiglu --normalization RMSNorm --disable-bias-linear
    --untie-embeddings-and-output-weights --position-embedding-type rope
    --vocab-size 129280 --make-vocab-size-divisible-by 1 --mtp-num-layers 1
    # --num-layers 14
)
TRAINING="--seq-length 4096 --micro-batch-size 1 \
  --global-batch-size 15360 --bf16"
cat <<EOT
--tensor-model-parallel-size 64
EOT
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    "${MODEL_ARGS[@]}" $TRAINING \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size 16 \
    --expert-model-parallel-size 64 --expert-tensor-parallel-size 1 \
    --use-distributed-optimizer --sequence-parallel --overlap-grad-reduce \
    --moe-enable-deepep --recompute-granularity selective
"""

MINIMAL = "--tensor-model-parallel-size 2 --num-layers 4 --hidden-size 64 --num-attention-heads 8 "


def script(text: str) -> ImportedRun:
    return import_megatron_script(text, name="run.sh")


def megatron(flags: str) -> ImportedRun:
    return script(f"python pretrain_gpt.py {MINIMAL} --vocab-size 256 {flags}\n")


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def faults(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        script(text)
    return str(caught.value)


def test_a_deepseek_launch_script_is_read_in_full() -> None:
    run = script(DEEPSEEK)

    assert run.model is not None
    assert run.model.parameters() == 671_026_419_200
    assert run.gpus == 2048
    layout = layout_of(run)
    assert (layout.tp, layout.pp, layout.ep, layout.etp, layout.dp) == (2, 16, 64, 1, 64)
    assert (layout.zero_stage, layout.recompute, layout.ep_copies) == (1, "selective", "domain")
    assert layout.overlap_gradients
    assert not layout.overlap_parameters


def test_a_variable_set_from_outside_wins_over_the_default() -> None:
    run = import_megatron_script(DEEPSEEK, name="run.sh", preset={"TP": "4", "NNODES": "128"})

    assert run.layout["tp"] == 4
    assert run.gpus == 1024


def test_a_repeated_argument_counts_as_given_last() -> None:
    assert megatron("--micro-batch-size 1 --micro-batch-size 4").layout["micro_batch"] == 4


def test_an_equals_sign_separates_as_a_blank_does() -> None:
    assert megatron("--micro-batch-size=4").layout["micro_batch"] == 4


def test_megatrons_own_defaults_are_kept() -> None:
    run = megatron("")

    model = run.model
    assert model is not None
    assert not model.gated_mlp
    assert model.ffn == 256
    assert model.mlp_bias
    assert model.norm_bias
    assert model.tied_embeddings
    assert model.attention.kv_heads == 8
    assert run.layout["zero_stage"] == 0
    assert run.layout["sequence_parallel"] is False
    assert run.layout["recompute"] == "none"


def test_swiglu_alone_gives_two_thirds_of_four_times_the_width() -> None:
    assert megatron("--swiglu").model.ffn == 128  # type: ignore[union-attr]


def test_grouped_queries_need_the_flag_or_the_number() -> None:
    grouped = megatron("--group-query-attention --num-query-groups 2").model

    assert grouped is not None
    assert grouped.attention.kv_heads == 2


def test_the_expert_tensor_degree_defaults_to_the_tensor_degree() -> None:
    run = megatron("--num-experts 8 --expert-model-parallel-size 4")

    assert run.layout["etp"] == 2
    assert "Megatron's default" in run.assumed["etp"]


def test_the_vocabulary_is_padded_and_the_padding_said() -> None:
    run = megatron("")

    assert run.model is not None
    assert run.model.vocab == 256
    assert megatron("--make-vocab-size-divisible-by 100").model.vocab == 400  # type: ignore[union-attr]


def test_a_vocabulary_nobody_states_leaves_the_model_unread_but_not_the_layout() -> None:
    run = script(f"python pretrain.py {MINIMAL} --tokenizer-model $HOME/unheard-of\n")

    assert run.model is None
    assert "vocab_size" in run.assumed["model"]
    assert run.layout["tp"] == 2


def test_a_known_tokenizer_gives_the_vocabulary() -> None:
    run = script(f"python pretrain.py {MINIMAL} --tokenizer-type Llama3Tokenizer\n")

    assert run.model is not None
    assert run.model.vocab == 128256
    assert "tokenizer" in run.assumed["vocab"]


@pytest.mark.parametrize(
    ("flags", "vpp"),
    [
        ("--num-layers-per-virtual-pipeline-stage 1", 2),
        ("--num-virtual-stages-per-pipeline-rank 2", 2),
        ("--pipeline-model-parallel-layout 'Et|t|t|tL'", 2),
        ("--pipeline-model-parallel-layout 'E(t|)*3tL'", 2),
        ("--pipeline-model-parallel-layout 'Ett|ttL'", 1),
        ("", 1),
    ],
)
def test_virtual_stages_are_said_in_three_ways(flags: str, vpp: int) -> None:
    assert megatron(f"--pipeline-model-parallel-size 2 {flags}").layout["vpp"] == vpp


def test_uneven_stages_are_taken_as_even_and_said_so() -> None:
    run = megatron("--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 1")

    assert "even" in run.assumed["decoder_first_pipeline_num_layers"]


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        ("--use-tp-pp-dp-mapping", "order", "tp-cp-ep-pp-dp"),
        ("--fp8-format hybrid --bf16", "precision", "fp8"),
        ("--fp16", "precision", "fp16"),
        ("--recompute-activations", "recompute", "selective"),
        ("--recompute-granularity full", "recompute", "full"),
        ("--cp-comm-type a2a", "cp_kind", "ulysses"),
        ("--use-torch-fsdp2", "zero_stage", 3),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", "zero_stage", 2),
        ("--grad-reduce-in-bf16", "gradient_bytes", 2),
        ("--sequence-parallel", "sequence_parallel", True),
        ("--step-batch-size-schedule '0:384 200B:768'", "global_batch", 768),
        (
            "--use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16",
            "optimizer_bytes", 8,
        ),
    ],
)  # fmt: skip
def test_a_flag_becomes_a_field(flags: str, field: str, value: object) -> None:
    assert megatron(flags).layout[field] == value


def test_windows_on_every_other_layer_are_read() -> None:
    run = megatron("--window-size 128,0 --window-attn-skip-freq 2 --softmax-type learnable")

    assert run.model is not None
    assert run.model.windows == (128, 0, 128, 0)
    assert run.model.attention.sinks


def test_a_hybrid_model_is_not_read_but_its_layout_is() -> None:
    run = megatron("--hybrid-override-pattern M-M*")

    assert run.model is None
    assert "not modelled" in run.assumed["model"]


def test_a_test_that_can_be_decided_is_decided() -> None:
    text = (
        "MOE=1\nif [ $MOE -eq 1 ]; then\n  TP=4\nelse\n  TP=8\nfi\n"
        f"python x.py {MINIMAL} --tensor-model-parallel-size $TP\n"
    )

    assert script(text).layout["tp"] == 4
    assert script(text.replace("MOE=1", "MOE=0")).layout["tp"] == 8


def test_a_value_that_only_the_shell_knows_is_refused_and_never_guessed() -> None:
    text = faults(f"python x.py {MINIMAL} --pipeline-model-parallel-size $(nproc)\n")

    assert "run.sh:1: pipeline_model_parallel_size: its value is only known to the shell" in text
    assert "only known to the shell" in faults(
        f'if [ "$MODEL" = 8b ]; then PP=2; fi\npython x.py {MINIMAL} '
        "--pipeline-model-parallel-size $PP\n"
    )


def test_every_bad_argument_is_named_with_its_line() -> None:
    text = faults(
        "python x.py --tensor-model-parallel-size two \\\n --pipeline-model-parallel-size 0 \\\n"
        " --micro-batch-size -1 --seq-length 4e3\n"
    )

    for name in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "micro_batch_size"):
        assert name in text
    assert "run.sh:1:" in text
    assert "run.sh:2:" in text
    assert "run.sh:3:" in text


@pytest.mark.parametrize("text", ["", "echo hello\n", "ls --all\n", "# --num-layers 4\n"])
def test_a_script_without_arguments_of_megatron_is_refused(text: str) -> None:
    assert "no Megatron arguments" in faults(text)


@pytest.mark.parametrize("text", ["A=(1 2", "x 'abc", "x ${A", "x $((1+2", 'A="b', "x $(ls"])
def test_an_unfinished_quote_or_bracket_is_refused(text: str) -> None:
    assert "run.sh" in faults(text)


def test_a_bomb_of_variables_is_refused_at_once() -> None:
    lines = ["A0=" + "x" * 100] + [f"A{i + 1}=$A{i}$A{i}$A{i}$A{i}" for i in range(30)]

    assert "expands to more than" in faults("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("[0]*3+[1]*2", (0, 0, 0, 1, 1)),
        ("([0,1]*2)", (0, 1, 0, 1)),
        ("2*[1]", (1, 1)),
        ("[1]*(1+2)", (1, 1, 1)),
    ],
)
def test_a_pattern_is_parsed_by_its_four_rules(text: str, value: object) -> None:
    assert parse_pattern(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "[", "[1", "[]", "[1]*", "[1]+1", "[1]*[1]", "__import__('os')", "[1]**9", "[1]*10**9",
        "[1]*100000", "1e9", "[x for x in y]", "(" * 100 + "1" + ")" * 100, "9" * 5000,
        "[1]*9*9*9*9*9*9*9*9*9*9", "[-1]", "[1]; 2",
    ],
)  # fmt: skip
def test_anything_else_is_no_pattern(text: str) -> None:
    with pytest.raises(SpecError):
        parse_pattern(text)


def test_a_test_yaml_of_megatron_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "model_config.yaml", """
ENV_VARS: {CUDA_DEVICE_MAX_CONNECTIONS: 1}
MODEL_ARGS:
  --tensor-model-parallel-size: 2
  --pipeline-model-parallel-size: 8
  --expert-model-parallel-size: 8
  --use-distributed-optimizer: true
  --sequence-parallel: true
  --swiglu: true
  --disable-bias-linear: true
  --untie-embeddings-and-output-weights: true
  --normalization: RMSNorm
  --position-embedding-type: rope
  --num-layers: 56
  --hidden-size: 6144
  --ffn-hidden-size: 16384
  --num-attention-heads: 48
  --group-query-attention: true
  --num-query-groups: 8
  --num-experts: 8
  --moe-router-topk: 2
  --tokenizer-type: Llama2Tokenizer
  --data-path: ${DATA_BLEND}
  --micro-batch-size: 1
  --global-batch-size: 256
  --lr: 1.2e-5
  --bf16: true
METRICS: ["iteration-time"]
""")  # fmt: skip

    run = read_run(path)

    assert run.model is not None
    assert run.model.parameters() == pytest.approx(141e9, rel=0.005)
    assert run.layout["etp"] == 2
    assert layout_of(run, gpus=128).dp == 8


def test_a_primus_file_extends_others_in_its_folder(tmp_path: Path) -> None:
    written(tmp_path, "base.yaml", "swiglu: true\nvocab_size: 256\nnum_query_groups: null\n")
    written(
        tmp_path, "small.yaml",
        "extends:\n  - base.yaml\nnum_layers: 4\nhidden_size: 64\nnum_attention_heads: 8\n",
    )  # fmt: skip
    path = written(tmp_path, "run.yaml", """
work_group: ${TEAM:amd}
modules:
  pre_trainer:
    framework: megatron
    config: pre_trainer.yaml
    model: ${PRIMUS_MODEL:small}.yaml
    overrides:
      tensor_model_parallel_size: ${PRIMUS_TP:2}
      micro_batch_size: 4
      bf16: true
""")  # fmt: skip

    run = read_run(path)

    assert run.model is not None
    assert run.model.gated_mlp
    assert (run.model.hidden, run.layout["tp"], run.layout["micro_batch"]) == (64, 2, 4)
    assert "pre_trainer.yaml" in run.assumed["config"]


def test_a_base_that_is_not_there_leaves_the_catalogue(tmp_path: Path) -> None:
    template = (
        "modules:\n  t:\n    model: llama3.1_405B.yaml\n    overrides:\n"
        "      tensor_model_parallel_size: 8\n      {extra}\n"
    )
    plain = read_run(written(tmp_path, "a.yaml", template.format(extra="seq_length: 8192")))
    changed = read_run(written(tmp_path, "b.yaml", template.format(extra="num_layers: 4")))

    assert plain.model is not None
    assert plain.model.name == "llama-3.1-405b"
    assert changed.model is None
    assert "num_layers" in changed.assumed["model"]


def test_files_that_extend_each_other_or_reach_outside_are_refused(tmp_path: Path) -> None:
    keys = "num_layers: 4\nhidden_size: 64\n"
    loop = written(tmp_path, "loop.yaml", f"extends: loop.yaml\n{keys}")
    written(tmp_path.parent, "outside.yaml", "vocab_size: 7\n")
    outside = written(tmp_path, "out.yaml", f"extends: ../outside.yaml\n{keys}")

    with pytest.raises(SpecError, match="extend each other"):
        read_run(loop)
    assert read_run(outside).model is None


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


NEMO = """
trainer: {num_nodes: 16, devices: 8, precision: bf16}
model:
  micro_batch_size: 1
  global_batch_size: 128
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 4
  virtual_pipeline_model_parallel_size: null
  sequence_parallel: true
  encoder_seq_length: 4096
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: ${multiply:4, ${.hidden_size}}
  num_attention_heads: 32
  vocab_size: 51200
  activation: gelu
  position_embedding_type: rope
  data:
    data_prefix: ???
  optim: {name: distributed_fused_adam}
"""


def test_a_nemo_file_multiplies_and_refers_to_itself(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, "nemo.yaml", NEMO))

    assert run.model is not None
    assert (run.model.ffn, run.model.max_positions) == (16384, 4096)
    assert run.gpus == 128
    layout = layout_of(run)
    assert (layout.tp, layout.pp, layout.dp, layout.zero_stage) == (4, 4, 8, 1)
    assert layout.precision == "bf16"


def test_a_reference_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    for wrong in ("${.nothing}", "${env:HOME}", "${.ffn_hidden_size}", "???"):
        text = NEMO.replace("${multiply:4, ${.hidden_size}}", wrong)

        with pytest.raises(SpecError, match="ffn_hidden_size"):
            read_run(written(tmp_path, "nemo.yaml", text))


def test_an_mlperf_name_encodes_nodes_gpus_batch_and_degrees() -> None:
    run = import_mlperf_name("config_DGXGB200_256x4x48xtp4pp8cp2.sh")

    layout = layout_of(run)
    assert (run.gpus, layout.tp, layout.pp, layout.cp, layout.dp) == (1024, 4, 8, 2, 16)
    assert layout.micro_batches == 48
    with pytest.raises(SpecError):
        import_mlperf_name("config_common.sh")
    with pytest.raises(SpecError, match="does not divide"):
        import_mlperf_name("3x8x1xtp5pp1")


def test_an_mlperf_script_exports_what_its_name_says_and_more(tmp_path: Path) -> None:
    path = written(tmp_path, "config_16x8x32xtp4pp4.sh", (
        "source config_common.sh\nexport MINIBS=64\nexport TENSOR_MODEL_PARALLEL=4\n"
        "export PIPELINE_MODEL_PARALLEL=4\nexport INTERLEAVED_PIPELINE=2\nexport DGXNNODES=16\n"
        "export DGXNGPU=8\nexport TP_PP_DP_MAPPING=True\nexport ASYM_PP_EMBED=True\n"
        "export MICRO_BATCH_SIZE=1\nexport FP8=True\n"
    ))  # fmt: skip

    run = read_run(path)

    assert run.gpus == 128
    assert (run.layout["vpp"], run.layout["dp"], run.layout["global_batch"]) == (2, 8, 512)
    assert (run.layout["precision"], run.layout["order"]) == ("fp8", "tp-cp-ep-pp-dp")
    assert "even" in run.assumed["ASYM_PP_EMBED"]


def test_a_layout_without_gpus_asks_for_them() -> None:
    with pytest.raises(LayoutError, match="give --gpus, a multiple of tp x cp x pp = 2"):
        layout_of(megatron(""))


def test_a_model_may_be_given_as_a_launch_file(tmp_path: Path) -> None:
    path = written(tmp_path, "run.sh", DEEPSEEK)

    assert read_model(path).parameters() == 671_026_419_200
    with pytest.raises(SpecError, match="give --model as well"):
        read_model(written(tmp_path, "ds.json", '{"train_batch_size": 4}'))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no launch file of a kind we know"):
        read_run(written(tmp_path, "x.yaml", "switches: 3\n"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00--num-layers 4")
    with pytest.raises(SpecError):
        read_run(tmp_path / "binary")


SHARED = Path(os.environ.get("PLANNER_SHARED", Path(__file__).parents[3] / "shared"))
REAL = [
    file
    for folder in ("megatron-yaml", "torchtitan-toml", "deepspeed-json")
    for file in sorted((SHARED / "inputs" / folder).glob("*"))
]


@pytest.mark.skipif(not REAL, reason="the folder of real input files is not here")
@pytest.mark.parametrize("file", REAL, ids=lambda file: file.name)
def test_a_real_launch_file_is_read_or_refused_with_a_reason(file: Path) -> None:
    try:
        run = read_run(file)
    except SpecError:
        assert "TEMPLATE" in file.name or "base" in file.name
    else:
        assert run.model is not None or "not read" in run.assumed["model"]
