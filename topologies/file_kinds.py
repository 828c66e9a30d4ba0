"""What a file is that was given where another kind of file belongs.

Files are looked at only once a reader has refused them: what is read as it should be costs nothing
and is never mistaken. The kind shows in the content, never in the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from planner.documents import content_of, document_from_text
from planner.errors import InputError, SpecError
from planner.layout import Layout
from planner.nodes import Node

_MOST_BYTES = 64 * 2**20  # a plan of a million ranks has 57 MB
_HEAD_BYTES = 2**20  # what other tools' files show their kind in
_SCHEMA = re.compile(rb'"schema"\s*:\s*"planner\.([a-z_-]+)/\d+"')
_RUNS = frozenset({"layers", "hidden", "heads", "seq", "gpu", "n_gpus", "measured_step_s"})
_MOST_LACKING = 3  # columns of these that a table of runs may lack and still be seen as one
_SHEET = frozenset({"name", "about", "accelerator", "supernode", "nic", "source", "assumed"})
_LINKS = frozenset({"size", "kind", "rate", "source", "assumed"})

Door = Literal["cluster", "chip", "model", "layout", "efficiency", "prices", "runs", "plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of file: what it is called, and what takes it, with the file's name left open."""

    is_a: str
    taken_by: str


_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "chip": _Kind(
            is_a="an accelerator's data sheet without a network",
            taken_by="planner calibrate RUNS.csv --cluster {file} takes it, and so does validate",
        ),
        "bare chip": _Kind(
            is_a="an accelerator's data sheet",
            taken_by="under 'accelerator:' it is part of a cluster file, and alone what planner "
            "calibrate RUNS.csv --cluster {file} takes",
        ),
        "cluster": _Kind(is_a="a cluster", taken_by="--cluster {file} takes it"),
        "model": _Kind(is_a="a model", taken_by="--model {file} takes it"),
        "launch": _Kind(
            is_a="a training launch file", taken_by="--layout {file} takes it, with its model"
        ),
        "layout": _Kind(is_a="a layout", taken_by="--layout {file} takes it"),
        "plan": _Kind(
            is_a="a plan of planner place",
            taken_by="planner step --placement {file} and planner report {file} take it",
        ),
        "result": _Kind(
            is_a="what a planner command found", taken_by="only planner report takes some of these"
        ),
        "efficiency": _Kind(
            is_a="a fit of planner calibrate", taken_by="--efficiency {file} takes it"
        ),
        "prices": _Kind(is_a="a price list", taken_by="--prices {file} takes it"),
        "runs": _Kind(
            is_a="a table of training runs",
            taken_by="planner calibrate {file} and planner validate {file} take it",
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is taken at one door: kinds of files, and what to say is right."""

    kinds: frozenset[str]
    right: str


_DOORS: Mapping[Door, _Wanted] = MappingProxyType(
    {
        "cluster": _Wanted(
            kinds=frozenset({"cluster"}),
            right="a cluster: a name that planner topology list prints, or a file with "
            "accelerator, gpus, supernode, nic and network (docs/clusters.md)",
        ),
        "chip": _Wanted(
            kinds=frozenset({"cluster", "chip"}),
            right="a cluster, or an accelerator's data sheet (docs/clusters.md)",
        ),
        "model": _Wanted(
            kinds=frozenset({"model", "launch"}),
            right="a model: a name of the catalogue, a config.json, our own YAML or a launch file "
            "(docs/files.md)",
        ),
        "layout": _Wanted(
            kinds=frozenset({"layout", "launch"}),
            right="a layout: tp, pp, dp … as keys, or a launch file (docs/files.md)",
        ),
        "efficiency": _Wanted(
            kinds=frozenset({"efficiency"}),
            right="what planner calibrate RUNS.csv --out FILE writes (docs/steps.md)",
        ),
        "prices": _Wanted(kinds=frozenset({"prices"}), right="a price list (docs/prices.md)"),
        "runs": _Wanted(
            kinds=frozenset({"runs"}), right="a CSV table of training runs (docs/steps.md)"
        ),
        "plan": _Wanted(
            kinds=frozenset({"plan", "result"}), right="the file that planner place --out wrote"
        ),
    }
)


@contextmanager
def handed_as(door: Door, name: str | Path) -> Iterator[None]:
    """Say in one line that the file *name* is of another kind, where its reader refuses it.

    Args:
        door: what it was given as.
        name: the file, options behind it; a name of the catalogue is none.

    Raises:
        SpecError: the file is of a kind that something else takes; else what the reader raises.
    """
    try:
        yield
    except InputError:
        path = str(name)
        if not Path(path).exists():
            path = path.partition(",")[0]
        kind = _kind_of(Path(path))
        if not kind or kind in _DOORS[door].kinds:
            raise
        found = _KINDS[kind]
        raise SpecError(
            f"{path}: is {found.is_a}: {found.taken_by.format(file=path)}; expected "
            f"{_DOORS[door].right}"
        ) from None


def _kind_of(path: Path) -> str:
    """Return the kind of the file at *path*, empty where it is none of those known."""
    try:
        content = content_of(path, _MOST_BYTES)
    except (OSError, ValueError):
        return ""
    if written := _SCHEMA.search(content):
        return "plan" if written.group(1) == b"place" else "result"
    head = content[:_HEAD_BYTES]
    columns = {
        cell.strip() for cell in head.split(b"\n", 1)[0].decode("utf-8", "replace").split(",")
    }
    if len(_RUNS - columns) <= _MOST_LACKING:
        return "runs"
    return _of_keys(content, path) or _of_other_tools(head, path)


def _of_keys(content: bytes, path: Path) -> str:
    """Return the kind of a YAML or JSON file by its keys."""
    from topologies.import_hf_config import looks_like_hf_config  # noqa: PLC0415 - seldom
    from topologies.model_yaml import looks_like_own_model  # noqa: PLC0415

    try:
        root = document_from_text(content, name=str(path)).root
    except SpecError:
        return ""
    if root.kind != "map":
        return ""
    keys = set(root.keys())
    inside = [node for _, node in root.items() if node.kind == "map"]
    layout = {one.name for one in fields(Layout)} | {"zero"}
    signs = {
        "model": looks_like_own_model(root) or looks_like_hf_config(root),
        "prices": "currency" in keys and bool(keys & {"items", "gpu_hour", "kwh"}),
        "efficiency": any(node.has("gemm") and node.has("memory") for node in inside),
        "chip": _is_sheet(root, keys),
        "bare chip": {"peak", "memory_rate"} <= keys,
        "cluster": "accelerator" in keys and bool(keys & {"supernode", "network", "nic"}),
        "layout": bool(keys & {"tp", "pp", "dp"}) and keys <= layout,
    }
    return next((kind for kind, seen in signs.items() if seen), "")


def _is_sheet(root: Node, keys: set[str]) -> bool:
    """Return whether *root* describes an accelerator, and of its links only what rows need."""
    chip = root.optional("accelerator")
    inner, nic = root.optional("supernode"), root.optional("nic")
    return (
        chip is not None
        and chip.kind == "map"
        and keys <= _SHEET
        and all(one is None or set(one.keys()) <= _LINKS for one in (inner, nic))
    )


def _of_other_tools(head: bytes, path: Path) -> str:
    from topologies.fabric_import import recognised  # noqa: PLC0415 - few runs end here
    from topologies.launch_reader import open_launch_file  # noqa: PLC0415

    try:
        if open_launch_file(path).is_launch_file:
            return "launch"
    except SpecError:
        pass
    try:
        return "cluster" if recognised(head, str(path)) else ""
    except SpecError:
        return ""
