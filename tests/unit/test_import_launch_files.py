"""NeMo and MLPerf files, and launch files of every kind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.errors import LayoutError, SpecError
from tests.launch_texts import megatron, read_run, written
from topologies.import_mlperf import import_mlperf_name
from topologies.imported_run import layout_of

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
