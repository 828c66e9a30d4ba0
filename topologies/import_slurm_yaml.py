"""Slurm's topology.yaml (25.05 and newer), all kinds, to an ImportedFabric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

from planner.documents import document_from_text
from planner.errors import SpecError
from planner.nodes import Node
from topologies.host_lists import HostListError, expand_hosts
from topologies.import_slurm_rows import (
    MOST_RING_NODES,
    BlockRow,
    SwitchRow,
    block_fabric,
    size_faults,
    tree_fabric,
)
from topologies.imported_fabric import ImportedFabric, ImportedHost, ImportedLink

KINDS = ("tree", "block", "flat", "ring", "torus3d")


def import_slurm_yaml(text: str | bytes, name: str, *, topology: str = "") -> ImportedFabric:
    """Return one topology of a topology.yaml; all of them are checked.

    Args:
        text: the file's.
        name: what faults call the file.
        topology: which one; empty for the default one, or the only one.

    Raises:
        SpecError: every fault, with its line; a kind that says nothing of where machines are.
    """
    document = document_from_text(text, name=name)
    root = document.root
    items = root.as_list() if root.kind == "list" else (root,)
    if root.kind not in {"list", "map"}:
        root.fault("expected a topology, or a list of them")
    read: dict[str, _Topology] = {}
    for item in items:
        made = _topology(item, name)
        if made is not None and made.name in read:
            item.fault(f"topology {made.name!r} is described twice")
        elif made is not None:
            read[made.name] = made
    if root.kind == "list" and not items:
        root.fault("expected one topology at least")
    document.finish()
    return _chosen(tuple(read.values()), topology, name)()


class _Topology:
    """One topology, checked, and how to make a cluster of it."""

    def __init__(
        self, name: str, kind: str, default: bool, make: Callable[[], ImportedFabric] | None
    ) -> None:
        self.name, self.kind, self.default, self.make = name, kind, default, make


def _chosen(read: Sequence[_Topology], wanted: str, name: str) -> Callable[[], ImportedFabric]:
    names = ", ".join(f"{one.name} ({one.kind})" for one in read)
    if wanted:
        found = [one for one in read if one.name == wanted]
        if not found:
            raise SpecError(f"{name}: has no topology {wanted[:60]!r}; it has {names}")
    elif len(read) == 1:
        found = list(read)
    else:
        found = [one for one in read if one.default]
        if len(found) != 1:
            raise SpecError(
                f"{name}: {len(found)} of its topologies are the cluster's default: "
                f"give --topology, one of {names}"
            )
    if found[0].make is None:
        raise SpecError(
            f"{name}: topology {found[0].name} is {found[0].kind}: it says neither which machines "
            f"there are nor where; it has {names}"
        )
    return found[0].make


def _topology(item: Node, file: str) -> _Topology | None:
    """Return the topology in *item*, its faults left with it."""
    if item.kind != "map":
        item.fault("expected a topology: a mapping with the keys topology and one of its kinds")
        return None
    item.only("topology", "cluster_default", *KINDS)
    name = item.name("topology")
    default = item.flag("cluster_default", default=False)
    kinds = [kind for kind in KINDS if item.has(kind)]
    if not kinds:  # a skeleton that is not filled in: refused where it is the one asked for
        return _Topology(name, "empty", default, None)
    if len(kinds) > 1:
        item.fault(f"has {' and '.join(kinds)}: expected one of {', '.join(KINDS)}")
        return None
    kind = kinds[0]
    body = item.optional(kind)
    provenance = f"Slurm topology.yaml ({kind}) {file}, topology {name}"
    if kind == "flat":
        if body is not None and body.kind not in {"bool", "map"}:
            body.fault("flat: expected true, false or a mapping")
        return _Topology(name, kind, default, None)
    if body is None or body.kind != "map":
        item.fault("expected a mapping", key=kind)
        return None
    make = {"tree": _tree, "block": _block, "ring": _ring, "torus3d": _torus}[kind]
    return _Topology(name, kind, default, make(body, name, provenance))


def _many(body: Node, key: str) -> tuple[Node, ...]:
    """Return the mappings under *key*: a list of them, or a single one."""
    node = body.optional(key)
    if node is None:
        body.fault(f"missing key {key!r}")
        return ()
    items = (node,) if node.kind == "map" else node.as_list() if node.kind == "list" else ()
    if not items:
        node.fault(f"{key}: expected a list of mappings, or one mapping")
    for item in items:
        if item.kind != "map":
            item.fault(f"{key}: expected a mapping")
    return tuple(item for item in items if item.kind == "map")


def _hosts(item: Node, key: str) -> tuple[str, ...]:
    """Return the names under *key*; a name of digits alone stays text."""
    node = item.optional(key)
    if node is None or node.kind == "null":
        return ()
    text = str(node.plain()) if node.kind == "number" else node.as_text()
    try:
        return expand_hosts(text) if text else ()
    except HostListError as error:
        for fault in error.faults:
            item.fault(fault, key=key)
        return ()


def _named(item: Node, key: str) -> str:
    node = item.optional(key)
    if node is not None and node.kind == "number":
        return str(node.plain())
    return item.name(key)


def _late(body: Node, make: Callable[[], ImportedFabric]) -> Callable[[], ImportedFabric]:
    """Return *make*, once tried here so that its faults are the document's."""
    if len(body.faults):
        return make
    try:
        made = make()
    except SpecError as error:
        for fault in error.faults:
            body.fault(fault)
        return make
    return lambda: made


