"""In-flight limit: how fast a bounded number of outstanding transactions lets a line run.

Little's law ties three numbers: outstanding = rate x turnaround / payload. Read one way it gives
the rate that a NIC's or a library's settings allow, the other way the number of transactions that
fill a line. *The algorithm gives the bytes, concurrency decides whether the line is full.*

Source: E-S23-074.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.network.premises import Premise
from planner.network.ranges import not_above_zero, not_counts, plain, refuse

SOURCE = (
    "Little's law: J. D. C. Little, A Proof for the Queuing Formula, Operations Research 9(3), "
    "1961, pp. 383-387"
)


def sustained_bytes_per_s(
    in_flight: Any, payload_bytes: Any, turnaround_s: Any, line_bytes_per_s: Any
) -> Any:
    """Return the rate that *in_flight* transactions can keep up.

    Little's law: rate = in_flight x payload / turnaround, never above line rate.

    Args:
        in_flight: transactions the NIC may have outstanding [1].
        payload_bytes: data carried by one transaction [bytes].
        turnaround_s: from issue until the slot is free again [s].
        line_bytes_per_s: what the link carries at most [bytes/s].

    Returns:
        Sustained rate [bytes/s]; arguments broadcast.

    Source: E-S23-074.
    Holds while every transaction has the same payload and turnaround.
    Fails when issue or completion itself is the limit: see ``completion.py``.

    >>> from planner.units import GB, US
    >>> sustained_bytes_per_s(128, 256, 2 * US, 50 * GB) / GB
    16.384
    """
    allowed = np.asarray(in_flight, np.float64) * payload_bytes / turnaround_s
    return plain(np.minimum(allowed, line_bytes_per_s))


def required_in_flight(bytes_per_s: Any, payload_bytes: Any, turnaround_s: Any) -> Any:
    """Return the fewest outstanding transactions that keep up *bytes_per_s*.

    Little's law the other way: ceil(rate x turnaround / payload) [1].

    >>> required_in_flight(50e9, 256, 2e-6)
    391.0
    """
    exact = np.asarray(bytes_per_s, np.float64) * turnaround_s / payload_bytes
    nearest = np.round(exact)
    # 40e9 x 2e-6 / 80e3 is 1 in arithmetic and 1.0000000000000002 in floats
    return plain(np.where(np.isclose(exact, nearest, rtol=1e-12, atol=0), nearest, np.ceil(exact)))


def required_issue_per_s(bytes_per_s: Any, payload_bytes: Any) -> Any:
    """Return the issue rate that keeps the slots busy at *bytes_per_s* [1/s].

    >>> round(required_issue_per_s(50e9, 256) / 1e6, 1)
    195.3
    """
    return plain(np.asarray(bytes_per_s, np.float64) / payload_bytes)


def transfer_s(
    size_bytes: Any, in_flight: Any, payload_bytes: Any, turnaround_s: Any, line_bytes_per_s: Any
) -> Any:
    """Return the time *size_bytes* takes at the sustained rate [s].

    >>> round(transfer_s(24 * 2**20, 128, 256, 2e-6, 50e9) * 1e3, 3)
    1.536
    """
    rate = sustained_bytes_per_s(in_flight, payload_bytes, turnaround_s, line_bytes_per_s)
    return plain(np.asarray(size_bytes, np.float64) / rate)


def last_completion_s(
    size_bytes: Any, in_flight: Any, payload_bytes: Any, turnaround_s: Any, line_bytes_per_s: Any
) -> Any:
    """Return when the last of a finite transfer's transactions completes, start and end included.

    Transaction k starts when the line is free and a slot is: with w = payload / line and
    n = ceil(size / payload), the cycle of the slots is c = max(turnaround, in_flight x w) and
    the end is (n-1) // in_flight x c + (n-1) mod in_flight x w + max(turnaround, w) [s]. The
    last transaction is counted as a full one.

    >>> round(last_completion_s(24 * 2**20, 128, 256, 2e-6, 50e9) * 1e6, 2)
    1536.65
    """
    wire_s = np.asarray(payload_bytes, np.float64) / line_bytes_per_s
    before = np.ceil(np.asarray(size_bytes, np.float64) / payload_bytes) - 1
    cycle_s = np.maximum(turnaround_s, in_flight * wire_s)
    rounds, rest = np.divmod(before, in_flight)
    return plain(rounds * cycle_s + rest * wire_s + np.maximum(turnaround_s, wire_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """One place where the bytes in flight are bounded.

    Args:
        name: what bounds them, e.g. ``nic``, ``nccl channels``, ``pcie tags``.
        in_flight: transactions outstanding [1].
        payload_bytes: data of one transaction [bytes].
        turnaround_s: from issue until the slot is free again [s].
    """

    name: str
    in_flight: float
    payload_bytes: float
    turnaround_s: float

    def __post_init__(self) -> None:
        refuse(
            not_above_zero(
                in_flight=self.in_flight,
                payload_bytes=self.payload_bytes,
                turnaround_s=self.turnaround_s,
            )
        )

    @property
    def bytes_per_s(self) -> float:
        """Return in_flight x payload / turnaround [bytes/s]."""
        return self.in_flight * self.payload_bytes / self.turnaround_s


def nccl_ceiling(
    round_trip_s: float,
    *,
    channels: int = 1,
    buffer_bytes: float = 4 * 2.0**20,
    chunk_bytes: float | None = None,
    steps: int = 8,
    peers_sharing: int = 1,
    requests: int = 32,
) -> Ceiling:
    """Return what NCCL's channel buffers keep in flight towards one peer.

    chunks = channels x min(steps, 16 / peers_sharing, requests), each of buffer / steps bytes
    (Simple protocol) or *chunk_bytes* (send/recv, ``NCCL_P2P_NET_CHUNKSIZE``).

    Args:
        round_trip_s: from handing a chunk to the NIC until its slot is free [s].
        channels: channels that carry this peer's data [1].
        buffer_bytes: ``NCCL_BUFFSIZE``, per channel and peer [bytes].
        chunk_bytes: chunk where it is not buffer / steps [bytes].
        steps: ``NCCL_STEPS`` slots of a channel's buffer [1].
        peers_sharing: peers that share one network buffer of 16 steps [1].
        requests: ``NCCL_NET_MAX_REQUESTS`` outstanding on one communicator [1].

    Source: NCCL 2.30.7, src/include/device.h and src/transport/net.cc.
    Holds for the Simple protocol; LL and LL128 use smaller slots.

    >>> ceiling = nccl_ceiling(84e-6)
    >>> ceiling.in_flight, ceiling.payload_bytes, round(ceiling.bytes_per_s / 1e9, 1)
    (8, 524288.0, 49.9)
    """
    refuse(
        not_counts(channels=channels, steps=steps, peers_sharing=peers_sharing, requests=requests),
        not_above_zero(round_trip_s=round_trip_s, buffer_bytes=buffer_bytes),
        [] if chunk_bytes is None else not_above_zero(chunk_bytes=chunk_bytes),
    )
    depth = max(1, min(steps, 16 // peers_sharing, requests))
    return Ceiling(
        name="nccl channels",
        in_flight=channels * depth,
        payload_bytes=buffer_bytes / steps if chunk_bytes is None else chunk_bytes,
        turnaround_s=round_trip_s,
    )


def rdma_read_ceiling(
    message_bytes: float, round_trip_s: float, *, queue_pairs: int = 1, max_qp_rd_atom: int = 16
) -> Ceiling:
    """Return what outstanding RDMA READs allow: queue_pairs x max_qp_rd_atom messages.

    16 is what ``ibv_devinfo`` prints on mlx5; RDMA WRITE, which NCCL uses, is not bounded by it.

    >>> rdma_read_ceiling(4096, 4e-6).bytes_per_s / 1e9
    16.384
    """
    refuse(not_counts(queue_pairs=queue_pairs, max_qp_rd_atom=max_qp_rd_atom))
    return Ceiling(
        name="rdma reads",
        in_flight=queue_pairs * max_qp_rd_atom,
        payload_bytes=message_bytes,
        turnaround_s=round_trip_s,
    )


def pcie_read_ceiling(
    latency_s: float, *, tags: int = 256, read_request_bytes: float = 512
) -> Ceiling:
    """Return what PCIe read tags allow when a NIC fetches from memory: tags x MRRS / latency.

    256 tags (8 bit) or 768 (10 bit), read requests of 128 to 4096 bytes.

    >>> round(pcie_read_ceiling(2e-6).bytes_per_s / 1e9)
    66
    """
    refuse(not_counts(tags=tags))
    return Ceiling(
        name="pcie tags",
        in_flight=tags,
        payload_bytes=read_request_bytes,
        turnaround_s=latency_s,
    )


def ceilings_of(
    *,
    in_flight: int,
    payload_bytes: float,
    turnaround_s: float,
    channels: int = 0,
    chunk_bytes: float = 512 * 1024.0,
    steps: int = 8,
    read_queue_pairs: int = 0,
    max_qp_rd_atom: int = 16,
    message_bytes: float = 4096.0,
    round_trip_s: float = 10e-6,
    pcie_tags: int = 0,
    read_request_bytes: float = 512.0,
    pcie_latency_s: float = 1e-6,
) -> tuple[Ceiling, ...]:
    """Return the ceilings in a row that settings make: the NIC's, and those counted above 0.

    Args:
        in_flight: transactions the NIC may have outstanding [1].
        payload_bytes: data of one of them [bytes].
        turnaround_s: from its issue until the slot is free again [s].
        channels: NCCL channels to the peer, 0 to leave NCCL out [1].
        chunk_bytes: one slot of a channel's buffer [bytes].
        steps: slots of a channel's buffer [1].
        read_queue_pairs: queue pairs that READ, 0 for none [1].
        max_qp_rd_atom: READs outstanding on a queue pair [1].
        message_bytes: data of one READ [bytes].
        round_trip_s: of a chunk or a READ over the network [s].
        pcie_tags: PCIe reads outstanding, 0 to leave PCIe out [1].
        read_request_bytes: largest PCIe read request [bytes].
        pcie_latency_s: of one PCIe read [s].
    """
    found = [
        Ceiling(
            name="nic",
            in_flight=in_flight,
            payload_bytes=payload_bytes,
            turnaround_s=turnaround_s,
        )
    ]
    if channels:
        found.append(
            nccl_ceiling(round_trip_s, channels=channels, chunk_bytes=chunk_bytes, steps=steps)
        )
    if read_queue_pairs:
        found.append(
            rdma_read_ceiling(
                message_bytes,
                round_trip_s,
                queue_pairs=read_queue_pairs,
                max_qp_rd_atom=max_qp_rd_atom,
            )
        )
    if pcie_tags:
        found.append(
            pcie_read_ceiling(pcie_latency_s, tags=pcie_tags, read_request_bytes=read_request_bytes)
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """What a line carries under its ceilings, and what it would need.

    Args:
        sustained_bytes_per_s: the least of line and ceilings [bytes/s].
        line_share: sustained over line rate, 0 to 1.
        binding: name of the ceiling that binds, or ``line``.
        transfer_s: size over sustained rate [s].
        last_completion_s: when the last transaction completes [s].
        required_in_flight: transactions of the binding ceiling that fill the line [1].
        required_issue_per_s: transactions to be issued per second at line rate [1/s].
        full_line_s: size over line rate [s].
        premises: what this takes for granted.
    """

    sustained_bytes_per_s: float
    line_share: float
    binding: str
    transfer_s: float
    last_completion_s: float
    required_in_flight: int
    required_issue_per_s: float
    full_line_s: float
    premises: tuple[Premise, ...]


def concurrency(
    ceilings: Sequence[Ceiling], line_bytes_per_s: float, size_bytes: float
) -> Concurrency:
    """Return the rate of a line behind several ceilings in a row, and which one binds.

    >>> nic = Ceiling(name="nic", in_flight=128, payload_bytes=256, turnaround_s=2e-6)
    >>> seen = concurrency([nic], 50e9, 24 * 2**20)
    >>> seen.binding, seen.required_in_flight, round(seen.line_share, 2)
    ('nic', 391, 0.33)
    """
    refuse(
        not_above_zero(line_bytes_per_s=line_bytes_per_s, size_bytes=size_bytes),
        [] if ceilings else ["no ceiling given: expected one at least"],
    )
    least = min(ceilings, key=lambda ceiling: ceiling.bytes_per_s)
    sustained = min(least.bytes_per_s, line_bytes_per_s)
    wire_s = least.payload_bytes / line_bytes_per_s
    return Concurrency(
        sustained_bytes_per_s=sustained,
        line_share=sustained / line_bytes_per_s,
        binding=least.name if least.bytes_per_s < line_bytes_per_s else "line",
        transfer_s=size_bytes / sustained,
        last_completion_s=last_completion_s(
            size_bytes, least.in_flight, least.payload_bytes, least.turnaround_s, line_bytes_per_s
        ),
        required_in_flight=int(
            required_in_flight(line_bytes_per_s, least.payload_bytes, least.turnaround_s)
        ),
        required_issue_per_s=line_bytes_per_s / least.payload_bytes,
        full_line_s=size_bytes / line_bytes_per_s,
        premises=(
            Premise(
                states="Every transaction has the same payload and turnaround",
                holds=None,
                otherwise="use the mean bytes in flight over the mean turnaround: Little's law "
                "holds for means",
            ),
            Premise(
                states="One transaction fits the turnaround: payload / line <= turnaround",
                holds=wire_s <= least.turnaround_s,
                otherwise="one transaction alone keeps the line busy; the limit does not apply",
            ),
            Premise(
                states="The sender can issue as fast as slots become free",
                holds=None,
                otherwise="issue or completion binds: `planner net slots` models both",
            ),
        ),
    )
