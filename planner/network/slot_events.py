"""The events behind ``completion.py``, in whole ticks.

With gap g = max(issue, wire) and all times in ticks, the recurrences reduce to

    s_k = max(s_{k-1} + g, r_{k-slots}),   d_k = s_k + done

and, polling every P with at most B completions each, the poll j_k that handles operation k is

    j_k = max(ceil(d_k / P), j_{k-1}, j_{k-B} + 1)

This is linear in max-plus algebra, so the long-run polls per operation are the largest cycle mean

    max(1 / B,  g / P,  max_i ceil((i g + done) / P) / (slots + i))

and after a finite start the run repeats itself: long runs are cut short by jumping whole periods.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from planner.errors import InputError

MOST_EVENTS = 1_000_000
_MOST_CYCLES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """A slot case in whole ticks; *poll* 0 stands for handling by interrupt.

    Args:
        issue: between two issues. wire: one payload on the link. done: on the wire until done.
        poll: between two polls. handling: one interrupt.
        slots, batch: counts [1].
    """

    issue: int
    wire: int
    done: int
    poll: int
    handling: int
    slots: int
    batch: int

    @property
    def gap(self) -> int:
        """Return the least time between two operations on the wire [ticks]."""
        return max(self.issue, self.wire)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerOperation:
    """Long-run ticks one operation costs each of the four resources.

    Args:
        issue, slots, completion, link: ticks per operation if only this one bound.
    """

    issue: Fraction
    slots: Fraction
    completion: Fraction
    link: Fraction

    @property
    def slowest(self) -> tuple[Fraction, str]:
        """Return the largest of the four and its name; link first, then issue, on a tie."""
        names = ("link", "issue", "completion", "slots")
        return max(((getattr(self, name), name) for name in names), key=lambda pair: pair[0])


def ticks_per_operation(ticks: Ticks) -> PerOperation:
    """Return what each resource costs an operation in the long run."""
    if ticks.poll:
        completion = Fraction(ticks.poll, ticks.batch)
        slots = Fraction(*_slot_cycle(ticks)) * ticks.poll
    else:
        completion = Fraction(ticks.handling)
        slots = Fraction(ticks.done + ticks.handling, ticks.slots)
    return PerOperation(
        issue=Fraction(ticks.issue),
        slots=slots,
        completion=completion,
        link=Fraction(ticks.wire),
    )


def _slot_cycle(ticks: Ticks) -> tuple[int, int]:
    """Return the polls and operations of the slowest cycle through the slots.

    max_i ceil((i g + done) / P) / (slots + i). Only the first i of each value v of the ceiling
    can be largest: i = ((v - 1) P - done) // g + 1. Its term exceeds g / P only where
    ((v - 1) P - done) mod g > g - D, D = P + done - g slots, and stays below g v / (v P - D),
    which falls with v: the search ends once that bound is met. After 100,000 values the best term
    seen is returned, too small by at most one part in 100,000 of (P + done) / P.
    """
    poll, gap, done, slots = ticks.poll, ticks.gap, ticks.done, ticks.slots
    polls, operations = -(-done // poll), slots
    first = polls
    surplus = poll + done - gap * slots
    step = gcd(poll, gap)
    if gap - step + -done % step <= gap - surplus:
        return polls, operations  # no later term exceeds g / P
    for value in range(first + 1, first + _MOST_CYCLES):
        if gap * value * operations <= polls * (value * poll - surplus):
            break
        length = slots + ((value - 1) * poll - done) // gap + 1
        if value * operations > polls * length:
            polls, operations = value, length
    return polls, operations


def ends(ticks: Ticks, operations: int) -> tuple[int, int]:
    """Return when the last transfer is done and when the last slot is free [ticks].

    Raises:
        InputError: the run is too long to follow and does not repeat itself in time.
    """
    if not ticks.poll:
        return _ends_interrupted(ticks, operations)
    if operations <= ticks.slots:
        return _ends_without_reuse(ticks, operations)
    return _ends_polled(ticks, operations)


def _ends_without_reuse(ticks: Ticks, operations: int) -> tuple[int, int]:
    """Return the two ends when no slot is used twice: s_k = k g.

    j = max_a ceil((k - a B) g + done) / P) + a is largest at one end of the range of a.
    """
    last = operations - 1
    done = last * ticks.gap + ticks.done
    whole = last // ticks.batch
    early = (last - whole * ticks.batch) * ticks.gap + ticks.done
    return done, max(-(-done // ticks.poll), -(-early // ticks.poll) + whole) * ticks.poll


def _ends_interrupted(ticks: Ticks, operations: int) -> tuple[int, int]:
    """Return the two ends when each completion is handled as it comes, in closed form.

    s_k = max(s_{k-1} + g, r_{k-slots}), r_k = max(s_k + done, r_{k-1}) + h. A path through these
    that waits q times for a slot weighs (q + 1) (done + h) + (k - q slots) max(g, h) up to r_k and
    one done + h less up to s_k: linear in q, so largest at the least or at the largest q.
    """
    last, cycle = operations - 1, ticks.done + ticks.handling
    pace, most = max(ticks.gap, ticks.handling), (operations - 1) // ticks.slots

    def weight(waits: int) -> int:
        return waits * cycle + (last - waits * ticks.slots) * pace

    start = last * ticks.gap
    if most:
        start = max(start, weight(1), weight(most))
    return start + ticks.done, max(weight(0), weight(most)) + cycle


def _ends_polled(ticks: Ticks, operations: int) -> tuple[int, int]:
    """Return the two ends by following the run, jumping whole periods once it repeats itself.

    The run repeats after as many operations as the slowest cycle has, once that many polls later
    the same start and the same polls of all slots have been seen.
    """
    poll, gap, slots = ticks.poll, ticks.gap, ticks.slots
    batch = min(ticks.batch, slots)  # no more than all slots can wait for a poll
    length, polls = _period(ticks, batch)
    starts: list[int] = []
    handled: list[int] = []
    alike, skipped_polls = 0, 0
    left = operations
    while len(starts) < left:
        k = len(starts)
        if k >= MOST_EVENTS:
            raise InputError(
                f"operations={operations} with slots={slots}: the run does not repeat itself "
                f"within {MOST_EVENTS} operations: expected fewer operations, or fewer slots"
            )
        start = starts[-1] + gap if k else 0
        if k >= slots:
            start = max(start, handled[k - slots] * poll)
        at = -(-(start + ticks.done) // poll)
        if k:
            at = max(at, handled[-1])
        if k >= batch:
            at = max(at, handled[k - batch] + 1)
        starts.append(start)
        handled.append(at)
        if skipped_polls or k < length:
            continue
        same = at - handled[k - length] == polls and start - starts[k - length] == polls * poll
        alike = alike + 1 if same else 0
        if alike >= slots:
            periods = (left - 1 - k) // length
            left -= periods * length
            skipped_polls = periods * polls
            if not periods:
                alike = -left
    ahead = skipped_polls * poll
    return starts[-1] + ticks.done + ahead, handled[-1] * poll + ahead


def _period(ticks: Ticks, batch: int) -> tuple[int, int]:
    """Return operations and polls of the cycle that sets the long-run rate."""
    step = gcd(ticks.poll, ticks.gap)
    cycles = (
        (batch, 1),
        (ticks.poll // step, ticks.gap // step),
        _slot_cycle(ticks)[::-1],
    )
    return max(cycles, key=lambda cycle: Fraction(cycle[1], cycle[0]))
