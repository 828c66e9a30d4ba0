"""In which order a stage runs its passes, by schedule: what a framework's own loop does.

A pass is forward ``F``, backward ``B`` (whole, or to the input only where weight gradients are
apart), ``I`` (always to the input only) or weight gradient ``W`` of one micro-batch and chunk.

Source: Megatron-LM's schedules (1F1B and interleaved, arXiv 2104.04473), GPipe arXiv 1811.06965,
ZB-H1 arXiv 2401.10241 §3; DualPipe arXiv 2412.19437 §3.2.1.
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


def interleaved_order(stage: int, stages: int, chunks: int, micro_batches: int) -> list[Pass]:
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


class BothWays(NamedTuple):
    """DualPipe's order on one rank, and which forward runs as one with which backward."""

    order: list[Pass]
    fused: dict[Pass, Pass]


def dualpipe_order(rank: int, ranks: int, micro_batches: int) -> BothWays:
    """Return DualPipe's order on one rank: micro-batches enter from both ends at once.

    *chunk* is the direction: 0 runs from rank 0 up, 1 from the last rank down; a rank holds the
    stage of each. ``B`` is a whole backward, ``I`` one down to the input only, whose weight
    gradient ``W`` comes later.

    Source: the eight steps of DeepSeek's DualPipe (arXiv 2412.19437 §3.2.1).

    Raises:
        LayoutError: an odd number of ranks or micro-batches, or fewer than 2 for each rank.
    """
    if ranks % 2 or micro_batches % 2 or micro_batches < 2 * ranks:
        raise LayoutError(
            f"DualPipe needs pp and the micro-batches even and 2 x pp = {2 * ranks} micro-batches "
            f"at least; there are pp = {ranks} and {micro_batches}"
        )
    half = min(rank, ranks - 1 - rank)
    outside = ranks // 2 - half - 1
    first = 0 if rank < ranks // 2 else 1
    line = _BothWays(rank=rank, first=first)
    for _ in range(2 * outside):
        line.forward(0)
    for _ in range(half + 1):
        line.forward(0)
        line.forward(1)
    for _ in range(outside):
        line.backward_to_input(1)
        line.weights()
        line.forward(1)
    for i in range(micro_batches // 2 - ranks + half + 1):
        if i == 0 and not outside:
            line.forward(0)
            line.backward(1)
        else:
            line.fuse(0, 1)
        line.fuse(1, 0)
    for _ in range(outside):
        line.backward(1)
        line.fuse(1, 0)
    for i in range(half + 1):
        late = i > (half + 1) // 2 or (i == (half + 1) // 2 and half % 2 == 1)
        (line.backward_to_input if late else line.backward)(1)
        (line.backward_to_input if i >= (half + 1) // 2 else line.backward)(0)
    for _ in range(outside):
        line.weights()
        line.backward_to_input(0)
    while line.waiting:
        line.weights()
    return BothWays(line.order, line.fused)


class _BothWays:
    """Builds one rank's order; its direction 0 is the one that reaches it *first*, 1 the other."""

    def __init__(self, *, rank: int, first: int) -> None:
        self.rank = rank
        self.real = (first, 1 - first)
        self.order: list[Pass] = []
        self.waiting: list[Pass] = []
        self.fused: dict[Pass, Pass] = {}
        self.done = {"F": [0, 0], "B": [0, 0]}

    def forward(self, direction: int) -> None:
        self.order.append(self._next("F", "F", direction))

    def backward(self, direction: int) -> None:
        self.order.append(self._next("B", "B", direction))

    def backward_to_input(self, direction: int) -> None:
        """Put off the weight gradients."""
        one = self._next("B", "I", direction)
        self.order.append(one)
        self.waiting.append(one._replace(kind="W"))

    def fuse(self, forward: int, backward: int) -> None:
        self.forward(forward)
        self.backward(backward)
        self.fused[self.order[-2]] = self.order[-1]

    def weights(self) -> None:
        self.order.append(self.waiting.pop(0))

    def _next(self, counted: str, kind: str, direction: int) -> Pass:
        real = self.real[direction]
        number = self.done[counted][real]
        self.done[counted][real] += 1
        return Pass(kind, self.rank, real, number)


def stage_order(
    schedule: str, stage: int, stages: int, chunks: int, micro_batches: int
) -> list[Pass]:
    """Return the passes of one stage in the order it runs them.

    Args:
        schedule: ``gpipe``, ``1f1b`` (interleaved where *chunks* > 1), ``zb-h1`` or ``dualpipe``.
        stage: which stage [1].
        stages: of how many [1].
        chunks: virtual stages on each stage [1].
        micro_batches: of one replica [1].
    """
    if schedule == "gpipe":
        return gpipe_order(stage, micro_batches)
    if schedule == "zb-h1":
        return zero_bubble_order(stage, stages, micro_batches)
    if schedule == "dualpipe":
        return dualpipe_order(stage, stages, micro_batches).order
    if chunks > 1:
        return interleaved_order(stage, stages, chunks, micro_batches)
    return one_forward_one_backward(stage, stages, micro_batches)
