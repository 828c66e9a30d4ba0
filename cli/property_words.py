"""Properties that a comparison varies, in words: the same in the terminal and in the report."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from planner.procure.budget import format_money
from planner.search.axes import GRID, WIDEST_FACTOR
from planner.search.price_flips import GPU_HOUR, KWH
from planner.units import format_rate, format_time

PROPERTIES = {
    "nic_rate": "NIC rate", "nic_latency": "NIC latency", "in_flight": "in-flight limit",
    "oversubscription": "oversubscription", "seq": "sequence length", "experts": "experts",
}  # fmt: skip
_SPANS = {
    "experts": "experts: a quarter to 8 times",  # planner.search.experts: 1/4 to 8
    "in_flight": "in flight: 1 at least",  # a NIC that sends has a transaction in flight
}
_PRICE = "price "
_MOST_DIGITS = 10


def property_words(name: str) -> str:
    """Return what a property is called."""
    return PROPERTIES.get(name, name.replace("_", " "))


def span_words(varied: Collection[str]) -> str:
    """Return which of the properties *varied* are not looked at as far as the others.

    >>> span_words(["nic_rate", "experts", "in_flight"])
    'experts: a quarter to 8 times; in flight: 1 at least'
    """
    return "; ".join(words for name, words in _SPANS.items() if name in varied)


def grid_words(proved: Mapping[str, bool]) -> str:
    """Return how closely properties were looked at.

    Args:
        proved: property to whether no change was missed between two of the values asked; empty of
            a document that does not say.

    >>> grid_words({"nic_rate": True, "seq": True})
    'Between the values asked no flip is missed, in rank order and to 0.1 %.'
    """
    left = [property_words(name) for name, sure in proved.items() if not sure]
    sure = [property_words(name) for name, sure in proved.items() if sure]
    asked = (
        f"at {GRID} values on each side, x {WIDEST_FACTOR ** (1 / GRID):.2f} apart, then by "
        "halves: what changes there and back between two of them is not seen."
    )
    if not sure:
        return f"Asked {asked}"
    words = "Between the values asked no flip is missed, in rank order and to 0.1 %"
    if not left:
        return f"{words}."
    return f"{words}, of: {', '.join(sure)}. Asked of {', '.join(left)} {asked}"


def factor_words(factor: float) -> str:
    """Return a factor by three digits, or as many more as tell it from 1."""
    return f"{factor:.5g}" if abs(factor - 1.0) < 0.01 else f"{factor:.3g}"


def property_values(name: str, held: float, value: float, currency: str) -> tuple[str, str]:
    """Return up to where a property holds and where it changes, by digits that tell them apart.

    >>> property_values("nic_rate", 3.8041e9, 3.8003e9, "")
    ('3.804 GB/s', '3.800 GB/s')
    """
    digits = 3
    while True:
        before, after = (property_value(name, at, currency, digits) for at in (held, value))
        if before != after or held == value or digits == _MOST_DIGITS:
            return before, after
        digits += 1


def property_value(name: str, value: float, currency: str, digits: int = 3) -> str:
    """Return a property's value on the winner as people read it.

    >>> property_value("oversubscription", 1.4, ""), property_value("nic_rate", 35.8e9, "")
    ('1.4 : 1', '35.8 GB/s')
    >>> property_value("price nic", 1500.0, "USD"), property_value("price kwh", 0.09, "USD")
    ('1,500 USD each', '0.09 USD a kWh')
    """
    if name == "nic_rate":
        return format_rate(value, digits=digits)
    if name == "nic_latency":
        return format_time(value, digits=digits)
    if name.startswith(_PRICE):
        return f"{format_money(value, currency)} {_priced_by(name.removeprefix(_PRICE))}"
    if name == "oversubscription":
        return f"{value:.{digits}g} : 1"
    unit = {"seq": " tokens", "in_flight": " in flight"}.get(name, "")
    if name in {"seq", "experts"}:
        return f"{value:,.{digits - 3}f}{unit}"
    return f"{value:.{digits}g}{unit}"


def _priced_by(item: str) -> str:
    if item == KWH:
        return "a kWh"
    return "an hour" if item.startswith(GPU_HOUR) else "each"
