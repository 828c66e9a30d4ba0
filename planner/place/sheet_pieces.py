"""The lines of joined sheets cut into pieces: what domains' parts there cost at least together.

Proof: ``FORMULATION.md``, "Joins".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, combinations
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bound, rebate_bytes
from planner.place.sheet_lines import one_sheet
from planner.place.sheet_parts import sheeted
from planner.place.sheet_prices import Fillings
from planner.place.whole_numbers import PROMPT_S, Chosen, Effort, Model, least_choice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.place.question import Question
    from planner.place.sheet_cuttings import Parts
    from planner.place.sheet_parts import Sheeted

_PIECED_MOST = 600  # ways to make a part of pieces, and cuttings of lines: more take seconds
_TRIED = 5  # times as many ways to lay parts upon each other are looked at
_STEPS_MOST = 20_000  # in search of cuttings; where few pieces fit together all are in vain
_TOLD_ENOUGH = 3  # joins of which lines told something, after which only such lines are asked
_EFFORT = Effort(listed=0, nodes=500, solve_s=PROMPT_S)  # nodes end it first
_MET = 1e-9  # relative; of what two sums may differ by


@dataclass(frozen=True, slots=True)
class Held:
    """A part of one of the sheets that are looked at.

    Args:
        cells: of it; 0 if the domain holds none [1].
        weights_bytes: what it pays for one more group of every trace [bytes].
        joined_bytes: what it is known to pay jointly inside the sheet and across [bytes].
    """

    cells: int = 0
    weights_bytes: tuple[float, ...] = ()
    joined_bytes: float = 0.0


Together = tuple[Held, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Sheets that are looked at together.

    Args:
        sheets: one, or two that follow each other, by number.
        hop_bytes: what a place pays that is in one domain in the first, in another in the second;
            0 of one sheet [bytes].
        shares: of each sheet, how much of what is paid inside it counts here [1].
    """

    sheets: tuple[int, ...]
    hop_bytes: float
    shares: tuple[float, ...]


