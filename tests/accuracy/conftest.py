"""What several tests of the page of step times ask: the command is run once for each module."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.accuracy.steps_page import ROOT, Validated
from topologies.steps_table import read_steps


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
