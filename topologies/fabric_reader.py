"""A cluster file to FabricSpec: every fault with its line, every figure with its source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from planner.documents import Document
from planner.errors import SpecError
from planner.fabric import Accelerator, Nic
from planner.nodes import Node, meant
from topologies.fabric_accelerators import (
    AcceleratorDraft,
    accelerator_names,
    load_accelerator,
    read_accelerator,
)
from topologies.fabric_figures import ABOUT_FIGURES, Figures, figure, figure_if_there
from topologies.fabric_network_reader import NETWORK_KINDS, NetworkReader
from topologies.fabric_spec import (
    MOST_GPUS,
    SUPERNODE_KINDS,
    DeadParts,
    FabricSpec,
    SupernodeSpec,
)
from topologies.usual_efficiency import usual_efficiency

_SUPERNODE_FIGURES = ("rate", "latency", "links", "switches", "in_network_reduction")
_BOARD_FIGURES = ("gpus", "rate", "latency", "switches")
_NIC_FIGURES = ("rate", "in_flight", "transaction", "turnaround", "pcie", "startup")


def fabric_spec_from(document: Document, references: Mapping[str, str]) -> FabricSpec:
    """Return the cluster that *document* describes.

    Args:
        document: as read; its faults are refused here, all at once.
        references: short keys that a source may begin with, to what they stand for.

    Raises:
        SpecError: every fault, as ``file:line:column: key: what is wrong``.
    """
    root = document.root
    figures = Figures(references=references)
    root.only("name", "about", "accelerator", "gpus", "supernode", "nic", "network", "dead",
              *ABOUT_FIGURES)  # fmt: skip
    whole = figures.note(root, "", (), None)
    accelerator = _accelerator(root, references)
    gpus = root.count("gpus", maximum=MOST_GPUS)
    supernode = _read_supernode(root.map("supernode"), figures, whole, gpus)
    network = NetworkReader(node=root.map("network"), figures=figures, whole=whole)
    nic_node = root.map("nic")
    nic = _read_nic(nic_node, figures, whole, network.kind)
    parts = network.read(nic.rate_bytes_per_s, supernode.size)
    dead = _read_dead(root.map("dead", default=None), sum(supernode.sizes))
    about = root.text("about", default="")
    name = root.name("name")
    document.finish()
    try:
        built = _built(accelerator)
        return FabricSpec(
            name=name,
            about=about,
            accelerator=built,
            supernode=supernode.built(network.kind),
            nic=nic.built(),
            endpoint_latency_s=nic.startup_s,
            pcie_bytes_per_s=nic.pcie_bytes_per_s,
            network=parts.built(),
            network_label=network.kind,
            in_network_reduction=network.in_network_reduction,
            levels=network.domains,
            job_gpus=gpus,
            dead=dead,
            sources=MappingProxyType(figures.sources),
            assumed=MappingProxyType({**_guesses(accelerator, built), **figures.assumed}),
        )
    except SpecError as error:
        raise SpecError(*(placed(fault, root) for fault in error.faults)) from None


def placed(fault: str, root: Node) -> str:
    """Return *fault* with the place of what it begins with, or of the whole file."""
    here = root
    path = re.match(r"[a-z_]+(?:\.[a-z_]+)*", fault)
    for key in path.group().split(".") if path else ():
        here = here.optional(key) or here
    return f"{here.where}: {fault}"


def _accelerator(
    root: Node, references: Mapping[str, str]
) -> Accelerator | AcceleratorDraft | None:
    """Return the accelerator named or described under ``accelerator``."""
    node = root.optional("accelerator")
    if node is not None and node.kind == "map":
        return read_accelerator(node, node.name("name"), references, usual_efficiency())
    name = root.text("accelerator")
    if not name:
        return None
    if name not in accelerator_names():
        root.fault(f"unknown accelerator {name!r}{meant(name, accelerator_names())}",
                   key="accelerator")  # fmt: skip
        return None
    return load_accelerator(name)


def _guesses(read: Accelerator | AcceleratorDraft | None, built: Accelerator) -> dict[str, str]:
    """Return what is assumed of an accelerator that the file itself describes."""
    own = isinstance(read, AcceleratorDraft)
    return {f"accelerator.{name}": why for name, why in built.assumed.items()} if own else {}


def _built(accelerator: Accelerator | AcceleratorDraft | None) -> Accelerator:
    if isinstance(accelerator, AcceleratorDraft):
        return accelerator.built()
    if accelerator is None:
        raise SpecError("accelerator: expected a name or a description")
    return accelerator


@dataclass(frozen=True, slots=True, kw_only=True)
class _Supernode:
    """``supernode:`` as read, not yet checked as a whole."""

    sizes: tuple[int, ...]
    size: int
    kind: str
    bytes_per_s: float
    latency_s: float
    links: int
    switches: int
    dims: tuple[int, ...]
    in_network_reduction: bool
    board_gpus: int
    board_bytes_per_s: float
    board_latency_s: float
    board_switches: int

    def built(self, network_kind: str) -> SupernodeSpec:
        """Return the scale-up domains; in a torus network they are open boxes of it."""
        return SupernodeSpec(
            sizes=self.sizes,
            size=self.size,
            kind=self.kind,
            bytes_per_s=self.bytes_per_s,
            latency_s=self.latency_s,
            links=self.links,
            switches=self.switches,
            dims=self.dims,
            wraps=network_kind != "torus",
            in_network_reduction=self.in_network_reduction,
            board_gpus=self.board_gpus,
            board_bytes_per_s=self.board_bytes_per_s,
            board_latency_s=self.board_latency_s,
            board_switches=self.board_switches,
        )


def _read_supernode(node: Node, figures: Figures, whole: str | None, gpus: int) -> _Supernode:
    """Return ``supernode:``."""
    node.only(
        "size", "count", "sizes", "kind", "dims", "board", *_SUPERNODE_FIGURES, *ABOUT_FIGURES
    )
    covering = figures.note(node, "supernode", ("size", *_SUPERNODE_FIGURES), whole)
    size = node.count("size", maximum=MOST_GPUS)
    kind = node.text("kind", choices=SUPERNODE_KINDS)
    board = node.map("board", default=None)
    if board is not None:
        board.only(*_BOARD_FIGURES, *ABOUT_FIGURES)
        figures.note(board, "supernode.board", _BOARD_FIGURES, covering)
    if kind == "mesh_2d" and board is None:
        node.fault("missing key 'board': a 2D mesh is a mesh of boards")
    return _Supernode(
        sizes=_sizes(node, size, gpus),
        size=size,
        kind=kind,
        bytes_per_s=figure(node, "rate", node.rate),
        latency_s=figure(node, "latency", node.time),
        links=figure(node, "links", node.count),
        switches=figure(node, "switches", node.count) if kind == "switched" else 0,
        dims=tuple(n.as_count() for n in node.list("dims")) if kind == "torus" else (),
        in_network_reduction=node.flag("in_network_reduction", default=False),
        board_gpus=board.count("gpus", maximum=max(1, size)) if board else size,
        board_bytes_per_s=_board_rate(board, kind),
        board_latency_s=_board_latency(board),
        board_switches=figure(board, "switches", partial(board.count, default=0)) if board else 0,
    )


def _board_rate(board: Node | None, kind: str) -> float:
    if board is None:
        return 0.0
    if kind == "mesh_2d":
        return figure(board, "rate", board.rate)
    return figure_if_there(board, "rate", board.rate)


def _board_latency(board: Node | None) -> float:
    if board is None or not board.has("rate"):
        return 0.0
    return figure(board, "latency", board.time)


def _sizes(node: Node, size: int, gpus: int) -> tuple[int, ...]:
    """Return the size of each supernode: listed, counted, or as many as *gpus* fill."""
    if node.has("sizes") and node.has("count"):
        node.fault("expected either sizes or count, not both", key="count")
    if node.has("sizes"):
        sizes = tuple(n.as_count(1, max(1, size)) for n in node.list("sizes"))
    elif node.has("count"):
        count = node.count("count", maximum=MOST_GPUS)
        if count * size > MOST_GPUS:
            node.fault(f"{count} supernodes of {size} GPUs: expected {MOST_GPUS:,} GPUs at most",
                       key="count")  # fmt: skip
            count = 1
        sizes = (size,) * count
    else:
        if size > gpus:
            node.fault(f"a supernode of {size} GPUs is larger than gpus: {gpus}", key="size")
        sizes = (size,) * (gpus // size) + ((gpus % size,) if gpus % size else ())
    if sum(sizes) < gpus and (node.has("sizes") or node.has("count")):
        node.fault(f"the supernodes hold {sum(sizes)} GPUs, fewer than gpus: {gpus}")
    return sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class _NicRead:
    """``nic:`` as read."""

    rate_bytes_per_s: float
    in_flight: int
    transaction_bytes: float
    turnaround_s: float
    pcie_bytes_per_s: float
    startup_s: float

    def built(self) -> Nic:
        """Return the adapter."""
        return Nic(
            line_bytes_per_s=self.rate_bytes_per_s,
            in_flight=self.in_flight,
            transaction_bytes=self.transaction_bytes,
            turnaround_s=self.turnaround_s,
        )


def _read_nic(node: Node, figures: Figures, whole: str | None, network_kind: str) -> _NicRead:
    """Return ``nic:``; a torus has no PCIe between GPU and link."""
    node.only(*_NIC_FIGURES, *ABOUT_FIGURES)
    figures.note(node, "nic", _NIC_FIGURES, whole)
    rate = figure(node, "rate", node.rate)
    pcie = node.rate if network_kind != "torus" else partial(node.rate, default=rate)
    return _NicRead(
        rate_bytes_per_s=rate,
        in_flight=figure(node, "in_flight", node.count),
        transaction_bytes=figure(node, "transaction", node.bytes),
        turnaround_s=figure(node, "turnaround", node.time),
        pcie_bytes_per_s=figure(node, "pcie", pcie),
        startup_s=figure(node, "startup", node.time),
    )


def _read_dead(node: Node | None, gpus: int) -> DeadParts:
    """Return ``dead:``: GPU and NIC numbers, switch names, and links as pairs of names."""
    if node is None:
        return DeadParts()
    node.only("gpus", "nics", "switches", "links")
    return DeadParts(
        gpus=_numbers(node, "gpus", gpus),
        nics=_numbers(node, "nics", gpus),
        switches=tuple(n.as_name() for n in node.list("switches", default=())),
        links=tuple(_ends(n) for n in node.list("links", default=())),
    )


def _numbers(node: Node, key: str, gpus: int) -> tuple[int, ...]:
    """Return the GPU numbers listed under *key*, each once and inside the cluster."""
    seen: dict[int, Node] = {}
    for item in node.list(key, default=()):
        number = item.as_count(0, max(0, gpus - 1))
        if number in seen and item.value == number:
            item.fault(f"{number} is listed twice, first at {seen[number].where}")
        seen.setdefault(number, item)
    return tuple(seen)


def _ends(node: Node) -> tuple[str, str]:
    ends = tuple(n.as_name() for n in node.as_list())
    if len(ends) != 2:
        node.fault("expected two names: the vertices that the link joins")
        return "", ""
    return ends[0], ends[1]


__all__ = ["NETWORK_KINDS", "fabric_spec_from", "placed"]
