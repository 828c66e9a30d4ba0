"""Link sharing: what each flow gets when all of them run at once, and which link is to blame.

*Max-min fair*: no flow can get more without taking from one that has no more. Found by filling:
each link offers what it has left over the flows that still grow; a link whose offer is the
smallest that any of its flows sees is full, and its flows are settled. Oversubscription needs no
factor of its own: it is what an uplink's offer comes to.

Loads are counted beside it: link busy time = bytes over it / capacity. The busiest link is a
lower bound of the phase's time whatever the sharing, and is named.

Holds for steady flows (long against a round trip) and fair links. A flow split over equal-cost
links grows on all of them in proportion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InputError
from planner.network.flows import Flows, together
from planner.network.hashing import Collisions, collisions
from planner.network.premises import Premise
from planner.network.routes import Paths, Routes, route
from planner.network.wiring import wiring_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Fabric
    from planner.network.reach import Links

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_SAME = 1e-9


def fair_rates(routes: Routes, limit_bytes_per_s: Any = np.inf) -> Floats:
    """Return the max-min fair rate of each flow; array [flows] [bytes/s].

    Args:
        routes: where the flows go.
        limit_bytes_per_s: what a flow can send at most, e.g. its in-flight limit; broadcasts.

    A flow from a GPU to itself uses no link: its rate is its limit.
    """
    flows = len(routes.flow_state)
    limit = np.broadcast_to(np.asarray(limit_bytes_per_s, np.float64), (flows,))
    rates = np.where(routes.flow_state < 0, limit, 0.0)
    growing = routes.flow_state >= 0
    capacity = routes.links.capacity_bytes_per_s
    left = capacity.copy()
    while growing.any():
        use = link_load(routes, growing.astype(np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            offer = np.where(use > 0, np.maximum(left, 0.0) / use, np.inf)
        least = np.minimum(_least_ahead(routes, offer), limit)
        lowest_seen = _least_through(routes, np.where(growing, least, np.inf))
        full = (use > 0) & (lowest_seen >= offer * (1 - _SAME))
        offers = np.where(full, offer, np.inf)
        settled = growing & (_least_ahead(routes, offers) <= least * (1 + _SAME))
        settled |= growing & (limit <= least)
        rates[settled] = least[settled]
        left = left - link_load(routes, np.where(settled, rates, 0.0))
        growing &= ~settled
    return rates


def link_load(routes: Routes, of_flow: Floats) -> Floats:
    """Return the sum over flows of *of_flow* x the share that takes each link; array [links]."""
    load = np.zeros(len(routes.links.tails))
    moving = routes.flow_state >= 0
    if not routes.hops:
        return load
    here = np.bincount(routes.flow_state[moving], of_flow[moving], minlength=routes.hops[0].states)
    for depth, hop in enumerate(routes.hops):
        carried = here[hop.origin] * hop.share
        load += np.bincount(hop.link, carried, minlength=len(load))
        if depth + 1 < len(routes.hops):
            on = hop.onward >= 0
            here = np.bincount(hop.onward[on], carried[on], minlength=routes.hops[depth + 1].states)
    return load


def _least_ahead(routes: Routes, of_link: Floats) -> Floats:
    """Return the least *of_link* on the way of each flow; array [flows]."""
    ahead = np.zeros(0)
    for hop in reversed(routes.hops):
        value = of_link[hop.link]
        on = hop.onward >= 0
        if len(ahead):
            value[on] = np.minimum(value[on], ahead[hop.onward[on]])
        ahead = np.full(hop.states, np.inf)
        np.minimum.at(ahead, hop.origin, value)
    moving = routes.flow_state >= 0
    least = np.full(len(routes.flow_state), np.inf)
    if len(ahead):
        least[moving] = ahead[routes.flow_state[moving]]
    return least


def _least_through(routes: Routes, of_flow: Floats) -> Floats:
    """Return the least *of_flow* over the flows through each link; array [links]."""
    least = np.full(len(routes.links.tails), np.inf)
    if not routes.hops:
        return least
    moving = routes.flow_state >= 0
    here = np.full(routes.hops[0].states, np.inf)
    np.minimum.at(here, routes.flow_state[moving], of_flow[moving])
    for depth, hop in enumerate(routes.hops):
        value = here[hop.origin]
        np.minimum.at(least, hop.link, value)
        if depth + 1 < len(routes.hops):
            on = hop.onward >= 0
            here = np.full(routes.hops[depth + 1].states, np.inf)
            np.minimum.at(here, hop.onward[on], value[on])
    return least


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkUse:
    """One directed link under all flows.

    Args:
        link: ``leaf-3 -> spine-1``.
        load_bytes: what one execution of everything moves over it [bytes].
        capacity_bytes_per_s: [bytes/s].
        busy_s: load / capacity [s].
        busy_share: of the busiest link's busy time, 0 to 1.
    """

    link: str
    load_bytes: float
    capacity_bytes_per_s: float
    busy_s: float
    busy_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyShare:
    """What a family gets alone, and with everything else running.

    Args:
        name: of the family.
        alone_bytes_per_s: the rate of its slowest flow, alone [bytes/s].
        shared_bytes_per_s: the same with all families active [bytes/s].
        contention: alone / shared, 1 or more.
        alone_s: longest flow, size over rate, alone [s].
        shared_s: the same with all active; an upper bound, since flows that end free their
            share [s].
        bottleneck: the link that is fullest on the way of its slowest flow.
    """

    name: str
    alone_bytes_per_s: float
    shared_bytes_per_s: float
    contention: float
    alone_s: float
    shared_s: float
    bottleneck: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Everything that is active together.

    Args:
        bottleneck: the link with the longest busy time.
        bound_s: its busy time: no schedule of these flows is shorter [s].
        shared_s: all done at the fair rates of the start; an upper bound [s].
        families: in the order given.
        links: those that carry anything, busiest first, at most as many as asked for.
        collisions: what hashing is expected to do where the busiest equal-cost links leave a
            vertex; None where no flow has a choice.
        premises: what this takes for granted.
    """

    bottleneck: str
    bound_s: float
    shared_s: float
    families: tuple[FamilyShare, ...]
    links: tuple[LinkUse, ...]
    collisions: Collisions | None
    premises: tuple[Premise, ...]


