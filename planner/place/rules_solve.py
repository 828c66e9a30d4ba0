"""A question under hard rules: the best seating that keeps them, and what they cost.

Boxes kept together are an exact coarsening, so the bound and the solver of the free question prove
the coarse one. Named domains and counted groups are no coarsening: ``rules_fill.py`` finds seatings
that keep them, and a small model proves what is left. Every bound of the free question stays valid.

A seating that takes no search comes first, so that there is one whenever the time is up or the user
presses Ctrl-C.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import SolverError
from planner.place.answer import Answer, Proof, RulePrice
from planner.place.clock import TimeUp, end_s, unhurried
from planner.place.question import Kind, Question, cut_bytes
from planner.place.rules_bound import Counted, boxes_of
from planner.place.rules_close import EXACT_SEATS, close, said
from planner.place.rules_counted import priced
from planner.place.rules_fill import (
    at_once,
    by_parts,
    filled_by_parts,
    keeps,
    narrowed,
    open_domains_of,
    renamings,
    solved_on,
)
from planner.place.rules_mend import mended
from planner.place.rules_slab_bound import slab_bound
from planner.place.rules_slabs import seated_by_slab
from planner.place.rules_work import MET, RuledWork, refined, started

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.rules_bound import BoundRules

_PLAIN_SHARE = 0.3  # of the time limit, for the boxes alone where there are names and counts
_PRICED_SHARE = 0.5  # of what is left then, for prices on counted groups
_FILLED_SHARE = 0.3  # of what is left then, for domains filled with parts of counted groups
_PARTS_SHARE = 0.5  # of what is left then, for groups in parts
_AT_ONCE_S = 1.0  # seconds after Ctrl-C for a first seating, where none is in hand


def price_of(rules: BoundRules, ruled: Answer, free: Answer) -> RulePrice:
    """Return the price of *rules*: R - F, with R and F each between its bound and its cut.

    A seating that keeps the rules is a free one as well, so the free cut is at most the ruled.
    """
    free_bytes = min(free.objective_bytes, ruled.objective_bytes)
    closed = free.proof is not Proof.INCUMBENT and ruled.proof is not Proof.INCUMBENT
    most = max(0.0, ruled.objective_bytes - min(free.lower_bound_bytes, free_bytes))
    least = max(0.0, ruled.lower_bound_bytes - free_bytes)
    if closed:
        least = most = ruled.objective_bytes - free_bytes
    return RulePrice(
        rules=tuple(rule.text for rule in rules.rules),
        free_bytes=free_bytes,
        free_bound_bytes=min(free.lower_bound_bytes, free_bytes),
        free_proof=free.proof,
        least_bytes=least,
        most_bytes=most,
    )


def solve_ruled(
    question: Question,
    rules: BoundRules,
    free: Answer,
    *,
    time_limit_s: float = 20.0,
    seed: int = 0,
) -> Answer:
    """Return the best seating of *question* that keeps *rules*, its bound and its proof.

    Ctrl-C or the end of the whole run ends the search: the answer is the best so far, with its gap.
    So is that of a *free* one that was interrupted.

    Args:
        question: the grid of ranks and the placed tier's domains.
        rules: tied to them by ``bound_rules``.
        free: the answer without rules.
        time_limit_s: seconds for the search [s].
        seed: of everything random.

    Raises:
        InfeasibleError: proved that no seating keeps the rules.
        SolverError: none was found, and none proved impossible.
    """
    home = np.array(free.home)
    if keeps(question, rules, home) and (
        cut_bytes(question, home) <= free.objective_bytes * (1 + MET)
    ):
        return free
    if _misprices(question, rules.axes):
        unboxed = _unboxed(question, rules)
        return solve_ruled(question, unboxed, free, time_limit_s=time_limit_s, seed=seed)
    work = started(
        question, rules, bound_bytes=free.lower_bound_bytes,
        ends_s=min(monotonic() + time_limit_s, end_s()), seed=seed,
    )  # fmt: skip
    if not free.interrupted:
        try:
            return _searched(work, free)
        except TimeUp:
            return _so_far(work, free, interrupted=False)
        except KeyboardInterrupt:
            pass
    return _so_far(work, free, interrupted=True)


def solve_ruled_within(
    question: Question, rules: BoundRules, free: Answer, *, time_limit_s: float, seed: int
) -> Answer:
    """Return ``solve_ruled`` of a question asked within another.

    Ctrl-C goes on to the question that asks: its search ends, not only this one.
    """
    answer = solve_ruled(question, rules, free, time_limit_s=time_limit_s, seed=seed)
    if answer.interrupted:
        raise KeyboardInterrupt
    return answer


def _so_far(work: RuledWork, free: Answer, *, interrupted: bool) -> Answer:
    """Return what a search that was cut short has in hand, or can have at once.

    Raises:
        KeyboardInterrupt: that is nothing, and the user ended it.
        SolverError: that is nothing, and the time was up.
    """
    if work.home is None:
        work.ends_s = monotonic() + _AT_ONCE_S
        with unhurried():
            _offer_at_once(work, free)
    if not interrupted:
        return _found(work)
    if work.home is None:
        raise KeyboardInterrupt
    return work.answer(interrupted=True)


def _misprices(question: Question, axes: Sequence[int]) -> bool:
    """Return whether boxes of whole *axes* price a chain too low.

    One along several axes, innermost first, whose inner steps the boxes leave apart: each of the
    outer steps that they hold is then taken once more for every box.
    """
    for charge in question.charges:
        live = [i for i in charge.axes if question.sizes[i] > 1]
        inside = [i for i in live if i in axes]
        if charge.kind is Kind.CHAIN and inside != live[: len(inside)]:
            return True
    return False


def _unboxed(question: Question, rules: BoundRules) -> BoundRules:
    """Return *rules* on ranks: a box is a group that touches one domain."""
    volume = prod(question.sizes[i] for i in rules.axes)
    allowed = rules.allowed
    if allowed is not None:
        members = boxes_of(question.sizes, rules.axes)
        spread = np.empty((question.cells, allowed.shape[1]), bool)
        spread[members] = allowed[:, None, :]
        allowed = spread
    said = " and ".join(rule.text for rule in rules.rules)
    return replace(
        rules,
        axes=(),
        capacities=tuple(held * volume for held in rules.capacities),
        allowed=allowed,
        counted=(*rules.counted, Counted(axes=rules.axes, most=1, rule=said)),
    )


def _names(rules: BoundRules, open_domains: NDArray[np.int64]) -> bool:
    """Return whether some box may not sit in some open domain."""
    return rules.allowed is not None and not bool(rules.allowed[:, open_domains].all())


def _searched(work: RuledWork, free: Answer) -> Answer:
    """Return the best seating that the whole search finds."""
    open_domains = open_domains_of(work.rules)
    simple = not _names(work.rules, open_domains) and not work.rules.counted
    if simple:
        part = narrowed(work.coarse, open_domains)
        boxes = solved_on(part, open_domains, work.left_s, work.seed)
        bound = max(boxes.lower_bound_bytes, free.lower_bound_bytes)
        return refined(work.question, work.tile, boxes, bound)
    steps = (
        _offer_plain, _offer_slabs, _offer_filled, _mend, _bound_slabs, _offer_priced, _offer_parts,
        _mend,
    )  # fmt: skip
    if not _offer_at_once(work, free) and not any(step(work) for step in steps):
        close(work)
    return _found(work)


def _found(work: RuledWork) -> Answer:
    """Return the best seating.

    Raises:
        SolverError: there is none.
    """
    if work.home is None:
        raise SolverError(
            f"no seating was found that keeps {said(work.rules)}, and none is proved impossible: "
            "a larger --time-limit, or fewer rules"
        )
    return work.answer()


def _offer_renamed(work: RuledWork, home: NDArray[np.int64], method: str) -> bool:
    """Offer a seating of boxes as it is, and with its domains renamed; return ``work.over``."""
    return any(
        work.offer(one, how) for one, how in renamings(work.coarse, work.rules, home, method)
    )


def _offer_at_once(work: RuledWork, free: Answer) -> bool:
    """Offer what takes no search: the free seating's boxes, and the domains filled in order."""
    homes = np.array(free.home)[boxes_of(work.question.sizes, work.rules.axes)]
    whole = bool((homes == homes[:, :1]).all())
    if whole and _offer_renamed(work, homes[:, 0], free.method):
        return True
    return any(
        _offer_renamed(work, home, "domains filled one after the other")
        for home in at_once(work.coarse, work.rules)
    )


