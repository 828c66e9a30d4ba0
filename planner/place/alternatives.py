"""Second answers: the best placements that differ in what crosses.

Candidates are the tiles, the fillings, the baselines, and the best placement under each rule
*these degrees within the tier*. Two that cross the same bytes of every degree, within a hundredth
of the plan's cut, are one answer: mirror images and renamed domains never count twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InfeasibleError, PlannerError, SolverError
from planner.place import entries_of
from planner.place.baselines import baselines
from planner.place.check import judged
from planner.place.expand import seats
from planner.place.explain import bytes_by_digit, plan_answer
from planner.place.fill import filled
from planner.place.question import ask, cut_bytes, refine_home
from planner.place.rules_fill import keeps
from planner.place.rules_place import read_rules
from planner.place.rules_seats import ruled_seats
from planner.place.rules_solve import solve_ruled_within
from planner.place.tiles import best_tiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.place.answer import Placement
    from planner.place.question import Question
    from planner.place.rules_bound import BoundRules
    from planner.traffic import Family

MOST = 20
_SAME_SHARE = 0.01  # of the plan's cut: less of a difference in each degree is none
_TILES = 400
_FILLED_CELLS = 4096
_FILLED = 400
_NOTHING_BYTES = 1.0  # a plan that crosses nothing: any byte is a difference
_CHECK_SHARE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A placement that crosses other bytes than the plan.

    Args:
        method: how it was found.
        cut_bytes: what crosses, by the independent checker [bytes].
        by_digit_bytes: the same by degree [bytes].
        by_family: the same by family [bytes].
        rank_to_gpu: GPU of each rank.
    """

    method: str
    cut_bytes: float
    by_digit_bytes: Mapping[str, float]
    by_family: Mapping[str, float]
    rank_to_gpu: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The plan that others are held against.

    Args:
        placement, layout, families, fabric, time_limit_s: as of ``alternatives``.
        question: the grid of ranks and the placed tier's domains.
        home: domain of each rank in the plan.
        asked: the rules that it keeps, as text.
    """

    placement: Placement
    layout: Layout
    families: Sequence[Family]
    fabric: Fabric
    question: Question
    home: NDArray[np.int64]
    asked: Sequence[str]
    time_limit_s: float


def alternatives(
    placement: Placement,
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    *,
    count: int,
    time_limit_s: float = 5.0,
) -> tuple[Alternative, ...]:
    """Return the *count* best placements that differ in what crosses, the best first.

    Where the plan keeps rules, so do they.

    Args:
        placement: the plan, itself not among them.
        layout: whose ranks are seated.
        families: the traffic of one step.
        fabric: the cluster.
        count: how many at most [1].
        time_limit_s: seconds for the solvers, over all rules tried [s].

    Raises:
        KeyboardInterrupt: the user ended the search.
    """
    tier = placement.tier
    question = ask(layout, families, fabric.capacities(tier))
    home = fabric.domain_index(tier)[np.asarray(placement.rank_to_gpu)]
    price = placement.rule_price
    asked = list(price.rules) if price else []
    kept = read_rules(asked, layout, fabric, tier) if asked else None
    plan = _Plan(
        placement=placement, layout=layout, families=families, fabric=fabric, question=question,
        home=home, asked=asked, time_limit_s=time_limit_s,
    )  # fmt: skip
    found = [
        (cut_bytes(question, other), number, other, method)
        for number, (other, method) in enumerate(_candidates(plan))
        if kept is None or keeps(question, kept, other)
    ]
    same = _SAME_SHARE * max(placement.objective_bytes, _NOTHING_BYTES)
    seen = [bytes_by_digit(question, families, home)]
    chosen: list[Alternative] = []
    for cut, _, other, method in sorted(found, key=lambda entry: entry[:2]):
        if len(chosen) == count:
            break
        by_digit = bytes_by_digit(question, families, other)
        if any(all(abs(by_digit[d] - known[d]) <= same for d in by_digit) for known in seen):
            continue
        seen.append(by_digit)
        rank_to_gpu = _seated(other, kept, layout, fabric, tier)
        chosen.append(
            _checked(
                Alternative(
                    method=method, cut_bytes=cut, by_digit_bytes=by_digit, by_family={},
                    rank_to_gpu=rank_to_gpu,
                ),
                layout, families, fabric, tier,
            )
        )  # fmt: skip
    return tuple(chosen)


def _checked(
    found: Alternative, layout: Layout, families: Sequence[Family], fabric: Fabric, tier: str
) -> Alternative:
    """Return *found* with what the independent checker counts.

    Raises:
        PlannerError: it counts another cut: a fault of ours.
    """
    counted = judged(fabric.domain_index(tier), found.rank_to_gpu, entries_of(layout, families))
    if abs(counted.total_bytes - found.cut_bytes) > _CHECK_SHARE * max(
        counted.total_bytes, found.cut_bytes
    ):
        raise PlannerError(
            f"another placement's cut of {found.cut_bytes:.0f} bytes is {counted.total_bytes:.0f} "
            "by the independent checker: this is a fault of the planner, and it is withheld"
        )
    names = [family.name for family in families]
    return replace(
        found,
        cut_bytes=counted.total_bytes,
        by_family=dict(zip(names, counted.by_entry, strict=True)),
    )


def _seated(
    home: NDArray[np.int64], kept: BoundRules | None, layout: Layout, fabric: Fabric, tier: str
) -> tuple[int, ...]:
    if kept is None:
        return seats(home, fabric, tier)
    return ruled_seats(home, kept, layout, fabric, tier)


def _candidates(plan: _Plan) -> Iterator[tuple[NDArray[np.int64], str]]:
    """Yield (home of each rank, how it was found)."""
    yield from _under_rules(plan)
    question = plan.question
    capacities = question.capacities
    if len(set(capacities)) == 1:
        full = -(-question.cells // capacities[0])
        for tile in best_tiles(question, capacities[0], _TILES):
            if full * capacities[0] == question.cells:
                spelled = "x".join(map(str, tile.sides))
                yield refine_home(question, tile.sides, np.arange(full)), f"equal tiles {spelled}"
    if question.cells <= _FILLED_CELLS:
        for number, other in enumerate(filled(question)):
            if number == _FILLED:
                break
            yield other, "tiles filled one domain after the other"
    for name, other in baselines(question, plan.placement.seed):
        yield other, f"the {name} baseline"


def _under_rules(plan: _Plan) -> Iterator[tuple[NDArray[np.int64], str]]:
    """Yield the best placement under each rule that some degrees stay inside."""
    tier = plan.placement.tier
    digits = list(bytes_by_digit(plan.question, plan.families, plan.home))
    sets = [*combinations(digits, 1), *combinations(digits, 2)]
    free = plan_answer(plan.placement, plan.home)
    for whole in sets:
        texts = [*plan.asked, *(f"{digit} within {tier}" for digit in whole)]
        try:
            rules = read_rules(texts, plan.layout, plan.fabric, tier)
            answer = solve_ruled_within(
                plan.question, rules, free, time_limit_s=plan.time_limit_s / len(sets),
                seed=plan.placement.seed,
            )  # fmt: skip
        except (InfeasibleError, SolverError):
            continue
        yield np.array(answer.home), f"the best with {' and '.join(whole)} inside"
