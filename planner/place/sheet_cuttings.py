"""What cutting one sheet into parts costs: a question of its own, one sheet in their domains."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from planner.place.answer import Proof
from planner.place.clock import over
from planner.place.question import Question

if TYPE_CHECKING:
    from planner.place.answer import Answer
    from planner.place.sheet_parts import Sheeted

_EXCHANGED_MOST = 96  # cells of a sheet, past which exchanges take a second and need a time limit
_KEPT_MOST = 4096  # cuttings whose answers are kept

Parts = tuple[int, ...]


_solved: dict[tuple[Question, Parts, float], Answer] = {}  # none that was cut short


def cut_sheet(sheet: Question, parts: Parts, limit_s: float = 0.0) -> Answer:
    """Return the best seating of one sheet in domains that hold these parts of it.

    When the time is up, that of ``ruled_sheet`` or what is known by then, for this run alone.

    Args:
        sheet: the families inside it.
        parts: cells that each domain holds, together the sheet's.
        limit_s: that a solver may take for what is left open, 0 to do without it [s].
    """
    from planner.place.solve import solve_within  # noqa: PLC0415 - which asks this in turn

    ruled, asked = ruled_sheet(sheet, parts), (sheet, parts, limit_s)
    if ruled.proof is not Proof.INCUMBENT:
        return ruled
    if limit_s <= 0 and sheet.cells > _EXCHANGED_MOST:
        return ruled
    if asked in _solved:
        return _solved[asked]
    if over():
        return ruled
    answer = solve_within(_cut(sheet, parts), time_limit_s=limit_s)
    if not over():
        if len(_solved) >= _KEPT_MOST:
            _solved.clear()
        _solved[asked] = answer
    return answer


@lru_cache(maxsize=_KEPT_MOST)
def ruled_sheet(sheet: Question, parts: Parts) -> Answer:
    """Return the same by rules alone: no exchanges, no solver."""
    from planner.place.solve import solve_by_rules  # noqa: PLC0415 - as above

    return solve_by_rules(_cut(sheet, parts))


def _cut(sheet: Question, parts: Parts) -> Question:
    return Question(sizes=sheet.sizes, charges=sheet.charges, capacities=parts)


@dataclass(slots=True)
class Cuttings:
    """What cuttings of a sheet cost beyond what their parts pay alone, as far as worked out.

    Args:
        of: the question cut into sheets.
        sheet_s: that a solver may take for one [s].
        more_bytes: of each that is worked out [bytes].
    """

    of: Sheeted
    sheet_s: float = 0.0
    more_bytes: dict[Parts, float] = field(default_factory=dict)

    @property
    def seats(self) -> int:
        """Cells times parts of all that are worked out [1]."""
        return self.of.sheet.cells * sum(map(len, self.more_bytes))

    def learn(self, parts: Parts) -> bool:
        """Work out one cutting; return whether it costs more than was known."""
        if parts in self.more_bytes:
            return False
        of, held = self.of, list(parts)
        alone = float(of.part_bytes[held].sum()) - of.inside_given_bytes
        both = of.joint_bytes[held]
        solved = cut_sheet(of.sheet, parts, self.sheet_s) if self.sheet_s > 0 else None
        together = (solved or ruled_sheet(of.sheet, parts)).lower_bound_bytes
        # what a first part pays jointly may be the same that the cutting costs more
        more = together - alone - float(both.sum())
        self.more_bytes[parts] = max(0.0, more)
        return more > 0
