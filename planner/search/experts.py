"""The best step when a model has more or fewer experts, all else equal: memory grows with them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import SpecError
from planner.layout import EP_COPIES, SCHEDULES
from planner.search.evaluate import by_seating, evaluate, step_of, taken
from planner.search.space import DEGREES, Choices, degree_reasons, layout_space
from planner.steptime.columns import CP_KINDS, RECOMPUTE, LayoutColumns
from planner.steptime.memory import step_memory

if TYPE_CHECKING:
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


def best_with_experts(pool: Pool, experts: int) -> tuple[float, Layout | None]:
    """Return the shortest step [s] and its layout when the model has *experts* experts.

    Tokens still visit ``top_k`` of them. With more experts the pool's candidates are tried, the
    best of them with their experts over 1/8 to 8 times as many GPUs too. With fewer, layouts fit
    that no candidate stands for: the usual ways to run a step are searched anew. Infinite where
    none fits.
    """
    try:
        model = replace(pool.model, experts=experts)
    except SpecError:
        return float("inf"), None
    if experts < pool.model.experts:
        return _anew(pool, model)
    columns = _candidates(pool, model)
    if not len(columns.tp):
        return float("inf"), None
    fits = step_memory(model, columns, pool.machine.accelerator.memory_bytes).fits
    kept = np.flatnonzero(np.broadcast_to(fits, columns.tp.shape))
    if not kept.size:
        return float("inf"), None
    columns = taken(columns, kept)
    step = step_of(model, columns, pool.machine, pool.machine.seats.spreads(columns))
    total = by_seating(step.total_s, columns).min(axis=0)
    best = int(total.argmin())
    return float(total[best]), _layout(pool, columns, best)


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


def _anew(pool: Pool, model: ModelSpec) -> tuple[float, Layout | None]:
    fixed, gpus = pool.swept.fixed, int(pool.columns.gpus[0])
    space = layout_space(model, gpus, fixed, _USUAL_OF_BOTH)
    if not space.size:
        return float("inf"), None
    found = evaluate(model, space, fixed, pool.machine)
    if not len(found.rows):
        return float("inf"), None
    best = int(found.total_s.argmin())
    return float(found.total_s[best]), space.layout(int(found.rows[best]), fixed)


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
    return taken(columns, np.flatnonzero(can))
