"""What the figures of a machine can be: from the least to the most that hardware has, with reasons.

A value outside is a slip of the unit or of the exponent: it is refused where it stands, because
all that is computed from it would be as far off and look like an answer. The ranges are wide:
they hold a processor's core and a wafer, a modem's link and one of the next decade.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from planner.units import (
    GIB,
    KIB,
    MB,
    MIB,
    NS,
    TB,
    TIB,
    format_binary_bytes,
    format_flops,
    format_power,
    format_rate,
    format_share,
    format_time,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plausible:
    """What a figure can be.

    Args:
        least, most: both can be [SI].
        shown: a value to text.
        because: what has the least, and the most, or why nothing is beyond.
    """

    least: float
    most: float
    shown: Callable[[float], str]
    because: str

    def fault(self, value: float) -> str:
        """Return what is wrong with *value*, or nothing.

        >>> PLAUSIBLE["memory_rate"].fault(1e-300)
        '1e-300 B/s cannot be: expected 100 MB/s to 100 PB/s (a disk; a wafer of 2026 has 21 PB/s)'
        """
        if self.least <= value <= self.most:
            return ""
        seen = self.shown(value) if 1e-12 <= value < 1e21 else _bare(value, self.shown(1.0))
        return (
            f"{seen} cannot be: expected {self.shown(self.least)} to {self.shown(self.most)} "
            f"({self.because})"
        )


def _bare(value: float, one: str) -> str:
    """Return *value* with the unit of *one*, however small or large."""
    return f"{value:g} {one.partition(' ')[2]}".rstrip()


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


_LINK = Plausible(
    least=1 * MB,
    most=100 * TB,
    shown=format_rate,
    because="less than a tenth of Fast Ethernet; fifty times a GPU's NVLinks of 2026",
)
_NIC = Plausible(
    least=1 * MB,
    most=300e9,
    shown=format_rate,
    because="less than a tenth of Fast Ethernet; a GPU of 2026 has two NICs of 100 GB/s, which is "
    "800 Gbit/s each",
)
_WAIT = Plausible(
    least=1 * NS,
    most=1.0,
    shown=format_time,
    because="light in 30 cm; five times the way of light round the Earth in fibre",
)

PLAUSIBLE: Mapping[str, Plausible] = MappingProxyType(
    {
        "peak": Plausible(
            least=1e9,
            most=1e18,
            shown=format_flops,
            because="a slow core of a processor; a wafer of 2026 has 0.125 EFLOP/s",
        ),
        "memory": Plausible(
            least=16 * MIB,
            most=2048 * TIB,
            shown=format_binary_bytes,
            because="a chip's own SRAM; a wafer with its outer memory has 1.2 PB",
        ),
        "memory_rate": Plausible(
            least=100 * MB,
            most=1e17,
            shown=format_rate,
            because="a disk; a wafer of 2026 has 21 PB/s",
        ),
        "power": Plausible(
            least=1.0,
            most=1e5,
            shown=format_power,
            because="a chip at rest; a wafer has 23 kW",
        ),
        "share": Plausible(
            least=1e-3,
            most=1.0,
            shown=format_share,
            because="no chip that trains is at a thousandth of its data sheet, none above it",
        ),
        "scale_up": _LINK,
        "rate": _LINK,
        "pcie": _LINK,
        "uplink_rate": _LINK,
        "latency": _WAIT,
        "startup": _WAIT,
        "turnaround": _WAIT,
        "transaction": Plausible(
            least=1.0,
            most=2 * GIB,
            shown=format_binary_bytes,
            because="a byte; the largest message of InfiniBand",
        ),
        "in_flight": Plausible(
            least=1,
            most=2**24,
            shown=_plain,
            because="packets are numbered in 24 bits",
        ),
        "buffer": Plausible(
            least=1 * KIB,
            most=TIB,
            shown=format_binary_bytes,
            because="less than a packet of 1.5 kB; deep-buffer switches have some GiB",
        ),
        "radix": Plausible(
            least=1,
            most=65_536,
            shown=_plain,
            because="switches have 1,024 ports at most in 2026",
        ),
        "links": Plausible(
            least=1,
            most=65_536,
            shown=_plain,
            because="a GPU's links have some hundred lanes in all",
        ),
        "switches": Plausible(
            least=0,
            most=1e6,
            shown=_plain,
            because="more than the GPUs of the largest cluster",
        ),
        "uplinks": Plausible(
            least=0,
            most=65_536,
            shown=_plain,
            because="switches have 1,024 ports at most in 2026",
        ),
        "planes": Plausible(
            least=1,
            most=1024,
            shown=_plain,
            because="a NIC's ports are split by lanes, 8 or 16",
        ),
        "oversubscription": Plausible(
            least=1,
            most=1000,
            shown=_plain,
            because="a leaf of 512 ports with one uplink has 511",
        ),
        "host": Plausible(
            least=10 * NS,
            most=1.0,
            shown=format_time,
            because="tens of cycles; a kernel takes 5 to 40 us",
        ),
        "step": Plausible(
            least=0.0,
            most=3600.0,
            shown=format_time,
            because="published steps have 10 to 60 ms",
        ),
        "spread": Plausible(
            least=0.005,
            most=3.0,
            shown=_plain,
            because="one job run twice differs by as much; twenty times what was measured",
        ),
        "nic": _LINK,
        "balance": Plausible(
            least=0.1,
            most=1e5,
            shown=lambda value: f"{_plain(value)} FLOP for each byte",
            because="vector machines had 1; a chip of 2026 has 300 in BF16, 5,000 in FP4",
        ),
    }
)
"""By the word of a figure's path in a file; where two files use one word, it is one thing."""

_DEGREE = Plausible(
    least=1, most=2**20, shown=_plain, because="ten times the GPUs of the largest cluster of 2026"
)
_WIDTH = Plausible(
    least=0, most=1e7, shown=_plain, because="a hundred times the widest layer published"
)

CELLS: Mapping[str, Plausible] = MappingProxyType(
    {
        "measured_step_s": Plausible(
            least=1e-4, most=1e6, shown=format_time, because="ten kernels; twelve days"
        ),
        "intra_bw_GBps": _LINK,
        "inter_bw_GBps_per_gpu": _NIC,
        "layers": Plausible(
            least=1, most=1e4, shown=_plain, because="the deepest transformer published has 1,000"
        ),
        **dict.fromkeys(("hidden", "ffn", "moe_ffn", "shared_expert_ffn", "head_dim"), _WIDTH),
        **dict.fromkeys(("n_gpus", "tp", "cp", "pp", "vpp", "dp", "ep", "etp"), _DEGREE),
        **dict.fromkeys(("gpus_per_node", "scaleup_domain"), _DEGREE),
        **dict.fromkeys(
            ("heads", "kv_heads", "n_experts", "topk"),
            Plausible(least=0, most=1e6, shown=_plain, because="the most published is a million"),
        ),
        **dict.fromkeys(
            ("vocab", "seq", "micro_batch", "global_batch"),
            Plausible(
                least=1, most=1e9, shown=_plain, because="a hundred times the most published"
            ),
        ),
    }
)
"""Of a table of runs, by column, in SI."""