def _tree(body: Node, name: str, provenance: str) -> Callable[[], ImportedFabric]:
    body.only("switches")
    rows = []
    for item in _many(body, "switches"):
        item.only("switch", "nodes", "children", "link_speed")
        row = SwitchRow(
            name=_named(item, "switch"), where=item.where,
            nodes=_hosts(item, "nodes"), children=_hosts(item, "children"),
        )  # fmt: skip
        rows.append(row)
    return _late(body, lambda: tree_fabric(rows, name=name, provenance=provenance))


def _block(body: Node, name: str, provenance: str) -> Callable[[], ImportedFabric]:
    body.only("block_sizes", "blocks")
    sizes_node = body.optional("block_sizes")
    sizes: tuple[int, ...] = ()
    if sizes_node is not None:
        items = sizes_node.as_list() if sizes_node.kind == "list" else (sizes_node,)
        sizes = tuple(item.as_count() for item in items)
        if any(size < 1 for size in sizes):
            return lambda: block_fabric([], [], name=name, provenance=provenance, where="")
    rows = []
    for item in _many(body, "blocks"):
        item.only("block", "nodes")
        rows.append(
            BlockRow(name=_named(item, "block"), where=item.where, nodes=_hosts(item, "nodes"))
        )
    where = sizes_node.where if sizes_node is not None else body.where
    if size_faults(sizes, where):
        for fault in size_faults(sizes, where):
            body.fault(fault.removeprefix(f"{where}: "), key="block_sizes")
        sizes = ()
    return _late(
        body, lambda: block_fabric(rows, sizes, name=name, provenance=provenance, where=where)
    )


def _ring(body: Node, name: str, provenance: str) -> Callable[[], ImportedFabric]:
    body.only("rings")
    nodes: dict[str, None] = {}
    links = []
    for item in _many(body, "rings"):
        item.only("ring", "nodes")
        ring = _named(item, "ring")
        members = _hosts(item, "nodes")
        if not 1 <= len(members) <= MOST_RING_NODES:
            item.fault(f"ring {ring!r} has {len(members)} machines: expected 1 to 16")
            continue
        if again := [node for node in members if node in nodes]:
            item.fault(f"machine {again[0]!r} is in two rings: expected one")
        nodes |= dict.fromkeys(members)
        if len(members) > 1:
            pairs = zip(members, (*members[1:], members[0]), strict=True)
            round_it = [ImportedLink(a=a, b=b) for a, b in pairs]
            links += round_it[:1] if len(members) == 2 else round_it
    return _direct(body, nodes, links, name, "slurm-ring", provenance)


def _torus(body: Node, name: str, provenance: str) -> Callable[[], ImportedFabric]:
    body.only("toruses")
    nodes: dict[str, None] = {}
    links = []
    for item in _many(body, "toruses"):
        item.only("name", "nodes", "dims", "placements", "regions", "wrap")
        torus, members = _named(item, "name"), _hosts(item, "nodes")
        dims = _dims(item)
        for placement in _many(item, "placements") if item.has("placements") else ():
            _dims(placement)
        if not dims or min(dims) < 1:
            continue
        if prod(dims) != len(members):
            item.fault(
                f"torus {torus!r} of {dims[0]} x {dims[1]} x {dims[2]} = {prod(dims)} places "
                f"has {len(members)} machines: expected as many"
            )
            continue
        if again := [node for node in members if node in nodes]:
            item.fault(f"machine {again[0]!r} is in two toruses: expected one")
        nodes |= dict.fromkeys(members)
        links += _torus_links(members, dims)
    return _direct(body, nodes, links, name, "slurm-torus3d", provenance)


def _dims(item: Node) -> tuple[int, ...]:
    dims = item.map("dims")
    if dims.kind != "map":
        return ()
    dims.only("x", "y", "z")
    return tuple(dims.count(axis, maximum=4096) for axis in ("x", "y", "z"))


def _torus_links(members: Sequence[str], dims: Sequence[int]) -> list[ImportedLink]:
    """Return the link of each machine to the next along each axis, z fastest, wrapped."""
    x, y, z = dims
    links = []
    for i, j, k in product(range(x), range(y), range(z)):
        here = members[(i * y + j) * z + k]
        for (a, b, c), size, at in (
            (((i + 1) % x, j, k), x, i), ((i, (j + 1) % y, k), y, j), ((i, j, (k + 1) % z), z, k),
        ):  # fmt: skip
            if size > 2 or (size == 2 and at == 0):
                links.append(ImportedLink(a=here, b=members[(a * y + b) * z + c]))
    return links


def _direct(
    body: Node,
    nodes: dict[str, None],
    links: Sequence[ImportedLink],
    name: str,
    kind: str,
    provenance: str,
) -> Callable[[], ImportedFabric]:
    """Return a cluster whose machines are joined to one another."""
    hosts = tuple(ImportedHost(name=n, gpus=None, supernode=n) for n in nodes)
    return _late(
        body,
        lambda: ImportedFabric(
            name=name, kind=kind, provenance=provenance, hosts=hosts, links=tuple(links)
        ),
    )
