"""What the given fields of a layout rule out, and the words for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import prod
from typing import TYPE_CHECKING, Any

from planner.errors import LayoutError
from planner.layout import Layout, check_layout
from planner.units import format_bytes

if TYPE_CHECKING:
    from planner.model import ModelSpec
    from planner.steptime.memory import Memory

_WORDS = ("zero_stage", "recompute", "precision", "cp_kind", "schedule", "ep_copies", "order")
_MOST_ZERO = 3  # the stage that shards weights, too: there is none beyond


def given_faults(
    model: ModelSpec, gpus: int, fixed: Mapping[str, Any], whose: str = "asked for"
) -> list[str]:
    """Return every fault of the given fields, whatever the others may become.

    Args:
        model: to be trained.
        gpus: that it is trained on [1].
        fixed: the given fields.
        whose: where the number of GPUs comes from, after "the 8 GPUs".

    >>> from planner.model import Attention, ModelSpec
    >>> heads = Attention(heads=32, kv_heads=8, head_dim=128, v_head_dim=128)
    >>> model = ModelSpec(name="m", hidden=4096, vocab=128256, layers=32, attention=heads,
    ...                   ffn=14336)
    >>> given_faults(model, 1024, {"tp": 3})[0]
    'tp=3 does not divide the 32 attention heads'
    """
    faults: list[str] = []
    for trial in _one_degree_each(fixed):
        try:
            layout = Layout(**trial)
            check_layout(layout, model, layout.gpus)
        except LayoutError as error:
            faults += error.faults
    names = ("tp", "cp", "dp" if "dp" in fixed else "dp_shard", "pp")
    degrees = {name: fixed[name] for name in names if fixed.get(name)}
    product = prod(degrees.values())
    spelled = f"{' x '.join(degrees)} = {' x '.join(map(str, degrees.values()))}"
    spelled += f" = {product}" if len(degrees) > 1 else ""
    whole = len(degrees) == 4 and "dp" in degrees
    if whole and product != gpus:
        faults.append(f"{spelled} does not equal the {gpus} GPUs {whose}")
    elif gpus % product:
        faults.append(f"{spelled} does not divide the {gpus} GPUs {whose}")
    if not faults and whole:
        known = {f.name for f in fields(Layout)}
        try:
            Layout(**{name: value for name, value in fixed.items() if name in known})
        except LayoutError as error:
            faults += error.faults
    return list(dict.fromkeys(faults))


def _one_degree_each(fixed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return layouts in which one given degree stands alone, so that only its own faults show."""
    alone = {"sequence_parallel": False, "seq": fixed.get("seq", 4096)}
    trials: list[dict[str, Any]] = [
        {name: fixed[name] for name in _WORDS if name in fixed},
    ]
    if "tp" in fixed:
        trials.append({**alone, "tp": fixed["tp"]})
    if "cp" in fixed:
        trials.append({**alone, "cp": fixed["cp"]})
    for name in ("ep", "etp"):
        if name in fixed:
            many = fixed[name]
            trials.append({**alone, name: many, "dp": many, "global_batch": many})
    if fixed.get("dp_shard"):
        many, stage = fixed["dp_shard"], fixed.get("zero_stage", 1)
        dp = fixed.get("dp", 2 * many)
        trials.append({**alone, "dp": dp, "global_batch": dp, "dp_shard": many,
                       "zero_stage": stage})  # fmt: skip
    if "pp" in fixed:
        many, chunks = fixed["pp"], fixed.get("vpp", 1)
        trials.append({**alone, "pp": many, "vpp": chunks if many > 1 else 1,
                       "global_batch": many})  # fmt: skip
    return trials


def out_of_memory(model: ModelSpec, layout: Layout, memory: Memory, layouts: int) -> str:
    """Return why no layout fits, and by how much the nearest misses."""
    who = f"{model.name}: " + (
        "the layout does not fit in memory"
        if layouts == 1
        else f"none of {layouts:,} layouts fits in memory; the nearest"
    )
    parts = sorted(memory.parts.items(), key=lambda item: -float(item[1]))
    return (
        f"{who} ({spelled_layout(layout)}) needs {format_bytes(float(memory.worst_stage_bytes))} "
        f"and a margin of {format_bytes(memory.margin_bytes)} on a GPU of "
        f"{format_bytes(memory.capacity_bytes)}: {format_bytes(float(memory.missing_bytes))} too "
        f"much ({', '.join(f'{n} {format_bytes(float(v))}' for n, v in parts if v > 0)}); "
        f"take more GPUs{_more_to_take(layout)}, or --ignore-memory to seat it anyway"
    )


def _more_to_take(layout: Layout) -> str:
    """Return of what a layout can have more that saves memory; nothing where all is at its end."""
    more = [
        *(["more sharding"] if layout.zero_stage < _MOST_ZERO else []),
        *(["more recomputation"] if layout.recompute != "full" else []),
    ]
    return f"{', ' if len(more) > 1 else ' or '}{' or '.join(more)}" if more else ""


def spelled_layout(layout: Layout) -> str:
    """Return a layout's degrees in a few words.

    >>> spelled_layout(Layout(tp=8, dp=4, pp=2, vpp=2, global_batch=8))
    'tp 8, dp 4, pp 2 x 2 virtual, micro-batch 1, ZeRO 1, selective recomputation'
    """
    degrees = [
        f"{name} {getattr(layout, name)}"
        for name in ("tp", "cp", "ep", "etp", "dp")
        if getattr(layout, name) > 1
    ]
    if layout.dp_shard:
        degrees[-1] += f" ({layout.dp_replicate} replicas of {layout.dp_shard} shards)"
    if layout.pp > 1:
        degrees.append(f"pp {layout.pp}" + (f" x {layout.vpp} virtual" if layout.vpp > 1 else ""))
    words = {"none": "no", "selective": "selective", "full": "full"}
    return ", ".join(
        [
            *(degrees or ["no parallelism"]),
            f"micro-batch {layout.micro_batch}",
            f"ZeRO {layout.zero_stage}",
            f"{words[layout.recompute]} recomputation",
        ]
    )
