"""What stages cost beyond what each domain's pattern says: a stage cut, and two that follow."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING

from planner.place.sheet_choice import PartChoice
from planner.place.sheet_cuttings import cut_sheet, ruled_sheet
from planner.place.sheet_parts import sheeted
from planner.place.sheet_pieces import Held, Join, least_more
from planner.place.stage_sweep import shares_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from planner.place.sheet_cuttings import Parts
    from planner.place.sheet_parts import Sheeted
    from planner.place.stages import Staged

_CUT_CELLS = 8_000  # of stages, times their parts, that are cut for one sweep
_SHEET_MOST = 256  # cells of a stage, past which to cut one takes a good part of a second

Pairs = frozenset[tuple[tuple[int, int], int]]


@dataclass(kw_only=True)
class Beyond:
    """What is known of stages and of two that follow each other, worked out as it is asked for.

    Args:
        of: the question cut along its pipeline.
        slack_bytes: more than that need not be told of two stages, 0 to look at none [bytes].
        ends_s: look at no further two stages when ``time.monotonic()`` is past this [s].
        sheet_s: that a solver may take to cut one stage, 0 to do without it [s].
        told: how often lines along some axes said the most.
        cells_left: of stages, times their parts, that may be cut yet [1].
        cuttings_bytes: what is known of cuttings [bytes].
    """

    of: Staged
    slack_bytes: float
    ends_s: float
    sheet_s: float = 0.0
    told: Counter[tuple[int, ...]] = field(default_factory=Counter)
    cells_left: int = field(init=False)
    cuttings_bytes: dict[Parts, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cells_left = _CUT_CELLS if self.of.sheet.cells <= _SHEET_MOST else 0

    def cutting_bytes(self, parts: Parts) -> float:
        """Return what a stage cut into these parts costs beyond what they pay alone [bytes]."""
        if parts not in self.cuttings_bytes:
            self.cells_left -= self.of.sheet.cells * len(parts)
            self.cuttings_bytes[parts] = self._cutting_bytes(parts) if self.cells_left >= 0 else 0.0
        return self.cuttings_bytes[parts]

    def _cutting_bytes(self, parts: Parts) -> float:
        alone = float(self.of.pays_bytes[list(parts)].sum()) - self.of.inside_given_bytes
        sheet = self.of.sheet
        solved = cut_sheet(sheet, parts, self.sheet_s) if self.sheet_s > 0 else None
        return max(0.0, (solved or ruled_sheet(sheet, parts)).lower_bound_bytes - alone)

    @cached_property
    def _sheets(self) -> Sheeted:
        return in_sheets(self.of)

    def joined_bytes(self, stage: int, pairs: Pairs) -> float:
        """Return what a stage and the one before cost beyond what is known of both [bytes].

        Args:
            stage: the second of them.
            pairs: cells that a domain holds of the first and the second, and how many do.
        """
        if self.slack_bytes <= 0 or monotonic() > self.ends_s:
            return 0.0
        shares, held = shares_of(self.of.stages, stage), dict(sorted(pairs))
        known = 0.0
        for r, share in enumerate(shares):
            each = sorted((pair[r] for pair, n in pairs for _ in range(n) if pair[r]), reverse=True)
            pays = float(self.of.pays_bytes[each].sum()) - self.of.inside_given_bytes
            known += share * (pays + self.cutting_bytes(tuple(each)))
        join = Join(sheets=(stage - 1, stage), hop_bytes=self.of.hop_bytes, shares=shares)
        of_both = {(_held(a), _held(b)): n for (a, b), n in held.items()}
        return least_more(
            self._sheets,
            join,
            Counter(of_both),
            known,
            self.slack_bytes,
            self.ends_s,
            self.told,
            soon=self.sheet_s <= 0,
        )


def in_sheets(of: Staged) -> Sheeted:
    """Return the question cut into its stages as sheets, in their order."""
    axes = range(len(of.question.sizes))
    return sheeted(of.question, tuple(i for i in axes if i != of.axis))


def part_choice_of(of: Staged, held: NDArray[np.int64]) -> PartChoice:
    """Return what domains hold of every stage as a choice of named parts of sheets.

    Args:
        of: the question cut along its pipeline.
        held: cells of every stage that each domain holds, shape [domains, stages].
    """
    domains, sheets = [], []
    for capacity, row in zip(of.question.capacities, held.tolist(), strict=True):
        parts = sorted((-k, j) for j, k in enumerate(row) if k)
        if parts:
            domains.append((min(capacity, of.largest), tuple(-k for k, _ in parts)))
            sheets.append(tuple(j for _, j in parts))
    cuttings = tuple(tuple(sorted((k for k in c if k), reverse=True)) for c in held.T.tolist())
    return PartChoice(
        domains=tuple(domains), cuttings=cuttings, sheets=tuple(sheets), bound_bytes=0.0
    )


def _held(cells: int) -> Held:
    return Held(cells) if cells else Held()
