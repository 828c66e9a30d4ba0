"""The cluster of ``planner topology show`` and ``check`` where another tool's file describes it."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from planner.documents import read_bytes
from topologies.fabric_catalogue import is_foreign, load_cluster
from topologies.imported_cluster import split_options

if TYPE_CHECKING:
    from planner.fabric import Fabric


def foreign_fabric(name: str, supernode: int | None, gpus: int | None) -> Fabric | None:
    """Return the cluster of the foreign file *name*, or None where it is one of our own form."""
    if not is_foreign(name):
        return None
    return load_cluster(name, supernode=supernode, gpus=gpus)


def foreign_inputs(name: str, fabric: Fabric) -> dict[str, Any]:
    """Return every input after defaults, and the hash of the file."""
    return {
        "cluster": name,
        "supernode": fabric.full_supernode_gpus,
        "gpus": fabric.job_gpus,
        "file_sha256": sha256(read_bytes(split_options(name)[0])).hexdigest(),
    }
