"""The busiest border as a MILP: the assignment model of ``formulate.py`` under one more variable.

T >= sent_s / u_s for every domain s, and T is the objective. What a domain sends is linear in
the binaries but for two shares: of a reduction, w (1 - 1/k) needs k; of copies, what goes out
depends on the counts of two domains at once; where groups are large a line below stands for it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pulp

from planner.layout import groups_along
from planner.place.formulate import Model, formulate
from planner.place.question import Kind, held_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.place.question import Charge, Question


_EXACT_LEVELS = 40  # domains x members of a group of copies up to which pairs of counts are told


def formulate_border(
    question: Question, uplink_bytes_per_s: Sequence[float], unit_bytes: float
) -> Model:
    """Return the MILP that makes the busiest border least.

    Its objective is T in units of *unit_bytes* over the mean uplink.

    Args:
        question: the grid, its charges, the domains' capacities.
        uplink_bytes_per_s: uplink of each domain, above 0 [bytes/s].
        unit_bytes: bytes of one unit [bytes].
    """
    kinds = sorted(set(uplink_bytes_per_s))
    model = formulate(question, unit_bytes, [kinds.index(rate) for rate in uplink_bytes_per_s])
    mean = sum(uplink_bytes_per_s) / len(uplink_bytes_per_s)
    shares = [rate / mean for rate in uplink_bytes_per_s]
    busiest = model.problem.add_variable("busiest", 0, None, pulp.LpContinuous)
    sent: list[list[Any]] = [[] for _ in uplink_bytes_per_s]
    for number, charge in enumerate(question.charges):
        if question.group_size(charge.axes) > 1:
            _send(model, f"{charge.kind.value}_{number}", charge, sent)
    for terms, share in zip(sent, shares, strict=True):
        _require(model, pulp.lpSum(terms) <= share * busiest)
    # All borders together carry the whole cut.
    _require(model, pulp.lpSum(model.objective) + model.constant <= sum(shares) * busiest)
    model.problem.setObjective(pulp.lpSum([busiest]))
    model.objective, model.constant = [busiest], 0.0
    return model


def _require(model: Model, rule: Any) -> None:
    model.problem += rule


def _fraction(model: Model, name: str) -> Any:
    return model.problem.add_variable(name, 0, 1, pulp.LpContinuous)


def _binary(model: Model, name: str) -> Any:
    return model.problem.add_variable(name, 0, 1, pulp.LpBinary)


def _send(model: Model, name: str, charge: Charge, sent: list[list[Any]]) -> None:
    price = charge.weight_bytes / model.unit_bytes
    for g, members in enumerate(groups_along(model.question.sizes, charge.axes).tolist()):
        tag = f"sent_{name}_{g}"
        if charge.kind is Kind.TOUCH:
            parts = _reduced(model, tag, charge.axes, g)
        elif charge.kind is Kind.RING:
            parts = _ringed(model, tag, charge.axes, g, members)
        elif charge.kind in (Kind.PAIRS, Kind.COPIES):
            parts = _exchanged(model, tag, charge, members)
        else:
            links = list(pairwise(members))
            parts = _passed(
                model, tag, links if charge.kind is Kind.CHAIN else [(members[0], members[-1])]
            )
        for s, part in enumerate(parts):
            sent[s].append(price * part)


def _reduced(model: Model, tag: str, axes: tuple[int, ...], g: int) -> list[Any]:
    """part[s] >= sum_j (1 - 1/j) spread[j] + touch[g,s] - 1,   sum_j j spread[j] = sum touch.

    spread[j] = 1 when the group touches j domains.
    """
    touches = [model.touch[axes, g, s] for s in range(len(model.question.capacities))]
    most = min(len(touches), model.question.group_size(axes))
    spread = {j: _binary(model, f"{tag}_spread_{j}") for j in range(1, most + 1)}
    _require(model, pulp.lpSum(spread.values()) == 1)
    _require(model, pulp.lpSum(j * one for j, one in spread.items()) == pulp.lpSum(touches))
    share = pulp.lpSum((1.0 - 1.0 / j) * one for j, one in spread.items())
    parts = [_fraction(model, f"{tag}_{s}") for s in range(len(touches))]
    for part, touch in zip(parts, touches, strict=True):
        _require(model, part >= share + touch - 1)
    # Together the domains send j - 1.
    _require(
        model,
        pulp.lpSum(parts) >= pulp.lpSum((j - 1) * one for j, one in spread.items()),
    )
    return parts


def _ringed(model: Model, tag: str, axes: tuple[int, ...], g: int, members: list[int]) -> list[Any]:
    """part[s] >= touch[g,s] - seat[b,s]   for every member b: 1 unless all of g is in s."""
    parts = []
    for s in range(len(model.question.capacities)):
        part = _fraction(model, f"{tag}_{s}")
        for b in members:
            _require(model, part >= model.touch[axes, g, s] - model.seat[b, s])
        parts.append(part)
    return parts


def _exchanged(model: Model, tag: str, charge: Charge, members: list[int]) -> list[Any]:
    """part[s] = sum_j units[j] level[s,j],   sum_j level = 1,   sum_j j level = sum_b seat[b,s].

    Of copies half of that comes in, and half of ``_outgoing`` goes out.
    """
    units = held_units(charge, len(members))
    levels, parts = [], []
    for s, capacity in enumerate(model.question.capacities):
        most = min(len(members), capacity)
        level = [_binary(model, f"{tag}_{s}_{j}") for j in range(most + 1)]
        held = pulp.lpSum(model.seat[b, s] for b in members)
        _require(model, pulp.lpSum(level) == 1)
        _require(model, pulp.lpSum(j * one for j, one in enumerate(level)) == held)
        levels.append(level)
        parts.append(pulp.lpSum(units[j] * one for j, one in enumerate(level)))
    if charge.kind is Kind.COPIES:
        outgoing = _outgoing(model, tag, units, levels)
        parts = [0.5 * come + 0.5 * go for come, go in zip(parts, outgoing, strict=True)]
    return parts


def _outgoing(model: Model, tag: str, units: Sequence[float], levels: list[list[Any]]) -> list[Any]:
    """out[s] = sum_r sum_ij i p(j) both[s,i,r,j],   both >= level[s,i] + level[r,j] - 1.

    Copies that i members in s send to j members in r. Sharper: sum_j both[s,i,r,j] >=
    level[s,i] - level[r,0], and the line below, out[s] >= sum_j h(n - j) level[s,j]. With two
    domains the line is exact, and with large groups it stands alone.
    """
    size = len(units) - 1
    exact = len(levels) > 2 and len(levels) * size <= _EXACT_LEVELS
    outgoing = []
    for s, level in enumerate(levels):
        line = pulp.lpSum(units[size - j] * one for j, one in enumerate(level))
        if not exact:
            outgoing.append(line)
            continue
        terms = []
        for r, other in enumerate(levels):
            if r == s:
                continue
            for i in range(1, len(level)):
                both = {
                    j: _fraction(model, f"{tag}_{s}_{i}_{r}_{j}")
                    for j in range(1, min(len(other), size - i + 1))
                }
                _require(model, pulp.lpSum(both.values()) >= level[i] - other[0])
                for j, one in both.items():
                    _require(model, one >= level[i] + other[j] - 1)
                    terms.append(i * units[j] / (size - j) * one)
        _require(model, pulp.lpSum(terms) >= line)
        outgoing.append(pulp.lpSum(terms))
    return outgoing


def _passed(model: Model, tag: str, links: list[tuple[int, int]]) -> list[Any]:
    """part[s] = sum_e half[e,s] / 2,   half[e,s] >= +-(seat[a,s] - seat[b,s])   for link a-b."""
    parts = []
    for s in range(len(model.question.capacities)):
        halves = []
        for e, (a, b) in enumerate(links):
            half = _fraction(model, f"{tag}_{e}_{s}")
            _require(model, half >= model.seat[a, s] - model.seat[b, s])
            _require(model, half >= model.seat[b, s] - model.seat[a, s])
            halves.append(0.5 * half)
        parts.append(pulp.lpSum(halves))
    return parts
