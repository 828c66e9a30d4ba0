"""Results of a long sweep in SQLite, one transaction for each, so that a sweep can go on.

Whatever ends a sweep (an interrupt, a kill, a full disk), the combinations that were finished are
in the file; at most the one being worked on is lost, and none is done twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from planner.errors import InputError, SolverError

_TABLES = """
CREATE TABLE IF NOT EXISTS sweep (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS results (
    position INTEGER PRIMARY KEY, combination TEXT NOT NULL UNIQUE, answer TEXT NOT NULL
);
"""


Engine = Callable[
    [Sequence[tuple[int, Mapping[str, Any]]]], Iterable[tuple[int, Mapping[str, Any]]]
]
"""From combinations with their positions to answers with theirs, in any order, as they come."""


def one_by_one(solve: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Engine:
    """Return the engine that solves in this process, in order."""

    def answers(
        wanted: Sequence[tuple[int, Mapping[str, Any]]],
    ) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for position, one in wanted:
            yield position, solve(one)

    return answers


def run_sweep(
    combinations: Iterable[Mapping[str, Any]],
    engine: Engine,
    path: Path,
    *,
    fingerprint: str,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Return the answer to every combination, those already in the file without solving again.

    The answers are in the order of the combinations, whatever order they came in.

    Args:
        combinations: what is solved, in order; each a mapping of plain values.
        engine: from combinations to their answers, plain values.
        path: the SQLite file.
        fingerprint: of all that the answers depend on; a file of another sweep is refused.
        resume: go on with a file that already has results.
        progress: called with finished and all combinations at the start and after each.

    Raises:
        InputError: the file holds another sweep, or results and no *resume*, or is no database, or
            another process writes to it.
        SolverError: the file can no longer be written; what was finished is kept.
    """
    wanted = [dict(one) for one in combinations]
    with _faults(path), closing(sqlite3.connect(path)) as database:
        database.executescript(_TABLES)
        known = _known(database, path, fingerprint, resume=resume)
        keys = [json.dumps(one, sort_keys=True) for one in wanted]
        missing = [(i, wanted[i]) for i, key in enumerate(keys) if key not in known]
        done = len(wanted) - len(missing)
        if progress is not None:
            progress(done, len(wanted))
        for position, answer in engine(missing) if missing else ():
            text = json.dumps(answer, sort_keys=True)
            with database:
                database.execute(
                    "INSERT INTO results VALUES (?, ?, ?)", (position, keys[position], text)
                )
            known[keys[position]] = json.loads(text)
            done += 1
            if progress is not None:
                progress(done, len(wanted))
        return [known[key] for key in keys]


def _known(
    database: sqlite3.Connection, path: Path, fingerprint: str, *, resume: bool
) -> dict[str, Any]:
    found = {
        key: json.loads(answer)
        for key, answer in database.execute("SELECT combination, answer FROM results")
    }
    row = database.execute("SELECT value FROM sweep WHERE name = 'fingerprint'").fetchone()
    if row is not None and row[0] != fingerprint:
        raise InputError(
            f"{path}: holds another sweep (its inputs differ); name another file, or remove it"
        )
    if found and not resume:
        raise InputError(
            f"{path}: already has {len(found)} results; --resume goes on with them, or name "
            "another file"
        )
    with database:
        database.execute("INSERT OR REPLACE INTO sweep VALUES ('fingerprint', ?)", (fingerprint,))
    return found


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if "unable to open" in str(error):
            raise InputError(f"{path}: cannot be opened or made: {error}") from None
        raise SolverError(
            f"{path}: cannot be written ({error}); what was finished is kept, --resume goes on"
        ) from None
    except sqlite3.IntegrityError:  # a position is written once
        raise InputError(
            f"{path}: another sweep is writing to it; what both finished is kept: wait for the "
            "other, or go on with --resume"
        ) from None
    except sqlite3.DatabaseError as error:
        raise InputError(f"{path}: is no SQLite file of a sweep ({error})") from None
