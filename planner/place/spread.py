"""What one domain pays, by how many groups of each family it touches.

A domain holds C cells in t groups of n along a family's axes. How the cells lie in those groups is
not known; each table gives the least that any way pays. ``Tables.totals`` then takes away what the
touches of the *other* families do not allow: few lines across leave no room for whole groups.
Symbols and proofs: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from planner.place.others import holding, others_of, part_limit
from planner.place.question import Kind, held_units

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from planner.place.others import Others
    from planner.place.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A priced rule that domains share: sum_s ceil(n_s / most) >= ceil(n / most) for every group.

    Args:
        axes: axes of the groups.
        most: part size m of the rule [1].
        price_bytes: what breaking it by one costs, at least 0 [bytes].
    """

    axes: tuple[int, ...]
    most: int
    price_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """All that is paid for the groups along some axes.

    Args:
        axes: indices of the axes.
        size: cells of a group, n [1].
        groups: groups of the grid, G [1].
        touch_bytes: for every group touched [bytes].
        ring_bytes: for every group held in part [bytes].
        part_bytes: for a group of which j members are held, j = 0 … n; concave, 0 for the whole.
            Empty where nothing depends on that [bytes].
        shares: (m, price) of the priced rules on these groups.
    """

    axes: tuple[int, ...]
    size: int
    groups: int
    touch_bytes: float
    ring_bytes: float
    part_bytes: tuple[float, ...]
    shares: tuple[tuple[int, float], ...]


def closing_weights(question: Question) -> dict[tuple[int, ...], float]:
    """Return by axes the part u of a chain's price that its closing link makes a ring.

    w x + u e with x crossings and e = 1 when the ends are apart is at least
    u (k if k > 1) + (w - u) (k - 1), for x + e >= k when k > 1 and u <= w.
    """
    chains = {c.axes: c.weight_bytes for c in question.charges if c.kind is Kind.CHAIN}
    closing: dict[tuple[int, ...], float] = {}
    for charge in question.charges:
        if charge.kind is Kind.ENDS and charge.axes in chains:
            closing[charge.axes] = min(
                chains[charge.axes], closing.get(charge.axes, 0.0) + charge.weight_bytes
            )
    return closing


def plain_weights(question: Question) -> dict[tuple[int, ...], float]:
    """Return the prices of k - 1 by axes: reductions, and chains less what closes them."""
    weights: dict[tuple[int, ...], float] = {}
    closing = closing_weights(question)
    for charge in question.charges:
        if question.group_size(charge.axes) < 2:
            continue
        if charge.kind is Kind.TOUCH:
            weights[charge.axes] = weights.get(charge.axes, 0.0) + charge.weight_bytes
        elif charge.kind is Kind.CHAIN:
            left = charge.weight_bytes - closing.get(charge.axes, 0.0)
            weights[charge.axes] = weights.get(charge.axes, 0.0) + left
    return weights


def terms(question: Question, shares: Sequence[Share] = ()) -> tuple[Term, ...]:
    """Return what a domain pays, by axes, in the order of the axes."""
    touch, ring = plain_weights(question), dict(closing_weights(question))
    parts: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for charge in question.charges:
        if charge.kind is Kind.RING:
            ring[charge.axes] = ring.get(charge.axes, 0.0) + charge.weight_bytes
        elif charge.kind in (Kind.PAIRS, Kind.COPIES):
            units = np.array(held_units(charge, question.group_size(charge.axes)))
            parts[charge.axes] = parts.get(charge.axes, 0.0) + charge.weight_bytes * units
    rules: dict[tuple[int, ...], list[tuple[int, float]]] = {}
    for share in shares:
        rules.setdefault(share.axes, []).append((share.most, share.price_bytes))
    return tuple(
        Term(
            axes=axes,
            size=question.group_size(axes),
            groups=question.groups(axes),
            touch_bytes=touch.get(axes, 0.0),
            ring_bytes=ring.get(axes, 0.0),
            part_bytes=tuple(parts[axes].tolist()) if axes in parts else (),
            shares=tuple(rules.get(axes, ())),
        )
        for axes in sorted({*touch, *ring, *parts, *rules})
        if question.group_size(axes) > 1
    )


