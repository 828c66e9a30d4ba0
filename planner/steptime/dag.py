"""The same step as an explicit graph of passes; its longest path checks the closed form.

Vertices are passes, edges say what must end before another starts: the order on the stage, and
the data that comes from the neighbouring stage, a hop later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from planner.steptime.orders import Pass, dualpipe_order, stage_order

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWork:
    """Seconds of one micro-batch on one stage, all its chunks together.

    Args:
        forward_s: forward [s].
        backward_s: backward, weight gradients included [s].
        weights_s: the weight gradients' part of it [s].
    """

    forward_s: float
    backward_s: float
    weights_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """When every pass runs.

    Args:
        start_s, end_s: pass to its times [s].
        total_s: from the first start to the last end [s].
        path: passes of one longest chain, in order.
        hop_s: pass to the hop that ends as it starts; 0 where another thing holds it up [s].
    """

    start_s: Mapping[Pass, float]
    end_s: Mapping[Pass, float]
    total_s: float
    path: tuple[Pass, ...]
    hop_s: Mapping[Pass, float]


def step_graph(
    schedule: str, work: Sequence[StageWork], chunks: int, micro_batches: int, hop_s: float
) -> nx.DiGraph:
    """Return the graph of one step's passes; vertices carry ``duration_s``, edges ``delay_s``.

    Args:
        schedule: ``gpipe``, ``1f1b``, ``zb-h1`` or ``dualpipe``.
        work: one entry for each stage.
        chunks: virtual stages on each stage [1].
        micro_batches: of one replica [1].
        hop_s: from one stage to the next [s].
    """
    import networkx as nx  # noqa: PLC0415 - only the explicit graph pays for it

    graph = nx.DiGraph()
    stages = len(work)
    for stage, each in enumerate(work):
        order = stage_order(schedule, stage, stages, chunks, micro_batches)
        to_input = "BI" if schedule == "zb-h1" else "I"
        for one in order:
            graph.add_node(one, duration_s=_duration_s(one, each, to_input) / chunks)
        for before, after in pairwise(order):
            graph.add_edge(before, after, delay_s=0.0)
    both_ways = schedule == "dualpipe"
    fused = _fused(stages, micro_batches) if both_ways else {}
    partner = {backward: forward for forward, backward in fused.items()}
    for one in list(graph):
        needs = _inputs_both_ways(one, stages) if both_ways else _inputs(one, stages, chunks)
        for source, hop in needs:
            if both_ways and source not in graph:  # a backward to the input only
                source = source._replace(kind="I")  # noqa: PLW2901
            delay = hop_s if hop else 0.0
            # Two fused passes start when both may, and both end together.
            source = fused.get(source, source)  # noqa: PLW2901
            if one in partner:
                graph.add_edge(source, partner[one], delay_s=delay)
            known = graph.get_edge_data(source, one)
            if known is None or known["delay_s"] < delay:
                graph.add_edge(source, one, delay_s=delay)
    return graph


def _fused(ranks: int, micro_batches: int) -> dict[Pass, Pass]:
    pairs: dict[Pass, Pass] = {}
    for rank in range(ranks):
        pairs |= dualpipe_order(rank, ranks, micro_batches).fused
    return pairs


def _duration_s(one: Pass, work: StageWork, to_input: str) -> float:
    """Return a pass's time; the kinds of *to_input* have their weight gradients apart."""
    if one.kind == "F":
        return work.forward_s
    if one.kind == "W":
        return work.weights_s
    return work.backward_s - (work.weights_s if one.kind in to_input else 0.0)


def _inputs_both_ways(one: Pass, ranks: int) -> list[tuple[Pass, bool]]:
    """Return the same for DualPipe, where direction 1 runs from the last rank down."""
    kind, rank, direction, j = one
    step = 1 if direction == 0 else -1
    if kind == "W":
        return [(Pass("I", rank, direction, j), False)]
    if kind == "F":
        before = rank - step
        return [(Pass("F", before, direction, j), True)] if 0 <= before < ranks else []
    own = [(Pass("F", rank, direction, j), False)]
    after = rank + step
    return [*own, (Pass("B", after, direction, j), True)] if 0 <= after < ranks else own


def _inputs(one: Pass, stages: int, chunks: int) -> list[tuple[Pass, bool]]:
    """Return the passes whose output *one* needs, and whether it comes over a hop."""
    kind, stage, chunk, j = one
    if kind == "W":
        return [(Pass("B", stage, chunk, j), False)]
    if kind == "F":
        if stage > 0:
            return [(Pass("F", stage - 1, chunk, j), True)]
        return [(Pass("F", stages - 1, chunk - 1, j), True)] if chunk > 0 else []
    own = [(Pass("F", stage, chunk, j), False)]
    if stage < stages - 1:
        return [*own, (Pass("B", stage + 1, chunk, j), True)]
    return [*own, (Pass("B", 0, chunk + 1, j), True)] if chunk < chunks - 1 else own


def timeline(graph: nx.DiGraph) -> Timeline:
    """Return when every pass of *graph* runs if each starts as soon as it may."""
    import networkx as nx  # noqa: PLC0415

    start: dict[Pass, float] = {}
    end: dict[Pass, float] = {}
    because: dict[Pass, Any] = {}
    hop: dict[Pass, float] = {}
    for one in nx.topological_sort(graph):
        begin, reason, delay = 0.0, None, 0.0
        for before, _, data in graph.in_edges(one, data=True):
            ready = end[before] + data["delay_s"]
            if ready > begin:
                begin, reason, delay = ready, before, data["delay_s"]
        start[one] = begin
        end[one] = begin + graph.nodes[one]["duration_s"]
        because[one], hop[one] = reason, delay
    last = max(end, key=lambda one: (end[one], one))
    path: list[Pass] = []
    at: Any = last
    while at is not None:
        path.append(at)
        at = because[at]
    return Timeline(
        start_s=start, end_s=end, total_s=end[last], path=tuple(reversed(path)), hop_s=hop
    )
