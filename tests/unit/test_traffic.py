"""Families of a small dense and a small MoE model, payloads worked out by hand from the formulas.

V = b (s / cp) h e. Every expected number is written as the arithmetic that gives it.
"""

from __future__ import annotations

import numpy as np
import pytest

from planner.layout import Layout
from planner.model import Attention, ModelSpec
from planner.traffic import Family, step_families
from tests.oracles import digit_groups

HIDDEN, LAYERS, VOCAB, FFN, SEQ = 64, 4, 1000, 256, 128
HEADS, KV_HEADS, HEAD_DIM = 8, 4, 8
ATTENTION = HIDDEN * HEADS * HEAD_DIM * 2 + HIDDEN * KV_HEADS * HEAD_DIM * 2  # q, o; k, v
MLP = 3 * HIDDEN * FFN  # gated
DENSE_PARAMETERS = (
    2 * VOCAB * HIDDEN + HIDDEN + LAYERS * (ATTENTION + MLP + 2 * HIDDEN)
)  # embedding, head, final norm, layers with two norms


def _dense(*, tied: bool = False) -> ModelSpec:
    return ModelSpec(
        name="small",
        hidden=HIDDEN,
        vocab=VOCAB,
        layers=LAYERS,
        ffn=FFN,
        tied_embeddings=tied,
        attention=Attention(heads=HEADS, kv_heads=KV_HEADS, head_dim=HEAD_DIM, v_head_dim=HEAD_DIM),
    )


def _moe() -> ModelSpec:
    return ModelSpec(
        name="small-moe",
        hidden=HIDDEN,
        vocab=VOCAB,
        layers=LAYERS,
        ffn=FFN,
        attention=Attention(heads=HEADS, kv_heads=KV_HEADS, head_dim=HEAD_DIM, v_head_dim=HEAD_DIM),
        experts=8,
        top_k=2,
        expert_ffn=32,
        moe_layers=(False, True, True, True),
    )


def _families(model: ModelSpec, **degrees: object) -> dict[str, Family]:
    layout = Layout(seq=SEQ, **degrees)  # type: ignore[arg-type]
    return {family.name: family for family in step_families(model, layout)}


def _moved(family: Family) -> tuple[str, float, float]:
    return family.collective, family.payload_bytes, family.times_per_step


def test_the_model_of_these_tests_has_the_parameters_counted_by_hand() -> None:
    assert _dense().parameters() == DENSE_PARAMETERS


def test_tensor_parallel_without_sp_reduces_v_twice_a_layer_each_way() -> None:
    found = _families(
        _dense(), tp=2, micro_batch=2, global_batch=8, sequence_parallel=False, recompute="none"
    )

    volume = 2 * SEQ * HIDDEN * 2
    # 4 micro-batches x (2 x 4 layers + 1 of the embedding or the logits)
    assert _moved(found["tp_forward_reduce"]) == ("all_reduce", volume, 4 * (2 * LAYERS + 1))
    assert _moved(found["tp_backward_reduce"]) == ("all_reduce", volume, 4 * (2 * LAYERS + 1))
    # max, predicted logit and sum of exponentials, FP32, of each token
    assert _moved(found["tp_cross_entropy"]) == ("all_reduce", 2 * SEQ * 4, 4 * 3)
    assert set(found) == {"tp_forward_reduce", "tp_backward_reduce", "tp_cross_entropy"}


def test_tensor_parallel_with_sp_gathers_and_scatters_and_gathers_saved_inputs_again() -> None:
    found = _families(_dense(), tp=2, micro_batch=2, global_batch=8, recompute="none")

    volume, layers = 2 * SEQ * HIDDEN * 2, 2 * LAYERS
    assert _moved(found["tp_forward_gather"]) == ("all_gather", volume, 4 * (layers + 1))
    assert _moved(found["tp_forward_scatter"]) == ("reduce_scatter", volume, 4 * (layers + 1))
    # the embedding's gradient and the logits' saved input besides
    assert _moved(found["tp_backward_gather"]) == ("all_gather", volume, 4 * (2 * layers + 2))
    assert _moved(found["tp_backward_scatter"]) == ("reduce_scatter", volume, 4 * (layers + 1))


def test_full_recomputation_repeats_the_layers_of_the_forward_pass_only() -> None:
    found = _families(_dense(), tp=2, global_batch=1, recompute="full")

    assert found["tp_forward_gather"].times_per_step == 2 * 2 * LAYERS + 1
    assert found["tp_backward_scatter"].times_per_step == 2 * LAYERS + 1


