"""``planner validate``: a table against its predictions, as a document and as a CSV."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cli.planner_output import document
from cli.report_words import plain_cell
from cli.steps_table_notes import (
    Assumption,
    assumptions,
    skipped_lines,
)
from cli.validate_numbers import timing_of
from planner.errors import InputError
from planner.steptime.ranking import Group, ceilings, orders
from planner.steptime.rates import Efficiency
from planner.steptime.runs import Run, assumed_of, predicted_memory_bytes
from planner.steptime.suspects import Overfull, overfull
from planner.steptime.validate import (
    Held,
    Score,
    explained,
    inside_interval,
    predict,
    predict_by_halves,
    predict_by_left_out,
    predict_halves,
    predict_left_out,
    scores,
)
from topologies.cluster_chip import chip_to_fit, cluster_chip
from topologies.efficiency_catalogue import (
    shipped_halves,
    shipped_left_out,
)
from topologies.steps_table import Skipped, StepsTable, read_steps, table_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGE_ERROR = 1.0  # a factor of 2 too long
_SMALL_ERROR = -0.5  # a factor of 2 too short


@dataclass(frozen=True, slots=True, kw_only=True)
class FarRow:
    """A row that is far off, with what may explain it."""

    name: str
    measured_s: float
    predicted_s: float
    error_share: float
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a table was predicted to be.

    Args:
        path: the table.
        cluster: whose accelerator its rows may name, or None.
        sha256: hash of its bytes.
        table: its rows.
        step_s: predicted step of each run [s].
        memory_bytes: predicted memory of each run [bytes].
        basis: what the numbers were fitted on.
        seen: sources of the table that the numbers were fitted on.
        scores: by source.
        unseen: the same rows by fits that did not see their layout; empty where there are none.
        left_out: the same rows by fits that saw nothing of their source.
        groups: layouts of one model on one cluster.
        ceilings: of groups of many layouts, how a smooth correction by themselves orders them.
        inside: of each of the three, the rows in the interval that is printed.
        far: the rows furthest off.
        overfull: measured rows that are predicted to need far more memory than their GPU has.
        assumed: what rows do not say, or nobody measured on their accelerator.
    """

    path: Path
    cluster: str | None
    sha256: str
    table: StepsTable
    step_s: NDArray[np.float64]
    memory_bytes: NDArray[np.float64]
    basis: str
    seen: tuple[str, ...]
    scores: tuple[Score, ...]
    unseen: tuple[Score, ...]
    left_out: tuple[Score, ...]
    groups: tuple[Group, ...]
    ceilings: tuple[Group, ...]
    inside: Mapping[str, Held]
    far: tuple[FarRow, ...]
    overfull: tuple[Overfull, ...]
    assumed: tuple[Assumption, ...]


def report_of(
    path: Path,
    *,
    cluster: str | None,
    efficiency: Path | None,
    refit: str | None,
    worst: int,
    say: Callable[[str], None],
) -> Report:
    """Return the report of the table at *path*.

    Args:
        path: a CSV file.
        cluster: whose accelerator rows may name beside those of the catalogue, or None.
        efficiency: a file that ``planner calibrate`` wrote, or None for what is shipped.
        refit: ``halves`` or ``sources``: fit on the table itself.
        worst: rows to list [1].
        say: writes a line of progress.
    """
    chip_in = cluster_chip if refit is None else chip_to_fit
    table = read_steps(path, chip_in(cluster) if cluster else None)
    runs = table.runs
    if not runs:
        raise InputError(f"{path}: no row can be predicted", *skipped_lines(table))
    timing = timing_of(efficiency)
    numbers = timing.numbers
    basis = f"fitted numbers of {efficiency}" if efficiency else "the shipped numbers"
    seen = _sources_of(numbers, runs)
    unseen: tuple[Score, ...] = ()
    left_out: tuple[Score, ...] = ()
    assumed = [assumed_of(run, numbers) for run in runs]
    reached = [timing.of_interval(run) for run in runs]
    inside: dict[str, Held | None] = {}
    if refit is not None:
        say(f"fitting on {len(runs):,} rows; this takes minutes")
        refitted = predict_halves(runs) if refit == "halves" else predict_left_out(runs)
        step_s = refitted.step_s
        assumed = [run.assumed for run in runs]
        for chip, rows in refitted.unfitted.items():
            assumed += [{"efficiency": f"too few other rows of {chip}: its defaults"}] * rows
        basis = (
            "each half of the layouts by a fit on the other half"
            if refit == "halves"
            else "each source by a fit on all others"
        )
        seen = ()
    else:
        step_s = predict(runs, numbers)
        if efficiency is None and seen:
            known = [run for run in runs if run.source in seen]
            by_halves = predict_by_halves(known, shipped_halves())
            by_others = predict_by_left_out(known, shipped_left_out())
            unseen, left_out = scores(known, by_halves), scores(known, by_others)
            of_known = [timing.of_interval(run) for run in known]
            inside["unseen"] = inside_interval(known, by_halves, of_known)
            inside["left_out"] = inside_interval(known, by_others, of_known)
    inside["sources"] = inside_interval(runs, step_s, reached)
    return Report(
        path=path,
        cluster=cluster,
        sha256=hashlib.sha256(table_bytes(path)).hexdigest(),
        table=table,
        step_s=step_s,
        memory_bytes=predicted_memory_bytes(runs),
        basis=basis,
        seen=seen,
        scores=scores(runs, step_s),
        unseen=unseen,
        left_out=left_out,
        groups=orders(runs, step_s),
        ceilings=ceilings(runs, step_s),
        inside={name: held for name, held in inside.items() if held is not None},
        far=_far(runs, step_s, worst),
        overfull=overfull(runs),
        assumed=assumptions(assumed),
    )


