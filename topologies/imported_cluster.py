"""``--cluster`` with a foreign file: ``FILE[,OPTION[=VALUE]]...`` to a Fabric.

The options are those of ``planner topology import``; they stand behind the file's name, so that
each of several clusters that are compared has its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.documents import read_bytes
from planner.errors import SpecError
from planner.fabric import Fabric
from planner.nodes import meant
from topologies.fabric_import import (
    DEFAULT_LIKE,
    ImportAsked,
    fabric_of,
    import_fabric_text,
    recognised,
)
from topologies.imported_fabric import ImportedFabric

_OWN = re.compile(rb'^(?:supernode[ \t]*:|[ \t{]*"supernode"[ \t]*:)', re.MULTILINE)
_OUR_KEYS = re.compile(rb'^[ \t{]*"?(?:accelerator|nic|network|gpus)"?[ \t]*:', re.MULTILINE)
_LENT = re.compile(r"\b(as (?:\S+ of the catalogue|the file .+? has it))")
_MOST_GPUS_PER_NODE = 1024
_LARGEST_OWN_BYTES = 2**20
_SHOWN = 5


def _text(key: str, value: str) -> str:
    if not value:
        raise SpecError(f"{key}: expected {key}=NAME")
    return value


def _count(key: str, value: str) -> int:
    good = value.isascii() and value.isdigit() and len(value) < 8
    most = _MOST_GPUS_PER_NODE if key == "gpus-per-node" else 2**17
    if not good or not 1 <= int(value) <= most:
        raise SpecError(f"{key}={value[:20]}: expected a whole number from 1 to {most}")
    return int(value)


def _path(key: str, value: str) -> Path:
    return Path(_text(key, value))


def _flag(key: str, value: str) -> bool:
    if value:
        raise SpecError(f"{key}={value[:20]}: takes no value")
    return True


# Behind a file's name: the field of ImportAsked, and how its value is read.
OPTIONS: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "rates-from": ("like", _text),
    "gpus-per-node": ("gpus_per_host", _count),
    "machines": ("machines", _count),
    "accelerator": ("accelerator", _text),
    "links": ("links", _path),
    "format": ("format", _text),
    "topology": ("topology", _text),
    "blocks-scale-up": ("blocks_scale_up", _flag),
    "join": ("join", _flag),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFile:
    """A file of another tool that describes a cluster.

    Args:
        path: of the file.
        content: its bytes.
        asked: how it is to be read.
    """

    path: Path
    content: bytes
    asked: ImportAsked


def split_options(text: str) -> tuple[str, ImportAsked | None]:
    """Return the file's name in *text*, and the options behind it where there are any.

    Raises:
        SpecError: every option that is none.

    >>> name, asked = split_options("topology.conf,gpus-per-node=8,rates-from=hgx-h100")
    >>> name, asked.gpus_per_host, asked.like
    ('topology.conf', 8, 'hgx-h100')
    """
    name, *words = text.split(",")
    if not words or Path(text).exists():
        return text, None
    found: dict[str, Any] = {}
    faults = []
    for word in words:
        key, _, value = word.partition("=")
        if key not in OPTIONS:
            near = meant(key, tuple(OPTIONS))
            faults.append(f"{name}: unknown option {key[:40]!r} behind the file's name{near}")
            continue
        field, read = OPTIONS[key]
        if field in found:
            faults.append(f"{name}: option {key} is given twice")
        try:
            found[field] = read(key, value)
        except SpecError as error:
            faults += [f"{name}: {fault}" for fault in error.faults]
    if faults:
        raise SpecError(*faults)
    return name, ImportAsked(**found)


def foreign_file(text: str) -> ForeignFile | None:
    """Return the foreign file that *text* names, or None where it is a cluster file of ours.

    Raises:
        SpecError: the file cannot be read, is of no kind, or an option is none.
    """
    name, asked = split_options(text)
    path = Path(name)
    content = read_bytes(path)
    if asked is None or not asked.format:
        if _OWN.search(content, 0, _LARGEST_OWN_BYTES):
            if len(content) > _LARGEST_OWN_BYTES:
                raise SpecError(
                    f"{name}: has {len(content):,} bytes: expected at most "
                    f"{_LARGEST_OWN_BYTES:,} of a cluster file"
                )
            if asked is not None:
                raise SpecError(
                    f"{name}: says all of a cluster itself: options are for other files"
                )
            return None
        try:
            recognised(content, name)
        except SpecError:
            if asked is None and _OUR_KEYS.search(content, 0, _LARGEST_OWN_BYTES):
                return None  # its reader names what is missing
            raise
    return ForeignFile(path=path, content=content, asked=asked or ImportAsked())


def imported_cluster(text: str, *, supernode: int | None = None, gpus: int | None = None) -> Fabric:
    """Return the Fabric of the foreign file that *text* names.

    Args:
        text: the file's name, its options behind it.
        supernode: GPUs of a machine where neither file nor options say it; else what the
            supernodes must have, since a real cluster is not rebuilt.
        gpus: GPUs of the job, the rest of the cluster being spare; none for all of them.

    Raises:
        SpecError: faults of the file, what it lacks, or supernodes of another size.
    """
    file = foreign_file(text)
    if file is None:
        raise SpecError(f"{text}: is a cluster file of our own form")
    found = _found(file.content, file.path.name, file.asked)
    asked = file.asked
    told = asked.gpus_per_host is not None or asked.like != DEFAULT_LIKE
    silent = not told and any(h.gpus is None for h in found.hosts)
    alone = all(h.supernode == h.name for h in found.hosts)
    if supernode is not None and silent and alone:
        asked = replace(asked, gpus_per_host=supernode)
    fabric = _fabric(file.content, file.path.name, file.asked, asked)
    sizes = fabric.capacities("supernode")
    if supernode is not None and max(sizes) != supernode:
        raise SpecError(
            f"{file.path}: its supernodes have {max(sizes)} GPUs and are not rebuilt with "
            f"{supernode}: a cluster of the catalogue can be"
        )
    if gpus is not None and gpus < fabric.job_gpus:
        return replace(fabric, job_gpus=gpus)
    return fabric


@lru_cache(maxsize=4)
def _found(content: bytes, name: str, asked: ImportAsked) -> ImportedFabric:
    try:
        return import_fabric_text(content, name, asked)
    except SpecError as error:
        raise SpecError(*(_as_options(fault) for fault in error.faults)) from None


@lru_cache(maxsize=4)
def _fabric(content: bytes, name: str, read: ImportAsked, asked: ImportAsked) -> Fabric:
    found = _found(content, name, read)
    try:
        fabric = fabric_of(found, asked)
    except SpecError as error:
        odd = [f"{f} ({f.severity})" for f in found.findings if f.severity != "fault"]
        raise SpecError(*(_as_options(f) for f in error.faults), *odd[:_SHOWN]) from None
    return replace(fabric, assumed={**_summary(found, fabric), **fabric.assumed})


def _summary(found: ImportedFabric, fabric: Fabric) -> dict[str, str]:
    """Return what was borrowed in one line, and what is odd in the file in another."""
    lent = {
        name: as_one.group(1)
        for name, why in fabric.assumed.items()
        if (as_one := _LENT.search(why)) is not None
    }
    odd = [str(f) for f in found.findings if f.severity == "warning"]
    said = {}
    if lent:
        source = next(iter(lent.values()))
        said["cluster.rates"] = f"not in the file, {source}: {', '.join(lent)}"
    if odd:
        more = f"; and {len(odd) - _SHOWN} more" if len(odd) > _SHOWN else ""
        said["cluster.findings"] = "; ".join(odd[:_SHOWN]) + more
    return said


def _as_options(fault: str) -> str:
    """Return *fault* with the options of the import as they stand behind a file's name."""
    for option, shown in (
        ("give --gpus-per-node", "name it FILE,gpus-per-node=8"),
        ("give --join", "name it FILE,join"),
        ("give --topology", "name it FILE,topology=NAME"),
        ("give --links FILE", "name it FILE,links=RATES.yaml"),
        ("--machines", "machines=N"),
        ("--topology", "topology=NAME"),
    ):
        fault = fault.replace(option, shown)
    return fault
