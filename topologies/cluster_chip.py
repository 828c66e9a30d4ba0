"""The accelerator of a cluster as tables of steps name it: one that the catalogue need not have."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from planner.documents import document_from_text, read_bytes
from planner.fabric import Accelerator, Fabric
from planner.nodes import Node
from topologies.efficiency_catalogue import Chip, efficiency_of, fitted_as
from topologies.fabric_accelerators import read_accelerator
from topologies.fabric_catalogue import is_shipped, load_cluster
from topologies.fabric_figures import ABOUT_FIGURES, Figures, figure, figure_if_there
from topologies.fabric_spec import MOST_GPUS
from topologies.file_kinds import handed_as
from topologies.usual_efficiency import usual_efficiency, with_usual_efficiency

_SHORT = re.compile(rb"^accelerator[ \t]*:", re.MULTILINE)
_WHOLE = re.compile(rb"^(?:network|gpus)[ \t]*:", re.MULTILINE)
_KINDS = ("switched", "full_mesh")


def cluster_chip(name_or_path: str) -> Chip:
    """Return the accelerator of a cluster, with the links and the NIC that the cluster gives it.

    Rows that name it run on the cluster's peaks, memory, scale-up domain and rates, but for what
    they state themselves. An accelerator of the catalogue keeps its fit.

    Args:
        name_or_path: a cluster as ``load_cluster`` takes it, or a file of the short form: its
            ``accelerator``, and of ``supernode`` the size, kind and rate, of ``nic`` the rate,
            where they are known.

    Raises:
        SpecError: every fault of the file.
    """
    with handed_as("chip", name_or_path):
        return _chip_in(name_or_path)


def _chip_in(name_or_path: str) -> Chip:
    path = Path(name_or_path)
    if not is_shipped(name_or_path) and path.is_file():
        content = read_bytes(path)
        if _SHORT.search(content) and not _WHOLE.search(content):
            return _short_form(content, name_or_path)
    return chip_of(load_cluster(name_or_path))


def chip_to_fit(name_or_path: str) -> Chip:
    """Return the same for a fit, which what the file guesses of its efficiencies must not bend."""
    chip = cluster_chip(name_or_path)
    return replace(chip, accelerator=with_usual_efficiency(chip.accelerator))


def chip_of(fabric: Fabric) -> Chip:
    """Return the accelerator of *fabric* as ``cluster_chip`` does."""
    inner = fabric.tier("supernode")
    gpus = max(len(domain.gpus) for domain in inner.domains)
    return _chip(
        replace(fabric.accelerator, scale_up_bytes_per_s=inner.bytes_per_s),
        _Links(
            nic_bytes_per_s=fabric.nic.line_bytes_per_s,
            mesh_gpus=gpus if inner.pair_bytes_per_s < inner.bytes_per_s else 0,
            domain_gpus=gpus,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Links:
    """What joins the GPUs, 0 where it is not known."""

    nic_bytes_per_s: float
    mesh_gpus: int
    domain_gpus: int


def _chip(accelerator: Accelerator, links: _Links) -> Chip:
    return Chip(
        name=accelerator.name,
        fitted_as=fitted_as(accelerator.name),
        accelerator=accelerator,
        efficiency=efficiency_of(accelerator.name),
        nic_bytes_per_s=links.nic_bytes_per_s,
        mesh_gpus=links.mesh_gpus,
        domain_gpus=links.domain_gpus,
    )


def _short_form(content: bytes, name: str) -> Chip:
    """Return the accelerator that a file without a network describes."""
    document = document_from_text(content, name=name)
    root = document.root
    root.only("name", "about", "accelerator", "supernode", "nic", *ABOUT_FIGURES)
    figures = Figures(references=MappingProxyType({}))
    figures.note(root, "", (), None)
    node = root.map("accelerator")
    draft = read_accelerator(node, node.name("name"), MappingProxyType({}), usual_efficiency())
    inner, nic = root.map("supernode", default=None), root.map("nic", default=None)
    inner_bytes_per_s = figure_if_there(inner, "rate", inner.rate) if inner else 0.0
    links = _links(inner, nic)
    document.finish()
    accelerator = draft.built()
    rate = inner_bytes_per_s or accelerator.scale_up_bytes_per_s
    return _chip(replace(accelerator, scale_up_bytes_per_s=rate), links)


def _links(inner: Node | None, nic: Node | None) -> _Links:
    size, kind = 0, "switched"
    if inner is not None:
        inner.only("size", "kind", "rate", *ABOUT_FIGURES)
        size = inner.count("size", maximum=MOST_GPUS)
        kind = inner.text("kind", choices=_KINDS, default="switched")
    if nic is not None:
        nic.only("rate", *ABOUT_FIGURES)
    return _Links(
        nic_bytes_per_s=figure(nic, "rate", nic.rate) if nic else 0.0,
        mesh_gpus=size if kind == "full_mesh" else 0,
        domain_gpus=size,
    )
