"""The figures on the page of step times are those that ``planner validate`` prints."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
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
from tests.accuracy.outside_tables import outside_table
from topologies.efficiency_catalogue import (
    shipped_efficiencies,
    shipped_halves,
    shipped_left_out,
)
from topologies.steps_table import read_steps

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = (ROOT / "docs" / "steps.md").read_text(encoding="utf-8")
PROSE = " ".join(PAGE.split())
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


def cells(label: str) -> list[str]:
    """Return the cells behind the first one of the only table row that begins with *label*."""
    (row,) = re.findall(rf"^\| {re.escape(label)}[^|]*\|(.*)\|$", PAGE, re.MULTILINE)
    return [cell.strip() for cell in row.split("|")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """What the command says of the full table: its document, and each row's predicted step."""

    document: dict[str, Any]
    step_s: dict[str, float]
    rows: dict[str, dict[str, str]]
    runs: tuple[Run, ...]


@pytest.fixture(scope="module")
def validated(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Validated:
    table = shared_folder / "measured" / "steps.csv"
    out = tmp_path_factory.mktemp("steps") / "predicted.csv"
    command = [sys.executable, "-m", "cli.planner_app", "validate", str(table), "--json"]
    ran = subprocess.run(
        [*command, "--out", str(out)], cwd=ROOT, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    with out.open(encoding="utf-8") as lines:
        step_s = {
            row["id"]: float(row["predicted_step_s"])
            for row in csv.DictReader(lines)
            if row["predicted_step_s"]
        }
    with table.open(encoding="utf-8") as lines:
        rows = {row["id"]: row for row in csv.DictReader(lines)}
    return Validated(
        document=json.loads(ran.stdout), step_s=step_s, rows=rows, runs=read_steps(table).runs
    )


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


def test_the_outside_tables_means_and_the_share_in_the_interval_are_those_predicted() -> None:
    tables = [
        outside_table(f"{name}_runs.csv") for name in ("published", "held_out", "blind", "unseen")
    ]
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
        for name in ("published", "held_out", "blind", "unseen")
        for one in scores_of(outside_table(f"{name}_runs.csv").runs)
        if one.constant_mfu_share < one.mape_share
    }

    printed = PROSE.split("Where a constant MFU is ahead")[1].split("Nobody has")[0]
    assert printed.count("`") == 2 * len(ahead)
    for constant, predicted in ahead.items():
        assert predicted in printed.split(constant)[1].split("`")[0]


def test_the_rows_that_the_interval_holds_of_each_outside_table_are_those_printed() -> None:
    held = {
        name: outside_table(f"{name}_runs.csv").inside()
        for name in ("published", "held_out", "blind", "unseen")
    }

    for name in ("published", "held_out", "blind"):
        assert f"`{name}_runs.csv` {held[name].sum()} of {len(held[name])}" in PROSE
    unseen = held["unseen"]
    assert f"{unseen.sum()} of {len(unseen)} ({100 * unseen.mean():.0f} %;" in PROSE
    rows, inside = sum(map(len, held.values())), sum(one.sum() for one in held.values())
    assert f"it holds {100 * inside / rows:.0f} % of {rows} steps" in OF_KNOWN_TABLES


def test_the_interval_of_the_fitted_tables_is_that_printed(validated: Validated) -> None:
    shares = validated.document["inside_interval_share"]

    assert (
        f"it holds {100 * shares['unseen']:.0f} % where half of the layouts are unseen, and "
        f"{100 * shares['left_out']:.0f} % where the whole table is"
    ) in PROSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two of vTrain's layouts of one model, and whether the faster is predicted faster."""

    first: str
    second: str
    right: bool


def pairs_of(validated: Validated, apart_share: float) -> list[Pair]:
    """Return vTrain's pairs of layouts whose steps differ by *apart_share* or more."""
    groups: dict[str, list[str]] = {}
    for name, row in validated.rows.items():
        if row["source"] == "vtrain_multi":
            groups.setdefault(row["model"], []).append(name)
    pairs = []
    for names in groups.values():
        for a, b in combinations(names, 2):
            first, second = (float(validated.rows[one]["measured_step_s"]) for one in (a, b))
            if abs(np.log(first / second)) > np.log1p(apart_share):
                faster = validated.step_s[a] < validated.step_s[b]
                pairs.append(Pair(first=a, second=b, right=(first < second) == faster))
    return pairs


def right_share(validated: Validated, apart_share: float) -> float:
    """Return the share of vTrain's pairs that differ by *apart_share* that are ordered right."""
    return float(np.mean([pair.right for pair in pairs_of(validated, apart_share)]))


def misfits(runs: Sequence[Run]) -> int:
    """Return how many of *runs* are predicted to need more memory than there is."""
    found = 0
    for batch in batches(runs):
        first = batch.runs[0]
        memory = step_memory(first.model, batch.columns, first.accelerator.memory_bytes)
        found += int(np.sum(~np.broadcast_to(memory.fits, len(batch.runs))))
    return found


def test_the_shares_of_pairs_and_the_regret_are_those_printed(validated: Validated) -> None:
    shares = [100 * right_share(validated, apart) for apart in (0.02, 0.05, 0.10, 0.20)]
    groups = [g for g in validated.document["groups"] if g["source"] == "vtrain_multi"]
    by_model = [f"{100 * g['right'] / g['pairs']:.0f}" for g in groups]

    assert f"{shares[0]:.0f} % of the pairs of layouts that differ by more than 2 %" in PROSE
    assert (
        "{:.0f} % of those that differ by 5 %, {:.0f} % by 10 %, {:.0f} % by 20 %".format(
            *shares[1:]
        )
        in PROSE
    )
    assert (
        "By model, {} % are right of 3.6B, {} % of 18.4B, {} % of 39.1B, {} % of 175B".format(
            *by_model
        )
        in PROSE
    )
    regret = max(g["regret_share"] for g in groups)
    assert f"the layout that is picked is {100 * regret:.2f} % slower than the fastest" in PROSE


def test_most_wrong_pairs_have_one_of_the_same_twenty_layouts(validated: Validated) -> None:
    odd = {
        name
        for name, row in validated.rows.items()
        if row["source"] == "vtrain_multi" and "39.1" in row["model"] and row["tp"] in ("2", "4")
    }
    pairs = pairs_of(validated, 0.02)
    wrong = [pair for pair in pairs if not pair.right]
    with_odd = [pair for pair in wrong if odd & {pair.first, pair.second}]
    apart = [
        np.mean([p.right for p in pairs_of(validated, a) if not odd & {p.first, p.second}])
        for a in (0.02, 0.10)
    ]

    assert f"{len(with_odd)} of the {len(wrong)} wrong ones have one of the {len(odd)} layouts" in (
        PROSE
    )
    assert "without those {:.0f} % are right, and {:.0f} % of the pairs that differ by 10 %".format(
        *(100 * share for share in apart)
    ) in (PROSE)


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


def test_the_ceiling_of_a_smooth_correction_is_that_printed(validated: Validated) -> None:
    ceilings = [g for g in validated.document["ceilings"] if g["source"] == "vtrain_multi"]
    share = sum(g["right"] for g in ceilings) / sum(g["pairs"] for g in ceilings)
    regret = max(g["regret_share"] for g in ceilings)

    assert f"{100 * share:.0f} % (39.1B" in PROSE
    assert f"with a regret of {100 * regret:.1f} %" in PROSE


def test_the_tiny_models_of_one_stage_are_sums_of_32_times_of_a_layer(
    validated: Validated,
) -> None:
    """Layers x micro-batches x a time of each width, TP and micro-batch, and terms beside it."""
    alike: dict[tuple[str, ...], list[list[float]]] = {}
    for row in validated.rows.values():
        if row["source"] == "vtrain_single" and row["pp"] == "1":
            layers, dp, batch = (float(row[key]) for key in ("layers", "dp", "global_batch"))
            passes, shared = batch / dp / float(row["micro_batch"]), float(dp > 1)
            terms = [layers * passes, passes, layers, 1.0, shared * layers, shared]
            key = (row["hidden"], row["tp"], row["micro_batch"])
            alike.setdefault(key, []).append([*terms, float(row["measured_step_s"])])
    errors = []
    for members in alike.values():
        shares = np.array(members)[:, :-1] / np.array(members)[:, -1:]
        found = np.linalg.lstsq(shares, np.ones(len(shares)), rcond=None)[0]
        errors += list(np.abs(shares @ found - 1.0))

    assert (len(alike), len(errors)) == (32, 720)
    assert np.mean(errors) < 0.001


def test_every_bad_pick_of_the_tiny_models_hangs_on_the_same_two_times(
    validated: Validated,
) -> None:
    groups = [
        group
        for group in validated.document["groups"]
        if group["source"] == "vtrain_single" and group["regret_share"] > 0.2
    ]

    def layer(name: str) -> tuple[str, ...]:
        return tuple(validated.rows[name][key] for key in ("hidden", "tp", "micro_batch"))

    assert f"All {len(groups)} groups whose pick is more than 20 % slower" in PROSE
    assert {layer(group["fastest"]) for group in groups} == {("2048", "4", "2")}
    assert {layer(group["picked"]) for group in groups} == {("2048", "2", "2")}
