"""Whether a document is as its published schema says: the part of JSON Schema that ours use."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

LARGEST = 1e30  # beyond it products of a few figures overflow
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,),
    "number": (int, float), "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
AMOUNT = {"type": "number", "minimum": 0}
TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
_TIER = {
    "type": "object",
    "required": ["tier", "capacities", "bytes_per_s", "shared_bytes_per_s", "latency_s"],
    "properties": {
        "tier": TEXT, "capacities": {"type": "array", "items": {"type": "integer", "minimum": 1}},
        "bytes_per_s": AMOUNT, "shared_bytes_per_s": {"type": "number", "exclusiveMinimum": 0},
        "latency_s": AMOUNT,
    },
}  # fmt: skip
TIERS = {"type": "array", "items": _TIER}
_ENTRY = {
    "type": "object",
    "properties": {
        "name": TEXT, "kind": TEXT, "premise": TEXT, "seconds": AMOUNT, "share": AMOUNT,
        "own_s": AMOUNT, "gain_if_free_s": AMOUNT,
    },
}  # fmt: skip


_GATE = {
    "type": "object",
    "properties": {
        "tier": TEXT, "family": TEXT, "peak_bytes": AMOUNT, "room_bytes": AMOUNT,
        "safe_degree": {"type": "integer", "minimum": 0},
        "premises": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["states", "otherwise", "holds"],
                "properties": {
                    "states": TEXT, "otherwise": TEXT, "holds": {"type": ["boolean", "null"]},
                },
            },
        },
    },
}  # fmt: skip


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


# What a report shows beyond what the published schema of a plan promises.
SHOWN: Mapping[str, Any] = _object(
    inputs=_object(
        fabric=_object(
            tiers=TIERS,
            accelerator={**_object(name=TEXT), "required": ["name"]},
            sources=TEXTS,
        )
    ),
    placement=_object(domains={"type": "array", "minItems": 1}),
    tiers={"type": "array", "items": _object(lower_bound_bytes=AMOUNT, among=TEXT)},
    incast={"type": "array", "items": _GATE},
    step=_object(
        total_s={"type": "number", "exclusiveMinimum": 0},
        critical_path={"type": "array", "items": _ENTRY},
        assumed=TEXTS,
    ),
    memory=_object(
        capacity_bytes={"type": "number", "exclusiveMinimum": 0}, margin_bytes=AMOUNT, stage=TEXT
    ),
)


def published_schema(command: str) -> Mapping[str, Any]:
    """Return the published schema of ``planner COMMAND --json``."""
    path = Path(__file__).parent / "schemas" / f"{command}.json"
    schema: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def schema_faults(value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield what in *value* is not as *schema* says.

    >>> list(schema_faults({"gpus": 0}, {"properties": {"gpus": {"minimum": 1}}}))
    ['gpus: expected at least 1, got 0']
    """
    yield from _faults(value, schema, schema.get("$defs", {}), "")


def _faults(
    value: Any, schema: Mapping[str, Any], defs: Mapping[str, Any], at: str
) -> Iterator[str]:
    if "$ref" in schema:
        schema = defs[schema["$ref"].rsplit("/", 1)[1]]
    for also in schema.get("allOf", ()):
        yield from _faults(value, also, defs, at)
    here = at or "the document"
    wanted = schema.get("type", [])
    kinds = [wanted] if isinstance(wanted, str) else wanted
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield f"{here}: expected {' or '.join(kinds)}, got {json.dumps(value)[:40]}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{here}: expected {schema['const']!r}, got {value!r:.40}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{here}: expected one of {schema['enum']}, got {value!r:.40}"
    if isinstance(value, str):
        yield from _text_faults(value, schema, here)
    elif isinstance(value, int | float):
        yield from _number_faults(value, schema, here)
    elif isinstance(value, list):
        yield from _list_faults(value, schema, defs, at)
    elif isinstance(value, dict):
        yield from _object_faults(value, schema, defs, at)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _text_faults(value: str, schema: Mapping[str, Any], here: str) -> Iterator[str]:
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{here}: expected text like {schema['pattern']}, got {value!r:.40}"


def _number_faults(value: float, schema: Mapping[str, Any], here: str) -> Iterator[str]:
    if abs(value) > LARGEST:
        yield f"{here}: expected at most {LARGEST:g}, got more"
    if value < schema.get("minimum", -math.inf):
        yield f"{here}: expected at least {schema['minimum']}, got {value}"
    if value <= schema.get("exclusiveMinimum", -math.inf):
        yield f"{here}: expected more than {schema['exclusiveMinimum']}, got {value}"
    if value > schema.get("maximum", math.inf):
        yield f"{here}: expected at most {schema['maximum']}, got {value}"


def _list_faults(
    value: list[Any], schema: Mapping[str, Any], defs: Mapping[str, Any], at: str
) -> Iterator[str]:
    if len(value) < schema.get("minItems", 0):
        yield f"{at}: expected at least {schema['minItems']} items, got {len(value)}"
    if len(value) > schema.get("maxItems", math.inf):
        yield f"{at}: expected at most {schema['maxItems']} items, got {len(value)}"
    rule = schema.get("items")
    if rule is None:
        return
    if rule.get("type") == "integer":  # long lists of ranks in one pass
        least = rule.get("minimum", -math.inf)
        if all(type(item) is int and least <= item <= LARGEST for item in value):
            return
    for i, item in enumerate(value):
        yield from _faults(item, rule, defs, f"{at}[{i}]")


def _object_faults(
    value: dict[str, Any], schema: Mapping[str, Any], defs: Mapping[str, Any], at: str
) -> Iterator[str]:
    dot = f"{at}." if at else ""
    for key in schema.get("required", []):
        if key not in value:
            yield f"{dot}{key}: is missing"
    for key, item in value.items():
        rule = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
        if rule is False:
            known = ", ".join(sorted(schema.get("properties", {})))
            yield f"{dot}{key[:60]}: is unknown; expected {known}"
        if isinstance(rule, Mapping):
            yield from _faults(item, rule, defs, f"{dot}{key[:60]}")
