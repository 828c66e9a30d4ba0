"""One cluster with another supernode size or another number of GPUs, all else equal."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from types import MappingProxyType

from planner.errors import SpecError
from planner.words import counted
from topologies.fabric_network_spec import ClosSpec, MeshSpec, Network, TorusSpec
from topologies.fabric_spec import MOST_GPUS, FabricSpec, SupernodeSpec

REBUILT = "-sn"
"""Between a cluster's name and the size that its supernodes were rebuilt to."""


def rebuild(
    spec: FabricSpec, *, supernode: int | None = None, gpus: int | None = None
) -> FabricSpec:
    """Return *spec* with supernodes of *supernode* GPUs and a job of *gpus*.

    Full supernodes and one partial one, which is all there is where the job is smaller than a
    supernode; a cluster with spares keeps whole supernodes. Per GPU, every rate stays: a mesh
    shares the same total over more or fewer neighbours.

    Args:
        spec: the cluster as filed.
        supernode: GPUs of a full supernode, or None for the filed size.
        gpus: GPUs the job uses, or None for the filed number.

    Raises:
        SpecError: supernode or gpus below 1 or too large, or a torus that does not tile.
    """
    if supernode is None and gpus is None:
        return spec
    faults = [
        f"{name}={value}: expected 1 to {MOST_GPUS:,}"
        for name, value in (("supernode", supernode), ("gpus", gpus))
        if value is not None and not 1 <= value <= MOST_GPUS
    ]
    total = spec.job_gpus if gpus is None else gpus
    if faults:
        raise SpecError(*faults)
    name = spec.name if supernode is None else f"{spec.name}{REBUILT}{supernode}"
    if supernode in (None, spec.supernode.size) and total == spec.job_gpus:
        return spec if supernode is None else replace(spec, name=name)  # spares and all
    assumed = dict(spec.assumed)
    size = spec.supernode.size
    if supernode is not None and supernode != size:
        assumed["supernode.size"] = f"rebuilt from the filed {size} GPUs to {supernode}"
        size = supernode
    if total != spec.job_gpus:
        assumed["gpus"] = f"rebuilt from the filed {spec.job_gpus} GPUs to {total}"
    sizes = _sizes(spec, size, total)
    dropped = spec.supernode.gpus - sum(sizes)
    if _has_spares(spec) and dropped > 0:
        assumed["supernode.count"] = (
            f"{counted(len(sizes), 'supernode')} of {size}, which {total:,} GPUs need: {dropped:,} "
            f"of the {spec.supernode.gpus:,} GPUs that are filed are left out"
        )
    scale_up = _resized(spec.supernode, size, sizes, assumed)
    return replace(
        spec,
        name=name,
        supernode=scale_up,
        network=_refitted(spec.network, scale_up),
        job_gpus=total,
        assumed=MappingProxyType(assumed),
    )


def _sizes(spec: FabricSpec, size: int, total: int) -> tuple[int, ...]:
    """Return full supernodes and a partial one, or whole ones only where there are spares."""
    full, rest = divmod(total, size)
    return (size,) * full + ((size if _has_spares(spec) else rest,) if rest else ())


def _has_spares(spec: FabricSpec) -> bool:
    """Return whether the cluster as filed has GPUs that work and that its job leaves idle."""
    return spec.job_gpus < spec.supernode.gpus - len(spec.dead.gpus)


def _resized(
    spec: SupernodeSpec, size: int, sizes: tuple[int, ...], assumed: dict[str, str]
) -> SupernodeSpec:
    """Return the scale-up domains with other sizes, per-GPU rates kept."""
    if size == spec.size:
        return replace(spec, sizes=_whole_or_refused(spec, size, sizes))
    board = min(spec.board_gpus, size)
    if spec.kind == "torus":
        dims = even_factors(size, len(spec.dims))
        assumed["supernode.dims"] = f"{size} GPUs as {'x'.join(map(str, dims))}"
        sizes = _whole_or_refused(spec, size, sizes)
        return replace(spec, size=size, sizes=sizes, dims=dims, board_gpus=board)
    if spec.kind == "mesh_2d" and size <= spec.board_gpus:
        assumed["supernode.kind"] = f"{size} GPUs fit on one board: a full mesh"
        return replace(
            spec,
            size=size,
            sizes=sizes,
            kind="full_mesh",
            bytes_per_s=spec.board_bytes_per_s,
            latency_s=spec.board_latency_s,
            board_gpus=board,
            board_bytes_per_s=0.0,
            board_latency_s=0.0,
        )
    if spec.kind in {"full_mesh", "mesh_2d"}:
        assumed["supernode.rate"] = "a GPU's total is kept and shared over its new neighbours"
        return replace(spec, size=size, sizes=sizes, board_gpus=board)
    switches = max(1, -(-spec.switches * size // spec.size))
    assumed["supernode.switches"] = f"{switches}, in proportion to the GPUs of a supernode"
    return replace(spec, size=size, sizes=sizes, switches=switches, board_gpus=board)


def _whole_or_refused(spec: SupernodeSpec, size: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return *sizes*, or refuse a partial torus with the nearest numbers of GPUs that tile."""
    total, full = sum(sizes), len([s for s in sizes if s == size])
    if spec.kind == "torus" and total != full * size:
        below = f"{full * size} or " if full else ""
        raise SpecError(
            f"{total} GPUs do not fill torus supernodes of {size}: "
            f"expected {below}{(full + 1) * size} GPUs"
        )
    return sizes


def even_factors(number: int, axes: int) -> tuple[int, ...]:
    """Return *axes* factors of *number*, as near to each other as they can be, largest first.

    >>> even_factors(64, 3), even_factors(16, 2), even_factors(14, 2)
    ((4, 4, 4), (4, 4), (7, 2))
    """
    if axes == 1:
        return (number,)
    found = [
        (d, *even_factors(number // d, axes - 1)) for d in range(1, number + 1) if number % d == 0
    ]
    return min((tuple(sorted(f, reverse=True)) for f in found), key=lambda f: (max(f), sum(f)))


def _refitted(network: Network, supernode: SupernodeSpec) -> Network:
    """Return the network for the new number of supernodes."""
    boxes = len(supernode.sizes)
    if isinstance(network, ClosSpec):
        return replace(network, rails=min(network.rails, supernode.board_gpus))
    if isinstance(network, MeshSpec) and prod(network.dims) != boxes:
        return replace(network, dims=even_factors(boxes, len(network.dims)))
    if isinstance(network, TorusSpec) and prod(network.dims) != boxes:
        return replace(network, dims=even_factors(boxes, len(network.dims)))
    return network
