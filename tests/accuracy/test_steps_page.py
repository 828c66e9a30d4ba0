"""The figures on the page of step times are those that ``planner validate`` prints."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.accuracy.outside_tables import outside_table

ROOT = Path(__file__).resolve().parents[2]
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
    "JUPITER": "jupiter_oellm_32b",
    "the same machine": "jupiter_small",
    "the same: Qwen3 30B": "jupiter_moe",
    "a cloud's B200": "together_b200_dense",
    "the same, 512": "together_b200_moe",
    "GB200 rack": "together_nvl72",
    "8 B300": "together_b300",
    "64 B200 behind EFA": "aws_b200_efa",
    "GB300 racks": "gcp_gb300",
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
    return Validated(document=json.loads(ran.stdout), step_s=step_s, rows=rows)


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


def test_both_outside_tables_means_and_the_share_in_the_interval_are_those_predicted() -> None:
    tables = [outside_table(f"{name}_runs.csv") for name in ("published", "held_out", "blind")]
    means = [f"{100 * table.error_share():.1f}" for table in tables[1:]]

    printed = [
        row.split("|")[-2].strip() for row in re.findall(r"^\| all \|.*$", PAGE, re.MULTILINE)
    ]
    assert printed == means
    inside = np.concatenate([table.inside() for table in tables])
    assert f"Of the {len(inside)} steps of outside tables it holds {100 * inside.mean():.0f} %" in (
        PROSE
    )


def test_the_interval_of_the_fitted_tables_is_that_printed(validated: Validated) -> None:
    shares = validated.document["inside_interval_share"]

    assert (
        f"it holds {100 * shares['unseen']:.0f} % where half of the layouts are unseen, and "
        f"{100 * shares['left_out']:.0f} % where the whole table is"
    ) in PROSE


def right_share(validated: Validated, apart_share: float) -> float:
    """Return the share of vTrain's pairs that differ by *apart_share* that are ordered right."""
    groups: dict[str, list[str]] = {}
    for name, row in validated.rows.items():
        if row["source"] == "vtrain_multi":
            groups.setdefault(row["model"], []).append(name)
    right = []
    for names in groups.values():
        for a, b in combinations(names, 2):
            first, second = (float(validated.rows[one]["measured_step_s"]) for one in (a, b))
            if abs(np.log(first / second)) > np.log1p(apart_share):
                faster = validated.step_s[a] < validated.step_s[b]
                right.append((first < second) == faster)
    return float(np.mean(right))


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
    wrong = sum(g["pairs"] - g["right"] for g in groups)
    assert f"227 of the {wrong} wrong ones" in PROSE
    regret = max(g["regret_share"] for g in groups)
    assert f"the layout that is picked is {100 * regret:.2f} % slower than the fastest" in PROSE


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