def test_context_parallel_ring_passes_keys_and_values_cp_minus_one_times() -> None:
    found = _families(_dense(), cp=4, global_batch=3, recompute="none")

    hop = (SEQ // 4) * KV_HEADS * 2 * HEAD_DIM * 2  # tokens x (k + v) x 2 bytes
    assert _moved(found["cp_forward_ring"]) == ("ring", hop, 3 * LAYERS * 3)
    assert _moved(found["cp_backward_ring"]) == ("ring", 2 * hop, 3 * LAYERS * 3)  # k, v, dk, dv


def test_context_parallel_gather_and_ulysses_are_alternatives_to_the_ring() -> None:
    gathered = _families(_dense(), cp=4, recompute="none", cp_kind="all_gather")
    ulysses = _families(_dense(), cp=4, recompute="none", cp_kind="ulysses")

    tokens = SEQ // 4
    keys_and_values = tokens * KV_HEADS * 2 * HEAD_DIM * 2
    assert _moved(gathered["cp_forward_gather"]) == ("all_gather", 4 * keys_and_values, LAYERS)
    assert _moved(gathered["cp_backward_scatter"]) == (
        "reduce_scatter",
        4 * keys_and_values,
        LAYERS,
    )
    # q and o of 8 heads, k and v of 4, to each of 4 ranks
    exchanged = tokens * (HEADS * 2 + KV_HEADS * 2) * HEAD_DIM * 2
    assert _moved(ulysses["cp_forward_exchange"]) == ("all_to_all", exchanged / 4, LAYERS)


@pytest.mark.parametrize(
    ("zero_stage", "expected"),
    [
        (0, {"dp_reduce": ("all_reduce", 4, 1)}),
        (1, {"dp_scatter": ("reduce_scatter", 4, 1), "dp_gather": ("all_gather", 2, 1)}),
        (2, {"dp_scatter": ("reduce_scatter", 4, 1), "dp_gather": ("all_gather", 2, 1)}),
        (3, {"dp_scatter": ("reduce_scatter", 4, 6), "dp_forward_gather": ("all_gather", 2, 6),
             "dp_backward_gather": ("all_gather", 2, 6)}),
    ],
)  # fmt: skip
def test_each_zero_stage_moves_gradients_and_weights_its_own_way(
    zero_stage: int, expected: dict[str, tuple[str, int, int]]
) -> None:
    found = _families(_dense(), dp=4, global_batch=24, zero_stage=zero_stage)

    assert {name: _moved(family) for name, family in found.items()} == {
        name: (collective, DENSE_PARAMETERS * each_bytes, times)
        for name, (collective, each_bytes, times) in expected.items()
    }


def test_pipeline_sends_an_activation_a_micro_batch_and_boundary_each_way() -> None:
    found = _families(_dense(), pp=4, tp=2, global_batch=8)

    hop = SEQ * HIDDEN * 2 / 2  # one TP rank's share of the sequence
    assert _moved(found["pp_forward"]) == ("chain", hop, 8)
    assert _moved(found["pp_backward"]) == ("chain", hop, 8)
    assert "pp_wrap_forward" not in found
    assert "embedding_reduce" not in found


def test_interleaving_runs_the_chain_once_a_chunk_and_closes_it() -> None:
    layout = Layout(pp=2, vpp=2, global_batch=8, seq=SEQ)
    found = {family.name: family for family in step_families(_dense(), layout)}

    hop = SEQ * HIDDEN * 2
    assert _moved(found["pp_forward"]) == ("chain", hop, 16)
    assert _moved(found["pp_wrap_forward"]) == ("chain", hop, 8)
    assert found["pp_wrap_forward"].members(layout).tolist() == [[0, 1]]


def test_tied_embeddings_reduce_once_between_the_pipelines_ends() -> None:
    layout = Layout(pp=4, tp=2, global_batch=8, seq=SEQ)
    found = {family.name: family for family in step_families(_dense(tied=True), layout)}

    tied = found["embedding_reduce"]
    assert _moved(tied) == ("all_reduce", VOCAB * HIDDEN / 2 * 4, 1)
    assert tied.members(layout).tolist() == [[0, 6], [1, 7]]
    assert (tied.group_size, tied.groups) == (2, 2)


def test_experts_dispatch_and_combine_top_k_copies_in_each_moe_layer() -> None:
    found = _families(
        _moe(), tp=2, dp=4, ep=8, global_batch=8, micro_batch=2, dispatch_bytes=1, recompute="none"
    )

    copies = 2 * SEQ // 2 * 2  # tokens of one rank (SP) x top-2
    each = copies * HIDDEN / 8  # elements to each of 8 ranks
    moe_layers = 3  # one micro-batch
    assert _moved(found["ep_forward_dispatch"]) == ("all_to_all", each * 1, moe_layers)
    assert _moved(found["ep_forward_combine"]) == ("all_to_all", each * 2, moe_layers)
    assert _moved(found["ep_backward_dispatch"]) == ("all_to_all", each * 1, moe_layers)
    assert _moved(found["ep_backward_combine"]) == ("all_to_all", each * 2, moe_layers)
    assert found["ep_forward_dispatch"].group_size == 8


def test_expert_gradients_are_reduced_apart_from_dense_ones() -> None:
    found = _families(_moe(), dp=8, ep=4, global_batch=8, zero_stage=0)

    experts = 3 * 8 * 3 * HIDDEN * 32  # moe layers x experts x gated matrices
    router = 3 * 8 * HIDDEN
    dense = DENSE_PARAMETERS - 3 * MLP + router
    assert _moved(found["dp_reduce"]) == ("all_reduce", dense * 4, 1)
    assert _moved(found["edp_reduce"]) == ("all_reduce", experts / 4 * 4, 1)
    assert (found["dp_reduce"].group_size, found["edp_reduce"].group_size) == (8, 2)


def test_moe_layers_have_no_tensor_parallel_feed_forward() -> None:
    found = _families(_moe(), tp=2, global_batch=1, recompute="none", sequence_parallel=False)

    # attention in 4 layers, feed-forward in the dense one, and the embedding
    assert found["tp_forward_reduce"].times_per_step == LAYERS + 1 + 1


def test_families_name_the_groups_that_their_axes_span() -> None:
    layout = Layout(tp=2, cp=2, dp=4, pp=2, ep=4, global_batch=4, seq=SEQ)
    sizes = [axis.size for axis in layout.axes]

    for family in step_families(_moe(), layout):
        members = family.members(layout)
        whole = np.array(digit_groups(sizes, family.axes))
        expected = whole[:, [0, -1]] if family.ends_only else whole
        assert members.tolist() == expected.tolist(), family.name
        assert members.shape == (family.groups, family.group_size), family.name


def test_degrees_of_one_move_nothing() -> None:
    assert step_families(_dense(), Layout(seq=SEQ)) == ()
