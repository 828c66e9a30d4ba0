"""The step of a plan: in time, part by part, and its critical path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.report_html_parts import Num, table
from cli.report_html_words import small_share
from cli.report_pictures import Piece, legend, safe
from cli.report_pictures_bars import stacked
from cli.report_pictures_timeline import PASSES, step_picture
from cli.report_timeline import MOST_PASSES, StepLine, passes_drawn, step_line
from cli.report_words import part_words
from planner.steptime.trace import ALIKE
from planner.units import format_share, format_time

_STRIPED = "stripes"
_LOOKS = {
    "gemm": ("c0", ""), "recompute": ("c0", _STRIPED), "attention": ("c4", ""),
    "memory": ("c3", ""), "host": ("c3", _STRIPED), "bubble": ("room", ""),
    "straggling": ("c7", ""), "update": ("c6", ""), "fixed": ("c6", _STRIPED),
}  # fmt: skip
_WIRE_LOOKS = {
    "tp": ("c5", ""), "cp": ("c5", _STRIPED), "ep": ("c1", ""), "dp": ("c1", _STRIPED),
    "pp": ("c2", ""),
}  # fmt: skip
_OTHER_LOOK = ("c7", _STRIPED)
_CLOSE_SHARE = 0.005  # passes and closed form that differ by less are said to agree


def step_section(document: Mapping[str, Any]) -> str:
    """Return the step of a plan: in time, part by part, and the critical path as a table."""
    step = document["step"]
    low, high = step["interval_s"]
    exposed, whole = sum(step["exposed_s"].values()), sum(step["communication_s"].values())
    traffic = (
        f"Of {format_time(whole)} of communication {format_time(exposed)} is exposed: it lengthens "
        "the step."
        if whole > 0
        else "Nothing is communicated."
    )
    return (
        f"<p>A step takes {safe(format_time(step['total_s']))}; 90 % of such estimates fall "
        f"between {safe(format_time(low))} and {safe(format_time(high))}. {safe(traffic)}</p>"
         "<h3>In time, stage by stage</h3>"
        + _in_time(document)
        + "<h3>Part by part</h3>"
        + parts_picture(step)
        + table("The critical path",
                ["Part", "In the step", "Share", "Hidden", "Gain if free", "Premise"],
                _path_rows(step))
    )  # fmt: skip


def _in_time(document: Mapping[str, Any]) -> str:
    line = line_of(document)
    if line is None:
        return (
            "<p>Not drawn: too many passes.</p>"
            if "stages" in document
            else "<p>Not drawn: this plan file does not say what each stage takes. Make it again "
            "with <code>planner place --json</code>.</p>"
        )
    step = document["step"]
    return (
        f"<p>{safe(timeline_words(document, line))}</p>{timeline_picture(line, step)}"
        f"{legend(timeline_key(line, step))}"
    )


def line_of(document: Mapping[str, Any]) -> StepLine | None:
    """Return a plan's step in time; None where the plan does not say enough, or far too much."""
    if "stages" not in document or passes_drawn(document["stages"]) > MOST_PASSES:
        return None
    return step_line(document["stages"])


def timeline_picture(line: StepLine, step: Mapping[str, Any]) -> str:
    """Return the picture of a step in time."""
    return step_picture(line, _tail(step))


def timeline_key(line: StepLine, step: Mapping[str, Any]) -> list[Piece]:
    """Return the key of ``timeline_picture``: what it has, and what follows with its time."""
    kinds = {span.kind for span in line.spans}
    seen = {
        "weight gradients apart": "W" in kinds,
        "traffic that lengthens the step": any(span.shown_s for span in line.spans),
        "traffic hidden under the passes": any(span.hidden_s for span in line.spans),
        "idle: the pipeline fills, drains or waits": max(line.idle_s) > 1e-6 * line.pipeline_s,
    }
    passes = [piece for piece in PASSES if seen.get(piece.label, True)]
    return [*passes, *(piece for piece in _tail(step) if piece.value > 0)]


def _tail(step: Mapping[str, Any]) -> list[Piece]:
    """Return what follows the passes on every stage [s]."""
    follows = (
        ("gradients and parameters that show", step["exposed_s"].get("dp", 0.0), "dp"),
        ("optimizer", step["update_s"], "update"),
        ("data and logging", step.get("fixed_s", 0.0), "fixed"),
        ("waiting for the slowest GPU", step.get("straggling_s", 0.0), "straggling"),
    )
    looks = {**_LOOKS, "dp": ("c5", "")}
    return [
        Piece(label=label, value=seconds, text=format_time(seconds), colour=looks[name][0],
              pattern=looks[name][1])
        for label, seconds, name in follows
    ]  # fmt: skip


