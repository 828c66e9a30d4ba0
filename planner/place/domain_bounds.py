"""What one domain adds to the cut at least, by the cells that it holds, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from planner.place.clock import look
from planner.place.question import Question
from planner.place.spread import Tables, costs_of, tables, terms
from planner.place.together import roomy, tied_bytes
from planner.place.touch_many import Paid, least_costs
from planner.place.touch_search import least_cost, searched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from planner.place.spread import Share

T = TypeVar("T")

_QUESTIONS = 500  # whose bounds are kept
_TOGETHER = 64  # numbers of cells that are looked at side by side


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyTables(Tables):
    """The tables of domains that differ in their cells; *held* is the most of any.

    Args:
        number: which of them each vector of touches belongs to, shape [vectors].
        each: cells of every domain, shape [domains]; *cost_bytes* have as many rows [1].
    """

    number: NDArray[np.int64]
    each: NDArray[np.int64]

    @property
    def cells(self) -> NDArray[np.int64]:
        """Cells of the domain that each vector of touches belongs to [1]."""
        cells: NDArray[np.int64] = self.each[self.number]
        return cells

    def at(self, i: int, t: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what family i costs by its tables, of t groups in each vector [bytes]."""
        costs: NDArray[np.float64] = self.cost_bytes[i][self.number, t]
        return costs


class Bounds:
    """Bounds of what a domain adds to the cut, sharp ones or loose ones, as far as asked for.

    Args:
        sharp: whether with what families pay for leaving each other no room.
    """

    def __init__(self, *, sharp: bool) -> None:
        self.sharp = sharp
        self._known = lru_cache(maxsize=_QUESTIONS)(_none_known)
        self.cache_clear = self._known.cache_clear

    def __call__(
        self,
        question: Question,
        held: Sequence[int],
        split_axis: int | None,
        shares: tuple[Share, ...],
    ) -> list[float]:
        """Return the bound of each number of cells; the arguments are those of ``domain_bound``."""
        bare = Question(
            sizes=question.sizes, charges=question.charges, capacities=(question.cells,)
        )  # what one domain pays does not depend on others
        known = self._known(bare, split_axis, shares)
        missing = sorted({c for c in held if c not in known})
        for first in range(0, len(missing), _TOGETHER):
            look()
            some = missing[first : first + _TOGETHER]
            of = self._one if len(some) == 1 else self._many
            known.update(zip(some, of(bare, some, split_axis, shares), strict=True))
        return [known[c] for c in held]

    def _one(
        self,
        question: Question,
        held: Sequence[int],
        split_axis: int | None,
        shares: tuple[Share, ...],
    ) -> list[float]:
        found = tables(question, held[0], split_axis, shares)
        beyond = partial(tied_bytes, found) if found.coupled and self.sharp else None
        least = least_cost(
            question.sizes,
            tuple(term.axes for term in found.terms),
            found.cost_bytes,
            found.held,
            found.totals if found.coupled else None,
            beyond,
            partial(roomy, found) if self.sharp else None,
        )
        return [least]

    def _many(
        self,
        question: Question,
        held: Sequence[int],
        split_axis: int | None,
        shares: tuple[Share, ...],
    ) -> list[float]:
        found = many_tables(question, np.array(held), split_axis, shares)
        families = tuple(term.axes for term in found.terms)
        if not families:
            return [0.0] * len(held)
        searches = [
            searched(
                question.sizes,
                families,
                [cost[k] for cost in found.cost_bytes],
                cells,
                partial(_of_one, totals, found, k) if found.coupled else None,
                partial(_of_one, tied_bytes, found, k) if found.coupled and self.sharp else None,
                partial(_of_one, roomy, found, k) if self.sharp else None,
            )
            for k, cells in enumerate(held)
        ]
        paid = Paid(
            totals=partial(_of_many, totals, found) if found.coupled else None,
            beyond=partial(_of_many, tied_bytes, found) if found.coupled and self.sharp else None,
            room=partial(_of_many, roomy, found) if self.sharp else None,
        )
        least: list[float] = least_costs(searches, paid).tolist()
        return least


def _none_known(
    question: Question, split_axis: int | None, shares: tuple[Share, ...]
) -> dict[int, float]:
    del question, split_axis, shares
    return {0: 0.0}


def totals(of: Tables, touches: NDArray[np.int64], families: Sequence[int]) -> NDArray[np.float64]:
    """Return ``Tables.totals``."""
    return of.totals(touches, families)


def _of_many(
    asked: Callable[[Tables, NDArray[np.int64], Sequence[int]], T],
    found: ManyTables,
    touches: NDArray[np.int64],
    number: NDArray[np.int64],
    families: Sequence[int],
) -> T:
    return asked(replace(found, number=number), touches, families)


def _of_one(
    asked: Callable[[Tables, NDArray[np.int64], Sequence[int]], T],
    found: ManyTables,
    k: int,
    touches: NDArray[np.int64],
    families: Sequence[int],
) -> T:
    return _of_many(asked, found, touches, np.full(len(touches), k), families)


def many_tables(
    question: Question,
    held: NDArray[np.int64],
    split_axis: int | None = None,
    shares: Sequence[Share] = (),
) -> ManyTables:
    """Return the tables of domains of so many cells; the arguments are those of ``tables``."""
    found = terms(question, shares)
    return ManyTables(
        terms=found,
        cost_bytes=tuple(costs_of(term, held, split_axis) for term in found),
        held=int(held.max()),
        sizes=question.sizes,
        number=np.zeros(0, dtype=np.int64),
        each=held,
    )
