"""hwloc's XML of one machine to an ImportedFabric."""

from __future__ import annotations

from planner.errors import SpecError
from topologies.imported_fabric import ImportedFabric, ImportedHost
from topologies.xml_tree import xml_root

_MOST_GPUS = 256


def import_hwloc(text: str, name: str) -> ImportedFabric:
    """Return the machine in hwloc's XML: its GPUs, by PCI class; it knows no rates between them.

    Raises:
        SpecError: no XML, another kind of file, no GPU.
    """
    root = xml_root(text, name)
    if root.tag != "topology":
        raise SpecError(f"{name}: root <{root.tag[:40]}>: expected <topology>")
    gpus = sum(
        str(one.get("pci_type", "")).split(" ")[0] in {"0302", "1200"}
        for one in root.iter("object")
        if one.get("type") == "PCIDev"
    )
    if not 1 <= gpus <= _MOST_GPUS:
        raise SpecError(f"{name}: has {gpus} GPUs (PCI class 0302 or 1200): expected 1 or more")
    return ImportedFabric(
        name="machine",
        kind="hwloc",
        provenance=f"hwloc XML {name}",
        hosts=(ImportedHost(name="machine", gpus=gpus, supernode="machine"),),
        assumed={"supernode": "all GPUs of the machine: the file says nothing of their links"},
    )
