"""The wiring that a plan's document holds: small, true to the graph, and with what is dead."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cli.plan_wiring import wiring_document
from cli.planner_output import plain
from cli.topology_picture import cluster_picture, drawing_of
from cli.topology_wiring import dead_parts, shown_from, shown_of, wiring_of
from topologies.fabric_catalogue import load_cluster, load_spec
from topologies.fabric_graph import build_graph
from topologies.fabric_spec import DeadParts


@pytest.mark.parametrize("name", ["hgx-h100", "llama3-roce", "cloudmatrix384", "tpu-torus"])
def test_a_picture_from_a_plan_is_the_picture_of_the_cluster(name: str) -> None:
    document = json.loads(json.dumps(plain(wiring_document(load_cluster(name), name, None, None))))

    assert drawing_of(shown_from(document)).body in cluster_picture(load_spec(name))
    assert len(json.dumps(document)) < 40_000


def test_counts_are_of_all_parts_and_of_many_a_dozen_is_kept() -> None:
    document = wiring_document(load_cluster("hgx-h100"), "hgx-h100", None, None)

    rows = {row["kind"]: row for row in document["rows"]}
    assert [(kind, row["all_parts"], row["all_units"]) for kind, row in rows.items()] == [
        ("supernode", 128, 1024), ("leaf", 32, 32), ("spine", 16, 16),
    ]  # fmt: skip
    assert [part["name"] for part in rows["supernode"]["parts"]][-2:] == ["sn009", "sn127"]
    assert rows["supernode"]["up_bytes_per_s"] == 8 * 50e9


def test_what_is_dead_is_kept_in_words() -> None:
    spec = replace(load_spec("hgx-h100"), dead=DeadParts(gpus=(3, 9), switches=("spine01",)))

    shown = shown_of(wiring_of(build_graph(spec)), spec.name, dead_parts(spec))

    assert shown.dead == ("GPU 3", "GPU 9", "spine01")
    assert shown.rows[0].all_units == 1022


def test_a_damaged_cluster_of_ones_own_says_what_is_dead(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "topologies" / "catalogue" / "hgx-h100.yaml").read_text(
        encoding="utf-8"
    )
    path = tmp_path / "ours.yaml"
    path.write_text(f"{text}\ndead: {{gpus: [5]}}\n", encoding="utf-8")

    document = wiring_document(load_cluster(path), str(path), None, None)

    assert document["dead"] == ["GPU 5"]
