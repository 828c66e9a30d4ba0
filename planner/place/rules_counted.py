"""Groups that may touch q domains: priced, so that the bound of a free question counts the rule.

A charge of p for every domain that a group touches beyond its first costs a seating that keeps the
rule p (q - 1) G at most. So the least cut with the rule is at least the least cut of the question
with that charge, less p (q - 1) G, whatever the price p. The best price is where the seatings of
the priced question touch q domains on the average: found by halving.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.question import Charge, Kind, Question
from planner.place.solve import solve_within

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.rules_bound import BoundRules, Counted

_PRICES_TRIED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What one price on a counted rule is worth.

    Args:
        home: domain of each box in the best seating at that price.
        lower_bound_bytes: what every seating that keeps the rule crosses at least [bytes].
        price_bytes: of every domain that a group touches beyond its first [bytes].
    """

    home: NDArray[np.int64]
    lower_bound_bytes: float
    price_bytes: float


def priced(coarse: Question, rules: BoundRules, ends_s: float) -> Iterator[Priced]:
    """Yield seatings and bounds for prices on the counted rules, one rule after the other.

    Args:
        coarse: the grid of boxes that the rules keep together.
        rules: what is to be kept.
        ends_s: stop when ``time.monotonic()`` is past this [s].
    """
    question, taken_back = coarse, 0.0
    for entry in rules.counted:
        axes = tuple(i for i in entry.axes if coarse.sizes[i] > 1)
        if not axes or prod(coarse.sizes[i] for i in axes) <= entry.most:
            continue
        best = Priced(home=np.zeros(0, np.int64), lower_bound_bytes=-1.0, price_bytes=0.0)
        for found in _priced(question, entry, axes, taken_back, ends_s):
            yield found
            best = max(best, found, key=lambda p: p.lower_bound_bytes)
        question = _with_price(question, axes, best.price_bytes)
        taken_back += best.price_bytes * (entry.most - 1) * coarse.groups(axes)


def _priced(
    question: Question, entry: Counted, axes: tuple[int, ...], taken_back: float, ends_s: float
) -> Iterator[Priced]:
    groups = groups_along(question.sizes, axes)
    allowed = (entry.most - 1) * len(groups)
    low, high = 0.0, sum(c.weight_bytes * question.group_size(c.axes) for c in question.charges)
    price = _first_price(question, axes)
    for _ in range(_PRICES_TRIED):
        if monotonic() > ends_s or not low < price < high:
            return
        answer = solve_within(_with_price(question, axes, price), time_limit_s=0.0)
        home = np.array(answer.home)
        yield Priced(
            home=home,
            lower_bound_bytes=answer.lower_bound_bytes - taken_back - price * allowed,
            price_bytes=price,
        )
        homes = np.sort(home[groups], axis=1)
        extra = int(np.count_nonzero(homes[:, 1:] != homes[:, :-1]))
        if extra > allowed:
            low, price = price, (price * 2 if high > price * 4 else (price + high) / 2)
        else:
            high, price = price, (low + price) / 2


def _with_price(question: Question, axes: tuple[int, ...], price: float) -> Question:
    charge = Charge(axes=axes, kind=Kind.TOUCH, weight_bytes=price)
    return replace(question, charges=_merged((*question.charges, charge)))


def _first_price(coarse: Question, axes: tuple[int, ...]) -> float:
    """Return the dearest charge of one group and domain: the price of other rules' touches."""
    return max(
        (
            c.weight_bytes * coarse.group_size(c.axes)
            if c.kind in {Kind.PAIRS, Kind.COPIES}
            else c.weight_bytes
            for c in coarse.charges
            if c.axes != axes
        ),
        default=1.0,
    )


def _merged(charges: tuple[Charge, ...]) -> tuple[Charge, ...]:
    """Return *charges* with those of equal axes and kind added up."""
    weights: dict[tuple[tuple[int, ...], Kind, tuple[float, ...]], float] = {}
    for charge in charges:
        key = (charge.axes, charge.kind, charge.units)
        weights[key] = weights.get(key, 0.0) + charge.weight_bytes
    return tuple(
        Charge(axes=axes, kind=kind, weight_bytes=weight, units=units)
        for (axes, kind, units), weight in weights.items()
    )
