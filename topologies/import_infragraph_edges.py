"""InfraGraph's newer schema, whose edges join endpoints such as ``host[0:4]`` and ``nic``."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

from planner.errors import SpecError
from planner.nodes import Node
from topologies.imported_fabric import MOST_VERTICES, ImportedFabric, ImportedHost, ImportedLink
from topologies.imported_links import Sets

_ACCELERATORS = ("xpu", "npu", "gpu")
_SLICE = re.compile(r"([A-Za-z0-9_.+-]{1,128})(?:\[(\d{0,7})(?:(:)(\d{0,7}))?\])?")
_MOST_EDGES = 2**20
_DEEPEST = 8
_UNITS = {
    "gigabytes_per_second": 1e9, "giga_bytes_per_second": 1e9, "g_bytes_per_second": 1e9,
    "gigabits_per_second": 1e9 / 8, "giga_bits_per_second": 1e9 / 8, "g_bits_per_second": 1e9 / 8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Device:
    """Counts of the parts of a device by name, and which of them are accelerators."""

    node: Node
    parts: Mapping[str, int]
    kinds: Mapping[str, str]


@dataclass(slots=True)
class _Wiring:
    """Links found so far, each pair of ends once with how many there are."""

    scale_out: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    scale_up: Counter[tuple[str, str, str]] = field(default_factory=Counter)


def edges_fabric(body: Node, name: str) -> ImportedFabric:
    """Return the infrastructure whose mapping is *body*; faults are kept by its document.

    Instances of devices with accelerators are machines, the others switches. An edge that ends at
    an accelerator itself is a scale-up link: machines that share such a switch are one supernode.

    Raises:
        SpecError: no machine, or too many endpoints.
    """
    devices = {d.name("name"): _device(d) for d in _maps(body, "devices")}
    rates = {link.name("name"): link_rate(link) for link in _maps(body, "links")}
    counts: dict[str, int] = {}
    device_of: dict[str, str] = {}
    for one in _maps(body, "instances"):
        label = one.name("name")
        counts[label] = one.count("count", default=1, maximum=MOST_VERTICES)
        device_of[label] = one.text("device")
    gpus = {label: _gpus_in(devices, device, body, _DEEPEST) for label, device in device_of.items()}
    wiring = _Wiring()
    for edge in _maps(body, "edges"):
        _take(edge, wiring, counts, device_of, devices)
    inner = _inner_rate(devices, device_of, gpus)
    body.faults.refuse()
    hosts = [f"{label}.{i}" for label, n in counts.items() if gpus[label] for i in range(n)]
    if not hosts or len(hosts) > MOST_VERTICES:
        raise SpecError(f"{name}: {len(hosts)} instances with accelerators: expected one at least")
    known, homes = set(hosts), Sets()
    up_rates: dict[str, float] = defaultdict(float)
    for (a, b, link), count in wiring.scale_up.items():
        homes.join(a, b)
        for end in (a, b):
            if end in known:
                up_rates[end] += count * (rates.get(link) or 0.0)
    first: dict[object, str] = {}
    ups = [rate / gpus[host.rpartition(".")[0]] for host, rate in up_rates.items() if rate]
    switches = dict.fromkeys(
        end for a, b, _ in wiring.scale_out for end in (a, b) if end not in known
    )
    return ImportedFabric(
        name="infragraph",
        kind="infragraph",
        provenance=f"InfraGraph infrastructure {name}",
        hosts=tuple(
            ImportedHost(
                name=host,
                gpus=gpus[host.rpartition(".")[0]],
                supernode=first.setdefault(homes.root(host), host),
            )
            for host in hosts
        ),
        switches=tuple(switches),
        links=tuple(
            ImportedLink(
                a=a, b=b, links=count,
                bytes_per_s=None if rates.get(link) is None else count * (rates[link] or 0.0),
            )
            for (a, b, link), count in wiring.scale_out.items()
        ),
        scale_up_bytes_per_s=min(ups) if ups else inner,
    )  # fmt: skip


def link_rate(link: Node) -> float | None:
    """Return a link's bandwidth [bytes/s], None where it has none or counts transfers."""
    physical = link.optional("physical")
    holder = physical if physical is not None and physical.kind == "map" else link
    band = holder.optional("bandwidth")
    if band is None or band.kind != "map":
        return None
    for unit, factor in _UNITS.items():
        if band.has(unit):
            return factor * band.number(unit, minimum=1e-6, maximum=1e9)
    if any(key.endswith("transfers_per_second") for key in band.keys()):  # noqa: SIM118 - a Node
        return None
    band.fault(f"expected one of {', '.join(_UNITS)}")
    return None


def _device(node: Node) -> _Device:
    parts, kinds = {}, {}
    for part in _maps(node, "components"):
        label = part.name("name")
        parts[label] = part.count("count", default=1, maximum=MOST_VERTICES)
        key = "choice" if part.has("choice") else "type"
        kinds[label] = part.text(key, default="custom")
    return _Device(node, parts, kinds)


