"""What is given of a run: by a file, by options, and what the file leaves to be assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.documents import read_bytes
from planner.errors import LayoutError

if TYPE_CHECKING:
    from planner.model import ModelSpec

_NOT_OF_THE_LAYOUT = frozenset({"model", "gpus", "vocab"})  # a model has its vocabulary itself


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFileRead:
    """A launch file that stands as the layout.

    Args:
        name: the file.
        sha256: of its bytes.
        provenance: the kind of file and its name.
        fields: names of the fields of ``Layout`` that it states.
        model: that it describes; None where it describes none that is read.
        unread_model: why a model that it describes was not read; empty for no such model.
        gpus: GPUs that it runs on; None where it does not say [1].
        assumed: of its model and its GPUs: what was not stated, name to reason.
    """

    name: str
    sha256: str
    provenance: str
    fields: tuple[str, ...]
    model: ModelSpec | None
    unread_model: str
    gpus: int | None
    assumed: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLayout:
    """Fields of ``Layout`` that are given, and what their file had to assume, name to reason.

    ``launch`` is the file itself where it starts a run, rather than holding only a layout.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    assumed: Mapping[str, str] = field(default_factory=dict)
    launch: LaunchFileRead | None = None


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
    of_layout = {n: why for n, why in run.assumed.items() if n not in _NOT_OF_THE_LAYOUT}
    launch = None
    if run.provenance != str(file):  # a file of a layout alone is called as it is
        launch = LaunchFileRead(
            name=str(file), sha256=sha256(read_bytes(file)).hexdigest(),
            provenance=run.provenance, fields=tuple(sorted(run.layout)), model=run.model,
            unread_model=run.unread_model, gpus=run.gpus,
            assumed={n: run.assumed[n] for n in sorted(_NOT_OF_THE_LAYOUT & {*run.assumed})},
        )  # fmt: skip
    return GivenLayout(fields={**run.layout, **options}, assumed=of_layout, launch=launch)
