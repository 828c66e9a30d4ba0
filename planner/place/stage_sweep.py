"""The cheapest choice of a pattern for every domain, stage after stage.

A *state* tells how full the domains are after some stages, and what each holds of the last of them:
all that what follows depends on. From each state a stage is dealt out in every way that may still
lead to less than a limit, by prices that say what the rest costs at least (``stage_prices.py``).
Where no state is left, every choice costs more than the limit; the cheapest that gets to the last
stage is the best of all. No solver has a part in it. Proof: ``FORMULATION.md``, "Swept".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.place.clock import look
from planner.place.stage_states import Rest, cheapest_of_alike, mixed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from planner.place.stage_joins import Beyond, Pairs, Parts
    from planner.place.stage_prices import Priced
    from planner.place.stages import Staged

_SHARES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)  # of what is open, one limit after another
_TOO_MANY = 3  # limits under which there is too much to look at, after which none is tried
_HOPEFUL_SHARE = 0.3  # of what is open, up to which there must not be too much to look at
_LEARNED_MOST = 400  # cuttings and joins asked for, after which the choice stands as it is
_NEAR_SHARE = 0.005  # of what is open, by which a limit differs from the last at least
_COSTS_MOST = 4_000_000  # of all states and counts of a stage, past which nothing is swept
_ROUNDING = 1e-12  # relative; sums of a few hundred products
_MET = 1e-9  # relative; less is no better


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep found.

    Args:
        bound_bytes: what every seating cuts at least [bytes].
        held: cells of every stage that each domain holds in the cheapest choice, shape [domains,
            stages]; None where none was found that costs less than the cut in hand.
        ended: whether no choice that costs less was left out.
    """

    bound_bytes: float
    held: NDArray[np.int64] | None
    ended: bool


def swept(
    of: Staged,
    priced: Priced,
    cut_bytes: float,
    known_bytes: float,
    most: int,
    ends_s: float,
    beyond: Beyond | None = None,
) -> Swept:
    """Return the cheapest choice of patterns, or what all of them cost at least.

    Args:
        of: the question cut along its pipeline.
        priced: prices of the stages' cells and pieces, good ones if much is to be left out.
        cut_bytes: of the best seating known; choices that cost no less are left out [bytes].
        known_bytes: a bound of the cut that is known; limits are above it [bytes].
        most: ways to deal out stages, times cells of each, that are looked at under one limit [1].
        ends_s: begin no further limit when ``time.monotonic()`` is past this [s].
        beyond: what stages cost besides, asked for those of the best choices.
    """
    slack = cut_bytes * (1 - _MET) - priced.bound_bytes
    sweep = _Sweep(of, priced)
    if not sweep.possible or slack <= 0:
        return Swept(bound_bytes=priced.bound_bytes, held=None, ended=False)
    known = min(max(0.0, known_bytes - priced.bound_bytes), slack)
    limits = _limits(known, slack)
    proved, limit, too_high, failed = 0.0, next(limits), inf, 0
    while monotonic() < ends_s and failed < _TOO_MANY:
        found = sweep.below(limit, most)
        if found.too_many:
            too_high, failed = limit, failed + 1
            if known > proved or limit < _HOPEFUL_SHARE * slack:
                break  # nothing is told that is not known, or much more is to be looked at
        elif found.held is not None and sweep.learn(found.held, beyond):
            proved = max(proved, found.excess_bytes)
            if len(sweep.cut_bytes) + len(sweep.joined_bytes) > _LEARNED_MOST:
                return Swept(bound_bytes=sweep.bound_bytes(proved), held=found.held, ended=False)
            continue
        else:
            proved = max(proved, found.excess_bytes)
            if found.held is not None:
                return Swept(bound_bytes=sweep.bound_bytes(proved), held=found.held, ended=True)
            if proved >= slack:
                return Swept(bound_bytes=cut_bytes, held=None, ended=True)
        if too_high == inf:
            limit = next(limits)
            continue
        limit = (max(known, proved) + too_high) / 2
        if too_high - limit < _NEAR_SHARE * slack:
            break
    return Swept(bound_bytes=sweep.bound_bytes(proved), held=None, ended=False)


def shares_of(stages: int, stage: int) -> tuple[float, float]:
    """Return how much of what the stage before a stage and it pay counts where they are joined."""
    return (1.0 if stage == 1 else 0.5, 1.0 if stage == stages - 1 else 0.5)


