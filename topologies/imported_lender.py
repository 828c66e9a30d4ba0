"""What a cluster lends to a file that does not say it: of the catalogue, or of another file."""

from __future__ import annotations

from planner.errors import SpecError
from planner.fabric import Fabric
from topologies.fabric_catalogue import is_foreign, is_shipped, load_cluster, load_spec
from topologies.fabric_network_spec import ClosSpec
from topologies.fabric_spec import FabricSpec
from topologies.imported_fabric import Lender


def lender(name: str) -> Lender:
    """Return what the cluster *name* lends: a name or a file, as ``--cluster`` takes it.

    Raises:
        SpecError: there is none, or its file is faulty or has no network.

    >>> lender("hgx-h100").words
    'as hgx-h100 of the catalogue'
    """
    if is_foreign(name):
        return _of_fabric(load_cluster(name), f"as the file {name.partition(',')[0]} has it")
    spec = load_spec(name)
    known = is_shipped(name)
    return _of_spec(spec, f"as {name} of the catalogue" if known else f"as the file {name} has it")


def _of_spec(spec: FabricSpec, words: str) -> Lender:
    clos = spec.network if isinstance(spec.network, ClosSpec) else None
    share = 1.0
    if clos is not None and clos.spine is not None:
        down = clos.leaf.holds * spec.nic.line_bytes_per_s / clos.planes
        share = min(1.0, clos.leaf.uplinks * clos.leaf.uplink_bytes_per_s / down)
    return Lender(
        words=words,
        accelerator=spec.accelerator,
        nic=spec.nic,
        board_gpus=spec.supernode.board_gpus,
        scale_up_bytes_per_s=spec.supernode.bytes_per_s,
        scale_up_latency_s=spec.supernode.latency_s,
        endpoint_latency_s=spec.endpoint_latency_s,
        hop_latency_s=spec.endpoint_latency_s / 4 if clos is None else clos.leaf.hop_latency_s,
        leaf_uplink_share=share,
        in_network_reduction=spec.supernode.in_network_reduction,
    )


def _of_fabric(fabric: Fabric, words: str) -> Lender:
    inner, *outer = fabric.tiers
    kinds = fabric.graph.nodes(data="kind")
    waits = {
        "gpu" in (kinds[a], kinds[b]): float(edge["latency_s"])
        for a, b, edge in fabric.graph.edges(data=True)
        if "nic" in (kinds[a], kinds[b])
    }
    if len(waits) < 2 or not outer:
        raise SpecError(f"{fabric.name}: has no network, so that it lends no rates")
    first = outer[0].domains[0]
    below = len(first.gpus) * fabric.nic.line_bytes_per_s
    return Lender(
        words=words,
        accelerator=fabric.accelerator,
        nic=fabric.nic,
        board_gpus=max(len(host.gpus) for host in fabric.hosts),
        scale_up_bytes_per_s=inner.bytes_per_s,
        scale_up_latency_s=inner.latency_s,
        endpoint_latency_s=2 * waits[True],
        hop_latency_s=waits[False],
        leaf_uplink_share=min(1.0, first.uplink_bytes_per_s / below) if len(outer) > 1 else 1.0,
        in_network_reduction=inner.in_network_reduction,
        assumed=frozenset(fabric.assumed),
    )