def least_more(
    of: Sheeted,
    join: Join,
    held: Counter[Together],
    known_bytes: float,
    slack_bytes: float,
    ends_s: float = inf,
    told: Counter[tuple[int, ...]] | None = None,
    *,
    soon: bool = False,
) -> float:
    """Return by how much the parts of joined sheets cost more than is known [bytes].

    Lines along the same axes say the most of one join and of the next: once those are known, no
    others are asked.

    Args:
        of: the question cut into sheets.
        join: the sheets.
        held: what domains hold of them, and how many do.
        known_bytes: what is known, constants taken off [bytes].
        slack_bytes: more than that need not be told [bytes].
        ends_s: look at no further lines when ``time.monotonic()`` is past this [s].
        told: how often lines along some axes said the most; this time's are added.
        soon: ask no others than the first lines that say something.
    """
    best = 0.0
    of_best: tuple[int, ...] = ()
    ways = _line_axes(of.sheet)
    if told is not None and told.total() >= (1 if soon else _TOLD_ENOUGH):
        ways = [axes for axes in ways if told[axes]]
    for axes in ways:
        lines, _ = _lines(one_sheet(of, ()), axes)
        pieced = _Pieced(of=of, join=join, axes=axes, lines=lines)
        more = pieced.least(held, known_bytes, slack_bytes)
        if more > best:
            best, of_best = more, axes
        if best >= slack_bytes or (soon and best > 0) or monotonic() > ends_s:
            break
    if told is not None and of_best:
        told[of_best] += 1
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pieced:
    """The lines of the sheets of a join, cut into the pieces that domains hold of them.

    Args:
        of: the question cut into sheets.
        join: the sheets.
        axes: along which the cells of a line vary.
        lines: one sheet cut into lines.
    """

    of: Sheeted
    join: Join
    axes: tuple[int, ...]
    lines: Sheeted

    def least(self, held: Counter[Together], known_bytes: float, slack_bytes: float) -> float:
        """Return by how much parts cost more than is known, up to about the slack [bytes].

        Args:
            held: what domains hold, and how many do.
            known_bytes: what the choice charges for it [bytes].
            slack_bytes: what is left out costs more than that above what is known [bytes].
        """
        cheapest = sum(n * self._cheapest(one) for one, n in held.items())
        below = known_bytes + sum(self.join.shares) * self._given_bytes - cheapest
        if below > slack_bytes:
            return 0.0  # too little is told by these lines
        room = slack_bytes + max(below, 0.0)
        ways: list[list[tuple[tuple[Parts, ...], float]]] = []
        for one in held:
            found = self._ways(one, room)
            if found is None:
                return 0.0
            ways.append(found)
        chosen = self._chosen(ways, list(held.values()), room)
        if chosen.least == -inf:
            return 0.0
        more = chosen.sure(sum(held.values())) * room - below - _MET * abs(known_bytes)
        return max(0.0, more)

    def _chosen(
        self, ways: list[list[tuple[tuple[Parts, ...], float]]], times: list[int], room: float
    ) -> Chosen:
        """Return what a solver says of the least that domains pay above their cheapest pieces.

        Args:
            ways: of each kind of domain.
            times: how many domains of each kind there are [1].
            room: what is one to the solver [bytes].
        """
        if not all(ways):
            return Chosen(times=None, least=1.0)  # no such domain is as cheap as that
        cuttings = self._cuttings(ways, times)
        if cuttings is None:
            return Chosen(times=None, least=-inf)
        model = self._model(ways, times, cuttings, room)
        return least_choice(model, room, _EFFORT.solve_s, _EFFORT)

    def _priced(self, part: Held) -> tuple[Sheeted, Fillings]:
        weighted = zip(self.of.traces, part.weights_bytes, strict=False)
        traces = tuple(replace(one, weight_bytes=w) for one, w in weighted if w > 0)
        return _lines(one_sheet(self.of, traces), self.axes)

    @property
    def _given_bytes(self) -> float:
        """What the domains of one sheet are charged too much by [bytes]."""
        return self.lines.given_bytes + rebate_bytes(self.lines.beside)

    def _cheapest(self, one: Together) -> float:
        """Return what a domain pays at least, the cheapest pieces of every part [bytes]."""
        parts = [p for p in zip(one, self.join.shares, strict=True) if p[0].cells]
        told = sum(share * self._priced(part)[1].least(part.cells) for part, share in parts)
        return told + sum(share * _beside(self.lines.beside, part.cells) for part, share in parts)

    def _ways(self, one: Together, room: float) -> list[tuple[tuple[Parts, ...], float]] | None:
        """Return the pieces that a domain may hold, and what they cost more; None if too many."""
        several: list[list[tuple[Parts, float]]] = []
        for part, share in zip(one, self.join.shares, strict=True):
            if not part.cells:
                several.append([((), 0.0)])
                continue
            lines, fillings = self._priced(part)
            least = fillings.least(part.cells)
            pieces = fillings.below(part.cells, least + room / share, _PIECED_MOST)
            if pieces is None:
                return None
            several.append(
                [
                    (held, share * (lines.pays(held) - least))
                    for held in pieces
                    if len(held) <= lines.sheets
                ]
            )
        if len(one) == 1:
            return [(tuple((p,) for p in held), more) for held, more in several[0]]
        nested, tried = min(part.cells for part in one), 0
        found: list[tuple[tuple[Parts, ...], float]] = []
        for first, paid in several[0]:
            for second, also in several[1]:
                lost = (room - paid - also) / self.join.hop_bytes
                for laid in _laid(first, second, lost) if lost >= 0 else ():
                    tried += 1
                    if tried > _TRIED * _PIECED_MOST:
                        return None
                    if laid is not None:
                        kept = sum(min(piece) for piece in laid)
                        found.append((laid, paid + also + self.join.hop_bytes * (nested - kept)))
                if len(found) > _PIECED_MOST:
                    return None
        return found

    def _cuttings(
        self, ways: list[list[tuple[tuple[Parts, ...], float]]], times: list[int]
    ) -> list[tuple[Parts, ...]] | None:
        """Return the ways to cut a line, of all sheets at once, into these; None if too many."""
        supply: Counter[Parts] = Counter()
        for found, n in zip(ways, times, strict=True):
            most: Counter[Parts] = Counter()
            for laid, _ in found:
                most |= Counter(laid)
            supply += Counter({piece: n * m for piece, m in most.items()})
        whole = (self.lines.sheet.cells,) * len(self.join.sheets)
        return _all_cuttings(whole, supply)

    def _model(
        self,
        ways: list[list[tuple[tuple[Parts, ...], float]]],
        times: list[int],
        cuttings: list[tuple[Parts, ...]],
        room: float,
    ) -> Model:
        """Return the rules: domains of every kind, lines, as many pieces of each size in both."""
        from scipy.sparse import csr_array  # noqa: PLC0415 - rarely needed

        pieces = sorted({piece for found in ways for laid, _ in found for piece in laid})
        row_of = {piece: len(ways) + 1 + i for i, piece in enumerate(pieces)}
        cost: list[float] = []
        entries: list[tuple[int, int, float]] = []
        for k, found in enumerate(ways):
            for laid, more in found:
                entries.append((k, len(cost), 1.0))
                entries += [(row_of[p], len(cost), float(n)) for p, n in Counter(laid).items()]
                cost.append(more)
        for cutting in cuttings:
            entries.append((len(ways), len(cost), 1.0))
            entries += [(row_of[p], len(cost), -float(n)) for p, n in Counter(cutting).items()]
            cost.append(0.0)
        sides = np.zeros(len(ways) + 1 + len(pieces))
        sides[: len(ways)] = times
        sides[len(ways)] = self.lines.sheets
        return Model(
            cost_bytes=np.clip(np.array(cost), 0.0, room),
            whole=np.ones(len(cost), dtype=bool),
            highest=np.full(len(cost), float(max(*times, self.lines.sheets))),
            rows=csr_array(coordinates(entries), shape=(len(sides), len(cost))),
            least=sides,
            most=sides,
        )


