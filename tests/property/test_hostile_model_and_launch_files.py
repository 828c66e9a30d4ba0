"""Damaged and hostile model, layout and launch files end in a refusal: soon, small, no traceback.

Each run takes a good file, damages it in one to four places from a seed, and reads it. The result
is a model, a layout or an ``InputError`` within 2 seconds; nothing else.
"""

from __future__ import annotations

import json
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.net_routes_file import read_routes
from planner.errors import InputError
from tests.hostile import encoded, restructured
from tests.launch_texts import read_layout, read_run
from topologies.imported_run import ImportedRun, layout_of
from topologies.model_reader import read_model

CONFIG: dict[str, object] = {
    "model_type": "deepseek_v3", "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8,
    "vocab_size": 100, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 8, "n_shared_experts": 1,
    "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1,
    "moe_layer_freq": [0, 1, 1, 1], "n_group": 2, "topk_group": 1, "sliding_window": 16,
    "layer_types": ["full_attention"] * 4, "text_config": None, "tie_word_embeddings": False,
}  # fmt: skip
HF = json.dumps(CONFIG, indent=1)

SEEDS: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "hf": ("config.json", HF, read_model),
    "model": ("model.yaml", """name: small
hidden: 64
vocab: 100
layers: 4
attention: {kind: gqa, heads: 8, kv_heads: 2, head_dim: 8, qk_norm: true}
ffn: 128
moe: {experts: 8, top_k: 2, expert_ffn: 32, layers: "[0] + [1]*3", router_groups: 2}
windows: "[16, 0]*2"
""", read_model),
    "layout": ("layout.yaml", """tp: 2
cp: 1
ep: 2
dp: 4
pp: 2
zero: 1
global_batch: 16
precision: bf16
sequence_parallel: true
""", read_layout),
    "script": ("run.sh", r"""#!/bin/bash
GPUS_PER_NODE=8
NNODES=${NNODES:-4}
A=3; B=$((A * 2 + 1))
if [ $A -eq 3 ]; then TP=2; else TP=4; fi
MODEL_ARGS=(
    --num-layers $B --hidden-size 64 --num-attention-heads 8  # comment
    --moe-layer-freq "([0]*1+[1]*6)" --num-experts 8 --vocab-size 256
)
cat <<EOT
x
EOT
torchrun --nnodes $NNODES --nproc_per_node $GPUS_PER_NODE x.py "${MODEL_ARGS[@]}" \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-layout 'E(t|)*6tL' --bf16
""", read_run),
    "megatron": ("model_config.yaml", """MODEL_ARGS:
  --tensor-model-parallel-size: 2
  --num-layers: 4
  --hidden-size: 64
  --num-attention-heads: 8
  --vocab-size: 256
  --window-size: "16,0"
  --moe-layer-freq: ([0]*1+[1]*3)
  --num-experts: 8
  --swiglu: true
""", read_run),
    "primus": ("primus.yaml", """modules:
  trainer:
    framework: megatron
    model: ${MODEL:small}.yaml
    overrides:
      tensor_model_parallel_size: ${TP:2}
      num_layers: 4
      hidden_size: 64
""", read_run),
    "nemo": ("nemo.yaml", """trainer: {num_nodes: 2, devices: 8, precision: bf16}
model:
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 2
  num_layers: 4
  hidden_size: 64
  ffn_hidden_size: ${multiply:4, ${.hidden_size}}
  num_attention_heads: 8
  vocab_size: 256
""", read_run),
    "bridge": ("bridge.yaml", """model:
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 2
  num_layers: 4
  hidden_size: 64
  ffn_hidden_size: 128
  num_attention_heads: 8
  gated_linear_unit: true
  vocab_size: 256
train: {global_batch_size: 8, micro_batch_size: 1}
dataset: {sequence_length: 128}
ddp: {use_distributed_optimizer: true, overlap_grad_reduce: true}
mixed_precision: bf16_mixed
""", read_run),
    "routes": ("routes.yaml", """routes:
- {name: a-to-c, path: [a, b, c]}
- {path: [d, a, b], classes: [0, 1]}
ends_at: [a]
""", read_routes),
    "torchtitan": ("run.toml", """# preset for 128 H100 GPUs
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 2
seq_len = 8192
[parallelism]
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "1F1B"
[activation_checkpoint]
mode = "full"
""", read_run),
    "deepspeed": ("ds.json", """{
 "train_batch_size": 64, "train_micro_batch_size_per_gpu": 4,
 "zero_optimization": {"stage": 3, "overlap_comm": true},
 "bf16": {"enabled": true}, "num_layers": 4, "hidden_size": 64, "num_attention_heads": 8,
 "vocab_size": 100, "pipe_parallel_size": 2
}""", read_run),
    "mlperf": ("config_2x8x4xtp2pp2.sh", """export DGXNNODES=2
export DGXNGPU=8
export MINIBS=4
export TENSOR_MODEL_PARALLEL=2
export PIPELINE_MODEL_PARALLEL=2
export FP8=True
""", read_run),
}  # fmt: skip

