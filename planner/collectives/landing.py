"""Where messages land: the fewest slots in which none is overwritten unread, and writes in place.

What one step sends from one participant to another is a message. It lands in a slot of that
*channel*; the slots are used in turn and nobody acknowledges anything. So the receiver's read is
over before the sender writes the slot again only where a chain of messages leads from the one to
the other: in its step s a participant sends what it held when the step began, takes in all that
step s brings it, and goes on, and nothing else keeps participants in time. What a sender knows of
the others is a vector clock, which messages carry along.

In a ring of n news of a read has n-1 hops to go before the sender hears of it, which is as many
messages as it sends in one pass: n-1 slots. With an acknowledgement of each read one slot is right.

A message that *copies* may also be written straight over the receiver's own vector, if what it
overwrites has been sent and added to for the last time. One that adds cannot: it needs a slot.

Source: E-S23-071 (reusing a buffer: only after the receiver is done); Lamport, CACM 21(7), 1978.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from planner.collectives.schedule import Move, Schedule
from planner.errors import InputError
from planner.network.premises import Premise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Steps: TypeAlias = NDArray[np.int64]

SOURCE = (
    "vector clocks after L. Lamport, Time, Clocks, and the Ordering of Events in a Distributed "
    "System, Communications of the ACM 21(7), 1978, pp. 558-565"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """A write that nothing holds back until the last read before it is over.

    Args:
        source, target: participants of the message that is written.
        step: in which it is sent [1].
        read_step: in which what it overwrites is read [1].
    """

    source: int
    target: int
    step: int
    read_step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """What a schedule asks of the memory that its messages land in.

    Args:
        least_slots: of each channel, so that no message is overwritten unread [1].
        message_units: in the largest message [1].
        most_channels: that lead to one participant [1].
        races: with the slots that were asked about.
        in_place_races: of copies written straight over the receiver's vector.
    """

    least_slots: int
    message_units: int
    most_channels: int
    races: tuple[Race, ...]
    in_place_races: tuple[Race, ...]


def landing(schedule: Schedule, slots: int) -> Landing:
    """Return the slots that *schedule* needs, and what races with *slots* of them.

    >>> from planner.collectives.reductions import contiguous_ring
    >>> from planner.collectives.schedule import Seating
    >>> ring = contiguous_ring("reduce_scatter", Seating.of_counts([8, 8]))
    >>> landing(ring, 2).least_slots, len(landing(ring, 15).races)
    (15, 0)
    """
    if slots < 1:
        raise InputError(f"slots={slots!r}: expected 1 at least")
    channels: dict[tuple[int, int], list[_Message]] = {}
    uses: dict[tuple[int, int], _Use] = {}
    in_place: list[Race] = []
    for known, moves in _steps(schedule):
        for move in moves:
            _note_uses(move, uses)
        for move in moves:
            if (race := _in_place_race(move, known, uses)) is not None:
                in_place.append(race)
            sent = channels.setdefault((move.source, move.target), [])
            if not sent or sent[-1].step != move.step:
                told = int(known[move.source, move.target])
                sent.append(_Message(step=move.step, known_steps=told))
            sent[-1].units += len(move.units)
    into = Counter(target for _, target in channels)
    return Landing(
        least_slots=max(map(_least_slots, channels.values()), default=0),
        message_units=max((m.units for sent in channels.values() for m in sent), default=0),
        most_channels=max(into.values(), default=0),
        races=tuple(
            Race(source=source, target=target, step=later.step, read_step=earlier.step)
            for (source, target), sent in sorted(channels.items())
            for earlier, later in zip(sent, sent[slots:], strict=False)
            if later.known_steps <= earlier.step
        ),
        in_place_races=tuple(in_place),
    )


@dataclass(slots=True, kw_only=True)
class _Message:
    """What one step sends on one channel.

    Args:
        step: of the sender.
        known_steps: steps of the target that the sender knows to be over when it sends.
        units: in it.
    """

    step: int
    known_steps: int
    units: int = 0


@dataclass(slots=True, kw_only=True)
class _Use:
    """The last step in which a participant sent a unit or added to it, and who then had it.

    Args:
        step: of that use.
        readers: those it was sent to; the participant itself where it added.
    """

    step: int
    readers: set[int]


def _steps(schedule: Schedule) -> Iterator[tuple[Steps, list[Move]]]:
    """Yield what is known before each step, and its moves.

    known[a, b]: steps of b that are over before a begins this one. A message brings its source's
    row along; each step that is over adds one to a participant's own entry.
    """
    by_step: dict[int, list[Move]] = {}
    for move in schedule.moves:
        by_step.setdefault(move.step, []).append(move)
    known = np.zeros((schedule.participants, schedule.participants), np.int64)
    for step in range(schedule.steps):
        moves = by_step.get(step, [])
        yield known, moves
        then = known.copy()
        for move in moves:
            np.maximum(then[move.target], known[move.source], out=then[move.target])
        np.fill_diagonal(then, step + 1)
        known = then


def _least_slots(sent: Sequence[_Message]) -> int:
    """Return the slots of one channel: most messages from one to the first that may reuse its own.

    What a sender knows only grows, so the first later message that may is found going forward.
    """
    most, later = 0, 0
    for i, message in enumerate(sent):
        while later < len(sent) and sent[later].known_steps <= message.step:
            later += 1
        most = max(most, later - i)
    return most


def _note_uses(move: Move, uses: dict[tuple[int, int], _Use]) -> None:
    """Write down that *move* reads its units at its source, and adds to them at its target."""
    for unit in move.units:
        for user in (move.source, move.target) if move.reduces else (move.source,):
            use = uses.get((user, unit))
            if use is None or use.step != move.step:
                use = uses[user, unit] = _Use(step=move.step, readers=set())
            use.readers.add(move.target)


def _in_place_race(move: Move, known: Steps, uses: Mapping[tuple[int, int], _Use]) -> Race | None:
    """Return the race of a copy that lands before the target has used the old units for the last.

    A use is over once the target's step is, or that of whom it was sent to: it has arrived.
    """
    if move.reduces:
        return None
    for unit in sorted(move.units):
        use = uses.get((move.target, unit))
        if use is None or known[move.source, move.target] > use.step:
            continue
        if any(known[move.source, reader] <= use.step for reader in use.readers):
            return Race(source=move.source, target=move.target, step=move.step, read_step=use.step)
    return None


def premises(races: Sequence[Race]) -> tuple[Premise, ...]:
    """Return what counting slots takes for granted, and whether the slots asked about suffice."""
    return (
        Premise(
            states="No message is overwritten before it has been read",
            holds=not races,
            otherwise="give each channel its least slots, or let receivers acknowledge: then one "
            "slot is right, and two keep the wire busy",
        ),
        Premise(
            states="What one step sends on one channel is one message, and messages keep order",
            holds=None,
            otherwise="chunks of a pipeline need a slot each for as many as are in flight",
        ),
        Premise(
            states="All ranks have entered the collective before its first message",
            holds=None,
            otherwise="a late rank's buffers of the collective before are still in use",
        ),
    )
