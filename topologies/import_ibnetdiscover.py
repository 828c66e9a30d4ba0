"""Dumps of ibnetdiscover, and ibsim's files, to an ImportedFabric."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field

from planner.errors import SpecError
from topologies.imported_fabric import ImportedFabric, ImportedHost, ImportedLink, ImportFinding
from topologies.text_lines import numbered_lines

_RECORD = re.compile(r'(Switch|Ca|Hca|Rt)\s+(\d{1,4})\s+"([^"]{1,128})"(.*)', re.IGNORECASE)
_PORT = re.compile(r'\[(\d{1,4})\](?:\([0-9a-fx]+\))?\s*"([^"]{1,128})"\s*\[(\d{1,4})\](.*)')
_STRANGE_RATE = re.compile(r"\b[0-9]{1,2}x[A-Z]{1,4}[0-9]{0,2}\b")
_RATE = re.compile(r"\b(1|2|4|8|12)x(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)\b")
_DATA_GBIT = {
    "SDR": 2.0, "DDR": 4.0, "QDR": 8.0, "FDR10": 10.0, "FDR": 13.64, "EDR": 25.0, "HDR": 50.0,
    "NDR": 100.0, "XDR": 200.0,
}  # fmt: skip
"""What one lane carries after line coding [Gb/s]: InfiniBand Trade Association's roadmap."""
_UNNAMED = re.compile(r"MT\d+|Mellanox|ConnectX", re.IGNORECASE)
_MANAGED = re.compile(r"^MF\d+;")
"""In front of the name of a switch that has a manager of its own."""
_UNNAMED_SWITCH = re.compile(r"MT\d+|Mellanox|Infiniscale|Quantum|Voltaire|QLogic", re.IGNORECASE)
_MANY_ADAPTERS = 36
"""More than any machine has: 16 GPUs' adapters, twice, and some for storage."""
_DEVICE = re.compile(r"(?:HCA-|mlx\d+_|mthca|hfi\d*_|qib|ib)\S*", re.IGNORECASE)
_SHOWN = 20
_MOST_PORTS = 300_000


@dataclass(slots=True)
class _Port:
    """Where a port's cable leads, what the line says of it, and which line it is."""

    node: str
    port: int
    about: str
    line: int


