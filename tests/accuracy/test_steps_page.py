"""The figures on the page of step times are those that ``planner validate`` prints."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.interval_words import OF_KNOWN_TABLES
from planner.steptime.columns import PRECISIONS
from planner.steptime.memory import step_memory
from planner.steptime.runs import Run, batches
from planner.steptime.uncertainty import few_rows_spread
from planner.steptime.validate import (
    Score,
    predict,
    predict_by_halves,
    predict_by_left_out,
    scores,
)
from tests.accuracy.outside_tables import NAMES, outside_table
from tests.accuracy.steps_page import PAGE, PROSE, Validated
from topologies.efficiency_catalogue import (
    shipped_efficiencies,
    shipped_halves,
    shipped_left_out,
)
from topologies.steps_table import read_steps

HERE = Path(__file__).resolve().parent
SCORED = {
    "Narayanan et al.": "narayanan2021_sc21",
    "Megatron-LM of 2020": "megatron2020_a100",
    "Korthikanti et al.": "korthikanti2022",
    "vTrain: A100": "vtrain_multi",
    "vTrain, tiny models": "vtrain_single",
    "SimuMax": "simumax_b200",
    "MosaicML": "mosaicml_llmfoundry",
    "NVIDIA Megatron Bridge": "nvidia_megatron_bridge",
    "NVIDIA NeMo: H100, B200": "nvidia_nemo_docs",
}
HELD_OUT = {
    "KempnerForge": ("kempnerforge",),
    "NVIDIA NeMo AutoModel": ("nemo_automodel",),
    "IBM": ("ibm_fsdp",),
    "torchtitan": ("torchtitan_a100",),
    "NVIDIA DGX Cloud": ("dgxc_llama",),
    "Megatron-Turing": ("mt_nlg",),
    "NVIDIA NeMo 25.04 and 25.07": ("nemo_gb200_2504", "nemo_gb200_2507"),
}
BLIND = {
    "a cloud's B200": "together_b200_dense",
    "the same, 512": "together_b200_moe",
    "GB200 rack": "together_nvl72",
    "8 B300": "together_b300",
    "64 B200 behind EFA": "aws_b200_efa",
    "GB300 racks": "gcp_gb300",
}
GH200 = {
    "JUPITER": "jupiter_oellm_32b",
    "the same machine": "jupiter_small",
    "the same: Qwen3 30B": "jupiter_moe",
    "Alps": "apertus",
}
UNSEEN = {
    "Apertus at 8k to 64k": "apertus_long",
    "PyTorch on 8 B200": "torchao_b200",
    "PyTorch on 256 GB300": "torchtitan_gb300",
    "PyTorch on 32 B300": "prime_rl_b300",
    "Qwen3 235B on 256 H100": "dgxc_qwen3",
}
LATER = {
    "8 to 128 B200 by torchtitan": "torchtitan_deepep",
    "128 H100 by torchtitan": "torchtitan_405b",
    "8 H100 by PyTorch": "torchao_h100",
    "8 MI300X by PyTorch": "torchao_mi300x",
    "128 and 256 GB200 by NVIDIA": "dgxc_gb200",
    "256 H100 by Megatron-Core": "megatron_moe_long",
    "256 to 12,288 A100 by MegaScale": "megascale_ampere",
    "the same by Megatron-LM": "megatron_ampere",
    "6,144 H100 by NVIDIA": "nemotron_340b",
}


def cells(label: str) -> list[str]:
    """Return the cells behind the first one of the only table row that begins with *label*."""
    (row,) = re.findall(rf"^\| {re.escape(label)}[^|]*\|(.*)\|$", PAGE, re.MULTILINE)
    return [cell.strip() for cell in row.split("|")]


@pytest.mark.parametrize("label", SCORED)
def test_a_tables_errors_are_those_printed(label: str, validated: Validated) -> None:
    def score(part: str) -> dict[str, Any]:
        return next(s for s in validated.document[part] if s["source"] == SCORED[label])

    halves, others = score("unseen"), score("left_out")

    assert cells(label) == [
        f"{halves['rows']:,}",
        f"{100 * halves['mape_share']:.1f}",
        f"{100 * others['mape_share']:.1f}",
        f"{100 * halves['constant_mfu_share']:.1f}",
    ]


@pytest.mark.parametrize("label", HELD_OUT)
def test_an_outside_tables_error_now_is_that_predicted(label: str) -> None:
    table = outside_table("held_out_runs.csv")

    assert cells(label)[-1] == f"{100 * table.error_share(*HELD_OUT[label]):.1f}"


@pytest.mark.parametrize("label", BLIND)
def test_an_error_of_the_steps_gathered_last_is_that_predicted(label: str) -> None:
    table = outside_table("blind_runs.csv")

    assert cells(label)[-1] == f"{100 * table.error_share(BLIND[label]):.1f}"


@pytest.mark.parametrize("label", GH200)
def test_an_error_of_the_steps_that_gh200_is_fitted_on_is_that_of_unseen_fits(label: str) -> None:
    runs = read_steps(HERE / "gh200_runs.csv").runs
    by = [
        {score.source: score for score in scores(runs, step_s)}[GH200[label]]
        for step_s in (
            predict_by_halves(runs, shipped_halves()),
            predict_by_left_out(runs, shipped_left_out()),
        )
    ]

    printed = cells(label)
    assert printed[0] == f"{by[0].rows}"
    assert printed[2:] == [f"{100 * score.mape_share:.1f}" for score in by]


def scores_of(runs: Sequence[Run]) -> tuple[Score, ...]:
    return scores(runs, predict(runs, shipped_efficiencies()))


@pytest.mark.parametrize("label", UNSEEN)
def test_an_error_of_the_steps_predicted_once_is_that_predicted(label: str) -> None:
    table = outside_table("unseen_runs.csv")

    assert cells(label)[-1] == f"{100 * table.error_share(UNSEEN[label]):.1f}"


@pytest.mark.parametrize("label", LATER)
def test_an_error_of_the_steps_gathered_after_those_is_that_predicted(label: str) -> None:
    table = outside_table("later_runs.csv")

    assert cells(label)[-1] == f"{100 * table.error_share(LATER[label]):.1f}"


def test_the_outside_tables_means_and_the_share_in_the_interval_are_those_predicted() -> None:
    tables = [outside_table(f"{name}_runs.csv") for name in NAMES]
    means = [f"{100 * table.error_share():.1f}" for table in tables[1:]]

    printed = [
        row.split("|")[-2].strip() for row in re.findall(r"^\| all \|.*$", PAGE, re.MULTILINE)
    ]
    assert printed == means
    inside = np.concatenate([table.inside() for table in tables])
    assert f"Of the {len(inside)} steps of outside tables it holds {100 * inside.mean():.0f} %" in (
        PROSE
    )


def test_where_a_constant_mfu_is_ahead_is_printed_with_both_errors() -> None:
    ahead = {
        f"`{one.source}` {100 * one.constant_mfu_share:.1f}": f"{100 * one.mape_share:.1f})"
        for name in NAMES
        for one in scores_of(outside_table(f"{name}_runs.csv").runs)
        if one.constant_mfu_share < one.mape_share
    }

    printed = PROSE.split("Where a constant MFU is ahead")[1].split("Nobody has")[0]
    assert printed.count("`") == 2 * len(ahead)
    for constant, predicted in ahead.items():
        assert predicted in printed.split(constant)[1].split("`")[0]


def test_the_rows_that_the_interval_holds_of_each_outside_table_are_those_printed() -> None:
    held = {name: outside_table(f"{name}_runs.csv").inside() for name in NAMES}

    for name in ("published", "held_out", "blind"):
        assert f"`{name}_runs.csv` {held[name].sum()} of {len(held[name])}" in PROSE
    unseen = held["unseen"]
    assert f"{unseen.sum()} of {len(unseen)} ({100 * unseen.mean():.0f} %;" in PROSE
    later = held["later"]
    assert f"neither width nor number was set, {later.sum()} of {len(later)}," in PROSE
    rows, inside = sum(map(len, held.values())), sum(one.sum() for one in held.values())
    assert f"it holds {100 * inside / rows:.0f} % of {rows} steps" in OF_KNOWN_TABLES


def test_the_interval_of_the_fitted_tables_is_that_printed(validated: Validated) -> None:
    shares = validated.document["inside_interval_share"]

    assert (
        f"it holds {100 * shares['unseen']:.0f} % where half of the layouts are unseen, and "
        f"{100 * shares['left_out']:.0f} % where the whole table is"
    ) in PROSE


def misfits(runs: Sequence[Run]) -> int:
    """Return how many of *runs* are predicted to need more memory than there is."""
    found = 0
    for batch in batches(runs):
        first = batch.runs[0]
        memory = step_memory(first.model, batch.columns, first.accelerator.memory_bytes)
        found += int(np.sum(~np.broadcast_to(memory.fits, len(batch.runs))))
    return found


def test_the_counts_of_steps_that_ran_and_are_predicted_not_to_fit_are_those_printed(
    validated: Validated,
) -> None:
    recent = {"nvidia_megatron_bridge", "nvidia_nemo_docs"}
    shared = [run for run in validated.runs if run.source in recent and run.measured_s > 0]
    outside = [
        run
        for name in ("published", "held_out", "blind", "gh200")
        for run in read_steps(HERE / f"{name}_runs.csv").runs
    ]
    eight = [
        run
        for run in shared
        if run.source == "nvidia_megatron_bridge"
        and PRECISIONS[int(run.columns.precision)] == "fp8"
    ]

    ran = [*shared, *outside]
    assert f"Of {len(ran)} steps of recent tables that ran, {misfits(ran)} are predicted not" in (
        PROSE
    )
    assert f"of {len(eight)} steps in FP8 that ran, 92 had been" in PROSE
    assert f"predicted not to fit, now {misfits(eight)}." in PROSE


def test_an_interval_of_few_rows_is_as_wide_as_printed() -> None:
    widths = {n: math.expm1(1.645 * few_rows_spread(0.0, n, told=0.0)) for n in (3, 5, 12)}

    assert (
        "3 rows that fit exactly give +{:.0f} %, 5 +{:.0f} %, 12 +{:.0f} %".format(
            *(100 * width for width in widths.values())
        )
        in PROSE
    )
