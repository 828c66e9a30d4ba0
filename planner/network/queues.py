"""Several queues in a row, followed event by event: phases, feedback, link-level pause.

Fluid in tandem: what leaves queue i enters queue i + 1. Rates are constant between events (a
phase begins, a queue fills, empties or crosses a threshold, a signal arrives), so queues are
piecewise linear and every event time is exact.

Source: E-S23-072 (dQ/dt = arrival - service, computed piece by piece).
Holds while packets are small against queues and thresholds; see ``pfc.headroom_bytes`` for the
frames a fluid does not have. A paused or slowed source does not catch up later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from planner.errors import InputError
from planner.network.premises import Premise
from planner.network.queue_parts import Phase, Queue, Source, refuse_faults

SOURCE = "derived in the text of planner.network.queues"
_MOST_EVENTS = 200_000
_SAME = 1e-9  # two levels closer than this share of the buffer are one


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRun:
    """What happened to one queue; None stands for never.

    Args:
        name: of the queue.
        full_at_s: first time the buffer was full [s].
        lost_bytes: what found it full [bytes].
        peak_bytes: most it held [bytes].
        end_bytes: what it holds at the end [bytes].
        empty_at_s: last time it became empty; None if it is not empty at the end [s].
        marked_at_s: first time it told senders [s].
        pauses: times it paused what feeds it [1].
        paused_s: time for which what feeds it stood still [s].
    """

    name: str
    full_at_s: float | None
    lost_bytes: float
    peak_bytes: float
    end_bytes: float
    empty_at_s: float | None
    marked_at_s: float | None
    pauses: int
    paused_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What happened to a row of queues.

    Args:
        queues: in their order.
        sent_bytes: by all senders [bytes].
        delivered_bytes: behind the last queue [bytes].
        reduced_at_s: when each sender slowed down, None for never [s].
        events: number of events followed [1].
    """

    queues: tuple[QueueRun, ...]
    sent_bytes: float
    delivered_bytes: float
    reduced_at_s: tuple[float | None, ...]
    events: int


@dataclass(slots=True)
class _Level:
    """State of one queue while the run is followed."""

    queue: Queue
    bytes: float
    full_at_s: float | None = None
    lost: float = 0.0
    peak: float = 0.0
    empty_at_s: float | None = None
    marked_at_s: float | None = None
    wants_pause: bool = False
    feeders_paused: bool = False
    pauses: int = 0
    paused_s: float = 0.0
    arrival: float = 0.0
    departure: float = 0.0

    @property
    def growth(self) -> float:
        """Return dQ/dt, 0 while full and still growing [bytes/s]."""
        growth = self.arrival - self.departure
        return 0.0 if growth > 0 and self.bytes >= self.queue.buffer_bytes else growth

    @property
    def loss(self) -> float:
        """Return the rate at which arrivals find the buffer full [bytes/s]."""
        return self.arrival - self.departure - self.growth

    def levels(self) -> Iterable[float]:
        """Yield the levels at which something happens."""
        yield 0.0
        yield self.queue.buffer_bytes
        if self.queue.mark_bytes is not None and self.marked_at_s is None:
            yield self.queue.mark_bytes
        if self.queue.xoff_bytes is not None:
            yield self.queue.xon_bytes if self.wants_pause else self.queue.xoff_bytes

    def next_level_in_s(self) -> float:
        """Return the time until the next such level is reached [s]."""
        growth = self.growth
        if growth == 0:
            return float("inf")
        ways = [(level - self.bytes) / growth for level in self.levels()]
        return min((way for way in ways if way > 0), default=float("inf"))


@dataclass(slots=True)
class _Signals:
    """Signals on their way: (time, target queue or sender, what it says)."""

    pauses: list[tuple[float, int, bool]] = field(default_factory=list)
    slows: list[tuple[float, int]] = field(default_factory=list)

    def next_s(self) -> float:
        """Return when the next one arrives [s]."""
        return min((signal[0] for signal in (*self.pauses, *self.slows)), default=float("inf"))


def follow(sources: Sequence[Source], queues: Sequence[Queue], until_s: float) -> Run:
    """Return what happens to *queues* in a row, fed by *sources*, from 0 to *until_s*.

    >>> link = Queue(name="port", service=(Phase(start_s=0, bytes_per_s=50e9),),
    ...     buffer_bytes=512 * 1024, used_bytes=256 * 1024, mark_bytes=256 * 1024)
    >>> gpu = Source(name="gpu", phases=(Phase(start_s=0, bytes_per_s=100e9),),
    ...     feedback_s=20e-6, reduced_bytes_per_s=40e9)
    >>> port = follow([gpu], [link], 100e-6).queues[0]
    >>> round(port.full_at_s * 1e6, 1), round(port.lost_bytes / 1e3), round(port.empty_at_s * 1e6)
    (5.2, 738, 72)
    """
    refuse_faults(sources, queues, until_s)
    levels = [
        _Level(queue=queue, bytes=queue.used_bytes, peak=queue.used_bytes) for queue in queues
    ]
    signals, reduced = _Signals(), [None] * len(sources)
    reduced_at: list[float | None] = list(reduced)
    changes = sorted(
        {phase.start_s for source in sources for phase in source.phases}
        | {phase.start_s for queue in queues for phase in queue.service}
    )
    now, sent, delivered, events = 0.0, 0.0, 0.0, 0
    while True:
        events += 1
        if events > _MOST_EVENTS:
            raise InputError(
                f"until_s={until_s!r}: more than {_MOST_EVENTS} events by {now:.3g} s: "
                "expected a shorter run, or thresholds further apart"
            )
        _arrive(signals, levels, reduced_at, now)
        _cross(levels, sources, signals, reduced_at, now)
        sending = _set_rates(levels, sources, reduced_at, now)
        if now >= until_s:
            break
        then = min(
            until_s,
            signals.next_s(),
            next((start for start in changes if start > now), float("inf")),
            now + min((level.next_level_in_s() for level in levels), default=float("inf")),
        )
        step_s = then - now
        sent += sending * step_s
        delivered += levels[-1].departure * step_s
        _advance(levels, step_s, then)
        now = then
    return Run(
        queues=tuple(_told(level) for level in levels),
        sent_bytes=sent,
        delivered_bytes=delivered,
        reduced_at_s=tuple(reduced_at),
        events=events,
    )


