"""A few hundred layouts that stand for a whole space, timed again whenever the machine changes.

Of the best run of each set of degrees, recomputation and ZeRO stage, those are kept that are good
on the machine as it is, with NICs eight times slower or faster, or with sequences 4 or 16 times as
long: another layout can win when one of these changes, without searching again. Clusters that
share a space share their candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.collectives.links import LinkNumbers, TierNumbers, in_flight_bytes_per_s
from planner.search.evaluate import Machine, step_of, taken
from planner.search.seats import rows_of
from planner.search.space import first_of_each
from planner.search.together import stacked_links
from planner.steptime.columns import RECOMPUTE, LayoutColumns
from planner.steptime.memory import step_memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Fabric, Nic
    from planner.layout import Layout
    from planner.model import ModelSpec
    from planner.search.search import Swept
    from planner.steptime.spread import Spreads

KEPT_ROWS = 320
ZERO_STAGES = (0, 1, 2, 3)


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
_SCENARIOS = (
    Change(nic_rate=1.0 / 8.0), Change(nic_rate=8.0), Change(seq=4.0), Change(seq=16.0),
)  # fmt: skip


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

    def steps_s(
        self, change: Change = AS_IT_IS, among: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """Return the step of every row under *change* [s]; see ``steps_under_s``."""
        step_s: NDArray[np.float64] = self.steps_under_s((change,), among)[0]
        return step_s

    def steps_under_s(
        self, changes: Sequence[Change], among: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """Return the step of every row under each change [s], infinite where it does not fit.

        Args:
            changes: what differs; the sequence length is the same in all of them.
            among: the rows that matter; all others are infinite.
        """
        columns, seq = self.columns, changes[0].seq
        if seq != 1.0:
            columns = replace(columns, seq=columns.seq * seq)
        if seq not in self.fitting:
            capacity = self.machine.accelerator.memory_bytes
            self.fitting[seq] = step_memory(self.model, columns, capacity).fits
        wanted = self.fitting[seq] if among is None else self.fitting[seq] & among
        found = np.full((len(changes), len(self.rows)), np.inf)
        rows = np.flatnonzero(wanted)
        if rows.size:
            links = stacked_links([self.changed_links(change) for change in changes])
            step = step_of(
                self.model, taken(columns, rows), replace(self.machine, links=links),
                rows_of(self.spreads, rows),
            )  # fmt: skip
            shape = np.broadcast_shapes(np.shape(step.total_s), (len(changes), 1, rows.size))
            found[:, rows] = np.broadcast_to(step.total_s, shape).min(axis=1)
        return found

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


def pool_of(name: str, model: ModelSpec, fabric: Fabric, swept: Swept) -> Pool:
    """Return the candidates of one evaluated space, at most 5 x ``KEPT_ROWS``."""
    names = [tier.name for tier in fabric.tiers]
    outer = fabric.tiers[names.index("supernode") + 1 :]
    rows = _candidates(swept)
    columns = _columns(swept, rows)
    every = Pool(
        name=name, model=model, machine=swept.machine,
        raw_bytes_per_s=tuple(float(tier.bytes_per_s) for tier in outer), nic=fabric.nic,
        columns=columns, swept=swept, rows=rows, spreads=swept.machine.seats.spreads(columns),
    )  # fmt: skip
    now = swept.evaluated.total_s[np.searchsorted(swept.evaluated.rows, rows)]
    good = [np.argsort(now, kind="stable")[:KEPT_ROWS]]
    good += [_best_under(every, one, now) for one in _SCENARIOS]
    return _with_rows(every, rows[np.unique(np.concatenate(good))])


def _best_under(every: Pool, change: Change, now: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the best ``KEPT_ROWS`` rows under *change*.

    Where slower NICs only slow steps, no row can be among them whose step *now* is longer than the
    last of the best of a few that are good now. Of other sequences every row is timed: a step is
    not monotone in their length.
    """
    if change.nic_rate > 1.0 or change.seq != 1.0:
        return np.argsort(every.steps_s(change), kind="stable")[:KEPT_ROWS]
    few = np.argsort(now, kind="stable")[: 2 * KEPT_ROWS]
    among = np.zeros(len(now), dtype=bool)
    among[few] = True
    total = every.steps_s(change, among)
    limit = np.sort(total[few])[min(KEPT_ROWS, few.size) - 1]
    others = ~among & (now <= limit)
    if others.any():
        total = np.minimum(total, every.steps_s(change, others))
    return np.argsort(total, kind="stable")[:KEPT_ROWS]


def shared_pools(pools: Sequence[Pool]) -> tuple[Pool, ...]:
    """Return *pools*, each with the candidates of all that are of the same space."""
    found = []
    for pool in pools:
        alike = [
            one.rows
            for one in pools
            if one.model == pool.model
            and one.swept.fixed == pool.swept.fixed
            and one.swept.space.size == pool.swept.space.size
        ]
        found.append(_with_rows(pool, np.unique(np.concatenate(alike))))
    return tuple(found)


def _with_rows(pool: Pool, rows: NDArray[np.int64]) -> Pool:
    columns = _columns(pool.swept, rows)
    return replace(
        pool, rows=rows, columns=columns, spreads=pool.machine.seats.spreads(columns), fitting={}
    )


def _columns(swept: Swept, rows: NDArray[np.int64]) -> LayoutColumns:
    return _filled(swept.space.columns(swept.fixed, rows))


def _candidates(swept: Swept) -> NDArray[np.int64]:
    """Return the best row of each set of degrees, recomputation and ZeRO stage.

    And the best of those with the smallest micro-batch, which long sequences need.
    """
    found, table = swept.evaluated, swept.space.table
    rows = found.rows
    way = table["recompute"][rows].astype(np.int64) * len(ZERO_STAGES) + table["zero_stage"][rows]
    group = swept.space.sets(rows) * (len(RECOMPUTE) * len(ZERO_STAGES)) + way
    micro = table["micro_batch"][rows]
    small = np.flatnonzero(micro == micro.min())
    best = first_of_each(group, found.total_s)
    best_small = small[first_of_each(group[small], found.total_s[small])]
    return np.unique(rows[np.concatenate([best, best_small])])


def _filled(columns: LayoutColumns) -> LayoutColumns:
    """Return *columns* with every value an array of one length."""
    count = len(columns.tp)
    return LayoutColumns(
        **{
            f.name: np.broadcast_to(np.asarray(getattr(columns, f.name), float), count)
            for f in fields(LayoutColumns)
        }
    )
