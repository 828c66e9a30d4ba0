"""topograph's model files to an ImportedFabric.

Newer models map switches and list blocks below them; those before 2025 list switches and
``capacity_blocks``, which switches name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.documents import document_from_text
from planner.nodes import Node
from topologies.host_lists import HostListError, expand_hosts
from topologies.import_slurm_rows import SwitchRow, tree_fabric
from topologies.imported_fabric import ImportedFabric, ImportedHost, ImportFinding

_DOMAIN_MARKS = ("/domain", "/accelerator")
"""Ends of the labels and annotations that name a machine's accelerator domain."""


def import_topograph(text: str | bytes, name: str) -> ImportedFabric:
    """Return the model: its tree of switches, its machines, and their accelerator domains.

    Raises:
        SpecError: every fault, with its line.
    """
    document = document_from_text(text, name=name)
    root = document.root
    if root.kind != "map":
        root.fault("expected a mapping with switches and blocks")
        document.finish()
    rows: dict[str, SwitchRow] = {}
    domain_of: dict[str, str] = {}
    listed = root.optional("switches")
    if listed is not None and listed.kind == "list":
        findings = _older(root, rows, domain_of)
    else:
        findings = _blocks(root, rows, domain_of) + _switches(root, rows, domain_of)
    document.finish()
    found = tree_fabric(list(rows.values()), name="topograph", provenance=f"topograph model {name}")
    return replace(
        found,
        kind="topograph",
        hosts=_homed(found.hosts, domain_of),
        findings=(*found.findings, *findings),
    )


def _blocks(
    root: Node, rows: dict[str, SwitchRow], domain_of: dict[str, str]
) -> list[ImportFinding]:
    """Add the switches that blocks are below; machines of a block without one are left out."""
    findings = []
    for block in root.list("blocks") if root.has("blocks") or not _has_nodes(root) else ():
        if block.kind != "map":
            block.fault("expected a block: a mapping with switch and nodes")
            continue
        nodes = _nodes(block)
        if not block.has("switch"):
            message = f"a block without a switch: its {len(nodes)} machines are left out"
            findings.append(ImportFinding(severity="warning", where=block.where, message=message))
            continue
        switch = block.name("switch")
        for key in ("annotations", "labels"):
            marks = block.optional(key)
            for mark, value in marks.items() if marks is not None and marks.kind == "map" else ():
                if mark.endswith(_DOMAIN_MARKS):
                    domain_of |= dict.fromkeys(nodes, value.as_name())
        if switch in rows:
            block.fault(f"switch {switch!r} has a second block")
        rows[switch] = SwitchRow(name=switch, where=block.where, nodes=nodes)
    return findings


def _older(
    root: Node, rows: dict[str, SwitchRow], domain_of: dict[str, str]
) -> list[ImportFinding]:
    """Add the switches of an older model; a capacity block on no switch is one of its own."""
    machines: dict[str, tuple[Node, tuple[str, ...]]] = {}
    for block in root.list("capacity_blocks"):
        if block.kind != "map":
            block.fault("expected a capacity block: a mapping with name and nodes")
            continue
        nodes, domain = _nodes(block), block.optional("nvlink")
        machines[block.name("name")] = (block, nodes)
        if domain is not None and domain.kind != "null":
            domain_of |= dict.fromkeys(nodes, domain.as_name())
    placed: set[str] = set()
    for switch in root.list("switches"):
        if switch.kind != "map":
            switch.fault("expected a switch: a mapping with name, and switches or capacity_blocks")
            continue
        name = switch.name("name")
        below = [one.as_name() for one in switch.list("capacity_blocks", default=())]
        for missing in [one for one in below if one not in machines]:
            switch.fault(f"capacity block {missing!r} is nowhere described")
        placed.update(below)
        nodes = tuple(n for one in below if one in machines for n in machines[one][1])
        children = tuple(one.as_name() for one in switch.list("switches", default=()))
        if name in rows:
            switch.fault(f"switch {name!r} is described a second time")
        rows[name] = SwitchRow(name=name, where=switch.where, nodes=nodes, children=children)
    findings = []
    for name, (block, nodes) in machines.items():
        if name not in placed and name not in rows:
            message = f"capacity block {name} is on no switch that the file describes"
            findings.append(ImportFinding(severity="warning", where=block.where, message=message))
            rows[name] = SwitchRow(name=name, where=block.where, nodes=nodes)
    return findings


def _homed(
    hosts: tuple[ImportedHost, ...], domain_of: Mapping[str, str]
) -> tuple[ImportedHost, ...]:
    return tuple(replace(h, supernode=domain_of.get(h.name, h.name)) for h in hosts)


def _nodes(block: Node) -> tuple[str, ...]:
    names: list[str] = []
    for item in block.list("nodes"):
        text = str(item.plain()) if item.kind == "number" else item.as_text()
        try:
            names += expand_hosts(text) if text else ()
        except HostListError as error:
            for fault in error.faults:
                item.fault(fault)
    return tuple(names)


def _has_nodes(root: Node) -> bool:
    """Return whether switches list their machines themselves, as a provider's answer does."""
    listed = root.optional("switches")
    bodies = listed.items() if listed is not None and listed.kind == "map" else ()
    return any(body.has("nodes") for _, body in bodies)


def _listed(body: Node, domain_of: dict[str, str]) -> tuple[str, ...]:
    """Return the machines that a switch lists, and note their accelerated network."""
    names = []
    for item in body.list("nodes") if body.kind == "map" and body.has("nodes") else ():
        if item.kind == "map":
            names.append(item.name("node_id"))
            network = item.optional("accelerated_network_id")
            if network is not None and network.kind == "text" and network.value:
                domain_of[names[-1]] = network.as_name()
        else:
            names.append(item.as_name())
    return tuple(names)


def _switches(
    root: Node, rows: dict[str, SwitchRow], domain_of: dict[str, str]
) -> list[ImportFinding]:
    """Add the switches above the blocks; children that are nowhere described are left out."""
    listed = root.optional("switches")
    if listed is None or listed.kind != "map":
        return []
    told: dict[str, tuple[Node, tuple[str, ...]]] = {}
    for name, body in listed.items():
        if body.kind not in {"map", "null"}:
            body.fault("expected a mapping")
        elif body.kind == "map" and body.has("switches"):
            told[name] = (body, tuple(item.as_name() for item in body.list("switches")))
        else:
            told[name] = (body, ())
    findings = []
    for name, (body, children) in told.items():
        known = tuple(c for c in children if c in rows or c in told)
        for missing in [c for c in children if c not in known]:
            message = f"switch {name} lists {missing}, which has no block: left out"
            findings.append(ImportFinding(severity="warning", where=body.where, message=message))
        block = rows.get(name)
        nodes = (*(block.nodes if block else ()), *_listed(body, domain_of))
        rows[name] = SwitchRow(name=name, where=body.where, nodes=nodes, children=known)
    return findings
