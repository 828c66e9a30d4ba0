"""A schedule of buffers from YAML.

::

    contents:                       # with times: how many buffers, and what is overwritten
      - {name: a, write: 0 us, read_end: 25 us, buffer: x}
      - {name: b, write: 10 us, read_end: 35 us}
    operations:                     # with an order only: what nothing holds back
      - {name: w0, buffer: x, writes: first}
      - {name: r0, buffer: x, reads: first, after: [w0]}
      - {name: w1, buffer: x, writes: second, after: [w0]}
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from planner.documents import read_document
from planner.errors import InputError
from planner.network.hazards import Content, Use
from planner.units import US

if TYPE_CHECKING:
    from planner.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferSchedule:
    """What a file says.

    Args:
        contents: by their times.
        operations: by their order.
    """

    contents: tuple[Content, ...]
    operations: tuple[Use, ...]


def example() -> BufferSchedule:
    """Return three contents in two buffers, and a second write that waits for the wrong thing."""
    return BufferSchedule(
        contents=tuple(
            Content(
                name=f"chunk{i}",
                write_s=10 * i * US,
                read_end_s=(10 * i + 25) * US,
                buffer=f"slot{i % 2}",
            )
            for i in range(3)
        ),
        operations=(
            Use(name="write0", buffer="slot0", content="chunk0", writes=True),
            Use(name="read0", buffer="slot0", content="chunk0", writes=False, after=("write0",)),
            Use(name="write2", buffer="slot0", content="chunk2", writes=True, after=("write0",)),
        ),
    )


def read_schedule(path: Path) -> BufferSchedule:
    """Return the contents and operations that the file *path* describes.

    Raises:
        SpecError: every fault of the file, with its line.
    """
    document = read_document(path)
    root = document.root
    root.only("contents", "operations")
    contents = [_content(node) for node in root.list("contents", default=())]
    operations = [_operation(node) for node in root.list("operations", default=())]
    if not contents and not operations:
        root.fault("says nothing: expected contents with times, or operations with their order")
    document.finish()
    return BufferSchedule(
        contents=tuple(content for content in contents if content is not None),
        operations=tuple(operations),
    )


def _content(node: Node) -> Content | None:
    node.only("name", "write", "read_end", "buffer")
    try:
        return Content(
            name=node.name("name"),
            write_s=node.time("write"),
            read_end_s=node.time("read_end"),
            buffer=node.name("buffer") if node.has("buffer") else None,
        )
    except InputError as error:
        for fault in error.faults:
            node.fault(fault.replace("read_end_s=", "read_end=").replace("write_s=", "write="))
        return None


def _operation(node: Node) -> Use:
    node.only("name", "buffer", "writes", "reads", "after")
    writes = node.has("writes")
    if writes == node.has("reads"):
        node.fault("expected either writes or reads, with the content's name")
    return Use(
        name=node.name("name"),
        buffer=node.name("buffer"),
        content=node.name("writes" if writes else "reads"),
        writes=writes,
        after=tuple(item.as_name() for item in node.list("after", default=())),
    )
