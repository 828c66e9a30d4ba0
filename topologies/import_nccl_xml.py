"""NCCL's and RCCL's topology XML of one machine to an ImportedFabric."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from planner.errors import SpecError
from topologies.imported_fabric import ImportedFabric, ImportedHost, ImportFinding
from topologies.imported_links import NO_SCALE_UP
from topologies.pci_devices import accelerator_of, unknown_devices
from topologies.xml_tree import xml_root

_NVLINK_BYTES_PER_S = {70: 25e9, 80: 25e9, 90: 25e9, 100: 50e9, 103: 50e9}
"""One link, one direction, by compute capability: NVLink 2 to 5."""
_MOST_GPUS = 256
_MBIT = re.compile(r"[0-9]{1,12}")


def import_nccl_xml(text: str, name: str) -> ImportedFabric:
    """Return the machine in a topology file: GPUs, NVLinks, adapters.

    Files made for virtual machines name devices by PCI class only. PCIe rates in such a file are
    not used: virtual bridges report 2.5 GT/s x1.

    Raises:
        SpecError: no XML, another kind of file, no GPU.
    """
    root = xml_root(text, name)
    if root.tag != "system":
        raise SpecError(f"{name}: root <{root.tag[:40]}>: expected <system>")
    findings: list[ImportFinding] = []
    gpus = [p for p in root.iter("pci") if _is_gpu(p)]
    if not 1 <= len(gpus) <= _MOST_GPUS:
        raise SpecError(f"{name}: has {len(gpus)} GPUs: expected 1 to {_MOST_GPUS}")
    scale_up = _scale_up(gpus, name, findings)
    nic = _nic(root, len(gpus), name, findings)
    devices = [str(p.get("device", "")) for p in gpus]
    findings += unknown_devices(devices, name)
    hosts = _hosts(root)
    if len(hosts) == 1 and root.find(".//c2c") is not None and root.find(".//nvlink") is not None:
        message = (
            "GPUs with C2C links are in racks whose NVLink joins machines, of which the file says "
            "nothing: each machine is taken for a supernode; gb200-nvl72 has the racks"
        )
        findings.append(ImportFinding(severity="warning", where=name, message=message))
    return ImportedFabric(
        name="machine",
        kind="nccl-xml",
        provenance=f"NCCL topology XML {name}",
        hosts=hosts,
        scale_up_bytes_per_s=scale_up,
        no_scale_up=NO_SCALE_UP if _only_pcie(gpus) else "",
        nic_bytes_per_s=nic,
        accelerator=accelerator_of(devices),
        findings=tuple(findings),
    )


def _hosts(root: Any) -> tuple[ImportedHost, ...]:
    """Return the machines with GPUs; several where NVLink joins them and NCCL writes them as one.

    NCCL tells them apart by ``host_hash`` of their processors.
    """
    gpus: Counter[str] = Counter()
    for cpu in root.iter("cpu"):
        gpus[str(cpu.get("host_hash", ""))] += sum(map(_is_gpu, cpu.iter("pci")))
    held = [count for count in gpus.values() if count]
    if len(held) < 2:
        total = sum(map(_is_gpu, root.iter("pci")))
        return (ImportedHost(name="machine", gpus=total, supernode="machine"),)
    return tuple(
        ImportedHost(name=f"machine{number}", gpus=count, supernode="machines")
        for number, count in enumerate(held, 1)
    )


def _is_gpu(pci: Any) -> bool:
    kind = str(pci.get("class", ""))
    return kind.startswith(("0x0302", "0x1200")) or pci.find("gpu") is not None


def _only_pcie(gpus: list[Any]) -> bool:
    """Return whether NCCL saw the GPUs themselves, and no links of theirs."""
    seen = [gpu for pci in gpus if (gpu := pci.find("gpu")) is not None]
    linked = any(
        str(link.get("count", "")) != "0"
        for gpu in seen
        for tag in ("nvlink", "xgmi", "c2c")
        for link in gpu.iter(tag)
    )
    return len(seen) > 1 and not linked


def _scale_up(gpus: list[Any], name: str, findings: list[ImportFinding]) -> float | None:
    """Return what one GPU's NVLinks carry, none where the file does not say."""
    counts: list[int] = []
    kinds: set[str] = set()
    for pci in gpus:
        gpu = pci.find("gpu")
        total = 0
        for link in [] if gpu is None else [*gpu.iter("nvlink"), *gpu.iter("xgmi")]:
            text = str(link.get("count", ""))
            if not (text.isascii() and text.isdigit() and len(text) < 4):
                raise SpecError(f"{name}: <{link.tag} count={text[:20]!r}>: expected a number")
            total += int(text)
        counts.append(total)
        kinds.add("" if gpu is None else str(gpu.get("sm", "")))
    if not any(counts):
        message = "says nothing of links between GPUs"
        findings.append(ImportFinding(severity="note", where=name, message=message))
        return None
    usual = Counter(counts).most_common(1)[0][0]
    for pci, count in zip(gpus, counts, strict=True):
        if count != usual:
            bus = re.sub(r"[^0-9a-fA-F:.]", "?", str(pci.get("busid", ""))[:20])
            message = f"GPU {bus} has {count} links to other GPUs, most have {usual}"
            findings.append(ImportFinding(severity="warning", where=name, message=message))
    sm = kinds.pop() if len(kinds) == 1 else ""
    one = (
        _NVLINK_BYTES_PER_S.get(int(sm)) if sm.isascii() and sm.isdigit() and len(sm) < 4 else None
    )
    least = min(count for count in counts if count)
    return one * least if one else None


