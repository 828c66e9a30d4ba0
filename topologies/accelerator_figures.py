"""Which accelerator of the catalogue a foreign file means by its figures, where it names none."""

from __future__ import annotations

from dataclasses import dataclass

from planner.fabric import Accelerator
from topologies.fabric_accelerators import accelerator_names, load_accelerator

_FARTHEST = 0.10
"""Such files round: Calculon's H100 has 3072 GB/s where the datasheet has 3350, and GiB for GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorFigures:
    """What a file says of one GPU; 0 where it does not.

    Args:
        peak_16_bit_flops_per_s: of dense BF16 or FP16 [FLOP/s].
        memory_bytes: its size [bytes].
        memory_bytes_per_s: its rate [bytes/s].
        scale_up_bytes_per_s: of one GPU, one direction [bytes/s].
    """

    peak_16_bit_flops_per_s: float
    memory_bytes: float
    memory_bytes_per_s: float
    scale_up_bytes_per_s: float

    def nearest(self) -> str:
        """Return the accelerator whose every figure is within 10 % of these, the nearest of such.

        Empty where there is none, or a figure is missing.

        >>> AcceleratorFigures(
        ...     peak_16_bit_flops_per_s=312e12, memory_bytes=80 * 2**30,
        ...     memory_bytes_per_s=2048e9, scale_up_bytes_per_s=300e9,
        ... ).nearest()
        'A100-SXM-80'
        """
        if not min(self._all()):
            return ""
        farthest = {name: self._distance(load_accelerator(name)) for name in accelerator_names()}
        best = min(farthest, key=lambda name: farthest[name])
        return best if farthest[best] <= _FARTHEST else ""

    def _distance(self, one: Accelerator) -> float:
        """Return the largest share by which a figure of *one* is off."""
        peaks = one.peak_flops_per_s
        theirs = (
            peaks.get("bf16", peaks.get("fp16", 0.0)),
            one.memory_bytes,
            one.memory_bytes_per_s,
            one.scale_up_bytes_per_s or 0.0,
        )
        return max(abs(b / a - 1) for a, b in zip(self._all(), theirs, strict=True))

    def _all(self) -> tuple[float, ...]:
        return (
            self.peak_16_bit_flops_per_s,
            self.memory_bytes,
            self.memory_bytes_per_s,
            self.scale_up_bytes_per_s,
        )


def said_of(figures: AcceleratorFigures) -> dict[str, str]:
    """Return what to list as assumed of the accelerator, nothing where none is meant."""
    name = figures.nearest()
    told = f"{name}: the nearest of the catalogue to the file's peak, memory and rates"
    return {"accelerator": told} if name else {}
