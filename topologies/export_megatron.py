"""A plan as a script that starts Megatron: torchrun's order of machines, and the layout as flags.

Names and defaults: megatron/training/arguments.py of Megatron-LM (core 0.14), as
``megatron_layout`` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.errors import InputError
from planner.layout import Layout
from topologies.export_launch import torchrun_text
from topologies.export_seats import SeatedPlan

_SHARDED = {
    0: (), 1: ("--use-distributed-optimizer",),
    2: ("--use-megatron-fsdp", "--data-parallel-sharding-strategy optim_grads"),
    3: ("--use-megatron-fsdp", "--data-parallel-sharding-strategy optim_grads_params"),
}  # fmt: skip
_ORDERS = {"tp-cp-ep-dp-pp": (), "tp-cp-ep-pp-dp": ("--use-tp-pp-dp-mapping",)}
_RECOMPUTED = {
    "none": (), "selective": ("--recompute-granularity selective",),
    "full": (
        "--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1",
    ),
}  # fmt: skip
_PRECISIONS = {"bf16": ("--bf16",), "fp16": ("--fp16",), "fp8": ("--bf16", "--fp8-format hybrid")}
_OPTIMIZER_BYTES = 12  # a 4-byte master weight and both moments
_CP_KINDS = {"ring": "p2p", "all_gather": "all_gather", "ulysses": "a2a"}


def megatron_text(plan: SeatedPlan) -> str:
    """Return the torchrun script with Megatron's flags for the plan's layout and rank order.

    Raises:
        InputError: an order or a schedule that Megatron does not have, machines out of order.
    """
    joined = " \\\n  ".join(['train.py "$@"', *megatron_flags(plan.layout)])
    return torchrun_text(plan, arguments=joined)


def megatron_flags(layout: Layout) -> tuple[str, ...]:
    """Return the flags that make Megatron run *layout*.

    Raises:
        InputError: all that Megatron does not have.

    >>> megatron_flags(Layout(tp=2, dp=2, global_batch=2))[:2]
    ('--tensor-model-parallel-size 2', '--pipeline-model-parallel-size 1')
    """
    if faults := tuple(_faults(layout)):
        raise InputError(*faults)
    return (
        *_degrees(layout), *_switches(layout), *_ORDERS[layout.order],
        *_SHARDED[layout.zero_stage], *_replicas(layout), *_RECOMPUTED[layout.recompute],
        *_PRECISIONS[layout.precision],
    )  # fmt: skip


def _faults(layout: Layout) -> Iterator[str]:
    if layout.order not in _ORDERS:
        yield f"order {layout.order}: Megatron has {' and '.join(_ORDERS)} only"
    if layout.schedule != "1f1b":
        yield f"schedule {layout.schedule}: Megatron has 1f1b, interleaved or not, only"
    if layout.overlap_parameters and layout.zero_stage and not layout.overlap_gradients:
        yield "Megatron overlaps parameters only where it overlaps gradients, too"
    if layout.optimizer_bytes != _OPTIMIZER_BYTES:
        yield (
            f"optimizer_bytes={layout.optimizer_bytes}: Megatron has {_OPTIMIZER_BYTES} of a "
            "parameter; fewer are asked for by the type of each state, which the plan has not"
        )


def _degrees(layout: Layout) -> Iterator[str]:
    yield f"--tensor-model-parallel-size {layout.tp}"
    yield f"--pipeline-model-parallel-size {layout.pp}"
    yield f"--context-parallel-size {layout.cp}"
    yield f"--micro-batch-size {layout.micro_batch}"
    yield f"--global-batch-size {layout.global_batch}"
    yield f"--seq-length {layout.seq}"
    if layout.ep > 1:
        yield f"--expert-model-parallel-size {layout.ep}"
    if layout.tp > 1 or layout.ep > 1:  # unsaid, experts are split as all else is
        yield f"--expert-tensor-parallel-size {layout.etp}"
    if layout.vpp > 1:
        yield f"--num-virtual-stages-per-pipeline-rank {layout.vpp}"
    if layout.cp > 1:
        yield f"--cp-comm-type {_CP_KINDS[layout.cp_kind]}"


def _replicas(layout: Layout) -> Iterator[str]:
    if layout.dp_shard:
        yield f"--num-distributed-optimizer-instances {layout.dp_replicate}"


def _switches(layout: Layout) -> Iterator[str]:
    if layout.ep_copies == "domain":
        yield "--moe-token-dispatcher-type flex"
        yield "--moe-enable-deepep"
    if layout.sequence_parallel and layout.tp > 1:
        yield "--sequence-parallel"
    if layout.overlap_gradients:
        yield "--overlap-grad-reduce"
    if layout.overlap_parameters and layout.zero_stage:
        yield "--overlap-param-gather"
    if layout.gradient_bytes == 2:
        yield "--grad-reduce-in-bf16"
