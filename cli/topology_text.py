"""What ``planner topology`` shows: rows for JSON, and tables of 80 columns for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from cli.net_text import premises_text
from cli.planner_output import console, emit
from cli.unfilled_words import part_of_one_words, unused_ports_words
from planner.fabric import Fabric, Tier
from planner.fabric_parts import Parts, parts_of
from planner.units import (
    GB,
    format_binary_bytes,
    format_flops,
    format_power,
    format_rate,
    format_time,
)
from topologies.fabric_accelerators import accelerator_names, load_accelerator
from topologies.fabric_catalogue import catalogue_names, load_spec
from topologies.fabric_network_spec import ClosSpec
from topologies.fabric_spec import FabricSpec

if TYPE_CHECKING:
    from planner.network.findings import Finding
    from planner.network.premises import Premise

_PARTS = {
    "gpu": "GPU",
    "nic": "NIC",
    "scale_up_switch": "scale-up switch",
    "leaf": "leaf switch",
    "spine": "spine switch",
    "core": "core switch",
}
_RATES = "up/NIC, GB/s"
_NUMERIC = {"GPUs", "node", "number", "one GPU alone", "all send", "over", "start-up"}
_WHOLE = {"name", "GPU", "network", "tier", "severity"}


def cluster_rows() -> list[dict[str, Any]]:
    """Return one row for each cluster on file."""
    specs = [load_spec(name) for name in catalogue_names()]
    return [
        {
            "name": spec.name,
            "about": spec.about,
            "accelerator": spec.accelerator.name,
            "gpus": spec.supernode.gpus,
            "job_gpus": spec.job_gpus,
            "supernodes": list(spec.supernode.sizes) if len(spec.supernode.sizes) < 32 else None,
            "supernode": spec.supernode.size,
            "network": spec.network_label,
            "scale_up_bytes_per_s": spec.supernode.bytes_per_s,
            "nic_bytes_per_s": spec.nic.line_bytes_per_s,
            "assumed": len(spec.assumed),
        }
        for spec in specs
    ]


def accelerator_rows() -> list[dict[str, Any]]:
    """Return one row for each accelerator on file."""
    return [
        {
            "name": chip.name,
            "peak_flops_per_s": chip.peak_flops_per_s,
            "efficiency_share": chip.efficiency_share,
            "memory_bytes": chip.memory_bytes,
            "memory_bytes_per_s": chip.memory_bytes_per_s,
            "memory_efficiency_share": chip.memory_efficiency_share,
            "scale_up_bytes_per_s": chip.scale_up_bytes_per_s,
            "power_w": chip.power_w,
            "sources": chip.sources,
            "assumed": chip.assumed,
        }
        for chip in map(load_accelerator, accelerator_names())
    ]


def list_text(clusters: Sequence[dict[str, Any]], accelerators: Sequence[dict[str, Any]]) -> None:
    """Print the clusters and the accelerators."""
    table = _table("Clusters", "name", "GPU", "GPUs", "node", "network", _RATES)
    for row in clusters:
        spare = row["gpus"] - row["job_gpus"]
        table.add_row(
            row["name"],
            row["accelerator"],
            f"{row['job_gpus']}" + (f"+{spare}" if spare else ""),
            str(row["supernode"]),
            row["network"],
            _two_rates(row),
        )
    chips = _table("Accelerators", "name", "bf16/fp16", "fp8", "memory", "its rate", "power")
    for row in accelerators:
        peaks = row["peak_flops_per_s"]
        dense = peaks.get("bf16", peaks.get("fp16", 0.0))
        chips.add_row(
            row["name"],
            format_flops(dense) if dense else "-",
            format_flops(peaks["fp8"]) if "fp8" in peaks else "-",
            format_binary_bytes(row["memory_bytes"]),
            format_rate(row["memory_bytes_per_s"]),
            format_power(row["power_w"]) if row["power_w"] else "unknown",
        )
    screen = console()
    screen.print(table)
    screen.print(chips)
    screen.print(
        Text("node: GPUs of a supernode; +: spares; up: scale-up. Per GPU, one direction; dense.")
    )


def _two_rates(row: dict[str, Any]) -> str:
    """Return ``450/50``: scale-up and NIC [GB/s]."""
    return f"{row['scale_up_bytes_per_s'] / GB:.3g}/{row['nic_bytes_per_s'] / GB:.3g}"


def tier_rows(fabric: Fabric) -> list[dict[str, Any]]:
    """Return one row for each tier."""
    return [
        {
            "tier": tier.name,
            "domains": len(tier.domains),
            "domain_gpus": _sizes(tier),
            "bytes_per_s": tier.bytes_per_s,
            "shared_bytes_per_s": tier.shared_bytes_per_s,
            "pair_bytes_per_s": tier.pair_bytes_per_s,
            "oversubscription": tier.oversubscription,
            "latency_s": tier.latency_s,
            "least_uplink_bytes_per_s": min(d.uplink_bytes_per_s for d in tier.domains),
            "in_network_reduction": tier.in_network_reduction,
        }
        for tier in fabric.tiers
    ]


def show_body(spec: FabricSpec | None, fabric: Fabric) -> dict[str, Any]:
    """Return what ``show`` puts into its JSON document; an imported cluster has no *spec*."""
    parts = parts_of(fabric.graph)
    told = _words_of(spec, fabric)
    return {
        "cluster": fabric.name,
        "about": told.about,
        "network": told.network,
        "gpus": len(fabric.gpus),
        "job_gpus": fabric.job_gpus,
        "spare_gpus": len(fabric.gpus) - fabric.job_gpus,
        "dead_gpus": told.dead_gpus,
        "tiers": tier_rows(fabric),
        "accelerator": fabric.accelerator,
        "nic": fabric.nic,
        "parts": parts.vertices,
        "links": parts.links,
        "ports": parts.ports,
        "sources": fabric.sources,
        "assumed": fabric.assumed,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What the cluster is, what its network is called, and how many GPUs are dead."""

    about: str
    network: str
    dead_gpus: int


