"""Some layouts of a cluster's space, timed again whenever the machine changes.

Pools of one space that have the same rows are timed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.search.changed import AS_IT_IS, Change, changed_links, outer_bytes_per_s
from planner.search.evaluate import CHUNK_ROWS, Machine, filled, step_of, taken
from planner.search.seats import rows_of
from planner.search.together import grouped, shape_of, stacked_links, stacked_spreads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.collectives.links import LinkNumbers
    from planner.fabric import Fabric, Nic
    from planner.layout import Layout
    from planner.model import ModelSpec
    from planner.search.rules import Rule
    from planner.search.whole import Whole
    from planner.steptime.columns import LayoutColumns
    from planner.steptime.spread import Spreads


_ROUNDING = 1e-12  # twins of other degrees differ by it


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The shortest step of some rows.

    Args:
        step_s: itself, infinite where none fits [s].
        row: of the space, -1 where none fits.
    """

    step_s: float
    row: int


NONE_FITS = Best(step_s=float("inf"), row=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Some layouts of one cluster's space.

    Args:
        name: of the cluster.
        machine: the cluster as it is.
        raw_bytes_per_s: what the links of each outer tier carry for a GPU, whatever its NIC can
            keep in flight [bytes/s].
        nic: the NIC, whose in-flight limit bounds them.
        whole: the space they are of.
        rules: conditions that all of it meets.
        rows: their rows in it, ascending.
        columns: the layouts.
        spreads: how their groups sit, in each seating.
        seated_ratio: its best step with every rank in a seat, over its shortest in rank order [1].
        spread: of the fit of its steps, in log [1].
    """

    name: str
    machine: Machine
    raw_bytes_per_s: tuple[float, ...]
    nic: Nic
    whole: Whole
    rules: tuple[Rule, ...]
    rows: NDArray[np.int64]
    columns: LayoutColumns
    spreads: Spreads
    seated_ratio: float = 1.0
    spread: float = 0.0

    @classmethod
    def of(
        cls, name: str, fabric: Fabric, machine: Machine, whole: Whole, rows: NDArray[np.int64],
        rules: tuple[Rule, ...] = (),
    ) -> Pool:  # fmt: skip
        """Return the pool of some *rows* of a space on *fabric*."""
        columns = filled(whole.space.columns(whole.fixed, rows))
        return cls(
            name=name, machine=machine, nic=fabric.nic, whole=whole, rules=rules, rows=rows,
            raw_bytes_per_s=outer_bytes_per_s(fabric), columns=columns,
            spreads=machine.seats.spreads(columns),
        )  # fmt: skip

    def with_rows(self, rows: NDArray[np.int64]) -> Pool:
        """Return the pool with other *rows* of its space."""
        columns = filled(self.whole.space.columns(self.whole.fixed, rows))
        return replace(
            self, rows=rows, columns=columns, spreads=self.machine.seats.spreads(columns)
        )

    @property
    def model(self) -> ModelSpec:
        """The transformer's shape."""
        return self.whole.model

    @property
    def tokens(self) -> float:
        """Tokens of a step on the machine as it is [1]."""
        return float(self.whole.fixed["global_batch"] * self.whole.fixed["seq"])

    @property
    def token_ratio(self) -> float:
        """What a step in rank order is to the time of one of today's tokens in seats [1]."""
        return self.seated_ratio / self.tokens

    def layout(self, row: int) -> Layout:
        """Return the layout of one row of the space."""
        return self.whole.space.layout(row, self.whole.fixed)

    def best(self, change: Change = AS_IT_IS) -> Best:
        """Return the best of the pool's rows under *change*."""
        return best_of(self.rows, steps_at_once_s([(self, change)])[0])

    def changed(self, change: Change) -> Machine:
        """Return the machine under *change*."""
        return replace(self.machine, links=self.changed_links(change))

    def changed_links(self, change: Change) -> LinkNumbers:
        """Return the links under *change*."""
        return changed_links(self.machine.links, self.raw_bytes_per_s, self.nic, change)


def best_of(rows: NDArray[np.int64], steps_s: NDArray[np.float64]) -> Best:
    """Return the shortest of *steps_s* and its row; of equal ones, to rounding, the first.

    >>> best_of(np.array([3, 5, 8]), np.array([2.0, 1.0, 1.0])).row
    5
    """
    least_s = float(steps_s.min(initial=np.inf))
    if not np.isfinite(least_s):
        return NONE_FITS
    first = int(np.flatnonzero(steps_s <= least_s * (1.0 + _ROUNDING))[0])
    return Best(step_s=float(steps_s[first]), row=int(rows[first]))


def steps_at_once_s(asked: Sequence[tuple[Pool, Change]]) -> NDArray[np.float64]:
    """Return the step of every row of some pools under a change each [s]; infinite if too large.

    Args:
        asked: pools of one space and the same rows, and changes of one sequence length.

    Returns:
        Shape [asked, rows].
    """
    first, seq = asked[0][0], asked[0][1].seq
    can = first.whole.that_can(seq, first.rows)
    rows = np.flatnonzero(np.isin(first.rows, can, assume_unique=True))
    columns = replace(first.columns, seq=first.columns.seq * seq)
    links = [pool.changed_links(change) for pool, change in asked]
    found = np.full((len(asked), len(first.rows)), np.inf)
    for some in grouped(range(len(asked)), key=lambda position: shape_of(links[position])):
        pools = [asked[position][0] for position in some]
        one_seating = all(pool is pools[0] for pool in pools)
        machine = replace(first.machine, links=stacked_links([links[at] for at in some]))
        for start in range(0, rows.size, CHUNK_ROWS):
            few = rows[start : start + CHUNK_ROWS]
            spreads = [rows_of(one.spreads, few) for one in (pools[:1] if one_seating else pools)]
            step = step_of(first.model, taken(columns, few), machine, stacked_spreads(spreads))
            shape = np.broadcast_shapes(np.shape(step.total_s), (len(some), 1, few.size))
            found[np.asarray(some)[:, None], few] = np.broadcast_to(step.total_s, shape).min(axis=1)
    return found
