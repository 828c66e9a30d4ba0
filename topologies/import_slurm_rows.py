"""Switches and blocks as Slurm describes them, from either of its files, to an ImportedFabric."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from planner.errors import SpecError
from topologies.imported_fabric import (
    ImportedFabric,
    ImportedHost,
    ImportedLink,
    ImportFinding,
)

MOST_RING_NODES = 16
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRow:
    """One switch: its machines, or the switches below it.

    Args:
        name: of the switch.
        where: ``file:line``.
        nodes: names of its machines.
        children: names of the switches below it.
    """

    name: str
    where: str
    nodes: tuple[str, ...] = ()
    children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRow:
    """One block of machines.

    Args:
        name: of the block.
        where: ``file:line``.
        nodes: names of its machines.
    """

    name: str
    where: str
    nodes: tuple[str, ...]


def tree_fabric(rows: Sequence[SwitchRow], *, name: str, provenance: str) -> ImportedFabric:
    """Return the tree, forest or directed graph of *rows*.

    Raises:
        SpecError: a switch told twice, a child that is nowhere told, a loop.
    """
    known = {row.name: row for row in rows}
    faults = _twice([(row.name, row.where) for row in rows], "switch") + _every_machine(rows)
    for row in rows:
        for child in row.children:
            if child not in known:
                faults.append(
                    f"{row.where}: switch {row.name!r} lists {child!r}, which no line describes"
                )
    faults += _loops(known)
    nodes = {node: row.where for row in rows for node in row.nodes}
    faults += [
        f"{nodes[both]}: {both!r} is the name of a machine and of a switch"
        for both in sorted(set(nodes) & set(known))
    ]
    if not nodes:
        faults.append(f"{provenance}: no switch has machines")
    _refuse(faults)
    links = [ImportedLink(a=n, b=row.name) for row in rows for n in dict.fromkeys(row.nodes)]
    links += [ImportedLink(a=c, b=row.name) for row in rows for c in dict.fromkeys(row.children)]
    return ImportedFabric(
        name=name,
        kind="slurm-tree",
        provenance=provenance,
        hosts=tuple(ImportedHost(name=n, gpus=None, supernode=n) for n in nodes),
        switches=tuple(known),
        links=tuple(links),
        findings=tuple(_tree_findings(rows, provenance)),
    )


def block_fabric(
    rows: Sequence[BlockRow], sizes: Sequence[int], *, name: str, provenance: str, where: str
) -> ImportedFabric:
    """Return the blocks of *rows*, and above them one switch for each union of blocks.

    Whether a block is a scale-up domain the file does not say; it is taken to be one of machines
    that share scale-out switches, see ``as_supernodes``.

    Raises:
        SpecError: a block told twice, a machine in two blocks, sizes that do not double.
    """
    faults = _twice([(row.name, row.where) for row in rows], "block") + _every_machine(rows)
    homes: dict[str, BlockRow] = {}
    for row in rows:
        for node in row.nodes:
            if node in homes:
                faults.append(
                    f"{row.where}: machine {node!r} is in block {homes[node].name!r} and in "
                    f"block {row.name!r}: expected one block"
                )
            homes.setdefault(node, row)
    faults += size_faults(sizes, where)
    if not homes:
        faults.append(f"{provenance}: no block has machines")
    _refuse(faults)
    findings = [
        ImportFinding(severity="note", where=row.where, message=f"block {row.name!r} is empty")
        for row in rows
        if not row.nodes
    ]
    base = sizes[0] if sizes else max(len(row.nodes) for row in rows)
    for row in rows:
        if row.nodes and len(row.nodes) < base:
            message = f"block {row.name!r} has {len(row.nodes)} machines, fewer than {base}"
            findings.append(ImportFinding(severity="warning", where=row.where, message=message))
    findings += _prefixes([(row.where, row.nodes) for row in rows])
    links = [ImportedLink(a=node, b=row.name) for node, row in homes.items()]
    switches = [row.name for row in rows]
    below = list(switches)
    spare = 1
    for size in [*sizes[1:], 0]:
        span = size // (base * spare) if size else len(below)
        if span < 2 and size:
            continue
        above = []
        for at in range(0, len(below), max(1, span)):
            union = f"{size}-machines-{at // span}" if size else "all-blocks"
            above.append(union)
            links += [ImportedLink(a=low, b=union) for low in below[at : at + span]]
        if len(below) > 1:
            switches += above
        else:
            links = [one for one in links if one.b not in above]
            break
        spare, below = spare * span, above
    return ImportedFabric(
        name=name,
        kind="slurm-block",
        provenance=provenance,
        hosts=tuple(ImportedHost(name=n, gpus=None, supernode=n) for n in homes),
        switches=tuple(dict.fromkeys(switches)),
        links=tuple(links),
        block_sizes=tuple(sizes),
        assumed={"network.blocks": "switches above blocks are not in the file: one for each union"},
        findings=tuple(findings),
    )


def as_supernodes(found: ImportedFabric) -> ImportedFabric:
    """Return *found* with the first switch of each machine as its scale-up domain."""
    block: dict[str, str] = {}
    switches = set(found.switches)
    for one in found.links:
        if one.b in switches:
            block.setdefault(one.a, one.b)
    hosts = tuple(
        ImportedHost(name=h.name, gpus=h.gpus, supernode=block.get(h.name, h.name))
        for h in found.hosts
    )
    return ImportedFabric(
        **{
            **{name: getattr(found, name) for name in ImportedFabric.__dataclass_fields__},
            "hosts": hosts,
            "assumed": {**found.assumed, "supernode": "each block is a scale-up domain: as given"},
        }
    )


def size_faults(sizes: Sequence[int], where: str) -> list[str]:
    """Return what is wrong with block sizes: each must be the first times a power of two.

    >>> size_faults((4, 12), "f:1")
    ['f:1: block size 12 is 3 times the base size 4: expected a power of two times']
    """
    faults = []
    for size in sizes[1:]:
        times, rest = divmod(size, sizes[0])
        if rest or times < 1 or times & (times - 1):
            shown = f"{size / sizes[0]:g}"
            faults.append(
                f"{where}: block size {size} is {shown} times the base size {sizes[0]}: "
                "expected a power of two times"
            )
    if list(sizes) != sorted(set(sizes)):
        faults.append(f"{where}: block sizes {list(sizes)}: expected them to grow")
    return faults


def _every_machine(rows: Sequence[SwitchRow] | Sequence[BlockRow]) -> list[str]:
    """Return a fault for each row that lists ``ALL``, which Slurm takes for a machine's name."""
    return [
        f"{row.where}: {row.name!r} lists ALL, which stands for no machines here: expected a host "
        "list such as n[01-16]"
        for row in rows
        if any(node.upper() == "ALL" for node in row.nodes)
    ]


