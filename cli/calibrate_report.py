"""``planner calibrate`` as a document and a page."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from cli.planner_output import document, write_file
from cli.steps_table_notes import (
    Assumption,
    assumptions,
    print_hanging,
    print_overfull,
    print_table_notes,
    skipped_lines,
    unread_steps,
)
from planner.errors import InputError
from planner.steptime.calibrate import LEAST_ROWS
from planner.steptime.covered import Covered
from planner.steptime.own_fit import OwnFit, fit_alone
from planner.steptime.rates import Efficiency
from planner.steptime.refit import refit
from planner.steptime.runs import Run, assumed_of
from planner.steptime.suspects import FAR_RATIO, Overfull, Sifted, overfull
from planner.units import format_share, format_time
from topologies.cluster_chip import chip_to_fit
from topologies.efficiency_catalogue import UNFINISHED
from topologies.efficiency_covered import covered_document
from topologies.efficiency_text import catalogue_texts
from topologies.own_efficiency import few_rows, suspect_rows
from topologies.steps_table import StepsTable, read_steps, table_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console

FitRows = Callable[[str, Sequence[Run]], OwnFit]
Sift = Callable[[str, Sequence[Run]], Sifted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """How well one accelerator's fit predicts.

    Args:
        chip: the accelerator.
        rows: rows scored [1].
        mape_share: their mean error [1].
        held_out: whether each is predicted by a fit that has not seen its layout.
    """

    chip: str
    rows: int
    mape_share: float
    held_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FarRow:
    """A row that the fit of its own table is off by more than a factor of 2.

    Args:
        name: the row.
        measured_s, predicted_s: its step [s].
        left_out: whether it is no part of the fit.
    """

    name: str
    measured_s: float
    predicted_s: float
    left_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTable:
    """A table's fits and how well they predict.

    Args:
        path: the table.
        cluster: whose accelerator its rows may name, or None.
        sha256: hash of its bytes.
        every: no rows were scored by fits that have not seen them.
        rows: measured rows [1].
        fits: by accelerator.
        scored: by accelerator, and apart for rows fitted and left out.
        far: rows that the fit is far off: a slip of a unit or a batch, most often.
        overfull: rows that are predicted to need far more memory than their GPU has.
        table: its rows.
    """

    path: Path
    cluster: str | None
    sha256: str
    every: bool
    rows: int
    fits: tuple[OwnFit, ...]
    scored: tuple[Scored, ...]
    far: tuple[FarRow, ...]
    overfull: tuple[Overfull, ...]
    table: StepsTable


def fit_table(
    path: Path,
    *,
    cluster: str | None,
    sift: Sift,
    fit_rows: FitRows,
    say: Callable[[str], None],
) -> FittedTable:
    """Return the fits of the table at *path*.

    Args:
        path: a CSV file of measured steps.
        cluster: whose accelerator rows may name beside those of the catalogue, or None.
        sift: an accelerator and its rows to those that are fitted: ``sifted`` or ``everything``.
        fit_rows: an accelerator and its rows to their fit: ``fit_and_score`` or ``fit_alone``.
        say: writes a line of progress.
    """
    table = read_steps(path, chip_to_fit(cluster) if cluster else None)
    runs = [run for run in table.runs if run.measured_s > 0]
    full = overfull(runs)
    fits: list[OwnFit] = []
    far: list[FarRow] = []
    for chip in sorted({run.chip for run in runs}):
        mine = [run for run in runs if run.chip == chip]
        if len(mine) < LEAST_ROWS:
            say(f"{chip}: {len(mine)} measured of the {LEAST_ROWS} rows that a fit needs")
            continue
        say(f"fitting {chip} on {len(mine):,} rows")
        found = sift(chip, mine)
        fitted = fit_rows(chip, found.kept)
        odd = _far(fitted, found)
        names = {one.name for one in odd} | {one.name for one in full} & {r.name for r in mine}
        known = replace(fitted.covered, suspect=len(names), left_out=len(found.broken))
        fits.append(replace(fitted, covered=known))
        far += odd
    if not fits:
        raise InputError(
            f"{path}: no accelerator has {LEAST_ROWS} measured rows to fit on; there are "
            f"{len(runs)} measured rows that can be used{unread_steps(table)}",
            *skipped_lines(table),
        )
    return FittedTable(
        path=path,
        cluster=cluster,
        sha256=hashlib.sha256(table_bytes(path)).hexdigest(),
        every=fit_rows is fit_alone,
        rows=len(runs),
        fits=tuple(fits),
        scored=tuple(score for one in fits for score in _scored(one)),
        far=tuple(far),
        overfull=full,
        table=table,
    )


def write_catalogue(path: Path, folder: Path, *, say: Callable[[str], None]) -> tuple[Path, ...]:
    """Write the files of fitted numbers that ship, fitted on the table at *path*; return them.

    They belong together: until all are written a file beside them says so, and readers refuse them.
    """
    fits = refit(read_steps(path).runs, say)
    texts = catalogue_texts(fits)
    marker = folder / UNFINISHED
    write_file(marker, "Being written by planner calibrate --catalogue.\n")
    for name, text in texts.items():
        write_file(folder / name, text)
    marker.unlink()
    return tuple(folder / name for name in texts)


def _far(fitted: OwnFit, found: Sifted) -> list[FarRow]:
    left = [
        FarRow(name=run.name, measured_s=run.measured_s, predicted_s=expected_s, left_out=True)
        for run, expected_s in zip(found.broken, found.expected_s, strict=True)
    ]
    kept = [
        FarRow(
            name=run.name, measured_s=run.measured_s, left_out=False,
            predicted_s=run.measured_s * math.exp(off),
        )
        for run, off in zip(found.kept, fitted.seen_log_ratio, strict=True)
        if abs(off) > math.log(FAR_RATIO)
    ]  # fmt: skip
    return left + kept


def _scored(fitted: OwnFit) -> list[Scored]:
    def score(log_ratio: NDArray[np.float64], *, held_out: bool) -> Scored:
        mape_share = float(np.mean(np.abs(np.expm1(log_ratio))))
        return Scored(
            chip=fitted.chip, rows=len(log_ratio), mape_share=mape_share, held_out=held_out
        )

    seen = score(fitted.seen_log_ratio, held_out=False)
    unseen = fitted.unseen_log_ratio
    return [seen, score(unseen, held_out=True)] if len(unseen) else [seen]


def calibrate_document(fitted: FittedTable) -> dict[str, Any]:
    """Return the document of ``planner calibrate --json``."""
    inputs = {
        "table": str(fitted.path), "table_sha256": fitted.sha256, "cluster": fitted.cluster,
        "every_row": fitted.every,
    }  # fmt: skip
    body = {
        "measured_rows": fitted.rows,
        "efficiencies": {one.chip: asdict(one.efficiency) for one in fitted.fits},
        "errors": [asdict(one) for one in fitted.scored],
        "far": [asdict(one) for one in fitted.far],
        "overfull": [asdict(one) for one in fitted.overfull],
        "covered": {one.chip: covered_document(one.covered) for one in fitted.fits},
        "skipped": {row.name: row.because for row in fitted.table.skipped},
        "assumed": [asdict(one) for one in _assumed(fitted)],
        "unknown_columns": fitted.table.unknown,
    }
    return document("calibrate", inputs, body)


def _assumed(fitted: FittedTable) -> tuple[Assumption, ...]:
    """Return what rows do not say, and of each fit the numbers that its rows do not tell."""
    efficiencies = {one.chip: one.efficiency for one in fitted.fits}
    of_fits = tuple(
        Assumption(name=f"{one.chip} {name}", because=why, rows=one.efficiency.rows)
        for one in fitted.fits
        for name, why in one.assumed.items()
    )
    return (*assumptions(assumed_of(run, efficiencies) for run in fitted.table.runs), *of_fits)


def print_fit(console: Console, fitted: FittedTable) -> None:
    """Print the page."""
    console.print(
        Text(f"{fitted.path}: {fitted.rows:,} measured rows that can be used", style="bold")
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("accelerator", no_wrap=True)
    for name in ("rows", "error", "unseen rows", "error "):
        table.add_column(name, justify="right", no_wrap=True)
    for one in fitted.fits:
        seen = next(s for s in fitted.scored if s.chip == one.chip and not s.held_out)
        unseen = next((s for s in fitted.scored if s.chip == one.chip and s.held_out), None)
        table.add_row(
            Text(one.chip),
            Text(f"{seen.rows:,}"),
            Text(format_share(seen.mape_share)),
            Text(f"{unseen.rows:,}" if unseen else "-"),
            Text(format_share(unseen.mape_share) if unseen else "-"),
        )
    console.print(table)
    for one in fitted.fits:
        console.print(Text(one.chip, style="bold"))
        for line in (*_lines(one.efficiency), *_kinds(one.covered)):
            print_hanging(console, line)
    if fitted.far:
        console.print()
        console.print(Text("More than 2 times off what the other rows give", style="bold"))
    for far in fitted.far:
        done = "left out of the fit (--keep-suspects keeps it)" if far.left_out else "fitted"
        print_hanging(
            console,
            f"{far.name}: measured {format_time(far.measured_s)}, by the fit "
            f"{format_time(far.predicted_s)}, {done}: check its unit, batch and GPUs",
        )
    print_overfull(console, fitted.overfull)
    print_table_notes(console, fitted.table, _assumed(fitted))


def _lines(one: Efficiency) -> list[str]:
    def shares(of: Mapping[str, float]) -> str:
        return ", ".join(f"{name} {format_share(value)}" for name, value in of.items())

    hosts = ", ".join(f"{name} {format_time(value)}" for name, value in one.host_s.items())
    return [
        f"GEMMs, of the precision's peak: {shares(one.gemm_share)}",
        f"flash attention, of the 16-bit peak: {shares(one.attention_share)}",
        f"memory-bound operators, of the bandwidth: {shares(one.memory_share)}",
        f"scale-up links {format_share(one.inner_share)}, NIC {format_share(one.outer_share)}",
        f"host, a kernel: {hosts}; a step's fixed time {format_time(one.step_s)}",
        f"spread of log(predicted / measured): {one.spread:.3g}",
        *([few] if (few := few_rows(one)) else ()),
    ]


def _kinds(covered: Covered) -> tuple[str, ...]:
    """Return what sort of steps the rows were: of others the interval is wider."""

    def ends(seen: tuple[int, ...]) -> str:
        return " to ".join(f"{one:,}" for one in dict.fromkeys(seen))

    kinds = (
        f"rows: {covered.rows - covered.moe:,} dense, {covered.moe:,} MoE, "
        f"{covered.crosses:,} beyond one scale-up domain, {', '.join(covered.precisions)}, "
        f"{ends(covered.gpus)} {', '.join(covered.accelerators)}, {ends(covered.seq)} tokens: of "
        "other steps the interval is that of a machine not fitted on"
    )
    return (kinds, suspects) if (suspects := suspect_rows(covered)) else (kinds,)
