"""Placement: seat every rank on a GPU so that the fewest bytes cross a tier's cut.

``place`` is the only door; ``solve_question`` answers the bare combinatorial question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InfeasibleError, InputError, PlannerError
from planner.place.answer import Answer, Baseline, Placement, Proof, SeatedDomain, TierCut
from planner.place.baselines import baselines
from planner.place.borders import tier_cuts
from planner.place.check import CheckedEntry, checked_cut_bytes
from planner.place.expand import seats
from planner.place.question import Question, ask, cut_bytes
from planner.place.solve import solve_question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.place.check import CheckedCut
    from planner.traffic import Family

__all__ = [
    "Answer",
    "Baseline",
    "Placement",
    "Proof",
    "Question",
    "SeatedDomain",
    "TierCut",
    "place",
    "solve_question",
]

_CHECK_SHARE = 1e-9  # relative; two orders of the same floating-point sum


def place(
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    *,
    tier: str = "supernode",
    objective: str = "total",
    seed: int = 0,
    time_limit_s: float = 20.0,
) -> Placement:
    """Return the placement of *layout* on *fabric* that crosses the tier's cut least.

    Args:
        layout: the parallel degrees; its ranks are what is seated.
        families: the collectives of one step (``planner.traffic.step_families``).
        fabric: the cluster; it may have more GPUs than ranks.
        tier: the tier whose cut is minimised.
        objective: ``total``, the bytes over all the tier's borders.
        seed: of everything random.
        time_limit_s: seconds a solver may take, 0 to do without one [s].

    Raises:
        InputError: an objective or a tier that there is not.
        InfeasibleError: more ranks than GPUs.
        SolverError: the solver failed without an answer.
        PlannerError: the independent checker disagrees; nothing is returned then.
    """
    _refuse(layout, fabric, tier, objective)
    question = ask(layout, families, fabric.capacities(tier))
    answer = solve_question(question, time_limit_s=time_limit_s, seed=seed)
    rivals = [
        Baseline(
            name=name, cut_bytes=cut_bytes(question, home), rank_to_gpu=seats(home, fabric, tier)
        )
        for name, home in baselines(question, seed)
    ]
    rank_to_gpu = seats(np.array(answer.home), fabric, tier)
    checked = _checked(layout, families, fabric, tier, rank_to_gpu)
    _agree(answer, checked)
    home = np.array(answer.home)
    return Placement(
        rank_to_gpu=rank_to_gpu,
        tier=tier,
        objective=objective,
        objective_bytes=answer.objective_bytes,
        lower_bound_bytes=answer.lower_bound_bytes,
        proof=answer.proof,
        method=answer.method,
        checked_bytes=checked.total_bytes,
        by_family={
            family.name: crossed for family, crossed in zip(families, checked.by_entry, strict=True)
        },
        domains=tuple(
            SeatedDomain(
                name=domain.name,
                tier=tier,
                capacity=len(domain.gpus),
                ranks=tuple(np.flatnonzero(home == s).tolist()),
            )
            for s, domain in enumerate(fabric.tier(tier).domains)
        ),
        tiers=tier_cuts(layout, families, fabric, rank_to_gpu),
        baselines=tuple(rivals),
        seed=seed,
    )


def _refuse(layout: Layout, fabric: Fabric, tier: str, objective: str) -> None:
    if objective != "total":
        raise InputError(f"objective {objective!r} is unknown: expected 'total'")
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
    tier: str,
    rank_to_gpu: Sequence[int],
) -> CheckedCut:
    entries = [
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
    return checked_cut_bytes(
        fabric.graph,
        fabric.gpus,
        rank_to_gpu,
        entries,
        tier=tier,
        tiers=[t.name for t in fabric.tiers],
    )


def _agree(answer: Answer, checked: CheckedCut) -> None:
    if abs(answer.objective_bytes - checked.total_bytes) > _CHECK_SHARE * max(
        answer.objective_bytes, checked.total_bytes
    ):
        raise PlannerError(
            f"the placement's cut of {answer.objective_bytes:.0f} bytes is "
            f"{checked.total_bytes:.0f} by the independent checker: this is a fault of the "
            "planner, and the placement is withheld"
        )
