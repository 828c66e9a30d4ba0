"""The answers that nothing beats in every respect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def pareto_front(costs: ArrayLike) -> NDArray[np.int64]:
    """Return the rows that no other row beats, by their first cost.

    A row is beaten by one that is nowhere dearer and somewhere cheaper; of equal rows the first
    stays.

    Args:
        costs: what is to be small, shape [rows, respects]; negate what is to be large.

    >>> pareto_front([[1.0, 9.0], [2.0, 3.0], [2.5, 3.0], [4.0, 1.0]]).tolist()
    [0, 1, 3]
    """
    table = np.asarray(costs, dtype=float)
    order = np.lexsort((np.arange(len(table)), *table.T[::-1]))
    if table.shape[1] == 2:
        second = table[order, 1]
        least = np.minimum.accumulate(np.concatenate(([np.inf], second[:-1])))
        flat: NDArray[np.int64] = order[second < least]
        return flat
    front: list[int] = []
    left = order
    while left.size:
        one = left[0]
        front.append(int(one))
        # Sorted as they are, none of what is left beats *one*; it strikes what it beats or equals.
        left = left[(table[left] < table[one]).any(axis=1)]
    return np.array(front, dtype=np.int64)
