"""Which dependencies to give up so that no links wait for each other in a circle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any


def breaks_of(
    graph: Any,
    users: Mapping[tuple[Any, Any], Sequence[str]],
    name: Callable[[Any], str],
) -> tuple[tuple[str, str], ...]:
    """Return dependencies to give up so that no cycle is left: few and little used.

    Orders the links of each part so that few dependencies point backwards, and gives up those.

    Source: P. Eades, X. Lin, W. F. Smyth, A fast and effective heuristic for the feedback arc set
    problem, Information Processing Letters 47(6), 1993, pp. 319-323.

    Args:
        graph: dependencies, a NetworkX DiGraph.
        users: (held, awaited) to the names of the routes that need this dependency.
        name: what to call a channel.
    """
    import networkx as nx  # noqa: PLC0415 - 100 ms that `planner --help` need not pay

    broken: list[tuple[str, str]] = []
    for part in nx.strongly_connected_components(graph):
        if len(part) == 1 and not graph.has_edge(*(tuple(part) * 2)):
            continue
        inside = graph.subgraph(part)
        place = {link: i for i, link in enumerate(_ordered(inside, users))}
        broken += [(name(a), name(b)) for a, b in inside.edges if place[a] >= place[b]]
    return tuple(sorted(broken))


def _ordered(part: Any, users: Mapping[tuple[Any, Any], Sequence[str]]) -> list[Any]:
    """Return the vertices of *part* in an order with little weight pointing backwards."""
    weight = {edge: len(users[edge]) for edge in part.edges if edge[0] != edge[1]}
    out = dict.fromkeys(part, 0)
    into = dict.fromkeys(part, 0)
    for (a, b), uses in weight.items():
        out[a] += uses
        into[b] += uses
    heap = [_rank(vertex, out, into) for vertex in part]
    heapify(heap)
    left = set(part)
    first: list[Any] = []
    last: list[Any] = []
    while left:
        *rank, name, vertex = heappop(heap)
        if vertex not in left or [*rank, name] != list(_rank(vertex, out, into)[:-1]):
            continue
        left.remove(vertex)
        (last if not out[vertex] else first).append(vertex)
        for onward in part.successors(vertex):
            if onward in left:
                into[onward] -= weight[vertex, onward]
                heappush(heap, _rank(onward, out, into))
        for before in part.predecessors(vertex):
            if before in left:
                out[before] -= weight[before, vertex]
                heappush(heap, _rank(before, out, into))
    return first + last[::-1]


def _rank(vertex: Any, out: Mapping[Any, int], into: Mapping[Any, int]) -> tuple[Any, ...]:
    """Return what to take next: an end, then a start, then the one that sends most on."""
    if not out[vertex]:
        return (0, 0, str(vertex), vertex)
    if not into[vertex]:
        return (1, 0, str(vertex), vertex)
    return (2, into[vertex] - out[vertex], str(vertex), vertex)
