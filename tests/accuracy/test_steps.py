"""Predicted steps against published ones: the errors of each source never rise unnoticed.

Rows are predicted by fits that have not seen their layout (the shipped halves), so that these
are tests, not the fit's own residuals.
"""

from __future__ import annotations

import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from planner.steptime.ranking import orders
from planner.steptime.refit import refit
from planner.steptime.runs import Run
from planner.steptime.validate import (
    Score,
    predict,
    predict_by_halves,
    predict_by_left_out,
    scores,
)
from topologies.efficiency_catalogue import (
    CATALOGUE,
    shipped_efficiencies,
    shipped_halves,
    shipped_left_out,
)
from topologies.efficiency_text import catalogue_texts
from topologies.steps_table import StepsTable, read_steps

SAME = ("global_batch", "seq", "precision")
OWN = Path(__file__).with_name("published_steps.csv")
GH200 = Path(__file__).with_name("gh200_runs.csv")

# Mean error of a source whose layouts the fit has not seen: what was reached, and a little.
MOST_SHARE = {
    "narayanan2021_sc21": 0.03,
    "megatron2020_a100": 0.025,
    "korthikanti2022": 0.03,
    "vtrain_multi": 0.08,
    "vtrain_single": 0.09,
    "simumax_b200": 0.045,
    "mosaicml_llmfoundry": 0.065,
    "nvidia_megatron_bridge": 0.095,
    "nvidia_nemo_docs": 0.05,
}

# The same by fits that saw nothing of the source: other software, often other clusters.
MOST_LEFT_OUT_SHARE = {
    "narayanan2021_sc21": 0.045,
    "megatron2020_a100": 0.03,
    "korthikanti2022": 0.055,
    "vtrain_multi": 0.085,
    "vtrain_single": 0.13,
    "simumax_b200": 0.155,
    "mosaicml_llmfoundry": 0.08,
    "nvidia_megatron_bridge": 0.12,
    "nvidia_nemo_docs": 0.08,
}


@pytest.fixture(scope="module")
def table(shared_folder: Path) -> StepsTable:
    return read_steps(shared_folder / "measured" / "steps.csv")


@pytest.fixture(scope="module")
def unseen(table: StepsTable) -> dict[str, Score]:
    step_s = predict_by_halves(table.runs, shipped_halves())
    return {score.source: score for score in scores(table.runs, step_s)}


def of_source(runs: tuple[Run, ...], source: str) -> list[Run]:
    return [run for run in runs if run.source == source]


def test_korthikantis_eight_steps_are_within_four_percent() -> None:
    runs = of_source(read_steps(OWN).runs, "korthikanti2022")

    step_s = predict_by_halves(runs, shipped_halves())

    error = np.abs(step_s / [run.measured_s for run in runs] - 1)
    assert len(runs) == 8
    assert error.mean() < 0.04
    assert error.max() < 0.10


def test_selective_recomputation_is_predicted_faster_than_full() -> None:
    runs = of_source(read_steps(OWN).runs, "korthikanti2022")

    groups = orders(runs, predict(runs, shipped_efficiencies()))

    assert all(group.right == group.pairs == 1 for group in groups)


def test_llama_3_on_8192_and_16384_gpus_which_no_fit_has_seen_is_within_a_tenth() -> None:
    runs = of_source(read_steps(OWN).runs, "llama3-paper")

    step_s = predict(runs, shipped_efficiencies())

    assert np.abs(step_s / [run.measured_s for run in runs] - 1).max() < 0.10


@pytest.mark.parametrize("source", sorted(MOST_SHARE))
def test_the_error_of_unseen_layouts_stays_within(source: str, unseen: dict[str, Score]) -> None:
    assert unseen[source].mape_share < MOST_SHARE[source]


@pytest.fixture(scope="module")
def left_out(table: StepsTable) -> dict[str, Score]:
    step_s = predict_by_left_out(table.runs, shipped_left_out())
    return {score.source: score for score in scores(table.runs, step_s)}


@pytest.mark.parametrize("source", sorted(MOST_LEFT_OUT_SHARE))
def test_the_error_of_a_source_that_no_fit_has_seen_stays_within(
    source: str, left_out: dict[str, Score]
) -> None:
    assert left_out[source].mape_share < MOST_LEFT_OUT_SHARE[source]


def test_fits_that_leave_a_source_out_do_not_name_it() -> None:
    fits = shipped_left_out()

    assert set(fits) == set(MOST_LEFT_OUT_SHARE) | {run.source for run in read_steps(GH200).runs}
    for source, chips in fits.items():
        assert all(source not in one.fitted_on.split(", ") for one in chips.values())


@pytest.mark.parametrize("source", sorted(MOST_SHARE))
def test_a_source_is_predicted_better_than_by_a_constant_mfu_set_on_its_own_rows(
    source: str, unseen: dict[str, Score], left_out: dict[str, Score]
) -> None:
    assert unseen[source].mape_share < unseen[source].constant_mfu_share
    assert left_out[source].mape_share < left_out[source].constant_mfu_share


