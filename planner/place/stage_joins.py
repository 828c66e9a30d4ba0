"""What stages cost beyond what each domain's pattern says: a stage cut, and two that follow."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING

from planner.place.bound import rebate_bytes
from planner.place.sheet_cuttings import ruled_sheet
from planner.place.sheet_parts import sheeted
from planner.place.sheet_pieces import Held, Join, least_more
from planner.place.stage_sweep import shares_of

if TYPE_CHECKING:
    from planner.place.sheet_parts import Sheeted
    from planner.place.stages import Staged

Parts = tuple[int, ...]
Pairs = frozenset[tuple[tuple[int, int], int]]


@dataclass(kw_only=True)
class Beyond:
    """What is known of stages and of two that follow each other, worked out as it is asked for.

    Args:
        of: the question cut along its pipeline.
        slack_bytes: more than that need not be told of two stages, 0 to look at none [bytes].
        ends_s: look at no further two stages when ``time.monotonic()`` is past this [s].
        told: how often lines along some axes said the most.
    """

    of: Staged
    slack_bytes: float
    ends_s: float
    told: Counter[tuple[int, ...]] = field(default_factory=Counter)

    def cutting_bytes(self, parts: Parts) -> float:
        """Return what a stage cut into these parts costs beyond what they pay alone [bytes]."""
        alone = float(self.of.pays_bytes[list(parts)].sum()) - rebate_bytes(self.of.sheet)
        return max(0.0, ruled_sheet(self.of.sheet, parts).lower_bound_bytes - alone)

    @cached_property
    def _sheets(self) -> Sheeted:
        axes = range(len(self.of.question.sizes))
        return sheeted(self.of.question, tuple(i for i in axes if i != self.of.axis))

    def joined_bytes(self, stage: int, pairs: Pairs) -> float:
        """Return what a stage and the one before cost beyond what is known of both [bytes].

        Args:
            stage: the second of them.
            pairs: cells that a domain holds of the first and the second, and how many do.
        """
        if self.slack_bytes <= 0 or monotonic() > self.ends_s:
            return 0.0
        shares, held = shares_of(self.of.stages, stage), dict(pairs)
        known = 0.0
        for r, share in enumerate(shares):
            each = sorted((pair[r] for pair, n in pairs for _ in range(n) if pair[r]), reverse=True)
            pays = float(self.of.pays_bytes[each].sum()) - rebate_bytes(self.of.sheet)
            known += share * (pays + self.cutting_bytes(tuple(each)))
        join = Join(sheets=(stage - 1, stage), hop_bytes=self.of.hop_bytes, shares=shares)
        of_both = {(_held(a), _held(b)): n for (a, b), n in held.items()}
        return least_more(
            self._sheets, join, Counter(of_both), known, self.slack_bytes, self.ends_s, self.told
        )


def _held(cells: int) -> Held:
    return Held(cells) if cells else Held()
