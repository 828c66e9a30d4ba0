"""PCI devices to the accelerators of the catalogue."""

from __future__ import annotations

from collections.abc import Collection

from topologies.imported_fabric import ImportFinding

DEVICES = {
    "0x1db5": "V100-SXM2-32", "0x20b0": "A100-SXM-40", "0x20b2": "A100-SXM-80",
    "0x2324": "H800-SXM", "0x2329": "H20", "0x2330": "H100-SXM", "0x2335": "H200-SXM",
    "0x2342": "GH200", "0x2901": "B200-SXM", "0x2941": "GB200", "0x31c2": "GB300",
    "0x31c3": "GB300", "0x74a1": "MI300X", "0x74a5": "MI325X",
}  # fmt: skip
"""PCI device to its name in the catalogue: the PCI ID repository."""
_OTHERS = {"0x74a0": "MI300A", "0x20f1": "A100 PCIe", "0x2331": "H100 PCIe"}
"""Devices that the catalogue has not, by name, from the same source."""


def accelerator_of(devices: Collection[str]) -> str:
    """Return what all *devices* are in the catalogue, empty where they differ or are unknown.

    Args:
        devices: PCI device numbers, e.g. ``0x2330`` or ``2330``.

    >>> accelerator_of(["0x2330", "2330"])
    'H100-SXM'
    """
    kinds = {DEVICES.get(_spelled(one), "") for one in devices}
    return kinds.pop() if len(kinds) == 1 else ""


def unknown_devices(devices: Collection[str], where: str) -> tuple[ImportFinding, ...]:
    """Return a warning where the file names its GPUs' devices, and the catalogue has none such.

    >>> [one.message[:45] for one in unknown_devices(["0x74a0", "0x74a0"], "topo.xml")]
    ['GPUs are PCI device 0x74a0 (MI300A), which is']
    """
    named = sorted({_spelled(one) for one in devices if one})
    if not named or accelerator_of(devices):
        return ()
    shown = ", ".join(f"{one} ({_OTHERS[one]})" if one in _OTHERS else one for one in named[:4])
    message = (
        f"GPUs are PCI device {shown}, which is no one accelerator of the catalogue: peaks and "
        "memory are those of the lending cluster unless --accelerator names another"
    )
    return (ImportFinding(severity="warning", where=where, message=message),)


def _spelled(device: str) -> str:
    digits = device.lower().removeprefix("0x")[:8]
    return f"0x{''.join(c if c in '0123456789abcdef' else '?' for c in digits)}"
