"""Completion slots: an operation holds its slot until software has handled its completion.

The exact model, operation by operation in first-in first-out order:

- issue      a_k = max(a_{k-1} + issue interval, r_{k-slots})
- on wire    s_k = max(a_k, s_{k-1} + payload / line)
- done       d_k = s_k + max(service, payload / line)
- handled    r_k = the first poll (every poll interval, from one interval on) at or after d_k with
             fewer than *batch* completions before it; by interrupt max(d_k, r_{k-1}) + handling

Times are compared as whole ticks of a common fraction of all intervals, so that a completion
exactly at a poll counts, in floats as on paper.

*More slots move the transfers earlier, not the release*: the sustained rate is set by the
completions handled per second, or by the payload. That is where back-pressure comes from.

Source: E-S23-071.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from planner.network.premises import Premise
from planner.network.ranges import below_zero, not_above_zero, not_counts, refuse
from planner.network.slot_events import Ticks, ends, ticks_per_operation

SOURCE = "derived in the text of planner.network.completion"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotCase:
    """Operations that pass through a bounded number of request slots.

    Args:
        operations: operations to be done [1].
        payload_bytes: data of one operation [bytes].
        issue_interval_s: least time between two issues, 0 for none [s].
        service_time_s: from being on the wire until the transfer is done [s].
        slots: operations that may be issued and not yet released [1].
        poll_interval_s: software looks for completions this often, first after one interval [s].
        batch: completions handled at one poll at most [1].
        line_bytes_per_s: what the link carries [bytes/s].
        by_interrupt: completions are handled as they come, not at polls; *poll_interval_s* and
            *batch* are then unused.
        handling_s: time software takes for one interrupt [s].
    """

    operations: int
    payload_bytes: float
    issue_interval_s: float
    service_time_s: float
    slots: int
    poll_interval_s: float
    batch: int
    line_bytes_per_s: float
    by_interrupt: bool = False
    handling_s: float = 0.0

    def __post_init__(self) -> None:
        refuse(
            not_counts(operations=self.operations, slots=self.slots, batch=self.batch),
            not_above_zero(
                payload_bytes=self.payload_bytes,
                poll_interval_s=self.poll_interval_s,
                line_bytes_per_s=self.line_bytes_per_s,
            ),
            below_zero(
                issue_interval_s=self.issue_interval_s,
                service_time_s=self.service_time_s,
                handling_s=self.handling_s,
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRun:
    """What happens to the operations, and what keeps them from going faster.

    Args:
        transfer_end_s: the last transfer is done [s].
        release_end_s: the last slot is free again [s].
        unlimited_transfer_end_s: the last transfer with a slot for every operation [s].
        sustained_operations_per_s: long-run rate, exact [1/s].
        sustained_bytes_per_s: the same in data [bytes/s].
        line_share: of the line rate, 0 to 1.
        binding: ``issue``, ``slots``, ``completion`` or ``link``: what sets the sustained rate.
        required_completions_per_s: completions to be handled for line rate [1/s].
        required_interval_s: one completion per this time for line rate [s].
        required_issue_interval_s: the issue interval that line rate needs at most [s].
        required_batch: completions per poll for line rate; None by interrupt [1].
        required_slots: slots that suffice for line rate once the rest is met [1].
        line_rate_payload_bytes: the payload with which the present completion rate would fill
            the line [bytes].
        premises: what this takes for granted.
    """

    transfer_end_s: float
    release_end_s: float
    unlimited_transfer_end_s: float
    sustained_operations_per_s: float
    sustained_bytes_per_s: float
    line_share: float
    binding: str
    required_completions_per_s: float
    required_interval_s: float
    required_issue_interval_s: float
    required_batch: int | None
    required_slots: int
    line_rate_payload_bytes: float | None
    premises: tuple[Premise, ...]


def _exact(value: float) -> Fraction:
    """Return the decimal number a float stands for: 7e-6, not 6.999999999999999e-06."""
    return Fraction(f"{value:.15g}")


def as_ticks(case: SlotCase) -> tuple[Ticks, Fraction]:
    """Return the case in whole ticks, and the length of a tick [s]."""
    wire = _exact(case.payload_bytes) / _exact(case.line_bytes_per_s)
    times = (
        _exact(case.issue_interval_s),
        wire,
        max(_exact(case.service_time_s), wire),
        _exact(case.poll_interval_s),
        _exact(case.handling_s),
    )
    per_s = lcm(*(time.denominator for time in times))
    issue, on_wire, done, poll, handling = (int(time * per_s) for time in times)
    ticks = Ticks(
        issue=issue,
        wire=on_wire,
        done=done,
        poll=0 if case.by_interrupt else poll,
        handling=handling,
        slots=case.slots,
        batch=case.batch,
    )
    return ticks, Fraction(1, per_s)


def completion_slots(case: SlotCase) -> SlotRun:
    """Return transfer end, release end and sustained rate of *case*, exact to the event.

    >>> from planner.units import GB, KIB, US
    >>> chapter = SlotCase(operations=16, payload_bytes=8 * KIB, issue_interval_s=1 * US,
    ...     service_time_s=5 * US, slots=16, poll_interval_s=20 * US, batch=4,
    ...     line_bytes_per_s=50 * GB)
    >>> run = completion_slots(chapter)
    >>> run.transfer_end_s, run.release_end_s, run.binding, run.sustained_bytes_per_s / GB
    (2e-05, 8e-05, 'completion', 1.6384)
    """
    ticks, tick_s = as_ticks(case)
    transfer_end, release_end = ends(ticks, case.operations)
    unlimited_end = max(ticks.issue, ticks.wire) * (case.operations - 1) + ticks.done
    per_operation = ticks_per_operation(ticks)
    slowest, binding = per_operation.slowest
    sustained = 1 / (slowest * tick_s)
    payload, line = _exact(case.payload_bytes), _exact(case.line_bytes_per_s)
    wire_s = payload / line
    wait_s = _exact(case.handling_s) if case.by_interrupt else _exact(case.poll_interval_s)
    needs = (tick_s * ticks.done + wait_s) / wire_s
    completion_s = per_operation.completion * tick_s
    return SlotRun(
        transfer_end_s=float(transfer_end * tick_s),
        release_end_s=float(release_end * tick_s),
        unlimited_transfer_end_s=float(unlimited_end * tick_s),
        sustained_operations_per_s=float(sustained),
        sustained_bytes_per_s=float(sustained * payload),
        line_share=float(sustained * payload / line),
        binding=binding,
        required_completions_per_s=float(line / payload),
        required_interval_s=float(wire_s),
        required_issue_interval_s=float(wire_s),
        required_batch=None if case.by_interrupt else -(-wait_s // wire_s),
        required_slots=-(-needs // 1),
        line_rate_payload_bytes=float(line * completion_s) if completion_s else None,
        premises=_premises(case, transfer_end == unlimited_end),
    )


def _premises(case: SlotCase, slots_suffice: bool) -> tuple[Premise, ...]:
    return (
        Premise(
            states="Completions are handled in batches at fixed polls",
            holds=not case.by_interrupt,
            otherwise="by interrupt a slot is free as soon as its completion has been handled: "
            "faster, at the price of one interrupt each",
        ),
        Premise(
            states="Operations complete in the order in which they were issued",
            holds=None,
            otherwise="a late completion holds back the slots of those behind it",
        ),
        Premise(
            states="There are slots enough that none ever delays a transfer of this run",
            holds=slots_suffice,
            otherwise="the transfers end later than issue and service alone would let them",
        ),
        Premise(
            states="The link alone serialises payloads: headers and other traffic are not counted",
            holds=None,
            otherwise="give the line rate that is left for payload",
        ),
    )
