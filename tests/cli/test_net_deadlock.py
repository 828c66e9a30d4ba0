"""``planner net deadlock``: routes from a file, classes of buffers, a path down and up again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Ran
from tests.net_files import faults_of_a_file

Planner = Callable[..., Ran]
RING = """routes:
  - {name: a-to-c, path: [a, b, c]}
  - {name: b-to-d, path: [b, c, d]}
  - {name: c-to-a, path: [c, d, a]CLASSES}
  - {name: d-to-b, path: [d, a, b]CLASSES}
"""
# two leaves and two spines; up and down only, but for one route that goes over leaf0 between spines
VALLEY = """routes:
  - {path: [gpu0, leaf0, spine0, leaf1, gpu1]}
  - {path: [gpu1, leaf1, spine0, leaf0, gpu0]}
  - {path: [gpu0, leaf0, spine1, leaf1, gpu1]}
  - {path: [gpu1, leaf1, spine1, leaf0, gpu0]}
"""


def test_one_class_around_a_ring_locks_up_and_a_second_one_where_it_closes_does_not(
    planner: Planner, tmp_path: Path
) -> None:
    file = tmp_path / "ring.yaml"

    file.write_text(RING.replace("CLASSES", ""))
    locks = planner("net", "deadlock", "--routes", str(file))
    file.write_text(RING.replace("]CLASSES}", "], classes: [0, 1]}", 1).replace(
        "CLASSES", ", classes: [1, 1]"))  # fmt: skip
    free = json.loads(planner("net", "deadlock", "--routes", str(file), "--json").out)

    assert "verdict   CAN LOCK UP" in locks.out
    assert "4 links  a -> b; b -> c; c -> d; d -> a" in locks.out
    assert "closed by a-to-c, b-to-d, c-to-a, d-to-b" in " ".join(locks.out.split())
    assert free["free"]
    assert free["channels"] == 5  # of class 0 a, b and c on; of class 1 d -> a and a -> b


def test_up_and_down_is_free_and_a_valley_after_a_failure_is_not(
    planner: Planner, tmp_path: Path
) -> None:
    file = tmp_path / "tree.yaml"
    valleys = (
        "  - {path: [gpu0, leaf0, spine0, leaf1, spine1, leaf2, gpu2]}\n"
        "  - {path: [gpu2, leaf2, spine1, leaf0, spine0, leaf1, gpu1]}\n"
        "  - {path: [gpu1, leaf1, spine1, leaf0, spine0, leaf2, gpu2]}\n"
        "  - {path: [gpu2, leaf2, spine0, leaf1, spine1, leaf0, gpu0]}\n"
    )

    file.write_text(VALLEY)
    clean = json.loads(planner("net", "deadlock", "--routes", str(file), "--json").out)
    file.write_text(VALLEY + valleys)
    valley = json.loads(planner("net", "deadlock", "--routes", str(file), "--json").out)

    assert clean["free"]
    assert clean["cycles"] == []
    assert not valley["free"]
    around = valley["cycles"][0]["links"]
    assert around == [
        "leaf0 -> spine0", "spine0 -> leaf1", "leaf1 -> spine1", "spine1 -> leaf0",
    ]  # fmt: skip
    assert valley["breaks"]


def test_a_relay_that_takes_messages_in_whole_ends_the_wait(
    planner: Planner, tmp_path: Path
) -> None:
    file = tmp_path / "ring.yaml"
    file.write_text(RING.replace("CLASSES", "") + "ends_at: [a]\n")

    assert json.loads(planner("net", "deadlock", "--routes", str(file), "--json").out)["free"]


def test_faults_of_such_routes_come_with_their_lines(planner: Planner, tmp_path: Path) -> None:
    refused = faults_of_a_file(
        planner, tmp_path / "r.yaml", "deadlock", "--routes",
        "routes:\n"
        "  - {name: one, path: [a]}\n"
        "  - {name: two, path: [a, b, c], classes: [0, 1, 0]}\n"
        "  - {name: three, path: [a, b], classes: [-1]}\n"
        "  - {name: four, route: [a, b]}\n",
    )  # fmt: skip

    assert "r.yaml:2:5: routes[0]: route 'one': 1 vertices and 1 classes" in refused
    assert "r.yaml:3:5: routes[1]: route 'two': 3 vertices and 3 classes" in refused
    assert "r.yaml:4" in refused
    assert "unknown key 'route'" in refused


def test_a_file_without_routes_is_refused(planner: Planner, tmp_path: Path) -> None:
    refused = faults_of_a_file(planner, tmp_path / "r.yaml", "deadlock", "--routes", "routes: []\n")

    assert "says no routes" in refused
