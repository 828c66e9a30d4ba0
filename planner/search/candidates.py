"""A few hundred layouts that stand for a whole space.

Of the best run of each set of degrees, recomputation and ZeRO stage, those are kept that are good
on the machine as it is, with NICs eight times slower or faster, or with sequences 4 or 16 times as
long: another layout can win when one of these changes, without searching again. Clusters that
share a space share their candidates.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.search.pool import Change, Pool, steps_at_once_s
from planner.search.space import first_of_each
from planner.search.together import grouped
from planner.steptime.columns import RECOMPUTE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Fabric
    from planner.model import ModelSpec
    from planner.search.search import Swept

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_KEPT_ROWS = 320
_SLOWER = Change(nic_rate=1.0 / 8.0)
_OTHERWISE = (Change(nic_rate=8.0), Change(seq=4.0), Change(seq=16.0))
_ZERO_STAGES = 4


def whole_pool(name: str, model: ModelSpec, fabric: Fabric, swept: Swept) -> Pool:
    """Return the best run of each set of degrees, recomputation and ZeRO stage of a space.

    And the best of those with the smallest micro-batch, which long sequences need.
    """
    found, table = swept.evaluated, swept.space.table
    rows = found.rows
    way = table["recompute"][rows].astype(np.int64) * _ZERO_STAGES + table["zero_stage"][rows]
    group = swept.space.sets(rows) * (len(RECOMPUTE) * _ZERO_STAGES) + way
    micro = table["micro_batch"][rows]
    small = np.flatnonzero(micro == micro.min())
    best = first_of_each(group, found.total_s)
    best_small = small[first_of_each(group[small], found.total_s[small])]
    names = [tier.name for tier in fabric.tiers]
    outer = fabric.tiers[names.index("supernode") + 1 :]
    return Pool.of(
        swept, np.unique(rows[np.concatenate([best, best_small])]), name=name, model=model,
        raw_bytes_per_s=tuple(float(tier.bytes_per_s) for tier in outer), nic=fabric.nic,
    )  # fmt: skip


def thinned(pools: Sequence[Pool]) -> list[Pool]:
    """Return *pools*, each with at most 5 x ``_KEPT_ROWS`` of its rows."""
    kept = [[_first(_now(pool)), _first_if_slower(pool)] for pool in pools]
    for some in grouped(pools, key=lambda pool: id(pool.swept.space)):
        every = np.unique(np.concatenate([pools[at].rows for at in some]))
        together = [pools[at].with_rows(every) for at in some]
        own = [np.searchsorted(every, pools[at].rows) for at in some]
        # Of other sequences every row is timed: a step is not monotone in their length.
        for change in _OTHERWISE:
            steps_s = steps_at_once_s([(pool, change) for pool in together])
            for at, rows, total_s in zip(some, own, steps_s, strict=True):
                kept[at].append(_first(total_s[rows]))
    return [
        pool.with_rows(pool.rows[np.unique(np.concatenate(rows))])
        for pool, rows in zip(pools, kept, strict=True)
    ]


def _now(pool: Pool) -> Floats:
    """Return the steps on the machine as it is, as they were evaluated [s]."""
    found = pool.swept.evaluated
    return found.total_s[np.searchsorted(found.rows, pool.rows)]


def _first(steps_s: Floats) -> Ints:
    """Return the ``_KEPT_ROWS`` shortest."""
    return np.argsort(steps_s, kind="stable")[:_KEPT_ROWS]


def _first_if_slower(pool: Pool) -> Ints:
    """Return the shortest steps with slower NICs.

    They only slow steps: no row can be among the shortest whose step now is longer than the last
    of the best of a few that are good now.
    """
    now = _now(pool)
    few = np.argsort(now, kind="stable")[: 2 * _KEPT_ROWS]
    among = np.zeros(len(now), dtype=bool)
    among[few] = True
    total: Floats = steps_at_once_s([(pool, _SLOWER)], among)[0]
    limit = np.sort(total[few])[min(_KEPT_ROWS, few.size) - 1]
    others = ~among & (now <= limit)
    if others.any():
        total = np.minimum(total, steps_at_once_s([(pool, _SLOWER)], others)[0])
    return _first(total)


def shared_pools(pools: Sequence[Pool]) -> tuple[Pool, ...]:
    """Return *pools*, each with the candidates of all that have the same layouts to choose from."""
    found: dict[int, Pool] = {}
    for some in grouped(pools, key=_layouts_of):
        rows = np.unique(np.concatenate([pools[at].rows for at in some]))
        found |= {at: pools[at].with_rows(rows) for at in some}
    return tuple(found[at] for at in range(len(pools)))


def _layouts_of(pool: Pool) -> Hashable:
    """Return what decides on the layouts that can run, whatever the accelerator, as text."""
    swept = pool.swept
    gpus = int(pool.columns.gpus[0])
    rules = [rule.text for rule in swept.rules]
    return repr((pool.model, gpus, sorted(swept.fixed.items()), rules, swept.space.size))