def share_links(
    fabric: Fabric,
    families: Mapping[str, Flows],
    *,
    paths: Paths = Paths.SPRAYED,
    flow_limit_bytes_per_s: Any = np.inf,
    most_links: int = 20,
) -> Sharing:
    """Return what the flows of *families* get when all are active, and the link that binds.

    Args:
        fabric: the cluster.
        families: name to flows between GPU indices of the fabric.
        paths: see ``routes.route``.
        flow_limit_bytes_per_s: what one flow can send at most [bytes/s].
        most_links: links listed at most [1].

    Raises:
        InputError: no flow at all, or one without a path.
    """
    named = {name: flows for name, flows in families.items() if len(flows)}
    everything = together(list(named.values()))
    if not len(everything):
        raise InputError("no flow leaves its GPU: expected one at least")
    wiring = wiring_of(fabric)
    links, known = wiring.links, wiring.known
    ends = wiring.vertices[everything.sources], wiring.vertices[everything.targets]
    routes = route(links, *ends, paths=paths, known=known)
    rates = fair_rates(routes, flow_limit_bytes_per_s)
    load = link_load(routes, everything.sizes_bytes)
    busy = load / links.capacity_bytes_per_s
    worst = int(np.argmax(busy))
    starts = np.cumsum([0, *(len(flows) for flows in named.values())])
    shares = tuple(
        _family(name, _part(routes, own), flows, rates[own], busy, flow_limit_bytes_per_s)
        for (name, flows), start in zip(named.items(), starts[:-1], strict=True)
        for own in [slice(start, start + len(flows))]
    )
    even = routes if paths is Paths.SPRAYED else route(links, *ends, known=known)
    hashed = _worst_choice(even, everything.sizes_bytes)
    return Sharing(
        bottleneck=links.name(worst),
        bound_s=float(busy[worst]),
        shared_s=max(share.shared_s for share in shares),
        families=shares,
        links=_busiest(links, load, most_links),
        collisions=hashed,
        premises=_premises(paths, hashed),
    )