def _words_of(spec: FabricSpec | None, fabric: Fabric) -> _Told:
    """Return what a cluster's file says of itself; an imported one says where it is from."""
    if spec is None:
        return _Told(about=fabric.sources.get("fabric", ""), network="imported", dead_gpus=0)
    return _Told(about=spec.about, network=spec.network_label, dead_gpus=len(spec.dead.gpus))


def show_text(spec: FabricSpec | None, fabric: Fabric) -> None:
    """Print a cluster: what it is, its tiers, its parts, and where its figures come from."""
    screen = console()
    told = _words_of(spec, fabric)
    spare = len(fabric.gpus) - fabric.job_gpus
    screen.print(Text(f"{fabric.name}: {told.about or told.network}", style="bold"))
    screen.print(
        Text(
            f"{len(fabric.gpus)} usable {fabric.accelerator.name}"
            + (f", {fabric.job_gpus} for the job and {spare} spare" if spare else "")
            + (f", {told.dead_gpus} dead" if told.dead_gpus else "")
            + f"; NIC {format_rate(fabric.nic.line_bytes_per_s)} each; {_network_words(spec)}"
        )
    )
    screen.print(_tier_table(fabric))
    parts = parts_of(fabric.graph)
    screen.print(_parts_table(parts))
    for words in (part_of_one_words(fabric), unused_ports_words(parts.ports)):
        if words:
            screen.print(Text(f"{words}\n"))
    screen.print(_figures_table("Sources", "source", fabric.sources))
    if fabric.assumed:
        screen.print(_figures_table("Assumed", "why", fabric.assumed))


def check_text(name: str, gpus: int, found: Sequence[Finding], premises: Sequence[Premise]) -> None:
    """Print the verdict, the findings, worst first, and the premises of the check for deadlock."""
    screen = console()
    counts = Counter(f.severity for f in found)
    verdict = ", ".join(
        f"{counts[s]} {s}{'' if counts[s] == 1 else 's'}"
        for s in ("fault", "warning", "note")
        if counts[s]
    )
    screen.print(Text(f"{name}, {gpus} GPUs: {verdict or 'nothing found'}", style="bold"))
    if found:
        table = _table(None, "severity", "check", "finding", "where")
        for f in found:
            table.add_row(f.severity, f.check, f.message, ", ".join(f.where))
        screen.print(table)
    emit("\nDeadlock: premises\n" + premises_text(premises))


def _network_words(spec: FabricSpec | None) -> str:
    if spec is None:
        return "network as imported"
    network = spec.network
    if not isinstance(network, ClosSpec):
        return f"network {spec.network_label}"
    rails = f", {network.rails} rails" if network.rails > 1 else ""
    planes = f", {network.planes} planes" if network.planes > 1 else ""
    return f"network {spec.network_label}{rails}{planes}"


def _sizes(tier: Tier) -> dict[str, int]:
    """Return how many domains there are of each size, largest first."""
    counts = Counter(len(d.gpus) for d in tier.domains)
    return {str(size): counts[size] for size in sorted(counts, reverse=True)}


def _tier_table(fabric: Fabric) -> Table:
    table = _table(
        "Tiers (rates per GPU, one direction)",
        *("tier", "domains", "one GPU alone", "all send", "over", "least uplink", "start-up"),
    )
    for row in tier_rows(fabric):
        sizes = row["domain_gpus"].items()
        uplink = row["least_uplink_bytes_per_s"]
        table.add_row(
            row["tier"],
            " + ".join(f"{count} x {size}" for size, count in sizes),
            format_rate(row["bytes_per_s"]),
            format_rate(row["shared_bytes_per_s"]),
            f"{row['oversubscription']:.3g}:1",
            format_rate(uplink) if uplink else "-",
            format_time(row["latency_s"]),
        )
    return table


def _parts_table(parts: Parts) -> Table:
    table = _table("Parts", "part", "number", "rate of one")
    for kind, count in parts.vertices.items():
        table.add_row(_PARTS[kind], str(count), "")
    for sort in parts.links:
        table.add_row(
            f"{sort.ends.replace('_', ' ')} link ({sort.tier})",
            str(sort.links),
            format_rate(sort.link_bytes_per_s),
        )
    return table


def _figures_table(title: str, column: str, figures: Any) -> Table:
    """Return a table of figures by what is said of them, those with the same words together."""
    table = _table(title, "figure", column)
    together: dict[str, list[str]] = {}
    for name, words in figures.items():
        together.setdefault(words, []).append(name)
    for words, names in together.items():
        table.add_row(", ".join(names), words)
    return table


def _table(title: str | None, *columns: str) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in _NUMERIC else "left",
            overflow="fold",
            no_wrap=column in _WHOLE,
        )
    return table
