"""What one accelerator reaches in practice: few numbers for each generation and precision.

``Efficiency`` holds them as fitted or assumed; ``Rates`` are the columns a step is timed with.

The model behind them is physical. A GEMM of m x n x k takes
``2mnk / (gemm_share x peak) + bytes / (memory_share x bandwidth)``: the second term is the operand
traffic that tiles do not hide, and it is what makes narrow GEMMs slow, without a table of shapes.
Attention has its own share of the 16-bit peak; all other operators move bytes. Every kernel costs
the host ``host_s``; a layer cannot run faster than the host can launch it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from planner.errors import SpecError
from planner.fabric import Accelerator
from planner.steptime.columns import PRECISIONS, STACKS, LayoutColumns, Values, select, take
from planner.steptime.uncertainty import MACHINE_SPREAD

_STEP_OF_GEMM = 0.88
_ATTENTION_OF_GEMM = 0.62
_FLASH_2_OF_GEMM = {"ampere": 0.57, "newer": 0.29}
"""The same of FlashAttention 2, which cannot feed the matrix units since Hopper.

Alone it does 230 TFLOP/s on an A100 and 350 on an H100, where large GEMMs do 271 and 795; kernels
written for the H100 do 740 (arXiv 2307.08691, 2407.08608), of which 0.62 is left in whole steps:
0.62 / (740 / 795) of 230 / 271 and of 350 / 795.
"""

_STEP_OF_MEMORY = {"fused": 0.65, "eager": 0.65, "unfused": 0.95, "compiled": 0.65}
"""Of what a copy reaches: every pass of the unfused kernels is counted (``elementwise``), those of
the others as if each tensor moved once."""

SHARDED_GEMM_SHARE = 0.91
"""GEMM rate of fully sharded steps (ZeRO-3, FSDP) against others of the same chip [1].

