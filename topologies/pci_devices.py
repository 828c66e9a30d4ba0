"""PCI devices to the accelerators of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable

DEVICES = {
    "0x1db5": "V100-SXM2-32", "0x20b0": "A100-SXM-40", "0x20b2": "A100-SXM-80",
    "0x2324": "H800-SXM", "0x2329": "H20", "0x2330": "H100-SXM", "0x2335": "H200-SXM",
    "0x2901": "B200-SXM", "0x2941": "GB200", "0x31c2": "GB300", "0x31c3": "GB300",
    "0x74a1": "MI300X", "0x74a5": "MI325X",
}  # fmt: skip
"""PCI device to its name in the catalogue: the PCI ID repository."""


def accelerator_of(devices: Iterable[str]) -> str:
    """Return what all *devices* are in the catalogue, empty where they differ or are unknown.

    Args:
        devices: PCI device numbers, e.g. ``0x2330`` or ``2330``.

    >>> accelerator_of(["0x2330", "2330"])
    'H100-SXM'
    """
    kinds = {DEVICES.get(f"0x{one.lower().removeprefix('0x')}", "") for one in devices}
    return kinds.pop() if len(kinds) == 1 else ""
