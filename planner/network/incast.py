"""Incast gate: many senders, one port: does the buffer hold until the senders have slowed down?

degree senders at full rate meet a port of one: the queue grows at degree x sender - port. It
passes if the feedback deadline holds (E-S23-072), or if the senders' windows bound what can pile
up at all (E-S23-074): no queue exceeds degree x window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.network.congestion import excess_bytes, time_to_full_s
from planner.network.premises import Premise
from planner.network.ranges import below_zero, not_above_zero, not_counts, or_none, refuse

if TYPE_CHECKING:
    from planner.fabric import Fabric

SOURCE = "derived in the text of planner.network.incast"
_SAME = 1e-12  # bytes closer than this share are one
FEEDBACK_S = 20e-6
ROOM_BYTES = 256 * 1024.0
"""Until senders slow down, and free buffer of a port: the chapter's case, where nothing is said."""


def incast_degree(collective: str, groups: Any, domain_of_rank: Any) -> int:
    """Return the most members of one group that send to one member from outside its domain.

    A member of an exchange hears from all others at once, whether a token comes once for each
    expert or once for each domain (its copies are spread over the members there); a ring, a chain
    or a reduction that goes around a ring from one; a tree from two. What comes from the member's
    own domain arrives over other ports and is not counted.

    Args:
        collective: as in ``planner.traffic.Family``.
        groups: ranks of each group, array [groups, members].
        domain_of_rank: domain of the tier that each rank is in, array [ranks].

    >>> incast_degree("all_to_all", [[0, 1, 2, 3]], [0, 0, 0, 1])
    3
    >>> incast_degree("all_reduce", [[0, 1, 2, 3]], [0, 0, 1, 1])
    1
    """
    homes = np.asarray(domain_of_rank, np.int64)[np.atleast_2d(np.asarray(groups, np.int64))]
    if homes.shape[1] < 2 or (homes == homes[:, :1]).all():
        return 0
    if collective not in {"all_to_all", "domain_all_to_all"}:
        return 1
    domains = int(homes.max()) + 1
    rows = np.arange(len(homes))[:, None] * domains
    inside = np.bincount((rows + homes).ravel(), minlength=len(homes) * domains)
    least = inside[(rows + homes).ravel()].min()
    return int(homes.shape[1] - least)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncastGate:
    """Whether one tier's ports stand the incast that a placement makes.

    Args:
        tier: name of the tier that the senders are outside of.
        degree: senders at once [1].
        passes: whether nothing is lost.
        why: ``no excess``, ``feedback in time``, ``windows fit``, or ``overflows``.
        deadline_s: feedback this late still loses nothing, None for any [s].
        feedback_s: what it is [s].
        peak_bytes: what piles up, at most [bytes].
        room_bytes: what the buffer can take [bytes].
        margin_share: room / peak - 1: negative where it fails; None where nothing piles up.
        lost_bytes: what does not fit [bytes].
        safe_degree: most senders that pass [1], None for any number.
        premises: what this takes for granted.
        family: the family that makes the degree, "" where none crosses or none was named.
    """

    tier: str
    degree: int
    passes: bool
    why: str
    deadline_s: float | None
    feedback_s: float
    peak_bytes: float
    room_bytes: float
    margin_share: float | None
    lost_bytes: float
    safe_degree: int | None
    premises: tuple[Premise, ...]
    family: str = ""


def incast_gate(
    degree: int,
    sender_bytes_per_s: float,
    port_bytes_per_s: float,
    room_bytes: float,
    feedback_s: float,
    *,
    window_bytes: float | None = None,
    tier: str = "",
) -> IncastGate:
    """Return whether *degree* senders into one port lose nothing.

    peak = min((degree x sender - port) x feedback, degree x window); passes if peak <= room.

    Args:
        degree: senders at once [1].
        sender_bytes_per_s: rate of one of them [bytes/s].
        port_bytes_per_s: rate of the port they share [bytes/s].
        room_bytes: free buffer in front of it [bytes].
        feedback_s: until senders have slowed down to their share [s].
        window_bytes: what one sender may have outstanding to this receiver; None for no limit.
        tier: what to call the result.

    >>> gate = incast_gate(2, 50e9, 50e9, 256 * 1024, 20e-6)
    >>> gate.passes, round(gate.deadline_s * 1e6, 1), round(gate.lost_bytes / 1e3)
    (False, 5.2, 738)
    """
    refuse(
        not_counts(0, degree=degree),
        not_above_zero(
            sender_bytes_per_s=sender_bytes_per_s,
            port_bytes_per_s=port_bytes_per_s,
            room_bytes=room_bytes,
        ),
        below_zero(feedback_s=feedback_s),
        [] if window_bytes is None else not_above_zero(window_bytes=window_bytes),
    )
    arrival = degree * sender_bytes_per_s
    deadline_s = time_to_full_s(room_bytes, arrival, port_bytes_per_s)
    grown = excess_bytes(arrival, port_bytes_per_s, feedback_s)
    held = degree * window_bytes if window_bytes is not None else float("inf")
    peak = min(grown, held)
    fits_bytes = room_bytes * (1 + _SAME)
    passes = peak <= fits_bytes
    if grown == 0:
        why = "no excess"
    elif not passes:
        why = "overflows"
    else:
        why = "feedback in time" if grown <= fits_bytes else "windows fit"
    return IncastGate(
        tier=tier,
        degree=degree,
        passes=passes,
        why=why,
        deadline_s=or_none(deadline_s),
        feedback_s=feedback_s,
        peak_bytes=peak,
        room_bytes=room_bytes,
        margin_share=room_bytes / peak - 1 if peak else None,
        lost_bytes=0.0 if passes else peak - room_bytes,
        safe_degree=_safe_degree(
            sender_bytes_per_s, port_bytes_per_s, room_bytes, feedback_s, window_bytes
        ),
        premises=(
            Premise(
                states="All senders of a group start together and send at full rate",
                holds=None,
                otherwise="staggered sends or a schedule of pairwise exchanges make the degree 1",
            ),
            Premise(
                states="What a sender may have outstanding is bounded",
                holds=window_bytes is not None,
                otherwise="only feedback bounds the queue",
            ),
        ),
    )


