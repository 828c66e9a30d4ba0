"""Link-level pause (PFC): the headroom one hop needs, beside end-to-end control.

Pause works one hop back and fast: it keeps the local buffer from overflowing. End-to-end control
works over the whole path and slowly: it sets the source's rate. Pause needs *headroom*: what is
still on its way when a queue decides to pause must find room above the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.network.premises import Premise
from planner.network.ranges import below_zero, not_above_zero, plain, refuse

SOURCE = "Cisco Nexus PFC white paper; IEEE 802.1Qbb"
FIBRE_S_PER_M = 5e-9
RESPONSE_BYTES = 3840.0  # 60 pause quanta of 512 bit


def headroom_bytes(
    line_bytes_per_s: Any,
    cable_m: Any,
    mtu_bytes: Any,
    *,
    receiver_mtu_bytes: Any = None,
    response_bytes: float = RESPONSE_BYTES,
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
        response_bytes: what the sender still sends while it reacts [bytes].
        s_per_m: delay of the cable [s/m].

    Source: Cisco Nexus PFC white paper. Holds where a cell holds a frame without waste: shared
    buffers of small cells need up to 2.8 times the cable's part.

    >>> headroom_bytes(12.5e9, 300, 9216)
    59772.0
    """
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
    response_bytes: float = RESPONSE_BYTES,
) -> PauseCheck:
    """Return whether a queue that pauses at xoff and resumes at xon loses nothing and never idles.

    >>> seen = pause_check(50e9, 512 * 1024, 256 * 1024, 128 * 1024, 100, 4096)
    >>> seen.lossless, seen.headroom_bytes, round(seen.longest_cable_m)
    (True, 62032.0, 500)
    """
    faults = [
        *not_above_zero(
            line_bytes_per_s=line_bytes_per_s, buffer_bytes=buffer_bytes, mtu_bytes=mtu_bytes
        ),
        *below_zero(
            xoff_bytes=xoff_bytes,
            xon_bytes=xon_bytes,
            cable_m=cable_m,
            response_bytes=response_bytes,
        ),
    ]
    if not faults and not xon_bytes < xoff_bytes <= buffer_bytes:
        faults.append(
            f"xon_bytes={xon_bytes!r}, xoff_bytes={xoff_bytes!r}: expected xon < xoff <= "
            f"buffer_bytes={buffer_bytes!r}"
        )
    refuse(faults)
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
                states="No cycle of paused queues waits for itself",
                holds=None,
                otherwise="nothing moves any more: `planner topology check` looks for the cycle",
            ),
        ),
    )
