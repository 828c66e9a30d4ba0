"""The three walks of one reduction, and the step that each makes: the chapter's worked case.

Interleaved ring, contiguous ring, hierarchical reduction for the same ranks, nodes and rates, with
the NIC's in-flight limit: *recompute all three at every expansion of a supernode*. Times are those
of ``planner.collectives``; this file puts them beside each other and into the step.

Source: E-S23-073, E-S23-074.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.collectives.cost import cheapest
from planner.collectives.links import Spread, two_tiers
from planner.network.concurrency import required_in_flight, sustained_bytes_per_s
from planner.network.overlap import serial_step_s
from planner.network.premises import Premise
from planner.network.ranges import below_zero, not_above_zero, not_counts, refuse

SOURCE = "derived in the text of planner.network.walks"
WALKS = ("interleaved_ring", "contiguous_ring", "hierarchical")


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkCase:
    """A reduction over nodes, in a step.

    Args:
        ranks: members of the group [1].
        nodes: nodes (supernodes) they are spread over evenly; uneven where it does not divide [1].
        size_bytes: the vector to be reduced [bytes].
        scale_up_bytes_per_s: rate of a GPU inside its node [bytes/s].
        nic_bytes_per_s: line rate of its NIC [bytes/s].
        in_flight: transactions a NIC may have outstanding; 0 for no limit [1].
        payload_bytes: data of one transaction [bytes].
        turnaround_s: from issue until the slot is free again [s].
        compute_s, update_s: rest of the step [s].
    """

    ranks: int
    nodes: int
    size_bytes: float
    scale_up_bytes_per_s: float
    nic_bytes_per_s: float
    in_flight: int
    payload_bytes: float
    turnaround_s: float
    compute_s: float
    update_s: float

    def __post_init__(self) -> None:
        faults = [
            *not_counts(2, 10**9, ranks=self.ranks),
            *not_counts(2, 10**6, nodes=self.nodes),
            *not_counts(0, in_flight=self.in_flight),
            *not_above_zero(
                size_bytes=self.size_bytes,
                scale_up_bytes_per_s=self.scale_up_bytes_per_s,
                nic_bytes_per_s=self.nic_bytes_per_s,
                payload_bytes=self.payload_bytes,
                turnaround_s=self.turnaround_s,
            ),
            *below_zero(compute_s=self.compute_s, update_s=self.update_s),
        ]
        if not faults and self.nodes > self.ranks:
            faults.append(f"nodes={self.nodes!r}: expected at most ranks={self.ranks!r}")
        refuse(faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkTime:
    """One walk.

    Args:
        walk: its name.
        inside_s: scale-up part [s].
        across_s: network part [s].
        communication_s: all of it [s].
        step_s: compute + communication + update [s].
        saved_communication_share: against the contiguous ring, 0 to 1; negative if it is slower.
        saved_step_share: of its step.
        speedup: step of the contiguous ring over this step [1].
    """

    walk: str
    inside_s: float
    across_s: float
    communication_s: float
    step_s: float
    saved_communication_share: float
    saved_step_share: float
    speedup: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkTable:
    """All walks of a case.

    Args:
        walks: in the order of ``WALKS``.
        nic_bytes_per_s: what a NIC keeps up under its in-flight limit [bytes/s].
        required_in_flight: transactions that fill the NIC [1].
        premises: what this takes for granted.
    """

    walks: tuple[WalkTime, ...]
    nic_bytes_per_s: float
    required_in_flight: int
    premises: tuple[Premise, ...]


def walk_table(case: WalkCase) -> WalkTable:
    """Return the three walks of *case* beside each other.

    >>> from planner.units import GB, MIB, MS, US
    >>> chapter = WalkCase(ranks=16, nodes=2, size_bytes=192 * MIB,
    ...     scale_up_bytes_per_s=450 * GB, nic_bytes_per_s=50 * GB, in_flight=0, payload_bytes=256,
    ...     turnaround_s=2 * US, compute_s=20 * MS, update_s=2 * MS)
    >>> [round(walk.communication_s / MS, 3) for walk in walk_table(chapter).walks[1:]]
    [7.55, 1.286]
    """
    nic = case.nic_bytes_per_s
    if case.in_flight:
        nic = sustained_bytes_per_s(case.in_flight, case.payload_bytes, case.turnaround_s, nic)
    links = two_tiers(inside_bytes_per_s=case.scale_up_bytes_per_s, nic_bytes_per_s=nic)
    least, more = divmod(case.ranks, case.nodes)
    spread = Spread.of_counts([least + 1] * more + [least] * (case.nodes - more))
    times = {
        walk: cheapest("all_reduce", case.size_bytes, spread, links, available=[walk])
        for walk in WALKS
    }
    plain_s = float(times["contiguous_ring"].time_s)
    plain_step_s = serial_step_s(case.compute_s, plain_s, case.update_s)
    found = []
    for walk, cost in times.items():
        communication_s = float(cost.time_s)
        step_s = serial_step_s(case.compute_s, communication_s, case.update_s)
        found.append(
            WalkTime(
                walk=walk,
                inside_s=float(cost.inside_s),
                across_s=float(cost.across_s),
                communication_s=communication_s,
                step_s=step_s,
                saved_communication_share=1 - communication_s / plain_s,
                saved_step_share=1 - step_s / plain_step_s,
                speedup=plain_step_s / step_s,
            )
        )
    needed = required_in_flight(case.nic_bytes_per_s, case.payload_bytes, case.turnaround_s)
    return WalkTable(
        walks=tuple(found),
        nic_bytes_per_s=nic,
        required_in_flight=int(needed),
        premises=(
            Premise(
                states="Compute takes the same time whatever the walk",
                holds=None,
                otherwise="a shorter compute makes communication's share, and its gain, larger",
            ),
            Premise(
                states="Nothing overlaps",
                holds=None,
                otherwise="`planner net overlap` hides what is ready early enough",
            ),
            Premise(
                states="Start-ups are small against this size",
                holds=None,
                otherwise="`planner net phases` weighs start-up against bandwidth",
            ),
        ),
    )
