"""Buffer hazards: a buffer written again before its last reader is done, and how many it takes.

A buffer may be reused only after the receiver is done with it; overwriting makes it read newer
data. The least number of buffers of a schedule is the most contents alive at one time: lifetimes
are intervals, and intervals can be coloured with as many colours as overlap at once.

Source: E-S23-071 (reusing a buffer: only after the receiver is done).
A lifetime is half open: a buffer may be written at the very time its last reader ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil

from planner.errors import InputError
from planner.network.premises import Premise
from planner.network.ranges import below_zero, not_above_zero, not_counts, refuse

SOURCE = "derived in the text of planner.network.hazards"


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is written into a buffer once and read until it is no longer needed.

    Args:
        name: e.g. ``chunk 3``.
        write_s: the first byte is written [s].
        read_end_s: the last reader is done [s].
        buffer: the buffer it is in, where that is decided.
    """

    name: str
    write_s: float
    read_end_s: float
    buffer: str | None = None

    def __post_init__(self) -> None:
        faults = below_zero(write_s=self.write_s, read_end_s=self.read_end_s)
        if not faults and self.read_end_s < self.write_s:
            faults.append(
                f"read_end_s={self.read_end_s!r}: expected write_s={self.write_s!r} or later"
            )
        refuse([f"{self.name}: {fault}" for fault in faults])


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwrite:
    """A write before the last read.

    Args:
        buffer: written too early.
        written: the content that was written.
        lost: the content that still had a reader.
        early_s: how much too early [s].
    """

    buffer: str
    written: str
    lost: str
    early_s: float


def least_buffers(contents: Sequence[Content]) -> int:
    """Return the fewest buffers in which no content is overwritten: the most alive at once.

    >>> least_buffers([Content(name=str(i), write_s=i, read_end_s=i + 2.5) for i in range(9)])
    3
    """
    return len(set(assign_buffers(contents).values()))


def assign_buffers(contents: Sequence[Content]) -> dict[str, int]:
    """Return a buffer number for each content, as few as possible, reused oldest first.

    An empty lifetime still takes a buffer for its moment.
    """
    names = [content.name for content in contents]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"content {twice!r} is named twice: expected different names")
    free: list[tuple[float, int]] = []
    seat: dict[str, int] = {}
    for content in sorted(contents, key=lambda c: (c.write_s, c.read_end_s)):
        if free and free[0][0] <= content.write_s:
            _, number = heappop(free)
        else:
            number = len(free)
        seat[content.name] = number
        heappush(free, (content.read_end_s, number))
    return {name: seat[name] for name in names}


def overwrites(contents: Sequence[Content]) -> tuple[Overwrite, ...]:
    """Return every content whose buffer is written again before its last read.

    >>> early = [Content(name="a", write_s=0, read_end_s=5, buffer="x"),
    ...     Content(name="b", write_s=4, read_end_s=9, buffer="x")]
    >>> overwrites(early)[0].lost, overwrites(early)[0].early_s
    ('a', 1)
    """
    if missing := [content.name for content in contents if content.buffer is None]:
        raise InputError(f"content {missing[0]!r} has no buffer: expected one for each content")
    found = []
    by_buffer: dict[str, list[Content]] = {}
    for content in sorted(contents, key=lambda c: (c.write_s, c.read_end_s)):
        earlier = by_buffer.setdefault(content.buffer or "", [])
        found += [
            Overwrite(
                buffer=content.buffer or "",
                written=content.name,
                lost=before.name,
                early_s=before.read_end_s - content.write_s,
            )
            for before in earlier
            if before.read_end_s > content.write_s
        ]
        earlier[:] = [before for before in earlier if before.read_end_s > content.write_s]
        earlier.append(content)
    return tuple(found)


def pipeline_buffers(interval_s: float, hold_s: float) -> int:
    """Return the buffers of a steady pipeline: ceil(hold / interval), one at least.

    Little's law for buffers: one content every *interval_s*, each held from its first written
    byte until its last reader is done.

    >>> pipeline_buffers(10e-6, 25e-6)
    3
    """
    refuse(not_above_zero(interval_s=interval_s), below_zero(hold_s=hold_s))
    exact = Fraction(f"{hold_s:.15g}") / Fraction(f"{interval_s:.15g}")
    return max(1, ceil(exact))


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferCheck:
    """Whether a steady pipeline has the buffers it needs.

    Args:
        least_buffers: fewest in which nothing is overwritten [1].
        safe: whether there are as many.
        early_s: how much before the last read a buffer is written again, 0 where it is safe [s].
        safe_interval_s: contents may follow each other this fast in the buffers there are [s].
        premises: what this takes for granted.
    """

    least_buffers: int
    safe: bool
    early_s: float
    safe_interval_s: float
    premises: tuple[Premise, ...]


