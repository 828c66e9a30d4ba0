"""Comparison files as a report reads them: strictly, whole, and with every fault named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.report_html_contradictions import (
    bound_recounted,
    differ,
    memory_recounted,
    part_recounted,
    same_bytes,
    step_recounted,
)
from cli.report_html_read import shortened, untouched
from cli.report_html_schema import AMOUNT, TEXT, TEXTS, TIERS, published_schema, schema_faults
from cli.report_html_words import DIGITS
from planner.errors import InputError
from planner.units import format_bytes

_MOST_FAULTS = 20
_STEP = {
    "type": "object",
    "required": ["critical_path"],
    "properties": {
        "tokens_per_s": AMOUNT, "mfu": AMOUNT, "assumed": TEXTS,
        "critical_path": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "kind", "seconds", "own_s", "premise"],
                "properties": {"name": TEXT, "kind": TEXT, "premise": TEXT, "seconds": AMOUNT,
                               "own_s": AMOUNT},
            },
        },
    },
}  # fmt: skip
_LAYOUT = {
    "type": "object",
    "properties": {
        name: {"type": "integer", "minimum": 1}
        for name in (*DIGITS, "vpp", "micro_batch", "global_batch", "seq")
    },
}
_ENTRY = {
    "type": "object",
    "properties": {
        "cluster": TEXT, "label": TEXT, "gpus": {"type": "integer", "minimum": 1},
        "layout": _LAYOUT, "step": _STEP,
        "memory": {
            "type": "object",
            "required": ["parts", "margin_bytes"],
            "properties": {
                "worst_stage_bytes": AMOUNT, "margin_bytes": AMOUNT, "fits": {"type": "boolean"},
                "capacity_bytes": {"type": "number", "exclusiveMinimum": 0},
                "parts": {"type": "object", "additionalProperties": AMOUNT},
            },
        },
        "cut": {
            "type": "object",
            "required": ["tier"],
            "properties": {"tier": TEXT, "objective_bytes": AMOUNT, "lower_bound_bytes": AMOUNT,
                           "gap": AMOUNT, "proof": TEXT},
        },
        "run": {
            "type": "object",
            "required": ["power_w", "tokens_per_day", "cost_per_token", "days", "cost"],
            "properties": {
                "power_w": {"type": ["number", "null"], "minimum": 0}, "tokens_per_day": AMOUNT,
                "cost_per_token": {"type": ["number", "null"], "minimum": 0},
                "days": {"type": ["number", "null"], "minimum": 0},
                "cost": {"type": ["number", "null"], "minimum": 0},
                "why_no_cost": {"type": ["string", "null"]},
            },
        },
    },
}  # fmt: skip
_FILE = {"type": "object", "required": ["file"], "properties": {"file": TEXT}}
_CLUSTER = {
    "type": "object",
    "required": ["cluster", "cluster_asked", "supernode", "gpus", "model", "fabric", "assumed",
                 "layout", "layout_given"],
    "properties": {
        "cluster": TEXT, "cluster_asked": TEXT, "model": TEXT, "assumed": TEXTS,
        "supernode": {"type": "integer", "minimum": 1}, "gpus": {"type": "integer", "minimum": 1},
        "layout_given": {"type": "array", "items": TEXT},
        "layout": {"type": "object"},
        "efficiency_file": _FILE, "layout_file": _FILE,
        "fabric": {
            "type": "object",
            "required": ["tiers"],
            "properties": {
                "tiers": TIERS, "sources": TEXTS,
                "accelerator": {"type": "object", "properties": {"name": TEXT}},
            },
        },
    },
}  # fmt: skip
_SHOWN: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "inputs": {
            "type": "object",
            "properties": {
                "sha256": TEXT, "time_limit_s": AMOUNT, "layouts": {"type": "object"},
                "seed": {"type": "integer"}, "tokens": {"type": ["number", "null"], "minimum": 0},
                "clusters": {"type": "array", "minItems": 1, "items": _CLUSTER},
                "prices": {
                    "type": ["object", "null"],
                    "properties": {"gpu_hours": {"type": "object"}},
                },
            },
        },
        "ranked": {"type": "array", "minItems": 1, "items": _ENTRY},
        "moved": {"type": "array", "items": _ENTRY},
        "flips": {
            "type": "array",
            "items": {"type": "object", "properties": {"before": TEXT, "after": TEXT}},
        },
        "gains": {
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": {"type": "object", "properties": {"name": TEXT}},
            },
        },
        "bills": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "currency": TEXT,
                    "lines": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "item": TEXT, "source": TEXT,
                                "count": {"type": "integer", "minimum": 0},
                                "price": {"type": ["number", "null"], "minimum": 0},
                                "power_w": {"type": ["number", "null"], "minimum": 0},
                            },
                        },
                    },
                },
            },
        },
        "pareto_points": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "cluster": TEXT, "label": TEXT, "tokens_per_s": AMOUNT,
                    "head_room_bytes": {"type": "number"}, "on_front": {"type": "boolean"},
                    "switches": {"type": "integer", "minimum": 0},
                },
            },
        },
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFile:
    """A comparison document that holds together.

    Args:
        name: the file's name without its folder.
        document: the document of ``planner compare --json``.
        untouched: the hash in the file is the hash of its inputs.
        of_model: which model's comparison it is, of a file that holds several; else empty.
    """

    name: str
    document: Mapping[str, Any]
    untouched: bool
    of_model: str = ""

    @property
    def clusters(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what was asked of each cluster, by the name it has in the ranking."""
        asked = self.document["inputs"]["clusters"]
        return dict(zip(ranked_names(asked), asked, strict=True))


