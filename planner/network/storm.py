"""Retransmission storm: when sending again fills the line that was too full already.

Two conditions, each enough:

- *early time-outs*: a time-out shorter than the round trip with a full buffer sends packets again
  that are only queued: each is sent ceil(round trip / time-out) times, bounded by the retries;
- *amplification*: each loss sends `resent` packets (1 for selective repeat, N for go-back-N). The
  load offered to the line is useful x A, A = (1 - p + p x resent) / (1 - p), and what exceeds the
  line is lost in turn. Useful load above line / A has no steady state other than collapse.

Source: E-S23-072 (retransmission storm: useful bandwidth collapses; suppress, tune time-outs).
Holds for one bottleneck and losses spread evenly over packets.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from planner.network.premises import Premise
from planner.network.ranges import below_zero, not_above_zero, not_counts, not_shares, refuse

SOURCE = "derived in the text of planner.network.storm"
_SAME = 1e-12  # times closer than this share are one


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """Whether retransmission feeds on itself.

    Args:
        storm: whether either condition is met.
        causes: which.
        copies: times each packet is sent because of early time-outs [1].
        amplification: packets on the line for each useful one, before any overflow [1].
        offered_bytes_per_s: load on the line with both [bytes/s].
        useful_bytes_per_s: what arrives for the first time, at most [bytes/s].
        safe_load_bytes_per_s: useful load up to which the line keeps up [bytes/s].
        safe_timeout_s: shortest time-out that does not fire on queueing [s].
        premises: what this takes for granted.
    """

    storm: bool
    causes: tuple[str, ...]
    copies: int
    amplification: float
    offered_bytes_per_s: float
    useful_bytes_per_s: float
    safe_load_bytes_per_s: float
    safe_timeout_s: float
    premises: tuple[Premise, ...]


def storm(
    load_bytes_per_s: float,
    line_bytes_per_s: float,
    loss_share: float,
    resent_packets: float,
    round_trip_s: float,
    buffer_bytes: float,
    retry_timeout_s: float,
    retries: int = 7,
) -> Storm:
    """Return whether a load that retransmits keeps its goodput.

    Args:
        load_bytes_per_s: useful data offered [bytes/s].
        line_bytes_per_s: the bottleneck [bytes/s].
        loss_share: packets lost for other reasons than overflow, 0 to below 1.
        resent_packets: packets sent again per loss: 1, or N for go-back-N [1].
        round_trip_s: without queueing [s].
        buffer_bytes: the bottleneck's buffer, full in a storm [bytes].
        retry_timeout_s: wait before a packet is sent again unasked [s].
        retries: times a packet is sent again at most; 7 is NCCL_IB_RETRY_CNT [1].

    >>> storm(40e9, 50e9, 0.001, 122, 10e-6, 2**20, 4.3).storm
    False
    >>> storm(40e9, 50e9, 0.01, 122, 10e-6, 2**20, 4.3).causes
    ('amplification',)
    """
    refuse(
        not_above_zero(
            load_bytes_per_s=load_bytes_per_s,
            line_bytes_per_s=line_bytes_per_s,
            round_trip_s=round_trip_s,
            retry_timeout_s=retry_timeout_s,
            resent_packets=resent_packets,
        ),
        below_zero(buffer_bytes=buffer_bytes),
        not_shares(one_allowed=False, loss_share=loss_share),
        not_counts(0, retries=retries),
    )
    safe_timeout_s = round_trip_s + buffer_bytes / line_bytes_per_s
    # 10 us + 20 us is more than 30 us in floats
    early = ceil(safe_timeout_s / retry_timeout_s * (1 - _SAME)) - 1
    copies = 1 + int(min(retries, max(0, early)))
    amplification = (1 - loss_share + loss_share * resent_packets) / (1 - loss_share)
    safe = line_bytes_per_s / (amplification * copies)
    causes = []
    if copies > 1:
        causes.append("early time-outs")
    if load_bytes_per_s > line_bytes_per_s / amplification:
        causes.append("amplification" if load_bytes_per_s <= line_bytes_per_s else "overload")
    return Storm(
        storm=bool(causes),
        causes=tuple(causes),
        copies=copies,
        amplification=amplification,
        offered_bytes_per_s=load_bytes_per_s * amplification * copies,
        useful_bytes_per_s=min(load_bytes_per_s, safe),
        safe_load_bytes_per_s=safe,
        safe_timeout_s=safe_timeout_s,
        premises=(
            Premise(
                states="The time-out is longer than a round trip with a full buffer",
                holds=early <= 0,
                otherwise="packets that are only queued are sent again; lengthen the time-out",
            ),
            Premise(
                states="The line keeps up with the load and what is sent again for it",
                holds=load_bytes_per_s * amplification * copies <= line_bytes_per_s,
                otherwise="overflow adds losses to those given: suppress retransmission, repeat "
                "selectively, or slow the sources",
            ),
        ),
    )
