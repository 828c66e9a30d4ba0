"""What crosses at every tier, what must cross there, and how far that is proved."""

from __future__ import annotations

from rich import box
from rich.table import Table

from planner.place.answer import Placement, Proof, TierCut
from planner.place.rules_place import AMONG_RULED
from planner.units import format_bytes, format_share, format_time


def tier_table(placement: Placement) -> Table:
    """Return one row for each tier that has a cut, in the order of importance."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("  tier", no_wrap=True)
    for name in ("crosses", "at least", "gap"):
        table.add_column(name, justify="right")
    table.add_column("proof")
    cuts = {cut.tier: cut for cut in placement.tiers}
    for tier in placement.tier_order:
        cut = cuts[tier]
        table.add_row(
            f"  {tier}",
            _bytes(cut.cut_bytes),
            _bytes(cut.lower_bound_bytes),
            format_share(cut.gap) if cut.gap else "0 %",
            _proof(cut),
        )
    return table


def tiers_sentence(placement: Placement) -> str:
    """Return in what order the tiers were made least, and up to where that is proved."""
    if placement.ways == "weighted":
        cut, bound = placement.weighted_s, placement.weighted_bound_s
        gap = 1 - bound / cut if cut else 0.0
        return (
            f"Tiers weighted by 1 / rate of all their borders: {format_time(cut)} in all, and at "
            f"least {format_time(bound)} in every placement; gap {format_share(gap)}."
        )
    order, proved = placement.tier_order, placement.tiers_proved
    first = f"Tiers in this order: {', '.join(order)}. "
    if proved == len(order):
        return first + f"Proved: no placement{keeping(placement)} is better in that order."
    if proved:
        whose = ", of the placements that keep the rules" if placement.rule_price else ""
        return (
            first + f"Proved for {', '.join(order[:proved])}{whose}; open from {order[proved]} on."
        )
    return first + "Open from the first."


def keeping(placement: Placement) -> str:
    """Return which placements a bound holds for, after the word itself; empty for all."""
    return "" if placement.rule_price is None else " that keeps the rules"


def _bytes(number: float) -> str:
    return format_bytes(number) if number else "nothing"


def _proof(cut: TierCut) -> str:
    if cut.proof is Proof.INCUMBENT:
        return "open" if cut.among == "all" else f"open; the bound is of those {_whose(cut)}"
    word = "solver" if cut.proof is Proof.SOLVER else "met"
    return word if cut.among == "all" else f"{word} by those {_whose(cut)}"


def _whose(cut: TierCut) -> str:
    return "that keep the rules" if cut.among == AMONG_RULED else cut.among