def _rate(phases: tuple[Phase, ...], now: float) -> float:
    """Return the rate of the phase that runs at *now* [bytes/s]."""
    return next(phase.bytes_per_s for phase in reversed(phases) if phase.start_s <= now)


def _arrive(
    signals: _Signals, levels: list[_Level], reduced_at: list[float | None], now: float
) -> None:
    """Let the signals that are due take effect, in the order in which they were sent."""
    for time, queue, pause in [signal for signal in signals.pauses if signal[0] <= now]:
        levels[queue].feeders_paused = pause
        signals.pauses.remove((time, queue, pause))
    for time, source in [signal for signal in signals.slows if signal[0] <= now]:
        reduced_at[source] = now
        signals.slows.remove((time, source))


def _cross(
    levels: list[_Level],
    sources: Sequence[Source],
    signals: _Signals,
    reduced_at: list[float | None],
    now: float,
) -> None:
    """Note the thresholds that are reached, and send what they say on its way."""
    for i, level in enumerate(levels):
        queue = level.queue
        if level.bytes >= queue.buffer_bytes and level.full_at_s is None:
            level.full_at_s = now
        marks = queue.mark_bytes is not None and level.marked_at_s is None
        if marks and level.bytes >= (queue.mark_bytes or 0.0):
            level.marked_at_s = now
            told = {source for _, source in signals.slows}
            for j, source in enumerate(sources):
                hears = source.feedback_s is not None and source.enters <= i
                if hears and reduced_at[j] is None and j not in told:
                    signals.slows.append((now + (source.feedback_s or 0.0), j))
        if queue.xoff_bytes is None:
            continue
        if not level.wants_pause and level.bytes >= queue.xoff_bytes:
            level.wants_pause, level.pauses = True, level.pauses + 1
            signals.pauses.append((now + queue.pause_s, i, True))
        elif level.wants_pause and level.bytes <= queue.xon_bytes:
            level.wants_pause = False
            signals.pauses.append((now + queue.pause_s, i, False))
    if any(time <= now for time, *_ in (*signals.pauses, *signals.slows)):
        _arrive(signals, levels, reduced_at, now)


def _set_rates(
    levels: list[_Level],
    sources: Sequence[Source],
    reduced_at: list[float | None],
    now: float,
) -> float:
    """Set arrival and departure of every queue; return what all senders send [bytes/s]."""
    sending = 0.0
    ahead = 0.0
    for i, level in enumerate(levels):
        own = 0.0
        for j, source in enumerate(sources):
            if source.enters == i and not level.feeders_paused:
                rate = _rate(source.phases, now)
                own += min(rate, source.reduced_bytes_per_s) if reduced_at[j] is not None else rate
        sending += own
        level.arrival = ahead + own
        held = i + 1 < len(levels) and levels[i + 1].feeders_paused
        service = 0.0 if held else _rate(level.queue.service, now)
        level.departure = service if level.bytes > 0 else min(service, level.arrival)
        ahead = level.departure
    return sending


def _advance(levels: list[_Level], step_s: float, then: float) -> None:
    """Move every queue *step_s* ahead; a level reached is reached exactly."""
    for level in levels:
        before = level.bytes
        level.lost += level.loss * step_s
        level.paused_s += step_s if level.feeders_paused else 0.0
        after = before + level.growth * step_s
        near = _SAME * level.queue.buffer_bytes
        for mark in level.levels():
            if abs(after - mark) <= near and before != mark:
                after = mark
        level.bytes = min(max(after, 0.0), level.queue.buffer_bytes)
        level.peak = max(level.peak, level.bytes)
        if level.bytes == 0 and before > 0:
            level.empty_at_s = then


def _told(level: _Level) -> QueueRun:
    return QueueRun(
        name=level.queue.name,
        full_at_s=level.full_at_s,
        lost_bytes=level.lost,
        peak_bytes=level.peak,
        end_bytes=level.bytes,
        empty_at_s=level.empty_at_s if level.bytes == 0 else None,
        marked_at_s=level.marked_at_s,
        pauses=level.pauses,
        paused_s=level.paused_s,
    )


def premises() -> tuple[Premise, ...]:
    """Return what following queues takes for granted."""
    return (
        Premise(
            states="Data is a fluid: frames are small against queues and thresholds",
            holds=None,
            otherwise="add one largest frame in each direction, as `planner net pause` does",
        ),
        Premise(
            states="A paused or slowed source does not catch up later",
            holds=None,
            otherwise="add a phase with the rate at which it makes up",
        ),
        Premise(
            states="Each queue serves one class in order",
            holds=None,
            otherwise="give each class its part of the service",
        ),
    )
