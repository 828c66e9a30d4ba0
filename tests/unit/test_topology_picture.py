"""The picture of a cluster: what it counts, what it joins, and that names stay names."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.topology_command import app
from cli.topology_picture import cluster_picture
from cli.topology_wiring import wiring_of
from topologies.fabric_catalogue import catalogue_names, load_spec
from topologies.fabric_graph import build_graph
from topologies.fabric_spec import DeadParts

RUN = CliRunner()
SVG = "{http://www.w3.org/2000/svg}"


def test_a_rail_network_is_drawn_as_its_parts_list_says() -> None:
    """HGX H100, 1,024 GPUs: 128 machines, 8 rails x 4 leaves, each leaf 32 GPUs at 50 GB/s."""
    wiring = wiring_of(build_graph(load_spec("hgx-h100")))

    assert {kind: len(names) for kind, names in wiring.rows.items()} == {
        "supernode": 128, "leaf": 32, "spine": 16,
    }  # fmt: skip
    assert wiring.rates["leaf0.rail0", "sn000"] == 50e9
    assert wiring.links["leaf0.rail0", "sn000"] == 1
    assert sum(rate for pair, rate in wiring.rates.items() if "sn000" in pair) == 8 * 50e9


def test_oversubscription_stands_beside_its_row() -> None:
    """Llama 3's RoCE cluster is 7:1 oversubscribed above its pods (arXiv 2407.21783)."""
    assert "7.11 : 1 oversubscribed" in cluster_picture(load_spec("llama3-roce"))


@pytest.mark.parametrize("name", catalogue_names())
def test_every_cluster_on_file_is_a_picture_that_stands_alone(name: str) -> None:
    text = cluster_picture(load_spec(name))

    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert root.get("aria-label")
    assert len(root.findall(f".//{SVG}rect")) >= 1
    assert not any(e.tag.endswith(("script", "image", "foreignObject")) for e in root.iter())
    _, _, width, height = map(float, str(root.get("viewBox")).split())
    for rect in root.findall(f".//{SVG}rect"):
        assert float(str(rect.get("x"))) + float(str(rect.get("width"))) <= width
        assert float(str(rect.get("y"))) + float(str(rect.get("height"))) <= height
    assert len(text) < 100_000


def test_the_command_writes_it_and_the_same_twice(tmp_path: Path) -> None:
    first, again = RUN.invoke(app, ["draw", "hpn"]), RUN.invoke(app, ["draw", "--cluster", "hpn"])
    out = tmp_path / "hpn.svg"
    filed = RUN.invoke(app, ["draw", "hpn", "--out", str(out)])

    assert first.exit_code == again.exit_code == filed.exit_code == 0
    assert first.stdout == again.stdout == out.read_text(encoding="utf-8")


def test_two_names_are_refused() -> None:
    assert RUN.invoke(app, ["draw", "hpn", "--cluster", "generic"]).exit_code == 2


def test_what_is_dead_is_crossed_out_where_it_was_and_the_rest_is_named() -> None:
    """A dead leaf and spine keep a place in their rows; a GPU is inside its supernode."""
    spec = load_spec("hgx-h100")
    dead = DeadParts(gpus=(3,), switches=("leaf1.rail2", "spine03"),
                     links=(("leaf0.rail0", "spine00"), ("leaf3.rail1", "spine01")))  # fmt: skip

    root = ET.fromstring(cluster_picture(replace(spec, dead=dead)))

    gone = [e for e in root.iter() if e.get("class") == "gone"]
    told = [str(title.text) for e in gone for title in e.iter(f"{SVG}title")]
    assert sorted(told) == [
        "leaf0.rail0 to spine00: dead", "leaf1.rail2: dead", "spine03: dead",
    ]  # fmt: skip
    words = " ".join(str(text.text) for text in root.iter(f"{SVG}text"))
    # leaf3.rail1 is one of those that the picture leaves out
    assert "not drawn: GPU 3, leaf3.rail1 to spine01" in words
    assert "1,023 GPUs" in words
    assert "31 leaf switches" in words
    assert "15 spine switches" in words


def test_of_many_dead_switches_a_row_shows_some_and_the_rest_is_named() -> None:
    spec = load_spec("hgx-h100")
    dead = DeadParts(switches=tuple(f"spine{i:02}" for i in range(5)))

    text = cluster_picture(replace(spec, dead=dead))

    assert text.count(": dead</title>") == 3
    assert "dead: crossed out or dashed; not drawn: spine03, spine04" in text