def _nic(root: Any, gpus: int, name: str, findings: list[ImportFinding]) -> float | None:
    """Return one GPU's share of the adapters' rate, none where it is not said or cannot be.

    Where any adapter is below the same PCIe switch as a GPU, those that are not are for storage or
    management: a DGX A100 has ten adapters, eight of them beside its GPUs.
    """
    sockets = sum(map(_is_socket, root.iter("net")))
    if sockets:
        message = f"{sockets} interfaces are TCP sockets to NCCL, whose rate it guesses: left out"
        findings.append(ImportFinding(severity="warning", where=name, message=message))
    nets: dict[tuple[str, str], int] = {}
    beside: dict[tuple[str, str], int] = {}
    for cpu in list(root.iter("cpu")) or [root]:
        host = str(cpu.get("host_hash", ""))
        nets |= _nets(cpu, host, name)
        for pci in cpu.iterfind("pci"):
            if any(_is_gpu(inner) for inner in pci.iter("pci")):
                beside |= _nets(pci, host, name)
    used = beside or nets
    if not used:
        return None
    if len(used) < len(nets):
        message = (
            f"{len(nets) - len(used)} of {len(nets)} adapters are on no PCIe switch with a GPU: "
            "left out, as for storage or management"
        )
        findings.append(ImportFinding(severity="warning", where=name, message=message))
    if wrong := [speed for speed in used.values() if not 10_000 <= speed <= 1_600_000]:
        message = f"an adapter of {wrong[0]} Mb/s: expected 10,000 to 1,600,000; not used"
        findings.append(ImportFinding(severity="warning", where=name, message=message))
        return None
    if len(used) != gpus:
        message = f"{len(used)} adapters for {gpus} GPUs: each has its share of all"
        findings.append(ImportFinding(severity="note", where=name, message=message))
    return sum(used.values()) * 1e6 / 8 / gpus


def _is_socket(net: Any) -> bool:
    """Return whether NCCL would send over TCP: its sockets have port 0, adapters 1 or more."""
    return str(net.get("port", "")) == "0"


def _nets(element: Any, host: str, name: str) -> dict[tuple[str, str], int]:
    """Return the rate of each adapter's port inside *element* by *host* and its name [Mb/s]."""
    nets: dict[tuple[str, str], int] = {}
    for net in element.iter("net"):
        text, label = str(net.get("speed", "")), str(net.get("name", ""))
        if not _MBIT.fullmatch(text):
            raise SpecError(f"{name}: <net speed={text[:20]!r}>: expected Mb/s")
        if not _is_socket(net):
            nets[host, label] = int(text)
    return nets