def _sources_of(numbers: Mapping[str, Efficiency], runs: tuple[Run, ...]) -> tuple[str, ...]:
    """Return the sources of *runs* that the numbers of their accelerator were fitted on."""
    found = set()
    for run in runs:
        fitted = numbers.get(run.chip)
        if fitted and run.source in fitted.fitted_on.split(", "):
            found.add(run.source)
    return tuple(sorted(found))


def _far(runs: tuple[Run, ...], step_s: NDArray[np.float64], worst: int) -> tuple[FarRow, ...]:
    """Return the rows furthest off, and every one that is off by more than a factor of 2."""
    rows = []
    for run, predicted in zip(runs, step_s, strict=True):
        if run.measured_s > 0:
            error = float(predicted / run.measured_s - 1.0)
            rows.append((abs(math.log1p(error)), error, float(predicted), run))
    rows.sort(key=lambda row: (-row[0], row[3].name))
    return tuple(
        FarRow(
            name=run.name, measured_s=run.measured_s, predicted_s=predicted, error_share=error,
            explanation=explained(run, error),
        )
        for position, (_, error, predicted, run) in enumerate(rows)
        if position < worst or not _SMALL_ERROR <= error <= _LARGE_ERROR
    )  # fmt: skip


def predictions_text(report: Report) -> str:
    """Return the CSV of predictions, one line a row of the table, in its order."""
    predicted = iter(zip(report.step_s, report.memory_bytes, strict=True))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["id", "predicted_step_s", "predicted_memory_bytes", "skipped_because"])
    for row in report.table.rows:
        name = plain_cell(row.name)
        if isinstance(row, Skipped):
            writer.writerow([name, "", "", plain_cell(row.because)])
            continue
        step_s, memory_bytes = next(predicted)
        writer.writerow([name, f"{step_s:.6g}", f"{memory_bytes:.0f}", ""])
    return stream.getvalue()


def validate_document(report: Report) -> dict[str, Any]:
    """Return the document of ``planner validate --json``."""
    inputs = {
        "table": str(report.path),
        "table_sha256": report.sha256,
        "cluster": report.cluster,
        "rows": len(report.table.rows),
        "basis": report.basis,
    }
    body = {
        "sources": [_plain(score) for score in report.scores],
        "unseen": [_plain(score) for score in report.unseen],
        "left_out": [_plain(score) for score in report.left_out],
        "fitted_on": report.seen,
        "inside_interval_share": {name: one.mean_share for name, one in report.inside.items()},
        "inside_interval_rows": {
            name: {"held": one.held, "rows": one.rows} for name, one in report.inside.items()
        },
        "groups": [asdict(group) for group in report.groups],
        "ceilings": [asdict(group) for group in report.ceilings],
        "far": [asdict(row) for row in report.far],
        "overfull": [asdict(row) for row in report.overfull],
        "skipped": [
            {"id": row.name, "source": row.source, "because": row.because}
            for row in report.table.skipped
        ],
        "predicted_rows": len(report.table.runs),
        "assumed": [asdict(one) for one in report.assumed],
        "unknown_columns": report.table.unknown,
    }
    return document("validate", inputs, body)


def _plain(score: Score) -> dict[str, Any]:
    """Return *score* with None for what there is none of."""
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in asdict(score).items()
    }
