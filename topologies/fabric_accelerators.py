"""Accelerators on file: peaks and memory in one file, fitted efficiencies in another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from planner.documents import read_document
from planner.errors import SpecError
from planner.fabric import Accelerator
from planner.nodes import Node, meant
from topologies.fabric_figures import ABOUT_FIGURES, Figures, positive, positive_if_there

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


def read_efficiency(node: Node, references: Mapping[str, str]) -> Efficiency:
    """Return one accelerator's efficiencies.

    ``bf16: 0.80`` and so on by precision, ``memory: 0.9``; ``fit`` may hold whatever the fit
    wants to say of itself.
    """
    figures = Figures(references=references)
    node.only(*PRECISIONS, "memory", "fit", *ABOUT_FIGURES)
    figures.note(node, "", (*PRECISIONS, "memory"), None)
    shares = {p: positive(node, p, node.share) for p in PRECISIONS if node.has(p)}
    return Efficiency(
        compute_share=MappingProxyType(shares),
        memory_share=positive(node, "memory", node.share),
        sources=MappingProxyType(figures.sources),
        assumed=MappingProxyType(figures.assumed),
    )


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
        shares = {p: self.efficiency.compute_share[p] for p in self.peaks}
        of_shares = {f"efficiency.{k}": v for k, v in self.efficiency.sources.items()}
        guessed = {f"efficiency.{k}": v for k, v in self.efficiency.assumed.items()}
        return Accelerator(
            name=self.name,
            peak_flops_per_s=MappingProxyType(dict(self.peaks)),
            memory_bytes=self.memory_bytes,
            memory_bytes_per_s=self.memory_bytes_per_s,
            efficiency_share=MappingProxyType(shares),
            memory_efficiency_share=self.efficiency.memory_share,
            power_w=self.power_w,
            scale_up_bytes_per_s=self.scale_up_bytes_per_s,
            sources=MappingProxyType({**self.figures.sources, **of_shares}),
            assumed=MappingProxyType({**self.figures.assumed, **guessed}),
        )


def read_accelerator(
    node: Node, name: str, references: Mapping[str, str], efficiency: Efficiency | None
) -> AcceleratorDraft:
    """Return the accelerator that *node* describes.

    Args:
        node: ``peak`` by precision, ``memory``, ``memory_rate``, ``scale_up``, ``power``, and
            ``efficiency`` where it is not on file apart.
        name: its name.
        references: short keys of sources.
        efficiency: from the file of efficiencies, or None.
    """
    figures = Figures(references=references)
    node.only("name", "peak", "efficiency", *_FIGURES, *ABOUT_FIGURES)
    whole = figures.note(node, "", _FIGURES, None)
    peak = node.map("peak")
    peak.only(*PRECISIONS, *ABOUT_FIGURES)
    figures.note(peak, "peak", PRECISIONS, whole)
    peaks = {p: positive(peak, p, peak.flops) for p in PRECISIONS if peak.has(p)}
    if node.has("peak") and not peaks:
        node.fault("expected one precision at least, such as bf16: 989 TFLOP/s", key="peak")
    if efficiency is None or node.has("efficiency"):
        efficiency = read_efficiency(node.map("efficiency"), references)
    if missing := [p for p in peaks if p not in efficiency.compute_share]:
        node.fault(f"no efficiency for {', '.join(missing)}: expected a share for each peak")
    return AcceleratorDraft(
        name=name,
        peaks=peaks,
        memory_bytes=positive(node, "memory", node.bytes),
        memory_bytes_per_s=positive(node, "memory_rate", node.rate),
        scale_up_bytes_per_s=positive_if_there(node, "scale_up", node.rate),
        power_w=positive_if_there(node, "power", node.power),
        efficiency=efficiency,
        figures=figures,
    )


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
def _filed_accelerators() -> Mapping[str, Accelerator]:
    """Return every accelerator on file."""
    measured = read_document(CATALOGUE / "efficiency.yaml", name="efficiency.yaml")
    shares = {name: read_efficiency(node, references()) for name, node in measured.root.items()}
    measured.finish()
    document = read_document(CATALOGUE / "accelerators.yaml", name="accelerators.yaml")
    drafts = {
        name: read_accelerator(node, name, references(), shares.get(name))
        for name, node in document.root.items()
    }
    document.finish()
    return MappingProxyType({name: draft.built() for name, draft in drafts.items()})
