"""Seatings that keep hard rules: the free one renamed, domains filled class by class, exchanges.

None of it is part of a proof; ``rules_solve.py`` picks the cheapest and proves what can be proved.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product
from math import prod
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.question import Question, coarsen, refine_home
from planner.place.rules_bound import boxes_of
from planner.place.solve import solve_question
from planner.place.tiles import divisors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from planner.place.answer import Answer
    from planner.place.rules_bound import BoundRules

_RENAMED_DOMAINS = 600  # domains up to which the free seating's are renamed: a matching is cubic
_ORDERS = 120
_PARTS_TRIED = 12


def keeps(question: Question, rules: BoundRules, home: NDArray[np.int64]) -> bool:
    """Return whether a seating of ranks keeps *rules* and can be seated in inner domains."""
    members = boxes_of(question.sizes, rules.axes)
    homes = home[members]
    if (homes != homes[:, :1]).any():
        return False
    return _keeps_boxes(question, rules, homes[:, 0]) and all(
        _spread(home[groups_along(question.sizes, entry.axes)]) <= entry.most
        for entry in rules.counted
    )


def _keeps_boxes(question: Question, rules: BoundRules, homes: NDArray[np.int64]) -> bool:
    """Return whether boxes seated at *homes* fit and are allowed there."""
    held = np.bincount(homes, minlength=len(question.capacities))
    if (held > rules.capacities).any():
        return False
    return rules.allowed is None or bool(rules.allowed[np.arange(len(homes)), homes].all())


def _spread(homes: NDArray[np.int64]) -> int:
    """Return how many domains the worst of some groups touches, shape [groups, members]."""
    ordered = np.sort(homes, axis=1)
    return int(1 + np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1).max())


def open_domains_of(rules: BoundRules) -> NDArray[np.int64]:
    """Return the domains that some box may enter and that hold one at all."""
    able = np.array(rules.capacities) > 0
    if rules.allowed is not None:
        able &= rules.allowed.any(axis=0)
    return np.flatnonzero(able)


def narrowed(coarse: Question, open_domains: NDArray[np.int64]) -> Question:
    """Return the question with *open_domains* only."""
    return replace(coarse, capacities=tuple(coarse.capacities[s] for s in open_domains.tolist()))


def solved_on(
    question: Question, open_domains: NDArray[np.int64], time_limit_s: float, seed: int
) -> Answer:
    """Return the answer of a narrowed question, its homes numbered as before."""
    answer = solve_question(question, time_limit_s=time_limit_s, seed=seed)
    return replace(answer, home=tuple(open_domains[np.array(answer.home)].tolist()))


def keeps_on_boxes(
    question: Question, rules: BoundRules, tile: Sequence[int], home: NDArray[np.int64]
) -> bool:
    """Return whether boxes of *tile* seated at *home* keep *rules*."""
    return keeps(question, rules, refine_home(question, tile, home))


def renamings(
    coarse: Question, rules: BoundRules, home: NDArray[np.int64], method: str
) -> Iterator[tuple[NDArray[np.int64], str]]:
    """Yield a seating of boxes, found by *method*, as it is and with its domains renamed."""
    yield home, method
    if (renamed := _renamed(coarse, rules, home)) is not None:
        yield renamed, f"{method}, domains renamed"


def at_once(coarse: Question, rules: BoundRules) -> Iterator[NDArray[np.int64]]:
    """Yield seatings that take no search: domains filled class by class, or without regard to it.

    The latter may sit where they may once their domains are renamed.
    """
    single = (1,) * len(coarse.sizes)
    yield from _filled_by_class(coarse, allowed_parts(coarse, rules, single))
    if rules.allowed is not None:
        open_domains = open_domains_of(rules)
        part = narrowed(coarse, open_domains)
        anywhere = np.ones((part.cells, len(open_domains)), bool)
        for home in _filled_by_class(part, anywhere):
            yield open_domains[home]


def filled_by_parts(coarse: Question, rules: BoundRules) -> Iterator[NDArray[np.int64]]:
    """Yield seatings of counted groups cut into parts that stay whole, the largest parts first.

    Each rule is kept by parts of its own axes, or by the order in which domains are filled.
    """
    axes = sorted({i for entry in rules.counted for i in entry.axes if coarse.sizes[i] > 1})
    ways = product(*(divisors(coarse.sizes[i]) for i in axes))
    for parts in sorted(ways, key=lambda parts: (prod(parts), parts)):
        sides = [1] * len(coarse.sizes)
        for i, count in zip(axes, parts, strict=True):
            sides[i] = coarse.sizes[i] // count
        volume = prod(sides)
        capacities = [c // volume for c in rules.capacities]
        if volume > 1 and sum(capacities) * volume >= coarse.cells:
            part = coarsen(coarse, sides, capacities)
            for home in _filled_by_class(part, allowed_parts(coarse, rules, sides)):
                yield refine_home(coarse, sides, home)


def by_parts(
    coarse: Question, rules: BoundRules, ends_s: float, seed: int
) -> Iterator[tuple[NDArray[np.int64], str]]:
    """Yield (home of each box, how it was found) with counted groups in as few parts as may be.

    Args:
        coarse: the grid of boxes that the rules keep together.
        rules: what is to be kept.
        ends_s: stop solving when ``time.monotonic()`` is past this [s].
        seed: of everything random.

    Raises:
        KeyboardInterrupt: the user ended the search.
    """
    parted = list(_parted(coarse, rules)) if rules.counted else []
    for number, part in enumerate(parted):
        sides = tuple(a // b for a, b in zip(coarse.sizes, part.sizes, strict=True))
        left_s = ends_s - monotonic()
        if left_s <= 0:
            continue
        open_domains = np.flatnonzero(part.capacities)
        answer = solved_on(
            narrowed(part, open_domains), open_domains, left_s / (len(parted) - number), seed
        )
        home = refine_home(coarse, sides, np.array(answer.home))
        yield from renamings(coarse, rules, home, f"{answer.method}, groups in parts")
        if answer.interrupted:
            raise KeyboardInterrupt


def _renamed(
    coarse: Question, rules: BoundRules, home: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Return *home* with its domains exchanged as wholes so that all boxes sit where they may.

    A matching of old domains to new ones: a new one must hold as many boxes and allow each.
    """
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - 0.2 s

    domains = len(coarse.capacities)
    if domains > _RENAMED_DOMAINS:
        return None
    held = np.bincount(home, minlength=domains)
    fits = held[:, None] <= np.array(rules.capacities)[None, :]
    if rules.allowed is not None:
        for s in np.flatnonzero(held).tolist():
            fits[s] &= rules.allowed[home == s].all(axis=0)
    moves = 1.0 - np.eye(domains)
    old, new = linear_sum_assignment(np.where(fits, moves, 1e6))
    if not fits[old, new].all():
        return None
    target = np.empty(domains, np.int64)
    target[old] = new
    renamed: NDArray[np.int64] = target[home]
    return renamed


