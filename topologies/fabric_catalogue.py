"""The clusters we ship, by name, the user's own by path, and the generic family."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import MappingProxyType

from planner.documents import read_document
from planner.errors import SpecError
from planner.fabric import Fabric
from planner.nodes import meant
from topologies.fabric_accelerators import CATALOGUE, load_accelerator, references
from topologies.fabric_graph import build_fabric
from topologies.fabric_reader import fabric_spec_from
from topologies.fabric_rebuild import REBUILT, rebuild
from topologies.fabric_spec import FabricSpec
from topologies.file_kinds import handed_as

__all__ = [
    "catalogue_names",
    "generic_cluster",
    "generic_fabric",
    "is_foreign",
    "is_shipped",
    "load_accelerator",
    "load_cluster",
    "load_spec",
]


@cache
def catalogue_names() -> tuple[str, ...]:
    """Return the names of the clusters we ship, sorted."""
    files = sorted(CATALOGUE.glob("*.yaml"))
    return tuple(f.stem for f in files if "\nsupernode:\n" in f.read_text(encoding="utf-8"))


def is_shipped(name_or_path: str) -> bool:
    """Return whether this names a cluster that we ship, or one of them rebuilt.

    >>> is_shipped("generic"), is_shipped("generic-sn72"), is_shipped("mine.yaml")
    (True, True, False)
    """
    return _with_size(name_or_path)[0] in catalogue_names()


def load_spec(
    name_or_path: str | Path, *, supernode: int | None = None, gpus: int | None = None
) -> FabricSpec:
    """Return the cluster *name_or_path* as filed, or rebuilt.

    Args:
        name_or_path: a name of the catalogue, also with the supernode's size as a rebuilt cluster
            is called (``generic-sn72``), or the path of a cluster file; a text with a ``/`` or a
            suffix is a path.
        supernode: GPUs of a full supernode, or None for the size in the name or the file.
        gpus: GPUs the job uses, or None for the filed number.

    Raises:
        SpecError: unknown name, or every fault of the file.

    >>> load_spec("generic-sn72").supernode.size, load_spec("hgx-h100-sn64", gpus=128).name
    (72, 'hgx-h100-sn64')
    """
    name, size = _with_size(str(name_or_path))
    with handed_as("cluster", name_or_path):
        return rebuild(_filed(name), supernode=size if supernode is None else supernode, gpus=gpus)


def load_cluster(
    name_or_path: str | Path, *, supernode: int | None = None, gpus: int | None = None
) -> Fabric:
    """Return the Fabric of a cluster; the arguments are those of ``load_spec``.

    The file may also be any that ``planner topology import`` reads, its options behind the name:
    see ``topologies.imported_cluster``.

    >>> load_cluster("cloudmatrix384").capacities("supernode")
    (384, 384, 256)
    """
    text = str(name_or_path)
    if is_foreign(text):
        from topologies.imported_cluster import imported_cluster  # noqa: PLC0415 - as below

        with handed_as("cluster", text):
            return imported_cluster(text, supernode=supernode, gpus=gpus)
    return build_fabric(load_spec(name_or_path, supernode=supernode, gpus=gpus))


def is_foreign(name_or_path: str) -> bool:
    """Return whether this names a file of another tool, or one with options behind its name.

    Raises:
        SpecError: the file cannot be read, or is of no kind.
    """
    if name_or_path in catalogue_names() or not _is_path(name_or_path):
        return False
    # Few runs need the importers, and they need this module.
    from topologies.imported_cluster import foreign_file  # noqa: PLC0415

    with handed_as("cluster", name_or_path):
        return foreign_file(name_or_path) is not None


def generic_fabric(supernode: int, gpus: int) -> FabricSpec:
    """Return the generic family's cluster: same accelerator, same network, whatever the size.

    >>> generic_fabric(5, 12).supernode.sizes
    (5, 5, 2)
    """
    return load_spec("generic", supernode=supernode, gpus=gpus)


def generic_cluster(supernode: int, gpus: int) -> Fabric:
    """Return the generic family's Fabric.

    >>> [round(t.bytes_per_s / 1e9) for t in generic_cluster(64, 1024).tiers]
    [450, 50]
    """
    return build_fabric(generic_fabric(supernode, gpus))


def _with_size(name_or_path: str) -> tuple[str, int | None]:
    """Return a name of the catalogue and the supernode's size behind it, None without one."""
    name, _, size = name_or_path.rpartition(REBUILT)
    if name in catalogue_names() and size.isascii() and size.isdecimal():
        return name, int(size)
    return name_or_path, None


def _filed(name_or_path: str) -> FabricSpec:
    if name_or_path in catalogue_names():
        return _from_catalogue(name_or_path)
    if not _is_path(name_or_path):
        names = catalogue_names()
        raise SpecError(
            f"unknown cluster {name_or_path[:128]!r}{meant(name_or_path, names)}: expected the "
            f"path of a file, or one of {', '.join(names)}"
        )
    if is_foreign(name_or_path):
        raise SpecError(
            f"{name_or_path}: is a cluster as another tool found it: it has no cluster file that "
            "could be rebuilt"
        )
    return fabric_spec_from(read_document(name_or_path), MappingProxyType({}))


def _is_path(text: str) -> bool:
    """Return whether *text* names a file rather than a cluster of the catalogue."""
    path = Path(text.split(",", 1)[0])
    return "/" in text or bool(path.suffix) or path.exists()


@cache
def _from_catalogue(name: str) -> FabricSpec:
    document = read_document(CATALOGUE / f"{name}.yaml", name=f"{name}.yaml")
    return fabric_spec_from(document, references())
