"""A cluster's wiring as a picture needs it: supernodes whole, of many parts some and the last."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topologies.fabric_spec import FabricSpec

NETWORK = ("leaf", "spine", "core")
MOST_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """A cluster's graph with every supernode taken as one part.

    Args:
        rows: parts by kind, the innermost kind first.
        units: switches that a part stands for, or GPUs of a supernode [1].
        rates: what runs between two parts, one direction [bytes/s].
        links: physical links between two parts [1].
    """

    rows: Mapping[str, Sequence[str]]
    units: Mapping[str, int]
    rates: Mapping[tuple[str, str], float]
    links: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPart:
    """One part that is drawn: its name, and the GPUs or switches it stands for [1]."""

    name: str
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    """One row of the picture.

    Args:
        kind: ``supernode``, ``leaf``, ``spine`` or ``core``.
        parts: those that are drawn.
        all_parts: how many there are [1].
        all_units: GPUs or switches in all of them [1].
        down_bytes_per_s, up_bytes_per_s: what the first has to the rows below and above.
    """

    kind: str
    parts: tuple[ShownPart, ...]
    all_parts: int
    all_units: int
    down_bytes_per_s: float
    up_bytes_per_s: float

    @property
    def count(self) -> int:
        """Return how many supernodes or switches the row has [1]."""
        return self.all_parts if self.kind == "supernode" else self.all_units


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLink:
    """What joins two parts that are drawn: physical links, and their rate in one direction."""

    a: str
    b: str
    links: int
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a picture of a cluster shows.

    Args:
        name: of the cluster.
        rows: the innermost first.
        wires: between parts that are drawn.
        most_bytes_per_s: the most between any two parts, drawn or not.
        dead: what is broken, in words; it is not in the rows.
    """

    name: str
    rows: tuple[ShownRow, ...]
    wires: tuple[ShownLink, ...]
    most_bytes_per_s: float
    dead: tuple[str, ...]


def wiring_of(graph: Any, owners: Mapping[str, str] | None = None) -> Wiring:
    """Return the wiring of *graph* between supernodes and switches.

    Args:
        graph: a cluster's graph; NICs and the switches inside count as their supernode.
        owners: GPU to its supernode; of others, such as those that a free list leaves out, it is
            what stands before the first dot of the name.
    """
    part: dict[str, str] = {}
    units: Counter[str] = Counter()
    rows: dict[str, list[str]] = {"supernode": [], **{kind: [] for kind in NETWORK}}
    for name, vertex in graph.nodes(data=True):
        if vertex["kind"] == "gpu":
            owner = (owners or {}).get(name, name.split(".")[0])  # a busy GPU has no owner
            if owner not in units:
                rows["supernode"].append(owner)
            part[name] = owner
            units[owner] += 1
        elif vertex["kind"] in NETWORK:
            part[name] = name
            units[name] = vertex.get("units", 1)
            rows[vertex["kind"]].append(name)
    for name in graph:
        if name not in part:
            inside = (part[n] for n in graph[name] if graph.nodes[n]["kind"] == "gpu")
            part[name] = next(inside, name)
    rates: defaultdict[tuple[str, str], float] = defaultdict(float)
    links: Counter[tuple[str, str]] = Counter()
    for a, b, link in graph.edges(data=True):
        ends = (part[a], part[b])
        if ends[0] != ends[1]:
            pair = (min(ends), max(ends))
            rates[pair] += link["capacity_bytes_per_s"]
            links[pair] += link.get("links", 1)
    return Wiring(
        rows={kind: names for kind, names in rows.items() if names},
        units=units, rates=dict(rates), links=links,
    )  # fmt: skip


def dead_parts(spec: FabricSpec) -> tuple[str, ...]:
    """Return what the file says is dead; the graph no longer has it."""
    gpus = [f"GPU {gpu}" for gpu in spec.dead.gpus]
    nics = [f"NIC {nic}" for nic in spec.dead.nics]
    ends = [" to ".join(link) for link in spec.dead.links]
    return (*gpus, *nics, *spec.dead.switches, *ends)


def shown_of(wiring: Wiring, name: str, dead: Sequence[str]) -> Shown:
    """Return what a picture of *wiring* shows: of each row a dozen parts at most."""
    kinds = list(wiring.rows)
    level = {name: i for i, kind in enumerate(kinds) for name in wiring.rows[kind]}
    sides: defaultdict[tuple[str, bool], float] = defaultdict(float)
    for (a, b), rate in wiring.rates.items():
        for part, other in ((a, b), (b, a)):
            if part in level and other in level and level[part] != level[other]:
                sides[part, level[other] > level[part]] += rate
    rows = []
    for kind, names in wiring.rows.items():
        many = len(names) > MOST_SHOWN
        kept = [*names[: MOST_SHOWN - 2], names[-1]] if many else names
        rows.append(
            ShownRow(
                kind=kind,
                parts=tuple(ShownPart(name=n, units=wiring.units[n]) for n in kept),
                all_parts=len(names),
                all_units=sum(wiring.units[n] for n in names),
                down_bytes_per_s=sides[names[0], False],
                up_bytes_per_s=sides[names[0], True],
            )
        )
    drawn = {part.name for row in rows for part in row.parts}
    return Shown(
        name=name,
        rows=tuple(rows),
        wires=tuple(
            ShownLink(a=a, b=b, links=wiring.links[a, b], bytes_per_s=rate)
            for (a, b), rate in sorted(wiring.rates.items())
            if a in drawn and b in drawn
        ),
        most_bytes_per_s=max(wiring.rates.values(), default=0.0),
        dead=tuple(dead),
    )


def shown_from(document: Mapping[str, Any]) -> Shown:
    """Return the picture's content as a plan's document holds it, the inverse of ``asdict``."""
    rows = [
        ShownRow(**{**row, "parts": tuple(ShownPart(**part) for part in row["parts"])})
        for row in document["rows"]
    ]
    wires = tuple(ShownLink(**wire) for wire in document["wires"])
    return Shown(
        **{**document, "rows": tuple(rows), "wires": wires, "dead": tuple(document["dead"])}
    )
