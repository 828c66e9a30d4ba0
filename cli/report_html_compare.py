"""Several candidates side by side: table, speed, cuts, and the front of time against traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cli.report_html_candidates import Candidate
from cli.report_html_cut import least_terms, least_words
from cli.report_html_memory import held_pieces, used_bytes
from cli.report_html_parts import Num, table
from cli.report_html_step import path_pieces
from cli.report_html_words import DIGITS, layout_words, small_share
from cli.report_pictures import safe
from cli.report_pictures_bars import Bar, bars, stacked
from cli.report_pictures_plane import Axis, Point, plane
from cli.report_words import close_words
from planner.units import format_bytes, format_power, format_share, format_time


def side_by_side(all_of_them: Sequence[Candidate], head: str, pick: Candidate | None) -> str:
    """Return what compares the candidates.

    Args:
        all_of_them: at least one.
        head: what the first column calls one.
        pick: the one whose bars stand out, if any: what is to be taken of these.
    """
    return (
        _table(all_of_them, head)
        + (f'<p>In the next three pictures {safe(pick.name)} is blue.</p>'
           if pick is not None and len(all_of_them) > 1 else "")
        + "<h3>Tokens a second</h3>"
        + bars("Tokens a second by candidate", [_speed(one, pick) for one in all_of_them])
        + "<h3>What falls on the cut, by family</h3>"
        + _falls(all_of_them, pick)
        + "<h3>Time of a step against bytes that cross</h3>"
        + plane("Time of a step against bytes across the cut", _points(all_of_them, pick),
                Axis(name="time of a step, with the range of 90 % of such estimates",
                     text=format_time),
                Axis(name="bytes of one step across the cut", text=format_bytes))
        + "<p>Filled points are on the front: no other candidate that fits has both a shorter step "
        "and fewer bytes. Part of each range is an error that all share, so two may be told apart "
        "though their ranges overlap: the recommendation says which cannot be.</p>"
        + "<h3>The step, part by part</h3>" + _steps(all_of_them)
        + "<h3>Memory of the fullest GPU</h3>" + _memories(all_of_them)
    )  # fmt: skip


def flips_of_speed(all_of_them: Sequence[Candidate]) -> str:
    """Return how many fewer tokens each other candidate trains, and at which price it wins."""
    order = sorted((one for one in all_of_them if one.fits), key=lambda one: -one.best_tokens_per_s)
    rows: list[list[str | Num]] = [
        [order[0].name, one.name, Num(1 - ratio, small_share(1 - ratio)),
         Num(1 / ratio - 1, small_share(1 / ratio - 1)), Num(ratio, format_share(ratio))]
        for one in order[1:]
        if (ratio := one.best_tokens_per_s / order[0].best_tokens_per_s) > 0
    ]  # fmt: skip
    if not rows:
        return ""
    by = (
        " All three are of the fastest layout found on each, by which they are ranked."
        if any(one.best_tokens_per_s > one.tokens_per_s for one in order)
        else ""
    )
    return (
        table("Where the winner flips by speed or price",
              ["From the fastest", "To", "Fewer tokens/s", "Flips when faster by",
               "Or at this share of its price"], rows)
        + f"<p>At that share of what the fastest costs an hour, both cost the same a token.{by}</p>"
    )  # fmt: skip


def _table(all_of_them: Sequence[Candidate], head: str) -> str:
    powered = all(one.power_w for one in all_of_them)
    priced = all(one.cost is not None for one in all_of_them)
    faster = any(one.best_step_s != one.step["total_s"] for one in all_of_them)
    heads = [head, "Model", "GPUs", "Cluster", "Layout", "Step", *(["Fastest"] if faster else []),
             "Tokens/s", "MFU", "Crosses",
             "Least", "Memory", "GPU has", "Fits", *(["Power"] if powered else []),
             *(["A million tokens"] if priced else [])]  # fmt: skip
    rows: list[list[str | Num]] = [
        [one.name, one.model, Num(one.gpus, f"{one.gpus:,}"), one.cluster,
         layout_words(one.layout), Num(one.step["total_s"], format_time(one.step["total_s"])),
         *([Num(one.best_step_s, format_time(one.best_step_s))] if faster else []),
         Num(one.tokens_per_s, f"{one.tokens_per_s:,.0f}"),
         Num(one.step["mfu"], format_share(one.step["mfu"])),
         Num(one.cut_bytes, format_bytes(one.cut_bytes)), Num(one.least_bytes, least_words(one)),
         Num(used_bytes(one.memory), format_bytes(used_bytes(one.memory))),
         Num(one.memory["capacity_bytes"], format_bytes(one.memory["capacity_bytes"])),
         "within memory" if one.fits else "beyond memory",
         *([Num(one.power_w, format_power(one.power_w))] if powered else []),
         *([Num(one.cost.amount, one.cost.text)] if priced and one.cost else [])]
        for one in all_of_them
    ]  # fmt: skip
    if all(one.name == one.cluster for one in all_of_them):  # one column says it
        heads.remove("Cluster")
        rows = [[*row[:3], *row[4:]] for row in rows]
    told = _told_once(heads, rows, ("Model", "GPUs", "Cluster", "Fits"))
    close = [
        f"{one.name}: {words}" for one in all_of_them
        if (words := close_words(used_bytes(one.memory), one.memory["capacity_bytes"]))
    ]  # fmt: skip
    return (
        (f"<p>All of them: {safe(told.words)}.</p>" if told.words else "")
        + table("The candidates", told.heads, told.rows)
        + f"<p>{safe(least_terms(all_of_them))} Memory is that of the fullest GPU with its margin "
        "for fragments: what must fit."
        + (
            " Fastest is the step of the fastest layout found on the cluster, by which clusters "
            "are ranked and every share between them is told; all else is of the layout shown."
            if faster
            else ""
        )
        + "</p>"
        + "".join(f'<p class="warn">{safe(words)}</p>' for words in close)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """A table whose columns of one value are told in *words* instead."""

    words: str
    heads: list[str]
    rows: list[list[str | Num]]


def _told_once(heads: list[str], rows: list[list[str | Num]], columns: Sequence[str]) -> _Told:
    """Return the table without those of *columns* that are the same in every row."""
    same = [
        i for i, head in enumerate(heads)
        if head in columns and all(row[i] == rows[0][i] for row in rows)
    ]  # fmt: skip
    words = []
    for i in same:
        cell = rows[0][i]
        words.append(f"{cell.text} {heads[i]}" if isinstance(cell, Num) else f"{cell}")
    kept = [i for i in range(len(heads)) if i not in same]
    return _Told(
        words=", ".join(words),
        heads=[heads[i] for i in kept],
        rows=[[row[i] for i in kept] for row in rows],
    )


def _speed(one: Candidate, pick: Candidate | None) -> Bar:
    return Bar(label=one.name, value=one.tokens_per_s, text=f"{one.tokens_per_s:,.0f} tokens/s",
               colour=_colour(one, pick))  # fmt: skip


def _colour(one: Candidate, pick: Candidate | None) -> str:
    return "c0" if one is pick else "c7"


def _falls(all_of_them: Sequence[Candidate], pick: Candidate | None) -> str:
    """Return a bar for each digit and candidate: what of it crosses."""
    digits = dict.fromkeys(
        digit for one in all_of_them for digit, value in one.crossed.items() if value
    )
    rows = [
        Bar(label=one.name, value=value, text=format_bytes(value) if value else "none",
            group=f"{digit.upper()} ({DIGITS[digit]})", colour=_colour(one, pick))
        for digit in digits for one in all_of_them for value in [one.crossed.get(digit, 0.0)]
    ]  # fmt: skip
    if not rows:
        return "<p>Nothing crosses, on any of them.</p>"
    return bars("Bytes of a step across the cut, by family and candidate", rows)


def _steps(all_of_them: Sequence[Candidate]) -> str:
    longest = max(one.step["total_s"] for one in all_of_them)
    rows = [(one.name, path_pieces(one.step)) for one in all_of_them]
    return stacked("The step, part by part", rows, longest, format_time(longest))


def _memories(all_of_them: Sequence[Candidate]) -> str:
    most = max(one.memory["capacity_bytes"] for one in all_of_them)
    rows = [
        (one.name, held_pieces(one.memory["parts"], one.memory.get("margin_bytes", 0.0)))
        for one in all_of_them
    ]
    return stacked("Memory of the fullest GPU", rows, most, f"{format_bytes(most)} on a GPU")


def _points(all_of_them: Sequence[Candidate], pick: Candidate | None) -> list[Point]:
    places = [(one.step["total_s"], one.cut_bytes) for one in all_of_them]
    points = []
    for one, place in zip(all_of_them, places, strict=True):
        low, high = one.step["interval_s"]
        beaten = any(
            other.fits and theirs != place and theirs[0] <= place[0] and theirs[1] <= place[1]
            for other, theirs in zip(all_of_them, places, strict=True)
        )
        points.append(
            Point(label=one.name, x=place[0], low=low, high=high, y=place[1],
                  best=one.fits and not beaten, colour=_colour(one, pick),
                  text=f"{format_time(place[0])}, {format_bytes(place[1])}")
        )  # fmt: skip
    return points