HOSTILE = (
    "NaN", "Infinity", "-1", "0", "1e999", "9" * 400, "0x" + "f" * 5000, "true", "null", '""',
    "[" * 500, "{" * 500, "(" * 500, "[1]*99999999", "[0]*9*9*9*9*9*9*9", "&a [*a, *a]", "*a",
    "!!python/object:os.system", "${", "$((", "$(", "${A:-${A:-${A}}}", "`x`", "'", '"', "\\",
    "\x00", "\u202e", "\ud7ff", "\r", "\t", "#", "---\n", "<<EOF", "<<: *a", ": ", "- ", ",", "}",
    "]", ")", "=", "A=$A$A$A$A\n", "--", "--num-layers", "1_000", "1" * 20, "é", "%s", "|", "||",
    "if [ 1 ]; then\n", "fi\n", "extends: [a.yaml]\n", "T" * 20_000, "(t|)*9999" * 50,
)  # fmt: skip


def damaged(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice((0, 1, 3, 10, 40)))
        kind = chance.randrange(5)
        if kind == 0:
            text = text[:start] + text[end:]
        elif kind == 1:
            text = text[:end] + text[start:end] + text[end:]
        elif kind == 2:
            text = text[:start] + chance.choice(HOSTILE) + text[end:]
        elif kind == 3:
            words = text.split(" ")
            words[chance.randrange(len(words))] = chance.choice(HOSTILE)
            text = " ".join(words)
        else:
            text = text[:start] if chance.random() < 0.3 else text[:start] + text[start:][::-1]
    return text


def check(kind: str, seeds: range, folder: Path) -> None:
    name, good, read = SEEDS[kind]
    path = folder / name
    for seed in seeds:
        chance = random.Random(f"{kind} {seed}")
        text = restructured(good, chance) if chance.random() < 0.4 else good
        text = damaged(text, chance) if chance.random() < 0.7 else text
        path.write_bytes(encoded(text, chance))
        start = time.process_time()
        refused: tuple[str, ...] | None = None
        try:
            found = read(path)
            if isinstance(found, ImportedRun):
                layout_of(found, gpus=32)
        except InputError as error:
            refused = error.faults
        except Exception as error:
            raise AssertionError(f"{kind} {seed}: {error!r}\n{text[:3000]}") from error
        assert refused is None or refused, f"{kind} {seed}"
        for fault in refused or ():
            assert 0 < len(fault) < 2000, f"{kind} {seed}"
            assert fault.replace("\n", " ").isprintable(), f"{kind} {seed}"
        assert time.process_time() - start < 2, f"{kind} {seed}"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_000_000  # KiB, whole process


@pytest.mark.parametrize("kind", SEEDS)
def test_the_undamaged_file_is_read(kind: str, tmp_path: Path) -> None:
    name, good, read = SEEDS[kind]
    path = tmp_path / name
    path.write_text(good, encoding="utf-8")

    assert read(path)


@pytest.mark.parametrize("kind", SEEDS)
def test_a_damaged_file_is_read_or_refused(kind: str, tmp_path: Path) -> None:
    check(kind, range(60), tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", SEEDS)
def test_thousands_of_damaged_files_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    check(kind, range(60, 3060), tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.json", json.dumps(CONFIG | {"moe_layer_freq": [1] * 40_000})),
        ("config.json", json.dumps(CONFIG | {"layer_types": ["a"] * 40_000})),
        ("config.json", json.dumps(CONFIG | {"moe_layer_freq": 1, "mlp_only_layers": [0] * 9_999})),
        ("config.json", json.dumps(CONFIG | {"model_type": "a" * 240_000})),
        ("config.json", "[" * 250_000),
        ("config.json", HF + " " * 2_000_000),
        ("run.toml", "[parallelism]\ntensor_parallel_degree = 1\n" + "a." * 100_000 + "b = 1\n"),
        ("run.toml", "[parallelism]\ntensor_parallel_degree = 1\n[" + "a . " * 60_000 + "b]\n"),
        ("run.toml", "[parallelism]\ntensor_parallel_degree = 1\nx = " + "[" * 200_000),
        ("run.toml", "[parallelism]\ntensor_parallel_degree = " + "9" * 250_000),
        ("layout.yaml", "tp: [" + "1," * 40_000 + "1]"),
        ("model.yaml", "hidden: 1\nlayers: 9\nwindows: [" + "1," * 40_000 + "1]"),
    ],
    ids=lambda value: value[:12],
)
def test_a_large_file_is_refused_soon(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    start = time.process_time()
    with pytest.raises(InputError):
        (read_layout if name == "layout.yaml" else read_model)(path)

    assert time.process_time() - start < 4
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_000_000


@pytest.mark.parametrize("size", [30_000, 120_000, 900_000])
@pytest.mark.parametrize(
    "piece",
    ["a", "$A", "${A", "'", '"', "(", "A=(", "--x ", "\\", "\\\n", "#\n", "<<E\n", "[1]*2+"],
)
def test_a_long_script_of_one_repeated_piece_is_done_with_soon(
    piece: str, size: int, tmp_path: Path
) -> None:
    path = tmp_path / "run.sh"
    path.write_text("--num-layers 4 " + piece * (size // len(piece)), encoding="utf-8")

    start = time.process_time()
    with pytest.raises(InputError):
        layout_of(read_run(path))

    assert time.process_time() - start < 2
