"""Another seating of a placed layout: priced and checked as the first one was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import PlannerError
from planner.place import entries_of
from planner.place.answer import Placement, Proof, SeatedDomain, TierCut
from planner.place.borders import tier_cuts
from planner.place.check import CheckedCut, checked_cuts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.traffic import Family

_SAME = 1e-9  # relative; two orders of the same floating-point sum


def reseated(
    placement: Placement,
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    rank_to_gpu: Sequence[int],
    method: str,
) -> Placement:
    """Return *placement* with the ranks on *rank_to_gpu*, its cuts counted anew and checked.

    What is proved of every placement stays: bounds, and the baselines it is held against. A cut
    that no longer meets its bound is no longer called proved; what was proved among the placements
    that are as good at other tiers is forgotten.

    Raises:
        PlannerError: the independent checker disagrees.
    """
    checked = checked_cuts(
        fabric.graph,
        fabric.gpus,
        rank_to_gpu,
        entries_of(layout, families),
        tiers=[tier.name for tier in fabric.tiers],
    )
    cuts = tuple(
        _judged(cut, before, counted)
        for cut, before, counted in zip(
            tier_cuts(layout, families, fabric, rank_to_gpu), placement.tiers, checked, strict=True
        )
    )
    asked = [cut.tier for cut in cuts].index(placement.tier)
    return replace(
        placement,
        rank_to_gpu=tuple(rank_to_gpu),
        objective_bytes=cuts[asked].cut_bytes,
        proof=cuts[asked].proof,
        method=method,
        checked_bytes=checked[asked].total_bytes,
        by_family={
            family.name: crossed
            for family, crossed in zip(families, checked[asked].by_entry, strict=True)
        },
        domains=_domains(fabric, placement.tier, rank_to_gpu),
        tiers=cuts,
    )


def _judged(cut: TierCut, before: TierCut, counted: CheckedCut) -> TierCut:
    if abs(cut.cut_bytes - counted.total_bytes) > _SAME * max(cut.cut_bytes, counted.total_bytes):
        raise PlannerError(
            f"the placement's {cut.tier} cut of {cut.cut_bytes:.0f} bytes is "
            f"{counted.total_bytes:.0f} by the independent checker: this is a fault of the "
            "planner, and the placement is withheld"
        )
    bound = before.lower_bound_bytes if before.among == "all" else 0.0
    return replace(
        cut,
        lower_bound_bytes=min(bound, cut.cut_bytes),
        proof=before.proof if cut.cut_bytes <= bound * (1 + _SAME) else Proof.INCUMBENT,
        among="all",
        checked_bytes=counted.total_bytes,
    )


def _domains(fabric: Fabric, tier: str, rank_to_gpu: Sequence[int]) -> tuple[SeatedDomain, ...]:
    home = fabric.domain_index(tier)[np.asarray(rank_to_gpu)]
    return tuple(
        SeatedDomain(
            name=domain.name,
            tier=tier,
            capacity=len(domain.gpus),
            ranks=tuple(np.flatnonzero(home == s).tolist()),
        )
        for s, domain in enumerate(fabric.tier(tier).domains)
    )
