"""What a plan does to its cluster's links and ports, as lines for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.units import format_bytes, format_share, format_time

if TYPE_CHECKING:
    from planner.network.incast import IncastGate
    from planner.network.pressure import LinkPressure, PhasePressure
    from planner.steptime.step import Step

_TOLD_FROM = 0.01  # a slowdown or a part of a load below this is not worth a word


def sharing_lines(step: Step) -> list[tuple[str, str]]:
    """Return label and text: the busiest links of each phase, and what sharing costs."""
    if not step.phases:
        why = step.assumed.get("shared_links")
        return [("sharing", why)] if why else []
    lines = [(phase.phase, _phase_text(phase)) for phase in step.phases]
    return [*lines, ("sharing", _slowdown_text(step))]


def _phase_text(phase: PhasePressure) -> str:
    lasts = f"{format_time(phase.phase_s)}: " if phase.phase_s else ""
    return lasts + "; ".join(_link_text(link) for link in phase.links)


def _link_text(link: LinkPressure) -> str:
    busy = format_time(link.busy_s)
    if link.busy_share is not None:
        busy += f" ({format_share(link.busy_share, digits=2)})"
    return f"{link.link} busy {busy} with {_families(link)}"


def _families(link: LinkPressure) -> str:
    """Return the digits that load a link and their parts of it, the largest first."""
    by_digit: dict[str, float] = {}
    for name, loaded in link.by_family_bytes.items():
        digit = name.split("_", maxsplit=1)[0].upper()
        by_digit[digit] = by_digit.get(digit, 0.0) + loaded
    parts = sorted(by_digit.items(), key=lambda item: (-item[1], item[0]))
    large = [part for part in parts if part[1] >= _TOLD_FROM * link.load_bytes]
    if len(large) == 1:
        return large[0][0]
    return ", ".join(
        f"{name} {format_share(part / link.load_bytes, digits=2)}" for name, part in large
    )


def _slowdown_text(step: Step) -> str:
    told = [
        f"{digit.upper()} {float(ratio):.3g} x as long"
        for digit, ratio in sorted(step.slowdown.items(), key=lambda item: -float(item[1]))
        if abs(float(ratio) - 1.0) >= _TOLD_FROM
    ]
    if not told:
        return "no family takes 1 % longer for the others, or for its routes"
    return f"against the tiers' even rates, start-ups apart: {', '.join(told)}"


def incast_lines(gates: Sequence[IncastGate]) -> list[tuple[str, str]]:
    """Return label and text of the gate of each tier: one line, and one more where it fails."""
    lines = []
    for gate in gates:
        lines.append((f"incast, {gate.tier}", _gate_text(gate)))
        if not gate.passes:
            lines.append(("", _remedy_text(gate)))
    return lines


def _gate_text(gate: IncastGate) -> str:
    if not gate.degree:
        return "passes: nothing comes from outside it"
    senders = "1 sender" if gate.degree == 1 else f"{gate.degree} senders"
    told = f"{senders} at once to one port ({gate.family})"
    if gate.margin_share is None:
        return f"passes: {told}, which it drains as fast"
    room = f"{format_bytes(gate.peak_bytes)} can pile up, {format_bytes(gate.room_bytes)} fit"
    verdict = "passes" if gate.passes else "fails"
    return f"{verdict}, margin {format_share(gate.margin_share, digits=2)}: {told}; {room}"


def _remedy_text(gate: IncastGate) -> str:
    if gate.deadline_s is None:
        within = ""
    else:
        within = f", or all within {format_time(gate.deadline_s)} of feedback"
    return f"up to {gate.safe_degree} started together pass{within}; staggered sends make it 1"
