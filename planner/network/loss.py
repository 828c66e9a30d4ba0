"""Loss: what retransmission leaves of a line, by recovery scheme.

N = packets on the line in one round trip, p = share of packets lost, W = window in packets:

- selective repeat sends again only what was lost: (1 - p) min(1, W / N);
- go-back-N sends again everything behind it: (1 - p) / (1 - p + p N) with the window open, and
  W (1 - p) / (N (1 - p + W p)) where the window is smaller than the round trip.

Source: the schemes, go back n and selective repeat: D. Bertsekas, R. Gallager, Data Networks,
2nd ed., 1992, sections 2.4.2 and 2.4.3. A packet that is lost costs go-back-N the N behind it, so
that a good one takes 1 + p N / (1 - p) of the line. Time-out of InfiniBand: 4.096 us x 2^exponent.
Holds for losses that are independent and seen one round trip later; a lost last packet waits for
the time-out instead, see ``message_s``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.errors import InputError
from planner.network.premises import Premise
from planner.network.ranges import below_zero, not_above_zero, not_counts, not_shares, plain, refuse

SOURCE = (
    "schemes: D. Bertsekas, R. Gallager, Data Networks, 2nd ed., 1992, sections 2.4.2 and 2.4.3; "
    "what they leave is derived in the text of planner.network.loss"
)
SCHEMES = ("go-back-n", "selective-repeat")


def timeout_s(exponent: int) -> float:
    """Return the InfiniBand acknowledge time-out 4.096 us x 2^exponent [s].

    >>> round(timeout_s(20), 1)  # NCCL_IB_TIMEOUT's default
    4.3
    """
    refuse(not_counts(0, 31, exponent=exponent))
    return 4.096e-6 * 2.0**exponent


def selective_repeat_share(loss_share: Any, round_trip_packets: Any, window_packets: Any) -> Any:
    """Return the useful share of the line: (1 - p) min(1, W / N), 0 to 1.

    >>> selective_repeat_share(0.01, 100, 200)
    0.99
    """
    open_share = np.minimum(1.0, np.asarray(window_packets, np.float64) / round_trip_packets)
    return plain((1 - np.asarray(loss_share, np.float64)) * open_share)


def go_back_n_share(loss_share: Any, round_trip_packets: Any, window_packets: Any) -> Any:
    """Return the useful share of the line when each loss sends the round trip again, 0 to 1.

    >>> round(go_back_n_share(0.01, 100, 200), 3)
    0.497
    """
    lost = np.asarray(loss_share, np.float64)
    trip = np.asarray(round_trip_packets, np.float64)
    window = np.minimum(window_packets, trip)
    return plain((window / trip) * (1 - lost) / (1 - lost + window * lost))


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRun:
    """What a lossy line carries.

    Args:
        go_back_n_bytes_per_s: goodput with go-back-N [bytes/s].
        selective_repeat_bytes_per_s: goodput with selective repeat [bytes/s].
        round_trip_packets: packets on the line in one round trip [1].
        message_s: mean time of one message with *scheme*, its tail's time-out included [s].
        tail_timeout_s: of that, waiting for time-outs of a lost last packet [s].
        resent_share: packets sent again over packets sent, with *scheme*, 0 to 1.
        halving_loss_share: loss at which go-back-N carries half the line, 0 to 1.
        premises: what this takes for granted.
    """

    go_back_n_bytes_per_s: float
    selective_repeat_bytes_per_s: float
    round_trip_packets: float
    message_s: float
    tail_timeout_s: float
    resent_share: float
    halving_loss_share: float
    premises: tuple[Premise, ...]


def loss(
    loss_share: float,
    line_bytes_per_s: float,
    packet_bytes: float,
    round_trip_s: float,
    window_bytes: float,
    message_bytes: float,
    retry_timeout_s: float,
    scheme: str = "go-back-n",
) -> LossRun:
    """Return goodput of both schemes and the mean time of a message.

    Args:
        loss_share: packets lost, 0 to below 1.
        line_bytes_per_s: rate of the line [bytes/s].
        packet_bytes: size of a packet [bytes].
        round_trip_s: from sending a packet until its loss is known [s].
        window_bytes: what may be unacknowledged [bytes].
        message_bytes: size of one message [bytes].
        retry_timeout_s: wait before the last packet of a message is sent again [s].
        scheme: ``go-back-n`` or ``selective-repeat``, for the message.

    >>> run = loss(1e-4, 50e9, 4096, 10e-6, 2**20, 2**20, timeout_s(14))
    >>> round(run.go_back_n_bytes_per_s / 1e9, 1), round(run.selective_repeat_bytes_per_s / 1e9, 1)
    (49.4, 50.0)
    """
    faults = [
        *not_shares(one_allowed=False, loss_share=loss_share),
        *not_above_zero(
            line_bytes_per_s=line_bytes_per_s,
            packet_bytes=packet_bytes,
            round_trip_s=round_trip_s,
            window_bytes=window_bytes,
            message_bytes=message_bytes,
        ),
        *below_zero(retry_timeout_s=retry_timeout_s),
    ]
    if scheme not in SCHEMES:
        faults.append(f"scheme={scheme!r}: expected one of {', '.join(SCHEMES)}")
    if not faults and window_bytes < packet_bytes:
        faults.append(f"window_bytes={window_bytes!r}: expected one packet at least")
    refuse(faults)
    trip = max(1.0, line_bytes_per_s * round_trip_s / packet_bytes)
    window = window_bytes / packet_bytes
    back = go_back_n_share(loss_share, trip, window)
    repeat = selective_repeat_share(loss_share, trip, window)
    share = back if scheme == "go-back-n" else repeat
    tail_s = loss_share / (1 - loss_share) * retry_timeout_s
    sent = min(1.0, window / trip)
    return LossRun(
        go_back_n_bytes_per_s=back * line_bytes_per_s,
        selective_repeat_bytes_per_s=repeat * line_bytes_per_s,
        round_trip_packets=trip,
        message_s=message_bytes / (share * line_bytes_per_s) + tail_s,
        tail_timeout_s=tail_s,
        resent_share=1 - share / sent,
        halving_loss_share=1 / (1 + trip),
        premises=(
            Premise(
                states="Losses are independent of each other",
                holds=None,
                otherwise="bursts cost go-back-N less than this, selective repeat the same",
            ),
            Premise(
                states="A loss is known one round trip after the packet was sent",
                holds=None,
                otherwise="without a negative acknowledgement every loss waits for the time-out",
            ),
            Premise(
                states="The window covers the round trip",
                holds=window >= trip,
                otherwise="the window, not the loss, limits the line",
            ),
        ),
    )


def late_shares(path_delays_s: Any, gap_s: float) -> Any:
    """Return, per path, the share of its packets that arrive behind a later one; array [paths].

    Packets leave every *gap_s*, each on a path drawn evenly. One on path i is late if for some
    l >= 1 the l-th packet after it took a path j with delay_j + l gap < delay_i, so
    share_i = 1 - prod_l (1 - #{j: delay_j + l gap < delay_i} / paths).

    >>> [round(float(share), 2) for share in late_shares([0.0, 2.5e-6], 1e-6)]
    [0.0, 0.75]
    """
    delays = np.asarray(path_delays_s, np.float64)
    refuse(not_above_zero(gap_s=gap_s), below_zero(path_delays_s=delays))
    spread = float(delays.max() - delays.min())
    if spread / gap_s > 1e6:
        raise InputError(
            f"gap_s={gap_s!r}: paths differ by {spread / gap_s:.3g} packets: expected at most 1e6"
        )
    kept = np.ones(len(delays))
    for behind in range(1, int(spread / gap_s) + 2):
        overtaking = delays[None, :] + behind * gap_s < delays[:, None]
        kept *= 1 - overtaking.mean(axis=1)
    return 1 - kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Reordering:
    """What spraying over unequal paths does.

    Args:
        late_share: packets that arrive behind a later one, 0 to 1.
        reorder_packets: most packets that wait for one that is late [1].
        reorder_bytes: buffer that puts them back in order [bytes].
        go_back_n_share: useful share when a receiver takes late packets for lost, 0 to 1.
        in_order_share: useful share with a reorder buffer of that size, 0 to 1.
        says: what to do about it.
    """

    late_share: float
    reorder_packets: int
    reorder_bytes: float
    go_back_n_share: float
    in_order_share: float
    says: str


def reordering(
    path_delays_s: Any,
    line_bytes_per_s: float,
    packet_bytes: float,
    round_trip_s: float,
    loss_share: float = 0.0,
) -> Reordering:
    """Return how many packets arrive late when sprayed over paths, and what they cost.

    Args:
        path_delays_s: delay of each path, array [paths] [s].
        line_bytes_per_s: rate at which packets leave [bytes/s].
        packet_bytes: size of a packet [bytes].
        round_trip_s: until a packet taken for lost is sent again [s].
        loss_share: packets really lost, 0 to below 1.

    >>> seen = reordering([4e-6, 6e-6], 50e9, 4096, 10e-6)
    >>> seen.reorder_packets, round(seen.go_back_n_share, 3)
    (24, 0.008)
    """
    refuse(
        not_above_zero(
            line_bytes_per_s=line_bytes_per_s, packet_bytes=packet_bytes, round_trip_s=round_trip_s
        ),
        not_shares(one_allowed=False, loss_share=loss_share),
    )
    delays = np.atleast_1d(np.asarray(path_delays_s, np.float64))
    gap_s = packet_bytes / line_bytes_per_s
    late = float(late_shares(delays, gap_s).mean())
    spread = float(delays.max() - delays.min())
    packets = max(0, int(np.ceil(spread / gap_s * (1 - 1e-12))) - 1)
    trip = max(1.0, round_trip_s / gap_s)
    taken_for_lost = 1 - (1 - loss_share) * (1 - late)
    return Reordering(
        late_share=late,
        reorder_packets=packets,
        reorder_bytes=packets * packet_bytes,
        go_back_n_share=go_back_n_share(min(taken_for_lost, 1 - 1e-12), trip, trip),
        in_order_share=1 - loss_share,
        says="packets stay in order: paths differ by less than one packet"
        if late == 0
        else "choose one path a flow, or reassemble in order with the buffer given",
    )
