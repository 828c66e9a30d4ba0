"""What kinds of steps a fit's rows were, in its file and in a plan: under ``covered``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from planner.documents import Document, Node, document_from_text
from planner.steptime.covered import Covered

_ENDS = ("gpus", "seq")
_COUNTS = ("rows", "moe", "crosses", "suspect", "left_out")
_TABLES = ("accelerators", "precisions")


def covered_document(covered: Covered) -> dict[str, Any]:
    """Return *covered* as plain values."""
    return {
        **{name: dict(getattr(covered, name)) for name in _TABLES},
        **{name: list(getattr(covered, name)) for name in _ENDS},
        **{name: getattr(covered, name) for name in _COUNTS},
    }


def covered_in(document: Document) -> Mapping[str, Covered]:
    """Return what each fit in *document* says its rows were; of one that does not, no rows."""
    found = {
        name: covered_of(known) if (known := node.map("covered", default=None)) else Covered()
        for name, node in document.root.items()
    }
    document.finish()
    return MappingProxyType(found)


def covered_from(filed: object, name: str) -> Mapping[str, Covered]:
    """Return the same of a plan, by accelerator; *name* is what faults call it."""
    document = document_from_text(json.dumps(filed), name=name, kind="json")
    found = {}
    if document.root.kind == "map":
        found = {chip: covered_of(node) for chip, node in document.root.items()}
    else:
        document.root.fault("expected accelerators and what their rows were")
    document.finish()
    return MappingProxyType(found)


def covered_of(node: Node) -> Covered:
    """Return what *node* says; faults are noted."""
    node.only(*_TABLES, *_ENDS, *_COUNTS)
    rows = node.count("rows", minimum=1)
    ends = {name: tuple(one.as_count() for one in node.list(name)) for name in _ENDS}
    for name, seen in ends.items():
        if len(seen) != 2 or seen[0] > seen[1]:
            node.fault("expected the least and the most", key=name)
    tables = {}
    for name in _TABLES:
        table = node.map(name)
        tables[name] = {key: table.count(key, minimum=1) for key, _ in table.items()}
    return Covered(
        rows=rows,
        gpus=ends["gpus"],
        seq=ends["seq"],
        accelerators=tables["accelerators"],
        precisions=tables["precisions"],
        moe=node.count("moe", default=0, minimum=0),
        crosses=node.count("crosses", default=0, minimum=0),
        suspect=node.count("suspect", default=0, minimum=0),
        left_out=node.count("left_out", default=0, minimum=0),
    )
