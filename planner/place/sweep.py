"""The cheapest way to deal sheets out to domains, one after another.

A *state* tells how full the domains are after some sheets, and what else decides what they pay for
the rest. From each state a sheet is dealt out in every way that may still lead to less than a
limit, by prices that say what the rest costs at least. Where no state is left, every way costs more
than the limit; the cheapest that gets to the last sheet is the best of all. No solver has a part in
it. Proof: ``FORMULATION.md``, "Swept".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.place.clock import TimeUp, look
from planner.place.sweep_states import Rest, cheapest_of_alike, mixed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from planner.place.sheet_cuttings import Parts

_SHARES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85)  # of what is open, one limit after another
_TOO_MANY = 3  # limits under which there is too much to look at, after which none is tried
_HOPEFUL_SHARE = 0.3  # of what is open, up to which there must not be too much to look at
_LEARNED_MOST = 400  # times that a cheapest way turned out dearer, after which it stands as it is
_NEAR_SHARE = 0.005  # of what is open, by which a limit differs from the last at least
_TOLD = 8  # ways, the cheapest, of which more is asked at a time
_MET = 1e-9  # relative; less is no better
_AT_ONCE = 1_000_000  # ways to deal out a sheet that are looked at side by side: 8 MB each number


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep found.

    Args:
        bound_bytes: what every seating cuts at least [bytes].
        held: cells of every sheet that each domain holds in the cheapest way, shape [domains,
            sheets]; None where none was found that costs less than the cut in hand.
        ended: whether no way that costs less was left out.
    """

    bound_bytes: float
    held: NDArray[np.int64] | None
    ended: bool


