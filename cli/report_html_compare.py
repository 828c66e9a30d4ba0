"""Several plans side by side: table, time of a step, and the front of time against traffic."""

from __future__ import annotations

from collections.abc import Sequence

from cli.report_html_bill import Account, costs_of
from cli.report_html_parts import Num, Part, table
from cli.report_html_read import PlanFile
from cli.report_html_traffic import crossings
from cli.report_html_words import DIGITS, layout_words, small_share
from cli.report_pictures import safe
from cli.report_pictures_bars import Bar, bars
from cli.report_pictures_plane import Axis, Point, plane
from planner.units import format_bytes, format_power, format_share, format_time


def candidates(
    plans: Sequence[PlanFile], names: Sequence[str], found: Sequence[Account | None]
) -> Part:
    """Return the part that compares *plans*.

    Args:
        plans: at least two.
        names: what they are called.
        found: what each takes to run; money is shown where it is known of all.
    """
    costs = costs_of(found)
    heads = ["Plan", "Model", "GPUs", "Cluster", "Layout", "Step", "Tokens/s", "MFU", "Cut", "Gap",
             "Memory", "Fits"]  # fmt: skip
    powered = all(one is not None and one.run.power_w for one in found)
    heads += ["Power"] if powered else []
    heads += ["A million tokens"] if costs else []
    rows: list[list[str | Num]] = []
    for i, (plan, name) in enumerate(zip(plans, names, strict=True)):
        d = plan.document
        inputs, step, cut, memory = d["inputs"], d["step"], d["cut"], d["memory"]
        rows.append([
            name, inputs["model"], Num(inputs["gpus"], f"{inputs['gpus']:,}"), inputs["cluster"],
            layout_words(d), Num(step["total_s"], format_time(step["total_s"])),
            Num(step["tokens_per_s"], f"{step['tokens_per_s']:,.0f}"),
            Num(step["mfu"], format_share(step["mfu"])),
            Num(cut["objective_bytes"], format_bytes(cut["objective_bytes"])),
            Num(cut["gap"], format_share(cut["gap"])),
            Num(memory["worst_stage_bytes"], format_bytes(memory["worst_stage_bytes"])),
            "yes" if memory["fits"] else "no",
            *([_power(found[i])] if powered else []),
            *([Num(costs[i].amount, costs[i].text)] if costs else []),
        ])  # fmt: skip
    common, heads, rows = _without_common(heads, rows, ("Model", "GPUs", "Cluster"))
    speed = [
        Bar(label=name, value=p.document["step"]["tokens_per_s"],
            text=f"{p.document['step']['tokens_per_s']:,.0f} tokens/s", colour="c0")
        for p, name in zip(plans, names, strict=True)
    ]  # fmt: skip
    body = (
        (f"<p>All of them: {safe(common)}.</p>" if common else "")
        + table("The candidates", heads, rows)
        + "<h3>Tokens a second</h3>"
        + bars("Tokens a second by candidate", speed)
        + "<h3>What falls on the cut, by family</h3>"
        + bars("Bytes of a step across the cut, by family and candidate", _falls(plans, names))
        + "<h3>Time of a step against bytes that cross</h3>"
        + plane("Time of a step against bytes across the cut", _points(plans, names),
                Axis(name="time of a step, with the range of 90 % of such estimates",
                     text=format_time),
                Axis(name="bytes of one step across the cut", text=format_bytes))
        + "<p>Filled points are on the front: no other candidate that fits has both a shorter step "
        "and fewer bytes. Where the ranges of two overlap, their order is in doubt.</p>"
        + table("Where the winner flips",
                ["From the fastest", "To", "Flips when faster by", "Or at this share of its price"],
                _flips(plans, names))
        + "<p>At that share of what the fastest costs an hour, both cost the same a token.</p>"
    )  # fmt: skip
    return Part(anchor="candidates", title="Candidates side by side", body=body)


def _power(account: Account | None) -> Num:
    power_w = account.run.power_w if account else 0.0
    return Num(power_w, format_power(power_w))


def _without_common(
    heads: list[str], rows: list[list[str | Num]], columns: Sequence[str]
) -> tuple[str, list[str], list[list[str | Num]]]:
    """Return in words those of *columns* that are the same in every row, and the rest."""
    same = [
        i for i, head in enumerate(heads)
        if head in columns and all(row[i] == rows[0][i] for row in rows)
    ]  # fmt: skip
    words = []
    for i in same:
        cell = rows[0][i]
        words.append(f"{cell.text} {heads[i]}" if isinstance(cell, Num) else f"{cell}")
    kept = [i for i in range(len(heads)) if i not in same]
    return ", ".join(words), [heads[i] for i in kept], [[row[i] for i in kept] for row in rows]


def _falls(plans: Sequence[PlanFile], names: Sequence[str]) -> list[Bar]:
    """Return a bar for each digit and candidate: what of it crosses."""
    cuts: dict[str, list[float]] = {}
    for i, plan in enumerate(plans):
        for crossing in crossings(plan):
            digit = crossing.family["digit"]
            cuts.setdefault(digit, [0.0] * len(plans))[i] += crossing.cut_bytes
    return [
        Bar(label=name, value=value, text=format_bytes(value) if value else "none",
            group=f"{digit.upper()} ({DIGITS[digit]})")
        for digit, values in cuts.items() if any(values)
        for name, value in zip(names, values, strict=True)
    ]  # fmt: skip


def _points(plans: Sequence[PlanFile], names: Sequence[str]) -> list[Point]:
    places = [(p.document["step"]["total_s"], p.document["cut"]["objective_bytes"]) for p in plans]
    fits = [p.document["memory"]["fits"] for p in plans]
    points = []
    for i, (plan, name) in enumerate(zip(plans, names, strict=True)):
        step_s, cut_bytes = places[i]
        low, high = plan.document["step"]["interval_s"]
        beaten = any(
            fits[j] and other != places[i] and other[0] <= step_s and other[1] <= cut_bytes
            for j, other in enumerate(places)
        )
        points.append(
            Point(label=name, x=step_s, low=low, high=high, y=cut_bytes,
                  best=fits[i] and not beaten,
                  text=f"{format_time(step_s)}, {format_bytes(cut_bytes)}")
        )  # fmt: skip
    return points


def _flips(plans: Sequence[PlanFile], names: Sequence[str]) -> list[list[str | Num]]:
    rates = {
        i: float(p.document["step"]["tokens_per_s"])
        for i, p in enumerate(plans)
        if p.document["memory"]["fits"]
    }
    order = sorted(rates, key=lambda i: -rates[i])
    return [
        [names[order[0]], names[i],
         Num(rates[order[0]] / rates[i] - 1, small_share(rates[order[0]] / rates[i] - 1)),
         Num(rates[i] / rates[order[0]], format_share(rates[i] / rates[order[0]]))]
        for i in order[1:] if rates[i] > 0
    ]  # fmt: skip
