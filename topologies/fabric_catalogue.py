"""The clusters we ship, by name, and the generic family."""

from __future__ import annotations

from types import MappingProxyType

from planner.errors import SpecError
from planner.fabric import Accelerator, Fabric, Nic
from planner.units import GB, KIB, TFLOPS, US
from topologies.fabric_graph import build_fabric
from topologies.fabric_rebuild import rebuild
from topologies.fabric_spec import ClosSpec, FabricSpec, SupernodeSpec, SwitchTierSpec


def load_accelerator(name: str) -> Accelerator:
    """Return the accelerator called *name*."""
    if name != "H100-SXM":
        raise SpecError(f"unknown accelerator {name!r}")
    return Accelerator(
        name=name,
        peak_flops_per_s=MappingProxyType({"bf16": 989 * TFLOPS, "fp16": 989 * TFLOPS, "fp8": 1979 * TFLOPS}),
        memory_bytes=80 * GB,
        memory_bytes_per_s=3350 * GB,
        efficiency_share=MappingProxyType({"bf16": 0.80, "fp16": 0.80, "fp8": 0.71}),
        memory_efficiency_share=0.9,
        power_w=700,
        scale_up_bytes_per_s=450 * GB,
    )


def generic_fabric(supernode: int, gpus: int) -> FabricSpec:
    """Return the generic family's cluster: only the supernode size differs."""
    spec = FabricSpec(
        name="generic",
        accelerator=load_accelerator("H100-SXM"),
        supernode=SupernodeSpec(
            sizes=(8,) * 128, size=8, kind="switched", bytes_per_s=450 * GB, latency_s=3.33 * US,
            links=18, board_gpus=8, switches=4, in_network_reduction=True,
        ),
        nic=Nic(line_bytes_per_s=50 * GB, in_flight=8, transaction_bytes=512 * KIB, turnaround_s=20 * US),
        endpoint_latency_s=2.35 * US,
        pcie_bytes_per_s=63 * GB,
        network=ClosSpec(
            rails=1, planes=1, spine_scope="shared",
            leaf=SwitchTierSpec(radix=128, hop_latency_s=0.225 * US, holds=64, uplinks=64, uplink_bytes_per_s=50 * GB),
            spine=SwitchTierSpec(radix=128, hop_latency_s=0.45 * US),
            core=SwitchTierSpec(radix=128, hop_latency_s=0.45 * US),
        ),
        network_label="fat_tree",
        job_gpus=1024,
        levels=("cluster",),
    )
    return rebuild(spec, supernode=supernode, gpus=gpus)


def generic_cluster(supernode: int, gpus: int) -> Fabric:
    """Return the generic family's Fabric."""
    return build_fabric(generic_fabric(supernode, gpus))


def catalogue_names() -> tuple[str, ...]:
    """Return the names of the clusters we ship."""
    return ("generic",)


def load_cluster(
    name_or_path: str, *, supernode: int | None = None, gpus: int | None = None
) -> Fabric:
    """Return a cluster of the catalogue, by name."""
    if name_or_path != "generic":
        raise SpecError(f"unknown cluster {name_or_path!r}")
    return build_fabric(rebuild(generic_fabric(8, 1024), supernode=supernode, gpus=gpus))
