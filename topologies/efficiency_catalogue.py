"""What accelerators reach in whole training steps: ``catalogue/step_efficiency.yaml`` and back.

Peaks and memory are in ``accelerators.yaml``; here are the few numbers fitted on measured steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType

from planner.documents import Document, Node, read_document
from planner.errors import SpecError
from planner.fabric import Accelerator
from planner.steptime.columns import PRECISIONS, STACKS
from planner.steptime.rates import Efficiency
from topologies.fabric_accelerators import accelerator_names, load_accelerator
from topologies.fabric_figures import figure, figure_if_there
from topologies.file_kinds import handed_as

CATALOGUE = Path(__file__).parent / "catalogue" / "step_efficiency.yaml"
HALVES = CATALOGUE.with_name("step_efficiency_halves.yaml")
LEFT_OUT = CATALOGUE.with_name("step_efficiency_left_out.yaml")
UNFINISHED = "step_efficiency.unfinished"
"""A file beside them while they are written: all are of one fit once it is gone."""

_WRITTEN_BY = "as planner calibrate --out writes them"
_KEYS = ("gemm", "attention", "memory", "inner", "outer", "host", "step", "spread", "rows",
         "pace", "clock", "source", "assumed", "covered", "same_as", "called", "nic", "mesh",
         "domain")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """An accelerator as tables of steps name it.

    Args:
        name: its name in the catalogue.
        fitted_as: the accelerator whose fit it shares: its own name, or that of the same chip with
            other memory or links.
        accelerator: its peaks and memory.
        efficiency: what was fitted, None where nothing was measured.
        nic_bytes_per_s: the NIC a GPU of this kind usually has, 0 where unknown [bytes/s].
        mesh_gpus: GPUs that are joined pair by pair, without a switch; 0 where a switch joins [1].
        domain_gpus: GPUs of its scale-up domain where that is not the node; else 0 [1].
    """

    name: str
    fitted_as: str
    accelerator: Accelerator
    efficiency: Efficiency | None
    nic_bytes_per_s: float
    mesh_gpus: int = 0
    domain_gpus: int = 0

    @property
    def scale_up_bytes_per_s(self) -> float:
        """Rate of its scale-up links, one direction [bytes/s]."""
        return self.accelerator.scale_up_bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    efficiency: Efficiency | None
    same_as: str
    called: tuple[str, ...]
    nic_bytes_per_s: float
    mesh_gpus: int
    domain_gpus: int


def read_efficiencies(path: Path) -> Mapping[str, Efficiency]:
    """Return the efficiencies on file at *path*; SpecError names every fault with its line."""
    with handed_as("efficiency", path):
        return fits_in(_finished(path))


def fits_in(document: Document) -> Mapping[str, Efficiency]:
    """Return the efficiencies in *document*, by accelerator.

    Raises:
        SpecError: every fault with its line; or no accelerator has a fit.
    """
    if document.root.kind != "map":
        document.root.fault(f"expected accelerators and their fits, {_WRITTEN_BY}")
        document.finish()
    entries = _entries(document)
    fits = {name: entry.efficiency for name, entry in entries.items() if entry.efficiency}
    if not fits:
        raise SpecError(f"{document.name}: no fit of any accelerator: expected those {_WRITTEN_BY}")
    return MappingProxyType(fits)


def assumed_in(document: Document) -> Mapping[str, tuple[str, ...]]:
    """Return the numbers of each fit in *document* that its rows do not tell, by accelerator."""
    found = {
        name: tuple(key for key, _ in reasons.items())
        for name, node in document.root.items()
        if (reasons := node.map("assumed", default=None))
    }
    document.finish()
    return MappingProxyType(found)


def fitted_as(accelerator: str) -> str:
    """Return the accelerator whose fit the one called *accelerator* shares, often its own name."""
    entry = _shipped().get(accelerator)
    return (entry.same_as if entry else "") or accelerator


def efficiency_of(accelerator: str) -> Efficiency | None:
    """Return what the accelerator called *accelerator* was fitted to, None where nothing was."""
    entry = _shipped().get(accelerator)
    return entry.efficiency if entry else None


def shipped_efficiencies() -> Mapping[str, Efficiency]:
    """Return what ships, by accelerator."""
    return MappingProxyType(
        {name: entry.efficiency for name, entry in _shipped().items() if entry.efficiency}
    )


def shipped_halves() -> tuple[Mapping[str, Efficiency], Mapping[str, Efficiency]]:
    """Return the numbers fitted on the first and on the second half of the layouts."""
    document = _finished(HALVES)
    document.root.only("first", "second")
    first, second = (
        {name: _efficiency(node) for name, node in document.root.map(half).items()}
        for half in ("first", "second")
    )
    document.finish()
    return first, second


def shipped_left_out() -> Mapping[str, Mapping[str, Efficiency]]:
    """Return, for each source, the numbers fitted on all others, by accelerator."""
    document = _finished(LEFT_OUT)
    fits = {
        source: {name: _efficiency(one) for name, one in document.root.map(source).items()}
        for source, _ in document.root.items()
    }
    document.finish()
    return MappingProxyType(fits)


def chip_named(name: str, own: Chip | None = None) -> Chip | None:
    """Return the accelerator that a table calls *name* (``A100``, ``GB200-NVL72`` …).

    Args:
        name: as the table has it.
        own: one that goes before those of the catalogue, known by its own name alone.
    """
    wanted = _spelled(name)
    if own is not None and wanted == _spelled(own.name):
        return own
    known = _names().get(wanted) or _names().get(wanted.removeprefix("nvidia-"))
    return _chip(known) if known else None


def _spelled(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")


@lru_cache(maxsize=1)
def _shipped() -> Mapping[str, _Entry]:
    return _entries(_finished(CATALOGUE))


@lru_cache(maxsize=1)
def _names() -> Mapping[str, str]:
    names = {}
    for name in accelerator_names():
        names[name.lower()] = name
        entry = _shipped().get(name)
        for other in entry.called if entry else ():
            names[other.lower()] = name
    return names


@lru_cache(maxsize=64)
def _chip(name: str) -> Chip:
    entry = _shipped().get(name)
    return Chip(
        name=name,
        fitted_as=fitted_as(name),
        accelerator=load_accelerator(name),
        efficiency=entry.efficiency if entry else None,
        nic_bytes_per_s=entry.nic_bytes_per_s if entry else 0.0,
        mesh_gpus=entry.mesh_gpus if entry else 0,
        domain_gpus=entry.domain_gpus if entry else 0,
    )


def _finished(path: Path) -> Document:
    """Return the file at *path*.

    Raises:
        SpecError: it is one of several that were being written when that stopped.
    """
    marker = path.with_name(UNFINISHED)
    if path.name in {CATALOGUE.name, HALVES.name, LEFT_OUT.name} and marker.exists():
        raise SpecError(
            f"{path}: may be of another fit than the files beside it: {marker} says that writing "
            "them was stopped. Run planner calibrate TABLE --catalogue FOLDER again, or take the "
            "files back and remove it"
        )
    return read_document(path)


def _entries(document: Document) -> dict[str, _Entry]:
    entries = {name: _entry(node) for name, node in document.root.items()}
    for name, entry in entries.items():
        if entry.same_as and entry.same_as not in entries:
            document.root.fault(f"same_as names {entry.same_as}, which has no entry", key=name)
    document.finish()
    return {
        name: replace(entry, efficiency=entries[entry.same_as].efficiency)
        if entry.same_as
        else entry
        for name, entry in entries.items()
    }


def _entry(node: Node) -> _Entry:
    node.only(*_KEYS)
    called = tuple(item.as_text() for item in node.list("called", default=()))
    nic = figure_if_there(node, "nic", node.rate)
    fitted = node.has("gemm")
    return _Entry(
        efficiency=_efficiency(node) if fitted else None,
        same_as=node.name("same_as", default=""),
        called=called,
        nic_bytes_per_s=nic,
        mesh_gpus=node.count("mesh", default=0, minimum=0),
        domain_gpus=node.count("domain", default=0, minimum=0),
    )


def _efficiency(node: Node) -> Efficiency:
    gemm, attention, memory = node.map("gemm"), node.map("attention"), node.map("memory")
    host = node.map("host")
    gemm.only(*PRECISIONS)
    for part in (attention, memory, host):
        part.only(*STACKS)
    shares = {p: _share(gemm, p) for p in PRECISIONS if gemm.has(p)}
    if not shares:
        node.fault("expected one precision at least, such as bf16: 0.7", key="gemm")
    return Efficiency(
        gemm_share=shares or {"bf16": 1.0},
        attention_share={s: _share(attention, s) for s in STACKS if attention.has(s)},
        memory_share={s: _share(memory, s) for s in STACKS if memory.has(s)},
        inner_share=_share(node, "inner"),
        outer_share=_share(node, "outer"),
        host_s={s: figure(host, s, host.time, "host") for s in STACKS if host.has(s)},
        step_s=figure(node, "step", node.time),
        spread=figure(node, "spread", partial(node.number, minimum=0)),
        rows=node.count("rows", minimum=0),
        pace_ratio=_ratios(node, "pace"),
        clock_ratio=_ratios(node, "clock"),
        fitted_on=node.text("source"),  # the last line that is written: a file cut off lacks it
    )


def _share(node: Node, key: str) -> float:
    """Return a share above 0; where it is none, the fault is noted and 1 stands in."""
    return figure(node, key, node.share, "share") or 1.0


def _ratios(node: Node, key: str) -> dict[str, float]:
    if not node.has(key):
        return {}
    ratios = node.map(key)
    return {name: ratios.number(name, minimum=0.1, maximum=10.0) for name, _ in ratios.items()}