def table(term: Term, held: int, floor: int = 1) -> NDArray[np.float64]:
    """Return the least that *held* cells in t groups of *term* pay, by t [bytes].

    Args:
        term: the family.
        held: cells of the domain, C [1].
        floor: touches known to be needed [1].

    Returns:
        Array [G + 1]; infinite where C cells cannot lie in t groups.

    >>> ring = Term(axes=(0,), size=16, groups=4, touch_bytes=0.0, ring_bytes=1.0,
    ...             part_bytes=(), shares=())
    >>> table(ring, 24).tolist()  # one whole ring and half of another
    [inf, inf, 1.0, 2.0, 3.0]
    """
    t = np.arange(term.groups + 1)
    costs = paid(term, held, t, np.full(len(t), term.size), lambda _: np.full(len(t), term.groups))
    costs[: min(max(floor, 0), len(costs))] = np.inf
    return costs


def costs_of(
    term: Term, held: NDArray[np.int64], split_axis: int | None = None
) -> NDArray[np.float64]:
    """Return ``table`` of several numbers of cells, shape [numbers, G + 1] [bytes].

    Args:
        term: the family.
        held: cells of the domain, shape [numbers] [1].
        split_axis: the domain is known to hold a part, not all, of some line along it.
    """
    t = np.arange(term.groups + 1)[None, :]
    costs = paid(
        term,
        held[:, None],
        t,
        np.full(t.shape, term.size),
        lambda _: np.full(t.shape, term.groups),
    )
    fewest = held // term.size + 1 if split_axis in term.axes else np.ones_like(held)
    found: NDArray[np.float64] = np.where(t < fewest[:, None], np.inf, costs)
    return found


