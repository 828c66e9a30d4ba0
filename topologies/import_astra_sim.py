"""ASTRA-sim's analytical network files to an ImportedFabric."""

from __future__ import annotations

from itertools import product
from math import prod

from planner.documents import document_from_text
from planner.nodes import Node
from topologies.imported_fabric import ImportedFabric, ImportedHost, ImportedLink

KINDS = ("Ring", "Switch", "FullyConnected")
_MOST_HOSTS = 2**16


_FIRST = ("topologies-per-dim", "units-count", "link-bandwidth", "link-latency", "links-count")
_SECOND = ("topology", "npus_count", "bandwidth", "latency")
_Lists = tuple[list[str], list[int], list[float], list[float]]


def import_astra_sim(text: str | bytes, name: str) -> ImportedFabric:
    """Return the network: its first dimension is the supernode, the others join supernodes.

    Bandwidth is of one NPU and dimension [GB/s], latency of one link [ns]. The JSON of the first
    version has the bandwidth of one link, and how many links an NPU has in each dimension.

    Raises:
        SpecError: lists of different lengths, an unknown kind, a number that is none.
    """
    kind = "json" if text.lstrip()[:1] in {"{", b"{"} else "yaml"
    document = document_from_text(text, name=name, kind=kind)
    root = document.root
    if root.kind != "map":
        root.fault("expected topology, npus_count, bandwidth, latency")
        document.finish()
    kinds, counts, rates, waits = _first_version(root) if root.has(_FIRST[0]) else _second(root)
    document.finish()
    if any(not 0 < rate < 1e9 for rate in rates) or any(wait > 1e12 for wait in waits):
        root.fault("bandwidth must be above 0 GB/s and latency below 1000 s")
    dims = counts[1:]
    if prod(dims) > _MOST_HOSTS or prod(counts) > 2**20:
        root.fault(f"{prod(counts):,} NPUs are too many")
    document.finish()
    places = list(product(*(range(n) for n in dims)))
    names = {place: f"sn{i:02d}" for i, place in enumerate(places)}
    links: list[ImportedLink] = []
    switches: dict[str, None] = {}
    for axis, (shape, size) in enumerate(zip(kinds[1:], dims, strict=True)):
        rate = rates[axis + 1] * 1e9 * counts[0]
        for place in places:
            here = names[place]
            if shape == "Switch":
                rest = "-".join(str(p) for i, p in enumerate(place) if i != axis)
                switch = f"dim{axis + 1}-switch{'-' if rest else ''}{rest}"
                switches[switch] = None
                links.append(ImportedLink(a=here, b=switch, bytes_per_s=rate))
                continue
            at = place[axis]
            ends = [(at + 1) % size] if shape == "Ring" else range(at + 1, size)
            for end in ends:
                if end == at or (shape == "Ring" and size == 2 and at == 1):
                    continue
                there = names[(*place[:axis], end, *place[axis + 1 :])]
                share = 2 if shape == "Ring" and size > 2 else max(1, size - 1)
                share = 1 if shape == "Ring" and size == 2 else share
                links.append(ImportedLink(a=here, b=there, bytes_per_s=rate / share))
    return ImportedFabric(
        name="astra-sim",
        kind="astra-sim",
        provenance=f"ASTRA-sim network file {name}",
        hosts=tuple(ImportedHost(name=n, gpus=counts[0], supernode=n) for n in names.values()),
        switches=tuple(switches),
        links=tuple(links),
        scale_up_bytes_per_s=rates[0] * 1e9,
        scale_up_latency_s=waits[0] * 1e-9 * (2 if kinds[0] == "Switch" else 1),
        scale_out_latency_s=waits[1] * 1e-9 * (2 if kinds[1] == "Switch" else 1) or None
        if len(kinds) > 1
        else None,
        assumed={"supernode": f"the first dimension, {kinds[0]} of {counts[0]}, as if switched"},
    )


def _second(root: Node) -> _Lists:
    """Return kinds, NPUs, rates and latencies of each dimension, of the second version's file."""
    kinds = [item.as_text(choices=KINDS) for item in root.list("topology")]
    counts = [item.as_count(maximum=2**20) for item in root.list("npus_count")]
    rates = [item.as_number(minimum=0) for item in root.list("bandwidth")]
    waits = [item.as_number(minimum=0) for item in root.list("latency")]
    if len({len(kinds), len(counts), len(rates), len(waits)}) != 1 or not kinds:
        root.fault(f"{', '.join(_SECOND)} must have the same length")
    return kinds, counts, rates, waits


def _first_version(root: Node) -> _Lists:
    """Return the same of the first version's JSON, each of an NPU's links counted."""
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
    return kinds, counts, [n * r for n, r in zip(links, rates, strict=False)], waits
