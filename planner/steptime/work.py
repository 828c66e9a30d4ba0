"""What operators ask of an accelerator: FLOPs, bytes and kernels; matrix products by their shape.

A GEMM moves each operand once: y[m, n] = x[m, k] w[k, n] reads m k + k n elements and writes m n
of 16 bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.steptime.columns import Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One operator's work on one rank and micro-batch.

    Args:
        name: operator.
        kind: ``gemm``, ``logits``, ``attention`` or ``memory``: which rate bounds it.
        flops: FLOPs [FLOP].
        moved_bytes: memory traffic [bytes].
        kernels: kernels launched [1].
    """

    name: str
    kind: str
    flops: Values
    moved_bytes: Values
    kernels: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class BothPasses:
    """One operator forward and backward."""

    forward: Work
    backward: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """A layer's operators, forward and backward (weight gradients apart: ZB moves them).

    Args:
        forward: the forward pass.
        backward: the backward pass down to the layer's input, without recomputation.
        weights: the weight gradients.
        core: attention core's forward, which selective recomputation repeats.
        last: of the forward, what the backward needs no output of: a recomputation may leave it.
    """

    forward: tuple[Work, ...]
    backward: tuple[Work, ...]
    weights: tuple[Work, ...]
    core: tuple[Work, ...]
    last: tuple[Work, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A weight matrix and the tokens that pass it: y[m, n] = x[m, k] w[k, n].

    Args:
        name: operator.
        m, n, k: rows, output width, input width on this rank [1].
        count: how many such matrices (local experts) [1].
        kind: ``gemm`` or ``logits``.
        launches: kernels one pass over all *count* takes [1].
    """

    name: str
    m: Values
    n: Values
    k: Values
    count: Values = 1.0
    kind: str = "gemm"
    launches: Values = 1.0


def forward_gemm(x: Matrix, element_bytes: Values) -> Work:
    """Return y = x w."""
    return Work(
        name=x.name,
        kind=x.kind,
        flops=2.0 * x.count * x.m * x.n * x.k,
        moved_bytes=x.count * (element_bytes * x.k * (x.m + x.n) + 2.0 * x.m * x.n),
        kernels=x.launches,
    )


def input_gemm(x: Matrix, element_bytes: Values) -> Work:
    """Return the gradient of x from that of y."""
    return Work(
        name=x.name,
        kind=x.kind,
        flops=2.0 * x.count * x.m * x.n * x.k,
        moved_bytes=x.count * (element_bytes * x.n * (x.m + x.k) + 2.0 * x.m * x.k),
        kernels=x.launches,
    )


def weight_gemm(x: Matrix, element_bytes: Values, gradient_bytes: Values) -> Work:
    """Return w's gradient, added to the main one: that is read and written each micro-batch."""
    return Work(
        name=x.name,
        kind=x.kind,
        flops=2.0 * x.count * x.m * x.n * x.k,
        moved_bytes=x.count
        * (element_bytes * x.m * (x.k + x.n) + 2.0 * gradient_bytes * x.k * x.n),
        kernels=x.launches,
    )


def memory_work(name: str, moved_bytes: Values, kernels: Values) -> Work:
    """Return an operator that only moves bytes."""
    return Work(name=name, kind="memory", flops=0.0, moved_bytes=moved_bytes, kernels=kernels)


def memory_passes(
    name: str, forward_bytes: Values, backward_bytes: Values, kernels: Values
) -> BothPasses:
    """Return an operator that only moves bytes, with as many kernels in both passes."""
    return BothPasses(
        forward=memory_work(name, forward_bytes, kernels),
        backward=memory_work(name, backward_bytes, kernels),
    )
