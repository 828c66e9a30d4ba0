"""The tiers of a cluster as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.report_html_parts import Num
from planner.units import format_rate, format_time

TIER_HEADS = ("Tier", "Domains", "GPUs in one", "One GPU alone", "All at once",
              "Oversubscription", "Start-up", "Reduces in network")  # fmt: skip


def tier_rows(tiers: Sequence[Mapping[str, Any]]) -> list[list[str | Num]]:
    """Return a row for each tier, the innermost first; rates are of one GPU, one direction."""
    return [_row(tier) for tier in tiers]


def _row(tier: Mapping[str, Any]) -> list[str | Num]:
    sizes, alone, shared = tier["capacities"], tier["bytes_per_s"], tier["shared_bytes_per_s"]
    over = alone / shared
    return [
        tier["tier"], Num(len(sizes), f"{len(sizes):,}"), Num(max(sizes, default=0), _sizes(sizes)),
        Num(alone, format_rate(alone)), Num(shared, format_rate(shared)),
        Num(over, f"{over:.3g} : 1"), Num(tier["latency_s"], format_time(tier["latency_s"])),
        "yes" if tier.get("in_network_reduction") else "no",
    ]  # fmt: skip


def _sizes(sizes: Sequence[int]) -> str:
    if not sizes:
        return ""
    least, most = min(sizes), max(sizes)
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"
