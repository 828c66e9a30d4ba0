"""64 published steps that no fit and no default was chosen on, predicted as a user would.

FSDP, HSDP and TP on 1 to 360 H200 with four to a node, FSDP on A100 and H100 behind 6 and 12 GB/s
a GPU, mixtures of experts of 20 B to 1 T under PyTorch on 8 to 1,024 H100, 530 B in 35 stages on
3,360 A100, and racks of GB200. At first sight they were 13 % off at the mean, 61 % of them in the
interval that is printed. What was mended has its reason elsewhere: PyTorch stops a recomputation
early, FSDP2 reduces gradients in FP32, a benchmark's router gives token i the experts ki to
ki + k - 1 (which sit in one node), and a machine that no fit has seen is off by more than layouts
of one that it has. No efficiency is fitted on them, but the width of intervals is set with them
in sight: from now on they are a check of errors, not of intervals, and no blind test.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.accuracy.outside_tables import OutsideTable, outside_table

# Mean error of each source: what was reached, and a little.
MOST_SHARE = {
    "dgxc_llama": 0.03,
    "ibm_fsdp": 0.06,
    "kempnerforge": 0.12,
    "mt_nlg": 0.21,
    "nemo_automodel": 0.17,
    "nemo_gb200_2504": 0.07,
    "nemo_gb200_2507": 0.06,
    "torchtitan_a100": 0.07,
}


@pytest.fixture(scope="module")
def table() -> OutsideTable:
    return outside_table("held_out_runs.csv")


@pytest.mark.parametrize("source", sorted(MOST_SHARE))
def test_the_error_of_a_source_stays_within(source: str, table: OutsideTable) -> None:
    assert table.error_share(source) < MOST_SHARE[source]


def test_all_are_within_a_tenth_at_the_mean_and_none_is_off_by_a_factor_of_two(
    table: OutsideTable,
) -> None:
    assert len(table.runs) == 64
    assert table.error_share() < 0.10
    assert np.abs(np.log2(table.ratio)).max() < 1.0


def test_four_of_five_are_in_the_interval_that_is_printed(table: OutsideTable) -> None:
    assert table.inside().mean() > 0.8


def test_they_are_predicted_better_than_by_a_constant_mfu_set_on_themselves(
    table: OutsideTable,
) -> None:
    assert table.of_constant_mfu() < 0.5
