"""At which price of a part another cluster trains a token for the least money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.procure.run import run_of
from planner.search.flips import Flip, nearest

if TYPE_CHECKING:
    from planner.procure.bill import Bill
    from planner.procure.prices import Price, PriceList

KWH, GPU_HOUR = "kwh", "gpu_hour"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bid:
    """A cluster that competes by money.

    Args:
        name: of the cluster.
        bill: its parts, priced.
        gpus: of the job [1].
        tokens_per_s: with its best layout [1/s].
    """

    name: str
    bill: Bill
    gpus: int
    tokens_per_s: float


def price_flips(bids: Sequence[Bid], prices: PriceList | None) -> list[Flip]:
    """Return the nearest price of each part, below and above, at which another is the cheapest.

    All other prices stay. Empty without money for every cluster, or with one cluster alone.
    """
    if prices is None or len(bids) < 2:
        return []
    if any(_token_cost(bid, prices) is None for bid in bids):
        return []
    found: list[Flip] = []
    for item in _varied(bids, prices):
        ask = cache(partial(_cheapest, bids, prices, item))
        found += [replace(one, kind="cheapest") for one in nearest(f"price {item}", "winner", ask)]
    return found


def cheapest(bids: Sequence[Bid], prices: PriceList) -> str:
    """Return which cluster trains a token for the least money as prices are.

    Raises:
        InputError: what some cluster costs is not known; nothing unknown is taken for free.
    """
    return _cheapest(bids, prices, KWH, 1.0)


def price_now(item: str, prices: PriceList) -> float:
    """Return the price of *item* as it is, in the list's currency."""
    if item == KWH:
        return 0.0 if prices.kwh is None else prices.kwh.price
    kind = item.removeprefix(f"{GPU_HOUR} ")
    if item.startswith(GPU_HOUR):
        return prices.gpu_hours[kind].price
    return prices.items[item].price


def _varied(bids: Sequence[Bid], prices: PriceList) -> list[str]:
    """Return what has a price that can decide: not the rent of all, which moves all alike."""
    kinds = {bid.bill.accelerator for bid in bids}
    rents = [f"{GPU_HOUR} {kind}" for kind in prices.gpu_hours if kind in kinds]
    if all(prices.rent(kind) is not None for kind in kinds):
        return rents
    used = dict.fromkeys(line.item for bid in bids for line in bid.bill.lines)
    owned = [item for item in used if item in prices.items and prices.items[item].price > 0]
    return [*rents, *owned, *([KWH] if prices.kwh is not None else [])]


def _cheapest(bids: Sequence[Bid], prices: PriceList, item: str, factor: float) -> str:
    listed = _scaled(prices, item, factor)
    costs = {bid.name: _known_cost(_repriced(bid, item, factor), listed) for bid in bids}
    return min(costs, key=lambda name: costs[name])


def _known_cost(bid: Bid, prices: PriceList) -> float:
    run = run_of(bid.tokens_per_s, bid.gpus, bid.bill, prices, None)
    if run.cost_per_token is None:
        raise InputError(f"{bid.name}: no money a token: {run.why_no_cost}")
    return run.cost_per_token


def _token_cost(bid: Bid, prices: PriceList) -> float | None:
    return run_of(bid.tokens_per_s, bid.gpus, bid.bill, prices, None).cost_per_token


def _scaled(prices: PriceList, item: str, factor: float) -> PriceList:
    def times(price: Price) -> Price:
        return replace(price, price=price.price * factor)

    if item == KWH:
        return replace(prices, kwh=None if prices.kwh is None else times(prices.kwh))
    hours: Mapping[str, Price] = {
        kind: times(price) if item == f"{GPU_HOUR} {kind}" else price
        for kind, price in prices.gpu_hours.items()
    }
    return replace(prices, gpu_hours=hours)


def _repriced(bid: Bid, item: str, factor: float) -> Bid:
    lines = tuple(
        replace(line, price=line.price * factor)
        if line.item == item and line.price is not None
        else line
        for line in bid.bill.lines
    )
    return replace(bid, bill=replace(bid.bill, lines=lines))
