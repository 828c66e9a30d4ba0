"""One plan in a report: the cluster, who sits where, what crosses, the step, the memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cli.report_html_cluster import dead_words, drawing_of_cluster
from cli.report_html_memory import memory_section
from cli.report_html_part_used import part_sentence
from cli.report_html_parts import Num, Part, table
from cli.report_html_read import PlanFile
from cli.report_html_reasons import ports_table, reasons_section
from cli.report_html_seats import seats_section
from cli.report_html_step import step_section
from cli.report_html_tiers import TIER_HEADS, tier_rows
from cli.report_html_traffic import (
    Crossing,
    crossings,
    rank_order_by_tier,
    rank_order_bytes,
    total_between,
)
from cli.report_html_verdict import listed
from cli.report_html_words import (
    family_words,
    part_of,
    proof_words,
    seating_words,
    shorter_elsewhere,
)
from cli.report_pictures import safe
from cli.report_pictures_bars import Bar, bars, rival_bars
from cli.report_pictures_seats import heat
from cli.unfilled_words import unfilled_words
from planner.units import format_bytes, format_share, format_time
from planner.words import counted, plural

_PAIRS_SHOWN = 10
_AMONG = {"all": "", "as good before": ", those above at their least"}


def plan_parts(plan: PlanFile, index: int, name: str) -> list[Part]:
    """Return the parts of one plan.

    Args:
        plan: what is shown.
        index: its place among the plans; makes its anchors its own.
        name: what it is called where there are several, else empty.
    """
    found = crossings(plan)
    between = total_between(plan)
    made = [
        ("cluster", "Cluster", _cluster(plan)),
        ("seats", "Who sits where", seats_section(plan, index, found, between.sum(axis=1))),
        ("traffic", "What crosses", _traffic(plan, found)),
        (
            "between",
            f"Traffic between {plural(plan.document['cut']['tier'])}",
            _between(plan, between),
        ),
        ("step", "The step", step_section(plan.document)),
        ("memory", "Memory of each stage", memory_section(plan.document["memory"])),
    ]
    return [
        Part(anchor=f"{key}-{index}", title=title, body=body, plan=name)
        for key, title, body in made
    ]


def _cluster(plan: PlanFile) -> str:
    inputs = plan.document["inputs"]
    fabric = inputs["fabric"]
    seats_ = sum(d["capacity"] for d in plan.document["placement"]["domains"])
    spare = seats_ - plan.home.size
    domains, tier = len(plan.document["placement"]["domains"]), plan.document["cut"]["tier"]
    chip = fabric["accelerator"].get("name", "")
    return (
        f"{drawing_of_cluster(plan.document)}"
        f"<p>{safe(inputs['cluster'])}: {seats_:,} {safe(chip)} in "
        f"{safe(counted(domains, tier))}, "
        f"{f'{spare:,} of them' if spare else 'none'} without a rank. "
        f"{safe(dead_words(plan.document))} {safe(_unfilled(plan))}</p>"
        + table("Tiers, the innermost first; rates are of one GPU, one direction",
                TIER_HEADS, tier_rows(fabric["tiers"]))
    )  # fmt: skip


def free_words(free: Mapping[str, Any]) -> str:
    """Return of which cluster a free list names GPUs, where the plan's file says so.

    >>> free_words({"cluster_gpus": 1152, "cluster_supernode": 72})
    'Only the GPUs of a free list are counted, of 1,152 in supernodes of 72.'
    """
    if not {"cluster_gpus", "cluster_supernode"} <= free.keys():
        return "Only the GPUs of a free list are counted."
    return (
        f"Only the GPUs of a free list are counted, of {free['cluster_gpus']:,} in supernodes of "
        f"{free['cluster_supernode']:,}."
    )


def _unfilled(plan: PlanFile) -> str:
    """Return which supernodes the GPUs do not fill, and what a part of each brings; or nothing.

    Parts of supernodes that a free list names are as full as they can be: of how many, is said.
    """
    free = plan.document["inputs"].get("free")
    if free is not None:
        return free_words(free)
    tier = next(
        (one for one in plan.document["inputs"]["fabric"]["tiers"] if one["tier"] == "supernode"),
        None,
    )
    domains = plan.document["placement"]["domains"]
    sizes = [] if tier is None else tier["capacities"]
    known = [domain["capacity"] for domain in domains] == list(sizes)
    names = [str(d["name"]) for d in domains] if known else ()
    said = unfilled_words("supernode", sizes, names, plan.document["inputs"]["supernode"])
    part = plan.document.get("part_used")
    if part is None:
        return said
    return f"{said} {part_sentence(part, plan.document['step']['total_s'])}"


def cut_bars(plan: PlanFile) -> str:
    """Return the bars of what crosses: the bound, the plan, and what it must beat."""
    cut, ruled = plan.document["cut"], "rules" in plan.document
    of = ", of placements keeping the rules" if ruled else ""
    rows = [
        Bar(label="lower bound", value=cut["lower_bound_bytes"],
            text=f"{_bytes(cut['lower_bound_bytes'])}{of}", colour="c7"),
        Bar(label="this plan", value=cut["objective_bytes"],
            text=_bytes(cut["objective_bytes"]), colour="c0"),
        *(Bar(label=seating_words(b["name"]), value=b["cut_bytes"],
              text=f"{_bytes(b['cut_bytes'])}, step {format_time(b['step_s'])}", colour="c1")
          for b in plan.document["baselines"]),
    ]  # fmt: skip
    return rival_bars("Bytes across the cut, by seating", rows)


def _traffic(plan: PlanFile, found: tuple[Crossing, ...]) -> str:
    cut = plan.document["cut"]
    theirs = rank_order_bytes(plan)
    parted, still = [], []
    rows: list[list[str | Num]] = []
    for i, crossing in enumerate(found):
        family = crossing.family
        rows.append([
            family["family"], family["collective"].replace("_", "-"), family["phase"],
            Num(family["payload_bytes"], format_bytes(family["payload_bytes"])),
            Num(family["times_per_step"], f"{family['times_per_step']:,.6g}"),
            Num(crossing.cut_bytes, _bytes(crossing.cut_bytes)),
            *([Num(theirs[i], _bytes(theirs[i]))] if theirs is not None else []),
        ])  # fmt: skip
    for part in dict.fromkeys(part_of(c.family) for c in found):
        picked = [i for i, c in enumerate(found) if part_of(c.family) == part]
        ours = sum(found[i].cut_bytes for i in picked)
        heading = family_words(found[picked[0]].family)
        other = 0.0 if theirs is None else sum(theirs[i] for i in picked)
        if not ours and not other:
            still.append(heading)
            continue
        parted.append(Bar(label="this plan", value=ours, text=_bytes(ours), group=heading))
        if theirs is not None:
            parted.append(Bar(label="Megatron's rank order", value=other, text=_bytes(other),
                              colour="c1", group=heading))  # fmt: skip
    tiers = _tier_bars(plan)
    gap = (
        f"Gap to the bound: {format_share(cut['gap'])}; "
        f"{proof_words(plan.document)}. "
        f"Method: {cut['method'].strip()}."
        + (" The seatings beside it need not keep the rules." if "rules" in plan.document else "")
    )
    shorter = shorter_elsewhere(plan.document)
    missing = "" if theirs is not None else (
        "<p>By family Megatron's rank order is not shown: counted again it is not the file's "
        "baseline.</p>"
    )  # fmt: skip
    return (
        f"<h3>All families, bytes of one step across {safe(cut['tier'])} borders</h3>"
        + (cut_bars(plan) if any(one["cut_bytes"] for one in plan.document["baselines"])
           else "<p>Nothing crosses in any seating that was tried.</p>")
        + f"<p>{safe(gap)} {safe(shorter)}</p>"
        + ("<h3>By family</h3>" + bars("Bytes across the cut, by family", parted)
           if parted else "")
        + (f"<p>Nothing crosses of {safe(listed(still))}.</p>" if still else "")
        + missing
        + ("<h3>By tier</h3>" + bars("Bytes that leave the domains of each tier", tiers)
           if tiers else "")
        + table("Every kind of traffic of a step",
                ["Family", "Collective", "Phase", "Payload", "Times a step", "Crosses",
                 *(["In rank order"] if theirs is not None else [])], rows)
        + reasons_section(plan.document)
        + ports_table(plan.document)
    )  # fmt: skip


def _tier_bars(plan: PlanFile) -> list[Bar]:
    theirs = rank_order_by_tier(plan)
    rows: list[Bar] = []
    for tier in plan.document["tiers"]:
        name, time = tier["tier"], format_time(tier["cut_time_s"])
        if not tier["cut_bytes"] and not theirs.get(name):
            continue  # of the one cluster nothing leaves
        text = f"{_bytes(tier['cut_bytes'])}, {time} if not hidden"
        if "lower_bound_bytes" in tier:
            least, among = tier["lower_bound_bytes"], tier.get("among", "all")
            of = _AMONG.get(among, f", of placements {among}")
            rows.append(Bar(label="lower bound", value=least, text=f"{_bytes(least)}{of}",
                            colour="c7", group=name))  # fmt: skip
        rows.append(Bar(label="this plan", value=tier["cut_bytes"], text=text, group=name))
        if name in theirs:
            rows.append(Bar(label="Megatron's rank order", value=theirs[name], colour="c1",
                            text=_bytes(theirs[name]), group=name))  # fmt: skip
    return rows


def _bytes(value: float) -> str:
    return "none" if value == 0 else format_bytes(value)


def _between(plan: PlanFile, between: Any) -> str:
    domains = [str(domain["name"]) for domain in plan.document["placement"]["domains"]]
    tier = plan.document["cut"]["tier"]
    if len(domains) < 2 or not between.any():
        return f"<p>Nothing goes between {safe(plural(tier))}.</p>"
    upper = np.triu(between, 1)
    top = np.argsort(-upper, axis=None, kind="stable")[:_PAIRS_SHOWN]
    rows: list[list[str | Num]] = []
    for flat in top:
        i, j = divmod(int(flat), len(domains))
        if upper[i, j] > 0:
            rows.append(
                [domains[i], domains[j], Num(float(upper[i, j]), format_bytes(float(upper[i, j])))]
            )
    joined = "" if len(domains) <= 64 else f" Neighbouring {safe(plural(tier))} are taken together."
    return (
        f"<p>Bytes of one step between two {safe(plural(tier))}, both directions.{joined} Of a "
        "reduction only its sum is known; it is spread evenly over the pairs of a group's "
        "domains.</p>"
        + heat(f"Traffic between {plural(tier)}", between, domains, format_bytes)
        + table("The pairs with the most", ["One", "The other", "Bytes a step"], rows)
    )  # fmt: skip
