"""The text of ``planner net schedule``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isclose
from typing import Any

from cli.net_text import Row, net_text, table_text, with_table
from planner.collectives.landing import SOURCE, Race, premises
from planner.collectives.proof import Proved, races_of
from planner.collectives.schedule import Schedule
from planner.units import format_binary_bytes

_MOST_FAULTS = 3


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
