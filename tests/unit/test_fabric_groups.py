"""Host list functions name the machines of a switch, as Slurm's do."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from planner.fabric import Fabric
from topologies.fabric_catalogue import load_cluster
from topologies.fabric_groups import machines_by_function
from topologies.host_lists import expand_hosts
from topologies.import_allocation import read_allocation

TREE = """\
SwitchName=s0 Nodes=n[1-3]
SwitchName=s1 Nodes=n[4-6]
SwitchName=s2 Nodes=n[7-9]
SwitchName=mid Switches=s[0-1]
SwitchName=top Switches=mid,s2
"""


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Fabric:
    path = tmp_path_factory.mktemp("tree") / "topology.conf"
    path.write_text(TREE, encoding="utf-8")
    return load_cluster(f"{path},gpus-per-node=2")


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("switch{s1}", "n4 n5 n6"),
        ("switch{mid}", "n1 n2 n3 n4 n5 n6"),
        ("switch{s[1-2]},n1", "n4 n5 n6 n7 n8 n9 n1"),
        ("block{s0},switch{s2}", "n1 n2 n3 n7 n8 n9"),
        ("switchwith{n5}", "n4 n5 n6"),
        ("switchwith{n5,n9}", "n4 n5 n6 n7 n8 n9"),
        ("blockwith{n[1-2]}", "n1 n2 n3"),
        ("SWITCH{s1}", "n4 n5 n6"),
    ],
)
def test_a_function_gives_the_machines_below(fabric: Fabric, text: str, hosts: str) -> None:
    found = expand_hosts(text, named=machines_by_function(fabric))

    assert found == tuple(hosts.split())


def test_an_allocation_may_use_them(fabric: Fabric) -> None:
    given = read_allocation(
        "SLURM_JOB_NODELIST=switch{s0},n9\n", "nodes", machines_by_function(fabric)
    )

    assert given.hosts == ("n1", "n2", "n3", "n9")
    assert given.kind == "nodelist"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("switch{s7}", "no switch or domain 's7'"),
        ("switchwith{n77}", "no machine 'n77'"),
        ("feature{gpu}", "host list functions need a cluster"),
        ("switch{s0", "host list functions need a cluster"),
        ("switch{}", "host list functions need a cluster"),
        ("s{0}}", "functions"),
    ],
)
def test_what_names_nothing_is_refused(fabric: Fabric, text: str, fault: str) -> None:
    with pytest.raises(SpecError, match=fault):
        read_allocation(text, "nodes", machines_by_function(fabric))


def test_without_a_cluster_a_function_is_refused() -> None:
    with pytest.raises(SpecError, match="need a cluster"):
        expand_hosts("switch{s0},n1")
