"""Megatron launch scripts: arguments, shell, and what they leave unsaid."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import SpecError
from tests.launch_texts import MINIMAL, faults, megatron, script, written
from topologies.import_megatron import import_megatron_script
from topologies.imported_run import layout_of
from topologies.model_reader import read_model

SHAPE = (
    "--num-layers 4 --hidden-size 64 --num-attention-heads 8 --seq-length 128 "
    "--micro-batch-size 1 --global-batch-size 16 --vocab-size 128 --max-position-embeddings 128"
)
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


def test_a_model_may_be_given_as_a_launch_file(tmp_path: Path) -> None:
    path = written(tmp_path, "run.sh", DEEPSEEK)

    assert read_model(path).parameters() == 671_026_419_200
    with pytest.raises(SpecError, match="give --model as well"):
        read_model(written(tmp_path, "ds.json", '{"train_batch_size": 4}'))


def test_words_that_only_the_shell_knows_leave_what_stands_before_them_as_it_is() -> None:
    """A conditional ``+=`` and a trailing ``"$@"`` are in half of all scripts."""
    text = (
        "MP=(--tensor-model-parallel-size 4 --sequence-parallel)\n"
        'if [ "$USE_DIST" = 1 ]; then\n  MP+=(--use-distributed-optimizer)\nfi\n'
        "MP+=(--context-parallel-size 2)\n"
        f'torchrun --nproc_per_node 8 --nnodes 2 t.py {SHAPE} "${{MP[@]}}" "$@"\n'
    )

    run = import_megatron_script(text, name="run.sh")

    assert (run.layout["tp"], run.layout["cp"], run.layout["sequence_parallel"]) == (4, 2, True)
    assert run.assumed["arguments"].startswith("run.sh:6: words that only the shell knows")


def test_a_value_that_only_the_shell_knows_is_still_refused() -> None:
    text = f"torchrun t.py --tensor-model-parallel-size $TP_SIZE {SHAPE}\n"

    with pytest.raises(SpecError, match="tensor_model_parallel_size: its value is only known to"):
        import_megatron_script(text, name="run.sh")


@pytest.mark.parametrize(
    "header",
    [
        "#SBATCH -N 16\n#SBATCH --gres=gpu:8\nsrun",
        "#SBATCH --nodes=16 # all\n#SBATCH --gpus-per-node=h100:8\nsrun",
        "#SBATCH --nodes 16\n#SBATCH --gres gpu:h100:8\nsrun",
        "deepspeed --num_nodes 16 --num_gpus 8",
        "srun --nodes=16 --ntasks-per-node=8",
    ],
)
def test_the_gpus_of_a_run_are_what_its_job_asks_for(header: str) -> None:
    text = f"{header} t.py --tensor-model-parallel-size 8 {SHAPE}\n"

    assert import_megatron_script(text, name="run.sh").gpus == 128


def test_arguments_in_a_quoted_command_are_read() -> None:
    command = f"cd /x && torchrun --nnodes 2 --nproc_per_node 8 t.py {SHAPE} 2>&1 | tee log"
    text = f'srun -l bash -c "{command}"\n'

    run = import_megatron_script(text, name="run.sh")

    assert run.gpus == 16
    assert run.model is not None


def test_a_comment_between_continued_lines_ends_the_command_and_that_is_said() -> None:
    """Bash runs the first part alone, and takes the second for a command."""
    text = f"torchrun t.py \\\n --tensor-model-parallel-size 8 \\\n# --x 1 \\\n {SHAPE}\n"

    with pytest.raises(
        SpecError, match=r"run\.sh: line 4: '--num-layers' begins a command of its own"
    ):
        import_megatron_script(text, name="run.sh")


def test_a_here_document_is_said_not_to_be_read() -> None:
    with pytest.raises(SpecError, match="a here-document is not read"):
        import_megatron_script(f"sbatch <<EOF\ntorchrun t.py {SHAPE}\nEOF\n", name="run.sh")


BRANCHES = """case $MODEL in
  big) EXTRA="--tensor-model-parallel-size 8";;
  *) EXTRA="--tensor-model-parallel-size 2";;
esac
"""


def test_arguments_that_only_the_shell_can_choose_are_refused() -> None:
    with pytest.raises(SpecError, match=r"run\.sh:2: EXTRA holds --tensor-model-parallel-size in"):
        import_megatron_script(f"{BRANCHES}torchrun t.py {SHAPE} $EXTRA\n", name="run.sh")


def test_a_branch_of_a_case_overrides_what_was_set_before_it() -> None:
    text = f"TP=2\ncase $MODEL in\n big) TP=8;;\nesac\ntorchrun t.py {SHAPE}"
    with pytest.raises(SpecError, match="only known to the shell"):
        import_megatron_script(f"{text} --tensor-model-parallel-size $TP\n", name="run.sh")


@pytest.mark.parametrize(
    ("start", "gpus"),
    [
        ("mpirun -np 32 -npernode 8 python", 32),
        ("srun -n 16 python", 16),
        ("srun -n 4 torchrun --nproc-per-node 8", None),  # four launchers, not four GPUs
    ],
)
def test_the_processes_of_a_starter_are_the_gpus(start: str, gpus: int | None) -> None:
    assert import_megatron_script(f"{start} t.py {SHAPE}\n", name="run.sh").gpus == gpus