@dataclass(slots=True)
class _Node:
    kind: str
    line: int
    about: str
    ports: dict[int, _Port] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cables:
    """Each cable once, and the texts of rates between each kind of ends with their lines."""

    links: list[ImportedLink] = field(default_factory=list)
    rates: dict[tuple[str, str], list[tuple[str, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )


def import_ibnetdiscover(text: str, name: str) -> ImportedFabric:
    """Return the fabric in a dump: switches, machines by their adapters' names, every link.

    Aggregation nodes (SHARP) are left out; parallel links are counted; slower or fewer links than
    usual are reported. A machine has as many GPUs as adapters, unless told otherwise.

    Raises:
        SpecError: every fault, with its line; a dump without switches.
    """
    nodes, faults = _records(text, name)
    switches = {i: n for i, n in nodes.items() if n.kind == "switch"}
    if not faults and not switches:
        faults.append(f"{name}: has no switch ({len(nodes)} nodes in all)")
    if faults:
        raise SpecError(*faults[:_SHOWN])
    findings: list[ImportFinding] = []
    hosts = _hosts(nodes, findings, name)
    names = {i: host for host, members in hosts.items() for i in members}
    names |= _switch_names(switches, hosts)
    if routers := [node for node in nodes.values() if node.kind == "rt"]:
        message = f"{len(routers)} routers to other subnets: left out"
        where = f"{name}:{routers[0].line}"
        findings.append(ImportFinding(severity="note", where=where, message=message))
    cables = _cables(nodes, names, findings, name)
    _report_widths(cables.links, {names[i] for i in switches}, findings)
    _report_rates(cables, findings, name)
    linked = {end for one in cables.links for end in (one.a, one.b)}
    kept = [host for host in hosts if host in linked]
    if not kept:
        raise SpecError(f"{name}: no machine is linked to a switch")
    return ImportedFabric(
        name="infiniband",
        kind="ibnetdiscover",
        provenance=f"InfiniBand dump {name}",
        hosts=tuple(ImportedHost(name=h, gpus=len(hosts[h]), supernode=h) for h in kept),
        switches=tuple(names[i] for i in switches),
        links=tuple(cables.links),
        assumed={
            "gpus_per_node": "one for each adapter: the dump says nothing of GPUs",
            "supernode": "each machine is one: the dump says nothing of scale-up links",
        },
        findings=tuple(findings),
    )


def _records(text: str, name: str) -> tuple[dict[str, _Node], list[str]]:
    nodes: dict[str, _Node] = {}
    faults: list[str] = []
    here: _Node | None = None
    ports = 0
    for number, raw in numbered_lines(text, name):
        line = raw.strip()
        if record := _RECORD.match(line):
            kind, ident = record.group(1).lower(), record.group(3)
            about = re.search(r'#\s*"([^"]*)"', record.group(4))
            here = _Node(kind, number, about.group(1) if about else ident)
            if ident in nodes:
                first = f"{name}:{nodes[ident].line}"
                faults.append(f"{name}:{number}: {ident!r} is described again; {first}")
            nodes[ident] = here
        elif line.startswith("["):
            ports += 1
            port = _PORT.match(line)
            if port is None or here is None:
                faults.append(
                    f'{name}:{number}: {line[:50]!r}: expected [port] "node"[port] of a node'
                )
            else:
                at, other, there, about_it = port.groups()
                here.ports[int(at)] = _Port(other, int(there), about_it, number)
        if ports > _MOST_PORTS:
            faults.append(f"{name}:{number}: more than {_MOST_PORTS:,} ports")
        if len(faults) >= _SHOWN or ports > _MOST_PORTS:
            break
    return nodes, faults


def _clean(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.:+-]", "-", name)[:100]


def _hosts(
    nodes: dict[str, _Node], findings: list[ImportFinding], name: str
) -> dict[str, list[str]]:
    """Return the adapters of each machine, by what their description has before the device.

    Where the last word is no device that we know, the first is the machine.
    """
    hosts: dict[str, list[str]] = defaultdict(list)
    nameless = 0
    for ident, node in nodes.items():
        if node.kind not in {"ca", "hca"} or "Aggregation Node" in node.about:
            continue
        words = node.about.split()
        if not words or _UNNAMED.match(words[0]):
            nameless += 1
            continue
        machine = words[:-1] if len(words) > 1 and _DEVICE.fullmatch(words[-1]) else words[:1]
        hosts[_clean(" ".join(machine))].append(ident)
    if nameless:
        message = f"{nameless} adapters do not say which machine they are in: left out"
        findings.append(ImportFinding(severity="warning", where=name, message=message))
    for host, members in hosts.items():
        if len(members) > _MANY_ADAPTERS:
            message = f"{host!r} has {len(members)} adapters: is it the first word of many names?"
            where = f"{name}:{nodes[members[0]].line}"
            findings.append(ImportFinding(severity="warning", where=where, message=message))
    return hosts


def _switch_names(switches: Mapping[str, _Node], hosts: Collection[str]) -> dict[str, str]:
    """Return what each switch is called: its system, with the chip where a chassis has many.

    A description that says only what it is, and one that several share, give way to the GUID.
    """
    own, chips = {}, {}
    for ident, node in switches.items():
        system, _, model = _MANAGED.sub("", node.about).partition(":")
        chip = model.partition("/")[2]
        own[ident] = "" if _UNNAMED_SWITCH.search(system) else _clean(system)
        chips[ident] = f"{own[ident]}-{_clean(chip)}" if chip and own[ident] else own[ident]
    of_system, of_chip = Counter(own.values()), Counter(chips.values())
    named: dict[str, str] = {}
    for ident in switches:
        unique = [n for n, among in ((own[ident], of_system), (chips[ident], of_chip)) if
                  n and among[n] == 1 and n not in hosts]  # fmt: skip
        named[ident] = unique[0] if unique else f"sw-{_clean(ident)}"
    return named


def _cables(
    nodes: dict[str, _Node], names: dict[str, str], findings: list[ImportFinding], name: str
) -> _Cables:
    """Return the cables between nodes that have a name."""
    seen: set[tuple[str, int]] = set()
    found = _Cables()

    def say(port: _Port, message: str) -> None:
        where = f"{name}:{port.line}"
        findings.append(ImportFinding(severity="warning", where=where, message=message))

    unknown: dict[str, _Port] = {}
    for ident, node in nodes.items():
        for number, port in node.ports.items():
            if (ident, number) in seen:
                continue
            leads = f"port {number} leads to {port.node[:60]!r}"
            there = nodes.get(port.node)
            if there is None:
                say(port, f"{leads}, which the dump does not describe")
                continue
            back = there.ports.get(port.port)
            if back is None or (back.node, back.port) != (ident, number):
                say(port, f"{leads} port {port.port}, but not back")
            else:
                seen.add((port.node, port.port))
            if ident not in names or port.node not in names:
                continue
            text = _RATE.search(port.about)
            rate = None
            if text:
                rate = int(text.group(1)) * _DATA_GBIT[text.group(2)] * 1e9 / 8
                low, high = sorted((node.kind, there.kind))
                found.rates[low, high].append((text.group(), port.line))
            elif strange := _STRANGE_RATE.search(port.about):
                unknown.setdefault(strange.group(), port)
            found.links.append(ImportedLink(a=names[ident], b=names[port.node], bytes_per_s=rate))
    for speed, port in list(unknown.items())[:_SHOWN]:
        say(port, f"link at {speed}: not a speed we know; its rate counts as not in the file")
    return found


def _report_rates(cables: _Cables, findings: list[ImportFinding], name: str) -> None:
    for found in cables.rates.values():
        usual = Counter(text for text, _ in found).most_common(1)[0][0]
        for text, line in [one for one in found if one[0] != usual][:_SHOWN]:
            message = f"link at {text}, most are {usual}"
            where = f"{name}:{line}"
            findings.append(ImportFinding(severity="warning", where=where, message=message))


def _report_widths(
    links: Iterable[ImportedLink],
    switches: Set[str],
    findings: list[ImportFinding],
) -> None:
    """Report pairs of switches with fewer parallel links than is usual."""
    pairs = Counter(
        (min(one.a, one.b), max(one.a, one.b))
        for one in links
        if one.a in switches and one.b in switches
    )
    if not pairs:
        return
    usual = Counter(pairs.values()).most_common(1)[0][0]
    fewer = [pair for pair, count in pairs.items() if count < usual]
    for a, b in fewer[:_SHOWN]:
        message = f"{pairs[a, b]} links between {a} and {b}, most pairs have {usual}"
        findings.append(ImportFinding(severity="warning", where="switches", message=message))
    if len(fewer) > _SHOWN:
        message = f"{len(fewer)} pairs in all have fewer links"
        findings.append(ImportFinding(severity="warning", where="switches", message=message))
