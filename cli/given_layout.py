"""What is given of a layout: by a file, by options, and what the file leaves to be assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.errors import LayoutError


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLayout:
    """Fields of ``Layout`` that are given, and what their file had to assume, name to reason."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    assumed: Mapping[str, str] = field(default_factory=dict)


def given_layout(options: Mapping[str, Any], file: Path | None) -> GivenLayout:
    """Return what *options* and *file* give.

    Args:
        options: fields that stand on the command line.
        file: our own YAML or a launch file, none if there is none.

    Raises:
        InputError: faults of the file, or a field that both give.
    """
    if file is None:
        return GivenLayout(fields=options)
    from topologies.layout_reader import read_layout_run  # noqa: PLC0415 - few runs need it

    run = read_layout_run(file)
    if twice := [name for name in options if name in run.layout]:
        raise LayoutError(
            *(
                f"{name} is given twice: in {file} ({run.layout[name]}) and as an option "
                f"({options[name]}); give it once"
                for name in twice
            )
        )
    of_layout = {name: why for name, why in run.assumed.items() if name != "model"}
    return GivenLayout(fields={**run.layout, **options}, assumed=of_layout)
