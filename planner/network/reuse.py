"""What a given schedule does with its buffers: fewest there must be, and what is written too early.

Contents have times: ``hazards.least_buffers`` counts those alive at once, ``hazards.overwrites``
names those whose own buffer is written again too early. Operations have an order only:
``hazards.unordered_overwrites`` names the writes that nothing holds back until a read is over.

Source: E-S23-071.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.network.hazards import (
    Content,
    Overwrite,
    Use,
    assign_buffers,
    overwrites,
    unordered_overwrites,
)
from planner.network.premises import Premise
from planner.network.ranges import refuse

SOURCE = "derived in the text of planner.network.reuse"
_MOST_OPERATIONS = 2_000
"""Operations in a schedule at most: all pairs on one buffer are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unordered:
    """A write that may come before a read of the content before it is over.

    Args:
        write: operation that writes.
        read: operation that reads.
    """

    write: str
    read: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """What a schedule does with its buffers.

    Args:
        least_buffers: fewest in which no content is overwritten [1].
        seats: each content's buffer when there are that few, counted from 0.
        overwritten: contents whose own buffer is written again before their last read.
        unordered: writes that nothing holds back until a read is over.
        safe: none of either.
        premises: what this takes for granted.
    """

    least_buffers: int
    seats: Mapping[str, int]
    overwritten: tuple[Overwrite, ...]
    unordered: tuple[Unordered, ...]
    safe: bool
    premises: tuple[Premise, ...]


def reuse(contents: Sequence[Content], operations: Sequence[Use]) -> Reuse:
    """Return what *contents*, by their times, and *operations*, by their order, do to buffers.

    Contents without a buffer only count towards the fewest.

    >>> seen = reuse([Content(name="a", write_s=0, read_end_s=5, buffer="x"),
    ...               Content(name="b", write_s=4, read_end_s=9, buffer="x")], ())
    >>> seen.least_buffers, seen.safe, seen.overwritten[0].early_s
    (2, False, 1)
    """
    refuse(
        [
            f"{len(found)} {kind}: expected at most {_MOST_OPERATIONS}"
            for kind, found in (("contents", contents), ("operations", operations))
            if len(found) > _MOST_OPERATIONS
        ]
    )
    seats = assign_buffers(contents)
    early = overwrites([content for content in contents if content.buffer is not None])
    races = tuple(Unordered(write=w, read=r) for w, r in unordered_overwrites(operations))
    return Reuse(
        least_buffers=len(set(seats.values())),
        seats=seats,
        overwritten=early,
        unordered=races,
        safe=not early and not races,
        premises=(
            Premise(
                states="Every buffer is read for the last time before it is written again",
                holds=not early and not races,
                otherwise="the reader gets newer data, and nothing reports it",
            ),
            Premise(
                states="Times are as given: nothing is late",
                holds=None if contents else True,
                otherwise="give operations and their order: that holds whatever the times",
            ),
        ),
    )
