"""topograph's models, newer and older, with the quirks of its own."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from topologies.fabric_import import ImportAsked, fabric_of, import_fabric_text, recognised
from topologies.imported_fabric import ImportedFabric

OLDER = """topology: "topology/tree"
switches:
- name: top
  switches: [left, right]
- name: left
  capacity_blocks: [cb1, cb2]
- name: right
  capacity_blocks: [cb3]
capacity_blocks:
- {name: cb1, nvlink: nv1, type: H100, nodes: [n1-1, "n1-[2-3]"]}
- {name: cb2, nvlink: nv1, type: H100, nodes: [n2-1]}
- {name: cb3, type: H100, nodes: [n3-1, n3-2]}
"""
NEWER = """switches:
  top: {switches: [left, right]}
blocks:
- switch: left
  nodes: ["n[01-03]"]
  labels: {network.topology.nvidia.com/accelerator: rack-1, network.topology.nvidia.com/level2: b}
- switch: right
  nodes: [n04, "n[05-06]"]
  annotations: {accelerator.topology.test/domain: rack-2, accelerator.topology.test/sub-domain: x}
"""


def read(text: str) -> ImportedFabric:
    return import_fabric_text(text.encode(), "f", ImportAsked(gpus_per_host=4))


def homes(found: ImportedFabric) -> dict[str, str]:
    return {host.name: host.supernode for host in found.hosts}


def test_an_older_model_lists_switches_and_the_blocks_below_them() -> None:
    found = read(OLDER)

    assert recognised(OLDER.encode(), "f") == "topograph"
    assert homes(found) == {
        "n1-1": "nv1", "n1-2": "nv1", "n1-3": "nv1", "n2-1": "nv1", "n3-1": "n3-1", "n3-2": "n3-2",
    }  # fmt: skip
    joined = {(link.a, link.b) for link in found.links}
    assert {("n1-1", "left"), ("n2-1", "left"), ("n3-2", "right"), ("left", "top")} <= joined
    fabric = fabric_of(found, ImportAsked(gpus_per_host=4))
    assert sorted(fabric.capacities("supernode")) == [4, 4, 16]


def test_a_block_on_no_switch_is_said_and_reaches_others_by_its_nvlink_or_not_at_all() -> None:
    alone = OLDER.replace("[cb1, cb2]", "[cb1]")
    apart = alone.replace("cb2, nvlink: nv1", "cb2")

    assert any("cb2 is on no switch" in str(f) for f in read(alone).findings)
    assert len(fabric_of(read(alone), ImportAsked(gpus_per_host=4)).gpus) == 24
    with pytest.raises(SpecError, match="2 parts without a common switch"):
        fabric_of(read(apart), ImportAsked(gpus_per_host=4))


def test_a_block_that_nothing_describes_or_a_switch_told_twice_is_refused() -> None:
    with pytest.raises(SpecError, match="capacity block 'cb9' is nowhere described"):
        read(OLDER.replace("[cb3]", "[cb9]"))
    with pytest.raises(SpecError, match="switch 'left' is described a second time"):
        read(OLDER.replace("name: right", "name: left"))


def test_accelerator_domains_go_by_two_labels() -> None:
    assert homes(read(NEWER)) == {
        "n01": "rack-1", "n02": "rack-1", "n03": "rack-1",
        "n04": "rack-2", "n05": "rack-2", "n06": "rack-2",
    }  # fmt: skip


def test_machines_of_a_block_without_a_switch_are_left_out_and_said_to_be() -> None:
    found = read(NEWER + "- nodes: ['cpu-[01-02]']\n")

    assert len(found.hosts) == 6
    assert any("a block without a switch: its 2 machines" in str(f) for f in found.findings)
