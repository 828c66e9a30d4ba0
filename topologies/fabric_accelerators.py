"""Accelerators on file: peaks and memory in one file, fitted efficiencies in another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

from planner.documents import read_document
from planner.errors import SpecError
from planner.fabric import Accelerator
from planner.nodes import Node, meant
from planner.units import format_flops
from topologies.fabric_figures import ABOUT_FIGURES, Figures, figure, figure_if_there
from topologies.plausible import PLAUSIBLE

CATALOGUE = Path(__file__).parent / "catalogue"
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8")
_FIGURES = ("memory", "memory_rate", "scale_up", "power")


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """What share of its peaks an accelerator reaches.

    Args:
        compute_share: by precision, 0 to 1.
        memory_share: of the memory bandwidth, 0 to 1.
        sources, assumed: by figure.
    """

    compute_share: Mapping[str, float]
    memory_share: float
    sources: Mapping[str, str]
    assumed: Mapping[str, str]

    def completed(self, usual: Efficiency) -> Efficiency:
        """Return this with the shares of *usual* where it has none, and why they are assumed."""
        stated = {*self.compute_share, *(("memory",) if self.memory_share else ())}
        lacks = {name: why for name, why in usual.assumed.items() if name not in stated}
        return Efficiency(
            compute_share=MappingProxyType({**usual.compute_share, **self.compute_share}),
            memory_share=self.memory_share or usual.memory_share,
            sources=self.sources,
            assumed=MappingProxyType({**lacks, **self.assumed}),
        )

    def of(self, accelerator: Accelerator) -> Accelerator:
        """Return *accelerator* with these efficiencies, sources and reasons in place of its own."""
        peaks = accelerator.peak_flops_per_s

        def with_own(stated: Mapping[str, str], own: Mapping[str, str]) -> Mapping[str, str]:
            kept = {k: v for k, v in stated.items() if not k.startswith("efficiency.")}
            mine = {f"efficiency.{k}": v for k, v in own.items() if k in peaks or k == "memory"}
            return MappingProxyType({**kept, **mine})

        return replace(
            accelerator,
            efficiency_share=MappingProxyType({p: self.compute_share[p] for p in peaks}),
            memory_efficiency_share=self.memory_share,
            sources=with_own(accelerator.sources, self.sources),
            assumed=with_own(accelerator.assumed, self.assumed),
        )


def read_efficiency(
    node: Node, references: Mapping[str, str], usual: Efficiency | None
) -> Efficiency:
    """Return one accelerator's efficiencies.

    ``bf16: 0.80`` and so on by precision, ``memory: 0.9``; ``fit`` may hold whatever the fit
    wants to say of itself.

    Args:
        node: the mapping.
        references: short keys of sources.
        usual: has what stands for a share that is left out; None where none may be.
    """
    figures = Figures(references=references)
    node.only(*PRECISIONS, "memory", "fit", *ABOUT_FIGURES)
    figures.note(node, "", (*PRECISIONS, "memory"), None)
    shares = {p: figure(node, p, node.share, "share") for p in PRECISIONS if node.has(p)}
    may_lack = usual is not None and not node.has("memory")
    stated = Efficiency(
        compute_share=MappingProxyType(shares),
        memory_share=0.0 if may_lack else figure(node, "memory", node.share, "share"),
        sources=MappingProxyType(figures.sources),
        assumed=MappingProxyType(figures.assumed),
    )
    return stated if usual is None else stated.completed(usual)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorDraft:
    """One accelerator as read, not yet checked: build it once its document has no faults."""

    name: str
    peaks: Mapping[str, float]
    memory_bytes: float
    memory_bytes_per_s: float
    scale_up_bytes_per_s: float
    power_w: float
    efficiency: Efficiency
    figures: Figures

    def built(self) -> Accelerator:
        """Return the accelerator."""
        plain = Accelerator(
            name=self.name,
            peak_flops_per_s=MappingProxyType(dict(self.peaks)),
            memory_bytes=self.memory_bytes,
            memory_bytes_per_s=self.memory_bytes_per_s,
            efficiency_share=self.efficiency.compute_share,
            memory_efficiency_share=self.efficiency.memory_share,
            power_w=self.power_w,
            scale_up_bytes_per_s=self.scale_up_bytes_per_s,
            sources=MappingProxyType(dict(self.figures.sources)),
            assumed=MappingProxyType(dict(self.figures.assumed)),
        )
        return self.efficiency.of(plain)


def read_accelerator(
    node: Node, name: str, references: Mapping[str, str], efficiency: Efficiency
) -> AcceleratorDraft:
    """Return the accelerator that *node* describes.

    Args:
        node: ``peak`` by precision, ``memory``, ``memory_rate``, ``scale_up``, ``power``, and
            ``efficiency`` where some of it is known.
        name: its name.
        references: short keys of sources.
        efficiency: from the file of efficiencies, or what is usual: what *node* leaves out.
    """
    figures = Figures(references=references)
    node.only("name", "peak", "efficiency", *_FIGURES, *ABOUT_FIGURES)
    whole = figures.note(node, "", _FIGURES, None)
    peak = node.map("peak")
    peak.only(*PRECISIONS, *ABOUT_FIGURES)
    figures.note(peak, "peak", PRECISIONS, whole)
    peaks = {p: figure(peak, p, peak.flops, "peak") for p in PRECISIONS if peak.has(p)}
    if node.has("peak") and not peaks:
        node.fault("expected one precision at least, such as bf16: 989 TFLOP/s", key="peak")
    if node.has("efficiency"):
        efficiency = read_efficiency(node.map("efficiency"), references, efficiency)
    memory_bytes_per_s = figure(node, "memory_rate", node.rate)
    if peaks and not len(node.faults):
        _refuse_unbalanced(node, max(peaks.values()), memory_bytes_per_s)
    if missing := [p for p in peaks if p not in efficiency.compute_share]:
        node.fault(f"no efficiency for {', '.join(missing)}: expected a share for each peak")
    return AcceleratorDraft(
        name=name,
        peaks=peaks,
        memory_bytes=figure(node, "memory", node.bytes),
        memory_bytes_per_s=memory_bytes_per_s,
        scale_up_bytes_per_s=figure_if_there(node, "scale_up", node.rate),
        power_w=figure_if_there(node, "power", node.power),
        efficiency=efficiency,
        figures=figures,
    )


def _refuse_unbalanced(node: Node, flops_per_s: float, memory_bytes_per_s: float) -> None:
    """Write down a memory that feeds a peak so little, or so much, that one unit is a slip."""
    if fault := PLAUSIBLE["balance"].fault(flops_per_s / memory_bytes_per_s):
        node.fault(f"for a peak of {format_flops(flops_per_s)}: {fault}", key="memory_rate")


def accelerator_names() -> tuple[str, ...]:
    """Return the names of the accelerators on file, in the order of the file."""
    return tuple(_filed_accelerators())


def load_accelerator(name: str) -> Accelerator:
    """Return the accelerator called *name*, with its efficiencies.

    Raises:
        SpecError: unknown name; the message lists the names there are.

    >>> load_accelerator("H100-SXM").peak_flops_per_s["bf16"] / 1e12
    989.0
    """
    filed = _filed_accelerators()
    if name not in filed:
        raise SpecError(
            f"unknown accelerator {name[:128]!r}{meant(name, tuple(filed))}: expected one of "
            f"{', '.join(filed)}"
        )
    return filed[name]


@cache
def references() -> Mapping[str, str]:
    """Return what the short keys of sources stand for."""
    document = read_document(CATALOGUE / "references.yaml", name="references.yaml")
    found = {key: node.as_text() for key, node in document.root.items()}
    document.finish()
    return MappingProxyType(found)


@cache
def filed_efficiencies() -> Mapping[str, Efficiency]:
    """Return what every accelerator on file reaches, by its name."""
    document = read_document(CATALOGUE / "efficiency.yaml", name="efficiency.yaml")
    found = {n: read_efficiency(node, references(), None) for n, node in document.root.items()}
    document.finish()
    return MappingProxyType(found)


@cache
def _filed_accelerators() -> Mapping[str, Accelerator]:
    """Return every accelerator on file."""
    shares = filed_efficiencies()
    document = read_document(CATALOGUE / "accelerators.yaml", name="accelerators.yaml")
    drafts = {
        name: read_accelerator(node, name, references(), shares[name])
        for name, node in document.root.items()
    }
    document.finish()
    return MappingProxyType({name: draft.built() for name, draft in drafts.items()})
