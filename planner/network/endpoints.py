"""Endpoint state: connections a NIC must hold for a layout, by transport, against its cache.

A NIC that must fetch connection state from host memory stalls on every miss, so what counts is
whether the state of everything it talks to fits its cache:

- *reliable connection*: one connection to every peer process, times queue pairs: state grows with
  peers;
- *shared or dynamic* (XRC, SRD, DC): one connection to every peer *node*, or as many as talk at
  once, whichever is fewer;
- *connectionless* (Jetty-like): transaction and transport are apart. One endpoint for each local
  process and one transport channel to each peer node it shares with the others.

Source: E-S23-071 (transaction layer apart from transport layer: otherwise state explodes).
No data sheet says what a NIC keeps of a connection or how much it can keep: 375 bytes and 2 MiB
are *assumed*, of the order that Kalia et al., "Datacenter RPCs can be general and fast", NSDI 2019,
speak of, and both are inputs. What is public: a mlx5 queue pair's context is 232 bytes and that of
its completion queue 64 (``mlx5_ifc.h``), so 296 is a floor; commodity NICs lose half of their rate
by 4,096 connections (PipeDevice, CoNEXT 2022) and some of it from 450 (StaR, ICNP 2021), where
2 MiB at 375 bytes holds 5,592.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.network.premises import Premise
from planner.network.ranges import not_above_zero, not_counts, refuse
from planner.traffic import step_families

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.layout import Layout
    from planner.model import ModelSpec

SOURCE = "derived in the text of planner.network.endpoints"
STATE_BYTES = 375.0
CACHE_BYTES = 2 * 1024.0**2
STATE_ASSUMED = (
    "375 bytes: no data sheet says; the driver's own contexts of a queue pair and its completion "
    "queue are 296 of them (mlx5_ifc.h)"
)
CACHE_ASSUMED = (
    "2 MiB: no data sheet says; published measurements lose half of the rate by 4,096 connections "
    "(PipeDevice 2022) and some from 450 (StaR 2021)"
)
_EXCHANGES = frozenset({"all_to_all", "domain_all_to_all"})
TRANSPORTS = ("reliable-connection", "dynamic", "connectionless")


class Connects(Enum):
    """Whom a library connects in a group."""

    WHO_TALK = "who talk"
    EVERY_PAIR = "every pair"


def peers_of(
    families: Sequence[tuple[str, Any]], ranks: int, connects: Connects = Connects.WHO_TALK
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return who sends to whom: ranks and their peers, each ordered pair once.

    A ring or chain has two neighbours, an exchange every other member, also where a token comes
    once for each domain: its copies are spread over the members there. ``EVERY_PAIR`` connects all
    members of every family, as libraries do that connect a group when it is made.

    Args:
        families: collective and groups of ranks, array [groups, members], of each family.
        ranks: ranks of the job [1].
        connects: whom the library connects.
    """
    keys = [np.zeros(0, np.int64)]
    for collective, groups in families:
        members = np.atleast_2d(np.asarray(groups, np.int64))
        n = members.shape[1]
        if n < 2:
            continue
        if connects is Connects.EVERY_PAIR or collective in _EXCHANGES:
            a, b = np.repeat(members, n, axis=1).ravel(), np.tile(members, (1, n)).ravel()
        else:
            onward = np.roll(members, -1, axis=1)
            if collective == "chain":
                members, onward = members[:, :-1], onward[:, :-1]
            a = np.concatenate([members.ravel(), onward.ravel()])
            b = np.concatenate([onward.ravel(), members.ravel()])
        keys.append(np.unique(a[a != b] * ranks + b[a != b]))
    pairs = np.unique(np.concatenate(keys))
    return pairs // ranks, pairs % ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportState:
    """What the busiest NIC holds under one transport.

    Args:
        transport: one of ``TRANSPORTS``.
        connections: connections, or endpoints and channels [1].
        state_bytes: their state [bytes].
        cache_share: state over cache; above 1 it overflows.
        fits: whether it fits.
        all_connections: over all NICs [1].
    """

    transport: str
    connections: int
    state_bytes: float
    cache_share: float
    fits: bool
    all_connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointState:
    """Peers and state of a layout.

    Args:
        peers: peer ranks of the busiest rank over the network [1].
        peer_nodes: nodes of these [1].
        transports: in the order of ``TRANSPORTS``.
        most_peers: peers at which a reliable connection fills the cache [1].
        premises: what this takes for granted.
    """

    peers: int
    peer_nodes: int
    transports: tuple[TransportState, ...]
    most_peers: int
    premises: tuple[Premise, ...]


