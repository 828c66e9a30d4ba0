"""Fits the efficiencies of an accelerator on measured steps: few numbers, each near what is known.

The residual of a row is log(predicted / measured); a row counts little when far off (soft L1), so
that one broken run does not bend the fit. Every number is drawn to its default for the accelerator
(``default_efficiency``) with a width, so that a table that says nothing of, say, the NIC leaves
it where other generations have it.

Rows are split by layout, not one by one: all releases of one layout fall on the same side, and
the half that was not fitted scores the fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from planner.errors import InputError
from planner.steptime.columns import PRECISIONS, STACKS, Values
from planner.steptime.odd_machines import CHIP_WIDTH, CLOCK_WIDTH, odd_machines
from planner.steptime.rates import Efficiency, default_efficiency
from planner.steptime.runs import Batch, Run, batches, predicted_s

ROW_WIDTH = 0.08
"""What one row's log residual is divided by: the noise of repeated runs [1]."""

SOURCE_WIDTH = 0.05
"""Width in log of what sets one source's software apart from another's [1]."""

LEAST_ROWS = 3
"""Measured rows of an accelerator that a fit needs [1]."""

_WEAK = 0.2
_SOURCE_ROWS = 30.0
_SHORT_S = 0.5


WIDTHS: Mapping[str, float] = {
    "gemm": 0.15, "attention": 0.3, "memory": 0.12, "inner": 0.08, "outer": 0.12,
    "host": 0.3, "step": 0.3, "clock": CLOCK_WIDTH,
}  # fmt: skip
"""Width in log of what is known of a number before the fit; its middle is the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """One accelerator's fit.

    Args:
        chip: the accelerator.
        efficiency: the numbers, with a spread a tenth wider than that of the rows fitted.
        rows: rows fitted [1].
        log_ratio: log(predicted / measured) of them [1].
        told_share: how far the rows, not the default, tell each number, by its name: 1 less its
            variance after the fit over the one before [1].
    """

    chip: str
    efficiency: Efficiency
    rows: int
    log_ratio: NDArray[np.float64]
    told_share: Mapping[str, float]


def layout_key(run: Run) -> str:
    """Return what tells one layout of one model on one cluster from another, as text.

    With the source, which where no column states it is the file's name.
    """
    c = run.columns
    degrees = (c.tp, c.cp, c.ep, c.etp, c.dp, c.pp, c.vpp, c.zero_stage, c.micro_batch,
               c.global_batch, c.seq, c.recompute, c.precision, c.sequence_parallel)  # fmt: skip
    return " ".join([run.group, *(f"{float(value):g}" for value in degrees)])


def content_key(run: Run) -> str:
    """Return the same from what the row says alone, as text.

    Neither the file's name nor how the row spells its accelerator is in it.
    """
    shape = replace(run.model, name="", assumed={})
    return f"{shape} {run.accelerator.name} {layout_key(replace(run, group=''))}"


def content_half(run: Run) -> bool:
    """Return which half of the layouts a row of any table is in, by what it says alone."""
    return crc32(content_key(run).encode()) % 2 == 0


def fitting_half(run: Run) -> bool:
    """Return whether *run* is in the half that the shipped numbers are fitted on."""
    return crc32(layout_key(run).encode()) % 2 == 0


def thinned(runs: Sequence[Run], most: int = 200) -> list[Run]:
    """Return at most *most* runs of each source, spread evenly by the hash of their names."""
    kept: list[Run] = []
    for source in dict.fromkeys(run.source for run in runs):
        mine = [run for run in runs if run.source == source]
        if len(mine) > most:
            ordered = sorted(range(len(mine)), key=lambda i: crc32(mine[i].name.encode()))
            mine = [mine[i] for i in sorted(ordered[:most])]
        kept += mine
    return kept


def weights_of(runs: Sequence[Run]) -> NDArray[np.float64]:
    """Return a weight for each run [1].

    A source of n rows counts as if it had about 30: each row by (30 / n)^1/2 between 0.7 and 1.4.
    Rows that their own source calls weak count a fifth. The noise of a step has a fixed part,
    which weighs more the shorter the step: below half a second the weight falls with it.
    """
    counts: dict[str, int] = {}
    for run in runs:
        counts[run.source] = counts.get(run.source, 0) + 1
    return np.array(
        [
            min(1.4, max(0.7, (_SOURCE_ROWS / counts[run.source]) ** 0.5))
            * (_WEAK if run.weak else 1.0)
            * min(1.0, run.measured_s / _SHORT_S)
            for run in runs
        ]
    )


def fit(runs: Sequence[Run]) -> dict[str, Fitted]:
    """Return the fit of every accelerator that *runs*, of several machines, name.

    A chip whose matrix products come out three deviations off what is measured of it alone has an
    odd machine among its own: that one gets a clock of its own, and the chip keeps its numbers.

    Args:
        runs: measured rows to fit on; those without a measured step are left out.

    Raises:
        InputError: no row has a measured step.
    """
    usable = [run for run in runs if run.measured_s > 0]
    if not usable:
        raise InputError("no row has a measured step to fit on (column measured_step_s)")
    answer = {}
    for chip in sorted({run.chip for run in usable}):
        mine = thinned([run for run in usable if run.chip == chip])
        if len(mine) < LEAST_ROWS:
            continue
        fitted = fit_chip(chip, mine, ())
        odd = odd_machines(fitted.efficiency, mine)
        answer[chip] = fit_chip(chip, mine, odd) if odd else fitted
    return answer


def _names(runs: Sequence[Run], odd: Sequence[str]) -> list[str]:
    precisions = sorted({PRECISIONS[int(run.columns.precision)] for run in runs})
    stacks = sorted({STACKS[int(run.columns.stack)] for run in runs})
    return [
        *(f"gemm.{p}" for p in precisions),
        *(f"attention.{s}" for s in stacks if s != "unfused"),
        *(f"memory.{s}" for s in stacks),
        *(f"host.{s}" for s in stacks),
        "inner", "outer", "step", *(f"clock.{s}" for s in odd),
    ]  # fmt: skip


def _middle(name: str, base: Efficiency) -> float:
    """Return the default of the number called *name*, which a fit starts from and is drawn to."""
    kind, _, which = name.partition(".")
    if kind in ("inner", "outer"):
        return base.inner_share if kind == "inner" else base.outer_share
    if kind == "step":
        return base.step_s
    if kind == "clock":
        return 1.0
    if kind == "attention":
        return base.attention_share[which]
    table = {"gemm": base.gemm_share, "memory": base.memory_share, "host": base.host_s}[kind]
    return table[which] if which in table else next(iter(table.values()))


def _widths(names: Sequence[str]) -> NDArray[np.float64]:
    """Return the width of every number, a chip's own the narrower where clocks are told apart."""
    kinds = [name.partition(".")[0] for name in names]
    chip = {"gemm": CHIP_WIDTH} if "clock" in kinds else {}
    return np.array([chip.get(kind, WIDTHS[kind]) for kind in kinds])