def _all_cuttings(whole: Parts, supply: Counter[Parts]) -> list[tuple[Parts, ...]] | None:
    """Return all ways to make up *whole* of pieces, of each so many at most; None if too many."""
    cuttings: list[tuple[Parts, ...]] = []
    stack: list[tuple[list[Parts], int, Parts, tuple[Parts, ...]]] = [
        (sorted(supply, reverse=True), 0, whole, ())
    ]  # pieces that may come next, how many of the first of them are taken, what is left, taken
    steps = 0
    while stack:
        pieces, first_taken, left, taken = stack.pop()
        steps += 1
        if steps > _STEPS_MOST:
            return None
        if not any(left):
            cuttings.append(taken)
            if len(cuttings) > _PIECED_MOST:
                return None
            continue
        if len(left) == 1:
            fitting = [p for p in pieces if p[0] <= left[0]]
        else:
            fitting = [p for p in pieces if p[0] <= left[0] and p[1] <= left[1]]
        for i, piece in enumerate(fitting):
            times = first_taken if i == 0 and piece == pieces[0] else 0
            if times < supply[piece]:
                rest = tuple([k - p for p, k in zip(piece, left, strict=True)])
                stack.append((fitting[i:], times + 1, rest, (*taken, piece)))
    return cuttings


def _line_axes(sheet: Question) -> list[tuple[int, ...]]:
    """Return the axes that lines may lie along, the longest lines first."""
    live = [i for i, n in enumerate(sheet.sizes) if n > 1]
    some = chain.from_iterable(combinations(live, n) for n in range(1, len(live)))
    return sorted(some, key=lambda axes: (-sheet.group_size(axes), axes))


@lru_cache(maxsize=4096)
def _beside(families: Question, cells: int) -> float:
    return domain_bound(families, cells) if families.charges else 0.0


@lru_cache(maxsize=256)
def _lines(sheet: Question, axes: tuple[int, ...]) -> tuple[Sheeted, Fillings]:
    """Return a sheet cut into lines, and the fillings of its domains with pieces."""
    lines = sheeted(sheet, axes)
    return lines, Fillings(lines.pays_bytes, max(sheet.capacities))


def _laid(first: Parts, second: Parts, most_lost: float) -> Iterator[tuple[Parts, ...] | None]:
    """Yield all ways to lay the pieces of one sheet upon those of the next, none upon two.

    None for each that loses more than *most_lost* of the places that might lie upon each other.

    Args:
        first: pieces, the largest first [1].
        second: pieces, the largest first [1].
        most_lost: places [1].
    """
    nested = min(sum(first), sum(second))
    stack: list[tuple[tuple[Parts, ...], Parts, int]] = [((), second, 0)]
    while stack:
        laid, left, kept = stack.pop()
        at = len(laid)
        if kept + min(sum(first[at:]), sum(left)) < nested - most_lost:
            yield None
            continue
        if at == len(first):
            yield tuple(sorted((*laid, *((0, q) for q in left)), reverse=True))
            continue
        p = first[at]
        most = laid[-1][1] if at and first[at - 1] == p else inf  # equal ones in one order only
        for k, q in enumerate((*left, 0)):
            if q <= most and (k == 0 or q != left[k - 1]):
                rest = (*left[:k], *left[k + 1 :])
                stack.append(((*laid, (p, q)), rest, kept + min(p, q)))


def coordinates(
    entries: list[tuple[int, int, float]],
) -> tuple[list[float], tuple[list[int], list[int]]]:
    """Return (rule, unknown, factor) as SciPy's sparse arrays take them."""
    rows, columns, factors = zip(*entries, strict=True)
    return list(factors), (list(rows), list(columns))
