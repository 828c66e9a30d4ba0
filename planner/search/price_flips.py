"""At which price of a part another cluster trains a token for the least money.

What a token costs on a cluster is a straight line in every price, so that the prices at which two
cost the same are worked out, not searched, and none is missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.procure.bill import OF_CLUSTER
from planner.procure.run import run_of
from planner.search.axes import WIDEST_FACTOR
from planner.search.flips import Flip

if TYPE_CHECKING:
    from planner.procure.bill import Bill
    from planner.procure.prices import Price, PriceList

KWH, GPU_HOUR = "kwh", "gpu_hour"
_HAIR = 1e-6
"""How far beyond the price at which two cost the same the other is named, relative: there it is
cheaper by more than rounding."""
_SAME = 1e-9
"""Clusters whose money differs by less, relative, cost the same but for rounding."""


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
        lines = [_line(bid, prices, item) for bid in bids]
        for end in (1.0 / WIDEST_FACTOR, WIDEST_FACTOR):
            met = _crossing(lines, end)
            if met is not None:
                factor, other = met
                beyond = factor * (1.0 + (_HAIR if end > 1.0 else -_HAIR))
                found.append(
                    Flip(name=f"price {item}", kind="cheapest", factor=beyond, held_factor=factor,
                         before=_least(lines, 1.0).name, after=other.name)
                )  # fmt: skip
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """What a token costs on a cluster: *fixed*, and *priced* times a price's factor."""

    name: str
    fixed: float
    priced: float

    def cost(self, factor: float) -> float:
        """Return the cost where the price is *factor* times what it is."""
        return self.fixed + self.priced * factor


def _line(bid: Bid, prices: PriceList, item: str) -> _Line:
    without, now = (
        _known_cost(_repriced(bid, item, factor), _scaled(prices, item, factor))
        for factor in (0.0, 1.0)
    )
    return _Line(name=bid.name, fixed=without, priced=now - without)


def _least(lines: Sequence[_Line], factor: float) -> _Line:
    return min(lines, key=lambda line: line.cost(factor))


def _crossing(lines: Sequence[_Line], end: float) -> tuple[float, _Line] | None:
    """Return the factor between 1 and *end* from which another line is the least, and which.

    None where none is.

    >>> few = _Line(name="few", fixed=1.0, priced=2.0)
    >>> many = _Line(name="many", fixed=2.0, priced=1.5)
    >>> factor, other = _crossing([few, many], 32.0)
    >>> factor, other.name, _crossing([few, many], 1 / 32)
    (2.0, 'many', None)
    """
    now = _least(lines, 1.0)
    limit = now.cost(end) * (1.0 - _SAME)
    meets = [
        ((other.fixed - now.fixed) / (now.priced - other.priced), other)
        for other in lines
        if other.cost(end) < limit
    ]
    return min(meets, key=lambda one: (abs(one[0] - 1.0), one[1].cost(end)), default=None)


def cheapest(bids: Sequence[Bid], prices: PriceList) -> str:
    """Return which cluster trains a token for the least money as prices are.

    Raises:
        InputError: what some cluster costs is not known; nothing unknown is taken for free.
    """
    costs = {bid.name: _known_cost(bid, prices) for bid in bids}
    return min(costs, key=lambda name: costs[name])


def price_now(item: str, prices: PriceList) -> float:
    """Return the price of *item* as it is, in the list's currency."""
    if item == KWH:
        return 0.0 if prices.kwh is None else prices.kwh.price
    kind = item.removeprefix(f"{GPU_HOUR} ")
    if item.startswith(GPU_HOUR):
        return prices.gpu_hours[kind].price
    part, _, cluster = item.partition(OF_CLUSTER)
    return (prices.clusters[cluster] if cluster else prices.items)[part].price


def _varied(bids: Sequence[Bid], prices: PriceList) -> list[str]:
    """Return what has a price that can decide: not the rent of all, which moves all alike."""
    kinds = {bid.bill.accelerator for bid in bids}
    rents = [f"{GPU_HOUR} {kind}" for kind in prices.gpu_hours if kind in kinds]
    if all(prices.rent(kind) is not None for kind in kinds):
        return rents
    owned = dict.fromkeys(line.priced_as for bid in bids for line in bid.bill.lines if line.price)
    return [*rents, *owned, *([KWH] if prices.kwh is not None else [])]


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
        if line.priced_as == item and line.price is not None
        else line
        for line in bid.bill.lines
    )
    return replace(bid, bill=replace(bid.bill, lines=lines))
