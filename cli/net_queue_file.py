"""A row of queues from YAML.

::

    queues:                       # in the order in which data passes them
      - name: leaf
        service: 50 GB/s          # or a list of {start: 0 us, rate: 50 GB/s}
        buffer: 1 MiB
        used: 0 B
        mark: 256 KiB             # senders are told from here on
        xoff: 768 KiB             # what feeds it is paused from here on …
        xon: 512 KiB              # … and resumed here
        pause_delay: 2 us
    sources:
      - name: gpu0
        rate: 50 GB/s             # or a list of phases
        enters: leaf
        feedback: 20 us
        reduced: 20 GB/s
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from planner.documents import read_document
from planner.errors import InputError
from planner.network.queue_parts import Phase, Queue, Source
from planner.units import GB, KIB, US

if TYPE_CHECKING:
    from planner.nodes import Node


Part = TypeVar("Part")
_FIELD = re.compile(r"\b([a-z_]+)=")
_KEYS = {
    "buffer_bytes": "buffer", "used_bytes": "used", "mark_bytes": "mark", "xoff_bytes": "xoff",
    "xon_bytes": "xon", "pause_s": "pause_delay", "feedback_s": "feedback",
    "reduced_bytes_per_s": "reduced", "start_s": "start", "bytes_per_s": "rate",
}  # fmt: skip
"""Field of a queue or a sender to its key in the file, for faults."""


def example() -> tuple[tuple[Source, ...], tuple[Queue, ...]]:
    """Return two senders into a leaf that feeds a slower port; the leaf pauses, the port marks."""
    return (
        (
            Source(
                name="gpu0",
                phases=(Phase(start_s=0.0, bytes_per_s=50 * GB),),
                feedback_s=20 * US,
                reduced_bytes_per_s=20 * GB,
            ),
            Source(
                name="gpu1",
                phases=(
                    Phase(start_s=0.0, bytes_per_s=50 * GB),
                    Phase(start_s=100 * US, bytes_per_s=0.0),
                ),
                feedback_s=50 * US,
                reduced_bytes_per_s=20 * GB,
            ),
        ),
        (
            Queue(
                name="leaf",
                service=(Phase(start_s=0.0, bytes_per_s=100 * GB),),
                buffer_bytes=1024 * KIB,
                xoff_bytes=512 * KIB,
                xon_bytes=384 * KIB,
                pause_s=2 * US,
            ),
            Queue(
                name="port",
                service=(Phase(start_s=0.0, bytes_per_s=50 * GB),),
                buffer_bytes=512 * KIB,
                used_bytes=256 * KIB,
                mark_bytes=256 * KIB,
                xoff_bytes=384 * KIB,
                xon_bytes=256 * KIB,
                pause_s=1 * US,
            ),
        ),
    )


def read_row(path: Path) -> tuple[tuple[Source, ...], tuple[Queue, ...]]:
    """Return the sources and queues that the file *path* describes.

    Raises:
        SpecError: every fault of the file, with its line.
    """
    document = read_document(path)
    root = document.root
    root.only("queues", "sources")
    names: list[str] = []
    queues = []
    for node in root.list("queues"):
        node.only("name", "service", "buffer", "used", "mark", "xoff", "xon", "pause_delay")
        names.append(node.name("name"))
        queue = {
            "name": names[-1],
            "service": _phases(node, "service"),
            "buffer_bytes": node.bytes("buffer"),
            "used_bytes": node.bytes("used", default=0.0),
            "mark_bytes": node.bytes("mark") if node.has("mark") else None,
            "xoff_bytes": node.bytes("xoff") if node.has("xoff") else None,
            "xon_bytes": node.bytes("xon", default=0.0),
            "pause_s": node.time("pause_delay", default=0.0),
        }
        if (made := _made(node, Queue, queue)) is not None:
            queues.append(made)
    sources = []
    for node in root.list("sources"):
        node.only("name", "rate", "enters", "feedback", "reduced")
        enters = node.name("enters", default=names[0] if names else "")
        if enters not in names:
            node.fault(f"{enters!r} is no queue; there are {', '.join(names)}", key="enters")
        source = {
            "name": node.name("name"),
            "phases": _phases(node, "rate"),
            "enters": names.index(enters) if enters in names else 0,
            "feedback_s": node.time("feedback") if node.has("feedback") else None,
            "reduced_bytes_per_s": node.rate("reduced", default=0.0),
        }
        if (sender := _made(node, Source, source)) is not None:
            sources.append(sender)
    document.finish()
    return tuple(sources), tuple(queues)


def _made(node: Node, kind: Callable[..., Part], fields: Mapping[str, Any]) -> Part | None:
    """Return the part of these *fields*, or None with its faults noted where it stands."""
    try:
        return kind(**fields)
    except InputError as error:
        for fault in error.faults:
            node.fault(_FIELD.sub(lambda seen: _KEYS.get(seen[1], seen[0]) + "=", fault))
        return None


def _phases(node: Node, key: str) -> tuple[Phase, ...]:
    """Return one rate from 0 on, or the phases of a list."""
    value = node.optional(key)
    if value is None or value.kind != "list":
        return (Phase(start_s=0.0, bytes_per_s=node.rate(key)),)
    phases = []
    for item in node.list(key):
        item.only("start", "rate")
        phases.append(Phase(start_s=item.time("start"), bytes_per_s=item.rate("rate")))
    return tuple(phases)