def _gpus_in(devices: Mapping[str, _Device], name: str, at: Node, depth: int) -> int:
    """Return the accelerators of a device and of the devices it is composed of."""
    if name not in devices:
        return 0
    if not depth:
        at.fault(f"device {name!r} is composed of devices more than {_DEEPEST} deep")
        return 0
    device = devices[name]
    return sum(
        count if device.kinds[part] in _ACCELERATORS
        else count * _gpus_in(devices, part, at, depth - 1) if device.kinds[part] == "device"
        else 0
        for part, count in device.parts.items()
    )  # fmt: skip


def _inner_rate(
    devices: Mapping[str, _Device], device_of: Mapping[str, str], gpus: Mapping[str, int]
) -> float | None:
    """Return what one accelerator's links to its machine's own switches carry, where it is said."""
    found = []
    for label, device in device_of.items():
        if not gpus[label] or device not in devices:
            continue
        one = devices[device]
        rates = {link.name("name"): link_rate(link) for link in _maps(one.node, "links")}
        total = 0.0
        for edge in _maps(one.node, "edges"):
            ends = [_SLICE.fullmatch(edge.map(e).text("component", default="")) for e in _ENDS]
            names = [end.group(1) if end else "" for end in ends]
            kinds = {one.kinds.get(part, "") for part in names}
            rate = rates.get(edge.text("link", default=""))
            if kinds & set(_ACCELERATORS) and "switch" in kinds and rate is not None:
                hub = next(part for part in names if one.kinds.get(part) == "switch")
                total += rate * (one.parts[hub] if _is_many(edge) else 1)
        if total:
            found.append(total)
    return min(found) if found else None


_ENDS = ("ep1", "ep2")


def _take(
    edge: Node,
    wiring: _Wiring,
    counts: Mapping[str, int],
    device_of: Mapping[str, str],
    devices: Mapping[str, _Device],
) -> None:
    """Add the links of one edge."""
    ends: list[list[tuple[str, int]]] = []
    scale_up = False
    for key in _ENDS:
        end = edge.map(key)
        label, places = _sliced(end, "instance", counts)
        device = devices.get(device_of.get(label, ""))
        part, inside = _sliced(end, "component", None if device is None else device.parts)
        scale_up |= device is not None and device.kinds.get(part) in _ACCELERATORS
        if len(places) * len(inside) > _MOST_EDGES:
            end.fault("has more endpoints than any cluster")
            return
        ends.append([(f"{label}.{i}", j) for i, j in product(places, inside)])
    link = edge.text("link", default="")
    target = wiring.scale_up if scale_up else wiring.scale_out
    if _is_many(edge):
        if len(ends[0]) * len(ends[1]) > _MOST_EDGES:
            edge.fault(f"joins {len(ends[0])} and {len(ends[1])} endpoints: too many")
            return
        pairs = [(a, b) for (a, _), (b, _) in product(*ends)]
    else:
        if len(ends[0]) != len(ends[1]) and min(map(len, ends)) == 0:
            return
        pairs = [(a, b) for (a, _), (b, _) in zip(*ends, strict=False)]
    if len(wiring.scale_out) + len(wiring.scale_up) + len(pairs) > _MOST_EDGES:
        raise SpecError(f"{edge.where}: more than {_MOST_EDGES:,} links")
    for a, b in pairs:
        if a != b:
            target[(a, b, link)] += 1


def _is_many(edge: Node) -> bool:
    if edge.has("many2many"):
        return edge.flag("many2many")
    return edge.text("scheme", default="one2one", choices=("one2one", "many2many")) == "many2many"


def _sliced(end: Node, key: str, counts: Mapping[str, int] | None) -> tuple[str, range]:
    """Return the name under *key* and which of them: ``name``, ``name[3]`` or ``name[0:4]``."""
    text = end.text(key)
    match = _SLICE.fullmatch(text)
    if match is None:
        if text:
            end.fault("expected a name, name[3] or name[0:4]", key=key)
        return "", range(0)
    name, low, colon, high = match.groups()
    if counts is not None and name not in counts:
        end.fault(f"{name!r} is not described", key=key)
        return name, range(0)
    count = 2**20 if counts is None else counts[name]
    start = int(low) if low else 0
    stop = (int(high) if high else count) if colon else (start + 1 if low else count)
    if counts is None and not (low or high):
        return name, range(1)  # a part of a device in another file
    if stop > count or start >= stop:
        end.fault(f"{text!r}: there are {count}: expected 0 to {count}", key=key)
        return name, range(0)
    return name, range(start, stop)


def _maps(body: Node, key: str) -> tuple[Node, ...]:
    items = body.list(key) if body.has(key) else ()
    for item in items:
        if item.kind != "map":
            item.fault(f"expected a mapping in {key}")
    return tuple(item for item in items if item.kind == "map")
