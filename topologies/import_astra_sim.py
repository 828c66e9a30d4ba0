"""ASTRA-sim's analytical network files to an ImportedFabric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from planner.documents import document_from_text
from planner.nodes import Node
from topologies.imported_fabric import ImportedFabric, ImportedHost, ImportedLink

KINDS = ("Ring", "Switch", "FullyConnected")
_MOST_HOSTS = 2**16


_FIRST = ("topologies-per-dim", "units-count", "link-bandwidth", "link-latency", "links-count")
_SECOND = ("topology", "npus_count", "bandwidth", "latency")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dimensions:
    """What a file says of each dimension, innermost first.

    Args:
        kinds: one of ``KINDS``.
        counts: NPUs in one [1].
        rates: of one NPU [GB/s].
        waits: of one link [ns].
    """

    kinds: tuple[str, ...]
    counts: tuple[int, ...]
    rates: tuple[float, ...]
    waits: tuple[float, ...]


def import_astra_sim(text: str | bytes, name: str) -> ImportedFabric:
    """Return the network: its first dimension is the supernode, the others join supernodes.

    Bandwidth [GB/s] and latency [ns] are of one link. How many links an NPU has in each dimension
    follows from its kind, as ASTRA-sim connects them; the JSON of the first version says it.

    Raises:
        SpecError: lists of different lengths, an unknown kind, a number that is none.
    """
    kind = "json" if text.lstrip()[:1] in {"{", b"{"} else "yaml"
    document = document_from_text(text, name=name, kind=kind)
    root = document.root
    if root.kind != "map":
        root.fault("expected topology, npus_count, bandwidth, latency")
        document.finish()
    told = _first_version(root) if root.has(_FIRST[0]) else _second(root)
    document.finish()
    kinds, counts, rates, waits = told.kinds, told.counts, told.rates, told.waits
    if any(not 0 < rate < 1e9 for rate in rates) or any(wait > 1e12 for wait in waits):
        root.fault("bandwidth must be above 0 GB/s and latency below 1000 s")
    dims = counts[1:]
    if prod(dims) > _MOST_HOSTS or prod(counts) > 2**20:
        root.fault(f"{prod(counts):,} NPUs are too many")
    document.finish()
    places = [place[::-1] for place in product(*(range(n) for n in dims[::-1]))]
    names = {place: f"sn{i:02d}" for i, place in enumerate(places)}
    outer = [rate * 1e9 * counts[0] for rate in rates[1:]]
    nested = len(dims) > 1
    links = _nested(names, outer) if nested else _one_dimension(names, kinds[1:], outer)
    hosts = {*names.values()}
    switches = dict.fromkeys(end for one in links for end in (one.a, one.b) if end not in hosts)
    assumed = {
        "supernode": f"the first dimension, {kinds[0]} of {counts[0]}, as if switched, an NPU "
        f"having {rates[0]:.4g} GB/s over all its links"
    }
    if nested:
        assumed["network"] = (
            f"each dimension joins whole groups of the one inside it, as if switched "
            f"({', '.join(kinds[1:])}); the start-up of the third and outer ones is not used"
        )
    return ImportedFabric(
        name="astra-sim",
        kind="astra-sim",
        provenance=f"ASTRA-sim network file {name}",
        hosts=tuple(ImportedHost(name=n, gpus=counts[0], supernode=n) for n in names.values()),
        switches=tuple(switches),
        links=tuple(links),
        scale_up_bytes_per_s=rates[0] * 1e9,
        own_bytes_per_s=tuple(rate * 1e9 for rate in rates[1:]) if nested else (),
        scale_up_latency_s=waits[0] * 1e-9 * (2 if kinds[0] == "Switch" else 1),
        scale_out_latency_s=waits[1] * 1e-9 * (2 if kinds[1] == "Switch" else 1) or None
        if len(kinds) > 1
        else None,
        assumed=assumed,
    )


def _one_dimension(
    names: Mapping[tuple[int, ...], str], kinds: Sequence[str], rates: Sequence[float]
) -> list[ImportedLink]:
    """Return the links of a second dimension that is the last: a switch, a ring, or all pairs.

    Args:
        names: supernode at each place.
        kinds: of the dimension, empty where there is none.
        rates: of a supernode in it [bytes/s].
    """
    links: list[ImportedLink] = []
    size = len(names)
    hosts = list(names.values())
    for shape, rate in zip(kinds, rates, strict=True):
        for at, here in enumerate(hosts):
            if shape == "Switch":
                links.append(ImportedLink(a=here, b="dim1-switch", bytes_per_s=rate))
                continue
            ring = shape == "Ring" and size > 2
            ends = [(at + 1) % size] if ring else range(at + 1, size)
            share = 2 if ring else max(1, size - 1)
            links += (ImportedLink(a=here, b=hosts[end], bytes_per_s=rate / share) for end in ends)
    return links


def _nested(names: Mapping[tuple[int, ...], str], rates: Sequence[float]) -> list[ImportedLink]:
    """Return a tree of switches, one level for each dimension beyond the first.

    Args:
        names: supernode at each place.
        rates: of a supernode in each dimension [bytes/s].
    """
    links: dict[tuple[str, str], ImportedLink] = {}
    sizes = [1 + at for at in max(names)]  # the last place of all is the last in each dimension
    for place, name in names.items():
        below, supernodes = name, 1
        for axis, rate in enumerate(rates):
            rest = "-".join(map(str, place[axis + 1 :]))
            switch = f"dim{axis + 1}-switch{'-' if rest else ''}{rest}"
            links[below, switch] = ImportedLink(a=below, b=switch, bytes_per_s=rate * supernodes)
            below, supernodes = switch, supernodes * sizes[axis]
    return list(links.values())


def _second(root: Node) -> _Dimensions:
    """Return the dimensions of the second version's file."""
    kinds = [item.as_text(choices=KINDS) for item in root.list("topology")]
    counts = [item.as_count(maximum=2**20) for item in root.list("npus_count")]
    rates = [item.as_number(minimum=0) for item in root.list("bandwidth")]
    waits = [item.as_number(minimum=0) for item in root.list("latency")]
    if len({len(kinds), len(counts), len(rates), len(waits)}) != 1 or not kinds:
        root.fault(f"{', '.join(_SECOND)} must have the same length")
    links = [_links_of(kind, count) for kind, count in zip(kinds, counts, strict=False)]
    return _Dimensions(
        kinds=tuple(kinds), counts=tuple(counts), waits=tuple(waits),
        rates=tuple(n * r for n, r in zip(links, rates, strict=False)),
    )  # fmt: skip