def _busiest(links: Links, load_bytes: Floats, most: int) -> tuple[LinkUse, ...]:
    """Return the *most* links that are busy longest, of those that carry anything."""
    busy = load_bytes / links.capacity_bytes_per_s
    order = np.argsort(-busy, kind="stable")
    return tuple(
        LinkUse(
            link=links.name(int(link)),
            load_bytes=float(load_bytes[link]),
            capacity_bytes_per_s=float(links.capacity_bytes_per_s[link]),
            busy_s=float(busy[link]),
            busy_share=float(busy[link] / busy[order[0]]),
        )
        for link in order[:most]
        if load_bytes[link] > 0
    )


def _premises(paths: Paths, hashed: Collisions | None) -> tuple[Premise, ...]:
    """Return what sharing takes for granted, and whether paths are used evenly."""
    return (
        Premise(
            states="All flows start together and are long against a round trip",
            holds=None,
            otherwise="the busiest link's time stays a lower bound; fair rates are those of "
            "the time when all are active",
        ),
        Premise(
            states="Links share by flow, not by family",
            holds=None,
            otherwise="a family with many flows a GPU (all-to-all) takes more than one with a "
            "single flow; queues per class would part them otherwise",
        ),
        Premise(
            states="Equal-cost paths are used evenly (adaptive routing or many queue pairs)",
            holds=paths is Paths.SPRAYED,
            otherwise=_otherwise(hashed),
        ),
    )


def _worst_choice(routes: Routes, sizes_bytes: Floats) -> Collisions | None:
    """Return what a hash is expected to do at the busiest link that sprayed flows share."""
    links = routes.links
    flows, chosen = np.zeros(len(links.tails)), np.zeros(len(links.tails))
    moving = routes.flow_state >= 0
    here = np.bincount(routes.flow_state[moving], np.ones(int(moving.sum())))
    for depth, hop in enumerate(routes.hops):
        flows += np.bincount(hop.link, here[hop.origin], minlength=len(flows))
        carried = here[hop.origin] * hop.share
        chosen += np.bincount(hop.link, carried, minlength=len(flows))
        if depth + 1 < len(routes.hops):
            on = hop.onward >= 0
            here = np.bincount(hop.onward[on], carried[on], minlength=routes.hops[depth + 1].states)
    choice = chosen < flows * (1 - _SAME)
    if not choice.any():
        return None
    busy = link_load(routes, sizes_bytes) / links.capacity_bytes_per_s
    link = int(np.argmax(np.where(choice, busy, -1.0)))
    return collisions(
        max(1, round(float(flows[link]))),
        max(1, round(float(flows[link] / chosen[link]))),
        links.vertices[links.tails[link]],
    )


def _otherwise(hashed: Collisions | None) -> str:
    """Return what becomes of flows that are hashed instead."""
    told = "hashed flows collide: some links carry several, others none"
    if hashed is None:
        return told
    return (
        f"{told}; of {hashed.flows} flows that leave {hashed.where} over {hashed.paths} equal "
        f"links, the fullest is expected to carry {hashed.fullest_ratio:.3g} times its share"
    )


def _part(routes: Routes, own: slice) -> Routes:
    return Routes(links=routes.links, hops=routes.hops, flow_state=routes.flow_state[own])


def _family(
    name: str, routes: Routes, flows: Flows, rates: Floats, busy: Floats, limit: Any
) -> FamilyShare:
    """Return what one family gets alone and with the rest."""
    alone = fair_rates(routes, limit)
    slowest = int(np.argmax(flows.sizes_bytes / rates))
    path = routes.path(slowest)
    blame = max(path, key=lambda link: (busy[link], -link))
    alone_s = float((flows.sizes_bytes / alone).max())
    shared_s = float((flows.sizes_bytes / rates).max())
    return FamilyShare(
        name=name,
        alone_bytes_per_s=float(alone.min()),
        shared_bytes_per_s=float(rates.min()),
        contention=shared_s / alone_s,
        alone_s=alone_s,
        shared_s=shared_s,
        bottleneck=routes.links.name(blame),
    )
