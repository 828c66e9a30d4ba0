"""Files that commands write: where nothing can be written, no work is done first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.planner_app import COMMANDS
from planner.errors import InputError
from tests.conftest import Ran

Planner = Callable[..., Ran]
WRITTEN = {"--out", "--plot", "--csv", "--trace", "--parquet", "--rank-map", "--moves",
           "--predictions"}  # fmt: skip


def every_command(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
        return
    for word, one in below.items():
        yield from every_command(one, f"{name} {word}")


def outputs() -> list[tuple[str, str]]:
    found = []
    for lazy in COMMANDS:
        top = typer.main.get_command(import_module(lazy.module).app)
        for name, command in every_command(top, lazy.name):
            options = {opt for parameter in command.params for opt in parameter.opts}
            found += [(name, option) for option in sorted(options & WRITTEN)]
    return found


@pytest.mark.parametrize(("command", "option"), outputs())
def test_a_file_in_no_folder_is_refused_before_anything_is_read(
    planner: Planner, tmp_path: Path, command: str, option: str
) -> None:
    ran = planner(*command.split(), option, str(tmp_path / "none" / "x.svg"))

    assert ran.code == 2
    assert f"there is no folder {tmp_path / 'none'}; make it first" in " ".join(ran.err.split())
    assert not ran.out


def test_most_commands_write_a_file() -> None:
    assert len(outputs()) > 20
    assert {"compare", "place", "step"} <= {command for command, _ in outputs()}


def test_a_folder_without_the_right_to_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cli.planner_output import refuse_unwritable

    monkeypatch.setattr("os.access", lambda path, _: Path(path) != tmp_path)

    with pytest.raises(InputError, match="cannot be written: no right to write"):
        refuse_unwritable(tmp_path / "x.json")
