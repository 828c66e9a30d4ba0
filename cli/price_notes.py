"""What of a price list nothing was counted with: a name mistyped, or a part that no cluster has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations_with_replacement
from typing import Any

from planner.fabric_parts import KINDS
from planner.nodes import meant
from planner.procure.bill import BOXES, OF_CLUSTER, SERVER, Bill
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
    bought = [bill for bill in counted if prices.rent(bill.accelerator) is None]
    uncounted = SERVER in prices.items and not all(bill.has_servers for bill in bought)
    told = [
        f"--prices: {SERVER!r} under items is not used throughout: {_UNCOUNTED}"
    ] if uncounted else []  # fmt: skip
    return [
        *told, *_not_called("--prices", unused_prices(prices, counted)),
        *_not_in_clusters(prices, counted),
    ]  # fmt: skip


def _not_in_clusters(prices: PriceList, bills: Iterable[Bill]) -> list[str]:
    """Return a line for each price for one cluster alone that no part of these clusters has."""
    used = {line.priced_as for bill in bills for line in bill.lines}
    return [
        f"--prices: {item!r} of {cluster!r} under clusters is not used: no cluster here is called "
        "so, or it has no such part"
        for cluster, items in prices.clusters.items()
        for item in items
        if f"{item}{OF_CLUSTER}{cluster}" not in used
    ]


def unused_prices(prices: PriceList | None, bills: Iterable[Bill]) -> dict[str, list[str]]:
    """Return, by their place in the list, the names that are no part of *bills* or any cluster."""
    if prices is None:
        return {}
    counted = list(bills)
    gpus = _gpus() | {bill.accelerator for bill in counted}
    parts = _parts() | gpus | {line.item for bill in counted for line in bill.lines}
    places = (("items", prices.items, parts), ("gpu_hour", prices.gpu_hours, gpus))
    return {place: [name for name in names if name not in known] for place, names, known in places}


def swept_price_notes(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for each price of a sweep's lists that no combination has a part for."""
    unused: dict[str, list[Mapping[str, list[str]]]] = {}
    for one in results:
        if one["prices"] is not None and one["best"] is not None:
            unused.setdefault(one["prices"], []).append(one.get("unused_prices", {}))
    return [
        line
        for file, found in unused.items()
        for line in _not_called(file, {
            place: [name for name in names if all(name in one.get(place, ()) for one in found)]
            for place, names in found[0].items()
        })
    ]  # fmt: skip


def _not_called(listed: str, unused: Mapping[str, list[str]]) -> list[str]:
    known = {"items": _parts() | _gpus(), "gpu_hour": _gpus()}
    return [
        f"{listed}: {name!r} under {place} is not used: no part is called so"
        f"{_meant(name, known[place])}"
        for place, names in unused.items()
        for name in names
    ]


def _gpus() -> set[str]:
    return set(accelerator_names())


def _parts() -> set[str]:
    links = {f"{inner}-{outer}" for inner, outer in combinations_with_replacement(KINDS, 2)}
    return {*KINDS, *BOXES, *links} - {"gpu"}


def _meant(name: str, known: set[str]) -> str:
    near = meant(name, sorted(known))
    return near if near.startswith(",") else "; docs/prices.md lists the names"
