"""What a cluster costs, in money or power, so that clusters can be sized to cost the same."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.procure.run import HOUR_S, YEAR_S
from planner.units import format_number

if TYPE_CHECKING:
    from planner.procure.bill import Bill
    from planner.procure.prices import PriceList

RENT, OWNED, BOUGHT = "rent per hour", "purchase and energy over its life", "purchase"
_AMOUNT = r"([0-9]{1,15}(?:\.[0-9]{1,6})?(?:e[0-9]{1,2})?)\s*([KkMB]?)"
_SCALES = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "B": 1e9}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a cluster costs.

    Args:
        amount: in the list's currency, or in watts.
        basis: ``RENT``, ``OWNED``, ``BOUGHT``, or ``power`` at the meter.
    """

    amount: float
    basis: str


def money_of(gpus: int, bill: Bill, prices: PriceList) -> Cost:
    """Return what *gpus* GPUs with the parts of *bill* cost.

    Rent where the list has a rent for that kind of GPU. Else the purchase, and with ``kwh`` and
    ``years`` the energy of its life too.

    Args:
        gpus: GPUs of the job [1].
        bill: the cluster's parts, priced.
        prices: the list they were priced with.

    Raises:
        InputError: a part has no price, or what it draws is needed and not known.
    """
    rent = prices.rent(bill.accelerator)
    if rent is not None:
        return Cost(amount=gpus * rent.price, basis=RENT)
    if bill.total is None:
        raise InputError(
            f"--prices: no price for {', '.join(bill.unpriced)}, and no gpu_hour of "
            f"{bill.accelerator}; equal money needs one or the other "
            "(docs/prices.md has a list to copy)"
        )
    if prices.kwh is None or prices.years is None:
        return Cost(amount=bill.total, basis=BOUGHT)
    power_w = power_of(bill, prices).amount
    hours = prices.years * YEAR_S / HOUR_S
    return Cost(amount=bill.total + power_w / 1000.0 * hours * prices.kwh.price, basis=OWNED)


def power_of(bill: Bill, prices: PriceList | None) -> Cost:
    """Return what the parts of *bill* draw at the meter [W].

    Raises:
        InputError: nobody said what some part draws.
    """
    if bill.without_power:
        raise InputError(
            f"nobody said what these draw: {', '.join(bill.without_power)}; give each a power "
            "under items of --prices (price: 0 where it has none)"
        )
    overhead = 1.0 if prices is None else prices.overhead_ratio
    return Cost(amount=bill.known_power_w * overhead, basis="power")


def format_money(amount: float, currency: str) -> str:
    """Return an amount of money for people, four digits where rounded, millions in words.

    >>> format_money(39_218_500.0, "EUR"), format_money(56_530.0, "EUR"), format_money(2.5, "USD")
    ('39.22 million EUR', '56,530 EUR', '2.5 USD')
    """
    unit = currency and f" {currency}"
    for scale, word in ((1e9, " billion"), (1e6, " million")):
        if abs(amount) >= scale:
            return f"{format_number(amount / scale, digits=4)}{word}{unit}"
    return f"{format_number(amount, digits=4)}{unit}"


def parse_amount(text: str) -> float:
    """Return an amount of money such as ``120M`` or ``3.5e6``.

    >>> parse_amount("120M")
    120000000.0
    >>> parse_amount("100k")
    100000.0
    """
    found = re.fullmatch(_AMOUNT, text.strip())
    value = float(found[1]) * _SCALES[found[2]] if found else math.nan
    if not (math.isfinite(value) and 0 < value < 1e20):
        raise InputError(f"--budget: expected an amount such as 120M or 3.5e6, got {text[:40]!r}")
    return value
