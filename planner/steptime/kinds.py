"""Rows of columns that are alike in what a part of the step depends on: reckoned once, then spread.

A space is a product: what depends on the degrees alone has a few dozen values in thousands of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.steptime.columns import LayoutColumns, Values

_CYCLES = "zero_stage"  # varies faster than the degrees do, from row to row
_CODES = 4  # ZeRO stages 0 to 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """Rows by kind.

    Args:
        first: a row of each kind [1].
        of_row: the kind that each row is of [1].
    """

    first: NDArray[np.intp]
    of_row: NDArray[np.intp]


def kinds_of_rows(columns: LayoutColumns, names: Sequence[str]) -> Kinds | None:
    """Return the kinds of rows that *names* tell apart; None of one row, or where most differ.

    Rows that are alike usually follow each other, but for the ZeRO stage, which goes round and
    round among them: a kind is a run of rows and a stage. A kind may be found more than once.

    >>> from planner.layout import Layout
    >>> from planner.steptime.columns import columns_of
    >>> some = columns_of([Layout(dp=2, zero_stage=z, global_batch=8) for z in (1, 0, 1, 0, 1, 1)])
    >>> kinds_of_rows(some, ("dp", "zero_stage")).of_row.tolist()
    [1, 0, 1, 0, 1, 1]
    """
    varied = {name: getattr(columns, name) for name in names}
    varied = {name: v for name, v in varied.items() if isinstance(v, np.ndarray) and v.ndim}
    if not varied:
        return None
    rows = max(len(column) for column in varied.values())
    stage = varied.pop(_CYCLES, None)
    run = np.zeros(rows, dtype=np.intp)
    changes = [column[1:] != column[:-1] for column in varied.values()]
    if changes:
        np.cumsum(np.logical_or.reduce(changes), out=run[1:])
    kind = run if stage is None else run * _CODES + stage.astype(np.intp)
    first = np.full(int(kind[-1] // _CODES + 1) * _CODES if stage is not None else run[-1] + 1, -1)
    first[kind[::-1]] = np.arange(rows - 1, -1, -1)
    there = first >= 0
    number = np.cumsum(there) - 1
    if 2 * (number[-1] + 1) > rows:
        return None
    return Kinds(first=first[there], of_row=number[kind])


def of_rows(columns: Any, rows: NDArray[np.intp]) -> Any:
    """Return a dataclass of columns with some of its rows; what is alike in all stays so."""
    return type(columns)(
        **{f.name: at_rows(getattr(columns, f.name), rows) for f in fields(columns)}
    )


def at_rows(values: Values, rows: NDArray[np.intp]) -> Values:
    """Return some rows of *values*, the last axis; what has one value for all of them stays."""
    if isinstance(values, np.ndarray) and values.ndim and values.shape[-1] > 1:
        return values[..., rows]
    return values
