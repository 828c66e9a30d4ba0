"""What falls on the cut between supernodes, on the page of ``planner compare``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.compare_report import Comparison
from cli.page_tables import simple_table
from cli.report_words import not_proved_words
from planner.place.answer import Proof
from planner.search.compare import Entry
from planner.steptime.spread import DIGITS
from planner.units import format_bytes, format_share, format_time

if TYPE_CHECKING:
    from rich.table import Table

    from planner.place.answer import Placement
    from planner.search.finalist import Finalist

_CUT_WIDTH = 57  # so that the table of cuts fits a terminal of 80 columns


def row_name(one: Entry, found: Comparison) -> str:
    """Return what a row is called: its cluster, with the layout where several are given."""
    return f"{one.candidate.name} {one.label}" if found.asked.layouts else one.candidate.name


def cut_table(found: Comparison) -> Table:
    """Return what crosses by parallel degree, in all, and in the least cut."""
    entries = [*by_size(found.compared.ranked), *by_size(found.compared.moved)]
    used = [d for d in DIGITS if any(d in one.finalist.crossed for one in entries)]
    if max(len(row_name(one, found)) for one in entries) + 10 * len(used) > _CUT_WIDTH:
        out = [d for d in used if any(one.finalist.crossed.get(d) for one in entries)]
        used = out or used  # what stays in everywhere is said below the table
    table = simple_table("  cluster", *(d.upper() for d in used), "all", "least")
    table.columns[0].no_wrap = True
    moved = False
    for one in entries:
        if one.label.startswith("best of") and not moved:
            table.add_section()
            moved = True
        crossed = one.finalist.crossed
        table.add_row(
            f"  {row_name(one, found)}{' *' if moved else ''}",
            *("" if d not in crossed else format_bytes(crossed[d]) if crossed[d] else "inside"
              for d in used),
            format_bytes(one.finalist.seated_bytes) if one.finalist.seated_bytes else "none",
            _least(one.finalist.placement),
        )  # fmt: skip
    return table


def _least(placement: Placement) -> str:
    """Return the least cut, as no more than it is where it is not proved the least."""
    if not placement.checked_bytes:
        return "none"
    most = "≤ " if placement.proof is Proof.INCUMBENT else ""
    return f"{most}{format_bytes(float(placement.checked_bytes))}"


def _every_row(found: Comparison) -> list[tuple[str, Finalist]]:
    """Return what each row of the table is called, and its seats."""
    return [
        *((row_name(one, found), one.finalist) for one in by_size(found.compared.ranked)),
        *((f"{row_name(one, found)} *", one.finalist) for one in by_size(found.compared.moved)),
    ]


def seating_sentence(found: Comparison) -> str:
    """Return in which seats the bytes are counted, and whose least cut is not proved."""
    rows = _every_row(found)
    said = not_proved_words(
        ((name, one.placement) for name, one in rows), found.time_limit_s
    )  # fmt: skip
    odd = dict.fromkeys(name for name, one in rows if one.seating == "rank-order")
    if odd:
        text = (
            "All but 'least' is of the seats each step is timed in: rank order for "
            f"{', '.join(odd)}, where it is faster though more may cross. 'least' is where planner "
            "place seats it."
        )
    else:
        fewest = "fewest bytes that were found" if said else "least bytes"
        text = f"Each sits where the {fewest} leave its supernodes, as planner place seats it."
    return f"{text}{f' {said}' if said else ''}"


def by_size(entries: Sequence[Entry]) -> list[Entry]:
    """Return *entries* by the size of their supernodes."""
    return sorted(entries, key=lambda e: (e.candidate.fabric.full_supernode_gpus, e.candidate.name))


def cut_sentences(found: Comparison) -> list[str]:
    """Return of each row what crosses and what stays in."""
    lines = []
    for one in (*by_size(found.compared.ranked), *by_size(found.compared.moved)):
        crossed = one.finalist.crossed
        total = sum(crossed.values())
        out = sorted((d for d in crossed if crossed[d]), key=lambda d: -crossed[d])
        inside = [d.upper() for d in crossed if not crossed[d]]
        shares = ", ".join(f"{d.upper()} {format_share(crossed[d] / total)}" for d in out)
        whose = f" * (with the {one.label})" if one in found.compared.moved else ""
        crosses = f"crosses {shares}" if out else "nothing crosses"
        text = f"{row_name(one, found)}{whose}: {crosses}"
        text += f"; stays in {', '.join(inside)}" if inside else ""
        if one in found.compared.moved:
            text += f"; a step of {format_time(one.finalist.step_s)}"
        if not one.finalist.memory.fits:
            text += "; does not fit in memory"
        lines.append(text + ".")
    return lines
