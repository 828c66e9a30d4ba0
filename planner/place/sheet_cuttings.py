"""What cutting one sheet into parts costs: a question of its own, one sheet in their domains."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from planner.place.answer import Proof
from planner.place.clock import TimeUp, over
from planner.place.merge import MET
from planner.place.question import Question, cut_bytes
from planner.place.row_seats import seated_rows
from planner.place.row_sweep import by_rows

if TYPE_CHECKING:
    from planner.place.answer import Answer
    from planner.place.sheet_parts import Sheeted

_EXCHANGED_MOST = 96  # cells of a sheet, past which exchanges take a second and need a time limit
_ROWED_MOST = 128  # cells of a sheet, past which its rows are looked at only if time is given
_KEPT_MOST = 4096  # cuttings whose answers are kept
_WAYS_MOST, _MORE_WAYS = 20_000, 100_000  # to deal out rows, by rules alone and if time is given

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
    ruled, asked = ruled_sheet(sheet, parts), (sheet, parts, limit_s)
    if ruled.proof is not Proof.INCUMBENT:
        return ruled
    if asked in _solved:
        return _solved[asked]
    if over():
        return ruled
    try:
        answer = _solved_sheet(sheet, parts, limit_s)
    except TimeUp:
        return ruled
    if not over():
        if len(_solved) >= _KEPT_MOST:
            _solved.clear()
        _solved[asked] = answer
    return answer


def _solved_sheet(sheet: Question, parts: Parts, limit_s: float) -> Answer:
    from planner.place.solve import solve_within  # noqa: PLC0415 - which asks this in turn

    best = rowed_sheet(sheet, parts)
    if best.proof is Proof.INCUMBENT and limit_s > 0:
        best = _by_rows(sheet, parts, best, _MORE_WAYS)
    if best.proof is not Proof.INCUMBENT or (limit_s <= 0 and sheet.cells > _EXCHANGED_MOST):
        return best
    solved = solve_within(_cut(sheet, parts), time_limit_s=limit_s)
    if solved.proof is not Proof.INCUMBENT or over():
        return solved
    if solved.objective_bytes >= best.objective_bytes * (1 - MET):
        return _bettered(best, solved.lower_bound_bytes, Proof.SOLVER)
    solved = _bettered(solved, best.lower_bound_bytes, Proof.BOUND)
    try:
        return _by_rows(sheet, parts, solved, _MORE_WAYS if limit_s > 0 else _WAYS_MOST)
    except TimeUp:
        return solved


def _by_rows(sheet: Question, parts: Parts, best: Answer, most: int) -> Answer:
    """Return the same with what its rows tell, if they are not too many."""
    if best.proof is not Proof.INCUMBENT:
        return best
    question = _cut(sheet, parts)
    for rowed in by_rows(question, best.objective_bytes, best.lower_bound_bytes, most):
        home = seated_rows(question, rowed)
        cut = best.objective_bytes if home is None else cut_bytes(question, home)
        if home is not None and cut < best.objective_bytes * (1 - MET):
            best = replace(
                best, home=tuple(home.tolist()), objective_bytes=cut, method="row by row"
            )
        best = _bettered(best, rowed.bound_bytes, Proof.BOUND)
    return best


def _bettered(best: Answer, bound_bytes: float, proof: Proof) -> Answer:
    """Return an answer that is open with one more bound, and *proof* if that closes it."""
    cut = best.objective_bytes
    if bound_bytes >= cut * (1 - MET):
        return replace(best, lower_bound_bytes=cut, proof=proof)
    return replace(best, lower_bound_bytes=max(best.lower_bound_bytes, bound_bytes))


@lru_cache(maxsize=_KEPT_MOST)
def rowed_sheet(sheet: Question, parts: Parts) -> Answer:
    """Return the same by rules and, of small sheets, row by row: no exchanges, no solver."""
    ruled = ruled_sheet(sheet, parts)
    return ruled if sheet.cells > _ROWED_MOST else _by_rows(sheet, parts, ruled, _WAYS_MOST)


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
        together = (solved or rowed_sheet(of.sheet, parts)).lower_bound_bytes
        # what a first part pays jointly may be the same that the cutting costs more
        more = together - alone - float(both.sum())
        self.more_bytes[parts] = max(0.0, more)
        return more > 0
