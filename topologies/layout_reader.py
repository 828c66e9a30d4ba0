"""A layout from a file: the words of the command's options, or a training launch file.

Our own YAML has the fields of ``Layout`` as keys, and nothing else. Every key may be left out;
what is missing is chosen by whoever asks::

    tp: 8
    pp: 16
    zero: 1
    recompute: full
    global_batch: 2048
    seq: 8192

``zero`` and ``zero_stage`` are one. ``dp_shard`` is the ranks of dp that share one copy of what is
sharded; 0, as left out, is all of them.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from planner.documents import Document
from planner.errors import LayoutError
from planner.layout import CP_KINDS, EP_COPIES, PRECISIONS, RECOMPUTES, SCHEDULES, Layout
from topologies.file_kinds import handed_as
from topologies.imported_run import Field, ImportedRun
from topologies.launch_reader import open_launch_file, run_from

_SPELLED = {"zero": "zero_stage"}
_KINDS = {entry.name: str(entry.type) for entry in fields(Layout)}
_WORDS = {
    "recompute": RECOMPUTES, "precision": PRECISIONS, "cp_kind": CP_KINDS, "schedule": SCHEDULES,
    "ep_copies": EP_COPIES,
}  # fmt: skip
_MAY_BE_0 = ("zero_stage", "dp_shard")
_MOST = {"zero_stage": 3} | {name: 64 for name in _KINDS if name.endswith("_bytes")}


def read_layout_run(path: Path | str) -> ImportedRun:
    """Return what the file at *path* states: a layout, and model and GPUs where it has them.

    ``imported_run.layout_of`` makes a whole ``Layout`` of it.

    Raises:
        SpecError: every fault of the file, with its line.
    """
    with handed_as("layout", path):
        return _run_in(path)


def _run_in(path: Path | str) -> ImportedRun:
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
            root.fault("zero and zero_stage are one: give one of them", key=key)
        elif _KINDS.get(name) == "int":
            least, most = int(name not in _MAY_BE_0), _MOST.get(name, 100_000_000)
            found[name] = root.count(key, minimum=least, maximum=most)
        elif _KINDS.get(name) == "bool":
            found[name] = root.flag(key)
        elif name in _WORDS:
            found[name] = root.text(key, choices=_WORDS[name])
        elif name in _KINDS:
            found[name] = root.name(key)
    document.finish()
    if "dp" in found and "global_batch" in found:
        _check(document, found)
    return found


def _check(document: Document, found: dict[str, Field]) -> None:
    """Record each fault of the layout at the line of the first key it names."""
    try:
        Layout(**found)  # type: ignore[arg-type]
    except LayoutError as error:
        for fault in error.faults:
            named = [word for word in re.findall(r"[a-z_]+", fault) if document.root.has(word)]
            document.root.fault(fault, key=next(iter(named), None))
    document.finish()
