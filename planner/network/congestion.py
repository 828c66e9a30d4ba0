"""One congested queue: how long it lasts, what is lost before the source hears, when it is empty.

dQ/dt = arrival - service while the queue is neither empty nor full. *Control must do two things:
stop the growth (arrival = service) and leave room to drain (arrival < service).* At equality the
queue stands still at whatever it holds, and the next burst finds no room.

This file is the closed form for one bottleneck and steady rates; several queues in a row, phases
and link-level pause are followed event by event in ``queues.py``.

Source: E-S23-072.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.network.premises import Premise
from planner.network.ranges import below_zero, not_above_zero, or_none, plain, refuse

SOURCE = "derived in the text of planner.network.congestion"


def time_to_full_s(free_bytes: Any, arrival_bytes_per_s: Any, service_bytes_per_s: Any) -> Any:
    """Return free / (arrival - service), infinite where the queue does not grow [s].

    It is also the deadline of any feedback: T_f <= Q_free / (arrival - service).

    >>> round(time_to_full_s(256 * 1024, 100e9, 50e9) * 1e6, 1)
    5.2
    """
    growth = np.asarray(arrival_bytes_per_s, np.float64) - service_bytes_per_s
    free = np.asarray(free_bytes, np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return plain(np.where(growth > 0, free / growth, np.inf))


def excess_bytes(arrival_bytes_per_s: Any, service_bytes_per_s: Any, feedback_s: Any) -> Any:
    """Return what arrives beyond service until feedback acts [bytes], 0 where service keeps up.

    >>> excess_bytes(100e9, 50e9, 50e-6) / 1e6
    2.5
    """
    growth = np.asarray(arrival_bytes_per_s, np.float64) - service_bytes_per_s
    return plain(np.maximum(growth, 0.0) * feedback_s)


def lost_bytes(
    free_bytes: Any, arrival_bytes_per_s: Any, service_bytes_per_s: Any, feedback_s: Any
) -> Any:
    """Return what finds the buffer full before feedback acts: max(0, excess - free) [bytes].

    >>> round(lost_bytes(256 * 1024, 100e9, 50e9, 20e-6) / 1e3)
    738
    """
    excess = excess_bytes(arrival_bytes_per_s, service_bytes_per_s, feedback_s)
    return plain(np.maximum(np.asarray(excess) - free_bytes, 0.0))


def drain_s(queued_bytes: Any, service_bytes_per_s: Any, reduced_bytes_per_s: Any) -> Any:
    """Return queued / (service - reduced), infinite where nothing is left to drain with [s].

    >>> round(drain_s(512 * 1024, 50e9, 40e9) * 1e6)
    52
    """
    room = np.asarray(service_bytes_per_s, np.float64) - reduced_bytes_per_s
    queued = np.asarray(queued_bytes, np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return plain(np.where(queued == 0, 0.0, np.where(room > 0, queued / room, np.inf)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Congestion:
    """What one bottleneck does until its source has slowed down; None stands for never.

    Args:
        time_to_full_s: until the buffer is full at the arrival rate [s].
        excess_bytes: arrived beyond service until feedback acts [bytes].
        lost_bytes: of these, what found the buffer full [bytes].
        deadline_s: feedback this late still loses nothing [s].
        in_time: whether feedback meets the deadline.
        queued_bytes: in the buffer when feedback acts [bytes].
        drain_s: from then until the buffer is empty [s].
        empty_at_s: the same from the start [s].
        needed_buffer_bytes: a buffer that would have lost nothing [bytes].
        safe_arrival_bytes_per_s: the arrival at which this feedback still loses nothing [bytes/s].
        says: what the reduced rate does to the queue, as a sentence.
        premises: what this takes for granted.
    """

    time_to_full_s: float | None
    excess_bytes: float
    lost_bytes: float
    deadline_s: float | None
    in_time: bool
    queued_bytes: float
    drain_s: float | None
    empty_at_s: float | None
    needed_buffer_bytes: float
    safe_arrival_bytes_per_s: float | None
    says: str
    premises: tuple[Premise, ...]


def congestion(
    arrival_bytes_per_s: float,
    service_bytes_per_s: float,
    buffer_bytes: float,
    used_bytes: float,
    feedback_s: float,
    reduced_bytes_per_s: float,
) -> Congestion:
    """Return what happens to one queue whose source hears of it *feedback_s* after the start.

    Args:
        arrival_bytes_per_s: until feedback acts [bytes/s].
        service_bytes_per_s: what leaves the queue at most [bytes/s].
        buffer_bytes: what the queue can hold [bytes].
        used_bytes: what it holds at the start [bytes].
        feedback_s: from the start until the source has slowed down, as seen at the queue [s].
        reduced_bytes_per_s: arrival from then on [bytes/s].

    >>> seen = congestion(100e9, 50e9, 512 * 1024, 256 * 1024, 20e-6, 40e9)
    >>> round(seen.lost_bytes / 1e3), round(seen.empty_at_s * 1e6)
    (738, 72)
    """
    faults = [
        *not_above_zero(service_bytes_per_s=service_bytes_per_s, buffer_bytes=buffer_bytes),
        *below_zero(
            arrival_bytes_per_s=arrival_bytes_per_s,
            used_bytes=used_bytes,
            feedback_s=feedback_s,
            reduced_bytes_per_s=reduced_bytes_per_s,
        ),
    ]
    if not faults and used_bytes > buffer_bytes:
        faults.append(f"used_bytes={used_bytes!r}: expected at most buffer_bytes={buffer_bytes!r}")
    refuse(faults)
    free = buffer_bytes - used_bytes
    growth = arrival_bytes_per_s - service_bytes_per_s
    full_s = time_to_full_s(free, arrival_bytes_per_s, service_bytes_per_s)
    excess = excess_bytes(arrival_bytes_per_s, service_bytes_per_s, feedback_s)
    queued = min(buffer_bytes, max(0.0, used_bytes + growth * feedback_s))
    draining_s = drain_s(queued, service_bytes_per_s, reduced_bytes_per_s)
    # a queue that arrival below service has emptied before feedback is empty from then on
    empty_s = (
        feedback_s + draining_s
        if queued
        else drain_s(used_bytes, service_bytes_per_s, arrival_bytes_per_s)
    )
    if not queued and reduced_bytes_per_s > service_bytes_per_s:
        empty_s = float("inf")
    return Congestion(
        time_to_full_s=or_none(full_s),
        excess_bytes=excess,
        lost_bytes=lost_bytes(free, arrival_bytes_per_s, service_bytes_per_s, feedback_s),
        deadline_s=or_none(full_s),
        in_time=feedback_s <= full_s,
        queued_bytes=queued,
        drain_s=or_none(draining_s),
        empty_at_s=or_none(empty_s),
        needed_buffer_bytes=used_bytes + excess,
        safe_arrival_bytes_per_s=or_none(
            service_bytes_per_s + free / feedback_s if feedback_s else float("inf")
        ),
        says=_after_feedback(reduced_bytes_per_s, service_bytes_per_s, queued, draining_s),
        premises=_premises(
            in_time=feedback_s <= full_s, drains=reduced_bytes_per_s < service_bytes_per_s
        ),
    )


def _premises(*, in_time: bool, drains: bool) -> tuple[Premise, ...]:
    """Return what one queue takes for granted, and whether it holds."""
    return (
        Premise(
            states="There is one bottleneck",
            holds=None,
            otherwise="follow the queues in a row: a queue ahead shapes what arrives here",
        ),
        Premise(
            states="Arrival and service are steady until feedback acts",
            holds=None,
            otherwise="compute it phase by phase: the closed form of each phase starts from "
            "the queue the last one left",
        ),
        Premise(
            states="Feedback arrives before the buffer is full",
            holds=in_time,
            otherwise="the excess beyond the free buffer is lost, or link-level pause must "
            "hold it one hop earlier",
        ),
        Premise(
            states="The reduced rate is below service",
            holds=drains,
            otherwise="growth stops at best, and the queue never drains",
        ),
    )


def _after_feedback(reduced: float, service: float, queued: float, draining_s: float) -> str:
    """Return why the queue drains, or why it does not."""
    if reduced > service:
        return "the reduced rate is still above service: the queue keeps growing"
    if reduced == service and queued:
        return (
            f"arrival = service stops the growth but leaves dQ/dt = 0: {queued:.0f} bytes stay "
            "queued for good; draining needs arrival below service"
        )
    if not queued:
        return "the queue is empty when feedback acts"
    return (
        f"service - reduced = {(service - reduced) / 1e9:g} GB/s is left to drain with: "
        f"{queued:.0f} bytes take {draining_s * 1e6:.1f} us"
    )
