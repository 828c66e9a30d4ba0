"""``planner search --sweep``: many models, clusters and sizes, into a file that can be resumed."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from cli.planner_inputs import Asked
from cli.planner_output import document, note, plain
from cli.planner_version import __version__
from cli.search_inputs import read_searched
from cli.search_report import finalist_document, make_search, simple_table
from planner.documents import read_bytes, read_document
from planner.errors import InfeasibleError, InputError
from planner.search.store import run_sweep
from planner.units import format_bytes, format_time

if TYPE_CHECKING:
    from rich.console import Console

    from planner.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What is swept: every combination of these; None is the default of ``planner search``."""

    models: tuple[str | None, ...]
    clusters: tuple[str | None, ...]
    supernodes: tuple[int | None, ...]
    gpus: tuple[int | None, ...]

    def combinations(self) -> list[dict[str, Any]]:
        """Return them in the order of the file, models outermost."""
        names = ("model", "cluster", "supernode", "gpus")
        every = itertools.product(self.models, self.clusters, self.supernodes, self.gpus)
        return [dict(zip(names, one, strict=True)) for one in every]


def read_sweep(path: Path) -> Sweep:
    """Return the sweep in a YAML file with ``models``, ``clusters``, ``supernodes``, ``gpus``.

    Raises:
        SpecError: every fault, with its line.
    """
    read = read_document(path)
    root = read.root
    if root.kind != "map":
        root.fault("expected a sweep: lists of models, clusters, supernodes, gpus")
        read.finish()
    root.only("models", "clusters", "supernodes", "gpus")

    def some(key: str) -> tuple[Node, ...]:
        return root.list(key, default=())

    found = Sweep(
        models=tuple(node.as_text() for node in some("models")) or (None,),
        clusters=tuple(node.as_text() for node in some("clusters")) or (None,),
        supernodes=tuple(node.as_count(1, 1_000_000) for node in some("supernodes")) or (None,),
        gpus=tuple(node.as_count(1, 1_000_000) for node in some("gpus")) or (None,),
    )
    for key in ("models", "clusters", "supernodes", "gpus"):
        values = [node.value for node in some(key)]
        if len(set(map(str, values))) < len(values):
            root.fault("names the same twice", key=key)
    read.finish()
    return found


def sweep_document(
    sweep: Sweep, into: Path, given: Mapping[str, Any], *, resume: bool, seed: int
) -> dict[str, Any]:
    """Return the document of a sweep, solved as far as *into* does not have it already."""
    asked = {"sweep": sweep, "layout": dict(given), "seed": seed, "files_sha256": _files(sweep)}
    fingerprint = hashlib.sha256(f"{__version__} {plain(asked)}".encode()).hexdigest()
    started, fresh = time.monotonic(), 0

    def solve(one: Mapping[str, Any]) -> Mapping[str, Any]:
        nonlocal fresh
        fresh += 1
        return _solved(one, given, seed)

    def progress(done: int, total: int) -> None:
        each_s = (time.monotonic() - started) / max(fresh, 1)
        left_s = each_s * (total - done)
        left = f", {format_time(left_s)} left" if fresh and done < total else ""
        note(f"{done} of {total}{left}")

    answers = run_sweep(
        sweep.combinations(), solve, into, fingerprint=fingerprint, resume=resume,
        progress=progress,
    )  # fmt: skip
    return document("search-sweep", asked, {"results": answers})


def _files(sweep: Sweep) -> dict[str, str]:
    """Return the hash of each file among the models and clusters; the answers depend on them."""
    names = [name for name in (*sweep.models, *sweep.clusters) if name and Path(name).is_file()]
    return {name: hashlib.sha256(read_bytes(name)).hexdigest() for name in names}


def _solved(one: Mapping[str, Any], given: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return the best layout of one combination, or why there is none."""
    base = {**one, "refused": [], "best": None}
    try:
        inputs = read_searched(Asked(**one, layout=dict(given)))
        found = make_search(inputs, best=1, seed=seed)
    except (InputError, InfeasibleError) as error:
        return {**base, "refused": list(error.faults)}
    best = plain(finalist_document(found.best[0], found.best[0]))
    return {
        **base, "model": inputs.model.name, "cluster": inputs.fabric.name, "gpus": inputs.gpus,
        "supernode": max(inputs.fabric.capacities("supernode")), "best": best,
    }  # fmt: skip


def print_sweep(console: Console, results: list[dict[str, Any]], sha256: str) -> None:
    """Print a line for each combination."""
    table = simple_table("  model", "cluster", "GPUs", "layout", "step", "cut", left=4)
    for one in results:
        best = one["best"]
        if best is None:
            table.add_row(f"  {one['model']}", str(one["cluster"] or one["supernode"] or ""),
                          str(one["gpus"] or ""), f"none: {one['refused'][0]}", "", "")  # fmt: skip
            continue
        layout, cut = best["layout"], best["seated_bytes"]
        names = ("tp", "cp", "ep", "etp", "dp", "pp")
        table.add_row(
            f"  {one['model']}", one["cluster"], f"{one['gpus']:,}",
            " ".join(f"{n}{layout[n]}" for n in names if layout[n] > 1) + f" zero{layout['zero']}",
            format_time(best["step"]["total_s"]), format_bytes(cut) if cut else "none",
        )  # fmt: skip
    console.print(table)
    console.print(Text(f"inputs sha256 {sha256}", style="dim"))
