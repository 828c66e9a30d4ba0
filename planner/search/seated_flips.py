"""What a comparison with seats finds on both sides of a flip.

Flips are of layouts in rank order; seats change a step by a little, and at a flip little decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf

from planner.errors import InfeasibleError, LayoutError, SpecError
from planner.search.best_steps import BEHIND
from planner.search.compare import Candidate, Entry, own_best
from planner.search.flips import Flip, spelled_degrees, standing

SEATED = {"seq", "experts"}
"""Properties of the job: seats are found on the cluster as it is. Of the network, the cluster on
file would have to be rebuilt for each of its values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatedFlip:
    """What holds on both sides of a flip with every rank in a seat.

    Args:
        flip: as found in rank order.
        before, after: what holds on the near side and beyond, in the flip's words.
    """

    flip: Flip
    before: str
    after: str

    @property
    def holds(self) -> bool:
        """Whether seats change nothing about the flip."""
        return (self.before, self.after) == (self.flip.before, self.flip.after)


def seated_flips(
    flips: Sequence[Flip],
    candidates: Sequence[Candidate],
    winner: str,
    *,
    seed: int = 0,
    time_limit_s: float = 1.0,
) -> list[SeatedFlip]:
    """Return what a comparison finds on both sides of each flip that seats can be found for.

    Args:
        flips: those of ``SEATED`` are looked at.
        candidates: the clusters.
        winner: of today, by name.
        seed: of everything random in a seating.
        time_limit_s: seconds a solver may take for one seating [s].
    """

    @cache
    def compared(name: str, factor: float) -> tuple[Entry, ...]:
        return _compared(candidates, name, factor, seed, time_limit_s)

    return [
        SeatedFlip(flip=one, before=_said(compared(one.name, one.held_factor), one, winner),
                   after=_said(compared(one.name, one.factor), one, winner))
        for one in flips if one.name in SEATED
    ]  # fmt: skip


def _compared(
    candidates: Sequence[Candidate], name: str, factor: float, seed: int, time_limit_s: float
) -> tuple[Entry, ...]:
    """Return what of the changed job fits, each with its best layout seated, fastest first."""
    found: list[Entry] = []
    for one in candidates:
        try:
            changed = _changed(one, name, factor)
            found += own_best([changed], seed=seed, time_limit_s=time_limit_s)
        except (InfeasibleError, LayoutError, SpecError):  # this one alone cannot run it
            continue
    return tuple(sorted(found, key=lambda entry: entry.finalist.token_s))


def _changed(one: Candidate, name: str, factor: float) -> Candidate:
    if name == "seq":
        return replace(one, fixed={**one.fixed, "seq": round(one.fixed["seq"] * factor)})
    return replace(one, model=replace(one.model, experts=round(one.model.experts * factor)))


def _said(entries: Sequence[Entry], flip: Flip, winner: str) -> str:
    """Return what *entries*, the fastest first, say of what *flip* is about."""
    own = next((one for one in entries if one.candidate.name == winner), None)
    if flip.kind == "layout":
        return "nothing fits" if own is None else spelled_degrees(own.finalist.layout)
    if not entries:
        return "nothing fits"
    first = entries[0]
    if flip.kind == "winner":
        limit_s = first.finalist.token_s * (1.0 + BEHIND)
        still = own is not None and own.finalist.token_s <= limit_s
        return winner if still else first.candidate.name
    second_s = entries[1].finalist.token_s if len(entries) > 1 else inf
    spread = first.finalist.step.spread
    return standing(first.candidate.name, first.finalist.token_s, second_s, spread)
