"""40 published steps gathered last, predicted before anything was changed for them.

64 to 592 B200 (dense 15B to 405B, FSDP, MoE, FP8, NVFP4); B200 behind EFA; B300; GB200 and GB300
racks. With 32 of JUPITER's GH200, on which that chip's numbers are fitted since
(``gh200_runs.csv``), they were 18 % off at the mean at first sight, 49 % of them in the interval
that was printed. What was mended
has its reason elsewhere: full sharding gathers layer by layer and pays a ring's start-ups for each;
one table's B200 is a machine at a lower clock (its own products alone reach 0.49 of the peak where
others' reach 0.78); a new machine is off by more than was thought. No number of a step is fitted
on them; from now on they are a check and no blind test.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest

from planner.steptime.runs import predicted_memory_bytes
from planner.units import GIB
from tests.accuracy.outside_tables import OutsideTable, outside_table

# Mean error of each source: what was reached, and a little.
MOST_SHARE = {
    "aws_b200_efa": 0.11,
    "gcp_gb300": 0.05,
    "together_b200_dense": 0.18,
    "together_b200_moe": 0.08,
    "together_b300": 0.55,
    "together_nvl72": 0.14,
}


@pytest.fixture(scope="module")
def table() -> OutsideTable:
    return outside_table("blind_runs.csv")


@pytest.mark.parametrize("source", sorted(MOST_SHARE))
def test_the_error_of_a_source_stays_within(source: str, table: OutsideTable) -> None:
    assert table.error_share(source) < MOST_SHARE[source]


def test_none_is_off_by_a_factor_of_two_and_most_are_in_the_interval(table: OutsideTable) -> None:
    """The width is set on tables' means, these included: a guard, not a test of the interval."""
    assert len(table.runs) == 40
    assert table.error_share() < 0.145
    assert np.abs(np.log2(table.ratio)).max() < 1.0
    assert table.inside().mean() > 0.75


def test_they_are_predicted_better_than_by_a_constant_mfu_set_on_themselves(
    table: OutsideTable,
) -> None:
    assert table.of_constant_mfu() < 0.7


def test_fully_sharded_steps_grow_with_the_ring_as_they_were_measured_to(
    table: OutsideTable,
) -> None:
    """Llama 70B on 64 to 592 B200, two micro-batches each: 4.63 to 5.59 s."""
    grown = table.predicted_s("tg-70b-fsdp-592") / table.predicted_s("tg-70b-fsdp-64")

    assert grown == pytest.approx(5.59 / 4.63, rel=0.05)


def test_dispatch_buffers_of_experts_are_held_as_measured(table: OutsideTable) -> None:
    """Peaks of Qwen3 30B at micro-batches of 1, 2 and 4 on 64 B200: 44, 67 and 112 GiB."""
    with table.path.open(encoding="utf-8") as lines:
        stated = [row["measured_memory_GiB"] for row in csv.DictReader(lines)]
    held = predicted_memory_bytes(table.runs) / GIB
    error = [one / float(gib) - 1 for one, gib in zip(held, stated, strict=True) if gib]

    assert len(error) == 3
    assert 0.0 < np.mean(error) < 0.07
