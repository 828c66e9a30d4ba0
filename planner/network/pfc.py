"""Link-level pause (PFC): the headroom one hop needs, beside end-to-end control.

Pause works one hop back and fast: it keeps the local buffer from overflowing. End-to-end control
works over the whole path and slowly: it sets the source's rate. Pause needs *headroom*: what is
still on its way when a queue decides to pause must find room above the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.errors import InputError
from planner.network.premises import Premise
from planner.network.ranges import below_zero, not_above_zero, plain, refuse

SOURCE = (
    "Cisco C11-542809, Priority Flow Control: Build Reliable Layer 2 Infrastructure; "
    "IEEE 802.3 31B.3.7 as SONiC tabulates it (sonic-swss, buffer_headroom_mellanox.lua)"
)
FIBRE_S_PER_M = 5e-9
_QUANTUM_BYTES = 64.0  # 512 bit
_LINES_BYTES_PER_S = np.array([10, 25, 40, 50, 100, 200, 400, 800]) * 1e9 / 8
_QUANTA = np.array([60, 80, 118, 147, 394, 453, 905, 905])  # 10 Gb/s: all but 10GBASE-T


def standard_response_bytes(line_bytes_per_s: Any) -> Any:
    """Return the most a sender may still send while it reacts to a pause frame [bytes].

    The pause quanta of 512 bit that the standard allows at a rate, and at the next standard rate
    where there is none of this rate.

    Args:
        line_bytes_per_s: rate of the link, up to 800 Gb/s [bytes/s].

    Raises:
        InputError: the link is faster.

    Source: IEEE 802.3 31B.3.7, as SONiC tabulates it in buffer_headroom_mellanox.lua; 10 Gb/s:
    Cisco C11-542809.

    >>> standard_response_bytes(50e9)
    57920.0
    """
    rate = np.asarray(line_bytes_per_s, np.float64)
    row = np.searchsorted(_LINES_BYTES_PER_S * (1 + 1e-9), rate)
    if np.any(row == len(_QUANTA)):
        raise InputError(
            f"line_bytes_per_s={float(rate.max())!r}: the standard's reaction time is known up to "
            "800 Gb/s (100e9): give --response"
        )
    return plain(_QUANTA[row] * _QUANTUM_BYTES)


def headroom_bytes(
    line_bytes_per_s: Any,
    cable_m: Any,
    mtu_bytes: Any,
    *,
    receiver_mtu_bytes: Any = None,
    response_bytes: Any = None,
    s_per_m: float = FIBRE_S_PER_M,
) -> Any:
    """Return the buffer to keep free above the pause threshold [bytes].

    headroom = MTU_sender + MTU_receiver + response + 2 x rate x cable delay: a frame just started
    on either side, what the sender needs to stop, and the cable's content both ways.

    Args:
        line_bytes_per_s: rate of the link [bytes/s].
        cable_m: length of the cable [m].
        mtu_bytes: largest frame of the class [bytes].
        receiver_mtu_bytes: largest frame in the other direction; *mtu_bytes* if None [bytes].
        response_bytes: what the sender still sends while it reacts; as the standard allows at this
            rate if None [bytes].
        s_per_m: delay of the cable [s/m].

    Source: Cisco C11-542809. Holds where a cell holds a frame without waste, shared buffers of
    small cells need up to 2.8 times the cable's part; and where ports and transceivers add nothing.

    >>> headroom_bytes(12.5e9, 300, 9216)
    81148.0
    """
    if response_bytes is None:
        response_bytes = standard_response_bytes(line_bytes_per_s)
    back = mtu_bytes if receiver_mtu_bytes is None else receiver_mtu_bytes
    both_ways = 2 * np.asarray(line_bytes_per_s, np.float64) * cable_m * s_per_m
    return plain(mtu_bytes + back + response_bytes + both_ways)


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseCheck:
    """Whether a queue's thresholds fit its link.

    Args:
        headroom_bytes: needed above xoff [bytes].
        room_bytes: there is above xoff: buffer - xoff [bytes].
        lossless: whether the room suffices.
        margin_bytes: room - headroom, negative where frames are lost [bytes].
        pause_s: from crossing xoff until arrivals stop, at the latest [s].
        min_xon_bytes: below this xon the link idles before resumed frames arrive [bytes].
        keeps_busy: whether xon is at least that.
        longest_cable_m: with this room [m], 0 where even no cable fits.
        premises: what this takes for granted.
    """

    headroom_bytes: float
    room_bytes: float
    lossless: bool
    margin_bytes: float
    pause_s: float
    min_xon_bytes: float
    keeps_busy: bool
    longest_cable_m: float
    premises: tuple[Premise, ...]


def pause_check(
    line_bytes_per_s: float,
    buffer_bytes: float,
    xoff_bytes: float,
    xon_bytes: float,
    cable_m: float,
    mtu_bytes: float,
    *,
    response_bytes: float | None = None,
) -> PauseCheck:
    """Return whether a queue that pauses at xoff and resumes at xon loses nothing and never idles.

    *response_bytes* is what the sender still sends while it reacts; None: as the standard allows.

    >>> seen = pause_check(50e9, 512 * 1024, 256 * 1024, 128 * 1024, 100, 4096)
    >>> seen.lossless, seen.headroom_bytes, round(seen.longest_cable_m)
    (True, 116112.0, 392)
    """
    faults = [
        *not_above_zero(
            line_bytes_per_s=line_bytes_per_s, buffer_bytes=buffer_bytes, mtu_bytes=mtu_bytes
        ),
        *below_zero(
            xoff_bytes=xoff_bytes,
            xon_bytes=xon_bytes,
            cable_m=cable_m,
            response_bytes=0.0 if response_bytes is None else response_bytes,
        ),
    ]
    if not faults and not xon_bytes < xoff_bytes <= buffer_bytes:
        faults.append(
            f"xon_bytes={xon_bytes!r}, xoff_bytes={xoff_bytes!r}: expected xon < xoff <= "
            f"buffer_bytes={buffer_bytes!r}"
        )
    refuse(faults)
    if response_bytes is None:
        response_bytes = float(standard_response_bytes(line_bytes_per_s))
    needs = headroom_bytes(line_bytes_per_s, cable_m, mtu_bytes, response_bytes=response_bytes)
    room = buffer_bytes - xoff_bytes
    still = room - 2 * mtu_bytes - response_bytes
    return PauseCheck(
        headroom_bytes=needs,
        room_bytes=room,
        lossless=room >= needs,
        margin_bytes=room - needs,
        pause_s=needs / line_bytes_per_s,
        min_xon_bytes=needs,
        keeps_busy=xon_bytes >= needs,
        longest_cable_m=max(0.0, still / (2 * line_bytes_per_s * FIBRE_S_PER_M)),
        premises=(
            Premise(
                states="The paused queue drains nothing while its headroom fills",
                holds=None,
                otherwise="with service left the headroom is only partly used",
            ),
            Premise(
                states="The other end honours pause and sends one class on this queue",
                holds=None,
                otherwise="frames of a class that is not paused still arrive",
            ),
            Premise(
                states="Ports, error correction and transceivers add no delay of their own",
                holds=None,
                otherwise=f"each 100 ns of it takes {line_bytes_per_s * 100e-9:,.0f} bytes more",
            ),
            Premise(
                states="No cycle of paused queues waits for itself",
                holds=None,
                otherwise="nothing moves any more: `planner topology check` looks for the cycle",
            ),
        ),
    )
