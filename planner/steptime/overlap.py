"""One communication beside one computation: serial, overlapped, and when it is free.

serial = T_compute + T_comm + T_update; overlapped = max(T_compute, T_ready + T_comm) + T_update;
free iff T_ready + T_comm <= T_compute.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.steptime.columns import Values, larger


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """A step of compute, one communication and an update.

    Args:
        serial_s: one after another [s].
        overlapped_s: the communication under the compute, from *ready_s* on [s].
        exposed_s: what of it lengthens the overlapped step [s].
        free: whether none of it does.
    """

    serial_s: Values
    overlapped_s: Values
    exposed_s: Values
    free: Values


def overlap(
    compute_s: Values, communication_s: Values, update_s: Values, ready_s: Values
) -> Overlap:
    """Return the step both ways.

    Args:
        compute_s: the computation [s].
        communication_s: the communication [s].
        update_s: what follows both [s].
        ready_s: when the communication may start [s].

    Source: the critical path of the book's §7.6 (E-S23-073).
    Holds while the two do not fight for the same interface.

    >>> found = overlap(0.020, 0.0013, 0.002, 0.017)
    >>> round(found.overlapped_s * 1e3, 3), found.free
    (22.0, True)
    """
    end = larger(compute_s, ready_s + communication_s)
    return Overlap(
        serial_s=compute_s + communication_s + update_s,
        overlapped_s=end + update_s,
        exposed_s=end - compute_s,
        free=ready_s + communication_s <= compute_s,
    )


def speedup(rest_s: Values, part_s: Values, factor: Values) -> Values:
    """Return Amdahl's speed-up when *part_s* runs *factor* times as fast and *rest_s* does not.

    S = (rest + part) / (rest + part / factor).

    >>> round(speedup(0.022, 0.0076, 7.6 / 1.3), 2)
    1.27
    """
    return (rest_s + part_s) / (rest_s + part_s / factor)
