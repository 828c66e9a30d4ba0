"""A price list of the user's: no price is known here that was not given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What one part costs and draws.

    Args:
        price: of one, in the list's currency.
        power_w: what one draws, None where the list does not say [W].
        source: who says so.
        date: when.
    """

    price: float
    source: str
    date: str
    power_w: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """Prices with their sources.

    Args:
        currency: e.g. ``USD``.
        items: part to its price; parts are named as ``bill_of_materials`` names them.
        gpu_hour: rent of one GPU for one hour, whatever its kind, or None.
        gpu_hours: the same of one kind, by the accelerator's name; goes before ``gpu_hour``.
        clusters: cluster to the prices that a part has there alone; they go before ``items``.
        kwh: price of one kilowatt-hour, or None.
        overhead_ratio: power at the meter over power of the parts (PUE) [1].
        years: life over which a purchase is written off, or None [years].
    """

    currency: str
    items: Mapping[str, Price]
    gpu_hour: Price | None = None
    kwh: Price | None = None
    overhead_ratio: float = 1.0
    years: float | None = None
    gpu_hours: Mapping[str, Price] = field(default_factory=lambda: MappingProxyType({}))
    clusters: Mapping[str, Mapping[str, Price]] = field(
        default_factory=lambda: MappingProxyType({})
    )

    def rent(self, accelerator: str) -> Price | None:
        """Return the rent of one GPU of that kind for one hour, or None."""
        return self.gpu_hours.get(accelerator, self.gpu_hour)
