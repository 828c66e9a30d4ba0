"""A price list from a YAML file; every price has a source and a date.

::

    currency: USD
    gpu_hour: {price: 2.5, source: "quote 17", date: 2026-05-01}   # rent; or items, years and kwh
    # or by kind: gpu_hour: {H100-SXM: {price: 2.5, …}, B200-SXM: {price: 4.5, …}}
    kwh: {price: 0.09, source: "contract", date: 2026-01-01}
    overhead: 1.25                 # power at the meter over power of the parts
    years: 4                       # life over which a purchase is written off
    items:
      H100-SXM: {price: 30000, power: 700 W, source: "quote 17", date: 2026-05-01}
      server: {price: 60000, power: 2 kW, source: "quote 17", date: 2026-05-01}
      leaf: {price: 40000, power: 1.5 kW, source: "list", date: 2026-03-01}
      leaf-spine: {price: 1200, source: "two optics and a fibre", date: 2026-03-01}
    clusters:                      # what costs something else in one cluster
      cloudmatrix384: {supernode: {price: 900000, source: "quote 18", date: 2026-05-01}}

Parts are named as the bill of materials names them. All of it, for users: ``docs/prices.md``.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from planner.documents import read_document
from planner.procure.prices import Price, PriceList

if TYPE_CHECKING:
    from planner.nodes import Node


TEMPLATE = "docs/prices.md has a list to copy"
_MOST_MONEY = 1e15  # more than all money there is, in any currency of today
_PRICE_KEYS = {"price", "power", "source", "date"}


def read_prices(path: Path | str) -> PriceList:
    """Return the price list in the file at *path*.

    Raises:
        SpecError: every fault of the file, with its line.
    """
    document = read_document(path)
    root = document.root
    if root.kind != "map":
        root.fault(f"expected a price list: currency, and items or gpu_hour; {TEMPLATE}")
        document.finish()
    root.only("currency", "gpu_hour", "kwh", "overhead", "years", "items", "clusters")
    items = root.map("items", default=None)
    clusters = root.map("clusters", default=None)
    hour = root.map("gpu_hour", default=None)
    keys = set() if hour is None else set(hour.keys())
    by_kind = dict(hour.items()) if hour is not None and keys and not keys & _PRICE_KEYS else {}
    prices = PriceList(
        currency=root.name("currency"),
        items={} if items is None else _prices(items),
        gpu_hour=None if by_kind or hour is None else _price(hour),
        gpu_hours={name: _price(node) for name, node in by_kind.items()},
        clusters={}
        if clusters is None
        else {name: _prices(node) for name, node in clusters.items()},
        kwh=_optional(root, "kwh"),
        overhead_ratio=root.number("overhead", default=1.0, minimum=1.0, maximum=10.0),
        years=root.number("years", minimum=0.1, maximum=100.0) if root.has("years") else None,
    )
    document.finish()
    return prices


def _optional(root: Node, key: str) -> Price | None:
    node = root.map(key, default=None)
    return None if node is None else _price(node)


def _prices(node: Node) -> dict[str, Price]:
    """Return the prices that *node* has, by what they are of."""
    if node.kind != "map":
        node.fault(f"expected parts, each with its price; {TEMPLATE}")
        return {}
    return {name: _price(one) for name, one in node.items()}


def _price(node: Node) -> Price:
    if node.kind != "map":
        node.fault(
            "expected price, source and date, e.g. {price: 2.5, source: quote, date: 2026-05-01}; "
            + TEMPLATE
        )
        return Price(price=0.0, source="", date="")
    node.only("price", "power", "source", "date")
    price, day = node.money("price"), node.text("date", pattern=r"\d{4}-\d\d-\d\d")
    if price > _MOST_MONEY:
        node.fault(f"expected at most {_MOST_MONEY:g}, got {price:g}", key="price")
    if not _is_day(day):
        node.fault(f"expected a day such as 2026-05-01, got {day!r}", key="date")
    return Price(
        price=price,
        source=node.text("source"),
        date=day,
        power_w=node.power("power") if node.has("power") else None,
    )


def _is_day(text: str) -> bool:
    """Return whether *text* is a day of the calendar, or a fault already (empty)."""
    try:
        return not text or bool(date.fromisoformat(text))
    except ValueError:
        return False
