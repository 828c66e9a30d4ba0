"""In which order a stage runs its passes, by schedule: what a framework's own loop does.

A pass is forward ``F``, backward ``B`` (whole, or to the input only where weight gradients are
apart) or weight gradient ``W`` of one micro-batch and chunk.

Source: Megatron-LM's schedules (1F1B and interleaved, arXiv 2104.04473), GPipe arXiv 1811.06965,
ZB-H1 arXiv 2401.10241 §3.
"""

from __future__ import annotations

from typing import NamedTuple

from planner.errors import LayoutError


class Pass(NamedTuple):
    """One pass of one micro-batch through one chunk of a stage."""

    kind: str
    stage: int
    chunk: int
    micro_batch: int


def gpipe_order(stage: int, micro_batches: int) -> list[Pass]:
    """Return all forwards, then all backwards."""
    forward = [Pass("F", stage, 0, j) for j in range(micro_batches)]
    return forward + [Pass("B", stage, 0, j) for j in range(micro_batches)]


def one_forward_one_backward(stage: int, stages: int, micro_batches: int) -> list[Pass]:
    """Return p - i - 1 forwards, then one forward and one backward in turn, then backwards."""
    warm = min(stages - stage - 1, micro_batches)
    order = [Pass("F", stage, 0, j) for j in range(warm)]
    for j in range(micro_batches - warm):
        order += [Pass("F", stage, 0, warm + j), Pass("B", stage, 0, j)]
    return order + [Pass("B", stage, 0, j) for j in range(micro_batches - warm, micro_batches)]


def interleaved_order(
    stage: int, stages: int, chunks: int, micro_batches: int
) -> list[Pass]:
    """Return Megatron's interleaved order: groups of p micro-batches visit chunk after chunk.

    Raises:
        LayoutError: the micro-batches are no multiple of the stages.
    """
    if micro_batches % stages:
        raise LayoutError(
            f"an interleaved schedule needs micro-batches in multiples of pp = {stages}; "
            f"there are {micro_batches}"
        )
    total = micro_batches * chunks
    if micro_batches == stages:
        warm = total
    else:
        warm = min(total, 2 * (stages - stage - 1) + (chunks - 1) * stages)

    def step(number: int, kind: str) -> Pass:
        group, place = divmod(number, stages * chunks)
        chunk, inside = divmod(place, stages)
        chunk = chunk if kind == "F" else chunks - 1 - chunk
        return Pass(kind, stage, chunk, group * stages + inside)

    order = [step(j, "F") for j in range(warm)]
    for j in range(total - warm):
        order += [step(warm + j, "F"), step(j, "B")]
    return order + [step(j, "B") for j in range(total - warm, total)]


def zero_bubble_order(stage: int, stages: int, micro_batches: int) -> list[Pass]:
    """Return ZB-H1: 1F1B's order, each weight gradient put off until it fills a bubble.

    Stage i keeps i weight gradients back; they run in the drain, between backwards.
    """
    order: list[Pass] = []
    waiting: list[int] = []
    for one in one_forward_one_backward(stage, stages, micro_batches):
        order.append(one)
        if one.kind != "B":
            continue
        waiting.append(one.micro_batch)
        last = one.micro_batch >= micro_batches - (stages - stage - 1) - 1
        if len(waiting) > stage or last:
            order.append(Pass("W", stage, 0, waiting.pop(0)))
    return order + [Pass("W", stage, 0, j) for j in waiting]


def stage_order(
    schedule: str, stage: int, stages: int, chunks: int, micro_batches: int
) -> list[Pass]:
    """Return the passes of one stage in the order it runs them.

    Args:
        schedule: ``gpipe``, ``1f1b`` (interleaved where *chunks* > 1) or ``zb-h1``.
        stage: which stage [1].
        stages: of how many [1].
        chunks: virtual stages on each stage [1].
        micro_batches: of one replica [1].
    """
    if schedule == "gpipe":
        return gpipe_order(stage, micro_batches)
    if schedule == "zb-h1":
        return zero_bubble_order(stage, stages, micro_batches)
    if schedule != "1f1b":
        raise LayoutError(f"no explicit order for the schedule {schedule}: it has a closed form")
    if chunks > 1:
        return interleaved_order(stage, stages, chunks, micro_batches)
    return one_forward_one_backward(stage, stages, micro_batches)