def _parted(coarse: Question, rules: BoundRules) -> Iterator[Question]:
    """Yield grids of boxes so large that no counted group has more of them than its domains.

    The smallest such boxes only: any seating of them keeps the counts.
    """
    axes = sorted({i for entry in rules.counted for i in entry.axes if coarse.sizes[i] > 1})
    fitting = [
        parts
        for parts in product(*(divisors(coarse.sizes[i]) for i in axes))
        if all(
            prod(n for i, n in zip(axes, parts, strict=True) if i in entry.axes) <= entry.most
            for entry in rules.counted
        )
    ]
    finest = [
        parts
        for parts in fitting
        if not any(
            other != parts and all(b % a == 0 for a, b in zip(parts, other, strict=True))
            for other in fitting
        )
    ]
    for parts in finest[:_PARTS_TRIED]:
        sides = [1] * len(coarse.sizes)
        for i, count in zip(axes, parts, strict=True):
            sides[i] = coarse.sizes[i] // count
        volume = prod(sides)
        capacities = [c // volume for c in rules.capacities]
        if sum(capacities) * volume >= coarse.cells:
            yield coarsen(coarse, sides, capacities)


def allowed_parts(coarse: Question, rules: BoundRules, sides: Sequence[int]) -> NDArray[np.bool_]:
    """Return where each part, a box of *sides*, may sit: where all of its boxes may."""
    cells = coarse.cells // prod(sides)
    part_of = refine_home(coarse, sides, np.arange(cells))
    allowed = np.ones((cells, len(coarse.capacities)), bool)
    if rules.allowed is not None:
        np.logical_and.at(allowed, part_of, rules.allowed)
    return allowed


def _filled_by_class(question: Question, allowed: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    """Yield seatings that fill the domains in the order of the axes, each class where it may.

    Cells of one row of *allowed* are a class; how many of each sit in each domain is a transport
    problem, whose corner with the lowest domains first is taken. Nothing if there is none.
    """
    rows, class_of = np.unique(allowed, axis=0, return_inverse=True)
    counts = np.bincount(class_of.ravel(), minlength=len(rows))
    shares = _transported(rows, counts, np.array(question.capacities))
    if shares is None:
        return
    last = len(question.sizes) - 1
    grid = np.arange(question.cells).reshape(tuple(reversed(question.sizes)))
    live = [i for i, n in enumerate(question.sizes) if n > 1]
    for number, order in enumerate(permutations(live)):
        if number == _ORDERS:
            return
        axes = [*order, *(i for i in range(last + 1) if i not in live)]
        walk = grid.transpose([last - axis for axis in reversed(axes)]).ravel()
        home = np.empty(question.cells, np.int64)
        for c, share in enumerate(shares):
            mine = walk[class_of.ravel()[walk] == c]
            home[mine] = np.repeat(np.arange(len(share)), share)
        yield home


def _transported(
    rows: NDArray[np.bool_], counts: NDArray[np.int64], capacities: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Return how many cells of each class sit in each domain, shape [classes, domains]."""
    from scipy.optimize import linprog  # noqa: PLC0415 - 0.2 s

    classes, domains = rows.shape
    narrow = rows.sum(axis=1)  # those with few domains are seated first, the others behind them
    costs = (np.arange(domains)[None, :] + 1.0) * np.where(narrow == narrow.max(), 1, -1)[:, None]
    by_class = np.kron(np.eye(classes), np.ones((1, domains)))
    by_domain = np.kron(np.ones((1, classes)), np.eye(domains))
    ran = linprog(
        costs.ravel(), A_eq=by_class, b_eq=counts, A_ub=by_domain, b_ub=capacities,
        bounds=[(0, float(counts[c]) if rows[c, s] else 0.0)
                for c in range(classes) for s in range(domains)],
        method="highs-ds",
    )  # fmt: skip
    if ran.status != 0:
        return None
    shares: NDArray[np.int64] = np.rint(ran.x).astype(np.int64).reshape(classes, domains)
    return shares
