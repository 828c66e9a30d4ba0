"""The accelerator of a cluster as tables of steps name it: one that the catalogue need not have."""

from __future__ import annotations

from dataclasses import replace

from planner.fabric import Fabric
from topologies.efficiency_catalogue import Chip, efficiency_of, fitted_as


def chip_of(fabric: Fabric) -> Chip:
    """Return the accelerator of *fabric*, with the links and the NIC that the cluster gives it.

    Rows that name it run on the cluster's peaks, memory, scale-up domain and rates, but for what
    they state themselves. An accelerator of the catalogue keeps its fit.
    """
    accelerator, inner = fabric.accelerator, fabric.tier("supernode")
    gpus = max(len(domain.gpus) for domain in inner.domains)
    return Chip(
        name=accelerator.name,
        fitted_as=fitted_as(accelerator.name),
        accelerator=replace(accelerator, scale_up_bytes_per_s=inner.bytes_per_s),
        efficiency=efficiency_of(accelerator.name),
        nic_bytes_per_s=fabric.nic.line_bytes_per_s,
        mesh_gpus=gpus if inner.pair_bytes_per_s < inner.bytes_per_s else 0,
        domain_gpus=gpus,
    )
