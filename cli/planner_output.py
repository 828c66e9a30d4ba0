"""What leaves the command: documents, files written whole or not at all, notes, a console."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.planner_version import __version__
from planner.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

NARROWEST, WIDEST = 80, 160


def document(command: str, inputs: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON document of *command*.

    Args:
        command: the schema's name, e.g. ``place`` or ``net-slots``.
        inputs: every input after defaults.
        body: the results.
    """
    plain_inputs = plain(inputs)
    return {
        **plain(body),
        "schema": f"planner.{command}/1",
        "version": __version__,
        "inputs": {**plain_inputs, "sha256": inputs_sha256(inputs)},
    }


def inputs_sha256(inputs: Mapping[str, Any]) -> str:
    """Return the hash of *inputs*, the same for the same inputs whatever their order."""
    return hashlib.sha256(_dumps(plain(inputs), indent=None).encode()).hexdigest()


def json_text(value: Any) -> str:
    """Return *value* as JSON text with sorted keys: the same value gives the same bytes.

    >>> print(json_text({"b": (1, 2.5), "a": None}), end="")
    {
      "a": null,
      "b": [
        1,
        2.5
      ]
    }
    """
    return _dumps(plain(value), indent=2) + "\n"


def plain(value: Any) -> Any:
    """Return *value* as dicts, lists, text, finite numbers, booleans and None.

    Dataclasses, mappings, sequences, enumerations and NumPy values are taken apart.

    Raises:
        ValueError: a number that is not finite, which JSON cannot say.
        TypeError: a set, which has no order, or anything else JSON does not know.
    """
    match value:
        case Enum():
            return plain(value.value)
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            if not math.isfinite(value):
                raise ValueError(f"{value} cannot be written as JSON")
            return float(value)
        case Mapping():
            return {_key(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case Path():
            return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: plain(getattr(value, name)) for name in names}
    if type(value).__module__ == "numpy":
        return plain(value.tolist())
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


def emit(text: str) -> None:
    """Write *text* to stdout."""
    with _named("standard output"):
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()


def note(text: str) -> None:
    """Write one line to stderr, where it is in nobody's way."""
    sys.stderr.write(text.rstrip("\n") + "\n")
    sys.stderr.flush()


def console(*, stderr: bool = False) -> Console:
    """Return a console of 80 to 160 columns, without colour unless a terminal reads it.

    Markup and emoji codes are off, so that a name from a file is shown as it is.
    """
    # Only what prints tables pays for them.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from cli.wide_tables import tables_within  # noqa: PLC0415

    class PlainConsole(Console):
        """Leaves it to the command to say what a reader that has gone away means."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def print(self, *objects: Any, **options: Any) -> None:
            """Print, a table too wide as several, and name the stream where that fails."""
            shown: list[Any] = []
            for one in objects:
                parts = tables_within(one, self.width) if isinstance(one, Table) else [one]
                for nth, part in enumerate(parts):
                    shown += ["", part] if nth else [part]
            with _named("standard error" if stderr else "standard output"):
                super().print(*shown, **options)

    stream = sys.stderr if stderr else sys.stdout
    probe = Console(file=stream)
    width = min(max(probe.width, NARROWEST), WIDEST)
    return PlainConsole(
        file=stream,
        width=width,
        no_color=None if stream.isatty() else True,
        markup=False,
        emoji=False,
        highlight=False,
    )


def write_file(path: Path | str, content: str | bytes) -> None:
    """Write *content* to *path*, whole or not at all.

    Text is UTF-8, line ends as they are. An existing file is replaced in one step, with its
    permissions kept; what a reader sees is the old content or the new one.

    Raises:
        InputError: *path* is a directory, or its folder is missing.
        OSError: it cannot be written, *path* named: no right to, a full disk, a broken one.
    """
    target = _target_of(path)
    data = content.encode() if isinstance(content, str) else content
    with _named(str(path)):
        if target.exists() and not target.is_file():  # a pipe or a device: nothing to replace
            with target.open("wb") as stream:
                stream.write(data)
            return
        _replace(target, data)


def refuse_unwritable(path: Path | str) -> None:
    """Refuse what ``write_file`` could not write, before the work whose result goes there.

    Raises:
        InputError: *path* is a directory, or its folder is missing or not to be written in.
    """
    target = _target_of(path)
    replaced = target.parent if not target.exists() or target.is_file() else target
    if not os.access(replaced, os.W_OK):
        raise InputError(f"{path}: cannot be written: no right to write to {replaced}")


def _target_of(path: Path | str) -> Path:
    """Return the file that *path* leads to."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"{path}: is a directory; name a file")
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}; make it first")
    return target


def _replace(target: Path, data: bytes) -> None:
    """Put *data* at *target* in one step, by way of a file beside it."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(_mode_for(target))
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


@contextlib.contextmanager
def _named(what: str) -> Iterator[None]:
    """Say in an OSError inside that it was *what* that could not be written.

    A reader that has gone away is left to the command to judge.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        why = f"cannot be written: {error.strerror or error}"
        raise OSError(error.errno, why, what) from error


def _mode_for(target: Path) -> int:
    """Return the permissions of *target*, or those a new file gets."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _key(key: Any) -> str:
    if isinstance(key, Enum):
        return str(key.value)
    if isinstance(key, str | int):
        return str(key)
    raise TypeError(f"key {key!r} cannot be written as JSON")


def _dumps(value: Any, *, indent: int | None) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent)
