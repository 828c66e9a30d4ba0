"""Who sits where: the map of a seating, its lights, and the same as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cli.report_html_parts import Num, table
from cli.report_html_read import PlanFile
from cli.report_html_traffic import Crossing
from cli.report_html_words import DIGITS, PARTS, family_words, part_of
from cli.report_pictures import safe
from cli.report_pictures_seats import Light, Room, Seats, flowing_seats, key_of_stages
from planner.units import format_bytes
from planner.words import counted, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LETTERS = dict(zip((*DIGITS, *PARTS), "abcdefghij", strict=True))
_MOST_CLICKED = 4096  # above it a square stands for several ranks
_MOST_BOXES = 160


def seats_section(
    plan: PlanFile, index: int, found: Sequence[Crossing], leaving: NDArray[np.float64]
) -> str:
    """Return the map with its lights, its key and its table.

    Args:
        plan: whose ranks sit.
        index: its place among the plans; makes its lights its own.
        found: what crosses, by family.
        leaving: what goes to and from each domain in a step, array [domains] [bytes].
    """
    tier = safe(plan.document["cut"]["tier"])
    shown = _first_of_each_digit(found)
    stages = stages_of(plan.document)
    # One stage is one colour, which shows nothing: then a family that crosses is lit at first.
    lit = next((c for c in shown if stages == 1 and c.crossing), None)
    plain = "pipeline stages" if stages > 1 else "no family"
    inputs = [_radio(index, "", "", plain, lit is None)]
    for crossing in shown:
        part = part_of(crossing.family)
        along = ",".join(map(str, plan.axes_of(crossing.family)))
        label = f"{part.upper().replace('_', ' ')}, {_crossing_words(crossing)}"
        inputs.append(_radio(index, _LETTERS[part], along, label, crossing is lit))
    asked = "" if plan.home.size > _MOST_CLICKED else (
        '<p class="ask"><label>Show the group of rank <input type="number" min="0" '
        f'max="{plan.home.size - 1}"></label> or point at a square and click. '
        '<span class="said" role="status"></span></p>'
    )  # fmt: skip
    rows: list[list[str | Num]] = [
        [family_words(c.family),
         Num(c.groups, f"{c.groups:,}"), Num(c.family["group_size"], f"{c.family['group_size']:,}"),
         Num(c.crossing, f"{c.crossing:,}"), Num(c.most_domains, _range(c))]
        for c in shown
    ]  # fmt: skip
    each = safe(box_words(plan))
    capacity = sum(domain["capacity"] for domain in plan.document["placement"]["domains"])
    free = " Empty squares with a dotted edge have no rank." if capacity > plan.home.size else ""
    most = float(leaving.max())
    under = (
        f" The bar under a box is what goes to and from other {plural(tier)}; the most of one "
        f"{tier} is {safe(format_bytes(most))} a step." if most > 0 else ""
    )  # fmt: skip
    drawn = f'<div class="map">{flowing_seats(seat_map(plan, found, leaving))}</div>'
    if not shown:
        return (
            f"<p>{each}.{under}{free} No groups talk to each "
            f'other.</p><div class="seats">{drawn}</div>'
        )
    return (
        f"<p>{each}.{under} Light up a family: groups that cross "
        f"a border take a colour each (seven in turn), groups inside one turn grey.{free}</p>"
        f'<div class="seats">{"".join(inputs)}{drawn}'
        f"{key_of_stages(stages) if stages > 1 else ''}{asked}</div>"
        + table(f"Groups and the {plural(plan.document['cut']['tier'])} they touch",
                ["Family", "Groups", "Ranks in one", "Groups that cross", "Touched by one"], rows)
    )  # fmt: skip


def box_words(plan: PlanFile) -> str:
    """Return what a box of the map and a square in it stand for."""
    tier, together = plan.document["cut"]["tier"], domains_in_a_box(plan)
    box = f"a {tier}" if together == 1 else f"{together} neighbouring {plural(tier)}"
    square = "several neighbouring GPUs" if plan.home.size > _MOST_CLICKED else "a GPU"
    return f"Each box is {box}, each square {square}"


def stages_of(document: Mapping[str, Any]) -> int:
    """Return how many pipeline stages a plan has, 1 without a pipeline."""
    return int(_stages(document).max()) + 1


def domains_in_a_box(plan: PlanFile) -> int:
    """Return how many neighbouring domains are drawn as one box, so that boxes can be told apart.

    A power of two, for domains come in such numbers.
    """
    count, each = len(plan.document["placement"]["domains"]), 1
    while -(-count // each) > _MOST_BOXES:
        each *= 2
    return each


def seat_map(plan: PlanFile, found: Sequence[Crossing], leaving: NDArray[np.float64]) -> Seats:
    """Return what the map of a plan's domains shows, a square for each GPU.

    Args:
        plan: whose ranks sit.
        found: what crosses, by family.
        leaving: what goes to and from each domain in a step, array [domains] [bytes].
    """
    document = plan.document
    gpu, axes = document["placement"]["rank_to_gpu"], document["axes"]
    domains, each = document["placement"]["domains"], domains_in_a_box(plan)
    boxes = [
        (domains[start : start + each], float(leaving[start : start + each].sum()))
        for start in range(0, len(domains), each)
    ]
    most = max(leaves for _, leaves in boxes) or 1.0
    rooms = [
        Room(
            label=box[0]["name"],
            name=box[0]["name"] if len(box) == 1 else f"{box[0]['name']} +{len(box) - 1}",
            capacity=sum(domain["capacity"] for domain in box),
            ranks=[rank for domain in box for rank in sorted(domain["ranks"], key=gpu.__getitem__)],
            leaving=leaves / most,
            text=(f"to {box[-1]['name']}, " if len(box) > 1 else "")
                 + f"{sum(len(domain['ranks']) for domain in box)} of "
                 f"{sum(domain['capacity'] for domain in box)} GPUs used, "
                 f"{format_bytes(leaves)} a step to and from others",
        )
        for box, leaves in boxes
    ]  # fmt: skip

    def told(rank: int) -> str:
        digits = ", ".join(
            f"{axis['name']} {rank // axis['stride'] % axis['size']}" for axis in axes
        )
        return f"rank {rank}: {digits}; {document['placement']['gpus'][rank]}"

    tier = document["cut"]["tier"]
    name = f"Map of {counted(len(domains), tier)}, each square a GPU, coloured by pipeline stage"
    lights = [_light(plan, crossing) for crossing in _first_of_each_digit(found)]
    return Seats(title=name, rooms=rooms, stage=_stages(document), lights=lights, told=told,
                 axes=",".join(map(str, plan.sizes)))  # fmt: skip


def _light(plan: PlanFile, crossing: Crossing) -> Light:
    members = plan.members(crossing.family)
    group = np.empty(plan.home.size, np.int64)
    group[members] = np.arange(len(members))[:, None]
    homes = plan.home[members]
    return Light(
        letter=_LETTERS[part_of(crossing.family)],
        group=group,
        crosses=(homes != homes[:, :1]).any(axis=1),
    )


def _radio(index: int, letter: str, along: str, label: str, checked: bool) -> str:
    style = f"lit-{letter}" if letter else "lit-none"
    return (
        f'<label><input type="radio" name="light-{index}" class="{style}" data-along="{along}"'
        f"{' checked' if checked else ''}>{safe(label)}</label>"
    )


def _stages(document: Mapping[str, Any]) -> Any:
    """Return the pipeline stage of each rank; all 0 without a pipeline."""
    ranks = np.arange(len(document["placement"]["rank_to_gpu"]))
    stage, scale = np.zeros(ranks.size, np.int64), 1
    for axis in document["axes"]:
        if axis["name"].rstrip("0123456789") == "pp":
            stage += ranks // axis["stride"] % axis["size"] * scale
            scale *= axis["size"]
    return stage


def _first_of_each_digit(found: Sequence[Crossing]) -> list[Crossing]:
    shown: dict[str, Crossing] = {}
    for crossing in found:
        if not crossing.family["ends_only"]:
            shown.setdefault(part_of(crossing.family), crossing)
    return list(shown.values())


def _crossing_words(crossing: Crossing) -> str:
    if crossing.crossing == 0:
        return "none crosses"
    if crossing.crossing == crossing.groups:
        return (
            f"all {crossing.groups:,} groups cross" if crossing.groups > 1 else "its group crosses"
        )
    return f"{crossing.crossing:,} of {crossing.groups:,} groups cross"


def _range(crossing: Crossing) -> str:
    if crossing.least_domains == crossing.most_domains:
        return f"{crossing.most_domains:,}"
    return f"{crossing.least_domains:,} to {crossing.most_domains:,}"
