"""Rows of a table of steps: what is read, what is assumed and said, what is refused and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner.steptime.runs import batch_step, batches
from topologies.efficiency_catalogue import (
    chip_named,
    efficiency_of,
    read_efficiencies,
    shipped_efficiencies,
    shipped_halves,
)
from topologies.efficiency_text import efficiencies_text
from topologies.steps_table import StepsTable, read_steps, steps_from_text

ROW = {
    "id": "a", "source": "s", "model": "m", "layers": "4", "hidden": "1024", "heads": "8",
    "kv_heads": "8", "ffn": "4096", "vocab": "32000", "seq": "2048", "gpu": "H100",
    "n_gpus": "8", "tp": "2", "pp": "2", "dp": "2", "global_batch": "8", "micro_batch": "1",
    "precision": "bf16", "measured_step_s": "1.5",
}  # fmt: skip


def table(**cells: str) -> StepsTable:
    row = {**ROW, **cells}
    return steps_from_text(
        ",".join(row) + "\n" + ",".join(f'"{value}"' for value in row.values()) + "\n", "t.csv"
    )


def test_a_plain_row_is_read() -> None:
    run = table().runs[0]

    assert (run.model.layers, run.columns.tp, run.columns.gpus, run.measured_s) == (4, 2, 8, 1.5)
    assert run.chip == "H100-SXM"


@pytest.mark.parametrize(
    ("cells", "because"),
    [
        ({"n_gpus": "16"}, "tp x cp x dp x pp = 8 does not equal n_gpus = 16"),
        ({"gpu": "Abacus"}, "gpu='Abacus' is not in the catalogue"),
        ({"seq": ""}, "seq not stated"),
        ({"global_batch": "1"}, "global_batch = 1 is less than dp x micro_batch = 2"),
        ({"layers": "four"}, "layers='four' is not a number"),
        ({"tp": "0"}, "tp=0 is not a whole number of at least 1"),
        ({"hidden": "-5"}, "hidden=-5 is out of range: expected 0 or more"),
        ({"hidden": "nan"}, "hidden=nan is out of range: expected 0 or more"),
        ({"heads": "2.5"}, "heads=2.5 is not a whole number"),
        ({"measured_step_s": "0"}, "measured_step_s=0 is not above 0: leave it empty"),
        ({"precision": "int8"}, "precision='int8' is none of bf16, fp16, fp8, fp4"),
        ({"recompute": "sometimes"}, "recompute='sometimes' is none of none, selective, full"),
        ({"attention": "linear"}, "attention='linear' is none of mha, mqa, gqa, mla"),
        ({"zero_stage": "5"}, "zero=5 is not a ZeRO stage"),
        ({"zero_stage": "fsdp"}, "zero_stage='fsdp' is not a number"),
        ({"global_batch": "9"}, "does not divide global_batch = 9"),
        (
            {"tp": "8", "heads": "4", "kv_heads": "4", "dp": "1", "pp": "1"},
            "tp=8 does not divide the 4",
        ),
        ({"vpp": "2", "pp": "1", "dp": "4"}, "vpp=2 needs pp of at least 2"),
        ({"vpp": "4"}, "pp x vpp = 2 x 4 = 8 exceeds the 4 layers"),
        ({"ep": "2"}, "ep=2 needs a model with experts"),
        ({"n_experts": "8"}, "topk not stated"),
        ({"n_experts": "8", "topk": "2", "ep": "8"}, "etp x ep = 1 x 8 = 8 does not divide"),
        ({"intra_bw_GBps": "0"}, "intra_bw_GBps=0 is not above 0"),
        ({"scaleup_domain": "7.5"}, "scaleup_domain=7.5 is not a whole number"),
        ({"heads": "3", "tp": "1", "dp": "4"}, "head_dim not stated, and heads=3 does"),
    ],
)
def test_a_row_that_cannot_be_predicted_is_skipped_with_the_reason(
    cells: dict[str, str], because: str
) -> None:
    found = table(**cells)

    assert not found.runs
    assert because in found.skipped[0].because
    assert [row.name for row in found.rows] == ["a"]


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        ({"micro_batch": ""}, "micro_batch"),
        ({"recompute": "unknown (recipe-dependent)"}, "recompute"),
        ({"precision": ""}, "precision"),
        ({"precision": "fp16"}, "attention_kernel"),
        ({"inter_bw_GBps_per_gpu": ""}, "inter_bw_GBps_per_gpu"),
    ],
)
def test_what_a_row_does_not_say_is_assumed_and_said(cells: dict[str, str], name: str) -> None:
    assert name in table(**cells).runs[0].assumed


@pytest.mark.parametrize(
    ("text", "code"),
    [("bf16", 0), ("FP16", 1), ("bfloat16", 0), ("mxfp8", 2), ("fp8-cs", 2), ("nvfp4", 3)],
)
def test_precisions_are_read_as_sources_write_them(text: str, code: int) -> None:
    assert table(precision=text).runs[0].columns.precision == code


def test_a_row_without_a_measurement_is_predicted_all_the_same() -> None:
    assert table(measured_step_s="").runs[0].measured_s == 0.0


def test_overlap_follows_what_the_notes_say() -> None:
    usual = table(sp="1").runs[0].columns
    apart = table(sp="1", notes="Megatron-LM without comm overlap").runs[0].columns

    assert (usual.overlap_tensor, usual.overlap_gradients) == (1, 1)
    assert (apart.overlap_tensor, apart.overlap_gradients) == (0, 0)


def test_a_sliding_window_is_taken_by_its_size() -> None:
    run = table(attention="gqa+sliding128(half of the layers)").runs[0]

    assert run.model.windows == (128, 0, 128, 0)


def test_a_row_is_refused_with_all_of_its_faults() -> None:
    because = table(layers="four", measured_step_s="0", sp="yes").skipped[0].because

    assert because == (
        "layers='four' is not a number; measured_step_s=0 is not above 0: leave it empty where it "
        "is not known; sp='yes' is not a number"
    )


def test_a_row_whose_text_has_a_comma_too_many_is_refused() -> None:
    text = ",".join(ROW) + "\n" + ",".join(ROW.values()) + ", fp32 gradients\n"

    found = steps_from_text(text, "t.csv")

    assert "a text with commas needs quotes" in found.skipped[0].because


def test_a_column_that_is_there_twice_is_refused() -> None:
    text = ",".join([*ROW, "tp"]) + "\n"

    with pytest.raises(InputError, match=r"t\.csv:1: column tp is there more than once"):
        steps_from_text(text, "t.csv")


def test_columns_that_nobody_reads_are_named() -> None:
    assert table(zero="3").unknown == ("zero",)
    assert table(tokens_per_s_per_gpu="1").unknown == ()


def test_an_embedding_and_logits_may_count_as_layers_of_an_interleaved_pipeline() -> None:
    """NVIDIA runs 126 layers on 16 x 8 chunks."""
    assert table(layers="6", vpp="4").runs
    assert table(layers="5", vpp="4").skipped


@pytest.mark.parametrize(
    ("gpu", "cells", "domain"),
    [("GB200", {}, 72), ("GB200", {"gpus_per_node": "4"}, 72),
     ("GB200", {"scaleup_domain": "4"}, 4), ("H100", {}, 8), ("H100", {"gpus_per_node": "4"}, 4)],
)  # fmt: skip
def test_a_scale_up_domain_that_is_not_stated_is_the_usual_one(
    gpu: str, cells: dict[str, str], domain: int
) -> None:
    run = table(gpu=gpu, **cells).runs[0]

    assert run.supernode == domain
    assert ("scaleup_domain" in run.assumed) == ("scaleup_domain" not in cells)


def test_models_with_grouped_heads_or_experts_are_gated_where_a_row_does_not_say() -> None:
    grouped = table(kv_heads="2").runs[0]

    assert grouped.model.gated_mlp
    assert "gated_mlp" in grouped.assumed
    assert table(n_experts="8", topk="2").runs[0].model.gated_mlp
    assert not table().runs[0].model.gated_mlp
    assert not table(kv_heads="2", gated_mlp="0").runs[0].model.gated_mlp


def test_missing_columns_are_all_named() -> None:
    with pytest.raises(InputError, match=r"t\.csv:1: missing columns model, layers"):
        steps_from_text("id,source\na,b\n", "t.csv")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_steps(tmp_path / "none.csv")


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,\xff\xfe\x00")

    with pytest.raises(InputError, match="not UTF-8"):
        read_steps(path)


@pytest.mark.parametrize(
    ("called", "name"),
    [("A100", "A100-SXM-80"), ("h100", "H100-SXM"), ("NVIDIA GB200", "GB200"), ("B300", "B300-SXM"),
     ("MI300X", "MI300X"), ("H200", "H200-SXM")],
)  # fmt: skip
def test_an_accelerator_is_known_by_what_tables_call_it(called: str, name: str) -> None:
    chip = chip_named(called)

    assert chip is not None
    assert chip.name == name


def test_fitted_numbers_are_shipped_for_every_generation_that_was_measured() -> None:
    shipped = shipped_efficiencies()

    assert {"A100-SXM-80", "H100-SXM", "B200-SXM", "B300-SXM", "GB200", "GB300"} <= set(shipped)
    assert efficiency_of("H200-SXM") == efficiency_of("H100-SXM")
    assert efficiency_of("MI300X") is None
    assert all(one.rows > 0 and one.fitted_on for one in shipped.values())
    assert set(shipped_halves()[0]) == set(shipped_halves()[1])


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    shipped = {name: one for name, one in shipped_efficiencies().items() if name == "H100-SXM"}
    path = tmp_path / "own.yaml"
    path.write_text(efficiencies_text(shipped, {}, {}), encoding="utf-8")

    found = read_efficiencies(path)["H100-SXM"]

    assert found.gemm_share == pytest.approx(shipped["H100-SXM"].gemm_share, rel=1e-3)
    assert found.pace_ratio == pytest.approx(shipped["H100-SXM"].pace_ratio, rel=1e-3)


def test_faults_of_a_file_of_efficiencies_are_named_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("H100-SXM:\n  gemm: {bf16: 1.7}\n  colour: red\n", encoding="utf-8")

    with pytest.raises(InputError, match=r"own\.yaml:2:\d+") as refused:
        read_efficiencies(path)

    assert "colour" in str(refused.value)


@pytest.mark.parametrize("gpu", ["V100", "V100-SXM2-32GB", "H20", "MI300X", "MI355X", "A100-40GB"])
def test_accelerators_that_nobody_measured_are_predicted_and_said_to_be(gpu: str) -> None:
    run = table(gpu=gpu).runs[0]

    step = batch_step(batches([run])[0], efficiency_of(run.chip))

    assert 0.0 < float(step.total_s[0]) < 10.0
    if not gpu.startswith("A100"):
        assert "no measured step" in step.assumed["efficiency"]


def test_a_row_over_the_network_must_state_it_where_no_usual_nic_is_known() -> None:
    crossing = {"gpu": "Ascend-910B", "n_gpus": "16", "dp": "4"}

    assert "no usual NIC" in table(**crossing).skipped[0].because
    assert table(**crossing, inter_bw_GBps_per_gpu="25").runs


def test_two_gpus_of_a_full_mesh_have_one_link_between_them() -> None:
    """MI300X: 448 GB/s are seven links of 64; an H100's 450 go to any neighbour."""
    mesh, switch = table(gpu="MI300X").runs[0], table(gpu="H100").runs[0]

    assert mesh.links.inside.pair_bytes_per_s == pytest.approx(64e9)
    assert switch.links.inside.pair_bytes_per_s == float("inf")


def test_experts_are_as_wide_as_the_feed_forward_where_nothing_else_is_stated() -> None:
    assert table(n_experts="8", topk="2").runs[0].model.expert_ffn == 4096
    assert table(n_experts="8", topk="2", moe_ffn="512").runs[0].model.expert_ffn == 512


def test_an_a100_of_2020_is_the_one_of_40_gb_and_shares_the_fit_of_the_chip() -> None:
    early = table(gpu="A100", notes="DGX-A100 (2020); recompute inferred").runs[0]
    later = table(gpu="A100", notes="DGX-A100; recompute inferred").runs[0]

    assert early.accelerator.memory_bytes_per_s == pytest.approx(1555e9)
    assert "40 GB" in early.assumed["gpu"]
    assert later.accelerator.memory_bytes_per_s == pytest.approx(2039e9)
    assert early.chip == later.chip == "A100-SXM-80"
