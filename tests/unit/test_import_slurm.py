"""Slurm's host lists and topology files, each quirk with a small input of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import SpecError
from planner.fabric_walks import islands
from topologies.fabric_import import ImportAsked, fabric_of, import_fabric_text
from topologies.host_lists import HostListError, expand_hosts, fold_hosts
from topologies.import_slurm_conf import import_slurm_conf
from topologies.imported_fabric import ImportedFabric

EIGHT = ImportAsked(gpus_per_host=8)


def read(text: str, **asked: Any) -> ImportedFabric:
    return import_fabric_text(text.encode(), "t", ImportAsked(gpus_per_host=8, **asked))


@pytest.mark.parametrize(
    ("text", "names"),
    [  # as `scontrol show hostnames` prints them
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n[01-02],n[9-10]", ["n01", "n02", "n9", "n10"]),
        ("circe-n[040,060,062-063]", ["circe-n040", "circe-n060", "circe-n062", "circe-n063"]),
        ("im[0],grp[2-3]", ["im0", "grp2", "grp3"]),
        ("switch.2.[1-2]", ["switch.2.1", "switch.2.2"]),
        ("[1101-1102]", ["1101", "1102"]),
        ("r[1-2]n[0,5]", ["r1n0", "r1n5", "r2n0", "r2n5"]),
    ],
)
def test_a_host_list_expands_as_slurm_does(text: str, names: list[str]) -> None:
    assert list(expand_hosts(text)) == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n[1-100000000]", "131,072"),
        ("a[0-999]b[0-999]", "more than"),
        ("n[3-1]", "backwards"),
        ("n[1-2", "never closed"),
        ("n1]", "without"),
        ("n[1[2]]", "inside a bracket"),
        ("n[a-b]", "number or a range"),
        ("n[1-2],,n3", "empty name"),
        ("block{b1}", "functions"),
        ("n\x1b[1", "never closed"),
        ("n/../x", "letters"),
        (f"n[{'9' * 40}]", "number or a range"),
        ("", "empty name"),
    ],
)
def test_a_bad_host_list_is_refused_with_its_reason(text: str, said: str) -> None:
    with pytest.raises(HostListError, match=said):
        expand_hosts(text)


names_of_hosts = st.builds(
    lambda front, number, width: f"{front}{number:0{width}d}",
    st.sampled_from(["n", "gpu-a", "r1u", "x.y", ""]),
    st.integers(0, 1200),
    st.integers(1, 5),
) | st.sampled_from(["login", "head-a"])


@given(st.lists(names_of_hosts, min_size=1, max_size=60))
def test_folding_and_expanding_gives_the_same_names_in_the_same_order(names: list[str]) -> None:
    assert list(expand_hosts(fold_hosts(names))) == names


def test_a_tree_of_two_leaves_has_three_tiers() -> None:
    text = (
        "switchname=top SWITCHES=s[1-2]\nSwitchName=s1 Nodes=n[1-2] # first\nSwitchName=s2 Nodes=n3"
    )
    fabric = fabric_of(read(text), EIGHT)
    assert [t.name for t in fabric.tiers] == ["supernode", "leaf", "cluster"]
    assert fabric.capacities("leaf") == (16, 8)
    assert len(islands(fabric.graph, fabric.gpus)) == 1
    assert [h.name for h in fabric.hosts] == ["n1", "n2", "n3"]
    assert "network.leaf.uplink_rate" in fabric.assumed


def test_uplinks_of_a_leaf_are_what_its_machines_send_unless_told_otherwise(tmp_path: Path) -> None:
    text = "SwitchName=top Switches=s[1-2]\nSwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[3-4]"
    whole = fabric_of(read(text), EIGHT)
    assert whole.tier("leaf").domains[0].uplink_bytes_per_s == pytest.approx(16 * 50e9)
    rates = tmp_path / "rates.yaml"
    rates.write_text("nic: 400 Gb/s\nuplinks: [200 GB/s]\n")
    less = fabric_of(read(text), ImportAsked(gpus_per_host=8, links=rates))
    assert less.tier("leaf").domains[0].uplink_bytes_per_s == pytest.approx(200e9)
    assert less.tier("cluster").shared_bytes_per_s == pytest.approx(200e9 / 16)


def test_a_forest_is_refused_and_joined_on_request() -> None:
    text = "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[3-4]"
    found = read(text)
    assert "none above" in str(found.findings[0])
    with pytest.raises(SpecError, match=r"2 parts without a common switch.*--join"):
        fabric_of(found, EIGHT)
    joined = fabric_of(found, ImportAsked(gpus_per_host=8, join=True))
    assert len(islands(joined.graph, joined.gpus)) == 1
    assert "network.join" in joined.assumed


def test_a_machine_on_two_leaves_and_a_lost_prefix_are_reported() -> None:
    text = "SwitchName=r Switches=a,b\nSwitchName=a Nodes=c-n[1-3]\nSwitchName=b Nodes=c-n3,n[4-5]"
    said = [str(f) for f in read(text).findings]
    assert any("t:3: machine 'c-n3' is on 2 switches: a, b" in s for s in said)
    assert any("t:3: 'n4' and 1 more" in s and "'c-n'" in s for s in said)


def test_spines_that_all_list_the_same_leaves_share_their_uplinks() -> None:
    text = "SwitchName=p[0-1] Switches=s[0-1]\nSwitchName=s0 Nodes=n0\nSwitchName=s1 Nodes=n1"
    fabric = fabric_of(read(text), EIGHT)
    assert fabric.graph["s0"]["p0"]["capacity_bytes_per_s"] == pytest.approx(8 * 50e9 / 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SwitchName=r Switches=s[1-2]\nSwitchName=s1 Nodes=n1", "t:1: .*'s2', which no line"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=c Nodes=n", "below itself"),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2", "t:2: switch 'a' is described again"),
        ("SwitchName=a Nods=n1", "t:1: 'nods' is no key"),
        ("SwitchName=a Nodes", "Key=value"),
        ("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2", "both"),
        ("BlockName=a Nodes=n[1-4]\nBlockName=b Nodes=n[4-8]", "t:2: machine 'n4' is in block"),
        ("BlockName=a Nodes=n[1-4]\nBlockSizes=4,12", "t:2: block size 12 is 3 times"),
        ("BlockName=a Nodes=n[1-4]\nBlockSizes=x", "t:2: BlockSizes"),
        ("BlockName=a", "no block has machines"),
    ],
)
def test_a_faulty_topology_conf_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        read(text)


def test_blocks_with_spares_and_empty_blocks_are_read() -> None:
    text = "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockName=b3\nBlockSizes=3,6"
    found = read(text)
    assert found.block_sizes == (3, 6)
    assert "t:3: block 'b3' is empty" in [str(f) for f in found.findings]
    fabric = fabric_of(found, EIGHT)
    assert fabric.capacities("leaf") == (32, 32)
    scale_up = fabric_of(read(text, blocks_scale_up=True), EIGHT)
    assert scale_up.capacities("supernode") == (32, 32)


YAML = """
- topology: t1
  cluster_default: true
  tree:
    switches:
      - {switch: r, children: "s[1-2]"}
      - {switch: s1, nodes: "n[01-02]"}
      - {switch: s2, nodes: "1101"}