def test_all_of_vtrains_rows_are_predicted_and_the_spanning_ones_well(table: StepsTable) -> None:
    runs = of_source(table.runs, "vtrain_multi")
    spanning = [i for i, run in enumerate(runs) if run.columns.tp == 16]

    measured = [run.measured_s for run in runs]
    shipped = predict(runs, shipped_efficiencies()) / measured - 1
    unseen = predict_by_halves(runs, shipped_halves()) / measured - 1
    without = predict_by_left_out(runs, shipped_left_out()) / measured - 1

    assert (len(runs), len(spanning)) == (109, 6)
    assert np.abs(shipped[spanning]).max() < 0.12
    assert np.abs(unseen[spanning]).max() < 0.12
    assert np.abs(without[spanning]).max() < 0.12


def test_the_layouts_picked_for_vtrains_models_are_near_the_fastest(table: StepsTable) -> None:
    runs = of_source(table.runs, "vtrain_multi")

    groups = orders(runs, predict(runs, shipped_efficiencies()))

    assert max(group.regret_share for group in groups) < 0.05
    assert sum(group.right for group in groups) / sum(group.pairs for group in groups) > 0.80


def test_eight_bit_and_sixteen_bit_steps_of_blackwell_and_hopper_are_predicted_apart(
    table: StepsTable,
) -> None:
    step_s = predict_by_halves(table.runs, shipped_halves())
    for code, most in ((0.0, 0.09), (2.0, 0.10)):
        rows = [
            i for i, run in enumerate(table.runs)
            if run.source == "nvidia_megatron_bridge" and run.columns.precision == code
        ]  # fmt: skip
        measured = np.array([table.runs[i].measured_s for i in rows])
        assert np.abs(step_s[rows] / measured - 1).mean() < most


def test_405b_on_1024_h100_is_predicted_faster_than_on_256_gb200(table: StepsTable) -> None:
    runs = [
        run for run in table.runs
        if run.source == "nvidia_megatron_bridge" and run.model.name == "llama3.1-405b"
        and run.columns.global_batch == 1536 and run.columns.precision == 2.0
    ]  # fmt: skip
    step_s = predict(runs, shipped_efficiencies())

    hopper = [s for s, run in zip(step_s, runs, strict=True) if run.chip == "H100-SXM"]
    blackwell = [s for s, run in zip(step_s, runs, strict=True) if run.chip == "GB200"]

    assert hopper
    assert blackwell
    assert max(hopper) < min(blackwell)


def test_no_row_of_a_real_model_is_off_by_more_than_a_factor_of_two(table: StepsTable) -> None:
    runs = [run for run in table.runs if run.source != "vtrain_single"]

    ratio = predict(runs, shipped_efficiencies()) / [run.measured_s for run in runs]

    assert ratio.min() > 0.45
    assert ratio.max() < 2.0


def test_every_row_is_predicted_or_says_why_not(table: StepsTable) -> None:
    assert len(table.rows) == len(table.runs) + len(table.skipped) == 2156
    assert {row.name: row.because for row in table.skipped} == {
        **{f"amd_primus-{i:04d}": "global_batch not stated" for i in range(1, 6)},
        "nvidia_nemo_docs-0079": "global_batch = 8 is less than dp x micro_batch = 16",
        "nvidia_nemo_docs-0080": "global_batch = 4 is less than dp x micro_batch = 16",
        "nvidia_megatron_bridge-0208": "etp x ep = 1 x 64 = 64 does not divide "
        "tp x cp x dp = 1 x 1 x 32 = 32",
    }


def test_the_whole_table_is_predicted_in_seconds(table: StepsTable) -> None:
    start = time.process_time()
    predict(table.runs, shipped_efficiencies())

    assert time.process_time() - start < 5


def test_machines_of_different_size_are_ranked_as_measured(table: StepsTable) -> None:
    """Pairs of one model, batch and precision on different numbers of GPUs, by unseen fits."""
    runs = [run for run in table.runs if run.source == "nvidia_megatron_bridge"]
    step_s = predict_by_halves(runs, shipped_halves())
    right, pairs = 0, 0
    for (a, first), (b, second) in combinations(zip(runs, step_s, strict=True), 2):
        same = (a.model.name, *(float(getattr(a.columns, f)) for f in SAME)) == (
            b.model.name, *(float(getattr(b.columns, f)) for f in SAME)
        )  # fmt: skip
        apart = abs(np.log(a.measured_s / b.measured_s)) > 0.02
        if same and apart and a.columns.gpus != b.columns.gpus:
            pairs += 1
            right += (first < second) == (a.measured_s < b.measured_s)

    assert pairs > 100
    assert right / pairs > 0.98


@pytest.mark.nightly
def test_the_shipped_numbers_come_from_the_published_tables_and_this_program(
    table: StepsTable,
) -> None:
    texts = catalogue_texts(refit([*table.runs, *read_steps(GH200).runs], lambda _: None))

    for name, text in texts.items():
        assert text == CATALOGUE.with_name(name).read_text(encoding="utf-8")
