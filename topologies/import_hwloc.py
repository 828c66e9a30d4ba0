"""hwloc's XML of one machine to an ImportedFabric."""

from __future__ import annotations

import re

from planner.errors import SpecError
from topologies.imported_fabric import ImportedFabric, ImportedHost
from topologies.pci_devices import accelerator_of, unknown_devices
from topologies.xml_tree import xml_root

_DEVICE = re.compile(r"\[[0-9a-fA-F]{4}:([0-9a-fA-F]{4})\]")
_MOST_GPUS = 256


def import_hwloc(text: str, name: str) -> ImportedFabric:
    """Return the machine in hwloc's XML: its GPUs, by PCI class; it knows no rates between them.

    Raises:
        SpecError: no XML, another kind of file, no GPU.
    """
    root = xml_root(text, name)
    if root.tag != "topology":
        raise SpecError(f"{name}: root <{root.tag[:40]}>: expected <topology>")
    types = [str(o.get("pci_type", "")) for o in root.iter("object") if o.get("type") == "PCIDev"]
    found = [one for one in types if one.split(" ")[0] in {"0302", "1200"}]
    gpus = len(found)
    if not 1 <= gpus <= _MOST_GPUS:
        raise SpecError(f"{name}: has {gpus} GPUs (PCI class 0302 or 1200): expected 1 or more")
    devices = [_device(one) for one in found]
    return ImportedFabric(
        name="machine",
        kind="hwloc",
        provenance=f"hwloc XML {name}",
        hosts=(ImportedHost(name="machine", gpus=gpus, supernode="machine"),),
        accelerator=accelerator_of(devices),
        findings=unknown_devices(devices, name),
        assumed={"supernode": "all GPUs of the machine: the file says nothing of their links"},
    )


def _device(pci_type: str) -> str:
    """Return the device in ``0302 [10de:2330] [10de:16c1] a1``, empty where there is none."""
    match = _DEVICE.search(pci_type)
    return match.group(1) if match else ""
