"""What is wrong, or weak, in a fabric: a list of findings, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.fabric import Tier
from planner.fabric_walks import islands
from planner.network.findings import Finding
from topologies.fabric_spec import DeadParts

_PART = {
    "gpu": "GPU",
    "nic": "NIC",
    "scale_up_switch": "scale-up switch",
    "leaf": "leaf switch",
    "spine": "spine switch",
    "core": "core switch",
}
SEVERITIES = ("fault", "warning", "note")


Check = Callable[[Any, Sequence[str]], Sequence[Finding]]


def findings_of(
    graph: Any,
    gpus: Sequence[str],
    *,
    tiers: Sequence[Tier] = (),
    dead: DeadParts | None = None,
    more: Sequence[Check] = (),
) -> tuple[Finding, ...]:
    """Return everything found, faults first.

    Args:
        graph: the cluster's graph.
        gpus: vertex name of each usable GPU.
        tiers: its tiers, where the fabric could be built.
        dead: what the file lists as dead.
        more: further checks, such as the one for deadlock.
    """
    found = [
        *disconnected(graph, gpus),
        *over_radix(graph),
        *single_points(graph, gpus),
        *uneven_bundles(graph),
        *oversubscribed(tiers),
        *dead_parts(dead or DeadParts()),
    ]
    for check in more:
        found += check(graph, gpus)
    return tuple(sorted(found, key=lambda f: SEVERITIES.index(f.severity)))


def disconnected(graph: Any, gpus: Sequence[str]) -> list[Finding]:
    """Return a fault if some GPUs cannot reach the largest set that reach each other."""
    apart = islands(graph, gpus)[1:]
    if not apart:
        return []
    lost = sum(map(len, apart))
    parts = f" in {len(apart)} parts" if len(apart) > 1 else ""
    return [
        Finding(
            severity="fault",
            check="disconnected",
            where=tuple(part[0] for part in apart[:3]),
            message=f"{_count(lost, 'GPU')}{parts} cannot reach the other {len(gpus) - lost}",
        )
    ]


def over_radix(graph: Any) -> list[Finding]:
    """Return one fault for each kind of switch that has more links than ports."""
    worst: dict[str, list[tuple[int, int, str]]] = {}
    for name, vertex in graph.nodes(data=True):
        radix = vertex.get("radix", 0)
        used = sum(link.get("links", 1) for link in graph[name].values()) if radix else 0
        if used > radix > 0:
            worst.setdefault(vertex["kind"], []).append((used, radix, name))
    return [
        Finding(
            severity="fault",
            check="radix",
            where=tuple(name for _, _, name in sorted(found, reverse=True)[:3]),
            message=f"{_count(len(found), _PART[kind])} with more links than ports: "
            f"{max(found)[0]} of {max(found)[1]} on the worst",
        )
        for kind, found in sorted(worst.items())
    ]


def oversubscribed(tiers: Sequence[Tier]) -> list[Finding]:
    """Return one warning for each tier where all GPUs together get less than one alone."""
    return [
        Finding(
            severity="warning",
            check="oversubscription",
            where=(tier.name,),
            message=f"{tier.oversubscription:.3g}:1: {tier.bytes_per_s / 1e9:.4g} GB/s alone, "
            f"{tier.shared_bytes_per_s / 1e9:.4g} GB/s when all GPUs send",
        )
        for tier in tiers
        if tier.oversubscription > 1 + 1e-9
    ]


def uneven_bundles(graph: Any) -> list[Finding]:
    """Return one warning for each sort of link bundle of which some have lost half or more.

    Bundles between the same kinds of switch are compared with the width that most of them have;
    a width of one link less is how uneven numbers are dealt out, not a loss.
    """
    kinds = dict(graph.nodes(data="kind"))
    widths: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for a, b, link in graph.edges(data=True):
        sort = (kinds[a], kinds[b]) if kinds[a] <= kinds[b] else (kinds[b], kinds[a])
        widths.setdefault(sort, []).append((link.get("links", 1), f"{a} - {b}"))
    found: list[Finding] = []
    for sort, bundles in sorted(widths.items()):
        usual = Counter(w for w, _ in bundles).most_common(1)[0][0]
        narrow = sorted(name for w, name in bundles if 2 * w <= usual)
        if narrow and "switch" not in "".join(sort):
            found.append(
                Finding(
                    severity="warning",
                    check="narrow bundle",
                    where=tuple(narrow[:3]),
                    message=f"{len(narrow)} of {len(bundles)} {sort[0]}-{sort[1]} bundles have "
                    f"half of the usual {usual} links or fewer",
                )
            )
    return found


def dead_parts(dead: DeadParts) -> list[Finding]:
    """Return one note for each kind of part that the file lists as dead."""
    listed: Mapping[str, Sequence[str]] = {
        "GPU": [str(n) for n in dead.gpus],
        "NIC": [str(n) for n in dead.nics],
        "switch": dead.switches,
        "link": [f"{a} - {b}" for a, b in dead.links],
    }
    return [
        Finding(
            severity="note",
            check="dead",
            where=tuple(names[:3]),
            message=f"{_count(len(names), kind)} listed as dead",
        )
        for kind, names in listed.items()
        if names
    ]


def single_points(graph: Any, gpus: Sequence[str]) -> list[Finding]:
    """Return one warning for each kind of part whose loss alone cuts GPUs off from the rest.

    A vertex that stands for several parallel switches is no single point, nor is a GPU.
    """
    losses: dict[str, list[tuple[int, str]]] = {}
    for name, lost in cut_off_gpus(graph, gpus).items():
        vertex = graph.nodes[name]
        if vertex["kind"] != "gpu" and vertex.get("units", 1) == 1:
            losses.setdefault(vertex["kind"], []).append((lost, name))
    return [
        Finding(
            severity="warning",
            check="single point of failure",
            where=tuple(name for _, name in sorted(found, key=lambda x: (-x[0], x[1]))[:3]),
            message=f"{_count(len(found), _PART[kind])}: the loss of one cuts off up to "
            f"{_count(max(found)[0], 'GPU')}",
        )
        for kind, found in sorted(losses.items())
    ]


def cut_off_gpus(graph: Any, gpus: Sequence[str]) -> dict[str, int]:
    """Return the articulation vertices that part GPUs from GPUs, and how many each cuts off.

    Those outside the largest part that is left. One depth-first search (Hopcroft & Tarjan 1973)
    that also counts the GPUs below each vertex.
    """
    gpu_names = set(gpus)
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    below: dict[str, int] = {}
    parts: dict[str, list[int]] = {}
    cut_off: dict[str, int] = {}
    for root in graph:
        if root in order:
            continue
        visited: list[str] = []
        stack = [(root, root, iter(graph[root]))]
        order[root] = low[root] = len(order)
        while stack:
            vertex, parent, children = stack[-1]
            below.setdefault(vertex, int(vertex in gpu_names))
            child = next(children, None)
            if child is None:
                stack.pop()
                visited.append(vertex)
                if stack:
                    above = stack[-1][0]
                    low[above] = min(low[above], low[vertex])
                    below[above] += below[vertex]
                    if low[vertex] >= order[above]:
                        parts.setdefault(above, []).append(below[vertex])
            elif child not in order:
                order[child] = low[child] = len(order)
                stack.append((child, vertex, iter(graph[child])))
            elif child != parent:
                low[vertex] = min(low[vertex], order[child])
        total = below[root]
        for vertex in visited:
            separate = parts.get(vertex, [])
            rest = total - sum(separate) - int(vertex in gpu_names)
            left = [n for n in [*separate, rest] if n]
            if len(left) > 1:
                cut_off[vertex] = sum(left) - max(left)
    return cut_off


def _count(number: int, noun: str) -> str:
    plural = noun + ("es" if noun.endswith("ch") else "s")
    return f"{number} {noun if number == 1 else plural}"
