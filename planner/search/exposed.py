"""The objective ``time``: bytes count by how much of them the step does not hide.

A placement has a step, the step says which share of each family's time is exposed, the shares
weigh the bytes of another placement, and so on, until the shares come back: a *fixed point*. There
need not be one, and the fewest exposed bytes are not always the shortest step; so the placement
with the shortest step of all that were seen is kept, and what the rounds did is told. The least
cut and every baseline are among those seen: no placement by time is slower than they are. How much
shorter another could be at most, ``least_placed.py`` says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from planner.errors import PlannerError
from planner.place.answer import Placement, Proof
from planner.place.reseat import reseated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.steptime.step import Step
    from planner.traffic import Family

    Seats = tuple[int, ...]

LEAST_SHARE = 1e-3  # what a hidden family counts, so that of equal placements fewer bytes cross
_ROUNDS = 8
_SAME = 1e-9  # relative; the same shares, weights or bytes but for rounding
_STEP_DIGIT = {"edp": "dp"}  # the step times experts' gradients with the dense ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One placement that was timed.

    Args:
        origin: ``total`` for the least cut, a baseline's name, or ``exposed`` for the fewest bytes
            weighted by the shares of an earlier round.
        shares: what each digit's bytes counted when it was placed [share].
        step_s: its step [s].
        cut_bytes: what it crosses, unweighted [bytes].
    """

    origin: str
    shares: Mapping[str, float]
    step_s: float
    cut_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposed:
    """The placement with the shortest step that was seen, and how it was found.

    Args:
        placement: of objective ``time``; its gap is that of the exposed bytes, at its own shares.
        rounds: what was timed, in order.
        kept: index of the kept placement in *rounds*.
        fixed_point: placed by the shares that its own step exposes, it comes back with the same
            shares.
        shares: of its own step, by digit [share].
        seatings: different placements among the rounds [1].
        least_s: no placement's step is shorter; 0 if nothing is known [s].
    """

    placement: Placement
    rounds: tuple[Round, ...]
    kept: int
    fixed_point: bool
    shares: Mapping[str, float]
    seatings: int
    least_s: float = 0.0

    @property
    def step_gap(self) -> float:
        """What part of the kept step another placement could save at most [1]."""
        step_s = self.rounds[self.kept].step_s
        return max(0.0, 1.0 - self.least_s / step_s) if step_s > 0 else 0.0


def exposed_shares(step: Step, digits: Sequence[str]) -> dict[str, float]:
    """Return the share of each digit's communication that lengthens *step* [share].

    At least ``LEAST_SHARE``; 1 where the digit's communication takes no time at all, since no time
    says nothing of what more of it would do.
    """
    shares = {}
    for digit in digits:
        name = _STEP_DIGIT.get(digit, digit)
        took_s = float(step.communication_s.get(name, 0.0))
        exposed_s = float(step.exposed_s.get(name, 0.0))
        shares[digit] = min(1.0, max(LEAST_SHARE, exposed_s / took_s)) if took_s > 0 else 1.0
    return shares


def place_exposed(
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    *,
    seat: Callable[[Sequence[Family]], Placement],
    step_of: Callable[[Sequence[int]], Step],
    rounds: int = _ROUNDS,
    least_s: float = 0.0,
    ends_s: float = inf,
) -> Exposed:
    """Return the placement with the shortest step among those that exposed bytes lead to.

    Args:
        layout: the parallel degrees.
        families: the collectives of one step.
        fabric: the cluster.
        seat: places for the least total of the given families, e.g. ``planner.place.place`` with
            the layout, the cluster and the options bound.
        step_of: the step when rank r is on GPU ``rank_to_gpu[r]``.
        rounds: placements that are made at most [1].
        least_s: what every placement's step takes at least, of ``least_placed_s``; 0 if that is
            not known [s].
        ends_s: place no more when ``time.monotonic()`` is past this [s].

    Raises:
        PlannerError: a step is shorter than *least_s*: a fault of ours, not a proof.
    """
    walk = _Walk(families, seat, step_of, rounds, ends_s)
    total = seat(families)
    walk.see(total.rank_to_gpu, "total", dict.fromkeys(walk.digits, 1.0), total.objective_bytes)
    if total.interrupted:
        walk.stop()
    walk.follow(total.rank_to_gpu)
    for rival in total.baselines:
        walk.see(rival.rank_to_gpu, rival.name, {}, rival.cut_bytes)
    if walk.best() != total.rank_to_gpu:
        walk.follow(walk.best())
    found = replace(walk.told(total, layout, fabric), least_s=least_s)
    step_s = found.rounds[found.kept].step_s
    if step_s < least_s:
        raise PlannerError(
            f"the bound of {least_s:.6g} s is above a placement's step of {step_s:.6g} s: this is "
            "a fault of the planner, and the placement is withheld"
        )
    return found


