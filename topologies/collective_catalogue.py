"""The measured numbers of the communication library: ``catalogue/collectives.yaml`` and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.collectives.library import (
    Calibration,
    FitError,
    LibraryNumbers,
    NetworkClass,
    ScaleUpClass,
    measured_links,
)
from planner.collectives.links import LinkNumbers, Protocol, links_of, two_tiers
from planner.collectives.measured import machine_named, network_class
from planner.documents import Node, document_from_text, read_document, yaml_text
from planner.errors import InputError
from planner.fabric import Fabric

CATALOGUE = Path(__file__).parent / "catalogue" / "collectives.yaml"

_PROTOCOL = (
    "name", "base", "inside_latency_factor", "across_extra", "rate_share", "across_rate_share",
    "whole_chunks", "exchange_share", "exchange_base", "fill",
)  # fmt: skip
_SCALE_UP = (
    "launch", "latency", "whole_chunk_factor", "efficiency_share", "reduction_share",
    "reduction_chunk", "max_rails",
)  # fmt: skip
_NO_LIMIT = "none"


@lru_cache(maxsize=1)
def shipped_calibration() -> Calibration:
    """Return the calibration that comes with the planner."""
    return read_calibration(CATALOGUE)


def read_calibration(path: Path) -> Calibration:
    """Return the calibration on file at *path*; SpecError names every fault with its line."""
    document = read_document(path)
    calibration = _calibration(document.root)
    document.finish()
    return calibration


def calibration_from_text(text: str, name: str = "<text>") -> Calibration:
    """Return the calibration that YAML *text* says."""
    document = document_from_text(text, name=name)
    calibration = _calibration(document.root)
    document.finish()
    return calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLinks:
    """A fabric's links with the library's measured numbers.

    Args:
        links: for ``planner.collectives.cost.cheapest``; use its ``LIBRARY`` as ``available``.
        scale_up: class that the GPUs were taken for.
        network: class that the NICs were taken for.
        assumed: what was assumed, with the error it had where it could be tested; "" if nothing.
    """

    links: LinkNumbers
    scale_up: str
    network: str
    assumed: str


def measured_links_of(fabric: Fabric, calibration: Calibration | None = None) -> MeasuredLinks:
    """Return the link numbers of *fabric* under the shipped calibration, or under *calibration*.

    A GPU that nobody measured gets the generic class, and ``assumed`` says so. The network is
    taken for InfiniBand of the NIC's speed: the file of a fabric does not name the transport.
    """
    numbers = shipped_calibration() if calibration is None else calibration
    machine = machine_named(fabric.accelerator.name)
    scale_up = machine.scale_up if machine else "generic"
    network = network_class("", fabric.nic.line_bytes_per_s)
    assumed = ""
    if machine is None:
        error = numbers.errors.get("generic")
        off = f"; such a guess was {error.median_share:.0%} off at the median" if error else ""
        assumed = f"collectives of {fabric.accelerator.name}: mean of measured machines{off}"
    return MeasuredLinks(
        links=measured_links(
            links_of(fabric),
            numbers.library,
            numbers.scale_up[scale_up],
            numbers.network[network],
        ),
        scale_up=scale_up,
        network=network,
        assumed=assumed,
    )


def measured_links_named(
    machine: str,
    nic_bytes_per_s: float,
    scale_up_bytes_per_s: float | None = None,
    calibration: Calibration | None = None,
) -> MeasuredLinks:
    """Return the link numbers of supernodes under one network, by the name of their GPU.

    Args:
        machine: what names the GPU, and EFA where that is the network: ``H100 p5, EFA``.
        nic_bytes_per_s: nominal rate of one GPU's NIC [bytes/s].
        scale_up_bytes_per_s: nominal rate inside; None for that of the GPU named [bytes/s].
        calibration: left out, the shipped one.

    Raises:
        InputError: a GPU that no class covers, without a scale-up rate.
    """
    numbers = shipped_calibration() if calibration is None else calibration
    known = machine_named(machine)
    if known is None and scale_up_bytes_per_s is None:
        raise InputError(
            f"{machine[:60]!r}: not a GPU whose scale-up links were measured; give the rate inside"
        )
    inside = scale_up_bytes_per_s or (known.bytes_per_s if known else 0.0)
    scale_up = known.scale_up if known else "generic"
    network = network_class(machine, nic_bytes_per_s)
    links = two_tiers(
        inside_bytes_per_s=inside,
        nic_bytes_per_s=nic_bytes_per_s,
        inside_reduction=bool(known and known.reduces),
    )
    assumed = "" if known else f"{machine[:60]}: mean of the measured classes of GPUs"
    return MeasuredLinks(
        links=measured_links(
            links, numbers.library, numbers.scale_up[scale_up], numbers.network[network]
        ),
        scale_up=scale_up,
        network=network,
        assumed=assumed,
    )


def _calibration(root: Node) -> Calibration:
    root.only("library", "scale_up", "network", "errors", "sources")
    library = root.map("library")
    library.only("own_step_share", "issue", "protocols")
    return Calibration(
        library=LibraryNumbers(
            protocols=tuple(_protocol(item) for item in library.list("protocols")),
            own_step_share=library.number("own_step_share", minimum=0),
            issue_s=library.time("issue"),
        ),
        scale_up={name: _scale_up(node) for name, node in root.map("scale_up").items()},
        network={name: _network(node) for name, node in root.map("network").items()},
        errors={name: _error(node) for name, node in root.map("errors").items()},
        sources=tuple(item.as_text() for item in root.list("sources")),
    )


def _protocol(node: Node) -> Protocol:
    node.only(*_PROTOCOL)
    return Protocol(
        name=node.name("name"),
        base_s=node.time("base"),
        inside_latency_factor=node.number("inside_latency_factor", minimum=0),
        across_extra_s=node.time("across_extra"),
        rate_share=node.share("rate_share"),
        across_rate_share=node.share("across_rate_share"),
        whole_chunks=node.flag("whole_chunks"),
        exchange_share=node.share("exchange_share"),
        exchange_base_s=node.time("exchange_base"),
        fill_bytes=node.bytes("fill"),
    )


def _scale_up(node: Node) -> ScaleUpClass:
    node.only(*_SCALE_UP)
    rails = node.optional("max_rails")
    limit = float("inf")
    if rails is not None and rails.plain() != _NO_LIMIT:
        limit = node.number("max_rails", minimum=1)
    return ScaleUpClass(
        launch_s=node.time("launch"),
        latency_s=node.time("latency"),
        efficiency_share=node.share("efficiency_share"),
        reduction_share=node.share("reduction_share"),
        reduction_chunk_bytes=node.bytes("reduction_chunk"),
        whole_chunk_factor=node.number("whole_chunk_factor", minimum=0),
        max_rails=limit,
    )


def _network(node: Node) -> NetworkClass:
    node.only("latency", "efficiency_share", "ordered", "tree_chunk_factor")
    return NetworkClass(
        latency_s=node.time("latency"),
        efficiency_share=node.share("efficiency_share"),
        ordered=node.flag("ordered"),
        tree_chunk_factor=node.number("tree_chunk_factor", minimum=0),
    )


def _error(node: Node) -> FitError:
    node.only("median_share", "p90_share", "bias_share", "rows")
    return FitError(
        median_share=node.number("median_share", minimum=0),
        p90_share=node.number("p90_share", minimum=0),
        bias_share=node.number("bias_share"),
        rows=node.count("rows"),
    )


def calibration_text(calibration: Calibration) -> str:
    """Return *calibration* as YAML, figures rounded to three digits."""
    library = calibration.library
    plain: dict[str, Any] = {
        "sources": list(calibration.sources),
        "library": {
            "own_step_share": _round(library.own_step_share),
            "issue": _time(library.issue_s),
            "protocols": [_protocol_plain(protocol) for protocol in library.protocols],
        },
        "scale_up": {
            name: {
                "launch": _time(numbers.launch_s),
                "latency": _time(numbers.latency_s),
                "efficiency_share": _round(numbers.efficiency_share),
                "reduction_share": _round(numbers.reduction_share),
                "reduction_chunk": _bytes(numbers.reduction_chunk_bytes),
                "whole_chunk_factor": _round(numbers.whole_chunk_factor),
                "max_rails": _rails(numbers.max_rails),
            }
            for name, numbers in sorted(calibration.scale_up.items())
        },
        "network": {
            name: {
                "latency": _time(numbers.latency_s),
                "efficiency_share": _round(numbers.efficiency_share),
                "ordered": bool(numbers.ordered),
                "tree_chunk_factor": _round(numbers.tree_chunk_factor),
            }
            for name, numbers in sorted(calibration.network.items())
        },
        "errors": {
            name: {
                "median_share": _round(error.median_share),
                "p90_share": _round(error.p90_share),
                "bias_share": _round(error.bias_share),
                "rows": error.rows,
            }
            for name, error in sorted(calibration.errors.items())
        },
    }
    return yaml_text(plain)


def _protocol_plain(protocol: Protocol) -> dict[str, Any]:
    return {
        "name": protocol.name,
        "base": _time(protocol.base_s),
        "inside_latency_factor": _round(protocol.inside_latency_factor),
        "across_extra": _time(protocol.across_extra_s),
        "rate_share": _round(protocol.rate_share),
        "across_rate_share": _round(protocol.across_rate_share),
        "whole_chunks": protocol.whole_chunks,
        "exchange_share": _round(protocol.exchange_share),
        "exchange_base": _time(protocol.exchange_base_s),
        "fill": _bytes(protocol.fill_bytes),
    }


def _bytes(value: Any) -> str:
    return f"{_round(value):.0f} B"


def _round(value: Any) -> float:
    return float(f"{float(value):.3g}")


def _time(seconds: Any) -> str:
    return f"{float(f'{float(seconds) * 1e6:.3g}'):g} us"


def _rails(value: Any) -> float | str:
    return _NO_LIMIT if float(value) == float("inf") else _round(value)
