"""Megatron's test YAML and Primus files."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import SpecError
from tests.launch_texts import read_run, written
from topologies.imported_run import layout_of


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


def test_a_nemo_2_file_has_its_degrees_in_the_trainers_strategy(tmp_path: Path) -> None:
    text = (
        "_target_: nemo.collections.llm.api.pretrain\n"
        "trainer:\n  devices: 8\n  num_nodes: 4\n  strategy:\n"
        "    tensor_model_parallel_size: 4\n    pipeline_model_parallel_size: 2\n"
        "    sequence_parallel: true\n"
        "data: {seq_length: 8192, global_batch_size: 512, micro_batch_size: 1}\n"
        "model:\n  config: {_target_: nemo.collections.llm.Llama3Config8B}\n"
    )

    run = read_run(written(tmp_path, "nemo.yaml", text))
    layout = layout_of(run)

    assert run.gpus == 32
    assert (layout.tp, layout.pp, layout.dp, layout.seq) == (4, 2, 4, 8192)
    assert (layout.global_batch, layout.sequence_parallel) == (512, True)
    assert "not read" in run.assumed["model"]


BRIDGE = """
model:
  _target_: megatron.bridge.models.llama.llama_provider.Llama3ModelProvider70B
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 4
  virtual_pipeline_model_parallel_size: 5
  context_parallel_size: 2
  sequence_parallel: true
  num_layers: 80
  hidden_size: 8192
  ffn_hidden_size: 28672
  num_attention_heads: 64
  num_query_groups: 8
  gated_linear_unit: true
  normalization: RMSNorm
  add_bias_linear: false
  share_embeddings_and_output_weights: false
  vocab_size: 128256
  fp8: null
train: {train_iters: 100, global_batch_size: 128, micro_batch_size: 2}
dataset: {sequence_length: 8192}
optimizer: {optimizer: adam, use_distributed_optimizer: true}
ddp: {overlap_grad_reduce: true, overlap_param_gather: true}
mixed_precision: bf16_mixed
"""


def test_a_megatron_bridge_file_has_its_batches_and_overlap_beside_the_model(
    tmp_path: Path,
) -> None:
    run = read_run(written(tmp_path, "run_config.yaml", BRIDGE))

    layout = layout_of(run, gpus=128)
    assert (layout.tp, layout.pp, layout.vpp, layout.cp, layout.dp) == (4, 4, 5, 2, 4)
    assert (layout.micro_batch, layout.global_batch, layout.seq) == (2, 128, 8192)
    assert (layout.zero_stage, layout.precision) == (1, "bf16")
    assert layout.overlap_gradients
    assert layout.overlap_parameters
    # Llama 3.1 70B (70,553,706,496) and two matrices of the 256 entries that pad the vocabulary
    assert run.model is not None
    assert run.model.parameters() == 70_553_706_496 + 2 * 256 * 8192
    assert "precision" not in run.assumed


def test_a_precision_recipe_of_megatron_bridge_may_be_fp8(tmp_path: Path) -> None:
    text = BRIDGE.replace("bf16_mixed", "bf16_with_fp8_current_scaling_mixed")

    assert read_run(written(tmp_path, "b.yaml", text)).layout["precision"] == "fp8"


def test_a_batch_in_a_part_that_is_not_read_is_named(tmp_path: Path) -> None:
    text = BRIDGE + "validation: {loop: {micro_batch_size: 8}}\n"

    run = read_run(written(tmp_path, "b.yaml", text))

    assert run.assumed["not_read"] == "validation.loop.micro_batch_size: of another part"


def test_layers_with_experts_may_be_listed_one_by_one(tmp_path: Path) -> None:
    """As Megatron Bridge saves DeepSeek-V3's: three dense layers, then experts."""
    flags = ", ".join(["0"] * 3 + ["1"] * 58)
    deepseek = {
        "num_layers": 61, "hidden_size": 7168, "ffn_hidden_size": 18432, "q_lora_rank": 1536,
        "num_attention_heads": 128, "multi_latent_attention": "true", "kv_lora_rank": 512,
        "qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "v_head_dim": 128, "moe_router_topk": 8,
        "num_moe_experts": 256, "moe_ffn_hidden_size": 2048, "gated_linear_unit": "true",
        "moe_shared_expert_intermediate_size": 2048, "moe_router_enable_expert_bias": "true",
        "normalization": "RMSNorm", "add_bias_linear": "false", "vocab_size": 129280,
        "share_embeddings_and_output_weights": "false", "make_vocab_size_divisible_by": 1280,
        "tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 16,
        "moe_layer_freq": f"[{flags}]", "recompute_modules": "[mla_up_proj, mlp]",
    }  # fmt: skip
    text = "model:\n" + "".join(f"  {key}: {value}\n" for key, value in deepseek.items())

    model = read_run(written(tmp_path, "run_config.yaml", text)).model

    assert model is not None
    assert model.parameters() == 671_026_419_200  # the released checkpoint, without MTP
    plain = "".join(f"{key}: {value}\n" for key, value in deepseek.items() if "num_moe" not in key)
    same = read_run(written(tmp_path, "args.yaml", plain.replace("gated_linear_unit", "swiglu")
        + "num_experts: 256\ndisable_bias_linear: true\n"
        "untie_embeddings_and_output_weights: true\n")).model  # fmt: skip
    assert same is not None
    assert same.moe_layers == model.moe_layers
