"""Which compared clusters none beats in everything, and by what they are held against others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cli.search_report import used_bytes
from planner.search.pareto import pareto_front

if TYPE_CHECKING:
    from cli.compare_report import Comparison

SWITCHES = ("scale_up_switch", "leaf", "spine", "core")
_LESS_IS_BETTER = {
    "power_w": "power", "switches": "switches", "cost_per_million_tokens": "money a token",
}  # fmt: skip


def front_figures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in what figures entries are held against each other, in words: all known of all."""
    return ["tokens a second", "memory to spare", *_known(rows).values()]


def _known(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {
        name: words for name, words in _LESS_IS_BETTER.items()
        if all(row[name] is not None for row in rows)
    }  # fmt: skip


def pareto_rows(found: Comparison) -> list[dict[str, Any]]:
    """Return each entry's figures, and whether none beats it in all of them.

    Figures: tokens a second, head-room, power, switches, and money a token; power and money only
    where they are known of all.
    """
    rows: list[dict[str, Any]] = []
    for one, run in zip(found.compared.ranked, found.runs, strict=True):
        bill = found.bills[one.candidate.name]
        memory = one.finalist.memory
        rows.append({
            "cluster": one.candidate.name,
            "label": one.label,
            "gpus": one.candidate.gpus,
            "tokens_per_s": float(one.finalist.step.tokens_per_s),
            "head_room_bytes": memory.capacity_bytes - used_bytes(memory),
            "power_w": None if bill.without_power else run.power_w,
            "switches": sum(li.count for li in bill.lines if li.item in SWITCHES),
            "cost_per_million_tokens": None
            if run.cost_per_token is None else run.cost_per_token * 1e6,
        })  # fmt: skip
    small = list(_known(rows))
    costs = [
        [-row["tokens_per_s"], -row["head_room_bytes"], *(row[name] for name in small)]
        for row in rows
    ]
    front = set(pareto_front(costs).tolist())
    return [{**row, "on_front": i in front} for i, row in enumerate(rows)]
