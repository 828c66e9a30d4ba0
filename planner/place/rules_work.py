"""How far the search for a seating under hard rules is: the best that keeps them, and the bound."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import PlannerError
from planner.place.answer import Answer, Proof
from planner.place.question import coarsen, cut_bytes, refine_home
from planner.place.rules_fill import keeps_on_boxes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.question import Question
    from planner.place.rules_bound import BoundRules

MET = 1e-9  # relative; two orders of the same floating-point sum
SOLVER_MET = 1e-6  # relative; HiGHS' own feasibility tolerance
_NOISE_BYTES = 1e-3  # what rounding may leave of a bound that is nought


@dataclass(slots=True, kw_only=True)
class RuledWork:
    """The best seating of boxes that keeps the rules, and the best bound, so far.

    Args:
        question: the grid of ranks and the placed tier's domains.
        rules: tied to them.
        tile: ranks of a box that may not be parted, along each axis.
        coarse: the grid of such boxes.
        ends_s: ``time.monotonic()`` when to stop [s].
        seed: of everything random.
        bound_bytes: what every seating that keeps the rules cuts at least [bytes].
        home: domain of each box of the best seating; None while there is none.
        cut_bytes: its cut [bytes].
        method: how it was found.
        solved: a solver has proved that the best seating is the least, up to its tolerance.
        exchanged: exchanges have been tried on the best seating.
    """

    question: Question
    rules: BoundRules
    tile: tuple[int, ...]
    coarse: Question
    ends_s: float
    seed: int
    bound_bytes: float
    home: NDArray[np.int64] | None = None
    cut_bytes: float = inf
    method: str = ""
    solved: bool = False
    exchanged: bool = False

    @property
    def left_s(self) -> float:
        """Seconds until the time is up, 0 when it is [s]."""
        return max(0.0, self.ends_s - monotonic())

    @property
    def over(self) -> bool:
        """Whether the best seating is proved, or the time is up with one in hand."""
        return self.home is not None and (self.met or self.left_s <= 0)

    @property
    def met(self) -> bool:
        """Whether our own bound proves the best seating.

        Raises:
            PlannerError: a bound above a cut that was counted is a fault of ours, not a proof.
        """
        cut, bound = self.cut_bytes, self.bound_bytes
        if self.home is None:
            return False
        if bound > cut * (1 + 2 * SOLVER_MET) + _NOISE_BYTES:
            raise PlannerError(
                f"the lower bound of {bound:.6g} bytes under rules is above a seating's {cut:.6g}: "
                "this is a fault of the planner, and the placement is withheld"
            )
        return cut - bound <= MET * max(cut, 1e-300)

    def offer(self, home: NDArray[np.int64], method: str) -> bool:
        """Take up a seating of boxes if it keeps the rules and is the best; return ``over``."""
        if keeps_on_boxes(self.question, self.rules, self.tile, home):
            cut = cut_bytes(self.coarse, home)
            if cut < self.cut_bytes * (1 - MET):
                self.home, self.cut_bytes, self.method = home, cut, method
                self.solved = self.exchanged = False
        return self.over

    def raise_bound(self, bound_bytes: float) -> bool:
        """Take up a bound if it is the best; return ``over``."""
        self.bound_bytes = max(self.bound_bytes, bound_bytes)
        return self.over

    def answer(self, *, interrupted: bool = False) -> Answer:
        """Return the best seating as one of ranks; there must be one."""
        if self.home is None:
            raise ValueError("no seating keeps the rules yet")
        proof = Proof.SOLVER if self.solved else Proof.BOUND if self.met else Proof.INCUMBENT
        coarse = Answer(
            home=tuple(self.home.tolist()), objective_bytes=self.cut_bytes,
            lower_bound_bytes=self.bound_bytes, proof=proof, method=self.method,
            interrupted=interrupted,
        )  # fmt: skip
        return refined(self.question, self.tile, coarse, self.bound_bytes)


def started(
    question: Question, rules: BoundRules, *, bound_bytes: float, ends_s: float, seed: int
) -> RuledWork:
    """Return the search at its start, with nothing in hand but a bound [bytes]."""
    tile = tuple(n if i in rules.axes else 1 for i, n in enumerate(question.sizes))
    return RuledWork(
        question=question, rules=rules, tile=tile,
        coarse=coarsen(question, tile, rules.capacities), ends_s=ends_s, seed=seed,
        bound_bytes=bound_bytes,
    )  # fmt: skip


def refined(question: Question, tile: Sequence[int], coarse: Answer, bound_bytes: float) -> Answer:
    """Return the answer on boxes of *tile* as one on ranks, priced again there.

    Raises:
        PlannerError: the two prices differ: a fault of ours.
    """
    home = refine_home(question, tile, np.array(coarse.home))
    cut, proof = cut_bytes(question, home), coarse.proof
    if abs(cut - coarse.objective_bytes) > SOLVER_MET * cut:
        raise PlannerError(
            f"boxes that cross {coarse.objective_bytes:.0f} bytes are ranks that cross {cut:.0f}: "
            "this is a fault of the planner, and the placement is withheld"
        )
    return Answer(
        home=tuple(home.tolist()),
        objective_bytes=cut,
        lower_bound_bytes=min(bound_bytes, cut) if proof is Proof.INCUMBENT else cut,
        proof=proof,
        method=coarse.method if prod(tile) == 1 else f"{coarse.method}, groups kept whole",
        interrupted=coarse.interrupted,
    )
