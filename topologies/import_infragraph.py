"""InfraGraph's YAML, with dotted connections or with edges, to an ImportedFabric."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise

from planner.documents import document_from_text
from planner.errors import SpecError
from planner.nodes import Node
from topologies.import_infragraph_edges import edges_fabric, link_rate
from topologies.imported_fabric import ImportedFabric, ImportedHost, ImportedLink

_SWITCHES = ("sw", "switch", "leaf", "spine", "core")
_CUT = 2
_DOTTED = 5  # part.N.link.part.N


def import_infragraph(text: str | bytes, name: str) -> ImportedFabric:
    """Return the infrastructure: its instances joined by ``a.0.nic.1.link.b.0.port.2``.

    Raises:
        SpecError: every fault, with its line; a file that has devices but joins none.
    """
    document = document_from_text(text, name=name)
    root = document.root if document.root.kind == "map" else None
    body = root.optional("infrastructure") if root is not None else None
    if body is None and root is not None and (root.has("instances") or root.has("devices")):
        body = root  # newer schemas have no such key
    if body is None or body.kind != "map":
        document.root.fault("expected the key infrastructure, or instances and devices")
        document.finish()
        raise SpecError(f"{name}: no infrastructure")
    if body.has("edges"):
        return edges_fabric(body, name)
    instances = {i.name("name"): i.text("device") for i in _maps(body, "instances")}
    rates = {link.name("name"): link_rate(link) for link in _maps(body, "links")}
    told = {d.name("name"): _device(d) for d in _maps(body, "devices")}
    devices = {name: one.gpus for name, one in told.items()}
    used = [told[d].scale_up_bytes_per_s for d in instances.values() if d in told]
    inner = min((rate for rate in used or [d.scale_up_bytes_per_s for d in told.values()] if rate),
                default=None)  # fmt: skip
    cables: list[ImportedLink] = []
    for item in body.list("connections") if body.has("connections") else ():
        words = item.as_text().split(".") if item.kind == "text" else []
        at = next((i for i in range(_CUT, len(words)) if words[i] in instances), 0)
        if not at or words[0] not in instances or at + 1 >= len(words):
            if not any(devices.values()):  # a device's own parts: they tell nothing of machines
                item.fault("expected instance.N.part.N.link.instance.N.part.N")
            continue
        a, b = f"{words[0]}.{words[1]}", f"{words[at]}.{words[at + 1]}"
        cables.append(ImportedLink(a=a, b=b, bytes_per_s=rates.get(words[at - 1])))
    document.finish()
    if not cables:
        gpus = max(devices.values(), default=0)
        if not gpus:
            raise SpecError(f"{name}: joins no instances and has no device with an xpu")
        return ImportedFabric(
            name="infragraph", kind="infragraph", provenance=f"InfraGraph device {name}",
            hosts=(ImportedHost(name="machine", gpus=gpus, supernode="machine"),),
            scale_up_bytes_per_s=inner,
        )  # fmt: skip
    return replace(_joined(cables, instances, devices, name), scale_up_bytes_per_s=inner)


def _joined(
    cables: list[ImportedLink], instances: dict[str, str], devices: dict[str, int], name: str
) -> ImportedFabric:
    ends = [end for one in cables for end in (one.a, one.b)]
    names = dict.fromkeys(ends)
    kind = {n: n.rpartition(".")[0] for n in names}
    hosts = [n for n in names if not _is_switch(kind[n], instances, devices)]
    ports = Counter(ends)
    if not hosts:
        raise SpecError(f"{name}: all instances are switches: expected servers")
    assumed = {}
    if any(not devices.get(instances[kind[h]]) for h in hosts):
        assumed["gpus_per_node"] = "one for each adapter in use: the device is in another file"
    return ImportedFabric(
        name="infragraph",
        kind="infragraph",
        provenance=f"InfraGraph infrastructure {name}",
        hosts=tuple(
            ImportedHost(name=h, gpus=devices.get(instances[kind[h]]) or ports[h], supernode=h)
            for h in hosts
        ),
        switches=tuple(n for n in names if n not in set(hosts)),
        links=tuple(cables),
        assumed=assumed,
    )


def _is_switch(instance: str, instances: dict[str, str], devices: dict[str, int]) -> bool:
    device = instances[instance]
    if devices.get(device):
        return False
    return any(word in instance.lower() or word in device.lower() for word in _SWITCHES)


def _maps(body: Node, key: str) -> tuple[Node, ...]:
    items = body.list(key) if body.has(key) else ()
    for item in items:
        if item.kind != "map":
            item.fault(f"expected a mapping in {key}")
    return tuple(item for item in items if item.kind == "map")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Device:
    """A machine: its xpus, and what one has towards what joins all of them, None where unsaid."""

    gpus: int
    scale_up_bytes_per_s: float | None


def _device(device: Node) -> _Device:
    """Return how many xpus the device's connections number, and what joins them.

    A part that every xpu has a link to is a scale-up switch; PCIe switches have some xpus each.
    """
    xpus = {c.text("name") for c in _maps(device, "components") if c.text("type") == "xpu"}
    rates = {link.name("name"): link_rate(link) for link in _maps(device, "links")}
    seen: set[tuple[str, str]] = set()
    links: dict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    carried: dict[tuple[str, str], float] = {}
    for item in device.list("connections") if device.has("connections") else ():
        words = item.as_text().split(".") if item.kind == "text" else []
        seen |= {(a, b) for a, b in pairwise(words) if a in xpus}
        if len(words) != _DOTTED:
            continue
        (a, b), rate = ((words[0], words[1]), (words[3], words[4])), rates.get(words[2])
        if (a[0] in xpus) != (b[0] in xpus) and rate:
            xpu, hub = (a, b) if a[0] in xpus else (b, a)
            links[hub][xpu] += 1
            carried[hub] = rate
    hubs = [hub for hub, ends in links.items() if set(ends) == seen and len(seen) > 1]
    total = sum(carried[hub] * min(links[hub].values()) for hub in hubs)
    return _Device(gpus=len(seen), scale_up_bytes_per_s=total or None)
