"""Overlap and Amdahl: what faster or hidden communication is worth to a step.

Source: E-S23-073. "Communication 83 % faster" (7.6 to 1.3 ms) takes the step only from 29.6 to
23.3 ms (-21 %): communication can save no more than its own share of the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.errors import InputError
from planner.network.premises import Premise
from planner.network.ranges import below_zero, not_above_zero, not_shares, plain, refuse

SOURCE = (
    "Amdahl's law: G. M. Amdahl, Validity of the Single Processor Approach to Achieving Large "
    "Scale Computing Capabilities, AFIPS Spring Joint Computer Conference, 1967; the rest is "
    "derived in the text of planner.network.overlap"
)


def serial_step_s(compute_s: Any, communication_s: Any, update_s: Any) -> Any:
    """Return T_compute + T_comm + T_update [s]: nothing overlaps.

    >>> round(serial_step_s(20, 7.6, 2), 1)
    29.6
    """
    return compute_s + communication_s + update_s


def amdahl_speedup(rest_s: Any, communication_s: Any, faster: Any) -> Any:
    """Return S = (T_c + T_n) / (T_c + T_n / s): the gain when communication is *faster* times.

    Args:
        rest_s: all of the step that is not communication, T_c [s].
        communication_s: T_n [s].
        faster: s, infinite for communication that costs nothing [1].

    >>> round(amdahl_speedup(22, 7.6, 7.6 / 1.3), 2)
    1.27
    """
    sped = np.asarray(communication_s, np.float64) / faster
    return plain((rest_s + np.asarray(communication_s, np.float64)) / (rest_s + sped))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """A step with its communication serial and overlapped.

    Args:
        serial_s: compute + communication + update [s].
        overlapped_s: with the communication under the compute [s].
        exposed_s: communication left after the compute [s].
        free: whether overlap hides all of it.
        slack_s: how much later or longer it may get before it costs anything; negative when it
            is exposed [s].
        communication_share: T_n / (T_c + T_n) of the serial step, 0 to 1: what making
            communication free could save at most.
        free_speedup: S of the serial step when communication costs nothing [1].
        premises: what this takes for granted.
    """

    serial_s: float
    overlapped_s: float
    exposed_s: float
    free: bool
    slack_s: float
    communication_share: float
    free_speedup: float
    premises: tuple[Premise, ...]


def overlap(
    compute_s: float,
    communication_s: float,
    update_s: float,
    ready_s: float,
    *,
    contention_share: float = 0.0,
) -> Overlap:
    """Return the serial and the overlapped step; free iff T_ready + T_comm <= T_compute.

    Overlapped it takes max(T_compute, T_ready + T_comm) + T_update. With contention c,
    communication runs at 1 - c of its rate while compute runs, so that the window of compute -
    ready hides (1 - c) of its length.

    Args:
        compute_s: compute of the step [s].
        communication_s: communication, alone on its interface [s].
        update_s: what follows both [s].
        ready_s: from the start of the step until the data to send exists [s].
        contention_share: part of its rate that communication loses to compute on the same
            interface, 0 to 1.

    >>> seen = overlap(20e-3, 1.3e-3, 2e-3, 17e-3)
    >>> round(seen.overlapped_s * 1e3, 3), seen.free
    (22.0, True)
    """
    refuse(
        not_above_zero(compute_s=compute_s),
        below_zero(communication_s=communication_s, update_s=update_s, ready_s=ready_s),
        not_shares(contention_share=contention_share),
    )
    if ready_s > compute_s:
        raise InputError(
            f"ready_s={ready_s!r}: expected at most compute_s={compute_s!r}: "
            "what is sent is made by the compute"
        )
    rest_s = compute_s + update_s
    slack_s = (1 - contention_share) * (compute_s - ready_s) - communication_s
    # 20 - 17 - 3 in floats may miss zero by its last digit
    free = slack_s >= -1e-12 * compute_s
    exposed = 0.0 if free else -slack_s
    return Overlap(
        serial_s=serial_step_s(compute_s, communication_s, update_s),
        overlapped_s=compute_s + exposed + update_s,
        exposed_s=exposed,
        free=free,
        slack_s=slack_s,
        communication_share=communication_s / (rest_s + communication_s),
        free_speedup=amdahl_speedup(rest_s, communication_s, np.inf),
        premises=(
            Premise(
                states="Compute and communication do not fight for the same interface",
                holds=contention_share == 0,
                otherwise="communication runs at part of its rate under compute; give the part it "
                "loses as contention_share",
            ),
            Premise(
                states="Compute takes the same time whether or not communication runs",
                holds=None,
                otherwise="copy engines and reduction kernels take a share of the GPU: give the "
                "compute time measured under communication",
            ),
            Premise(
                states="All data is ready at one time and is sent in one piece",
                holds=None,
                otherwise="buckets become ready one after another: ready_s is then that of the "
                "last bucket and communication_s what is still unsent by then",
            ),
        ),
    )
