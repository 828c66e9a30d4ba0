"""Whether some layout of the whole space beats the candidates on a changed machine.

No step is shorter than its compute alone would be without any communication (``least_steps_s``),
and none gets shorter on a slower network. Only layouts that could beat the best known by that are
timed; nothing else can win.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.search.evaluate import CHUNK_ROWS
from planner.search.pool import Change, Pool, steps_at_once_s
from planner.steptime.columns import RECOMPUTE, SCHEDULES, LayoutColumns
from planner.steptime.compute import layer_time
from planner.steptime.memory import step_memory
from planner.steptime.operators import dense_layer, embedding, logits, moe_layer
from planner.steptime.rates import rates_of
from planner.steptime.step import STRAGGLING_SHARE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.search.search import Swept

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_DECIDE_COMPUTE = (
    "tp", "cp", "ep", "etp", "micro_batch", "zero_stage", "sequence_parallel",
)  # fmt: skip
"""The columns of a space that a micro-batch's compute depends on, but for recomputation."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What bounds every step of a space from below, whatever the network.

    Args:
        kinds: one row of the space of each kind of compute.
        kind: which of them each row of the space is [1].
        again_share: 1 where a row computes its layers' forward again, else 0 [1].
        rounds_factor: how often a step takes the compute of one micro-batch on all stages [1].
        columns: the layouts *kinds*.
        least_s: by sequence length, as a factor, what ``least_steps_s`` found; filled when asked.
    """

    kinds: Ints
    kind: Ints
    again_share: Floats
    rounds_factor: Floats
    columns: LayoutColumns
    least_s: dict[float, Floats] = field(default_factory=dict, compare=False)


def work_of(swept: Swept) -> Work:
    """Return what bounds the steps of a space.

    With S the compute of one micro-batch on all p stages, the busiest stage has at least S / p.
    So m micro-batches take m S / p, and filling and draining with v chunks a stage (1 - 1 / p) S /
    v at least; a schedule without bubbles is counted without any.
    """
    space = swept.space
    code = np.zeros(space.size, dtype=np.int64)
    for name in _DECIDE_COMPUTE:
        values, position = np.unique(space.table[name], return_inverse=True)
        code = code * len(values) + position.ravel()
    _, kinds, kind = np.unique(code, return_index=True, return_inverse=True)
    columns = space.columns(swept.fixed)
    fills = np.isin(columns.schedule, [SCHEDULES.index("1f1b"), SCHEDULES.index("gpipe")])
    slower = 1.0 + STRAGGLING_SHARE * np.log2(columns.gpus)
    rounds = (
        slower * columns.micro_batches / columns.pp
        + fills * (1.0 - 1.0 / columns.pp) / columns.vpp
    )  # fmt: skip
    again = (columns.recompute == RECOMPUTE.index("full")) * np.ones(space.size)
    return Work(kinds=kinds, kind=kind.ravel(), again_share=again, rounds_factor=rounds,
                columns=space.columns(swept.fixed, kinds))  # fmt: skip


def least_steps_s(pool: Pool, work: Work, seq: float) -> Floats:
    """Return what no step of the pool's space is shorter than, with sequences *seq* times as long.

    Operators that some stacks repeat under selective recomputation are left out.
    """
    model, machine = pool.model, pool.machine
    columns = replace(work.columns, seq=work.columns.seq * seq)
    rates = rates_of(machine.accelerator, columns, machine.efficiency)

    works = {"ends": embedding(model, columns), "logits": logits(model, columns)}
    if model.dense_layer_count or not model.experts:
        works["dense"] = dense_layer(model, columns, rates.operand_bytes)
    if model.experts:
        works["moe"] = moe_layer(model, columns, rates.operand_bytes)
    times = {name: layer_time(one, rates) for name, one in works.items()}
    counts = {
        "ends": 1, "logits": 1 + model.mtp_layers, "dense": model.dense_layer_count,
        "moe": model.moe_layer_count,
    }  # fmt: skip
    counts["moe" if model.experts else "dense"] += model.mtp_layers
    once = again = np.zeros(work.kinds.size)
    for name, time in times.items():
        passes_s = time.forward.total_s + time.backward.total_s + time.weights.total_s
        once = once + counts[name] * passes_s
        again = again + (name in {"dense", "moe"}) * counts[name] * time.forward.total_s
    least_s: Floats = (once[work.kind] + work.again_share * again[work.kind]) * work.rounds_factor
    return least_s


def faster_rows(
    pools: Sequence[Pool], change: Change, below_s: Sequence[float], work: Work
) -> list[tuple[float, int] | None]:
    """Return, for each pool, the shortest step under *change* [s] and its row of the space.

    Args:
        pools: of one space, the network alone differs.
        change: what is different from the machines as they are.
        below_s: what the step of each must be shorter than; None where no step is [s].
        work: of their space.
    """
    if change.seq not in work.least_s:
        work.least_s[change.seq] = least_steps_s(pools[0], work, change.seq)
    least_s = work.least_s[change.seq]
    below = np.asarray(below_s) * (1.0 - _ROUNDING)
    wanted = [least_s < limit for limit in below]
    if change.seq == 1.0:
        wanted = [_not_slower(pool, change, limit) & mask
                  for pool, limit, mask in zip(pools, below, wanted, strict=True)]  # fmt: skip
    rows = np.flatnonzero(np.logical_or.reduce(wanted))
    rows = _that_fit(pools[0], rows, change.seq)
    if not rows.size:
        return [None] * len(pools)
    together = [pool.with_rows(rows) for pool in pools]
    found: list[tuple[float, int] | None] = []
    for total_s, limit in zip(
        steps_at_once_s([(pool, change) for pool in together]), below, strict=True
    ):
        first = int(total_s.argmin())
        better = total_s[first] < limit
        found.append((float(total_s[first]), int(rows[first])) if better else None)
    return found


def _not_slower(pool: Pool, change: Change, below_s: float) -> NDArray[np.bool_]:
    """Return the rows that fit and, where *change* makes nothing faster, are fast enough now."""
    found = pool.swept.evaluated
    wanted = np.zeros(pool.swept.space.size, dtype=bool)
    slows = all(
        getattr(change, f.name) >= 1.0
        if f.name in {"nic_latency", "crowding"}
        else getattr(change, f.name) <= 1.0
        for f in fields(Change)
    )
    wanted[found.rows[found.total_s < below_s] if slows else found.rows] = True
    return wanted


def _that_fit(pool: Pool, rows: Ints, seq: float) -> Ints:
    capacity = pool.machine.accelerator.memory_bytes
    fitting = [np.empty(0, np.int64)]
    for start in range(0, rows.size, CHUNK_ROWS):
        few = rows[start : start + CHUNK_ROWS]
        columns = pool.swept.space.columns(pool.swept.fixed, few)
        fits = step_memory(pool.model, replace(columns, seq=columns.seq * seq), capacity).fits
        fitting.append(few[np.broadcast_to(fits, few.shape)])
    return np.concatenate(fitting)
