"""topograph's model files to an ImportedFabric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.documents import document_from_text
from planner.nodes import Node
from topologies.host_lists import HostListError, expand_hosts
from topologies.import_slurm_rows import SwitchRow, tree_fabric
from topologies.imported_fabric import ImportedFabric, ImportedHost, ImportFinding


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
    for block in root.list("blocks") if root.has("blocks") or not _has_nodes(root) else ():
        if block.kind != "map":
            block.fault("expected a block: a mapping with switch and nodes")
            continue
        switch = block.name("switch")
        nodes = _nodes(block)
        for key in ("annotations", "labels"):
            marks = block.optional(key)
            for mark, value in marks.items() if marks is not None and marks.kind == "map" else ():
                if mark.endswith("/domain"):
                    domain_of |= dict.fromkeys(nodes, value.as_name())
        if switch in rows:
            block.fault(f"switch {switch!r} has a second block")
        rows[switch] = SwitchRow(name=switch, where=block.where, nodes=nodes)
    findings = _switches(root, rows, domain_of)
    document.finish()
    found = tree_fabric(list(rows.values()), name="topograph", provenance=f"topograph model {name}")
    return replace(
        found,
        kind="topograph",
        hosts=_homed(found.hosts, domain_of),
        findings=(*found.findings, *findings),
    )


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
