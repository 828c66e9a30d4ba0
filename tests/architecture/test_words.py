"""Nothing we ship names a package registry, a machine's own paths, or unfinished work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".json", ".csv", ".txt", ".html", ".cfg", ""}
SKIP = {".git", ".venv", "__pycache__", "build", "dist", "node_modules"}
FORBIDDEN = {
    "a package registry's host": (
        r"\b(?:pypi|pythonhosted|npmjs|debian|crates|anaconda)\.(?:org|com|io)\b"
    ),
    "an absolute path of one machine": r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+|opt/venv)/",
    "unfinished work": r"\b(?:TODO|FIXME|XXX)\b|NotImplementedError",
}


def shipped() -> list[Path]:
    """Return the text files of the repository that are ours."""
    found = []
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = [part for part in parts if part.startswith(".") and part != ".ci"]
        if path.is_file() and not hidden and not SKIP & set(parts) and path.suffix in TEXT:
            found.append(path)
    return found


@pytest.mark.parametrize("what", sorted(FORBIDDEN))
def test_no_file_of_ours_holds(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{number}: {line.strip()[:80]}"
        for path in shipped()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line) and path != Path(__file__)
    ]

    assert found == []


def test_the_search_for_words_reads_the_whole_tree() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in shipped()}

    assert {"pyproject.toml", "README.md", "planner/errors.py", ".ci/run"} <= names
