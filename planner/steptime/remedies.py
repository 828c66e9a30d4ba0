"""What would make a layout fit: one change at a time, the one that costs least first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.collectives.links import LinkNumbers
from planner.errors import LayoutError
from planner.fabric import Accelerator
from planner.layout import Layout, check_layout
from planner.model import ModelSpec
from planner.steptime.columns import columns_of
from planner.steptime.memory import step_memory
from planner.steptime.rates import Efficiency
from planner.steptime.spread import contiguous_spread
from planner.steptime.step import step_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One change to a layout.

    Args:
        change: in words.
        layout: the layout after it.
        worst_stage_bytes: memory of the fullest stage after it [bytes].
        step_s: the step after it, ranks in order [s].
        extra_s: how much longer than before [s].
    """

    change: str
    layout: Layout
    worst_stage_bytes: float
    step_s: float
    extra_s: float


def remedies(
    model: ModelSpec,
    layout: Layout,
    *,
    accelerator: Accelerator,
    links: LinkNumbers,
    domains: list[float],
    efficiency: Efficiency | None = None,
) -> tuple[Remedy, ...]:
    """Return the single changes that make *layout* fit, the cheapest in step time first.

    Args:
        model: the transformer's shape.
        layout: one that does not fit.
        accelerator: its memory and rates.
        links: nominal rates of the tiers.
        domains: GPUs of one domain of each tier but the last [1].
        efficiency: what was fitted.
    """

    def step_s(one: Layout) -> float:
        spreads = contiguous_spread(columns_of(one), domains, one.order)
        step = step_time(model, one, accelerator=accelerator, links=links, spreads=spreads,
                         efficiency=efficiency)  # fmt: skip
        return float(step.total_s)

    before = step_s(layout)
    found = []
    for change, one in _changes(layout, model):
        memory = step_memory(model, columns_of(one), accelerator.memory_bytes)
        if not memory.fits:
            continue
        after = step_s(one)
        found.append(
            Remedy(
                change=change,
                layout=one,
                worst_stage_bytes=float(memory.worst_stage_bytes),
                step_s=after,
                extra_s=after - before,
            )
        )
    return tuple(sorted(found, key=lambda remedy: (remedy.extra_s, remedy.change)))


def _changes(layout: Layout, model: ModelSpec) -> Iterator[tuple[str, Layout]]:
    """Yield the layouts that differ in one thing and can run."""
    tried: list[tuple[str, dict[str, int | str]]] = [
        (f"ZeRO {layout.zero_stage} -> {stage}", {"zero_stage": stage})
        for stage in range(layout.zero_stage + 1, 4)
    ]
    again = {"none": ("selective", "full"), "selective": ("full",)}.get(layout.recompute, ())
    tried += [(f"recompute {layout.recompute} -> {more}", {"recompute": more}) for more in again]
    half = layout.micro_batch // 2
    if layout.micro_batch % 2 == 0:
        tried.append((f"micro-batch {layout.micro_batch} -> {half}", {"micro_batch": half}))
    for degree in ("pp", "tp", "cp"):
        old = getattr(layout, degree)
        for factor in (2, 4):
            if layout.dp % factor == 0:
                more, fewer = old * factor, layout.dp // factor
                change = f"{degree} {old} -> {more}, dp {layout.dp} -> {fewer}"
                tried.append((change, {degree: more, "dp": fewer}))
    for wider in dict.fromkeys((2 * layout.dp_shard, 4 * layout.dp_shard, layout.dp)):
        if 0 < layout.dp_shard < wider <= layout.dp:
            tried.append((f"dp_shard {layout.dp_shard} -> {wider}", {"dp_shard": wider}))
    if model.experts:
        tried.append((f"ep {layout.ep} -> {layout.ep * 2}", {"ep": layout.ep * 2}))
    if layout.vpp > 1:
        tried.append((f"vpp {layout.vpp} -> 1", {"vpp": 1}))
    for change, values in tried:
        try:
            one = replace(layout, **values)  # type: ignore[arg-type]
            check_layout(one, model, layout.gpus)
        except LayoutError:
            continue
        yield change, one
