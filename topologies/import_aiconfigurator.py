"""aiconfigurator's system YAML to an ImportedFabric."""

from __future__ import annotations

from planner.documents import document_from_text
from planner.nodes import Node
from topologies.accelerator_figures import AcceleratorFigures, said_of
from topologies.imported_fabric import ImportedFabric, ImportedHost, ImportedLink

_MOST_GPUS = 1024
_FASTEST_BYTES_PER_S = 1e15


def import_aiconfigurator(text: str | bytes, name: str) -> ImportedFabric:
    """Return the system: its rack is the supernode where it has one, else its node.

    Rates are bytes/s of one GPU, one direction. The file says nothing of how many nodes there are:
    as many as hold 1024 GPUs are taken, and whole racks.

    Raises:
        SpecError: every fault, with its line.
    """
    document = document_from_text(text, name=name)
    node = document.root.map("node")
    per_node = node.count("num_gpus_per_node", maximum=_MOST_GPUS)
    per_rack = node.count("num_gpus_per_rack", default=per_node, maximum=2**16)
    inside = node.number("intra_node_bw", minimum=1.0, maximum=_FASTEST_BYTES_PER_S)
    across = node.number("inter_node_bw", minimum=1.0, maximum=_FASTEST_BYTES_PER_S)
    racked = per_rack > per_node
    if per_rack % per_node:
        node.fault(f"expected a multiple of the {per_node} GPUs of a node", key="num_gpus_per_rack")
    if racked:
        inside = min(inside, across)
        across = node.number("inter_rack_bw", minimum=1.0, maximum=_FASTEST_BYTES_PER_S)
    start_s = node.number("p2p_latency", default=0.0, minimum=0.0, maximum=1.0)
    racks_s = node.number("inter_rack_latency", default=start_s, minimum=0.0, maximum=1.0)
    chip = _figures(document.root, inside)
    document.finish()
    racks = max(1, -(-_MOST_GPUS // per_rack))
    hosts = [
        ImportedHost(
            name=f"rack{r:03d}-node{n:02d}" if racked else f"node{r:03d}",
            gpus=per_node,
            supernode=f"rack{r:03d}" if racked else f"node{r:03d}",
        )
        for r in range(racks)
        for n in range(per_rack // per_node)
    ]
    return ImportedFabric(
        name="aiconfigurator",
        kind="aiconfigurator",
        provenance=f"aiconfigurator system {name}",
        hosts=tuple(hosts),
        switches=("network",) if racks > 1 else (),
        links=tuple(
            ImportedLink(a=h.name, b="network", links=per_node, bytes_per_s=across * per_node)
            for h in hosts
            if racks > 1
        ),
        scale_up_bytes_per_s=inside,
        scale_up_latency_s=start_s or None,
        nic_bytes_per_s=across if racks > 1 else None,
        scale_out_latency_s=racks_s or None,
        accelerator=chip.nearest(),
        assumed={
            "gpus": f"{racks * per_rack}: the file does not say how many nodes there are",
            **said_of(chip),
        },
    )


def _figures(root: Node, scale_up_bytes_per_s: float) -> AcceleratorFigures:
    """Return what the file says of a GPU."""
    gpu = root.optional("gpu")
    said = gpu is not None and gpu.kind == "map"
    peak, size, rate = (
        gpu.number(key, default=0.0, minimum=0.0, maximum=1e18) if gpu is not None and said else 0.0
        for key in ("bfloat16_tc_flops", "mem_capacity", "mem_bw")
    )
    return AcceleratorFigures(
        peak_16_bit_flops_per_s=peak,
        memory_bytes=size,
        memory_bytes_per_s=rate,
        scale_up_bytes_per_s=scale_up_bytes_per_s,
    )
