"""What a training run takes: tokens a day, days, energy and, with prices, money."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.errors import InputError

if TYPE_CHECKING:
    from planner.procure.bill import Bill
    from planner.procure.prices import PriceList

DAY_S = 86_400.0
HOUR_S = 3_600.0
YEAR_S = 365.0 * DAY_S
_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,6})?(?:e[0-9]{1,2})?)\s*([KMBT]?)"
_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of so many tokens at so many a second, with nothing lost to faults.

    Args:
        tokens_per_day: what the cluster trains in a day [1].
        tokens: of the run, None where not asked [1].
        days: it takes, None without tokens [days].
        power_w: at the meter, of the parts whose power is known [W].
        energy_j: of the run, None without tokens [J].
        tokens_per_j: trained for each joule at the meter, None where a part's power is not known
            [1/J].
        cost: of the run, None where something is missing.
        cost_per_token: None where something is missing.
        why_no_cost: what is missing, empty where nothing is.
    """

    tokens_per_day: float
    tokens: float | None
    days: float | None
    power_w: float
    energy_j: float | None
    tokens_per_j: float | None
    cost: float | None
    cost_per_token: float | None
    why_no_cost: str


def parse_tokens(text: str) -> float:
    """Return a number of tokens such as ``15T``, ``300B`` or ``1e12``.

    >>> parse_tokens("15T")
    15000000000000.0
    """
    found = re.fullmatch(_NUMBER, text.strip())
    value = float(found[1]) * _SCALES[found[2]] if found else math.nan
    if not (math.isfinite(value) and 0 < value < 1e20):
        raise InputError(
            f"--tokens: expected a number such as 15T, 300B or 1e12, got {text[:40]!r}"
        )
    return value


def run_of(
    tokens_per_s: float, gpus: int, bill: Bill, prices: PriceList | None, tokens: float | None
) -> Run:
    """Return what a run takes.

    With ``gpu_hour`` the cost is rent: gpus x hours x price. Else it is the purchase written off
    over ``years``, running all the time, plus the energy at ``kwh``.

    Args:
        tokens_per_s: over all GPUs [1/s].
        gpus: GPUs of the job [1].
        bill: the cluster's parts.
        prices: the user's list, if any.
        tokens: of the whole run, if asked [1].
    """
    overhead = 1.0 if prices is None else prices.overhead_ratio
    power_w = bill.known_power_w * overhead
    per_s, why = _cost_per_s(gpus, bill, prices, power_w)
    per_token = None if per_s is None else per_s / tokens_per_s
    seconds = None if tokens is None else tokens / tokens_per_s
    return Run(
        tokens_per_day=tokens_per_s * DAY_S,
        tokens=tokens,
        days=None if seconds is None else seconds / DAY_S,
        power_w=power_w,
        energy_j=None if seconds is None else power_w * seconds,
        tokens_per_j=tokens_per_s / power_w if power_w and not bill.without_power else None,
        cost=None if per_token is None or tokens is None else per_token * tokens,
        cost_per_token=per_token,
        why_no_cost=why or ("" if tokens is not None else "--tokens was not given"),
    )


def _cost_per_s(
    gpus: int, bill: Bill, prices: PriceList | None, power_w: float
) -> tuple[float | None, str]:
    """Return what the cluster costs a second, or None and why it is not known."""
    if prices is None:
        return None, "no price list was given (--prices)"
    rent = prices.rent(bill.accelerator)
    if rent is not None:
        return gpus * rent.price / HOUR_S, ""
    missing = [f"a price for {item}" for item in bill.unpriced]
    missing += ["years"] if prices.years is None else []
    missing += ["kwh"] if prices.kwh is None else []
    missing += [f"the power of {item}" for item in bill.without_power]
    if missing or bill.total is None or prices.years is None or prices.kwh is None:
        return None, (
            f"the price list lacks {', '.join(missing)} (or gpu_hour, the rent of one GPU); "
            "docs/prices.md has a list to copy"
        )
    energy = power_w / 1000.0 / HOUR_S * prices.kwh.price
    return bill.total / (prices.years * YEAR_S) + energy, ""
