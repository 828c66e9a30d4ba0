"""Work into seconds: a roofline whose two terms add, and the host that launches kernels.

One operator takes ``flops / reached FLOP rate + bytes / reached bandwidth``. The sum, not the
larger of the two, is what narrow GEMMs show: loading and storing tiles is only partly hidden, and
the byte term of a square GEMM is a few per cent. Weight gradients add into a buffer that is read
and written while other tiles multiply, so that their two terms overlap in part: the root of the
sum of squares. A pass over a layer takes at least as long as the host needs to launch its kernels.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.steptime.columns import Values, larger, lone
from planner.steptime.rates import Rates
from planner.steptime.work import LayerWork, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Seconds of one pass over one layer on one rank and micro-batch.

    Args:
        total_s: what the pass takes [s].
        gemm_s, attention_s, memory_s: the parts [s].
        host_s: what the host needs beyond the kernels' own time [s].
    """

    total_s: Values
    gemm_s: Values
    attention_s: Values
    memory_s: Values
    host_s: Values


def pass_time(works: Sequence[Work], rates: Rates) -> Pass:
    """Return the seconds of the operators *works*, run one after another."""
    return _pass(works, rates, operator.add)


def weights_time(works: Sequence[Work], rates: Rates) -> Pass:
    """Return the seconds of the weight gradients *works*, whose two terms overlap in part."""
    return _pass(works, rates, lambda one, other: lone(np.hypot(one, other)))


def _pass(works: Sequence[Work], rates: Rates, together: Callable[[Any, Any], Any]) -> Pass:
    """Return the seconds of *works*; *together* joins a product's two terms."""
    gemm: Values = 0.0
    attention: Values = 0.0
    memory: Values = 0.0
    kernels: Values = 0.0
    for work in works:
        kernels = kernels + work.kernels
        moved = work.moved_bytes / rates.memory_bytes_per_s
        if work.kind == "memory":
            memory = memory + moved
        elif work.kind == "attention":
            attention = attention + work.flops / rates.attention_flops_per_s + moved
        else:
            logits = work.kind == "logits"
            rate = rates.logits_flops_per_s if logits else rates.gemm_flops_per_s
            gemm = gemm + together(work.flops / rate, moved)
    device = gemm + attention + memory
    host = larger(0.0, kernels * rates.host_s - device)
    return Pass(
        total_s=device + host,
        gemm_s=gemm,
        attention_s=attention,
        memory_s=memory,
        host_s=host,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """Seconds of one layer: forward, backward to its input, weight gradients.

    Args:
        core_s: the attention core's forward.
        last_s: of the forward, what the backward needs no output of.
    """

    forward: Pass
    backward: Pass
    weights: Pass
    core_s: Values
    last_s: Values


def layer_time(work: LayerWork, rates: Rates) -> LayerTime:
    """Return the seconds of one layer's passes."""
    return LayerTime(
        forward=pass_time(work.forward, rates),
        backward=pass_time(work.backward, rates),
        weights=weights_time(work.weights, rates),
        core_s=pass_time(work.core, rates).total_s,
        last_s=pass_time(work.last, rates).total_s,
    )