def timeline_words(document: Mapping[str, Any], line: StepLine) -> str:
    """Return what a reader of the time line must know: what is left out, and what is not drawn."""
    stages, step = document["stages"], document["step"]
    virtual = f" with {stages['chunks']} virtual stages each" if stages["chunks"] > 1 else ""
    through = f" through {line.stages} stages" if line.stages > 1 else ""
    first = (
        f"Every pass of {stages['micro_batches']:,} micro-batches{through}, schedule "
        f"{stages['schedule']}{virtual}; the line above the rows is the longest chain: what is on "
        f"it sets the step. The stages work {format_share(line.busy_share)} of the pipeline's time."
    )
    said = [first]
    if line.stages > 1:
        said.append(f"Of the stages {ALIKE}.")
    if line.left_out:
        said.append("What repeats itself in the middle is left out, and counted.")
    if len(line.rows) < line.stages:
        said.append(f"Of {line.stages} stages {len(line.rows)} are shown.")
    apart = line.pipeline_s / stages["pipeline_s"] - 1 if stages["pipeline_s"] else 0.0
    said.append(
        f"Pass by pass the pipeline takes {format_time(line.pipeline_s)}; the step counts with "
        f"{format_time(stages['pipeline_s'])} from a closed form"
        + (
            ", which agrees."
            if abs(apart) <= _CLOSE_SHARE
            else f", {format_share(abs(apart))} off."
        )
    )
    waiting = step.get("straggling_s", 0.0)
    if waiting > 0:
        said.append(
            f"Waiting for the slowest of many GPUs, {format_time(waiting)}, is drawn at the end; "
            "it stretches all passes alike."
        )
    return " ".join(said)


def parts_picture(step: Mapping[str, Any]) -> str:
    """Return the step as one bar of parts, and what is hidden under it as another."""
    return stacked(
        "The step, part by part", _part_rows(step), step["total_s"], format_time(step["total_s"])
    )


def step_keys(step: Mapping[str, Any]) -> list[Piece]:
    """Return the pieces of ``parts_picture``, for a key of their own."""
    return [piece for _, pieces in _part_rows(step) for piece in pieces]


def path_pieces(step: Mapping[str, Any]) -> list[Piece]:
    """Return the parts of a step's critical path; they add up to the step."""
    path = [entry for entry in step["critical_path"] if entry["seconds"] > 0]
    shown = [_piece(entry, entry["seconds"]) for entry in path]
    rest = step["total_s"] - sum(entry["seconds"] for entry in path)
    if rest > 1e-6 * step["total_s"]:
        shown.append(Piece(label="in no part", value=rest, text=format_time(rest), colour="hatch"))
    return shown


def _part_rows(step: Mapping[str, Any]) -> list[tuple[str, Sequence[Piece]]]:
    hidden = [
        _piece(entry, entry["own_s"] - entry["seconds"], ", hidden")
        for entry in step["critical_path"]
        if entry["kind"] == "communication" and entry["own_s"] - entry["seconds"] > 1e-9
    ]
    lines: list[tuple[str, Sequence[Piece]]] = [("on the path", path_pieces(step))]
    return [*lines, ("hidden under it", hidden)] if hidden else lines


def _path_rows(step: Mapping[str, Any]) -> list[list[str | Num]]:
    return [
        [part_words(e["kind"], e["name"]), Num(e["seconds"], format_time(e["seconds"])),
         Num(e["share"], small_share(e["share"])),
         Num(max(e["own_s"] - e["seconds"], 0), format_time(max(e["own_s"] - e["seconds"], 0))),
         Num(e["gain_if_free_s"], format_time(e["gain_if_free_s"])), str(e["premise"])]
        for e in step["critical_path"]
        if e["own_s"] > 0 or e["seconds"] > 0
    ]  # fmt: skip


def _piece(entry: Mapping[str, Any], value: float, more: str = "") -> Piece:
    looks = _WIRE_LOOKS if entry["kind"] == "communication" else _LOOKS
    colour, pattern = looks.get(entry["name"], _OTHER_LOOK)
    return Piece(
        label=part_words(entry["kind"], entry["name"]) + more, value=value,
        text=format_time(value), colour=colour, pattern=pattern,
    )  # fmt: skip
