"""What better parts bring a cluster with every rank in a seat, links shared.

What is won in rank order is where one starts: the layouts that contend there are seated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.search.changed import AS_IT_IS, Change
from planner.search.contenders import contest
from planner.search.effort import Effort, SpentError
from planner.search.gains import BIGGER_SUPERNODE, Gain, by_gain, changes_of
from planner.search.pool import Pool
from planner.search.search import machine_of
from planner.search.seatable import Seatable
from planner.search.seated_steps import SeatedSteps

if TYPE_CHECKING:
    from planner.fabric import Fabric
    from planner.search.chosen import Fastest


def seated_gains(
    found: Sequence[Gain],
    pool: Pool,
    seats: SeatedSteps,
    now: Fastest,
    *,
    nics_per_gpu: float,
    bigger: Fabric | None,
    effort: Effort,
) -> list[Gain]:
    """Return *found* with the steps of layouts in seats, the most first.

    What too much would be seated for keeps what it wins in rank order.

    What changes no link of the cluster wins nothing. Nothing is lost by a better part: the layout
    of now is at least as fast.

    Args:
        found: of ``gains``.
        pool: the cluster.
        seats: the steps of layouts seated on it.
        now: its fastest layout.
        nics_per_gpu: NICs that a GPU has now [1].
        bigger: the cluster with supernodes of twice the size, where it can be built.
        effort: how much may be seated.
    """
    changes = changes_of(nics_per_gpu)
    told = []
    for one in found:
        some, on, change = pool, seats, changes.get(one.name, AS_IT_IS)
        if one.name == BIGGER_SUPERNODE and bigger is not None:
            machine = machine_of(bigger, int(pool.columns.gpus[0]), pool.machine.efficiency)
            some = Pool.of(pool.name, bigger, machine, pool.whole, pool.rows, pool.rules)
            on = SeatedSteps(bigger, pool.machine.efficiency)
        elif pool.changed_links(change) == pool.machine.links:
            told.append(Gain(name=one.name, step_s=now.step_s, gain_share=0.0, seated=True))
            continue
        effort.begin()
        try:
            step_s = _step_s(Seatable(some, on, effort), change, now)
        except SpentError:
            told.append(replace(one, step_s=now.step_s / (1.0 + one.gain_share)))
        else:
            told.append(_gain(one.name, step_s, now.step_s))
    return by_gain(told)


def _step_s(some: Seatable, change: Change, now: Fastest) -> float:
    """Return the shortest seated step under *change* of what contends there [s]."""
    best = contest(some, change, (), [now.layout]).best(change, "")
    return best.token_s * some.pool.tokens


def _gain(name: str, step_s: float, now_s: float) -> Gain:
    step_s = min(step_s, now_s)
    return Gain(name=name, step_s=step_s, gain_share=now_s / step_s - 1.0, seated=True)
