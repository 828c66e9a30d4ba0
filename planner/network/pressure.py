"""What the families of a step do to links and to each other: the answer of ``contention.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyPressure:
    """One family in its phase.

    Args:
        name, digit, stream: of the family.
        alone_s: one execution by all its groups when nothing else runs [s].
        busy_s: all executions of a step, alone [s].
        slowdown_ratio: times as long with the other streams running [1].
        link: the link that is fullest when it runs alone.
    """

    name: str
    digit: str
    stream: str
    alone_s: float
    busy_s: float
    slowdown_ratio: float
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPressure:
    """One link in one phase.

    Args:
        link: ``sn00.nic00 -> leaf00``.
        kind: ``scale-up`` or ``network``.
        capacity_bytes_per_s: its nominal rate [bytes/s].
        reached_bytes_per_s: what collectives reach of it [bytes/s].
        load_bytes: what a step puts on it in this phase [bytes].
        busy_s: load / reached: the phase is no shorter [s].
        busy_share: of the phase, None where its length is not known [1].
        by_family_bytes: the load of each family, the largest first [bytes].
    """

    link: str
    kind: str
    capacity_bytes_per_s: float
    reached_bytes_per_s: float
    load_bytes: float
    busy_s: float
    busy_share: float | None
    by_family_bytes: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePressure:
    """What binds in one phase.

    Args:
        phase: its name.
        phase_s: how long it lasts, None where that is not known [s].
        links: the busiest scale-up link and the busiest of the network, those that carry
            anything; the first of them binds.
        families: all families of the phase.
    """

    phase: str
    phase_s: float | None
    links: tuple[LinkPressure, ...]
    families: tuple[FamilyPressure, ...]
