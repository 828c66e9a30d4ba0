"""Documents and files: the same inputs give the same bytes, and files are whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from cli.planner_output import console, document, json_text, plain, write_file
from planner.errors import InputError


class Proof(Enum):
    BOUND = "bound"


@dataclass(frozen=True)
class Cut:
    objective_bytes: float
    proof: Proof


def test_a_document_has_schema_version_inputs_and_their_hash() -> None:
    made = document("place", {"gpus": 1024, "cluster": None}, {"cut": Cut(3.0, Proof.BOUND)})

    inputs_text = '{"cluster": null, "gpus": 1024}'
    assert made["schema"] == "planner.place/1"
    assert made["version"]
    assert made["cut"] == {"objective_bytes": 3.0, "proof": "bound"}
    assert made["inputs"] == {
        "gpus": 1024,
        "cluster": None,
        "sha256": hashlib.sha256(inputs_text.encode()).hexdigest(),
    }


def test_the_order_of_the_inputs_changes_no_byte() -> None:
    one = json_text(document("x", {"a": 1, "b": 2}, {"c": 3, "d": 4}))
    other = json_text(document("x", {"b": 2, "a": 1}, {"d": 4, "c": 3}))

    assert one == other
    assert one.endswith("}\n")


def test_numpy_dataclasses_mappings_and_paths_become_plain_json() -> None:
    value = {
        "array": np.arange(3),
        "scalar": np.float64(0.5),
        "int": np.int64(2**40),
        "map": MappingProxyType({1: (True, None)}),
        "path": Path("a/b"),
        "proof": Proof.BOUND,
    }

    assert json.loads(json_text(value)) == {
        "array": [0, 1, 2],
        "scalar": 0.5,
        "int": 2**40,
        "map": {"1": [True, None]},
        "path": "a/b",
        "proof": "bound",
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.array([1.0, np.nan])])
def test_a_number_that_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        json_text({"x": value})


@pytest.mark.parametrize("value", [{1, 2}, frozenset("a"), object(), {(1, 2): 3}])
def test_what_has_no_order_or_no_json_form_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        plain(value)


def test_a_file_is_replaced_whole_with_its_permissions_kept(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")
    path.chmod(0o640)

    write_file(path, "new: é\n")

    assert path.read_bytes() == b"new: \xc3\xa9\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]


def test_a_new_file_gets_the_permissions_any_program_gives(tmp_path: Path) -> None:
    (tmp_path / "other").touch()

    write_file(tmp_path / "plan.json", b"x")

    assert (tmp_path / "plan.json").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="cannot be written: No space left") as refused:
        write_file(path, "new")

    assert refused.value.filename == str(path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")

    write_file(tmp_path / "link.json", "new")

    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "new"


def test_a_directory_or_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory; name a file"):
        write_file(tmp_path, "x")
    with pytest.raises(InputError, match="there is no folder"):
        write_file(tmp_path / "none" / "plan.json", "x")


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_file("/dev/null", "x")

    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize(("columns", "width"), [("40", 80), ("120", 120), ("400", 160)])
def test_the_console_keeps_to_80_to_160_columns(
    monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    assert console().width == width


def test_a_name_from_a_file_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("rack[/] [red]x[/red] :smile: 42")

    assert capsys.readouterr().out == "rack[/] [red]x[/red] :smile: 42\n"