def _limits(known: float, slack: float) -> Iterator[float]:
    """Yield limits up to the slack, beginning above what is known, each worth a sweep [bytes]."""
    last = known
    for share in _SHARES:
        limit = known + share * (slack - known)
        if limit - last >= _SHARES[0] * slack or limit >= slack:
            last = limit
            yield min(limit, slack)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The cheapest choice under a limit; *excess_bytes* is what it costs above the prices' bound.

    Without one, that is the limit; if ways were *too_many*, nothing is known.
    """

    excess_bytes: float
    held: NDArray[np.int64] | None = None
    too_many: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _States:
    """States after a stage.

    Args:
        codes: what each domain has, in descending order, shape [states, domains].
        excess_bytes: what they cost above the prices' bound at least, shape [states] [bytes].
        before: the state before of each, shape [states].
        taken: cells that each of its domains took, shape [states, domains told].
    """

    codes: NDArray[np.int64]
    excess_bytes: NDArray[np.float64]
    before: NDArray[np.int64]
    taken: NDArray[np.int64]


@dataclass(slots=True)
class _Sweep:
    """One question at some prices.

    A domain's *code* is 0 if it is full (and holds nothing of the last stage, where it matters what
    two stages cost together), else what it holds of the first stage (where a link
    closes the pipeline), of the last stage dealt out, and the cells that it has left, in one
    number.
    """

    of: Staged
    priced: Priced
    counts: int = field(init=False)
    seats: int = field(init=False)
    given_bytes: NDArray[np.float64] = field(init=False)
    tolerance_bytes: float = field(init=False)
    cut_bytes: dict[Parts, float] = field(default_factory=dict)
    joined_bytes: dict[tuple[tuple[float, float], Pairs], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        of, prices = self.of, self.priced.prices
        self.counts, self.seats = len(of.pays_bytes), of.largest + 1
        _, needs = of.pieces
        self.given_bytes = prices.cell_bytes * of.sheet.cells + prices.piece_bytes @ needs
        size = float(np.abs(self.given_bytes).sum()) + of.given_bytes
        self.tolerance_bytes = _ROUNDING * size

    @property
    def possible(self) -> bool:
        """Whether the states of one domain are few enough."""
        firsts = self.counts if self.of.closing_bytes else 1
        return firsts * self.counts**2 * self.seats <= _COSTS_MOST

    def bound_bytes(self, excess_bytes: float) -> float:
        """Return what seatings cut at least whose choice costs so much above the prices' bound."""
        return self.priced.bound_bytes + excess_bytes - self.tolerance_bytes

    @property
    def joins(self) -> bool:
        """Whether something is known of stages that follow each other."""
        return any(self.joined_bytes.values())

    def learn(self, held: NDArray[np.int64], beyond: Beyond | None) -> bool:
        """Ask what these stages cost besides; return whether more than was known."""
        if beyond is None:
            return False
        learned = False
        for column in held.T:
            parts = tuple(sorted((int(k) for k in column if k), reverse=True))
            if parts not in self.cut_bytes:
                self.cut_bytes[parts] = beyond.cutting_bytes(parts)
                learned = learned or self.cut_bytes[parts] > 0
        if learned:
            return True
        for stage in range(1, self.of.stages):
            two = Counter(map(tuple, held[:, stage - 1 : stage + 1].tolist()))
            two.pop((0, 0), None)
            key = shares_of(self.of.stages, stage), frozenset(two.items())
            if key not in self.joined_bytes:
                self.joined_bytes[key] = beyond.joined_bytes(stage, key[1])
                learned = learned or self.joined_bytes[key] > 0
        return learned

    def below(self, limit_bytes: float, most: int) -> _Found:
        """Return the cheapest choice that costs *limit_bytes* more than the prices' bound at most.

        Args:
            limit_bytes: [bytes].
            most: ways to deal out stages that are looked at, in all [1].
        """
        of, capacities = self.of, np.array(self.of.question.capacities)
        first = np.minimum(capacities, of.largest)
        order = np.argsort(-first, kind="stable")
        states = _States(
            codes=first[order][None, :],
            excess_bytes=np.zeros(1),
            before=np.zeros(1, dtype=np.int64),
            taken=np.zeros((1, 0), dtype=np.int64),
        )
        steps = [states]
        for stage in range(of.stages):
            look()
            dealt = self._dealt(stage, states, limit_bytes + self.tolerance_bytes, most)
            if dealt is None:
                return _Found(excess_bytes=0.0, too_many=True)
            states, looked_at = dealt
            most -= looked_at
            if not len(states.codes):
                return _Found(excess_bytes=limit_bytes)
            steps.append(states)
        best = int(states.excess_bytes.argmin())
        return _Found(
            excess_bytes=float(states.excess_bytes[best]), held=self._held(steps, best, order)
        )

    def _dealt(
        self, stage: int, states: _States, limit_bytes: float, most: int
    ) -> tuple[_States, int] | None:
        """Return the states after one more stage, and how many ways to them were looked at.

        None if those are more than *most*.
        """
        width = int((states.codes > 0).sum(axis=1).max())
        codes = states.codes[:, :width]
        known, which = np.unique(codes, return_inverse=True)
        which = which.reshape(codes.shape)
        costs, after = self._costs(stage, known)
        rest = Rest.of(which, costs, self.of.sheet.cells, most)
        if rest is None:
            return None
        room = limit_bytes + float(self.given_bytes[stage]) - states.excess_bytes
        state = np.flatnonzero(rest.least <= room)
        need = np.full(len(state), self.of.sheet.cells)
        paid = np.zeros(len(state))
        taken = np.zeros((len(state), 0), dtype=np.int64)
        count, looked_at = np.arange(self.counts), rest.looked_at
        for i in range(width):
            looked_at += len(state) * self.counts
            if looked_at > most:
                return None
            left = need[:, None] - count
            total = paid[:, None] + costs[which[state, i]]
            ok = (left >= 0) & (total + rest.after(i, state, left) <= room[state, None])
            if i:  # domains alike take in one order only
                alike = which[state, i] == which[state, i - 1]
                ok &= ~alike[:, None] | (count <= taken[:, -1:])
            row, b = np.nonzero(ok)
            state, need, paid = state[row], left[row, b], total[row, b]
            taken = np.column_stack([taken[row], b])
        excess = states.excess_bytes[state] + paid - float(self.given_bytes[stage])
        if self.joins or any(self.cut_bytes.values()):
            excess = excess + _told(taken, self._cuttings())
            if stage and self.joins:
                before = self._now(codes)[state]
                excess = excess + _told(before * self.counts + taken, self._joined(stage))
            kept = excess <= limit_bytes
            state, taken, excess = state[kept], taken[kept], excess[kept]
        moved = -np.sort(-after[which[state], taken], axis=1)
        one = cheapest_of_alike(moved, excess)
        return _States(
            codes=moved[one], excess_bytes=excess[one], before=state[one], taken=taken[one]
        ), looked_at

    def _costs(
        self, stage: int, codes: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return what taking 0, 1, … cells costs domains above what they had to pay, and after it.

        Returns:
            Arrays [codes, counts]: bytes, infinite where it can not, and the domains' next codes.
        """
        of, patterns, count = self.of, self.priced.patterns, np.arange(self.counts)
        first, now, left = codes // self.seats // self.counts, self._now(codes), codes % self.seats
        full = codes == 0
        begun = np.where(stage == 0, count, first[:, None]) * (of.closing_bytes > 0)
        rest = left[:, None] - count
        costs = of.pays_bytes + of.hop_bytes * np.maximum(count - now[:, None], 0)
        costs = costs + patterns.least_bytes[stage + 1, begun, count, np.maximum(rest, 0)]
        if stage:
            before = patterns.least_bytes[stage, first * (of.closing_bytes > 0), now, left]
        else:
            before = np.array([patterns.least(int(c)) for c in left])
        costs = np.where(rest >= 0, costs - before[:, None], np.inf)
        costs[full] = np.where(count == 0, 0.0, np.inf)
        after = (begun * self.counts + count) * self.seats + rest
        kept = (rest > 0) | ((rest == 0) & (count > 0) & self.joins)
        return costs, np.where(kept, after, 0)

    def _now(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what domains hold of the last stage dealt out."""
        return codes // self.seats % self.counts

    def _cuttings(self) -> dict[Parts, float]:
        """Return what is known that cutting a stage into some parts costs more [bytes]."""
        return {parts: more for parts, more in self.cut_bytes.items() if more > 0}

    def _joined(self, stage: int) -> dict[Parts, float]:
        """Return what is known that a stage and the one before cost more, by pairs of cells.

        The pairs are numbers, of which the largest comes first [bytes].
        """
        shares = shares_of(self.of.stages, stage)
        return {
            tuple(
                sorted((a * self.counts + b for (a, b), n in pairs for _ in range(n)), reverse=True)
            ): more
            for (of_shares, pairs), more in self.joined_bytes.items()
            if of_shares == shares and more > 0
        }

    def _held(self, steps: list[_States], best: int, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the cells of every stage that each domain holds on the way to a state."""
        way = [best]
        for states in reversed(steps[2:]):
            way.append(int(states.before[way[-1]]))
        held = np.zeros((len(order), self.of.stages), dtype=np.int64)
        codes, domains = steps[0].codes[0], order
        for stage, k in enumerate(reversed(way)):
            states = steps[stage + 1]
            taken = np.zeros(len(order), dtype=np.int64)
            taken[: states.taken.shape[1]] = states.taken[k]
            held[domains, stage] = taken
            _, after = self._costs(stage, codes)
            moved = after[np.arange(len(codes)), taken]
            again = np.argsort(-moved, kind="stable")
            codes, domains = moved[again], domains[again]
        return held


def _told(rows: NDArray[np.int64], known: dict[Parts, float]) -> NDArray[np.float64]:
    """Return what is known of each row, whatever the order of its numbers; 0 is none [bytes]."""
    told = np.zeros(len(rows))
    ordered = -np.sort(-rows, axis=1)
    width = ordered.shape[1]
    fitting = [(parts, more) for parts, more in known.items() if len(parts) <= width]
    if not fitting:
        return told
    asked = np.array([(*parts, *(0,) * (width - len(parts))) for parts, _ in fitting])
    of_rows, of_asked = mixed(ordered), mixed(asked)
    for k in np.flatnonzero(np.isin(of_asked, of_rows)).tolist():
        found = np.flatnonzero(of_rows == of_asked[k])
        told[found[(ordered[found] == asked[k]).all(axis=1)]] = fitting[k][1]
    return told