Their gathers and scatters run under the GEMMs the whole step and hold some of the cores and of the
memory's bandwidth. A100: 0.76 of the peak in 16 bit against 0.83 unsharded (MosaicML's table
against Megatron's); GB200: one layout of Llama 3 70B with and without FSDP differs alike.
"""

_INNER = 0.78
_OUTER = 0.7
_HOST_S = {"fused": 17e-6, "eager": 12e-6, "unfused": 40e-6, "compiled": 12e-6}
_OPERAND_BYTES = (2.0, 2.0, 1.0, 0.5625)


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """What an accelerator reaches of its peaks.

    Args:
        gemm_share: precision to the share of that precision's peak in large GEMMs [1].
        attention_share: stack of kernels to the share of the 16-bit peak in flash attention [1].
        memory_share: stack of kernels to the share of the memory bandwidth [1].
        inner_share: of the scale-up rate, in large collectives [1].
        outer_share: of the NIC's rate, in large collectives [1].
        host_s: stack of kernels to the host's time to launch one [s].
        step_s: time of a step that no layout changes: data, logging, synchronisation [s].
        spread: standard deviation of the log of predicted over measured, on rows left out [1].
        rows: rows it was fitted on [1].
        pace_ratio: source to how long its own software takes against the fit, where the fit saw
            the source [1]; only rows of that source are multiplied by it.
        clock_ratio: source to the rate of its machine's matrix units against this, where the fit
            saw several machines [1]; only rows of that source run at it.
        fitted_on: the tables they come from; empty where nothing was measured.
        machine_spread: the same deviation of a machine's mean, 0 where it is the very machine that
            was fitted on [1].
    """

    gemm_share: Mapping[str, float]
    attention_share: Mapping[str, float]
    memory_share: Mapping[str, float]
    inner_share: float = 0.8
    outer_share: float = 0.8
    host_s: Mapping[str, float] = field(default_factory=dict)
    step_s: float = 0.03
    spread: float = 0.2
    rows: int = 0
    pace_ratio: Mapping[str, float] = field(default_factory=dict)
    clock_ratio: Mapping[str, float] = field(default_factory=dict)
    fitted_on: str = ""
    machine_spread: float = MACHINE_SPREAD

    def __post_init__(self) -> None:
        shares = [("inner_share", self.inner_share), ("outer_share", self.outer_share)]
        shares += [(f"gemm_share.{p}", v) for p, v in self.gemm_share.items()]
        shares += [(f"attention_share.{s}", v) for s, v in self.attention_share.items()]
        shares += [(f"memory_share.{s}", v) for s, v in self.memory_share.items()]
        faults = [
            f"{name}={value} is not a share above 0 and at most 1"
            for name, value in shares
            if not 0 < value <= 1
        ]
        if not self.gemm_share:
            faults.append("gemm_share names no precision")
        if faults:
            raise SpecError(*faults)

    def on(self, source: str) -> Efficiency:
        """Return what the machine of *source* reaches: matrix units at its own clock."""
        clock = self.clock_ratio.get(source, 1.0)
        if clock == 1.0:
            return self

        def clocked(shares: Mapping[str, float]) -> dict[str, float]:
            return {name: min(1.0, share * clock) for name, share in shares.items()}

        return replace(
            self,
            gemm_share=clocked(self.gemm_share),
            attention_share=clocked(self.attention_share),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Reached rates of one accelerator, a column for each (its precision may differ by row).

    Args:
        gemm_flops_per_s: large GEMMs of the layers [FLOP/s].
        logits_flops_per_s: the vocabulary's GEMM, which stays in 16 bit [FLOP/s].
        attention_flops_per_s: fused attention, 16 bit [FLOP/s].
        memory_bytes_per_s: memory traffic [bytes/s].
        host_s: host time to launch one kernel [s].
        step_s: per step [s].
        inner_share, outer_share: of the links' nominal rates [1].
        operand_bytes: bytes of one GEMM operand element [bytes].
        peak_flops_per_s: 16-bit dense peak, what MFU is counted against [FLOP/s].
        fastest_flops_per_s: peak of its precision, or the 16-bit one where that is higher [FLOP/s].
        memory_bytes: capacity [bytes].
        spread: standard deviation of the log residuals [1].
        machine_spread: of a machine's mean [1].
        assumed: what was not measured on this accelerator, name to reason.
    """

    gemm_flops_per_s: Values
    logits_flops_per_s: Values
    attention_flops_per_s: Values
    memory_bytes_per_s: Values
    host_s: Values
    step_s: float
    inner_share: float
    outer_share: float
    operand_bytes: Values
    peak_flops_per_s: float
    fastest_flops_per_s: Values
    memory_bytes: float
    spread: float
    machine_spread: float
    assumed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def default_efficiency(accelerator: Accelerator) -> Efficiency:
    """Return the efficiencies assumed where none were fitted.

    In whole steps GEMMs reach about 0.88 of the best that a GEMM alone was measured at (the
    accelerator's own share); attention about 0.62 of that again in kernels written for the
    generation (Transformer Engine), less in FlashAttention 2; memory-bound operators about 0.65 of
    what a copy reaches (0.95 where every pass is counted); links 0.78 and NICs 0.7 of their nominal
    rates: the ratios of the generations that were fitted, A100 to GB300. A fit starts from the same
    numbers.
    """
    shares = {p: v for p, v in accelerator.efficiency_share.items() if p in PRECISIONS}
    wide = _STEP_OF_GEMM * shares.get("bf16", shares.get("fp16", 0.6))
    memory = accelerator.memory_efficiency_share
    newer = _is_newer(accelerator)
    older_kernels = _FLASH_2_OF_GEMM["newer" if newer else "ampere"] * wide
    return Efficiency(
        gemm_share={p: _STEP_OF_GEMM * share for p, share in shares.items()},
        attention_share={
            stack: _ATTENTION_OF_GEMM * wide if stack == "fused" else older_kernels
            for stack in STACKS
        },
        memory_share={stack: _STEP_OF_MEMORY[stack] * memory for stack in STACKS},
        inner_share=_INNER,
        outer_share=_OUTER,
        host_s=dict(_HOST_S),
    )


def _is_newer(accelerator: Accelerator) -> bool:
    """Return whether it is of Hopper's and CDNA 3's generation or later."""
    return "fp8" in accelerator.peak_flops_per_s


def peak_of(accelerator: Accelerator, precision: str) -> float:
    """Return the dense peak at *precision*, or at the next wider one the chip has [FLOP/s]."""
    return accelerator.peak_flops_per_s[_run_at(accelerator, precision)]


def _run_at(accelerator: Accelerator, precision: str) -> str:
    """Return *precision*, or the next wider one that the chip has; 16 bits stand for 16 bits."""
    narrow = ("fp4", "fp8")
    wider = narrow[narrow.index(precision) :] if precision in narrow else ()
    wide = ("fp16", "bf16") if precision == "fp16" else ("bf16", "fp16")
    for known in (*wider, *wide):
        if known in accelerator.peak_flops_per_s:
            return known
    raise SpecError(f"{accelerator.name}: no peak for {precision}, nor a wider one")


_NEAREST = ("compiled", "eager", "fused", "unfused")


def of_stack(shares: Mapping[str, float], stack: str, usual_share: Mapping[str, float]) -> float:
    """Return the share of *stack*, or that of another scaled by what usually lies between.

    Args:
        shares: stack to share, one at least.
        stack: the one wanted.
        usual_share: every stack's default on this accelerator.
    """
    if stack in shares:
        return shares[stack]
    known = next(one for one in _NEAREST if one in shares)
    return min(1.0, shares[known] / usual_share[known] * usual_share[stack])


