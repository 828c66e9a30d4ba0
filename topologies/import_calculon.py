"""Calculon's system JSON to an ImportedFabric."""

from __future__ import annotations

from planner.documents import document_from_text
from planner.nodes import Node
from topologies.accelerator_figures import AcceleratorFigures, said_of
from topologies.imported_fabric import ImportedFabric, ImportedHost, ImportedLink

_MOST_GPUS = 1024


def import_calculon(text: str | bytes, name: str) -> ImportedFabric:
    """Return the system: its first network is the supernode, its last joins supernodes.

    The file says how many processors a network may have, not how many there are: 1024 are taken,
    or as many as it may have.

    Raises:
        SpecError: every fault, with its line.
    """
    document = document_from_text(text, name=name, kind="json")
    root = document.root
    if root.kind != "map":
        root.fault("expected a Calculon system: a mapping with networks")
        document.finish()
    nets = []
    for item in root.list("networks"):
        if item.kind != "map":
            item.fault("expected a network")
            continue
        nets.append(
            (
                item.number("bandwidth", minimum=1e-6, maximum=1e9),
                item.count("size", maximum=2**30),
                item.number("latency", minimum=0, maximum=1e3),
            )
        )
    if not nets:
        root.fault("expected one network at least")
    chip = _figures(root, nets[0][0] * 1e9 if nets else 0.0)
    document.finish()
    (rate, size, wait), (out_rate, most, out_wait) = nets[0], nets[-1]
    total = min(most, _MOST_GPUS) if len(nets) > 1 else size
    hosts = max(1, total // size)
    names = [f"sn{i:02d}" for i in range(hosts)]
    return ImportedFabric(
        name="calculon",
        kind="calculon",
        provenance=f"Calculon system {name}",
        hosts=tuple(ImportedHost(name=n, gpus=size, supernode=n) for n in names),
        switches=("network",) if hosts > 1 else (),
        links=tuple(
            ImportedLink(a=n, b="network", bytes_per_s=out_rate * 1e9 * size)
            for n in names
            if hosts > 1
        ),
        scale_up_bytes_per_s=rate * 1e9,
        scale_up_latency_s=wait,
        nic_bytes_per_s=out_rate * 1e9 if hosts > 1 else None,
        scale_out_latency_s=out_wait if hosts > 1 and out_wait > 0 else None,
        accelerator=chip.nearest(),
        assumed={
            "gpus": f"{hosts * size}: the file says only that it may have {most}",
            **said_of(chip),
        },
    )


def _figures(root: Node, scale_up_bytes_per_s: float) -> AcceleratorFigures:
    """Return what the file says of a processor."""
    return AcceleratorFigures(
        peak_16_bit_flops_per_s=_number(root, ("matrix", "float16"), "tflops") * 1e12,
        memory_bytes=_number(root, ("mem1",), "GiB") * 2**30,
        memory_bytes_per_s=_number(root, ("mem1",), "GBps") * 1e9,
        scale_up_bytes_per_s=scale_up_bytes_per_s,
    )


def _number(node: Node, path: tuple[str, ...], key: str) -> float:
    """Return the number *key* of the mapping at *path*, 0 where there is none."""
    at: Node | None = node
    for one in path:
        at = at.optional(one) if at is not None and at.kind == "map" else None
    if at is None or at.kind != "map":
        return 0.0
    return at.number(key, default=0.0, minimum=0.0, maximum=1e9)