def efficiency_from(
    numbers: Mapping[str, Values], spread: float, rows: int, fitted_on: str, base: Efficiency
) -> Efficiency:
    """Return an ``Efficiency`` from dotted names to numbers; *base* fills in what is missing."""

    def picked(kind: str) -> dict[str, float]:
        found = {n.partition(".")[2]: v for n, v in numbers.items() if n.startswith(f"{kind}.")}
        capped = {n: min(v, 1.0) for n, v in found.items()}
        return found if kind in ("host", "clock") else capped

    return Efficiency(
        gemm_share=picked("gemm"),
        attention_share=picked("attention") or base.attention_share,
        memory_share=picked("memory"),
        inner_share=min(numbers["inner"], 1.0),
        outer_share=min(numbers["outer"], 1.0),
        host_s=picked("host"),
        step_s=numbers["step"],
        clock_ratio=picked("clock"),
        spread=spread,
        rows=rows,
        fitted_on=fitted_on,
    )


def residuals_of(
    parts: Sequence[Batch], runs: Sequence[Run], efficiency: Efficiency
) -> NDArray[np.float64]:
    """Return log(predicted / measured) of every run [1]."""
    predicted = predicted_s(parts, {run.chip: efficiency for run in runs}, len(runs))
    measured = np.array([run.measured_s for run in runs])
    answer: NDArray[np.float64] = np.log(predicted / measured)
    return answer


