"""Some layouts of a cluster's space, timed again whenever the machine changes.

``candidates.py`` says which. Pools of one space that have the same rows are timed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.collectives.links import LinkNumbers, TierNumbers, in_flight_bytes_per_s
from planner.search.evaluate import CHUNK_ROWS, Machine, step_of, taken
from planner.search.seats import rows_of
from planner.search.together import grouped, shape_of, stacked_links, stacked_spreads
from planner.steptime.columns import LayoutColumns
from planner.steptime.memory import step_memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Nic
    from planner.layout import Layout
    from planner.model import ModelSpec
    from planner.search.search import Swept
    from planner.steptime.spread import Spreads


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is different from the machine as it is, as factors.

    Args:
        nic_rate: of the NICs' line rate and all links outside the supernode [1].
        nic_latency: of every start-up outside the supernode [1].
        in_flight: of the transactions a NIC may have outstanding [1].
        crowding: of the oversubscription outside the supernode [1].
        scale_up_rate: of the rates inside the supernode [1].
        seq: of the sequence length [1].
    """

    nic_rate: float = 1.0
    nic_latency: float = 1.0
    in_flight: float = 1.0
    crowding: float = 1.0
    scale_up_rate: float = 1.0
    seq: float = 1.0


AS_IT_IS = Change()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Candidate layouts of one cluster.

    Args:
        name: of the cluster.
        model: the transformer's shape.
        machine: the cluster as it is.
        raw_bytes_per_s: what the links of each outer tier carry for a GPU, whatever its NIC can
            keep in flight [bytes/s].
        nic: the NIC, whose in-flight limit bounds them.
        columns: the layouts.
        swept: the space they are of.
        rows: their rows in it.
        spreads: how their groups sit, in each seating.
        fitting: by sequence length, as a factor, which fit; filled when asked.
    """

    name: str
    model: ModelSpec
    machine: Machine
    raw_bytes_per_s: tuple[float, ...]
    nic: Nic
    columns: LayoutColumns
    swept: Swept
    rows: NDArray[np.int64]
    spreads: Spreads
    fitting: dict[float, NDArray[np.bool_]] = field(default_factory=dict, compare=False)

    def best(self, change: Change = AS_IT_IS) -> tuple[float, int]:
        """Return the shortest step [s] under *change*, and the row that has it; -1 if none fits."""
        total = self.steps_s(change)
        row = int(total.argmin())
        return (float(total[row]), row) if np.isfinite(total[row]) else (float("inf"), -1)

    def steps_s(self, change: Change = AS_IT_IS) -> NDArray[np.float64]:
        """Return the step of every row under *change* [s], infinite where it does not fit."""
        total: NDArray[np.float64] = steps_at_once_s([(self, change)])[0]
        return total

    def fits(self, seq: float) -> NDArray[np.bool_]:
        """Return which rows fit when sequences are *seq* times as long."""
        if seq not in self.fitting:
            columns = replace(self.columns, seq=self.columns.seq * seq)
            capacity = self.machine.accelerator.memory_bytes
            self.fitting[seq] = step_memory(self.model, columns, capacity).fits
        return self.fitting[seq]

    @classmethod
    def of(
        cls, swept: Swept, rows: NDArray[np.int64], *, name: str, model: ModelSpec,
        raw_bytes_per_s: tuple[float, ...], nic: Nic,
    ) -> Pool:  # fmt: skip
        """Return the pool of some *rows* of a space."""
        columns = _filled(swept.space.columns(swept.fixed, rows))
        return cls(
            name=name, model=model, machine=swept.machine, raw_bytes_per_s=raw_bytes_per_s,
            nic=nic, columns=columns, swept=swept, rows=rows,
            spreads=swept.machine.seats.spreads(columns),
        )  # fmt: skip

    def with_rows(self, rows: NDArray[np.int64]) -> Pool:
        """Return the pool with other *rows* of its space."""
        return Pool.of(self.swept, rows, name=self.name, model=self.model,
                       raw_bytes_per_s=self.raw_bytes_per_s, nic=self.nic)  # fmt: skip

    def on(self, machine: Machine) -> Pool:
        """Return the same candidates on another machine, its NICs in flight as they are."""
        outer = machine.links.outer
        return replace(
            self, machine=machine, spreads=machine.seats.spreads(self.columns),
            raw_bytes_per_s=tuple(float(np.asarray(tier.bytes_per_s)) for tier in outer),
            fitting={},
        )  # fmt: skip

    @property
    def tokens(self) -> float:
        """Tokens of a step on the machine as it is [1]."""
        return float(self.swept.fixed["global_batch"] * self.swept.fixed["seq"])

    def layout(self, row: int) -> Layout:
        """Return the layout of one row."""
        return self.swept.space.layout(int(self.rows[row]), self.swept.fixed)

    def changed_links(self, change: Change) -> LinkNumbers:
        """Return the links under *change*; the in-flight limit is applied anew."""
        links, nic = self.machine.links, self.nic
        limit = float(
            in_flight_bytes_per_s(
                nic.line_bytes_per_s * change.nic_rate, nic.in_flight * change.in_flight,
                nic.transaction_bytes, nic.turnaround_s,
            )
        )  # fmt: skip
        inside = links.inside
        tiers: list[TierNumbers] = [
            replace(
                inside,
                bytes_per_s=np.multiply(inside.bytes_per_s, change.scale_up_rate),
                shared_bytes_per_s=np.multiply(inside.shared_bytes_per_s, change.scale_up_rate),
                pair_bytes_per_s=np.multiply(inside.pair_bytes_per_s, change.scale_up_rate),
            )
        ]
        for raw, tier in zip(self.raw_bytes_per_s, links.outer, strict=True):
            alone = min(raw * change.nic_rate, limit)
            crowded = float(np.asarray(tier.shared_bytes_per_s)) * change.nic_rate
            # A tier that nothing crowds takes all that its GPUs send, however much that becomes.
            free = float(np.asarray(tier.shared_bytes_per_s)) >= float(np.asarray(tier.bytes_per_s))
            shared = (alone if free else min(crowded, alone)) / change.crowding
            tiers.append(
                replace(
                    tier, bytes_per_s=alone, shared_bytes_per_s=min(shared, alone),
                    latency_s=np.multiply(tier.latency_s, change.nic_latency),
                    pair_bytes_per_s=np.multiply(tier.pair_bytes_per_s, change.nic_rate),
                )
            )  # fmt: skip
        return replace(links, tiers=tuple(tiers))


def steps_at_once_s(
    asked: Sequence[tuple[Pool, Change]], among: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Return the step of every row of some pools under a change each [s]; infinite if too large.

    Args:
        asked: pools of one space and the same rows, and changes of one sequence length.
        among: the rows that matter; all others are infinite.

    Returns:
        Shape [asked, rows].
    """
    first, seq = asked[0][0], asked[0][1].seq
    wanted = first.fits(seq) if among is None else first.fits(seq) & among
    rows = np.flatnonzero(wanted)
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


def _filled(columns: LayoutColumns) -> LayoutColumns:
    """Return *columns* with every value an array of one length."""
    count = len(columns.tp)
    return LayoutColumns(
        **{
            f.name: np.broadcast_to(np.asarray(getattr(columns, f.name), float), count)
            for f in fields(LayoutColumns)
        }
    )
