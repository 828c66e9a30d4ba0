"""A sweep loses at most what it was working on, repeats nothing, and ends the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.search.store import one_by_one, run_sweep

COMBINATIONS = [{"size": n} for n in range(6)]


class Solver:
    """Squares, and stops like a killed process at one of them."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.asked: list[int] = []
        self._stop_at = stop_at

    def __call__(self, one: Mapping[str, Any]) -> dict[str, Any]:
        if one["size"] == self._stop_at:
            raise KeyboardInterrupt
        self.asked.append(one["size"])
        return {"square": one["size"] ** 2}


def rows(path: Path) -> list[Any]:
    with sqlite3.connect(path) as database:
        return database.execute("SELECT * FROM results ORDER BY position").fetchall()


def test_an_interrupted_sweep_goes_on_where_it_was_and_ends_the_same(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole.sqlite", tmp_path / "parts.sqlite"
    serial = run_sweep(COMBINATIONS, one_by_one(Solver()), whole, fingerprint="f")
    with pytest.raises(KeyboardInterrupt):
        run_sweep(COMBINATIONS, one_by_one(Solver(stop_at=4)), parts, fingerprint="f")
    again = Solver()

    answers = run_sweep(COMBINATIONS, one_by_one(again), parts, fingerprint="f", resume=True)

    assert again.asked == [4, 5]
    assert answers == serial
    assert rows(parts) == rows(whole)


def test_results_that_are_there_are_not_gone_over_without_resume(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    run_sweep(COMBINATIONS, one_by_one(Solver()), path, fingerprint="f")

    with pytest.raises(InputError, match="already has 6 results; --resume"):
        run_sweep(COMBINATIONS, one_by_one(Solver()), path, fingerprint="f")


def test_another_sweeps_file_is_refused_even_with_resume(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    run_sweep(COMBINATIONS, one_by_one(Solver()), path, fingerprint="f")

    with pytest.raises(InputError, match="holds another sweep"):
        run_sweep(COMBINATIONS, one_by_one(Solver()), path, fingerprint="g", resume=True)


def test_what_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but notes of someone's that must not be lost\n" * 50)
    before = path.read_bytes()

    with pytest.raises(InputError, match="is no SQLite file"):
        run_sweep(COMBINATIONS, one_by_one(Solver()), path, fingerprint="f", resume=True)

    assert path.read_bytes() == before


def test_two_sweeps_that_write_to_one_file_keep_what_both_finished(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"

    def overtaken(wanted: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[Any]:
        run_sweep(COMBINATIONS[:2], one_by_one(Solver()), path, fingerprint="f", resume=True)
        yield from one_by_one(Solver())(wanted)

    with pytest.raises(InputError, match="another sweep is writing to it"):
        run_sweep(COMBINATIONS, overtaken, path, fingerprint="f")

    whole = run_sweep(COMBINATIONS, one_by_one(Solver()), path, fingerprint="f", resume=True)
    assert len(whole) == len(COMBINATIONS)