def robust_spread(log_ratio: NDArray[np.float64]) -> float:
    """Return the standard deviation that a tenth of outliers does not move much [1].

    Root mean square of the residuals clipped at three times 1.48 times their median size.
    """
    size = np.abs(log_ratio)
    limit = 3.0 * 1.4826 * float(np.median(size))
    clipped = np.minimum(size, max(limit, 1e-6))
    return float(np.sqrt(np.mean(clipped**2)))


def paces_of(runs: Sequence[Run], log_ratio: NDArray[np.float64]) -> dict[str, float]:
    """Return how long each source's software takes against the fit, measured over predicted [1].

    A random effect of the source, drawn to 1: the mean of its residuals, clipped at the row
    width, times n / (n + (row width / source width)^2).
    """
    paces = {}
    for source in sorted({run.source for run in runs}):
        mine = np.array([run.source == source for run in runs])
        limited = np.clip(log_ratio[mine], -ROW_WIDTH, ROW_WIDTH)
        shrunk = np.sum(limited) / (len(limited) + (ROW_WIDTH / SOURCE_WIDTH) ** 2)
        paces[source] = float(np.exp(-shrunk))
    return paces


def fit_chip(chip: str, runs: Sequence[Run], odd: Sequence[str]) -> Fitted:
    """Return the fit of one accelerator.

    Args:
        chip: the accelerator.
        runs: its measured rows.
        odd: sources whose machine has a clock of its own.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 - only a fit pays for SciPy

    names = _names(runs, odd)
    base = default_efficiency(runs[0].accelerator)
    middle = np.log([_middle(name, base) for name in names])
    width = _widths(names)
    parts, weights = batches(runs), weights_of(runs)
    sources = ", ".join(sorted({run.source for run in runs}))

    def efficiency(x: NDArray[np.float64], spread: float = 0.2) -> Efficiency:
        numbers = dict(zip(names, (float(v) for v in np.exp(x)), strict=True))
        return efficiency_from(numbers, spread, len(runs), sources, base)

    def residuals(x: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = weights * residuals_of(parts, runs, efficiency(x)) / ROW_WIDTH
        return np.concatenate([rows, (x - middle) / width])

    def loss(z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Soft L1 of the rows, squares of the distances to the defaults: value and slopes."""
        root = np.sqrt(1.0 + z)
        soft = np.array([2.0 * (root - 1.0), 1.0 / root, -0.5 * root**-3])
        soft[:, len(runs) :] = np.array([z, np.ones_like(z), np.zeros_like(z)])[:, len(runs) :]
        return soft

    solved = least_squares(
        residuals, middle, loss=loss, f_scale=1.5, diff_step=1e-3, ftol=1e-4, xtol=1e-3
    )
    own = residuals_of(parts, runs, efficiency(solved.x))
    fitted = efficiency(solved.x, max(1.1 * robust_spread(own), 0.02))
    return Fitted(
        chip=chip,
        efficiency=replace(fitted, pace_ratio=paces_of(runs, own)),
        rows=len(runs),
        log_ratio=own,
        told_share=dict(zip(names, _told(solved.jac, width), strict=True)),
    )


def _told(slopes: NDArray[np.float64], width: NDArray[np.float64]) -> list[float]:
    """Return what share of each number's variance before the fit the rows take away [1].

    1 - (J'J)^-1_ii / width_i^2, J the *slopes* of rows and defaults where the fit ends: numbers
    that only a sum of is told, such as products and their operands' traffic, share what it tells.
    """
    after = np.diag(np.linalg.inv(slopes.T @ slopes))
    return [float(share) for share in 1.0 - after / width**2]
