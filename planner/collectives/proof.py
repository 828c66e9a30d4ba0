"""One schedule of a collective held against everything that it must do, in bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.collectives.count import moved
from planner.collectives.landing import Landing, Race, landing
from planner.collectives.schedule import Schedule
from planner.collectives.schedules import must_cross, units_per_payload
from planner.collectives.verify import faults_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """One schedule: whether it is right, what it moves, what it asks of memory.

    Args:
        algorithm: how the collective is done.
        faults: none where every rank ends with what it must, each contribution once.
        moves, steps: of the schedule [1].
        crossing_bytes: that leave supernodes [bytes].
        closed_form_bytes: the same in closed form; None where there is none [bytes].
        busiest_nic_bytes: through the busiest rank's NIC [bytes].
        busiest_port_bytes: through the busiest rank's scale-up port [bytes].
        least_slots: of each channel, without acknowledgement [1].
        slot_bytes: of the largest message [bytes].
        landing_bytes: least slots of all channels into the busiest participant [bytes].
        races: writes that *slots* do not keep from an unread message.
        in_place_races: of copies written straight over the receiver's vector.
    """

    algorithm: str
    faults: tuple[str, ...]
    moves: int
    steps: int
    crossing_bytes: float
    closed_form_bytes: float | None
    busiest_nic_bytes: float
    busiest_port_bytes: float
    least_slots: int
    slot_bytes: float
    landing_bytes: float
    races: tuple[Race, ...]
    in_place_races: tuple[Race, ...]


def proved(schedule: Schedule, size_bytes: float, slots: int) -> Proved:
    """Return the proof and the counts of *schedule* whose payload is *size_bytes*."""
    unit_bytes = size_bytes / float(units_per_payload(schedule))
    counted, form = moved(schedule), must_cross(schedule)
    seen: Landing = landing(schedule, slots)
    return Proved(
        algorithm=schedule.algorithm,
        faults=faults_of(schedule),
        moves=len(schedule.moves),
        steps=schedule.steps,
        crossing_bytes=counted.crossing * unit_bytes,
        closed_form_bytes=None if form is None else float(form * size_bytes),
        busiest_nic_bytes=max(counted.by_nic.values(), default=0) * unit_bytes,
        busiest_port_bytes=max(counted.by_port.values(), default=0) * unit_bytes,
        least_slots=seen.least_slots,
        slot_bytes=seen.message_units * unit_bytes,
        landing_bytes=seen.least_slots * seen.most_channels * seen.message_units * unit_bytes,
        races=seen.races,
        in_place_races=seen.in_place_races,
    )


def races_of(rows: Sequence[Proved]) -> tuple[Race, ...]:
    """Return the races of all schedules."""
    return tuple(race for row in rows for race in row.races)
