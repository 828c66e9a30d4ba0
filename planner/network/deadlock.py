"""Deadlock: a cycle of links that wait for each other under lossless flow control.

*Channel dependency graph*: one vertex for each (directed link, class of buffers), one edge
wherever a route in use may hold the first and wait for the second. Deterministic routing is free
of deadlock exactly when that graph has no cycle (Dally and Seitz, IEEE ToC C-36(5), 1987);
adaptive routing may still be, if an acyclic escape remains (Duato): then a cycle here says "needs
an escape", not "will lock".

A fat tree routed up and then down has none; a torus without virtual channels has, and so has a
tree in which routes go down and up again around a failed link (a *valley*).

Source: E-S23-072 (deadlock: nothing moves; break the cycle in routes, buffers or order).
Holds where receivers always drain. Cycles between messages (a reply waiting for a request's
buffer) and between collectives launched in different order are not in this graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from planner.errors import InputError
from planner.network.breaks import breaks_of
from planner.network.premises import Premise

SOURCE = (
    "channel dependency graph: W. J. Dally, C. L. Seitz, Deadlock-Free Message Routing in "
    "Multiprocessor Interconnection Networks, IEEE Trans. Computers C-36(5), 1987, pp. 547-553"
)
_NAMED_ROUTES = 3
_STARTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A directed link and the class of buffers used on it.

    Args:
        tail: vertex the link leaves.
        head: vertex it enters; the buffers are there.
        priority: traffic class, or virtual channel.
    """

    tail: str
    head: str
    priority: int = 0

    def __str__(self) -> str:
        """Return ``a -> b``, with the class where it is not 0."""
        return f"{self.tail} -> {self.head}" + (f" (class {self.priority})" * bool(self.priority))


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The vertices that a flow passes.

    Args:
        name: what reports call it.
        vertices: from source to destination.
        priorities: class on each link; one entry stands for all links.
    """

    name: str
    vertices: tuple[str, ...]
    priorities: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        links = len(self.vertices) - 1
        if links < 1 or len(self.priorities) not in {1, links}:
            raise InputError(
                f"route {self.name!r}: {len(self.vertices)} vertices and "
                f"{len(self.priorities)} classes: expected 2 vertices at least, and one class or "
                "one for each link"
            )

    def channels(self) -> tuple[Channel, ...]:
        """Return the channels it holds, in order."""
        hops = list(pairwise(self.vertices))
        classes = self.priorities * (len(hops) if len(self.priorities) == 1 else 1)
        return tuple(
            Channel(tail=a, head=b, priority=c) for (a, b), c in zip(hops, classes, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """Links that wait for each other.

    Args:
        links: the channels of the cycle, each waiting for the next, the last for the first.
        closing_routes: for each of them, routes that hold it and wait for the next (at most 3).
        break_at: the pair of links whose dependency the fewest routes need.
        advice: what to change there.
    """

    links: tuple[str, ...]
    closing_routes: tuple[tuple[str, ...], ...]
    break_at: tuple[str, str]
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlockCheck:
    """What the channel dependency graph of some routes says.

    Args:
        free: no cycle.
        cycles: one for each set of links that wait for each other, a shortest one.
        breaks: dependencies whose removal leaves no cycle: few, not proved fewest.
        channels: links in use, by class [1].
        dependencies: edges of the graph [1].
        premises: what this takes for granted.
    """

    free: bool
    cycles: tuple[Cycle, ...]
    breaks: tuple[tuple[str, str], ...]
    channels: int
    dependencies: int
    premises: tuple[Premise, ...]


def check_routes(
    routes: Iterable[Route], *, ends_at: frozenset[str] = frozenset()
) -> DeadlockCheck:
    """Return the cycles among the links that *routes* hold and wait for.

    Args:
        routes: the routes in use.
        ends_at: vertices that take a message in whole before they pass it on (a relaying GPU):
            nothing behind them is waited for.

    >>> ring = [Route(name=f"{a}{c}", vertices=(a, b, c)) for a, b, c in
    ...         (("a", "b", "c"), ("b", "c", "d"), ("c", "d", "a"), ("d", "a", "b"))]
    >>> check_routes(ring).cycles[0].links
    ('a -> b', 'b -> c', 'c -> d', 'd -> a')
    """
    users: dict[tuple[Channel, Channel], list[str]] = {}
    used: set[Channel] = set()
    for route in routes:
        held = route.channels()
        used.update(held)
        for first, second in pairwise(held):
            if first.head not in ends_at:
                users.setdefault((first, second), []).append(route.name)
    return check_dependencies(users, channels=len(used))


def check_dependencies(
    users: Mapping[tuple[Any, Any], Sequence[str]],
    *,
    channels: int,
    name: Callable[[Any], str] = str,
) -> DeadlockCheck:
    """Return the cycles of a dependency graph.

    Args:
        users: (held, awaited) to the names of the routes that hold one and wait for the other.
        channels: links in use, by class [1].
        name: what to call a channel.
    """
    import networkx as nx  # noqa: PLC0415 - 100 ms that `planner --help` need not pay

    graph = nx.DiGraph()
    graph.add_edges_from(users)
    cycles = [
        _cycle(_shortest_cycle(nx, graph.subgraph(part)), users, name)
        for part in nx.strongly_connected_components(graph)
        if len(part) > 1 or graph.has_edge(*(tuple(part) * 2))
    ]
    cycles.sort(key=lambda cycle: (len(cycle.links), cycle.links))
    return DeadlockCheck(
        free=not cycles,
        cycles=tuple(cycles),
        breaks=breaks_of(graph, users, name) if cycles else (),
        channels=channels,
        dependencies=len(users),
        premises=premises(),
    )


def premises() -> tuple[Premise, ...]:
    """Return what the check takes for granted."""
    return (
        Premise(
            states="Links are lossless: a full buffer stops the one before it",
            holds=None,
            otherwise="where frames are dropped instead, nothing waits for ever",
        ),
        Premise(
            states="Receivers always take in what arrives",
            holds=None,
            otherwise="a NIC that stops draining pauses its leaf, and that its spines: a "
            "pause storm, not a cycle; a watchdog must drop its queue",
        ),
        Premise(
            states="Routes are as given, of a cluster all of least cost, without an escape class",
            holds=None,
            otherwise="with an acyclic escape class a cycle among the adaptive links is harmless",
        ),
    )


def _shortest_cycle(nx: Any, part: Any) -> list[Any]:
    """Return a shortest of the cycles through the first few vertices, in a fixed order."""
    found: list[list[Any]] = []
    for start in sorted(part, key=str)[:_STARTS]:
        if part.has_edge(start, start):
            return [start]
        # every vertex of a strongly connected part reaches every other
        found.extend(
            [start, *nx.shortest_path(part, onward, start)[:-1]]
            for onward in sorted(part.successors(start), key=str)
        )
    return min(found, key=len)


def _cycle(
    links: list[Any],
    users: Mapping[tuple[Any, Any], Sequence[str]],
    name: Callable[[Any], str],
) -> Cycle:
    lowest = min(range(len(links)), key=lambda i: name(links[i]))
    links = links[lowest:] + links[:lowest]
    turns = list(zip(links, links[1:] + links[:1], strict=True))
    weakest = min(turns, key=lambda turn: (len(users[turn]), name(turn[0])))
    needed = len(users[weakest])
    routes = "1 route needs" if needed == 1 else f"{needed} routes need"
    return Cycle(
        links=tuple(name(link) for link in links),
        closing_routes=tuple(tuple(users[turn][:_NAMED_ROUTES]) for turn in turns),
        break_at=(name(weakest[0]), name(weakest[1])),
        advice=f"forbid the turn {name(weakest[0])} to {name(weakest[1])} ({routes} it), or let "
        "routes change to a second class of buffers there",
    )
