"""Every figure of the catalogue says where it comes from, or that it is assumed and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from planner import units
from planner.documents import Node, read_document
from planner.errors import SpecError
from tests.conftest import ROOT

CATALOGUE = sorted((ROOT / "topologies" / "catalogue").glob("*.yaml"))
MODELS = sorted((ROOT / "topologies" / "models").glob("*.yaml"))
PARSERS = (
    units.parse_bytes,
    units.parse_rate,
    units.parse_time,
    units.parse_flops,
    units.parse_power,
)


def is_quantity(node: Node) -> bool:
    """Return whether *node* is a physical figure: a number with a unit."""
    if node.kind != "text":
        return False
    for parse in PARSERS:
        try:
            parse(node.value)
        except SpecError:
            continue
        return True
    return False


def unsourced(node: Node, sourced: bool) -> Iterator[str]:
    """Yield the place of every physical figure that no source or assumption speaks of."""
    if node.kind == "list":
        for item in node.value:
            yield from unsourced(item, sourced)
    if node.kind != "map":
        return
    notes = [node.value[key] for key in ("source", "assumed") if key in node.value]
    # A fit has one list of sources for all of its numbers.
    whole = any(note.kind == "text" for note in notes) or bool(
        node.has("sources") and node.list("sources")
    )
    named = {key for note in notes if note.kind == "map" for key, _ in note.items()}
    for key, value in node.items():
        if key in {"source", "sources", "assumed"}:
            continue
        covered = sourced or whole or key in named
        if is_quantity(value) and not covered:
            yield f"{value.where} {value.path}"
        yield from unsourced(value, covered)


@pytest.mark.parametrize("path", CATALOGUE, ids=lambda path: path.stem)
def test_every_physical_figure_of_a_cluster_has_a_source(path: Path) -> None:
    assert list(unsourced(read_document(path).root, sourced=False)) == []


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_every_model_says_where_its_shape_comes_from(path: Path) -> None:
    document = read_document(path)

    assert document.root.text("source")
    document.finish()


def test_there_are_clusters_and_models_to_check() -> None:
    assert len(CATALOGUE) > 5
    assert len(MODELS) > 5
