"""States of a sweep side by side: what their domains cost at least, and which of them are alike."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TABLED_FASTER = 30  # times that sums of tables are faster than ways that are looked at one by one
_MIXED = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # odd: they mix bits well


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """The least that the domains of a state from one on cost that take some cells together.

    States that agree from a domain on share what is known of it.

    Args:
        nodes: of each domain's place in the states and the end, which row of the tables; shape
            [places + 1, states].
        tables_bytes: of each place, by the cells to be taken, shape [rows, cells + 1] [bytes].
        looked_at: what that took, in ways to deal out stages [1].
    """

    nodes: list[NDArray[np.int64]]
    tables_bytes: list[NDArray[np.float64]]
    looked_at: int

    @classmethod
    def of(
        cls,
        which: NDArray[np.int64],
        costs_bytes: NDArray[np.float64],
        cells: int,
        most: int,
        ends_s: float,
    ) -> Rest | None:
        """Return the tables of states whose domains are *which* of some, shape [states, places].

        None if more than *most* sums are to be looked at, or when ``time.monotonic()`` is past
        *ends_s*.
        """
        looked_at = 0
        end = np.full((1, cells + 1), np.inf)
        end[0, 0] = 0.0
        nodes, tables_bytes = [np.zeros(len(which), dtype=np.int64)], [end]
        for i in reversed(range(which.shape[1])):
            below = tables_bytes[-1]
            key, node = np.unique(which[:, i] * len(below) + nodes[-1], return_inverse=True)
            one, rest = np.divmod(key, len(below))
            paid = costs_bytes[one, : cells + 1]
            possible = np.isfinite(paid)
            looked_at += int(np.count_nonzero(possible)) * (cells + 1) // _TABLED_FASTER
            if looked_at > most:
                return None
            table_bytes = np.full((len(key), cells + 1), np.inf)
            for b in np.flatnonzero(possible.any(axis=0)).tolist():
                if monotonic() > ends_s:
                    return None
                some = np.flatnonzero(possible[:, b])
                more = paid[some, b, None] + below[rest[some], : cells + 1 - b]
                table_bytes[some, b:] = np.minimum(table_bytes[some, b:], more)
            nodes.append(node.ravel())
            tables_bytes.append(table_bytes)
        return cls(nodes=nodes[::-1], tables_bytes=tables_bytes[::-1], looked_at=looked_at)

    @property
    def least(self) -> NDArray[np.float64]:
        """What each state's domains cost that take all cells, shape [states] [bytes]."""
        least: NDArray[np.float64] = self.tables_bytes[0][self.nodes[0], -1]
        return least

    def after(
        self, place: int, state: NDArray[np.int64], cells: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the least of the domains after one for *cells*, shape [states, counts] [bytes]."""
        rows = self.nodes[place + 1][state]
        table: NDArray[np.float64] = self.tables_bytes[place + 1]
        found: NDArray[np.float64] = table[rows[:, None], np.maximum(cells, 0)]
        return found


def mixed(rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a number for each row, most likely another one for each that differs."""
    first, second, third = (np.uint64(m) for m in _MIXED)
    bits = (rows.astype(np.uint64) + np.uint64(1)) * first
    bits ^= bits >> np.uint64(30)
    bits *= second
    bits ^= bits >> np.uint64(27)
    bits *= third
    bits ^= bits >> np.uint64(31)
    found: NDArray[np.uint64] = bits.sum(axis=1, dtype=np.uint64)
    return found


def cheapest_of_alike(
    rows: NDArray[np.int64], cost_bytes: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the indices of the cheapest of all rows that are alike.

    Rows with one mixed number that differ are all kept; alike ones between them may stay, too.
    """
    of_rows = mixed(rows)
    order = np.lexsort((cost_bytes, of_rows))
    same = of_rows[order[1:]] == of_rows[order[:-1]]
    same &= (rows[order[1:]] == rows[order[:-1]]).all(axis=1)
    kept: NDArray[np.int64] = order[np.concatenate([[True], ~same])[: len(order)]]
    return kept
