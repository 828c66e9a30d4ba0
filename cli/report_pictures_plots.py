"""The sheets of ``--plot`` on step, search and compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.report_choice import entry_name
from cli.report_html_step import line_of, parts_picture, step_keys, timeline_key, timeline_picture
from cli.report_html_words import DIGITS, layout_words
from cli.report_pictures_bars import Bar, bars
from cli.report_pictures_file import Sheet, key
from cli.report_pictures_plane import Axis, Point, plane
from cli.report_timeline import StepLine
from planner.steptime.trace import ALIKE
from planner.units import format_bytes, format_time

_BEST = "The best layouts; of ties the one with whole weights and few stages is first"
_FAR = 3  # a layout that takes so many times as long as the best one is no choice


def step_sheet(document: Mapping[str, Any], stages: Mapping[str, Any]) -> Sheet:
    """Return the sheet of a step: in time, and part by part.

    Args:
        document: of ``planner step --json``.
        stages: as ``cli.plan_stages.stages_document`` has it.
    """
    inputs = document["inputs"]
    line, step = line_of({**document, "stages": stages}), document["step"]
    timed = [] if line is None else [
        (_in_time(line), timeline_picture(line, step)),
        ("", key(timeline_key(line, step))),
    ]  # fmt: skip
    title = (
        f"{format_time(step['total_s'])} a step: {inputs['model']} on {inputs['gpus']:,} GPUs of "
        f"{inputs['cluster']}, {layout_words(inputs['layout'])}"
    )
    return Sheet(
        title=title,
        pictures=[*timed, ("Part by part", parts_picture(step)), ("", key(step_keys(step)))],
    )


def _in_time(line: StepLine) -> str:
    return "In time, stage by stage" + (f"; {ALIKE}" if line.stages > 1 else "")


def search_sheet(document: Mapping[str, Any]) -> Sheet:
    """Return the sheet of a search: the best layouts, and the front of time against memory.

    Args:
        document: of ``planner search --json``.
    """
    inputs, best = document["inputs"], document["best"]
    rows = [
        Bar(label="step", value=one["step"]["total_s"],
            group=f"{i + 1}. {layout_words(one['layout'])}",
            text=format_time(one["step"]["total_s"]) + _tie(one, i))
        for i, one in enumerate(best)
    ]  # fmt: skip
    pictures = [(_BEST, bars("Time of a step by layout", rows))]
    front = document["pareto"]
    near_s = _FAR * min((one["step_s"] for one in front), default=0.0)
    near = [one for one in front if one["step_s"] <= near_s]
    if near:
        text = f"The front of time against memory, {len(near)} layouts: none is better in both"
        if len(near) < len(front):
            text += f"; {len(front) - len(near)} take more than {_FAR} times as long"
        pictures.append((text, _front(near)))
    return Sheet(
        title=f"{inputs['model']} on {inputs['gpus']:,} GPUs of {inputs['cluster']}: "
        f"{document['layouts_considered']:,} layouts considered",
        pictures=pictures,
    )


def _front(near: Sequence[Mapping[str, Any]]) -> str:
    points = [
        Point(label="", colour="c0",
              x=one["step_s"], low=one["step_s"], high=one["step_s"], y=one["memory_bytes"],
              text=f"{layout_words(one['layout'])}: {format_time(one['step_s'])}, "
                   f"{format_bytes(one['memory_bytes'])}", best=True)
        for one in near
    ]  # fmt: skip
    return plane(
        "Time of a step against memory",
        points,
        Axis(name="time of a step", text=format_time),
        Axis(name="memory of the fullest GPU", text=format_bytes),
    )


def _tie(one: Mapping[str, Any], place: int) -> str:
    return ", a tie with the first" if place and one["tie_with_first"] else ""


def compare_sheet(document: Mapping[str, Any]) -> Sheet:
    """Return the sheet of a comparison: tokens a second, and what falls on each cut.

    Args:
        document: of ``planner compare --json``.
    """
    ranked = document["ranked"]
    speed = [
        Bar(label="tokens a second", value=one["step"]["tokens_per_s"],
            text=f"{one['step']['tokens_per_s']:,.0f}{_tie(one, i)}",
            group=f"{i + 1}. {entry_name(one, ranked)}, {layout_words(one['layout'])}")
        for i, one in enumerate(ranked)
    ]  # fmt: skip
    digits = dict.fromkeys(
        digit for one in ranked for digit, crossed in one["crossed_bytes"].items() if crossed
    )
    cuts = [
        Bar(label=entry_name(one, ranked), value=one["crossed_bytes"].get(digit, 0.0),
            text=_bytes(one["crossed_bytes"].get(digit, 0.0)),
            group=f"{digit.upper()} ({DIGITS[digit]})", colour="c1")
        for digit in digits for one in ranked
    ]  # fmt: skip
    pictures = [("Tokens a second", bars("Tokens a second by candidate", speed))]
    if cuts:
        pictures.append(
            ("Bytes of a step across supernodes", bars("Bytes across the cut by family", cuts))
        )
    first = ranked[0]
    return Sheet(title=f"{len(ranked)} candidates: {entry_name(first, ranked)} first",
                 pictures=pictures)  # fmt: skip


def _bytes(value: float) -> str:
    return "none" if value == 0 else format_bytes(value)