def _offer_filled(work: RuledWork) -> bool:
    """Fill the domains with parts of counted groups, the largest parts first."""
    ends_s = monotonic() + work.left_s * _FILLED_SHARE
    for home in filled_by_parts(work.coarse, work.rules):
        if work.offer(home, "parts of groups, domains filled one after the other"):
            return True
        if monotonic() > ends_s:
            break
    return work.over


def _offer_plain(work: RuledWork) -> bool:
    """Solve the boxes alone, without regard to names and counts: a bound, and maybe a seating."""
    open_domains = open_domains_of(work.rules)
    if not work.rules.axes and len(open_domains) == len(work.coarse.capacities):
        return work.over  # that is the free question
    part = narrowed(work.coarse, open_domains)
    plain = solved_on(part, open_domains, work.left_s * _PLAIN_SHARE, work.seed)
    work.raise_bound(plain.lower_bound_bytes)
    _offer_renamed(work, np.array(plain.home), plain.method)
    if plain.interrupted:
        raise KeyboardInterrupt
    return work.over


def _offer_slabs(work: RuledWork) -> bool:
    return any(
        work.offer(home, "one part of the ranks after the other")
        for home in seated_by_slab(work.coarse, work.rules)
    )


def _bound_slabs(work: RuledWork) -> bool:
    return work.raise_bound(slab_bound(work.coarse, work.rules, work.left_s * _PLAIN_SHARE))


def _offer_priced(work: RuledWork) -> bool:
    """Take up the bounds and the seatings of prices on counted groups."""
    open_domains = open_domains_of(work.rules)
    part = narrowed(work.coarse, open_domains)
    for found in priced(part, work.rules, monotonic() + work.left_s * _PRICED_SHARE):
        work.raise_bound(found.lower_bound_bytes)
        method = "the best at a price on the groups' domains"
        if _offer_renamed(work, open_domains[found.home], method):
            return True
    return work.over


def _offer_parts(work: RuledWork) -> bool:
    """Seat counted groups in as few parts as they may have, each part a box of its own."""
    ends_s = monotonic() + work.left_s * _PARTS_SHARE
    return any(
        work.offer(home, method)
        for home, method in by_parts(work.coarse, work.rules, ends_s, work.seed)
    )


def _mend(work: RuledWork) -> bool:
    """Better the best by exchanges; the smallest grids do without, the model is as quick."""
    seats = work.coarse.cells * len(work.coarse.capacities)
    if work.home is not None and not work.exchanged and seats > EXACT_SEATS:
        better = mended(
            work.question, work.coarse, work.rules, work.tile, work.home, work.seed, work.ends_s
        )
        work.offer(better, f"{work.method}, then exchanges")
        work.exchanged = True
    return work.over
