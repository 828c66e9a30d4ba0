"""The step of a plan in time, part by part, and what each stage holds in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.report_html_parts import Num, table
from cli.report_html_words import part_words
from cli.report_pictures import Piece, legend, safe, stacked
from cli.report_pictures_timeline import KEY, Tail, step_picture
from cli.report_timeline import MOST_PASSES, StepLine, passes_drawn, step_line
from planner.units import format_bytes, format_share, format_time

_PATH_COLOURS = {"gemm": "c0", "attention": "c4", "memory": "c3", "recompute": "c7", "host": "c7",
                 "bubble": "c7", "update": "c6", "fixed": "c6"}  # fmt: skip
_WIRE_COLOURS = {"tp": "c5", "ep": "c1", "pp": "c2", "dp": "c6"}
_MEMORY_ORDER = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
_STAGES = {"first": "first", "middle": "second", "last": "last"}
_CLOSE_SHARE = 0.005  # passes and closed form that differ by less are said to agree


def step_section(document: Mapping[str, Any]) -> str:
    """Return the step of a plan: in time, part by part, and the critical path as a table."""
    step = document["step"]
    low, high = step["interval_s"]
    exposed, whole = sum(step["exposed_s"].values()), sum(step["communication_s"].values())
    return (
        f"<p>A step takes {safe(format_time(step['total_s']))}; 90 % of such estimates fall "
        f"between {safe(format_time(low))} and {safe(format_time(high))}. Of "
        f"{safe(format_time(whole))} of communication {safe(format_time(exposed))} is exposed: it "
        "lengthens the step.</p>"
         "<h3>In time, stage by stage</h3>"
        + _in_time(document)
        + "<h3>Part by part</h3>"
        + parts_picture(step)
        + table("The critical path",
                ["Part", "In the step", "Share", "Hidden", "Gain if free", "Premise"],
                _path_rows(step))
    )  # fmt: skip


def _in_time(document: Mapping[str, Any]) -> str:
    if not _drawable(document):
        return (
            "<p>Not drawn: too many passes.</p>"
            if "stages" in document
            else "<p>Not drawn: this plan file does not say what each stage takes. Make it again "
            "with <code>planner place --json</code>.</p>"
        )
    line = step_line(document["stages"])
    key = legend([Piece(label=text, value=0, text="", colour=colour) for colour, text in KEY])
    return f"<p>{safe(timeline_words(document, line))}</p>{timeline_picture(document)}{key}"


def _drawable(document: Mapping[str, Any]) -> bool:
    return "stages" in document and passes_drawn(document["stages"]) <= MOST_PASSES


def timeline_picture(document: Mapping[str, Any]) -> str:
    """Return the picture of a plan's step in time; empty where the plan does not say enough."""
    if not _drawable(document):
        return ""
    step = document["step"]
    tail = [
        Tail(label="gradients and parameters that show", seconds=step["exposed_s"].get("dp", 0.0),
             colour="c5"),
        Tail(label="optimizer", seconds=step["update_s"], colour="c6"),
        Tail(label="data and logging", seconds=step.get("fixed_s", 0.0), colour="c7"),
    ]  # fmt: skip
    return step_picture(step_line(document["stages"]), tail)


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
            f"Not drawn: waiting for the slowest of many GPUs, {format_time(waiting)}, which "
            "stretches all passes alike."
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


def _part_rows(step: Mapping[str, Any]) -> list[tuple[str, Sequence[Piece]]]:
    path = [entry for entry in step["critical_path"] if entry["seconds"] > 0]
    shown = [_piece(entry, entry["seconds"]) for entry in path]
    rest = step["total_s"] - sum(entry["seconds"] for entry in path)
    if rest > 1e-6 * step["total_s"]:
        shown.append(Piece(label="in no part", value=rest, text=format_time(rest), colour="hatch"))
    hidden = [
        _piece(entry, entry["own_s"] - entry["seconds"], ", hidden")
        for entry in step["critical_path"]
        if entry["kind"] == "communication" and entry["own_s"] - entry["seconds"] > 1e-9
    ]
    lines: list[tuple[str, Sequence[Piece]]] = [("on the path", shown)]
    return [*lines, ("hidden under it", hidden)] if hidden else lines


def _path_rows(step: Mapping[str, Any]) -> list[list[str | Num]]:
    return [
        [part_words(e), Num(e["seconds"], format_time(e["seconds"])),
         Num(e["share"], format_share(e["share"])),
         Num(max(e["own_s"] - e["seconds"], 0), format_time(max(e["own_s"] - e["seconds"], 0))),
         Num(e["gain_if_free_s"], format_time(e["gain_if_free_s"])), str(e["premise"])]
        for e in step["critical_path"]
        if e["own_s"] > 0 or e["seconds"] > 0
    ]  # fmt: skip


def _piece(entry: Mapping[str, Any], value: float, more: str = "") -> Piece:
    wire = entry["kind"] == "communication"
    colour = (_WIRE_COLOURS if wire else _PATH_COLOURS).get(entry["name"], "c7")
    return Piece(
        label=part_words(entry) + more, value=value, text=format_time(value), colour=colour
    )


def memory_section(memory: Mapping[str, Any]) -> str:
    """Return what one GPU of each kind of stage holds, against what it has."""
    margin = memory.get("margin_bytes", 0.0)
    full, used = memory["capacity_bytes"], memory["worst_stage_bytes"] + margin
    apart = full - used
    verdict = (
        f"it fits, with {format_bytes(apart)} to spare"
        if memory["fits"]
        else f"it does not fit: {format_bytes(-apart)} too much"
    )
    fullest = memory.get("stage", "fullest")
    told = (
        f"The {_STAGES.get(fullest, fullest)} stage is the fullest: a GPU of it needs "
        f"{format_bytes(used)} with its margin, of {format_bytes(full)}; {verdict}."
    )
    by_stage = memory.get("by_stage", ())
    if len(by_stage) > 2:
        told += " Of the stages between the ends the second keeps the most micro-batches."
    stages = by_stage or [{"kind": "fullest", "stage": -1, "parts": memory["parts"]}]
    lines = [(_stage_words(one), _held(one["parts"], margin)) for one in stages]
    rows: list[list[str | Num]] = [
        [_stage_words(one),
         *(Num(one["parts"].get(p, 0.0), format_bytes(one["parts"].get(p, 0.0)))
           for p in _MEMORY_ORDER),
         Num(sum(one["parts"].values()), format_bytes(sum(one["parts"].values())))]
        for one in stages
    ]  # fmt: skip
    return (
        f"<p>{safe(told)}</p>"
        + stacked("Memory of one GPU", lines, full, f"{format_bytes(full)} on the GPU")
        + table("Memory of one GPU, without the margin", ["Stage", *map(str.title, _MEMORY_ORDER),
                "All"], rows)
    )  # fmt: skip


def _stage_words(one: Mapping[str, Any]) -> str:
    return f"stage {one['stage']}" if one["stage"] >= 0 else "fullest GPU"


def _held(parts: Mapping[str, float], margin: float) -> list[Piece]:
    pieces = [
        Piece(label=name, value=parts[name], text=format_bytes(parts[name]),
              colour=f"c{_MEMORY_ORDER.index(name) if name in _MEMORY_ORDER else 7}")
        for name in sorted(parts, key=lambda n: (n not in _MEMORY_ORDER,
                           _MEMORY_ORDER.index(n) if n in _MEMORY_ORDER else 0, n))
        if parts[name] > 0
    ]  # fmt: skip
    if margin > 0:
        pieces.append(
            Piece(label="margin", value=margin, text=format_bytes(margin), colour="hatch")
        )
    return pieces
