"""What a better part would bring a cluster, with its layouts chosen anew, and what nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.search.best_steps import fastest_of
from planner.search.changed import Change
from planner.search.evaluate import times_on
from planner.search.fastest import shortest_steps
from planner.search.least_steps import rows_below
from planner.search.pool import Pool, steps_at_once_s
from planner.search.search import machine_of

if TYPE_CHECKING:
    from planner.fabric import Fabric

ONE_MORE_NIC = "one more NIC a GPU"
BIGGER_SUPERNODE = "supernodes of twice the size"
GAINS: dict[str, Change] = {
    "half the oversubscription": Change(crowding=0.5),
    "twice the in-flight limit": Change(in_flight=2.0),
    "half the NIC latency": Change(nic_latency=0.5),
    "twice the scale-up rate": Change(scale_up_rate=2.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What a better machine would bring a cluster.

    Args:
        name: what is better.
        step_s: the step then [s].
        gain_share: of tokens a second, more than now [1]. More money is well spent on it as long
            as the cluster costs less than this share more.
        seated: whether with every rank in a seat; else in rank order.
    """

    name: str
    step_s: float
    gain_share: float
    seated: bool = False


def gains(pool: Pool, *, nics_per_gpu: float = 1.0, bigger: Fabric | None = None) -> list[Gain]:
    """Return what each better part would bring in rank order, the most first.

    Args:
        pool: the cluster with a few layouts that are good now, the best among them.
        nics_per_gpu: NICs that a GPU has now; one more of the same is (n + 1) / n times the rate.
        bigger: the cluster with supernodes of twice the size, where it can be built.
    """
    now_s = pool.best().step_s
    changes = changes_of(nics_per_gpu)
    steps = dict(zip(changes, _bests_s(pool, list(changes.values()), now_s), strict=True))
    if bigger is not None:
        machine = machine_of(bigger, int(pool.columns.gpus[0]), pool.machine.efficiency)
        columns = pool.whole.space.columns(pool.whole.fixed, pool.rows)
        near_s = float(times_on(pool.model, columns, (machine,))[0].min())
        (raced,) = shortest_steps(pool.whole, (machine,), 1.0, (near_s,))
        steps[BIGGER_SUPERNODE] = raced.best.step_s
    found = [
        Gain(name=name, step_s=then, gain_share=max(0.0, now_s / then - 1.0))
        for name, then in steps.items()
    ]
    return by_gain(found)


def changes_of(nics_per_gpu: float) -> dict[str, Change]:
    """Return what each better part changes; one more NIC beside *nics_per_gpu* of a GPU [1]."""
    return {ONE_MORE_NIC: Change(nic_rate=(nics_per_gpu + 1.0) / nics_per_gpu), **GAINS}


def by_gain(found: Sequence[Gain]) -> list[Gain]:
    """Return *found*, the most first."""
    return sorted(found, key=lambda one: (-round(one.gain_share, 9), one.name))


def _bests_s(pool: Pool, changes: Sequence[Change], now_s: float) -> list[float]:
    """Return the shortest step under each of *changes*, none of which slows anything [s].

    A layout can only be the best where it would not be slower, with all of them together, than
    the best is now.
    """
    machine = pool.changed(fastest_of(changes))
    rows = rows_below(pool.whole, (machine,), (now_s,))
    some = pool.with_rows(np.union1d(rows, pool.rows))
    steps_s = steps_at_once_s([(some, change) for change in changes])
    return [min(now_s, float(one.min())) for one in steps_s]


def worth(gain: Gain, cost: float, gpus: int) -> float:
    """Return what the part may cost for each GPU before tokens per money fall.

    Args:
        gain: what it brings.
        cost: of the cluster as it is.
        gpus: its GPUs [1].

    >>> worth(Gain(name="n", step_s=1.0, gain_share=0.1), 64_000.0, 64)
    100.0
    """
    return gain.gain_share * cost / gpus
