"""A busy cluster's free list: what it may say, every fault with its line, what is left."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from planner.errors import SpecError
from planner.fabric_walks import islands
from topologies.fabric_catalogue import generic_cluster, load_cluster
from topologies.free_list import free_gpus, only_gpus, read_free_list, spelled_gpus

CLUSTER = generic_cluster(16, 64)  # four supernodes of two boards of 8


def listed(text: str) -> tuple[int, ...]:
    return free_gpus(text, "free.txt", CLUSTER)


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("sn00.board00", range(8)),
        ("sn[00-01].board[00-01]", range(32)),
        ("sn00.board00,sn01.board00", [*range(8), *range(16, 24)]),
        ("sn00.board00 sn01.board00 # and a comment", [*range(8), *range(16, 24)]),
        ("sn00.board01:0-2,5\nsn03.board00:7-7", [8, 9, 10, 13, 55]),
        ("sn00.board00:0-1,sn00.board01:0,2", [0, 1, 8, 10]),
        ("sn[00-01].board00*2", [0, 1, 16, 17]),
        ("sn02", range(32, 48)),
        ("sn02.gpu[00,15]", [32, 47]),
        ("\n# nothing here\n\nsn00.board00", range(8)),
    ],
)
def test_hosts_numbers_counts_and_whole_domains_are_read(text: str, gpus: range) -> None:
    assert listed(text) == tuple(gpus)


def test_every_fault_is_named_with_its_line_and_what_would_be_right() -> None:
    lines = (
        "sn00.board00:4",  # one GPU or four?
        "sn99.board00",
        "sn00.board01:6-9",
        "sn01.board00*9",
        "sn02.board00",  # no fault
        "sn02",
        "sn[01",
        "sn03:0-3",
        "sn03.board00:3-1",
        "sn[70-79].board00",
    )

    with pytest.raises(SpecError) as refused:
        listed("\n".join(lines))

    faults = refused.value.faults
    assert [fault.split(": ")[0] for fault in faults] == [
        f"free.txt:{line}" for line in (1, 2, 3, 4, 6, 7, 8, 9, 10)
    ]
    for number, words in {
        1: "Write sn00.board00:4-4 or sn00.board00*4",
        2: "did you mean",
        3: "has no usable GPU 8: it has 0, 1, 2",
        4: "has 8 usable GPUs, 9 are said to be free",
        6: "sn02.gpu00 is free already on line 5: expected each GPU once (8 GPUs are repeated)",
        7: "'[' is never closed",
        9: "expected GPU numbers",
        10: "10 of 10 names are no hosts",
    }.items():
        assert any(words in fault and f":{number}: " in fault for fault in faults), words


@pytest.mark.parametrize("text", ["", "# all busy\n", "\n\n"])
def test_a_list_without_a_gpu_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match=r"free.txt:1: lists no free GPU: expected e.g. sn00"):
        listed(text)


def test_only_the_free_gpus_are_left_and_domains_without_one_are_gone() -> None:
    left = only_gpus(CLUSTER, listed("sn01\nsn03.board01:4-7"))

    assert left.capacities("supernode") == (16, 4)
    assert [domain.name for domain in left.tier("supernode").domains] == ["sn01", "sn03"]
    assert left.gpus == (*CLUSTER.gpus[16:32], *CLUSTER.gpus[60:64])
    assert [host.name for host in left.hosts] == ["sn01.board00", "sn01.board01", "sn03.board01"]
    assert "20 of 64 GPUs are free" in left.assumed["free"]


def test_what_leaves_a_domain_is_its_free_gpus_share() -> None:
    left = only_gpus(CLUSTER, listed("sn01\nsn03.board01:4-7"))

    whole = CLUSTER.tier("supernode").domains[0].uplink_bytes_per_s
    uplinks = [domain.uplink_bytes_per_s for domain in left.tier("supernode").domains]
    assert uplinks == pytest.approx([whole, whole / 4])


def test_a_fabric_cut_down_is_checked_on_the_whole_clusters_graph_and_travels() -> None:
    left = pickle.loads(pickle.dumps(only_gpus(CLUSTER, listed("sn01,sn02"))))

    assert set(CLUSTER.graph) == set(left.graph)
    assert len(islands(left.graph, left.gpus)) == 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["generic", "gb200-nvl72", "hgx-h100"])
def test_gpus_written_as_a_free_list_are_read_back(name: str, seed: int) -> None:
    fabric = CLUSTER if name == "generic" else load_cluster(name, gpus=144)
    random = np.random.default_rng(seed)
    gpus = np.flatnonzero(random.random(len(fabric.gpus)) < random.random()).tolist() or [3]

    assert free_gpus(spelled_gpus(fabric, gpus), "f", fabric) == tuple(gpus)


def test_a_host_with_dead_gpus_keeps_the_numbers_of_the_others() -> None:
    hurt = only_gpus(CLUSTER, [g for g in range(64) if g not in (1, 9)])

    found = free_gpus("sn00.board00:2-3", "f", hurt)
    assert [hurt.gpus[g] for g in found] == ["sn00.gpu02", "sn00.gpu03"]
    with pytest.raises(SpecError, match="has no usable GPU 1: it has 0, 2, 3"):
        free_gpus("sn00.board00:1-1", "f", hurt)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"sn00.board00:" + b"1," * 50_000])
def test_bytes_that_are_no_list_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "free.txt"
    path.write_bytes(content)

    with pytest.raises(SpecError, match=r"free\.txt:1"):
        read_free_list(path, CLUSTER)


def test_a_list_of_faults_alone_is_read_no_further() -> None:
    fabric = generic_cluster(8, 64)

    with pytest.raises(SpecError) as refused:
        free_gpus("nobody\n" * 5000, "free", fabric)

    assert refused.value.faults[-1] == "free:41: read no further"
    assert len(refused.value.faults) == 41


def test_a_supernode_that_is_one_machine_counts_its_gpus_as_the_machine_does() -> None:
    nodes = load_cluster("hgx-h100", gpus=16)

    assert free_gpus("sn01:2-3", "f", nodes) == free_gpus("sn01.board00:2-3", "f", nodes)
    assert [nodes.gpus[g] for g in free_gpus("sn01:2-3", "f", nodes)] == [
        "sn01.gpu02",
        "sn01.gpu03",
    ]


def test_numbers_where_there_are_none_are_one_fault_however_many_lines_have_them() -> None:
    lines = "\n".join(f"sn{number:02d}:0-3" for number in range(4))

    with pytest.raises(SpecError) as refused:
        free_gpus(lines, "free", CLUSTER)

    assert refused.value.faults == (
        (
            "free:1: sn00: its GPUs have no numbers: expected sn00 or sn00*N; "
            "3 more hosts of the list likewise"
        ),
    )


def test_a_name_that_is_compared_with_none_still_says_what_hosts_are_called() -> None:
    with pytest.raises(SpecError) as refused:
        free_gpus("\n".join(f"zebra{number}" for number in range(9)), "free", CLUSTER)

    assert all(fault.endswith("expected e.g. sn00.board00") for fault in refused.value.faults)