SIXTEEN_BITS = frozenset({"bf16", "fp16"})
"""Precisions of one rate: a fit in either is one in both."""
_NEAREST_PRECISIONS = {
    "bf16": ("bf16", "fp16", "fp8", "fp4"),
    "fp16": ("fp16", "bf16", "fp8", "fp4"),
    "fp8": ("fp8", "bf16", "fp16", "fp4"),
    "fp4": ("fp4", "fp8", "bf16", "fp16"),
}


def _nearest(shares: Mapping[str, float], precision: str) -> str:
    return next(known for known in _NEAREST_PRECISIONS[precision] if known in shares)


def _share_of(shares: Mapping[str, float], precision: str, usual: Mapping[str, float]) -> float:
    """Return the share at *precision*, or the nearest one's in the ratio that is usual.

    One in 16 bit is that of the other.
    """
    known = _nearest(shares, precision)
    alike = {known, precision} <= SIXTEEN_BITS or precision not in usual
    ratio = 1.0 if alike else usual[precision] / usual.get(known, 1.0)
    return min(1.0, shares[known] * ratio)


def with_sixteen_bits(fitted: Efficiency, accelerator: Accelerator) -> Efficiency:
    """Return *fitted* with a share in 16 bit, in which the vocabulary's product always runs.

    Where it has none: its own in 8 or 4 bit, in the ratio that is usual of *accelerator*.
    """
    if SIXTEEN_BITS & set(fitted.gemm_share):
        return fitted
    wide = _run_at(accelerator, "bf16")
    share = _share_of(fitted.gemm_share, wide, default_efficiency(accelerator).gemm_share)
    return replace(fitted, gemm_share={**fitted.gemm_share, wide: share})


def rates_of(
    accelerator: Accelerator, columns: LayoutColumns, efficiency: Efficiency | None = None
) -> Rates:
    """Return the rates each layout of *columns* runs at.

    Args:
        accelerator: its peaks and bandwidth.
        columns: the layouts; only their precision is read.
        efficiency: what was fitted; left out, it is assumed and said so.
    """
    usual = default_efficiency(accelerator)
    reached = efficiency or usual
    code = columns.precision
    gemm = [
        _share_of(reached.gemm_share, p, usual.gemm_share) * peak_of(accelerator, p)
        for p in PRECISIONS
    ]
    wide = peak_of(accelerator, "bf16")
    attention = [of_stack(reached.attention_share, s, usual.attention_share) * wide for s in STACKS]
    memory = [
        of_stack(reached.memory_share, s, usual.memory_share) * accelerator.memory_bytes_per_s
        for s in STACKS
    ]
    logits = [gemm[0], gemm[1], gemm[0], gemm[0]]
    kernels = columns.stack
    if _is_newer(accelerator):
        kernels = select(columns.newer_attention, float(STACKS.index("fused")), kernels)
    sharded = select(columns.zero_stage >= 3, SHARDED_GEMM_SHARE, 1.0)
    assumed = {}
    if efficiency is None:
        assumed["efficiency"] = (
            f"no measured step of {accelerator.name}: its achievable share of peak"
        )
    for used in np.unique(code) if isinstance(code, np.ndarray) else (code,):
        precision = PRECISIONS[int(used)]
        guess = accelerator.assumed.get(f"efficiency.{precision}")
        if efficiency is None and guess:
            assumed["efficiency"] += f"; {precision} {guess}"
        if efficiency and precision not in reached.gemm_share:
            assumed[f"efficiency.{precision}"] = (
                f"no measured step of {accelerator.name} in {precision}: as in "
                f"{_nearest(reached.gemm_share, precision)}"
            )
        at = _run_at(accelerator, precision)
        if at != precision:
            assumed[f"peak.{precision}"] = f"{accelerator.name} has none: that of {at}"
    return Rates(
        gemm_flops_per_s=take(gemm, code) * sharded,
        logits_flops_per_s=take(logits, code) * sharded,
        attention_flops_per_s=take(attention, kernels),
        memory_bytes_per_s=take(memory, columns.stack),
        host_s=take([reached.host_s.get(s, _HOST_S[s]) for s in STACKS], columns.stack),
        step_s=reached.step_s,
        inner_share=reached.inner_share,
        outer_share=reached.outer_share,
        operand_bytes=take(_OPERAND_BYTES, code),
        peak_flops_per_s=wide,
        fastest_flops_per_s=take([max(peak_of(accelerator, p), wide) for p in PRECISIONS], code),
        memory_bytes=accelerator.memory_bytes,
        spread=reached.spread,
        machine_spread=reached.machine_spread,
        assumed=MappingProxyType(assumed),
    )
