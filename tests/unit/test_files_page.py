"""The page on files names every format, option and export that there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.export_command import KINDS
from topologies.imported_cluster import OPTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_every_export_is_named(kind: str) -> None:
    assert f"`{kind}`" in PAGE


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_behind_a_files_name_is_named(option: str) -> None:
    assert f"| `{option}" in PAGE
