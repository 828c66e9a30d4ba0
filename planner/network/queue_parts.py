"""What a row of queues is made of: rates in phases, senders, buffers with the link behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from planner.network.ranges import below_zero, not_above_zero, refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A rate from a time on.

    Args:
        start_s: when it begins [s].
        bytes_per_s: the rate until the next phase [bytes/s].
    """

    start_s: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One sender.

    Args:
        name: what reports call it.
        phases: its rate, in order of time, the first at 0.
        enters: index of the queue it feeds [1].
        feedback_s: from the first mark on its path until it has slowed down; None for a sender
            that does not react [s].
        reduced_bytes_per_s: what it sends at most from then on [bytes/s].
    """

    name: str
    phases: tuple[Phase, ...]
    enters: int = 0
    feedback_s: float | None = None
    reduced_bytes_per_s: float = 0.0

    def __post_init__(self) -> None:
        faults = _phase_faults("phases", self.phases)
        faults += below_zero(reduced_bytes_per_s=self.reduced_bytes_per_s)
        faults += [] if self.feedback_s is None else below_zero(feedback_s=self.feedback_s)
        refuse([f"source {self.name!r}: {fault}" for fault in faults])


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """One buffer and the link behind it.

    Args:
        name: what reports call it.
        service: rate of the link behind it, in order of time, the first phase at 0.
        buffer_bytes: what it can hold [bytes].
        used_bytes: what it holds at the start [bytes].
        mark_bytes: from this level on senders are told; None for no marking [bytes].
        xoff_bytes: pauses what feeds it from this level on; None for no pause [bytes].
        xon_bytes: resumes at this level [bytes].
        pause_s: from crossing a pause level until arrivals stop or resume [s].
    """

    name: str
    service: tuple[Phase, ...]
    buffer_bytes: float
    used_bytes: float = 0.0
    mark_bytes: float | None = None
    xoff_bytes: float | None = None
    xon_bytes: float = 0.0
    pause_s: float = 0.0

    def __post_init__(self) -> None:
        faults = not_above_zero(buffer_bytes=self.buffer_bytes)
        faults += below_zero(used_bytes=self.used_bytes, pause_s=self.pause_s)
        faults += _phase_faults("service", self.service)
        limit = f"buffer_bytes={self.buffer_bytes!r}"
        if not faults and self.used_bytes > self.buffer_bytes:
            faults.append(f"used_bytes={self.used_bytes!r}: expected at most {limit}")
        if self.mark_bytes is not None and not 0 <= self.mark_bytes <= self.buffer_bytes:
            faults.append(f"mark_bytes={self.mark_bytes!r}: expected 0 to {limit}")
        if self.xoff_bytes is not None and not (
            0 <= self.xon_bytes < self.xoff_bytes <= self.buffer_bytes
        ):
            faults.append(
                f"xon_bytes={self.xon_bytes!r}, xoff_bytes={self.xoff_bytes!r}: expected "
                f"0 <= xon < xoff <= {limit}"
            )
        refuse([f"queue {self.name!r}: {fault}" for fault in faults])


def refuse_faults(sources: Sequence[Source], queues: Sequence[Queue], until_s: float) -> None:
    """Refuse a row that cannot be, naming every fault."""
    faults = not_above_zero(until_s=until_s)
    if not queues:
        faults.append("no queue given: expected one at least")
    faults += [
        f"source {source.name!r}: enters={source.enters!r}: expected 0 to {len(queues) - 1}"
        for source in sources
        if not 0 <= source.enters < len(queues)
    ]
    refuse(faults)


def _phase_faults(name: str, phases: tuple[Phase, ...]) -> list[str]:
    if not phases or phases[0].start_s != 0:
        return [f"{name}: expected a first phase at 0 s"]
    faults = []
    for phase in phases:
        faults += below_zero(start_s=phase.start_s, bytes_per_s=phase.bytes_per_s)
    if any(b.start_s <= a.start_s for a, b in pairwise(phases)):
        faults.append(f"{name}: expected start times that rise")
    return faults