class _Walk:
    """Placements seen so far, their steps, and the answers to shares already asked."""

    def __init__(
        self,
        families: Sequence[Family],
        seat: Callable[[Sequence[Family]], Placement],
        step_of: Callable[[Sequence[int]], Step],
        rounds: int,
        ends_s: float,
    ) -> None:
        self.families, self.seat, self.step_of = families, seat, step_of
        self.left, self.ends_s = rounds, ends_s
        self.digits = tuple(sorted({family.digit for family in families}))
        self.steps: dict[Seats, Step] = {}
        self.rounds: list[Round] = []
        self.seats: list[Seats] = []
        self.answers: dict[tuple[float, ...], Placement] = {}
        self.stopped = False

    @property
    def over(self) -> bool:
        """Whether no more may be placed."""
        return self.stopped or monotonic() > self.ends_s

    def stop(self) -> None:
        """Place no more: the user ended the search."""
        self.left, self.stopped = 0, True

    def see(self, seats: Seats, origin: str, shares: Mapping[str, float], cut_bytes: float) -> None:
        """Time a placement and note it."""
        if seats not in self.steps:
            self.steps[seats] = self.step_of(seats)
        self.seats.append(seats)
        self.rounds.append(
            Round(
                origin=origin,
                shares=shares,
                step_s=float(self.steps[seats].total_s),
                cut_bytes=cut_bytes,
            )
        )

    def best(self) -> Seats:
        """Return the seats with the shortest step, the first of them."""
        return self.seats[self.kept()]

    def kept(self) -> int:
        """Return the round with the shortest step, the first of them."""
        return min(range(len(self.rounds)), key=lambda i: self.rounds[i].step_s)

    def shares(self, seats: Seats) -> dict[str, float]:
        """Return what the step of *seats* exposes."""
        return exposed_shares(self.steps[seats], self.digits)

    def follow(self, seats: Seats) -> None:
        """Place by the shares of *seats*, then by those of that placement, until they come back.

        Where shares come back that were asked before, the rounds run in a circle; then what lies
        half way between the shares last asked and those that came back is asked.
        """
        asked: dict[str, float] | None = None
        while self.left > 0 and not self.over:
            back = self.shares(seats)
            if asked is not None and _key(asked) == _key(back):
                return
            if _key(back) in self.answers:
                if asked is None:
                    return
                back = {digit: (asked[digit] + back[digit]) / 2 for digit in self.digits}
                if _key(back) in self.answers:
                    return
            asked = back
            seats = self._placed(asked).rank_to_gpu

    def _placed(self, shares: dict[str, float]) -> Placement:
        """Return the placement with the fewest bytes at *shares*, timed."""
        self.left -= 1
        placed = self.seat(
            [
                replace(family, times_per_step=family.times_per_step * shares[family.digit])
                for family in self.families
            ]
        )
        if placed.interrupted:
            self.stop()
        self.answers[_key(shares)] = placed
        cut = sum(placed.by_family[family.name] / shares[family.digit] for family in self.families)
        self.see(placed.rank_to_gpu, "exposed", shares, cut)
        return placed

    def told(self, total: Placement, layout: Layout, fabric: Fabric) -> Exposed:
        """Return the kept placement with its proof at its own shares."""
        kept = self.kept()
        seats, origin = self.seats[kept], self.rounds[kept].origin
        shares = self.shares(seats)
        if _key(shares) not in self.answers and not self.over:
            self.left += 1
            self._placed(shares)
            kept = self.kept()
            seats, origin = self.seats[kept], self.rounds[kept].origin
        method = {"total": total.method, "exposed": "the fewest bytes by what the step exposes"}
        found = reseated(
            total,
            layout,
            self.families,
            fabric,
            seats,
            method.get(origin, f"the {origin} baseline"),
        )
        shares = self.shares(seats)
        answer = self.answers.get(_key(shares))
        exposed_bytes = sum(
            found.by_family[family.name] * shares[family.digit] for family in self.families
        )
        bound = 0.0 if answer is None else min(answer.lower_bound_bytes, exposed_bytes)
        proved = answer is not None and exposed_bytes - bound <= _SAME * exposed_bytes
        back = answer is not None and _key(self.shares(answer.rank_to_gpu)) == _key(shares)
        placement = replace(
            found,
            objective="time",
            objective_s=self.rounds[kept].step_s,
            interrupted=self.stopped,
            exposed_bytes=exposed_bytes,
            exposed_bound_bytes=exposed_bytes if proved else bound,
            proof=answer.proof if proved and answer is not None else Proof.INCUMBENT,
        )
        return Exposed(
            placement=placement,
            rounds=tuple(self.rounds),
            kept=kept,
            fixed_point=back,
            shares=shares,
            seatings=len(self.steps),
        )


def _key(shares: Mapping[str, float]) -> tuple[float, ...]:
    """Return *shares* to nine digits, so that rounding makes no difference."""
    return tuple(float(f"{share:.9g}") for _, share in sorted(shares.items()))
