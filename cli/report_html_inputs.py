"""What ``planner report`` is given: plans, comparisons, folders of them, each read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cli.report_html_compared_read import ComparisonFile, checked_comparison
from cli.report_html_read import PLAN, PlanFile, checked_plan, loaded
from planner.errors import InputError

COMPARISON = "planner.compare/1"
MODELS = "planner.compare-models/1"
_KNOWN = (PLAN, COMPARISON)
_INSTEAD = {
    "planner.compare-plans/1": "name the two plans themselves",
    "planner.search/1": "make a plan of a layout with planner place --json, and name that",
    "planner.step/1": "make a plan with planner place --json, and name that",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a report is about.

    Args:
        plans: in the order they were named.
        comparisons: of clusters or layouts, in the order they were named.
        skipped: files of a folder that are something else, for a note.
    """

    plans: tuple[PlanFile, ...]
    comparisons: tuple[ComparisonFile, ...]
    skipped: tuple[str, ...]

    @property
    def changed(self) -> list[str]:
        """Return the files whose hash is not that of their inputs."""
        files: list[PlanFile | ComparisonFile] = [*self.plans, *self.comparisons]
        return [one.name for one in files if not one.untouched]


def read_given(paths: Sequence[Path]) -> Given:
    """Return what *paths* hold: plan files, comparisons, or folders with such files.

    Of a folder every ``*.json`` is read, by name; those of another schema are skipped.

    Raises:
        InputError: a file is neither, or damaged, or nothing is left; with every fault of every
            file.
    """
    faults: list[str] = []
    plans: list[PlanFile] = []
    compared: list[ComparisonFile] = []
    skipped: list[str] = []
    for path in paths:
        try:
            files = _files(path)
        except InputError as error:
            faults += error.faults
            continue
        for file in files:
            try:
                found = _read(file)
            except InputError as error:
                faults += error.faults
                continue
            if isinstance(found, PlanFile):
                plans.append(found)
            elif isinstance(found, tuple):
                compared += found
            elif path.is_dir():
                skipped.append(str(file))
            else:
                faults.append(f"{file}: {found}")
    if not (faults or plans or compared):
        named = ", ".join(map(str, paths))
        faults.append(f"{named}: no plan and no comparison among its files; expected {_expected()}")
    if faults:
        raise InputError(*faults)
    return Given(plans=tuple(plans), comparisons=tuple(compared), skipped=tuple(skipped))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    try:
        return sorted(file for file in path.iterdir() if file.suffix == ".json" and file.is_file())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; name a plan file") from None


def _read(path: Path) -> PlanFile | tuple[ComparisonFile, ...] | str:
    """Return the plan or the comparisons in *path*, or what to say of something else."""
    document = loaded(path)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == PLAN:
        return checked_plan(document, path)
    if schema == COMPARISON:
        return (checked_comparison(document, path),)
    if schema == MODELS and isinstance(document.get("comparisons"), list):
        return tuple(_of_model(checked_comparison(one, path)) for one in document["comparisons"])
    return _refusal(document, schema)


def _of_model(file: ComparisonFile) -> ComparisonFile:
    """Return one of several comparisons of a file, called after its model."""
    model = next(iter(file.clusters.values()))["model"]
    return replace(file, of_model=model)


def _refusal(document: Any, schema: Any) -> str:
    seen = type(document).__name__ if not isinstance(document, dict) else repr(schema)[:60]
    instead = _INSTEAD.get(schema) if isinstance(schema, str) else None
    return f"is no plan: expected {_expected()}; got {seen}" + (f": {instead}" if instead else "")


def _expected() -> str:
    return (
        f"an object with schema {_KNOWN[0]!r}, the output of planner place --json, or "
        f"{_KNOWN[1]!r}, that of planner compare --json"
    )