class Dealing(ABC):
    """What sheets are dealt out, and what domains pay for it.

    A domain's *code* is a number that tells all of it that what follows depends on; 0 if full.

    Args:
        steps: sheets [1].
        cells: of each [1].
        counts: numbers of cells of a sheet that a domain may take, 0 among them [1].
        base_bytes: what every way costs at least, by the prices [bytes].
        tolerance_bytes: how far off sums of prices may be [bytes].
    """

    steps: int
    cells: int
    counts: int
    base_bytes: float
    tolerance_bytes: float

    @abstractmethod
    def first_codes(self) -> NDArray[np.int64]:
        """Return the code of each domain before the first sheet, shape [domains]."""

    @abstractmethod
    def costs(
        self, step: int, codes: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return what taking 0, 1, … cells costs domains above what they had to pay, and after it.

        Returns:
            Arrays [codes, counts]: bytes, infinite where it can not, and the domains' next codes.
        """

    @abstractmethod
    def given_bytes(self, step: int) -> float:
        """Return what the costs of a sheet's domains are at least, together [bytes]."""

    @abstractmethod
    def worth_bytes(self, step: int) -> NDArray[np.float64]:
        """Return what 0, 1, … cells of a sheet are worth, shape [counts] [bytes].

        Taking them costs a domain no less, and all that are taken are worth *given_bytes* at least.
        """

    def more_bytes(
        self,
        step: int,
        codes: NDArray[np.int64],
        taken: NDArray[np.int64],
    ) -> NDArray[np.float64] | None:
        """Return what ways to deal out a sheet are known to cost besides; None if nothing is known.

        Args:
            step: which sheet.
            codes: of the domains before, shape [ways, domains told].
            taken: cells that they take, shape [ways, domains told].
        """
        del step, codes, taken
        return None

    def marked(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return states, shape [states, domains] in descending order, with one domain marked.

        Where ways differ in the order of sheets alone, the marked domain may have to take cells.
        """
        return codes

    def learn_soon(self, held: NDArray[np.int64]) -> None:
        """Ask what another way costs besides, as far as that takes no longer than a sweep."""
        self.learn(held)

    def learn(self, held: NDArray[np.int64]) -> bool:
        """Ask what a cheapest way costs besides; return whether more than was known."""
        del held
        return False


def swept(
    dealing: Dealing, cut_bytes: float, known_bytes: float, most: int, ends_s: float
) -> Swept:
    """Return the cheapest way to deal out all sheets, or what all of them cost at least.

    When the time is up, what is known by then.

    Args:
        dealing: the sheets and what domains pay.
        cut_bytes: of the best seating known; ways that cost no less are left out [bytes].
        known_bytes: a bound of the cut that is known; limits are above it [bytes].
        most: ways to deal out a sheet, times cells of it, that are looked at under one limit [1].
        ends_s: stop when ``time.monotonic()`` is past this [s].
    """
    slack = cut_bytes * (1 - _MET) - dealing.base_bytes
    if slack <= 0:
        return Swept(bound_bytes=dealing.base_bytes, held=None, ended=False)
    known = min(max(0.0, known_bytes - dealing.base_bytes), slack)
    base = dealing.base_bytes - dealing.tolerance_bytes
    limits = _limits(known, slack)
    proved, limit, too_high, failed, learned = 0.0, next(limits), inf, 0, 0
    try:
        while monotonic() < ends_s and failed < _TOO_MANY:
            found = below(dealing, limit, most, ends_s)
            if found.too_many:
                too_high, failed = limit, failed + 1
                if known > proved or limit < _HOPEFUL_SHARE * slack:
                    break  # nothing is told that is not known, or much more is to be looked at
            elif _learned(dealing, found):
                proved, learned = max(proved, found.excess_bytes), learned + 1
                if learned > _LEARNED_MOST:
                    return Swept(bound_bytes=base + proved, held=found.held, ended=False)
                continue
            else:
                proved = max(proved, found.excess_bytes)
                if found.held is not None:
                    return Swept(bound_bytes=base + proved, held=found.held, ended=True)
                if proved >= slack:
                    return Swept(bound_bytes=cut_bytes, held=None, ended=True)
            if too_high == inf:
                limit = next(limits)
                continue
            limit = (max(known, proved) + too_high) / 2
            if too_high - limit < _NEAR_SHARE * slack:
                break
    except TimeUp:
        pass  # what is known so far holds
    return Swept(bound_bytes=base + proved, held=None, ended=False)


def _learned(dealing: Dealing, found: Found) -> bool:
    """Ask what the cheapest way costs besides; return whether more than was known.

    If so, of the others, too: they may be the cheapest next.
    """
    if found.held is None or not dealing.learn(found.held):
        return False
    for held in found.others:
        dealing.learn_soon(held)
    return True


def _limits(known: float, slack: float) -> Iterator[float]:
    """Yield limits up to the slack, beginning above what is known, each worth a sweep [bytes]."""
    last = known
    for share in _SHARES:
        limit = known + share * (slack - known)
        if limit < slack and limit - last >= _SHARES[0] * slack:
            last = limit
            yield limit
    yield slack  # itself: sums may be off by a last digit


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The cheapest way under a limit; *excess_bytes* is what it costs above the prices' bound.

    Without one, that is the limit; if ways were *too_many*, nothing is known. *others* are some
    that end otherwise, the next cheapest.
    """

    excess_bytes: float
    held: NDArray[np.int64] | None = None
    others: tuple[NDArray[np.int64], ...] = ()
    too_many: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _States:
    """States after a sheet.

    Args:
        codes: of the domains, in descending order, shape [states, domains].
        excess_bytes: what they cost above the prices' bound at least, shape [states] [bytes].
        before: the state before of each, shape [states].
        taken: cells that each of its domains took, shape [states, domains told].
    """

    codes: NDArray[np.int64]
    excess_bytes: NDArray[np.float64]
    before: NDArray[np.int64]
    taken: NDArray[np.int64]


def below(dealing: Dealing, limit_bytes: float, most: int, ends_s: float) -> Found:
    """Return the cheapest way that costs *limit_bytes* more than the prices' bound at most.

    Args:
        dealing: the sheets and what domains pay.
        limit_bytes: [bytes].
        most: ways to deal out sheets that are looked at, in all [1].
        ends_s: when ``time.monotonic()`` is past this, the rest is too many [s].
    """
    first = dealing.first_codes()
    order = np.argsort(-first, kind="stable")
    states = _States(
        codes=first[order][None, :],
        excess_bytes=np.zeros(1),
        before=np.zeros(1, dtype=np.int64),
        taken=np.zeros((1, 0), dtype=np.int64),
    )
    steps = [states]
    for step in range(dealing.steps):
        look()
        limit = limit_bytes + dealing.tolerance_bytes
        dealt = _dealt(dealing, step, states, limit, most, ends_s)
        if dealt is None:
            return Found(excess_bytes=0.0, too_many=True)
        states, looked_at = dealt
        most -= looked_at
        if not len(states.codes):
            return Found(excess_bytes=limit_bytes)
        steps.append(states)
    held = [_held(dealing, steps, k, order) for k in range(len(states.codes))]
    return Found(excess_bytes=float(states.excess_bytes[0]), held=held[0], others=tuple(held[1:]))


def _dealt(
    dealing: Dealing, step: int, states: _States, limit_bytes: float, most: int, ends_s: float
) -> tuple[_States, int] | None:
    """Return the states after one more sheet, and how many ways to them were looked at.

    None if those are more than *most*, or when time is up.
    """
    width = int((states.codes > 0).sum(axis=1).max())
    codes = states.codes[:, :width]
    known, which = np.unique(codes, return_inverse=True)
    which = which.reshape(codes.shape)
    costs, after = dealing.costs(step, known)
    dear = costs - dealing.worth_bytes(step) > limit_bytes - states.excess_bytes.min()
    costs[dear] = np.inf
    count = np.flatnonzero(np.isfinite(costs).any(axis=0))
    rest = Rest.of(which, costs, dealing.cells, most, ends_s)
    if rest is None:
        return None
    given = dealing.given_bytes(step)
    room = limit_bytes + given - states.excess_bytes
    state = np.flatnonzero(rest.least <= room)
    need = np.full(len(state), dealing.cells)
    paid = np.zeros(len(state))
    came: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # from which way, and cells taken
    told, looked_at = costs[:, count], rest.looked_at
    at_once = max(1, _AT_ONCE // max(1, len(count)))
    for i in range(width):
        looked_at += len(state) * len(count)
        if looked_at > most or monotonic() > ends_s:
            return None
        rows, taking = [], []
        for begin in range(0, max(len(state), 1), at_once):
            some = slice(begin, begin + at_once)
            of, left = state[some], need[some, None] - count
            total = paid[some, None] + told[which[of, i]]
            ok = (left >= 0) & (total + rest.after(i, of, left) <= room[of, None])
            if i:  # domains alike take in one order only
                alike = which[of, i] == which[of, i - 1]
                ok &= ~alike[:, None] | (count <= came[-1][1][some, None])
            row, b = np.nonzero(ok)
            rows.append(begin + row)
            taking.append(count[b])
        row, b = np.concatenate(rows), np.concatenate(taking)
        state, need = state[row], need[row] - b
        paid = paid[row] + costs[which[state, i], b]
        came.append((row, b))
    taken = _taken(came, len(state))
    excess = states.excess_bytes[state] + paid - given
    more = dealing.more_bytes(step, codes[state], taken)
    if more is not None:
        excess = excess + more
        kept = excess <= limit_bytes
        state, taken, excess = state[kept], taken[kept], excess[kept]
    moved = -after[which[state], taken]
    moved.sort(axis=1)
    moved = dealing.marked(np.negative(moved, out=moved))
    if step == dealing.steps - 1:  # all end alike
        one = np.argsort(excess, kind="stable")[:_TOLD]
    else:
        one = cheapest_of_alike(moved, excess)
    return _States(
        codes=moved[one], excess_bytes=excess[one], before=state[one], taken=taken[one]
    ), looked_at


def _taken(came: list[tuple[NDArray[np.int64], NDArray[np.int64]]], ways: int) -> NDArray[np.int64]:
    """Return the cells that each domain takes in every way, shape [ways, domains told].

    Args:
        came: by domain, which way each goes on from and the cells that the domain takes in it.
        ways: how many there are in the end [1].
    """
    taken = np.empty((ways, len(came)), dtype=np.int64)
    at = np.arange(ways)
    for i, (row, b) in reversed(list(enumerate(came))):
        taken[:, i] = b[at]
        at = row[at]
    return taken


def _held(
    dealing: Dealing, steps: list[_States], best: int, order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the cells of every sheet that each domain holds on the way to a state."""
    way = [best]
    for states in reversed(steps[2:]):
        way.append(int(states.before[way[-1]]))
    held = np.zeros((len(order), dealing.steps), dtype=np.int64)
    codes, domains = steps[0].codes[0], order
    for step, k in enumerate(reversed(way)):
        states = steps[step + 1]
        taken = np.zeros(len(order), dtype=np.int64)
        taken[: states.taken.shape[1]] = states.taken[k]
        held[domains, step] = taken
        _, after = dealing.costs(step, codes)
        moved = after[np.arange(len(codes)), taken]
        again = np.argsort(-moved, kind="stable")
        codes, domains = dealing.marked(moved[again][None, :])[0], domains[again]
    return held


def told(rows: NDArray[np.int64], known_bytes: dict[Parts, float]) -> NDArray[np.float64]:
    """Return what is known of each row, whatever the order of its numbers; 0 is none [bytes]."""
    found_bytes = np.zeros(len(rows))
    ordered = -np.sort(-rows, axis=1)
    width = ordered.shape[1]
    fitting = [(parts, more) for parts, more in known_bytes.items() if len(parts) <= width]
    if not fitting:
        return found_bytes
    asked = np.array([(*parts, *(0,) * (width - len(parts))) for parts, _ in fitting])
    of_rows, of_asked = mixed(ordered), mixed(asked)
    for k in np.flatnonzero(np.isin(of_asked, of_rows)).tolist():
        found = np.flatnonzero(of_rows == of_asked[k])
        found_bytes[found[(ordered[found] == asked[k]).all(axis=1)]] = fitting[k][1]
    return found_bytes