def _twice(named: Sequence[tuple[str, str]], what: str) -> list[str]:
    first: dict[str, str] = {}
    faults = []
    for name, where in named:
        if name in first:
            faults.append(f"{where}: {what} {name!r} is described again; first at {first[name]}")
        first.setdefault(name, where)
    return faults


def _loops(known: dict[str, SwitchRow]) -> list[str]:
    """Return a fault for the switches that are below themselves (Kahn's order does not end)."""
    parents = Counter(c for row in known.values() for c in set(row.children) if c in known)
    free = [name for name in known if not parents[name]]
    left = set(known)
    while free:
        name = free.pop()
        left.discard(name)
        for child in set(known[name].children):
            if child in known:
                parents[child] -= 1
                if not parents[child]:
                    free.append(child)
    if not left:
        return []
    first = min(left)
    return [f"{known[first].where}: switch {first!r} is below itself ({len(left)} in the loop)"]


def _tree_findings(rows: Sequence[SwitchRow], provenance: str) -> list[ImportFinding]:
    findings = []
    leaves: dict[str, list[SwitchRow]] = defaultdict(list)
    parents: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        for node in dict.fromkeys(row.nodes):
            leaves[node].append(row)
        for child in dict.fromkeys(row.children):
            parents[child].append(row.name)
        if not row.nodes and not row.children:
            message = f"switch {row.name!r} has neither machines nor switches"
            findings.append(ImportFinding(severity="note", where=row.where, message=message))
        if row.nodes and row.children:
            message = f"switch {row.name!r} has both machines and switches below it: Slurm refuses"
            findings.append(ImportFinding(severity="warning", where=row.where, message=message))
    twice = [node for node, on in leaves.items() if len(on) > 1]
    for node in twice[:_SHOWN]:
        on = leaves[node]
        message = f"machine {node!r} is on {len(on)} switches: {', '.join(r.name for r in on[:6])}"
        findings.append(ImportFinding(severity="warning", where=on[-1].where, message=message))
    if len(twice) > _SHOWN:
        message = f"{len(twice)} machines in all are on more than one switch"
        findings.append(ImportFinding(severity="warning", where=provenance, message=message))
    roots = [row for row in rows if row.name not in parents and (row.nodes or row.children)]
    if len(roots) > 1:
        shown = ", ".join(row.name for row in roots[:8])
        message = f"{len(roots)} switches have none above them: {shown}"
        findings.append(ImportFinding(severity="warning", where=roots[0].where, message=message))
    return findings + _prefixes([(row.where, row.nodes) for row in rows])


def _prefixes(listed: Sequence[tuple[str, Sequence[str]]]) -> list[ImportFinding]:
    """Return a finding for names that look like others that lost the front of their prefix."""
    counts = Counter(_prefix(n) for _, nodes in listed for n in nodes)
    usual = counts.most_common(1)[0][0] if counts else ""
    findings = []
    for where, nodes in listed:
        odd = [n for n in nodes if (p := _prefix(n)) != usual and usual.endswith(p)]
        if odd:
            message = (
                f"{odd[0]!r}{f' and {len(odd) - 1} more' if len(odd) > 1 else ''}: most names "
                f"begin with {usual!r}; is the front of the name missing?"
            )
            findings.append(ImportFinding(severity="warning", where=where, message=message))
    return findings


def _prefix(name: str) -> str:
    return name.rstrip("0123456789")


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        more = len(faults) - _SHOWN
        raise SpecError(*faults[:_SHOWN], *([f"and {more} faults more"] if more > 0 else []))
