"""Placement: seat every rank on a GPU so that the fewest bytes cross a tier's cut.

``place`` is the only door; ``solve_question`` answers the bare combinatorial question.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InfeasibleError, InputError, PlannerError
from planner.place.answer import (
    Answer,
    Baseline,
    Placement,
    Progress,
    Proof,
    SeatedDomain,
    TierCut,
)
from planner.place.baselines import baselines
from planner.place.borders import tier_cuts
from planner.place.check import CheckedEntry, checked_cuts
from planner.place.check_border import checked_border_s
from planner.place.clock import ending, left_s
from planner.place.expand import seats
from planner.place.interrupts import held_back
from planner.place.large import LARGE_CELLS, solve_large
from planner.place.objective import by_border, least_busy
from planner.place.question import Question, ask, cut_bytes
from planner.place.rules_place import read_rules, under_rules
from planner.place.solve import solve_question
from planner.place.tiers import WAYS, TierBound, seat_tiers, weights_of
from planner.place.tree import tree_of
from planner.place.uplinks import on_best_uplinks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.place.check import CheckedCut
    from planner.traffic import Family

__all__ = [
    "Answer",
    "Baseline",
    "Placement",
    "Progress",
    "Proof",
    "Question",
    "SeatedDomain",
    "TierCut",
    "place",
    "solve_question",
]

_CHECK_SHARE = 1e-9  # relative; two orders of the same floating-point sum
_TIERS_S = 0.5  # seconds that the tiers besides the asked one may take at least
_TIERS_LIMITS = 4.0  # time limits that they may take: they count their work, and the clock only
# stops what a machine with much else to do has not ended by then


def place(
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    *,
    tier: str = "supernode",
    objective: str = "total",
    tiers: str = "lexicographic",
    tier_weights: Mapping[str, float] | None = None,
    rules: Sequence[str] = (),
    seed: int = 0,
    time_limit_s: float = 20.0,
    ends_s: float = inf,
    progress: Callable[[Progress], None] | None = None,
) -> Placement:
    """Return the placement of *layout* on *fabric* that crosses the tier's cut least.

    Of such placements one that crosses the other tiers as little as was found: the outer ones,
    from the inside outwards, then the inner ones.

    Args:
        layout: the parallel degrees; its ranks are what is seated.
        families: the collectives of one step (``planner.traffic.step_families``).
        fabric: the cluster; it may have more GPUs than ranks.
        tier: the tier whose cut is minimised.
        objective: ``total``, the bytes over all the tier's borders; or ``bottleneck``, the longest
            that any one border takes for what its domain sends. ``time`` needs the step model:
            ``planner.search.exposed``.
        tiers: ``lexicographic``: the asked tier first; ``weighted``: the least sum over all tiers
            of cut x weight.
        tier_weights: of some tiers, instead of 1 / rate of all its borders [s/byte].
        rules: what no placement may break, such as ``ep within supernode``: ``rules.py``.
        seed: of everything random.
        time_limit_s: seconds that the search may take, 0 to do without a solver and without a
            limit; once more for rules. The other tiers count their work and begin nothing new after
            four times that [s].
        ends_s: ``time.monotonic()`` when all of it is to end, with the best so far and its gap.
            Every long step looks at it; what is not cut short is the same without it [s].
        progress: called with every better seating or bound of the asked tier's cut. Ctrl-C while
            that is looked for keeps the best so far, and the placement is ``interrupted``.

    Raises:
        InputError: an objective, a tier or a rule that there is not.
        InfeasibleError: more ranks than GPUs, or rules that no placement can keep.
        SolverError: the solver failed without an answer.
        PlannerError: the independent checker disagrees; nothing is returned then.
    """
    with ending(ends_s):
        return _placed(
            layout, families, fabric, tier, objective, tiers, tier_weights, rules, seed,
            time_limit_s, progress,
        )  # fmt: skip


def _placed(
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    tier: str,
    objective: str,
    tiers: str,
    tier_weights: Mapping[str, float] | None,
    rules: Sequence[str],
    seed: int,
    time_limit_s: float,
    progress: Callable[[Progress], None] | None,
) -> Placement:
    _refuse(layout, fabric, tier, objective)
    if objective != "total" and tiers == "weighted":
        raise InputError(
            f"objective {objective!r} looks at one tier: expected tiers 'lexicographic'"
        )
    if tiers not in WAYS:
        raise InputError(f"tiers {tiers!r} is unknown: one of {', '.join(WAYS)}")
    if rules and (objective != "total" or tiers != "lexicographic"):
        raise InputError(
            f"rules are priced in bytes of one tier's cut: expected objective 'total' and tiers "
            f"'lexicographic', got {objective!r} and {tiers!r}"
        )
    kept = read_rules(rules, layout, fabric, tier) if rules else None
    tree = tree_of(fabric)
    weights = weights_of(tree, tier_weights) if tiers == "weighted" else None
    question = ask(layout, families, fabric.capacities(tier))
    if objective == "bottleneck":
        time_limit_s /= 2  # one half for the total cut, whose bound it needs, one for the border
    large = question.cells > LARGE_CELLS
    solved = solve_large if large else solve_question
    parts = 1 + (objective == "bottleneck") + bool(rules)  # of the run, each as long as the rest
    with ending(monotonic() + left_s() / parts):
        answer = solved(question, time_limit_s=time_limit_s, seed=seed, progress=progress)
    border, interrupted = None, answer.interrupted
    rates = [domain.uplink_bytes_per_s for domain in fabric.tier(tier).domains]
    favoured = None
    if objective == "total" and not large:  # a large one is seated by blocks, not cells
        with held_back() as held:
            best = on_best_uplinks(question, np.array(answer.home), rates)
        interrupted = interrupted or held.interrupted
        if best.tolist() != list(answer.home):
            favoured, answer = best, replace(answer, home=tuple(best.tolist()))
    if objective == "bottleneck":
        border = least_busy(question, rates, answer, time_limit_s=time_limit_s, seed=seed)
        interrupted = interrupted or border.interrupted
        answer = by_border(question, answer, border)
    with held_back() as held:
        rivals = [
            Baseline(
                name=name,
                cut_bytes=cut_bytes(question, home),
                rank_to_gpu=seats(home, fabric, tier),
            )
            for name, home in baselines(question, seed)
        ]
    interrupted = interrupted or held.interrupted
    asked = tree.names.index(tier)
    seated = seat_tiers(
        question,
        tree,
        asked,
        np.array(answer.home),
        asked_bound=TierBound(
            cut_bytes=answer.objective_bytes,
            lower_bound_bytes=answer.lower_bound_bytes,
            proof=answer.proof,
            among="all",
        ),
        weights=weights,
        fixed=border is not None,
        favoured=favoured,
        ends_s=-inf if interrupted else monotonic() + max(_TIERS_LIMITS * time_limit_s, _TIERS_S),
    )
    with held_back() as held:
        rank_to_gpu = seats(seated.home, fabric, tree.names[0])
        checked = _checked(layout, families, fabric, rank_to_gpu)
        for name, bound, counted in zip(tree.names, seated.bounds, checked, strict=True):
            _agree(name, bound.cut_bytes, counted.total_bytes)
        first = seated.bounds[asked]
        if border is not None:
            _agree_on_border(layout, families, fabric, tier, rank_to_gpu, border.objective_s)
        placement = Placement(
            rank_to_gpu=rank_to_gpu,
            tier=tier,
            objective=objective,
            objective_bytes=first.cut_bytes,
            lower_bound_bytes=first.lower_bound_bytes,
            proof=first.proof if border is None else border.proof,
            method=seated.method or answer.method,
            checked_bytes=checked[asked].total_bytes,
            by_family={
                family.name: crossed
                for family, crossed in zip(families, checked[asked].by_entry, strict=True)
            },
            domains=_domains(fabric, tier, rank_to_gpu),
            tiers=tuple(
                replace(
                    cut,
                    lower_bound_bytes=bound.lower_bound_bytes,
                    proof=bound.proof,
                    among=bound.among,
                    checked_bytes=counted.total_bytes,
                )
                for cut, bound, counted in zip(
                    tier_cuts(layout, families, fabric, rank_to_gpu),
                    seated.bounds,
                    checked,
                    strict=True,
                )
            ),
            baselines=tuple(rivals),
            seed=seed,
            ways=tiers,
            tier_order=tuple(tree.names[t] for t in seated.order if len(tree.capacities[t]) > 1),
            weighted_s=seated.weighted_s,
            weighted_bound_s=seated.weighted_bound_s,
            objective_s=0.0 if border is None else border.objective_s,
            lower_bound_s=0.0 if border is None else border.lower_bound_s,
            interrupted=interrupted or seated.interrupted,
        )
    if held.interrupted:
        placement = replace(placement, interrupted=True)
    if kept is None:
        return placement
    return under_rules(
        placement, kept, layout, families, fabric,
        judge=partial(_checked, layout, families, fabric), time_limit_s=time_limit_s,
    )  # fmt: skip


def _domains(fabric: Fabric, tier: str, rank_to_gpu: Sequence[int]) -> tuple[SeatedDomain, ...]:
    home = fabric.domain_index(tier)[np.asarray(rank_to_gpu)]
    domains = fabric.tier(tier).domains
    ranks = np.argsort(home, kind="stable").tolist()
    ends = np.cumsum(np.bincount(home, minlength=len(domains))).tolist()
    return tuple(
        SeatedDomain(
            name=domain.name, tier=tier, capacity=len(domain.gpus), ranks=tuple(ranks[start:end])
        )
        for domain, start, end in zip(domains, [0, *ends[:-1]], ends, strict=True)
    )


def _refuse(layout: Layout, fabric: Fabric, tier: str, objective: str) -> None:
    if objective == "time":
        raise InputError(
            "objective 'time' needs the step model: call planner.search.exposed.place_exposed"
        )
    if objective not in ("total", "bottleneck"):
        raise InputError(
            f"objective {objective!r} is unknown: expected 'total', 'bottleneck' or 'time'"
        )
    if layout.ep > 1 and layout.tp > 1 and not layout.sequence_parallel:
        raise InputError(
            f"experts with tp={layout.tp} need sequence_parallel: without it every TP rank would "
            "route all tokens, and a gather of the result is not modelled"
        )
    names = [t.name for t in fabric.tiers]
    if tier not in names:
        raise InputError(f"tier {tier!r} is unknown in {fabric.name}: one of {', '.join(names)}")
    if layout.gpus > len(fabric.gpus):
        raise InfeasibleError(
            f"the layout has {layout.gpus} ranks and {fabric.name} {len(fabric.gpus)} usable "
            f"GPUs: {layout.gpus - len(fabric.gpus)} too few"
        )


def _checked(
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    rank_to_gpu: Sequence[int],
) -> tuple[CheckedCut, ...]:
    return checked_cuts(
        fabric.graph,
        fabric.gpus,
        rank_to_gpu,
        entries_of(layout, families),
        tiers=[t.name for t in fabric.tiers],
    )


def entries_of(layout: Layout, families: Sequence[Family]) -> list[CheckedEntry]:
    """Return *families* as the checker reads them: with the ranks of every group."""
    return [
        CheckedEntry(
            collective=family.collective,
            payload_bytes=family.payload_bytes,
            times_per_step=family.times_per_step,
            members=family.members(layout),
            experts=family.experts,
            top_k=family.top_k,
        )
        for family in families
    ]


def _agree_on_border(
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    tier: str,
    rank_to_gpu: Sequence[int],
    busy_s: float,
) -> None:
    domains = fabric.tier(tier).domains
    counted_s = checked_border_s(
        fabric.graph,
        fabric.gpus,
        rank_to_gpu,
        entries_of(layout, families),
        tier=tier,
        tiers=[t.name for t in fabric.tiers],
        uplink_bytes_per_s=[
            domains[s].uplink_bytes_per_s for s in fabric.domain_index(tier).tolist()
        ],
    )
    if abs(busy_s - counted_s) > _CHECK_SHARE * max(busy_s, counted_s):
        raise PlannerError(
            f"the busiest {tier} border of {busy_s:.6g} s is {counted_s:.6g} s by the independent "
            "checker: this is a fault of the planner, and the placement is withheld"
        )


def _agree(tier: str, cut_bytes: float, counted_bytes: float) -> None:
    if abs(cut_bytes - counted_bytes) > _CHECK_SHARE * max(cut_bytes, counted_bytes):
        raise PlannerError(
            f"the placement's {tier} cut of {cut_bytes:.0f} bytes is {counted_bytes:.0f} by the "
            "independent checker: this is a fault of the planner, and the placement is withheld"
        )
