"""Today's degrees on the winner, wherever one asks: how far behind the best they are.

A layout is not given up for one that is as good as it: today's degrees stay until another layout
is 0.1 % faster. Of their rows only those are timed that can be so near to the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.search.best_steps import BEHIND, Steps, is_as_fast
from planner.search.changed import AS_IT_IS, Change
from planner.search.pool import Pool, steps_at_once_s
from planner.search.space import DEGREES
from planner.search.together import grouped

if TYPE_CHECKING:
    from planner.layout import Layout


def spelled_degrees(layout: Layout) -> str:
    """Return the degrees above 1, as ``tp8 cp2 dp64``."""
    return " ".join(f"{n}{getattr(layout, n)}" for n in DEGREES if getattr(layout, n) > 1) or "dp1"


class Incumbent:
    """The shortest steps of today's degrees on the winner.

    Args:
        steps: of the clusters.
        slowest: the slowest networks that are asked about.
        fastest: one as fast as any that is.
    """

    def __init__(self, steps: Steps, slowest: Sequence[Change], fastest: Change) -> None:
        winner, now = steps.winner, steps.best(steps.winner, AS_IT_IS)
        self.words = "nothing fits"
        self._known: dict[Change, float] = {}
        self._sides: dict[str, Pool] = {}
        if now.row < 0:
            return
        self.words = spelled_degrees(winner.layout(now.row))
        table = winner.whole.space.table
        own = np.logical_and.reduce([table[name] == table[name][now.row] for name in DEGREES])
        every = winner.with_rows(np.flatnonzero(own))
        steps.find(slowest)
        enough_s = max([now.step_s, *(steps.best(winner, one).step_s for one in slowest)])
        now_s, fastest_s = steps_at_once_s([(every, AS_IT_IS), (every, fastest)])
        slower = now_s <= enough_s * (1.0 + BEHIND)
        faster = fastest_s <= now.step_s * (1.0 + BEHIND)
        self._sides = {
            "length": every,
            "slower": every.with_rows(every.rows[slower]),
            "faster": every.with_rows(every.rows[faster]),
        }

    def find(self, changes: Sequence[Change]) -> None:
        """Time today's degrees under *changes*, those of one length at once."""
        new = [one for one in dict.fromkeys(changes) if one not in self._known]
        for some in grouped(new, key=lambda one: (self._side(one), one.seq)):
            asked = [new[at] for at in some]
            pool = self._sides.get(self._side(asked[0]))
            if pool is None:
                self._known |= dict.fromkeys(asked, np.inf)
                continue
            found = steps_at_once_s([(pool, one) for one in asked]).min(axis=1, initial=np.inf)
            self._known |= dict(zip(asked, found.tolist(), strict=True))

    def step_s(self, change: Change) -> float:
        """Return their shortest step under *change*; more than that where it is far behind [s]."""
        self.find([change])
        return self._known[change]

    @staticmethod
    def _side(change: Change) -> str:
        if change.seq != 1.0:
            return "length"
        return "slower" if is_as_fast(AS_IT_IS, change) else "faster"
