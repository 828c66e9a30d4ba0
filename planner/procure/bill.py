"""The bill of materials of a cluster, counted on its graph, with the user's prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.fabric_parts import parts_of

if TYPE_CHECKING:
    from planner.fabric import Fabric
    from planner.fabric_parts import LinkCount, SwitchPorts
    from planner.procure.prices import PriceList


SERVER, SUPERNODE = "server", "supernode"
OF_CLUSTER = " of "
"""Between a part and the cluster that it has a price of its own in."""
BOXES = (SERVER, SUPERNODE)
"""What GPUs sit in, with all that has no line of its own: host CPUs, memory, disks, chassis, fans.

A list need not price them, for a price of the GPU may hold them; then they are named as left out.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BillLine:
    """So many of one part.

    Args:
        item: the accelerator's name, ``server``, ``supernode``, ``nic``, ``leaf``, or the link's
            ends such as ``leaf-spine``.
        count: how many [1].
        link_bytes_per_s: rate of one link, 0 of a part that is none [bytes/s].
        power_w: what one draws, None where nobody said [W].
        price: of one, None where the list has none.
        source: of the price, with its date.
        only_in: the cluster that the list has this price for alone; empty of one for all clusters.
    """

    item: str
    count: int
    link_bytes_per_s: float
    power_w: float | None
    price: float | None
    source: str
    only_in: str = ""

    @property
    def priced_as(self) -> str:
        """What the price is called that it has: by the part, and the cluster if it is its own."""
        return f"{self.item}{OF_CLUSTER}{self.only_in}" if self.only_in else self.item


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """All parts of a cluster.

    Args:
        lines: the GPUs, the boxes they sit in, then the network, innermost first.
        currency: of the prices, empty without a list.
        unpriced: parts without a price, but for boxes.
        without_power: parts of which nobody said what they draw, but for boxes.
        accelerator: the GPUs' name.
        ports: of switches outside supernodes that look towards the GPUs, where they are known.
    """

    lines: tuple[BillLine, ...]
    currency: str
    unpriced: tuple[str, ...]
    without_power: tuple[str, ...]
    accelerator: str = ""
    ports: tuple[SwitchPorts, ...] = ()

    @property
    def total(self) -> float | None:
        """What all parts cost; None as long as one has no price."""
        if self.unpriced:
            return None
        return sum(line.count * (line.price or 0.0) for line in self.lines)

    @property
    def boxes_without_price(self) -> tuple[str, ...]:
        """Boxes of which the total holds nothing."""
        return tuple(one.item for one in self.lines if one.item in BOXES and one.price is None)

    @property
    def boxes_without_power(self) -> tuple[str, ...]:
        """Boxes of which the known power holds nothing."""
        return tuple(one.item for one in self.lines if one.item in BOXES and one.power_w is None)

    @property
    def has_servers(self) -> bool:
        """Whether somebody told how many servers there are."""
        return any(one.item == SERVER for one in self.lines)

    @property
    def known_power_w(self) -> float:
        """What those parts draw whose power is known [W]."""
        return sum(line.count * (line.power_w or 0.0) for line in self.lines)


def bill_of_materials(fabric: Fabric, prices: PriceList | None) -> Bill:
    """Return the parts of *fabric* with the prices of the list; nothing is guessed.

    Links of GPUs and of a supernode's own switches come with it and are not counted by themselves;
    cables and optics of NICs and of the switches outside are, one line for each pair of ends, also
    where one supernode holds all and nothing lies outside its tier. A server, or tray, is a machine
    with an operating system of its own; a supernode counts, full or not, where it is more than one.
    Of a cluster cut down by a free list all boxes count, as all its other parts do.
    """
    parts = parts_of(fabric.graph)
    counted = [
        (fabric.accelerator.name, parts.vertices["gpu"], 0.0),
        *((item, count, 0.0) for item, count in _boxes(fabric).items()),
        *((kind, count, 0.0) for kind, count in parts.vertices.items() if kind != "gpu"),
    ]
    counted += [
        (link.ends, link.links, link.link_bytes_per_s)
        for link in parts.links
        if link.ends != "gpu-nic" and not _comes_with_supernode(link)
    ]
    name = fabric.accelerator.name
    own = {name: fabric.accelerator.power_w}
    bill = priced_bill(
        [
            BillLine(item=item, count=count, link_bytes_per_s=rate, power_w=own.get(item),
                     price=None, source="")
            for item, count, rate in counted
        ],
        name,
        prices,
        cluster=fabric.whole.name,
    )  # fmt: skip
    return replace(bill, ports=parts.ports)


def _boxes(fabric: Fabric) -> dict[str, int]:
    """Return how many servers and supernodes there are; nothing of servers nobody told of."""
    whole = fabric.whole
    servers, supernodes = len(whole.hosts), len(whole.tier("supernode").domains)
    found = {SERVER: servers} if servers else {}
    return found if servers == supernodes else {**found, SUPERNODE: supernodes}


def _comes_with_supernode(link: LinkCount) -> bool:
    ends = link.ends.split("-")
    own = "gpu" in ends or "scale_up_switch" in ends
    return own and link.tier in ("board", "supernode")


def priced_bill(
    parts: Sequence[BillLine], accelerator: str, prices: PriceList | None, *, cluster: str
) -> Bill:
    """Return *parts* with the prices of the list; what a part draws is the list's, else its own.

    Args:
        parts: innermost first.
        accelerator: the GPUs' name.
        prices: the user's list, if any.
        cluster: whose parts they are; the list may have prices for it alone.
    """
    items = {} if prices is None else prices.items
    here = {} if prices is None else prices.clusters.get(cluster, {})
    lines = []
    for part in parts:
        known = [one[part.item] for one in (here, items) if part.item in one]
        priced = known[0] if known else None
        drawn_w = [one.power_w for one in known if one.power_w is not None]
        lines.append(
            replace(
                part, power_w=drawn_w[0] if drawn_w else part.power_w or None,
                price=None if priced is None else priced.price,
                source="" if priced is None else f"{priced.source}, {priced.date}",
                only_in=cluster if part.item in here else "",
            )
        )  # fmt: skip
    return Bill(
        lines=tuple(lines),
        currency="" if prices is None else prices.currency,
        unpriced=tuple(
            dict.fromkeys(one.item for one in lines if one.price is None and one.item not in BOXES)
        ),
        without_power=tuple(
            dict.fromkeys(
                one.item
                for one in lines
                if one.power_w is None and not one.link_bytes_per_s and one.item not in BOXES
            )
        ),
        accelerator=accelerator,
    )
