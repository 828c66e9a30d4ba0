"""The figures and the text of ``planner net schedule``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any

from cli.net_text import Row, net_text, table_text, with_table
from planner.collectives.count import moved
from planner.collectives.landing import SOURCE, Landing, Race, landing, premises
from planner.collectives.schedule import Schedule
from planner.collectives.schedules import must_cross, units_per_payload
from planner.collectives.verify import faults_of
from planner.units import format_binary_bytes

_MOST_FAULTS = 3


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


def moves_csv(schedule: Schedule) -> str:
    """Return the moves of *schedule*, one a line; units are separated by blanks."""
    lines = ["step,source,target,adds,units"]
    lines += [
        f"{move.step},{move.source},{move.target},{'yes' if move.reduces else 'no'},"
        + " ".join(map(str, sorted(move.units)))
        for move in schedule.moves
    ]
    return "\n".join(lines) + "\n"


def schedule_text(inputs: Mapping[str, Any], rows: Sequence[Proved]) -> str:
    """Return the text of ``planner net schedule``."""
    members = inputs["members"]
    case = (
        f"{inputs['collective']} of {format_binary_bytes(inputs['size_bytes'])} over "
        f"{sum(members)} ranks, {'+'.join(map(str, members))} in supernodes; "
        f"{inputs['slots']} landing slots a channel"
    )
    table = table_text(
        ("algorithm", "proved", "steps", "crosses", "by form", "one NIC", "slots", "of"),
        [
            (
                row.algorithm,
                "NO" if row.faults else "yes",
                str(row.steps),
                format_binary_bytes(row.crossing_bytes),
                "-" if row.closed_form_bytes is None else _by_form(row),
                format_binary_bytes(row.busiest_nic_bytes),
                str(row.least_slots) + ("!" if row.races else ""),
                format_binary_bytes(row.slot_bytes),
            )
            for row in rows
        ],
    )
    says = [
        (
            "Proved: every rank ends with every contribution it must have, once each. Crosses: "
            "leaves a supernode, all moves added up; by form: whether that is the closed form's; "
            "one NIC: the busiest. Slots: fewest of a channel that keep messages from being "
            "overwritten unread where nobody acknowledges; !: more than there are."
        ),
        *(f"{row.algorithm}: {fault}." for row in rows for fault in row.faults[:_MOST_FAULTS]),
    ]
    text = net_text(
        "Schedules of a collective",
        case,
        _detail(rows[0]) if len(rows) == 1 else (),
        says,
        premises(races_of(rows)),
        SOURCE,
    )
    return with_table(text, table)


def _by_form(row: Proved) -> str:
    form = row.closed_form_bytes
    return "equal" if form is not None and isclose(form, row.crossing_bytes) else "NOT"


def _detail(row: Proved) -> list[Row]:
    """Return what only the answer about one algorithm has room for."""
    found = [
        Row("moves", str(row.moves)),
        Row("busiest port", format_binary_bytes(row.busiest_port_bytes)),
        Row("memory of slots", format_binary_bytes(row.landing_bytes), "of one rank at most"),
        Row(
            "copies in place",
            "UNSAFE" if row.in_place_races else "safe",
            _race_text(row.in_place_races[0]) if row.in_place_races else "",
        ),
    ]
    if row.races:
        told = f"{_race_text(row.races[0])}; {len(row.races)} such writes in all"
        found.append(Row("slots there are", "RACE", told))
    return found


def _race_text(race: Race) -> str:
    return (
        f"step {race.step} of {race.source} to {race.target} may land before {race.target} has "
        f"read what step {race.read_step} left there"
    )
