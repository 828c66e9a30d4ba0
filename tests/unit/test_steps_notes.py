"""How a row of a table of steps was run: what its notes say, and what a kind of software does."""

from __future__ import annotations

import pytest

from tests.unit.test_steps_table import table


@pytest.mark.parametrize(
    ("notes", "field", "value"),
    [
        ("DualPipe over 16 stages", "schedule", 3.0),
        ("DualPipe over 16 stages", "overlap_experts", 1.0),
        ("ZB-H1", "schedule", 2.0),
        ("dispatch in FP8, combine in BF16", "dispatch_bytes", 1.0),
        ("Megatron-DeepSpeed; no flash attention", "stack", 2.0),
        ("FSDP2; torch.compile", "stack", 3.0),
        ("FSDP2", "stack", 1.0),
        ("NeMo 25.02", "gradient_bytes", 2.0),
        ("NeMo 25.02; FP32 gradients", "gradient_bytes", 4.0),
        ("FSDP2; cuDNN attention", "newer_attention", 1.0),
        ("FSDP2; fused experts", "fused_experts", 1.0),
        ("FSDP2; FlashAttention 3", "newer_attention", 1.0),
        ("FSDP2; Flash Attention 4", "newer_attention", 1.0),
        ("FSDP2; torch.compile; FA3", "newer_attention", 1.0),
        ("FSDP2; README@1fa3c5", "newer_attention", 0.0),
        ("FSDP2; fused element-wise kernels", "stack", 3.0),
        ("FSDP2", "newer_attention", 0.0),
        ("HSDP", "shard_gpus", 2.0),  # dp 2 of a node of 8 with tp 2
        ("HSDP", "zero_stage", 3.0),
        ("FSDP", "shard_gpus", 0.0),
        ("FSDP2", "widened_bytes", 2.0),
        ("FSDP2; FP32 gradients", "widened_bytes", 0.0),
        ("FSDP2; gradients reduced in BF16", "widened_bytes", 0.0),
        ("FSDP", "widened_bytes", 0.0),
        ("FSDP2; torch.compile", "stops_early", 1.0),
        ("FSDP; PyTorch 2.0", "stops_early", 0.0),
        ("FSDP; PyTorch 2.2 nightlies", "stops_early", 1.0),
        ("Megatron FSDP", "stops_early", 0.0),
        ("CP by all-to-all", "cp_kind", 2.0),
        ("all-to-all dispatch", "cp_kind", 0.0),
        ("NeMo; NCCL all-to-all", "cp_kind", 0.0),
        ("dispatch by an all-gather", "cp_kind", 0.0),
        ("CP by all-to-all; all-to-all dispatcher", "cp_kind", 2.0),
        ("FSDP2, float8 all-gather", "cp_kind", 0.0),
        ("all-gather CP", "cp_kind", 1.0),
        ("experts' traffic all-to-all over the NICs", "cp_kind", 0.0),
        ("context parallel with a2a", "cp_kind", 2.0),
        ("", "schedule", 0.0),
        ("", "stack", 0.0),
    ],
)
def test_notes_say_how_a_row_was_run(notes: str, field: str, value: float) -> None:
    assert getattr(table(notes=notes).runs[0].columns, field) == value


@pytest.mark.parametrize(
    ("cells", "overlaps"),
    [
        ({"sp": "1"}, 1.0),
        ({"sp": "1", "zero_stage": "3"}, 0.0),
        ({"sp": "1", "zero_stage": "3", "notes": "async TP"}, 1.0),
        ({"sp": "1", "notes": "Megatron-LM without comm overlap"}, 0.0),
    ],
)
def test_tensor_traffic_overlaps_where_the_software_does_so(
    cells: dict[str, str], overlaps: float
) -> None:
    assert table(**cells).runs[0].columns.overlap_tensor == overlaps


@pytest.mark.parametrize(
    ("notes", "once_a_domain"),
    [
        ("NeMo; release 25.11", 1.0),
        ("Megatron-LM; HybridEP", 1.0),
        ("Megatron-LM; all-to-all dispatch", 0.0),
        ("NeMo; release 25.11; NCCL all-to-all", 0.0),
        ("Megatron-LM; alltoall token dispatcher", 0.0),
        ("Megatron-LM; moe-token-dispatcher-type alltoall", 0.0),
        ("Megatron-LM; dispatcher: A2A, fused permutation", 0.0),
        ("NeMo; DeepEP, an all-to-all dispatcher", 1.0),
        ("Megatron-LM; CP by all-to-all; dropless", 1.0),
        ("FSDP2; torch.compile", 0.0),
        ("FSDP2; torch.compile; DeepEP", 1.0),
        ("FSDP2; fused experts", 1.0),
    ],
)
def test_a_token_goes_to_each_domain_or_to_each_expert_as_its_dispatcher_sends_it(
    notes: str, once_a_domain: float
) -> None:
    run = table(n_experts="64", topk="6", moe_ffn="512", ep="2", notes=notes).runs[0]

    assert run.columns.domain_copies == once_a_domain
    assert ("dispatch" in run.assumed) == (notes == "FSDP2; torch.compile")


def test_interleaving_hides_the_experts_traffic_in_megatron_alone() -> None:
    cells = {"n_experts": "64", "topk": "6", "moe_ffn": "512", "ep": "2", "vpp": "2"}

    megatron = table(**cells, notes="NeMo; fused experts").runs[0].columns
    pytorch = table(**cells, notes="FSDP2; fused experts").runs[0].columns

    assert (megatron.overlap_experts, pytorch.overlap_experts) == (1.0, 0.0)


def test_a_router_limited_to_nodes_visits_so_many_groups() -> None:
    experts = {"n_experts": "64", "topk": "6", "moe_ffn": "512", "ep": "2"}

    free = table(**experts).runs[0].model
    limited = table(**experts, notes="router limited to 4 nodes").runs[0].model

    assert (free.router_groups, free.router_top_groups) == (0, 0)
    assert (limited.router_groups, limited.router_top_groups) == (8, 4)


@pytest.mark.parametrize(
    ("cells", "field", "value"),
    [
        ({"notes": "PyTorch FSDP"}, "zero_stage", 3.0),
        ({"notes": "DeepSpeed ZeRO-2"}, "zero_stage", 2.0),
        ({"notes": "FSDP", "zero_stage": "2"}, "zero_stage", 2.0),
        ({}, "zero_stage", 1.0),
        ({"precision": "fp16"}, "zero_stage", 0.0),
        ({"recompute": "uniform"}, "recompute", 2.0),
        ({"recompute": "selective(norms)"}, "recompute", 1.0),
    ],
)
def test_what_a_column_leaves_out_is_taken_from_the_notes_or_the_usual(
    cells: dict[str, str], field: str, value: float
) -> None:
    assert getattr(table(**cells).runs[0].columns, field) == value