def ranked_names(asked: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the ranking calls the clusters: each with its supernode where two share a name.

    >>> ranked_names([{"cluster": "a", "supernode": 8}, {"cluster": "a", "supernode": 64}])
    ['a/8', 'a/64']
    """
    plain = [str(one["cluster"]) for one in asked]
    sized = [
        f"{name}/{one['supernode']}" if plain.count(name) > 1 else name
        for name, one in zip(plain, asked, strict=True)
    ]
    return [
        f"{name} ({sized[: i + 1].count(name)})" if sized.count(name) > 1 else name
        for i, name in enumerate(sized)
    ]


def checked_comparison(document: Mapping[str, Any], path: Path) -> ComparisonFile:
    """Return the comparison of *document*.

    Args:
        document: whose schema is ``planner.compare/1``.
        path: names it in faults.

    Raises:
        InputError: it is not as its schema says, or contradicts itself; every fault is named.
    """
    found = [
        *schema_faults(document, published_schema("compare")),
        *schema_faults(document, _SHOWN),
    ]
    faults = list(dict.fromkeys(found)) or list(_contradictions(document))
    if faults:
        shown = [f"{path}: {fault}" for fault in faults[:_MOST_FAULTS]]
        if len(faults) > _MOST_FAULTS:
            shown.append(f"{path}: and {len(faults) - _MOST_FAULTS} faults more")
        raise InputError(*shown)
    return ComparisonFile(
        name=path.name, document=shortened(document), untouched=untouched(document)
    )


def _recounted(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield where figures of an entry are not what its parts give."""
    yield from step_recounted(entry["step"], entry["layout"])
    yield from part_recounted(entry, entry["gpus"])
    yield from memory_recounted(entry["memory"])
    cut, layout = entry["cut"], entry["layout"]
    crossed = sum(entry["crossed_bytes"].values())
    if not same_bytes(entry["seated_bytes"], crossed):
        yield f"seated_bytes: {differ(entry['seated_bytes'], crossed)}"
    least = cut["lower_bound_bytes"]
    if crossed < least and not same_bytes(crossed, least):
        yield f"seated_bytes: {format_bytes(crossed)} is below the bound, {format_bytes(least)}"
    total = sum(cut["by_family"].values())
    for name in ("objective_bytes", "checked_bytes"):
        if not same_bytes(cut[name], total):
            yield f"cut.{name}: {differ(cut[name], total)}"
    yield from bound_recounted(cut, total)
    ranks = layout["tp"] * layout["cp"] * layout["dp"] * layout["pp"]
    if ranks != entry["gpus"]:
        yield f"gpus: expected {ranks} by the layout, got {entry['gpus']}"


def _unsaid(inputs: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the clusters' sizes lack of what they have in common."""
    sizes = inputs["sizes"]
    if sizes["equal"] == "run":
        lacking = {"inputs.tokens": inputs["tokens"], "inputs.sizes.days": sizes["days"]}
        yield from (f"{name}: a run needs it" for name, value in lacking.items() if value is None)
    if sizes["equal"] in {"money", "power"}:
        if sizes["budget"] is None:
            yield f"inputs.sizes.budget: equal {sizes['equal']} needs it"
        known = [spent for spent in sizes["spent"] if spent is not None]
        if len(known) != len(inputs["clusters"]):
            yield f"inputs.sizes.spent: expected {len(inputs['clusters'])}, got {len(known)}"


def _contradictions(document: Mapping[str, Any]) -> Iterator[str]:
    yield from _unsaid(document["inputs"])
    known = ranked_names(document["inputs"]["clusters"])
    for key in ("ranked", "moved"):
        for i, entry in enumerate(document[key]):
            if entry["cluster"] not in known:
                yield f"{key}[{i}].cluster: expected one of {known}, got {entry['cluster']!r:.60}"
            for fault in _recounted(entry):
                yield f"{key}[{i}].{fault}"
            unknown = [digit for digit in entry["crossed_bytes"] if digit not in DIGITS]
            if unknown:
                yield f"{key}[{i}].crossed_bytes: expected some of {list(DIGITS)}, got {unknown}"
    for key in ("gains", "bills"):
        for name in document[key]:
            if name not in known:
                yield f"{key}: expected one of {known}, got {name!r:.60}"
