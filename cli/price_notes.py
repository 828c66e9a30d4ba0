"""What of a price list nothing was counted with: a name mistyped, or a part that no cluster has."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations_with_replacement

from planner.fabric_parts import KINDS
from planner.nodes import meant
from planner.procure.bill import BOXES, SERVER, Bill
from planner.procure.prices import PriceList
from topologies.fabric_accelerators import accelerator_names

_UNCOUNTED = "not everywhere is it known how many servers there are"


def price_notes(prices: PriceList | None, bills: Iterable[Bill]) -> list[str]:
    """Return a line for each price that is not used, wholly or of a server that nobody counted.

    A list may serve many purchases: prices of parts that other clusters have are no matter.
    """
    if prices is None:
        return []
    counted = list(bills)
    links = {f"{inner}-{outer}" for inner, outer in combinations_with_replacement(KINDS, 2)}
    gpus = {*accelerator_names(), *(bill.accelerator for bill in counted)}
    parts = {*KINDS, *BOXES, *links, *gpus} - {"gpu"}
    parts |= {line.item for bill in counted for line in bill.lines}
    bought = [bill for bill in counted if prices.rent(bill.accelerator) is None]
    uncounted = SERVER in prices.items and not all(bill.has_servers for bill in bought)
    told = [
        f"--prices: {SERVER!r} under items is not used throughout: {_UNCOUNTED}"
    ] if uncounted else []  # fmt: skip
    return told + [
        f"--prices: {name!r} under {where} is not used: no part is called so{_meant(name, known)}"
        for where, names, known in (
            ("items", prices.items, parts), ("gpu_hour", prices.gpu_hours, gpus)
        )
        for name in names
        if name not in known
    ]  # fmt: skip


def _meant(name: str, known: set[str]) -> str:
    near = meant(name, sorted(known))
    return near if near.startswith(",") else "; docs/prices.md lists the names"
