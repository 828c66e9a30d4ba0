"""The few physical numbers that turn link rates into a library's measured times.

``LibraryNumbers`` are the communication library's own and hold on every machine; ``ScaleUpClass``
belongs to a generation of GPUs, ``NetworkClass`` to a kind of network. They are fitted on public
measurements (``fit.py``) and kept with their source and error in the catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from planner.collectives.links import LinkNumbers, Protocol, TierNumbers


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryNumbers:
    """What the library costs, whatever the machine.

    Args:
        protocols: its ways to move a chunk.
        own_step_share: the last copy of a ring, as a part of a hop [1].
        issue_s: between two messages of an all-to-all [s].
    """

    protocols: tuple[Protocol, ...]
    own_step_share: float
    issue_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpClass:
    """One generation of GPUs and scale-up switches.

    Args:
        launch_s: one collective, before its first byte [s].
        latency_s: one hop under the quickest protocol [s].
        efficiency_share: part of the nominal scale-up rate that a ring reaches, 0 to 1.
        reduction_share: part of the nominal rate that the switch reduction reaches, 0 to 1;
            0 where the switch cannot reduce.
        reduction_chunk_bytes: each member's part of the first chunk of a switch reduction [bytes].
        whole_chunk_factor: times *latency_s* where a protocol hands on whole chunks [1].
        max_rails: NICs that one collective uses in one supernode at most [1].
    """

    launch_s: ArrayLike
    latency_s: ArrayLike
    efficiency_share: ArrayLike
    reduction_share: ArrayLike = 0.0
    reduction_chunk_bytes: ArrayLike = 0.0
    whole_chunk_factor: ArrayLike = 1.0
    max_rails: ArrayLike = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkClass:
    """One kind of network between supernodes.

    Args:
        latency_s: one hop under the quickest protocol [s].
        efficiency_share: part of the NIC's rate that a collective reaches, 0 to 1.
        ordered: it keeps the order of stores, so that every protocol may be used on it.
        tree_chunk_factor: times the chunk of a switch reduction in trees between supernodes [1].
    """

    latency_s: ArrayLike
    efficiency_share: ArrayLike
    ordered: ArrayLike = True
    tree_chunk_factor: ArrayLike = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FitError:
    """How far the fitted times are from the measured ones, on tables left out of the fit.

    Args:
        median_share: median of |predicted/measured - 1| [1].
        p90_share: 90th percentile of the same [1].
        bias_share: median of predicted/measured - 1 [1].
        rows: rows compared [1].
    """

    median_share: float
    p90_share: float
    bias_share: float
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A library with the classes of machines it was measured on.

    Args:
        library: the library's own numbers.
        scale_up: class name to its numbers.
        network: class name to its numbers.
        errors: class and collective to the error on tables left out, e.g. ``hopper all_reduce``.
        sources: where the measurements are from.
    """

    library: LibraryNumbers
    scale_up: Mapping[str, ScaleUpClass]
    network: Mapping[str, NetworkClass]
    errors: Mapping[str, FitError]
    sources: tuple[str, ...] = ()


def measured_links(
    links: LinkNumbers, library: LibraryNumbers, scale_up: ScaleUpClass, network: NetworkClass
) -> LinkNumbers:
    """Return *links* with the efficiencies, latencies and protocols that were measured.

    Nominal rates stay. The first outer tier takes the network's latency; tiers beyond it add what
    the fabric says they add. A tier keeps its in-network reduction only where the class has one.
    """
    share = np.asarray(scale_up.reduction_share, float)
    efficiency = np.asarray(scale_up.efficiency_share, float)
    inside = replace(
        links.inside,
        latency_s=scale_up.latency_s,
        efficiency_share=efficiency,
        in_network_reduction=np.asarray(links.inside.in_network_reduction) & (share > 0),
        reduction_share=np.where(share > 0, share / efficiency, 1.0),
        reduction_chunk_bytes=scale_up.reduction_chunk_bytes,
    )
    outer: list[TierNumbers] = []
    for tier in links.outer:
        extra = np.asarray(tier.latency_s, float) - np.asarray(links.outer[0].latency_s, float)
        outer.append(
            replace(
                tier,
                latency_s=np.asarray(network.latency_s, float) + extra,
                efficiency_share=network.efficiency_share,
            )
        )
    return LinkNumbers(
        tiers=(inside, *outer),
        launch_s=scale_up.launch_s,
        issue_s=library.issue_s,
        protocols=library.protocols,
        own_step_share=library.own_step_share,
        max_rails=scale_up.max_rails,
        whole_chunk_factor=scale_up.whole_chunk_factor,
        ordered_across=network.ordered,
        tree_chunk_factor=network.tree_chunk_factor,
    )
