"""The report's drawings: the cluster, its wiring, and who sits in which domain."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cli.report_html import report
from cli.report_html_cluster import drawing_of_cluster
from planner.errors import InputError
from tests.report_plans import (
    HOSTILE,
    Tags,
    crossing_bytes,
    family,
    many_boxes,
    saved,
    small_plan,
)


def test_a_cluster_on_file_is_drawn_and_one_that_differs_is_not() -> None:
    document = small_plan()
    tiers = [
        {"tier": "supernode", "capacities": [4, 4], "bytes_per_s": 450e9,
         "shared_bytes_per_s": 450e9},
        {"tier": "cluster", "capacities": [8], "bytes_per_s": 50e9, "shared_bytes_per_s": 50e9},
    ]  # fmt: skip
    document["inputs"]["fabric"]["tiers"] = tiers
    drawn = drawing_of_cluster(document)
    tiers[1]["bytes_per_s"] = 25e9
    changed = drawing_of_cluster(document)
    document["inputs"]["cluster_asked"] = "../../etc/passwd"

    assert "8 GPUs, 2 supernodes" in drawn
    assert "The wiring is not drawn" in changed
    assert "The wiring is not drawn" in drawing_of_cluster(document)


def test_many_domains_are_drawn_several_to_a_box_and_none_is_lost(tmp_path: Path) -> None:
    page = report([saved(tmp_path, many_boxes(500))])

    assert "Each box is 4 neighbouring supernodes, each square a GPU" in page
    assert page.count('class="k ') == 500
    assert "d0 +3: to d3, 4 of 4 GPUs used, 210 B a step to and from others" in page  # 7 hops of 30
    labels = re.findall(r">([^<]*)</text>", page.partition('class="map"')[2].partition("</div>")[0])
    assert labels == [f"d{i}" for i in range(0, 500, 4)]  # whole: none is cut
    assert "Each box is a supernode" in report([saved(tmp_path, many_boxes(160))])


def wiring(**more: Any) -> dict[str, Any]:
    """Return two boxes of four under one leaf."""
    row = {"all_parts": 2, "all_units": 8, "down_bytes_per_s": 0.0, "up_bytes_per_s": 2e11}
    return {
        "name": "two-boxes", "most_bytes_per_s": 2e11, "dead": [],
        "rows": [
            {**row, "kind": "supernode",
             "parts": [{"name": "a", "units": 4}, {"name": "b", "units": 4}]},
            {**row, "kind": "leaf", "all_parts": 1, "all_units": 1, "down_bytes_per_s": 4e11,
             "up_bytes_per_s": 0.0, "parts": [{"name": "leaf0", "units": 1}]},
        ],
        "wires": [{"a": "a", "b": "leaf0", "links": 4, "bytes_per_s": 2e11},
                  {"a": "b", "b": "leaf0", "links": 4, "bytes_per_s": 2e11}],
        **more,
    }  # fmt: skip


def test_a_cluster_of_ones_own_is_drawn_from_the_plan(tmp_path: Path) -> None:
    document = {**small_plan(), "wiring": wiring(dead=["GPU 8", "leaf1"])}
    document["inputs"]["cluster_asked"] = "my-cluster.yaml"

    page = report([saved(tmp_path, document)])

    assert "two-boxes: 8 GPUs, 2 supernodes, 1 leaf switch" in page
    assert "a to leaf0: 4 links, 200 GB/s" in page
    assert "dead: crossed out or dashed; not drawn: GPU 8" in page
    assert "<title>leaf1: dead</title>" in page
    assert "2 parts are dead and not among them" in page


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_switches_and_of_dead_parts_stay_names(tmp_path: Path, name: str) -> None:
    plain, hostile = wiring(dead=["x"]), wiring(dead=[name], name=name)
    hostile["rows"][1]["parts"][0]["name"] = hostile["wires"][0]["b"] = name
    pages = [report([saved(tmp_path, {**small_plan(), "wiring": w})]) for w in (plain, hostile)]

    assert sorted(set(Tags(pages[0]).tags)) == sorted(set(Tags(pages[1]).tags))
    assert Tags(pages[1]).tags.count("script") == 1


def test_a_wiring_that_is_none_is_refused(tmp_path: Path) -> None:
    bad = wiring(colour="red")
    bad["rows"][0] |= {"kind": "cellar", "parts": []}

    with pytest.raises(InputError) as caught:
        saved(tmp_path, {**small_plan(), "wiring": bad})

    told = " ".join(caught.value.faults)
    assert "wiring.colour: is unknown" in told
    assert "wiring.rows[0].kind: expected one of" in told
    assert "wiring.rows[0].parts: expected at least 1 items" in told


def test_without_a_pipeline_a_family_that_crosses_is_lit_at_first(tmp_path: Path) -> None:
    document = many_boxes(4)
    document["axes"] = [{"name": "dp", "size": 4, "stride": 1}]
    document["inputs"]["layout"] |= {"dp": 4, "pp": 1}
    document["traffic"] = [family("dp_reduce", "dp", ["dp"], "all_reduce", group_size=4, groups=1)]

    page = report([saved(tmp_path, crossing_bytes(document, dp_reduce=2 * 30.0 * 3))])

    lit = re.findall(r'<input type="radio"[^>]*checked>([^<]*)', page)
    assert lit == ["DP, its group crosses"]
    assert "Stage 0" not in page
    assert re.findall(r'<input type="radio"[^>]*checked>([^<]*)',
                      report([saved(tmp_path, small_plan())])) == ["pipeline stages"]  # fmt: skip
