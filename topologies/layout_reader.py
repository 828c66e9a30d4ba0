"""A layout from a file: our own YAML, or a training launch file.

Our own YAML has the fields of ``Layout`` as keys, and nothing else::

    tp: 8
    cp: 2
    dp: 16
    pp: 4
    global_batch: 256

``zero`` may stand for ``zero_stage``. A file without ``dp`` gets what the GPUs leave over.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from planner.documents import Document
from planner.errors import LayoutError
from planner.layout import Layout
from topologies.imported_run import Field, ImportedRun, layout_of
from topologies.launch_reader import open_launch_file, run_from

_SPELLED = {"zero": "zero_stage"}
_KINDS = {entry.name: str(entry.type) for entry in fields(Layout)}


def read_layout(path: Path | str, *, gpus: int | None = None) -> Layout:
    """Return the layout in the file at *path*.

    Args:
        path: our own YAML, or a launch file.
        gpus: GPUs of the cluster, where the file does not state ``dp`` [1].

    Raises:
        SpecError: every fault in the file, with its line.
        LayoutError: degrees that do not fit each other or the number of GPUs.
    """
    return layout_of(read_layout_run(path), gpus=gpus)


def read_layout_run(path: Path | str) -> ImportedRun:
    """Return what the file at *path* states about a layout, and about its model if it does."""
    opened = open_launch_file(path)
    if opened.document is None or opened.is_launch_file:
        return run_from(opened)
    stated = layout_fields(opened.document)
    return ImportedRun(model=None, layout=stated, gpus=None, provenance=opened.name)


def layout_fields(document: Document) -> dict[str, Field]:
    """Return the fields of ``Layout`` that *document* states, each of its own type.

    Raises:
        SpecError: unknown or repeated keys, values of a wrong type, degrees that cannot be.
    """
    root = document.root
    if root.kind != "map":
        root.fault("expected a layout: keys such as tp, cp, dp, pp")
        document.finish()
    root.only(*_KINDS, *_SPELLED)
    found: dict[str, Field] = {}
    stated = root.keys()
    for key in stated:
        name = _SPELLED.get(key, key)
        if name in found:
            root.fault(f"says the same as {name}, which is there as well", key=key)
        elif _KINDS.get(name) == "int":
            found[name] = root.count(key, minimum=0 if name == "zero_stage" else 1)
        elif _KINDS.get(name) == "bool":
            found[name] = root.flag(key)
        elif _KINDS.get(name) == "str":
            found[name] = root.text(key)
    document.finish()
    if "dp" in found and "global_batch" in found:
        _check(document, found)
    return found


def _check(document: Document, found: dict[str, Field]) -> None:
    """Record each fault of the layout at the line of the first key it names."""
    try:
        Layout(**found)  # type: ignore[arg-type]
    except LayoutError as error:
        names = {value: key for key, value in _SPELLED.items()}
        for fault in error.faults:
            keys = [word for word in re.findall(r"[a-z_]+", fault) if word in found]
            key = next(iter(keys), None)
            spelled = names.get(key, key) if key and not document.root.has(key) else key
            document.root.fault(fault, key=spelled) if spelled else document.root.fault(fault)
    document.finish()
