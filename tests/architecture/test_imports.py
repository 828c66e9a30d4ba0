"""The arrow of imports, the packages without ``__init__.py``, and who may know which library."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

LONGER: dict[str, str] = {}  # module of over 400 lines to the reason why it is one idea
PACKAGES = ("planner", "topologies", "cli")
MAY_IMPORT = {
    "yaml": {"planner/documents.py"},
    "typer": {"cli/"},
    "click": set(),
    "rich": {"cli/"},
    "pulp": {"planner/place/"},
    "highspy": {"planner/place/"},
}


def modules() -> list[Path]:
    """Return every module we ship."""
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


@cache
def imported(path: Path) -> frozenset[str]:
    """Return the top-level names of whatever *path* imports, wherever in the file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(str(node.module).split(".")[0])
    return frozenset(names)


def test_the_import_contracts_hold() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command as c; c()",
            "--no-logo",
            "--no-cache",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


@pytest.mark.parametrize("library", sorted(MAY_IMPORT))
def test_a_library_is_imported_only_where_it_belongs(library: str) -> None:
    importers = {
        path.relative_to(ROOT).as_posix() for path in modules() if library in imported(path)
    }

    outside = {
        name for name in importers if not any(name.startswith(home) for home in MAY_IMPORT[library])
    }
    assert outside == set()


@pytest.mark.parametrize(
    ("package", "forbidden"), [("planner", {"topologies", "cli"}), ("topologies", {"cli"})]
)
def test_nothing_imports_against_the_arrow(package: str, forbidden: set[str]) -> None:
    back = {
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / package).rglob("*.py"))
        if imported(path) & forbidden
    }

    assert back == set()


@pytest.mark.parametrize("package", ["topologies", "cli"])
def test_a_package_with_a_common_name_has_no_init_and_uncommon_module_names(package: str) -> None:
    folder = ROOT / package
    common = {"main", "app", "utils", "helpers", "core", "common", "config", "options", "output"}

    assert not list(folder.rglob("__init__.py"))
    assert {path.stem for path in folder.glob("*.py")} & common == set()


def test_no_module_is_longer_than_400_lines_without_a_reason() -> None:
    long = {
        path.relative_to(ROOT).as_posix(): lines
        for path in modules()
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }

    assert set(long) == set(LONGER), long


def test_no_module_uses_assert_for_what_a_user_gave() -> None:
    asserting = {
        f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert)
    }

    assert asserting == set()
