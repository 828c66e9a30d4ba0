"""Why each family of groups crosses: what keeps it out, or what keeping it whole would cost.

For every parallel degree the question is put again under the rule *its groups within the tier*,
besides the rules that the plan keeps.
Either arithmetic says that no placement can keep them whole, or the best placement that does says
what crosses instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InfeasibleError, SolverError
from planner.layout import groups_along
from planner.place.answer import Answer, Proof
from planner.place.question import ask, charge_bytes, charges_of
from planner.place.rules import DIGITS
from planner.place.rules_place import read_rules
from planner.place.rules_solve import price_of, solve_ruled_within
from planner.words import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.place.answer import Placement
    from planner.place.question import Question
    from planner.traffic import Family

_NOISE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptWhole:
    """The best placement in which no group of one degree crosses.

    Args:
        cut_bytes: what crosses then [bytes].
        lower_bound_bytes: what every such placement crosses at least [bytes].
        proof: how that was reached.
        least_bytes, most_bytes: its price against the least that the plan's own question
            allows, with its rules where it has some, lies between them [bytes].
        more_by_digit_bytes: what the other degrees cross more, or less, than in the plan [bytes].
        tile: cells of the fullest domain along each axis, by name of the axis, where they are a
            box; empty where they are not.
    """

    cut_bytes: float
    lower_bound_bytes: float
    proof: Proof
    least_bytes: float
    most_bytes: float
    more_by_digit_bytes: Mapping[str, float]
    tile: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why the groups of one degree cross, or that they do not.

    Args:
        digit: ``tp`` … ``pp``, or a part of hybrid sharding.
        group_size: ranks of a group [1].
        groups: how many there are [1].
        split_groups: how many of them sit in more than one domain [1].
        cut_bytes: what they cross in the plan [bytes].
        impossible: why no placement is known to keep them whole; empty where one does.
        kept_whole: the best placement that does, and its price; None where none can.
    """

    digit: str
    group_size: int
    groups: int
    split_groups: int
    cut_bytes: float
    impossible: str
    kept_whole: KeptWhole | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why what crosses does.

    Args:
        tile: cells of the fullest domain along each axis, by name of the axis, where they are a
            box; empty where they are not.
        sizes: of the domains, the size and how many there are of it, largest first.
        reasons: by degree.
    """

    tile: Mapping[str, int]
    sizes: tuple[tuple[int, int], ...]
    reasons: tuple[Reason, ...]


def explain(
    placement: Placement,
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    *,
    time_limit_s: float = 20.0,
) -> Explanation:
    """Return why each degree's groups cross *placement*'s cut.

    Args:
        placement: what is explained.
        layout: whose ranks it seats.
        families: the traffic of one step.
        fabric: the cluster.
        time_limit_s: seconds for the solvers, over all degrees [s].

    Raises:
        KeyboardInterrupt: the user ended the search.
    """
    tier = placement.tier
    question = ask(layout, families, fabric.capacities(tier))
    home = fabric.domain_index(tier)[np.asarray(placement.rank_to_gpu)]
    plan = plan_answer(placement, home)
    crossed = bytes_by_digit(question, families, home)
    sizes, counts = np.unique(question.capacities, return_counts=True)
    return Explanation(
        tile=tile_of(layout, home),
        sizes=tuple(zip(sizes[::-1].tolist(), counts[::-1].tolist(), strict=True)),
        reasons=tuple(
            _reason(
                digit, placement, layout, families, fabric, question, plan, crossed,
                time_limit_s / max(1, len(crossed)),
            )
            for digit in crossed
        ),
    )  # fmt: skip


def plan_answer(placement: Placement, home: NDArray[np.int64]) -> Answer:
    """Return the plan as an answer in bytes, whatever it was placed for, with what is proved of it.

    Where it keeps rules, its bound is that of the placements that keep them.
    """
    cut = next(cut for cut in placement.tiers if cut.tier == placement.tier)
    return Answer(
        home=tuple(home.tolist()),
        objective_bytes=placement.objective_bytes,
        lower_bound_bytes=min(cut.lower_bound_bytes, placement.objective_bytes),
        proof=cut.proof,
        method=placement.method,
    )


def bytes_by_digit(
    question: Question, families: Sequence[Family], home: NDArray[np.int64]
) -> dict[str, float]:
    """Return what crosses by degree, in the order of ``DIGITS``; degrees without traffic left out.

    Args:
        question: the grid.
        families: the traffic of one step.
        home: domain of each rank.
    """
    found: dict[str, float] = {}
    for digit in DIGITS:
        mine = [family for family in families if family.part == digit]
        if mine:
            found[digit] = sum(charge_bytes(question, c, home) for c in charges_of(mine))
    return found


def _reason(
    digit: str,
    placement: Placement,
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    question: Question,
    plan: Answer,
    crossed: Mapping[str, float],
    time_limit_s: float,
) -> Reason:
    homes = np.array(plan.home)[groups_along(question.sizes, layout.axes_of(digit))]
    groups, size = homes.shape
    impossible, kept = "", None
    asked = placement.rule_price.rules if placement.rule_price else ()
    try:
        rules = read_rules(
            [*asked, f"{digit} within {placement.tier}"], layout, fabric, placement.tier
        )
        answer = solve_ruled_within(
            question, rules, plan, time_limit_s=time_limit_s, seed=placement.seed
        )
        price = price_of(rules, answer, plan)
        there = np.array(answer.home)
        kept = KeptWhole(
            cut_bytes=answer.objective_bytes,
            lower_bound_bytes=answer.lower_bound_bytes,
            proof=answer.proof,
            least_bytes=price.least_bytes,
            most_bytes=price.most_bytes,
            more_by_digit_bytes=_more(crossed, bytes_by_digit(question, families, there), digit),
            tile=tile_of(layout, there),
        )
    except InfeasibleError as error:
        if sum(capacity // size for capacity in question.capacities) < groups:
            impossible = _why_not(digit, size, groups, question.capacities, placement.tier)
        else:
            kept_too = " and ".join(map(repr, asked))
            impossible = (
                f"No placement that keeps {kept_too} keeps it whole" if asked else str(error)
            )
    except SolverError:
        impossible = (
            "No placement that keeps it whole was found in the time, and none is proved impossible"
        )
    return Reason(
        digit=digit,
        group_size=size,
        groups=groups,
        split_groups=int((homes != homes[:, :1]).any(axis=1).sum()),
        cut_bytes=crossed[digit],
        impossible=impossible,
        kept_whole=kept,
    )


def _more(before: Mapping[str, float], after: Mapping[str, float], digit: str) -> dict[str, float]:
    """Return what other degrees cross more in *after*, where that is more than rounding."""
    least = _NOISE * max(sum(before.values()), sum(after.values()))
    return {
        other: after[other] - before[other]
        for other in before
        if other != digit and abs(after[other] - before[other]) > least
    }


def _why_not(digit: str, size: int, groups: int, capacities: Sequence[int], tier: str) -> str:
    """Return the arithmetic by which groups cannot all stay inside.

    >>> _why_not("tp", 16, 64, (8,) * 128, "supernode")
    'TP 16 > 8 GPUs of a supernode: no group can stay inside'
    >>> _why_not("pp", 16, 64, (72,) * 14 + (16,), "supernode")
    '15 supernodes take 57 whole groups of PP 16, 7 fewer than the 64 there are: 72 = 4 x 16 + 8'
    >>> _why_not("pp", 4, 2, (7,), "leaf")
    '1 leaf takes 1 whole group of PP 4, 1 fewer than the 2 there are: 7 = 1 x 4 + 3'
    """
    largest = max(capacities)
    name = digit.upper()
    if size > largest:
        which = f"a {tier}" if len(set(capacities)) == 1 else f"the largest {tier}"
        return f"{name} {size} > {largest} GPUs of {which}: no group can stay inside"
    fit = sum(capacity // size for capacity in capacities)
    left = max(set(capacities), key=lambda c: (c % size * capacities.count(c), c))
    return (
        f"{counted(len(capacities), tier)} {'takes' if len(capacities) == 1 else 'take'} {fit} "
        f"whole {'group' if fit == 1 else 'groups'} of {name} {size}, {groups - fit} fewer than "
        f"the {groups} there are: {left} = {left // size} x {size} + {left % size}"
    )


def tile_of(layout: Layout, home: NDArray[np.int64]) -> dict[str, int]:
    """Return the sides of the box that the fullest domain holds, by axis; empty if it is no box.

    Axes of one cell are left out.
    """
    fullest = int(np.argmax(np.bincount(home)))
    ranks = np.flatnonzero(home == fullest)
    sides = {
        axis.name: len(np.unique(ranks // axis.stride % axis.size))
        for axis in layout.axes
        if axis.size > 1
    }
    return sides if prod(sides.values()) == len(ranks) else {}