def buffer_check(interval_s: float, hold_s: float, buffers: int) -> BufferCheck:
    """Return whether *buffers* used in turn are free again before they are written.

    Content i + n is written at (i + n) interval, when content i must have been read at
    i interval + hold: safe iff hold <= n interval.

    Args:
        interval_s: between two contents [s].
        hold_s: from the first byte written until the last reader is done [s].
        buffers: n, used in turn [1].

    >>> seen = buffer_check(10e-6, 25e-6, 2)
    >>> seen.least_buffers, seen.safe, round(seen.early_s * 1e6)
    (3, False, 5)
    """
    refuse(not_counts(buffers=buffers), not_above_zero(interval_s=interval_s))
    least = pipeline_buffers(interval_s, hold_s)
    return BufferCheck(
        least_buffers=least,
        safe=buffers >= least,
        early_s=0.0 if buffers >= least else hold_s - buffers * interval_s,
        safe_interval_s=hold_s / buffers,
        premises=(
            Premise(
                states="Contents follow each other evenly and are held equally long",
                holds=None,
                otherwise="the most alive at once decide: `planner net reuse` counts them in any "
                "schedule",
            ),
            Premise(
                states="The receiver says when it is done, and the sender waits for that",
                holds=buffers >= least,
                otherwise="the reader gets newer data, and nothing reports it",
            ),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One operation on a buffer in a schedule that is ordered, not timed.

    Args:
        name: of the operation.
        buffer: it works on.
        content: it writes or reads.
        writes: whether it writes; else it reads.
        after: operations that are done before it starts.
    """

    name: str
    buffer: str
    content: str
    writes: bool
    after: tuple[str, ...] = ()


def unordered_overwrites(uses: Sequence[Use]) -> tuple[tuple[str, str], ...]:
    """Return (write, read) pairs on one buffer whose order nothing guarantees.

    For two contents of one buffer, one must be wholly before the other: every reader of the one
    before the writer of the other. A pair is returned for each reader that no chain of *after*
    puts before the other content's write, when its own write does not come after that write.

    >>> unordered_overwrites([
    ...     Use(name="w0", buffer="x", content="0", writes=True),
    ...     Use(name="r0", buffer="x", content="0", writes=False, after=("w0",)),
    ...     Use(name="w1", buffer="x", content="1", writes=True, after=("w0",))])
    (('w1', 'r0'),)
    """
    before = _before(uses)
    writer = {(use.buffer, use.content): use.name for use in uses if use.writes}
    found = []
    for read in uses:
        if read.writes:
            continue
        own = writer.get((read.buffer, read.content))
        if own is None:
            raise InputError(f"{read.name}: reads {read.content!r}, which nothing writes")
        if own not in before[read.name]:
            found.append((own, read.name))
        for write in uses:
            if not write.writes or write.buffer != read.buffer or write.content == read.content:
                continue
            earlier = write.name in before[own]
            later = read.name in before[write.name]
            if not earlier and not later:
                found.append((write.name, read.name))
    return tuple(sorted(set(found)))


def _before(uses: Sequence[Use]) -> Mapping[str, frozenset[str]]:
    """Return, for each operation, all that are done before it starts."""
    by_name = {use.name: use for use in uses}
    if len(by_name) != len(uses):
        raise InputError("two operations share a name: expected different names")
    unknown = sorted({name for use in uses for name in use.after} - set(by_name))
    if unknown:
        raise InputError(f"after {unknown[0]!r}: no such operation")
    waiting = {use.name: set(use.after) for use in uses}
    done: dict[str, frozenset[str]] = {}
    while waiting:
        ready = [name for name, needs in waiting.items() if needs <= set(done)]
        if not ready:
            raise InputError(f"operations wait for each other: {', '.join(sorted(waiting)[:5])}")
        for name in ready:
            direct = by_name[name].after
            done[name] = frozenset(direct).union(*(done[earlier] for earlier in direct))
            del waiting[name]
    return done