def _safe_degree(
    sender: float, port: float, room: float, feedback_s: float, window: float | None
) -> int | None:
    """Return the most senders that lose nothing, None where any number passes."""
    if feedback_s == 0:
        return None
    by_feedback = int((room / feedback_s + port) / sender * (1 + _SAME))
    by_window = 0 if window is None else int(room / window * (1 + _SAME))
    return max(by_feedback, by_window)


def fabric_gates(
    fabric: Fabric,
    families: Sequence[tuple[str, str, Any]],
    rank_to_gpu: Sequence[int],
    *,
    feedback_s: float = FEEDBACK_S,
    room_bytes: float = ROOM_BYTES,
) -> tuple[IncastGate, ...]:
    """Return the gate of every tier of *fabric* but the outermost, which nothing is outside of.

    The port is the last one to a GPU's NIC; its buffer is the least that the cluster says. A
    sender has at most its NIC's transactions outstanding.

    Args:
        fabric: the cluster.
        families: name, collective and groups of ranks of each family.
        rank_to_gpu: index of each rank's GPU.
        feedback_s: until senders have slowed down [s].
        room_bytes: free buffer of a port where the cluster says nothing [bytes].
    """
    room = known_room_bytes(fabric)
    names = [tier.name for tier in fabric.tiers]
    seats = np.asarray(rank_to_gpu, np.int64)
    nic = fabric.nic
    gates = []
    for tier in names[names.index("supernode") : -1]:
        homes = fabric.domain_index(tier)[seats]
        degree, family = 0, ""
        for name, collective, groups in families:
            found = incast_degree(collective, groups, homes)
            if found > degree:
                degree, family = found, name
        gate = incast_gate(
            degree,
            nic.line_bytes_per_s,
            nic.line_bytes_per_s,
            room_bytes if room is None else room,
            feedback_s,
            window_bytes=nic.in_flight * nic.transaction_bytes,
            tier=tier,
        )
        gates.append(
            replace(gate, family=family, premises=(*gate.premises, *_premises(room, feedback_s)))
        )
    return tuple(gates)


def _premises(room_bytes: float | None, feedback_s: float) -> tuple[Premise, ...]:
    return (
        Premise(
            states="The free buffer of a port is what the cluster's file says",
            holds=room_bytes is not None,
            otherwise="it is assumed: give the cluster's switches their buffer",
        ),
        Premise(
            states=f"Senders slow down within {feedback_s * 1e6:g} us",
            holds=None,
            otherwise="a later reaction lets the queue grow in proportion",
        ),
        Premise(
            states="One family at a time arrives at a port",
            holds=None,
            otherwise="the degrees of those that run together add up",
        ),
        Premise(
            states="Nothing pauses senders hop by hop",
            holds=None,
            otherwise="with credits or pause frames nothing is lost: what does not fit waits in "
            "the hops before, and holds up what else goes through them",
        ),
    )


def known_room_bytes(fabric: Fabric) -> float | None:
    """Return the least buffer of a port to a NIC that *fabric* says, None where it says nothing."""
    graph = fabric.graph
    kinds = dict(graph.nodes(data="kind"))
    known = [
        link["buffer_bytes"]
        for a, b, link in graph.edges(data=True)
        if "nic" in {kinds[a], kinds[b]}
        and "gpu" not in {kinds[a], kinds[b]}
        and link.get("buffer_bytes") is not None
    ]
    return min(known, default=None)
