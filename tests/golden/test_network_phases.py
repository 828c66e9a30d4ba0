"""Training, prefill and decode on one network: figures worked out by hand from alpha and beta."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.collectives.links import Spread, two_tiers
from planner.errors import InputError
from planner.network.phases import (
    PhaseLoad,
    PhaseSpreads,
    model_phases,
    phase_load,
    reductions_per_layer,
)
from planner.units import GB, MIB, MS, US
from topologies.model_reader import read_model

LINKS = two_tiers(
    inside_bytes_per_s=450 * GB,
    nic_bytes_per_s=50 * GB,
    inside_latency_s=3 * US,
    nic_latency_s=4 * US,
)


def loads(name: str, tp: int, ep: int, **more: float) -> dict[tuple[str, str], PhaseLoad]:
    spreads = PhaseSpreads(
        tensor=Spread.of(tp, 8), gradients=Spread.of(16, 8), experts=Spread.of(ep, 8)
    )
    found = model_phases(read_model(name), spreads, LINKS, gradient_bytes=192 * MIB, **more)  # type: ignore[arg-type]
    return {(load.phase, load.collective): load for load in found}


def test_decode_of_a_10_kib_token_is_one_start_up_and_hardly_any_transfer() -> None:
    """qwen3-32b: 5120 wide, 64 layers. Each of 8 ranks sends its 10 KiB to 7 others at once."""
    decode = loads("qwen3-32b", 8, 1)["decode", "all_reduce"]

    assert decode.payload_bytes == 5120 * 2
    assert (decode.times, decode.per_layer) == (128, 2)
    assert decode.algorithm == "one_shot"
    assert decode.startup_s == pytest.approx(3 * US)
    assert decode.transfer_s == pytest.approx(7 * 10240 / (450 * GB))
    assert decode.total_s == pytest.approx(128 * (3 * US + 7 * 10240 / (450 * GB)))
    assert decode.startup_share == pytest.approx(decode.startup_s / (decode.total_s / 128))
    assert decode.dominates == "start-up"


def test_prefill_of_4096_tokens_sends_40_mib_both_ways_of_a_direct_exchange() -> None:
    """Two start-ups and 2 x 7/8 of 40 MiB at the scale-up rate."""
    prefill = loads("qwen3-32b", 8, 1)["prefill", "all_reduce"]

    assert prefill.payload_bytes == 40 * MIB
    assert prefill.startup_s == pytest.approx(2 * 3 * US)
    assert prefill.transfer_s == pytest.approx(2 * 7 / 8 * 40 * MIB / (450 * GB))
    assert prefill.dominates == "bandwidth"
    assert prefill.gain_twice_rate_share == pytest.approx(
        prefill.transfer_s / 2 / (prefill.startup_s + prefill.transfer_s)
    )


def test_training_meets_its_budget_or_misses_it_by_the_time_of_one_reduction() -> None:
    met = loads("qwen3-32b", 8, 1, budget_s=3 * MS)["training", "all_reduce"]
    missed, just = (
        loads("qwen3-32b", 8, 1, budget_s=met.total_s * part)["training", "all_reduce"]
        for part in (0.999, 1)
    )

    assert (met.in_budget, missed.in_budget, just.in_budget) == (True, False, True)
    assert met.times == 1
    assert met.total_s == pytest.approx(met.startup_s + met.transfer_s)


def test_experts_add_an_all_to_all_there_and_back_in_each_moe_layer() -> None:
    """DeepSeek-V3: 7168 wide, 58 MoE layers, 8 experts a token: 128 tokens over 64 GPUs send
    128 x 8 x 7168 x 2 / 64 = 224 KiB to each other one; 56 of 63 lie outside the 8 of a node."""
    decode = loads("deepseek-v3", 1, 64, decode_tokens=128)["decode", "all_to_all"]

    assert decode.payload_bytes == 224 * 1024
    assert (decode.times, decode.per_layer) == (116, 2)
    assert decode.transfer_s == pytest.approx(56 * 224 * 1024 / (50 * GB))
    assert decode.startup_s == pytest.approx(4 * US)


def test_without_tensor_parallelism_only_experts_are_priced() -> None:
    assert set(loads("deepseek-v3", 1, 8)) == {
        ("training", "all_reduce"),
        ("prefill", "all_to_all"),
        ("decode", "all_to_all"),
    }


def test_a_parallel_block_reduces_once_a_layer() -> None:
    model = read_model("qwen3-32b")

    assert reductions_per_layer(model) == 2
    assert reductions_per_layer(replace(model, parallel_block=True)) == 1


@pytest.mark.parametrize(
    ("name", "tp", "ep", "says"),
    [
        ("qwen3-32b", 1, 1, "tp=1: expected 2 or more"),
        ("qwen3-32b", 8, 2, "ep=2: qwen3-32b has no experts"),
        ("deepseek-v3", 1, 3, "ep=3: expected a divisor of the 256 experts"),
    ],
)
def test_groups_that_cannot_be_are_refused(name: str, tp: int, ep: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        loads(name, tp, ep)


def test_a_start_up_below_zero_is_refused() -> None:
    links = two_tiers(inside_bytes_per_s=1.0, nic_bytes_per_s=1.0, nic_latency_s=-1.0)

    with pytest.raises(InputError, match=r"cluster_latency_s=-1\.0: expected 0"):
        phase_load("decode", 1.0, 1, Spread.of(2, 8), links)
