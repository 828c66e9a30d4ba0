"""Rows of a space that are alike in some columns, numbered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.steptime.kinds import Kinds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def kinds_by(table: Mapping[str, Ints], names: Sequence[str]) -> Kinds:
    """Return the kinds of rows that are alike in the columns *names*.

    Args:
        table: name to whole numbers from 0 on, one a row.
        names: of the columns that tell kinds apart.

    >>> kinds_by({"tp": np.array([2, 1, 2]), "pp": np.array([1, 1, 4])}, ("tp",)).of_row.tolist()
    [1, 0, 1]
    """
    count = len(table[names[0]])
    code = np.zeros(count, dtype=np.int64)
    for name in names:
        values = table[name]
        present = np.bincount(values) > 0
        code = code * int(present.sum()) + (np.cumsum(present) - 1)[values]
        if code.max(initial=0) > 4 * count:  # or its numbers would need more room than the rows
            code = _numbered(code)
    of_row = _numbered(code)
    first = np.zeros(int(of_row.max(initial=-1)) + 1, dtype=np.int64)
    first[of_row[::-1]] = np.arange(count - 1, -1, -1)
    return Kinds(of_row=of_row, first=first)


def _numbered(code: Ints) -> Ints:
    """Return numbers from 0 on in the place of *code*'s, in their order."""
    present = np.zeros(int(code.max(initial=-1)) + 1, dtype=bool)
    present[code] = True
    numbers: Ints = np.cumsum(present) - 1
    return numbers[code]
