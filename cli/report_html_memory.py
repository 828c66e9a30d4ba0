"""What one GPU of each pipeline stage holds in memory, against what it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from cli.report_html_parts import Num, table
from cli.report_pictures import Piece, safe
from cli.report_pictures_bars import stacked
from cli.report_words import close_words
from planner.units import format_bytes

_ORDER = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
_STAGES = {"first": "first", "middle": "second", "last": "last"}
_MOST_STAGES = 16  # beyond it neighbours share a bar, so that a page holds them all


def memory_section(memory: Mapping[str, Any]) -> str:
    """Return what one GPU of each stage holds, against what it has.

    Args:
        memory: the entry of a plan's document.
    """
    margin, full = memory.get("margin_bytes", 0.0), memory["capacity_bytes"]
    shown = _shown(memory)
    held = [name for name in _ORDER if any(one["parts"].get(name, 0.0) for one in shown)]
    lines = [(one["label"], held_pieces(one["parts"], margin)) for one in shown]
    rows: list[list[str | Num]] = [
        [Num(one["stage"], one["label"]),
         *(Num(one["parts"].get(p, 0.0), format_bytes(one["parts"].get(p, 0.0))) for p in held),
         *(_bytes(value) for value in (_sum(one), _sum(one) + margin))]
        for one in shown
    ]  # fmt: skip
    return (
        f"<p>{safe(_verdict(memory))} {safe(_spread(memory))}</p>"
        + stacked("Memory of one GPU", lines, full, f"{format_bytes(full)} on the GPU")
        + table("Memory of one GPU", ["Stage", *map(str.title, held), "All", "With margin"], rows)
    )


def used_bytes(memory: Mapping[str, Any]) -> float:
    """Return what decides whether a plan fits: the fullest GPU with its margin [bytes]."""
    return float(memory["worst_stage_bytes"] + memory.get("margin_bytes", 0.0))


def _verdict(memory: Mapping[str, Any]) -> str:
    used, full = used_bytes(memory), memory["capacity_bytes"]
    verdict = (
        f"it fits, with {format_bytes(full - used)} to spare"
        if memory["fits"]
        else f"it does not fit: {format_bytes(used - full)} too much"
    )
    fullest, alone = memory.get("stage", "fullest"), len(memory.get("by_stage", ())) == 1
    whose = (
        "A GPU needs"
        if alone
        else f"The {_STAGES.get(fullest, fullest)} stage is the fullest: a GPU of it needs"
    )
    close = close_words(used, full)
    return f"{whose} {format_bytes(used)} with its margin, of {format_bytes(full)}; {verdict}." + (
        f" {close}" if close else ""
    )


def _spread(memory: Mapping[str, Any]) -> str:
    """Return what there is to say of the stages that are not the fullest."""
    by_stage, margin = memory.get("by_stage", ()), memory.get("margin_bytes", 0.0)
    if len(by_stage) < 2:
        return ""
    least = min(by_stage, key=_sum)
    said = f"The emptiest, stage {least['stage']}, needs {format_bytes(_sum(least) + margin)}."
    if not _every_stage(by_stage):
        said += " Of the stages between the ends the second keeps the most micro-batches."
    elif len(by_stage) > _MOST_STAGES:
        said += " Of neighbouring stages that share a bar the fullest is shown."
    return said


def _every_stage(by_stage: Sequence[Mapping[str, Any]]) -> bool:
    return [one["stage"] for one in by_stage] == list(range(len(by_stage)))


def _shown(memory: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return at most 16 entries: both ends, and of runs of stages between them the fullest."""
    stages = memory.get("by_stage", ())
    if not stages:
        return [{"stage": 0, "label": "fullest GPU", "parts": memory["parts"]}]
    each = max(1, ceil((len(stages) - 2) / (_MOST_STAGES - 2)))
    between = [stages[i : min(i + each, len(stages) - 1)]
               for i in range(1, len(stages) - 1, each)]  # fmt: skip
    runs = [stages[:1], *between, *([stages[-1:]] if len(stages) > 1 else [])]
    return [_fullest(run) for run in runs]


def _fullest(run: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    first, last = run[0]["stage"], run[-1]["stage"]
    label = f"stage {first}" if first == last else f"stages {first} to {last}"
    fullest: Mapping[str, Any] = max(run, key=_sum)
    return {**fullest, "label": label}


def _sum(one: Mapping[str, Any]) -> float:
    return float(sum(one["parts"].values()))


def _bytes(value: float) -> Num:
    return Num(value, format_bytes(value))


def held_pieces(parts: Mapping[str, float], margin: float) -> list[Piece]:
    """Return what a GPU holds, part by part, and the margin that must stay free [bytes]."""
    known = [name for name in _ORDER if parts.get(name, 0.0) > 0]
    others = sorted(name for name in parts if name not in _ORDER and parts[name] > 0)
    pieces = [
        Piece(label=name, value=parts[name], text=format_bytes(parts[name]),
              colour=f"c{_ORDER.index(name)}" if name in _ORDER else "c7")
        for name in [*known, *others]
    ]  # fmt: skip
    if margin > 0:
        pieces.append(
            Piece(label="margin", value=margin, text=format_bytes(margin), colour="hatch")
        )
    return pieces
