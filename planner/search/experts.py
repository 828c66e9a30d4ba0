"""The best step when a model has more or fewer experts, all else equal: memory grows with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import SpecError
from planner.layout import EP_COPIES, SCHEDULES
from planner.search.evaluate import evaluate_on, taken, times_on
from planner.search.space import DEGREES, RUN, Choices, degree_reasons, layout_space, rule_values
from planner.search.together import grouped
from planner.steptime.columns import CP_KINDS, RECOMPUTE, LayoutColumns
from planner.steptime.memory import step_memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.layout import Layout
    from planner.model import ModelSpec
    from planner.search.pool import Pool

_DOUBLINGS, _HALVINGS = 3, 2
_VARIED_ROWS = 320
_USUAL_OF_BOTH = Choices(vpp=(1, 2, 4, 8), micro_batch=(1, 2, 4), zero_stage=(1, 3))


def expert_counts(experts: int) -> tuple[int, ...]:
    """Return the numbers of experts that are looked at beside *experts*, by doublings, ascending.

    >>> expert_counts(256)
    (64, 128, 512, 1024, 2048)
    """
    if not experts:
        return ()
    fewer = [experts >> k for k in range(_HALVINGS, 0, -1) if experts % (1 << k) == 0]
    return (*fewer, *(experts << k for k in range(1, _DOUBLINGS + 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The fastest layout when a model has another number of experts.

    Args:
        step_s: its step, infinite where none fits [s].
        layout: itself, None where none fits.
    """

    step_s: float
    layout: Layout | None


NONE_FITS = Best(step_s=float("inf"), layout=None)


def best_with_experts(pools: Sequence[Pool], experts: int) -> list[Best]:
    """Return each pool's fastest layout when its model has *experts* experts.

    Tokens still visit ``top_k`` of them. With more experts the pool's candidates are tried, the
    best of them with their experts over 1/8 to 8 times as many GPUs too. With fewer, layouts fit
    that no candidate stands for: the usual ways to run a step are searched anew.

    Args:
        pools: the clusters' candidates.
        experts: of each of their models [1].
    """
    found = dict.fromkeys(range(len(pools)), NONE_FITS)
    for some in grouped(pools, key=lambda pool: id(pool.swept.space)):
        alike = [pools[position] for position in some]
        try:
            model = replace(alike[0].model, experts=experts)
        except SpecError:  # a shape that cannot have so many
            continue
        if experts < alike[0].model.experts:
            found |= zip(some, _anew(alike, model), strict=True)
        else:
            found |= zip(some, [_of_candidates(pool, model) for pool in alike], strict=True)
    return [found[position] for position in range(len(pools))]


def _of_candidates(pool: Pool, model: ModelSpec) -> Best:
    columns = _candidates(pool, model)
    if not len(columns.tp):
        return NONE_FITS
    fits = step_memory(model, columns, pool.machine.accelerator.memory_bytes).fits
    kept = np.flatnonzero(np.broadcast_to(fits, columns.tp.shape))
    if not kept.size:
        return NONE_FITS
    columns = taken(columns, kept)
    total, _ = times_on(model, columns, (pool.machine,))[:, 0]
    best = int(total.argmin())
    return Best(step_s=float(total[best]), layout=_layout(pool, columns, best))


def _layout(pool: Pool, columns: LayoutColumns, row: int) -> Layout:
    counts: dict[str, Any] = {
        name: int(getattr(columns, name)[row])
        for name in (*DEGREES, "vpp", "micro_batch", "zero_stage")
    }
    return replace(
        pool.layout(0), **counts, recompute=RECOMPUTE[int(columns.recompute[row])],
        cp_kind=CP_KINDS[int(columns.cp_kind[row])],
        schedule=SCHEDULES[int(columns.schedule[row])],
        ep_copies=EP_COPIES[int(columns.domain_copies[row])],
        sequence_parallel=bool(columns.sequence_parallel[row]),
    )  # fmt: skip


def _anew(pools: Sequence[Pool], model: ModelSpec) -> list[Best]:
    """Return each pool's fastest layout of *model*; the pools differ in their network alone."""
    fixed, gpus = pools[0].swept.fixed, int(pools[0].columns.gpus[0])
    space = layout_space(model, gpus, fixed, _USUAL_OF_BOTH, rules=pools[0].swept.rules)
    if not space.size:
        return [NONE_FITS] * len(pools)
    found = evaluate_on(model, space, fixed, [pool.machine for pool in pools])
    if not len(found[0].rows):
        return [NONE_FITS] * len(pools)
    best = [int(one.total_s.argmin()) for one in found]
    return [
        Best(step_s=float(one.total_s[entry]), layout=space.layout(int(one.rows[entry]), fixed))
        for one, entry in zip(found, best, strict=True)
    ]


def _run_of(columns: LayoutColumns) -> dict[str, NDArray[np.int64]]:
    """Return how each layout is run, by the names of ``RUN``."""
    names = {"ep_copies": "domain_copies"}
    return {
        name: np.asarray(getattr(columns, names.get(name, name))).astype(np.int64) for name in RUN
    }


def _candidates(pool: Pool, model: ModelSpec) -> LayoutColumns:
    """Return the pool's rows, and the best of them run in other ways, that can be."""
    fixed = pool.swept.fixed
    everything, rows = pool.columns, np.arange(len(pool.rows))
    best = np.argsort(pool.steps_s(), kind="stable")[:_VARIED_ROWS]
    spans = (0,) if "ep" in fixed else range(-_DOUBLINGS, _DOUBLINGS + 1)
    some = taken(everything, best)
    parts = [taken(everything, rows), *(replace(some, ep=some.ep * 2.0**span) for span in spans)]
    columns = LayoutColumns(
        **{
            f.name: np.concatenate([np.asarray(getattr(part, f.name)) for part in parts])
            for f in fields(LayoutColumns)
        }
    )
    can = (columns.ep >= 1.0) & (columns.ep == np.floor(columns.ep))
    columns = taken(columns, np.flatnonzero(can))
    table = {name: np.asarray(getattr(columns, name)).astype(np.int64) for name in DEGREES}
    can = np.ones(len(columns.tp), dtype=bool)
    for falls in degree_reasons(model, {"order": "tp-cp-ep-dp-pp", **fixed}, table).values():
        can &= ~falls
    values = rule_values(_run_of(columns) | table, fixed)
    for rule in pool.swept.rules:
        can &= np.broadcast_to(rule.holds(values), can.shape)
    return taken(columns, np.flatnonzero(can))