- topology: b
  block: {block_sizes: 2, blocks: {block: b1, nodes: "n[1-2]"}}
- topology: f
  flat: true
- topology: ring
  ring: {rings: [{ring: r, nodes: "n[1-4]"}]}
- topology: torus
  torus3d: {toruses: [{name: p, nodes: "n[1-8]", dims: {x: 2, y: 2, z: 2}}]}
"""


def test_a_topology_yaml_gives_its_default_or_the_one_asked_for() -> None:
    assert [h.name for h in read(YAML).hosts] == ["n01", "n02", "1101"]
    assert read(YAML, topology="b").kind == "slurm-block"
    assert len(read(YAML, topology="ring").links) == 4
    assert len(read(YAML, topology="torus").links) == 12  # a cube has 12 edges
    fabric = fabric_of(read(YAML, topology="torus"), EIGHT)
    assert len(islands(fabric.graph, fabric.gpus)) == 1
    with pytest.raises(SpecError, match="flat: it says neither"):
        read(YAML, topology="f")
    with pytest.raises(SpecError, match="no topology 'x'; it has t1"):
        read(YAML, topology="x")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("block: {block_sizes: [4, 12], blocks: [{block: b, nodes: 'n[1-4]'}]}", "12 is 3 times"),
        ("block: [{block_sizes: [4]}]", "expected a mapping"),
        ("flat: true\n  block: {blocks: [{block: b, nodes: n1}]}", "block and flat"),
        ("flat: [1]", "flat: expected true"),
        ("ring: {rings: 'r=n1'}", "rings: expected a list of mappings"),
        ("ring: {rings: [{ring: r, nodes: 'n[1-17]'}]}", "17 machines: expected 1 to 16"),
        ("torus3d: {toruses: [{name: p, nodes: 'n[1-8]', dims: {x: 4, y: 4, z: 2}}]}", "32 places"),
        (
            "torus3d: {toruses: [{name: p, nodes: n1, dims: {x: 1, y: 1, z: 1}, placements: x}]}",
            "placements: expected a list",
        ),
        ("torus3d: {toruses: [{name: p, nodes: n1, dims: 1}]}", "expected a mapping"),
        ("tree: 'SwitchName=s1'", "expected a mapping"),
        ("tree: {switches: 's1=n1'}", "switches: expected a list of mappings"),
        ("tree: {switches: [{switch: r, children: 's[1-2]'}, {switch: s1, nodes: n}]}", "'s2'"),
        ("tree: {switches: [{switch: r, nodes: 'n[1'}]}", "never closed"),
        ("ringo: {}", "ringo"),
    ],
)
def test_a_faulty_topology_yaml_is_refused_with_its_line(body: str, said: str) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        read(f"- topology: t\n  {body}\n")
    assert caught.value.faults[0].startswith("t:")


def test_a_topology_yaml_whose_root_is_text_is_refused() -> None:
    with pytest.raises(SpecError, match="expected a topology"):
        import_fabric_text(b"topology/tree", "t", ImportAsked(format="slurm-yaml"))


def test_machines_without_a_number_of_gpus_are_asked_for() -> None:
    with pytest.raises(SpecError, match="--gpus-per-node"):
        fabric_of(read("SwitchName=s Nodes=n[1-2]"), ImportAsked())


PRINTED = """\
SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[3-4]
SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[0-1]
"""
PRINTED_BLOCKS = """\
BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2
BlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2
AggregatedBlock=b[1-2] BlockIndex=0 Nodes=n[1-4] BlockSize=4
"""


def test_what_scontrol_prints_of_a_tree_is_the_tree() -> None:
    plain = "SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[3-4]\nSwitchName=top Switches=s[0-1]"

    printed = import_slurm_conf(PRINTED, "f")

    assert printed.links == import_slurm_conf(plain, "f").links
    assert not printed.findings


def test_what_scontrol_prints_of_blocks_is_the_blocks() -> None:
    printed = import_slurm_conf(PRINTED_BLOCKS, "f")

    assert printed.kind == "slurm-block"
    assert {(one.a, one.b) for one in printed.links if one.a.startswith("n")} == {
        ("n1", "b1"), ("n2", "b1"), ("n3", "b2"), ("n4", "b2"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "SwitchName = s0 Nodes = n[0-3]",  # each of these Slurm 26.05 reads as the same
        'SwitchName="s0" Nodes="n[0-3]"',
        "switchname=s0   NODES=n[0-3]# rack",
        "SwitchName=s0 \\\n  Nodes=n[0-3]",
        "SwitchName=s0 Nodes=n[0,\\\n1-3]",
        "SwitchName=s0 No\\\ndes=n[0-2],n\\\n3",
        "SwitchName=s0 \\ # rack\n Nodes=n[0-3]",
        "SwitchName=s0 Nodes=n[0-3]\n# SwitchName=old \\",
    ],
)
def test_spaces_quotes_and_continued_lines_are_read_as_slurm_reads_them(line: str) -> None:
    found = import_slurm_conf(f"{line}\n", "f")

    assert [host.name for host in found.hosts] == ["n0", "n1", "n2", "n3"]
    assert found.switches == ("s0",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Include other.conf\nSwitchName=s0 Nodes=n0", "f:1: Include: another file's lines"),
        ("SwitchName=s0 Nodes=ALL", "'s0' lists ALL, which stands for no machines"),
        ("BlockName=b Nodes=all", "'b' lists ALL, which stands for no machines"),
        ("SwitchName=s0 Nodes=n[0-1], n[2-3]", r"'n\[2-3\]': expected Key=value"),
        ("SwitchName=s0 Nodes=n[0-1],\\\n n[2-3]", r"'n\[2-3\]': expected Key=value"),
        ("SwitchName=s\\#0 Nodes=n[0-1]", "host name .s.*#0.: expected letters"),
    ],
)
def test_what_slurm_reads_elsewhere_or_not_at_all_is_refused(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        import_slurm_conf(text, "f")


def test_a_range_of_switches_on_one_line_is_said_to_be_one_to_slurm() -> None:
    found = import_slurm_conf("SwitchName=s[0-1] Nodes=n[0-1]", "f")

    assert any("s[0-1]: taken as 2 switches, by Slurm as one" in str(f) for f in found.findings)


def test_a_line_that_goes_on_into_a_blank_one_ends_there() -> None:
    found = import_slurm_conf("SwitchName=s0 Nodes=n[0-1] \\\n\n\\\n\n", "f")

    assert [host.name for host in found.hosts] == ["n0", "n1"]


def test_more_switches_than_any_cluster_has_are_refused_where_they_begin() -> None:
    text = "".join(f"SwitchName=s{n} Nodes=n{n}\n" for n in range(40_000))

    with pytest.raises(SpecError, match=r"f:32769: more than 32,768 switches or blocks"):
        import_slurm_conf(text, "f")