def paid(
    term: Term,
    held: int | NDArray[np.int64],
    t: NDArray[np.int64],
    part: NDArray[np.int64],
    most_holding: Callable[[int], NDArray[np.int64]],
) -> NDArray[np.float64]:
    """Return the least that *held* cells in t groups pay, with their parts limited.

    Args:
        term: the family.
        held: cells of the domain, C [1].
        t: groups touched.
        part: the most cells that one group can hold, M <= n.
        most_holding: of j, the most groups of which j cells or more can be held.
    """
    n = term.size
    below = np.minimum(part, n - 1)
    seen = np.clip(t, 1, held)
    spare = held - seen
    full = np.minimum(np.minimum(spare // (n - 1), most_holding(n)), seen) * (part == n)
    possible = (t == seen) & (full * n + (seen - full) * below >= held)
    costs = term.touch_bytes * seen
    if term.ring_bytes:
        costs = costs + term.ring_bytes * (seen - full)
    if term.part_bytes:
        costs = costs + _least_of_parts(
            np.array(term.part_bytes), held - full * n, seen - full, below
        )
    for most, price in term.shares:
        parted = np.minimum(seen, most_holding(most + 1)) * ((part - 1) // most)
        pieces = seen + np.minimum(spare // most, parted)
        costs = costs - price * pieces
    return np.where(possible, costs, np.inf)


def _least_of_parts(
    units: NDArray[np.float64],
    held: NDArray[np.int64],
    t: NDArray[np.int64],
    part: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return min sum units[n_g] for *held* cells in t groups of 1 to *part* cells each [bytes].

    The sum is concave, so it is least at a corner: as many groups as possible hold *part*, one
    holds the rest, the others one cell.
    """
    steps = np.maximum(part - 1, 1)
    extra = np.maximum(held - t, 0)
    full = np.minimum(extra // steps, t)
    rest = 1 + np.minimum(extra - full * steps, part - 1)
    ones = np.maximum(t - full - 1, 0)
    least: NDArray[np.float64] = full * units[part] + (full < t) * units[rest] + ones * units[1]
    return least


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables of one domain and what ties its families together.

    Args:
        terms: the families.
        cost_bytes: ``table`` of each [bytes].
        held: cells of the domain, C [1].
        sizes: cells along each axis.
    """

    terms: tuple[Term, ...]
    cost_bytes: tuple[NDArray[np.float64], ...]
    held: int
    sizes: tuple[int, ...]

    @property
    def cells(self) -> int | NDArray[np.int64]:
        """Cells of the domain that each vector of touches belongs to [1]."""
        return self.held

    def at(self, i: int, t: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what family i costs by its table, of t groups in each vector [bytes]."""
        costs: NDArray[np.float64] = self.cost_bytes[i][t]
        return costs

    def of(self, families: Sequence[int]) -> Tables:
        """Return the tables of some families only."""
        return replace(
            self,
            terms=tuple(self.terms[i] for i in families),
            cost_bytes=tuple(self.cost_bytes[i] for i in families),
        )

    @property
    def coupled(self) -> bool:
        """Whether ``totals`` can exceed the sum of the tables."""
        return len(self.terms) > 1 and any(_by_parts(term) for term in self.terms)

    def totals(self, touches: NDArray[np.int64], families: Sequence[int]) -> NDArray[np.float64]:
        """Return what some families cost a domain that touches so many groups of each [bytes].

        Args:
            touches: t of each of *families*, shape [vectors, len(families)].
            families: indices of the families looked at; the others may touch any number.
        """
        total = np.zeros(len(touches))
        for paid_bytes in self.by_family(touches, families):
            total = total + paid_bytes
        return total

    def by_family(
        self, touches: NDArray[np.int64], families: Sequence[int]
    ) -> list[NDArray[np.float64]]:
        """Return what each of *families* costs, as ``totals`` [bytes]."""
        found = []
        for column, i in enumerate(families):
            t = touches[:, column]
            alone = self.at(i, t)
            if _by_parts(self.terms[i]):
                others = self.others(i, touches, families)
                alone = np.maximum(alone, self._tied(self.terms[i], t, others))
            found.append(alone)
        return found

    def parted(self, i: int, touches: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what ``totals`` counts for the rings and parts of family i [bytes].

        Args:
            i: index of the family.
            touches: t of every family, shape [vectors, families].
        """
        bare = replace(self.terms[i], touch_bytes=0.0, shares=())
        return self._tied(bare, touches[:, i], self.others(i, touches, range(len(self.terms))))

    def _tied(self, term: Term, t: NDArray[np.int64], others: Others) -> NDArray[np.float64]:
        part = part_limit(term.size, others, len(t))
        return paid(term, self.cells, t, part, partial(holding, term.groups, others, len(t)))

    def most_pieces(self, i: int, touches: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """Return the most that sum_g ceil(n_g / most) can be, over the groups of family i.

        Args:
            i: index of the family.
            touches: t of every family, shape [vectors, families].
            most: part size m [1].
        """
        term, t = self.terms[i], touches[:, i]
        others = self.others(i, touches, range(len(self.terms)))
        parted = np.minimum(t, holding(term.groups, others, len(t), most + 1))
        pieces: NDArray[np.int64] = t + np.minimum(
            np.maximum(self.cells - t, 0) // most,
            parted * ((part_limit(term.size, others, len(t)) - 1) // most),
        )
        return pieces

    def fewest_full(self, i: int, touches: NDArray[np.int64], full: int) -> NDArray[np.int64]:
        """Return the least that sum_g floor(n_g / full) can be, over the groups of family i.

        t groups hold full - 1 cells each without one; every further one makes room for *full*
        cells, but the last of a group only for those that are left of its n.
        """
        t, size = touches[:, i], self.terms[i].size
        over = np.maximum(self.cells - t * (full - 1), 0)
        roomy = t * (size // full - 1)
        last = size - size // full * full + 1
        fewest: NDArray[np.int64] = np.where(
            over <= roomy * full, -(-over // full), roomy - (roomy * full - over) // last
        )
        return fewest

    def others(self, i: int, touches: NDArray[np.int64], families: Sequence[int]) -> Others:
        """Return what the other families looked at leave family i room for."""
        columns = [k for k, j in enumerate(families) if j != i]
        among = tuple(self.terms[families[k]].axes for k in columns)
        return others_of(self.sizes, self.terms[i].axes, among, touches[:, columns])


def _by_parts(term: Term) -> bool:
    """Return whether it matters how the cells lie in the groups that are touched."""
    return bool(term.ring_bytes or term.part_bytes or term.shares)


def tables(
    question: Question,
    held: int,
    split_axis: int | None = None,
    shares: Sequence[Share] = (),
) -> Tables:
    """Return the tables of a domain of *held* cells.

    Args:
        question: the grid and its charges.
        held: cells of the domain [1].
        split_axis: the domain is known to hold a part, not all, of some line along it.
        shares: priced rules.
    """
    found = terms(question, shares)
    return Tables(
        terms=found,
        cost_bytes=tuple(
            table(term, held, held // term.size + 1 if split_axis in term.axes else 1)
            for term in found
        ),
        held=held,
        sizes=question.sizes,
    )