def _links_of(kind: str, npus: int) -> int:
    """Return the links of one NPU in a dimension: a ring's both neighbours, all others, a switch.

    Source: ASTRA-sim's analytical network (congestion-aware), which connects each pair of
    neighbours in both directions, and a ring of two by one link.
    """
    if kind == "Switch":
        return 1
    return max(1, npus - 1) if kind == "FullyConnected" else min(2, max(1, npus - 1))


def _first_version(root: Node) -> _Dimensions:
    """Return the dimensions of the first version's JSON, each of an NPU's links counted."""
    kinds = [
        "FullyConnected" if item.plain() == "AllToAll" else item.as_text(choices=KINDS)
        for item in root.list("topologies-per-dim")
    ]
    counts = [item.as_count(maximum=2**20) for item in root.list("units-count")]
    links = [item.as_count(maximum=2**20) for item in root.list("links-count")]
    rates = [item.as_number(minimum=0) for item in root.list("link-bandwidth")]
    waits = [item.as_number(minimum=0) for item in root.list("link-latency")]
    if len({len(kinds), len(counts), len(links), len(rates), len(waits)}) != 1 or not kinds:
        root.fault(f"{', '.join(_FIRST)} must have the same length")
    return _Dimensions(
        kinds=tuple(kinds), counts=tuple(counts), waits=tuple(waits),
        rates=tuple(n * r for n, r in zip(links, rates, strict=False)),
    )  # fmt: skip