def endpoint_state(
    peers_per_rank: Any,
    nodes_per_rank: Any,
    *,
    queue_pairs: int = 1,
    active_peers: int = 64,
    ranks_per_nic: int = 1,
    state_bytes: float = STATE_BYTES,
    cache_bytes: float = CACHE_BYTES,
) -> EndpointState:
    """Return connections and bytes of NIC state by transport.

    Per NIC of r ranks, p peers and m peer nodes a rank, q queue pairs a connection:
    reliable r p q; dynamic r min(m, active) q; connectionless r endpoints + m channels.

    Args:
        peers_per_rank: peer ranks over the network, scalar or array [ranks].
        nodes_per_rank: nodes these are in, scalar or array [ranks].
        queue_pairs: connections (channels x queue pairs) to one peer [1].
        active_peers: peers a dynamic transport serves at once, per rank [1].
        ranks_per_nic: ranks that share a NIC [1].
        state_bytes: state of one connection, endpoint or channel [bytes].
        cache_bytes: what the NIC can keep [bytes].

    >>> seen = endpoint_state(1023, 127, queue_pairs=8)
    >>> [(t.connections, t.fits) for t in seen.transports]
    [(8184, False), (512, True), (128, True)]
    """
    peers = np.atleast_1d(np.asarray(peers_per_rank, np.float64))
    nodes = np.atleast_1d(np.asarray(nodes_per_rank, np.float64))
    faults = [
        *not_counts(
            queue_pairs=queue_pairs, active_peers=active_peers, ranks_per_nic=ranks_per_nic
        ),
        *not_counts(0, peers_per_rank=peers, nodes_per_rank=nodes),
        *not_above_zero(state_bytes=state_bytes, cache_bytes=cache_bytes),
    ]
    if not faults and bool((nodes > peers).any()):
        faults.append(
            f"nodes_per_rank={nodes.max():g}: expected at most peers_per_rank={peers.max():g}"
        )
    refuse(faults)
    held = (
        ranks_per_nic * peers * queue_pairs,
        ranks_per_nic * np.minimum(nodes, active_peers) * queue_pairs,
        np.where(peers > 0, ranks_per_nic + nodes, 0),
    )
    return EndpointState(
        peers=int(peers.max()),
        peer_nodes=int(nodes.max()),
        transports=tuple(
            _transport(name, count, state_bytes, cache_bytes, ranks_per_nic)
            for name, count in zip(TRANSPORTS, held, strict=True)
        ),
        most_peers=int(cache_bytes / (state_bytes * ranks_per_nic * queue_pairs)),
        premises=_premises(),
    )


def _transport(
    name: str,
    connections: NDArray[np.float64],
    state_bytes: float,
    cache_bytes: float,
    ranks_per_nic: int,
) -> TransportState:
    """Return what the NIC with most *connections* holds; array [ranks]."""
    most_bytes = float(connections.max() * state_bytes)
    return TransportState(
        transport=name,
        connections=int(connections.max()),
        state_bytes=most_bytes,
        cache_share=most_bytes / cache_bytes,
        fits=most_bytes <= cache_bytes,
        all_connections=int(connections.sum() / ranks_per_nic),
    )


def _premises() -> tuple[Premise, ...]:
    """Return what counting state takes for granted."""
    return (
        Premise(
            states="All connections of a NIC are in use within one step",
            holds=None,
            otherwise="only those in use compete for the cache",
        ),
        Premise(
            states="Every connection, endpoint and channel has the same state",
            holds=None,
            otherwise="give the bytes of the transport at hand",
        ),
        Premise(
            states="Nothing else is kept in the NIC's memory",
            holds=None,
            otherwise="memory keys and work queues take their part: lower cache_bytes",
        ),
    )


def layout_endpoints(
    families: Sequence[tuple[str, Any]],
    domain_of_rank: Any,
    node_of_rank: Any,
    *,
    connects: Connects = Connects.WHO_TALK,
    **options: Any,
) -> EndpointState:
    """Return the endpoint state that a layout makes where its ranks sit.

    Args:
        families: collective and groups of ranks of each family.
        domain_of_rank: supernode of each rank: peers inside it need no NIC; array [ranks].
        node_of_rank: node (NIC host) of each rank; array [ranks].
        connects: see ``peers_of``.
        options: see ``endpoint_state``.
    """
    homes = np.asarray(domain_of_rank, np.int64)
    nodes = np.asarray(node_of_rank, np.int64)
    ranks = len(homes)
    a, b = peers_of(families, ranks, connects)
    far = homes[a] != homes[b]
    a, b = a[far], b[far]
    pairs = np.unique(a * (int(nodes.max()) + 1) + nodes[b])
    return endpoint_state(
        np.bincount(a, minlength=ranks),
        np.bincount(pairs // (int(nodes.max()) + 1), minlength=ranks),
        **options,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutState:
    """A layout, how long its step is, and the state that it makes in NICs.

    Args:
        layout: its degrees.
        step_s: as whoever asks estimates it [s].
        state: of its NICs.
    """

    layout: Layout
    step_s: float
    state: EndpointState

    def fits(self, transport: str) -> bool:
        """Return whether the state of *transport* fits the cache."""
        return all(row.fits for row in self.state.transports if row.transport == transport)


def layout_state(
    model: ModelSpec,
    layout: Layout,
    step_s: float,
    domain_of_rank: Any,
    node_of_rank: Any,
    **options: Any,
) -> LayoutState:
    """Return *layout* with the state that the families of its step make.

    Args:
        model: what is trained.
        layout: its degrees.
        step_s: how long its step is estimated to be [s].
        domain_of_rank: as of ``layout_endpoints``.
        node_of_rank: the same.
        **options: the same.
    """
    families = [(one.collective, one.members(layout)) for one in step_families(model, layout)]
    state = layout_endpoints(families, domain_of_rank, node_of_rank, **options)
    return LayoutState(layout=layout, step_s=step_s, state=state)
