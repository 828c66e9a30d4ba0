"""Routes from YAML, for the check of deadlock.

::

    routes:
      - {name: a-to-c, path: [a, b, c]}                    # class 0 of buffers on every link
      - {name: d-to-b, path: [d, a, b], classes: [0, 1]}   # a class for each link
    ends_at: [a]      # vertices that take a message in whole before they pass it on
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from planner.documents import read_document
from planner.errors import InputError
from planner.network.deadlock import Route

if TYPE_CHECKING:
    from planner.nodes import Node

_MOST_CLASSES = 16  # of a port: InfiniBand has 15 lanes for data, Ethernet 8 classes


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutesInUse:
    """What a file says.

    Args:
        routes: in the order of the file.
        ends_at: vertices where a message is taken in whole.
    """

    routes: tuple[Route, ...]
    ends_at: tuple[str, ...] = ()


def example() -> RoutesInUse:
    """Return four routes of two hops around a ring of four switches, all in one class."""
    ring = "abcd"
    paths = [(ring[i], ring[(i + 1) % 4], ring[(i + 2) % 4]) for i in range(4)]
    return RoutesInUse(
        routes=tuple(Route(name=f"{path[0]} to {path[2]}", vertices=path) for path in paths)
    )


def read_routes(path: Path) -> RoutesInUse:
    """Return the routes that the file *path* describes.

    Raises:
        SpecError: every fault of the file, with its line.
    """
    document = read_document(path)
    root = document.root
    root.only("routes", "ends_at")
    routes = [_route(node) for node in root.list("routes")]
    ends = tuple(node.as_name() for node in root.list("ends_at", default=()))
    if not routes:
        root.fault("says no routes: expected one at least", key="routes")
    document.finish()
    return RoutesInUse(routes=tuple(one for one in routes if one is not None), ends_at=ends)


def _route(node: Node) -> Route | None:
    node.only("name", "path", "classes")
    vertices = tuple(one.as_name() for one in node.list("path"))
    classes = tuple(one.as_count(0, _MOST_CLASSES - 1) for one in node.list("classes", default=()))
    name = node.name("name", default=" to ".join((vertices[0], vertices[-1])) if vertices else "")
    try:
        return Route(name=name, vertices=vertices, priorities=classes or (0,))
    except InputError as error:
        for fault in error.faults:
            node.fault(fault)
        return None
