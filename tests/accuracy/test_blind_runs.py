"""72 published steps gathered last, predicted before anything was changed for them.

GH200 four to a node behind 25 GB/s each, 32 to 4,096 of them (Qwen3 32B dense, 30B MoE); 64 to 592
B200 (dense 15B to 405B, FSDP, MoE, FP8, NVFP4); B200 behind EFA; GB200 and GB300 racks. At first
sight they were 18 % off at the mean, 49 % of them in the interval that was printed. What was mended
has its reason elsewhere: full sharding gathers layer by layer and pays a ring's start-ups for each;
one table's B200 is a machine at a lower clock (its own products alone reach 0.49 of the peak where
others' reach 0.78); a new machine is off by more than was thought. No number of a step is fitted
on them; from now on they are a check and no blind test.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from planner.steptime.runs import Run, predicted_memory_bytes
from planner.steptime.uncertainty import interval_s
from planner.steptime.validate import constant_mfu_error, predict
from planner.units import GIB
from topologies.efficiency_catalogue import shipped_efficiencies
from topologies.steps_table import read_steps

TABLE = Path(__file__).with_name("blind_runs.csv")

# Mean error of each source: what was reached, and a little.
MOST_SHARE = {
    "aws_b200_efa": 0.11,
    "gcp_gb300": 0.05,
    "jupiter_moe": 0.33,
    "jupiter_oellm_32b": 0.16,
    "jupiter_small": 0.23,
    "together_b200_dense": 0.18,
    "together_b200_moe": 0.08,
    "together_b300": 0.55,
    "together_nvl72": 0.14,
}


@pytest.fixture(scope="module")
def runs() -> tuple[Run, ...]:
    table = read_steps(TABLE)
    assert not table.skipped
    return table.runs


@pytest.fixture(scope="module")
def ratio(runs: tuple[Run, ...]) -> np.ndarray:
    answer = predict(runs, shipped_efficiencies()) / [run.measured_s for run in runs]
    for run, one in zip(runs, answer, strict=True):
        print(f"{run.name:28s} {run.measured_s:8.2f} s {one - 1:+.1%}")  # noqa: T201 - pytest -s
    return answer


@pytest.mark.parametrize("source", sorted(MOST_SHARE))
def test_the_error_of_a_source_stays_within(
    source: str, runs: tuple[Run, ...], ratio: np.ndarray
) -> None:
    mine = [i for i, run in enumerate(runs) if run.source == source]

    assert mine
    assert np.abs(ratio[mine] - 1).mean() < MOST_SHARE[source]


def test_none_is_off_by_a_factor_of_two_and_most_are_in_the_interval(
    runs: tuple[Run, ...], ratio: np.ndarray
) -> None:
    """The width is set on tables' means, these included: a guard, not a test of the interval."""
    efficiencies = shipped_efficiencies()
    inside = []
    for run, one in zip(runs, ratio, strict=True):
        reached = efficiencies[run.chip]
        low, high = interval_s(float(one), reached.spread, reached.machine_spread)
        inside.append(low <= 1 <= high)

    assert len(runs) == 72
    assert np.abs(ratio - 1).mean() < 0.17
    assert np.abs(np.log2(ratio)).max() < 1.0
    assert np.mean(inside) > 0.75


def test_they_are_predicted_better_than_by_a_constant_mfu_set_on_themselves(
    runs: tuple[Run, ...], ratio: np.ndarray
) -> None:
    assert np.abs(ratio - 1).mean() < 0.7 * constant_mfu_error(runs)


def test_fully_sharded_steps_grow_with_the_ring_as_they_were_measured_to(
    runs: tuple[Run, ...], ratio: np.ndarray
) -> None:
    """Llama 70B on 64 to 592 B200, two micro-batches each: 4.63 to 5.59 s."""
    step_s = {run.name: one * run.measured_s for run, one in zip(runs, ratio, strict=True)}

    grown = step_s["tg-70b-fsdp-592"] / step_s["tg-70b-fsdp-64"]
    assert grown == pytest.approx(5.59 / 4.63, rel=0.05)


def test_dispatch_buffers_of_experts_are_held_as_measured(runs: tuple[Run, ...]) -> None:
    """Peaks of Qwen3 30B at micro-batches of 1, 2 and 4 on 64 B200: 44, 67 and 112 GiB."""
    with TABLE.open(encoding="utf-8") as lines:
        stated = [row["measured_memory_GiB"] for row in csv.DictReader(lines)]
    held = predicted_memory_bytes(runs) / GIB
    error = [one / float(gib) - 1 for one, gib in zip(held, stated, strict=True) if gib]

    assert len(error) == 3
    assert 0.0 < np.mean(error) < 0.07
