"""``--cluster`` takes other tools' files, and what ``topology import --out`` wrote of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.fabric import Fabric
from topologies.fabric_catalogue import is_foreign, load_cluster, load_spec
from topologies.fabric_import import ImportAsked, import_fabric, resolved_import
from topologies.imported_links import Sets, domain_names
from topologies.imported_resolved import cluster_file_text

TREE = """\
SwitchName=s0 Nodes=n[01-04]
SwitchName=s1 Nodes=n[05-07]
SwitchName=top Switches=s[0-1]
"""
DUMP = """\
Switch 4 "S-1" # "leaf1"
[1] "H-1"[1] # "a HCA-1" 4xNDR
[2] "H-2"[1] # "a HCA-2" 4xNDR
[3] "S-2"[3] 4xNDR
Switch 4 "S-2" # "leaf2"
[1] "H-3"[1] # "b HCA-1" 4xNDR
[2] "H-4"[1] # "b HCA-2" 4xNDR
[3] "S-1"[3] 4xNDR
Ca 1 "H-1" # "a HCA-1"
[1] "S-1"[1] # 4xNDR
Ca 1 "H-2" # "a HCA-2"
[1] "S-1"[2] # 4xNDR
Ca 1 "H-3" # "b HCA-1"
[1] "S-2"[1] # 4xNDR
Ca 1 "H-4" # "b HCA-2"
[1] "S-2"[2] # 4xNDR
"""
MATRIX = "GPU0 GPU1 CPU Affinity\nGPU0 X NV12 0-7\nGPU1 NV12 X 0-7\n"
RING = """\
topology: [ Ring, Switch ]
npus_count: [ 4, 3 ]
bandwidth: [ 200.0, 50.0 ]
latency: [ 500, 2000 ]
"""
AIC = """\
gpu: {mem_bw: 8000000000000, sm_version: 100}
node:
  num_gpus_per_node: 4
  num_gpus_per_rack: 72
  inter_rack_bw: 100000000000
  inter_node_bw: 900000000000
  intra_node_bw: 900000000000
"""
SAMPLES = {
    "topology.conf": (TREE, ",gpus-per-node=8"),
    "dump.txt": (DUMP, ""),
    "matrix.txt": (MATRIX, ",machines=3,accelerator=A100-SXM-80"),
    "net.yml": (RING, ""),
    "system.yaml": (AIC, ",accelerator=GB200"),
}


def written(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text(SAMPLES[name][0], encoding="utf-8")
    return path


def shape(fabric: Fabric) -> dict[str, object]:
    graph = fabric.graph
    return {
        "gpus": fabric.gpus,
        "tiers": fabric.tiers,
        "nic": fabric.nic,
        "accelerator": fabric.accelerator,
        "hosts": fabric.hosts,
        "edges": sorted((*sorted((a, b)), sorted(d.items())) for a, b, d in graph.edges(data=True)),
    }


def test_a_schedulers_tree_is_a_cluster_once_it_is_said_how_many_gpus_a_machine_has(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, "topology.conf")

    fabric = load_cluster(f"{path},gpus-per-node=8,rates-from=hgx-a100")

    assert fabric.capacities("supernode") == (8,) * 7
    assert fabric.capacities("leaf") == (32, 24)
    assert fabric.accelerator.name == load_spec("hgx-a100").accelerator.name
    assert "hgx-a100" in fabric.assumed["nic.rate"]
    lent, _, names = fabric.assumed["cluster.rates"].partition(": ")
    assert lent == "not in the file, as hgx-a100 of the catalogue"
    assert {"nic.rate", "supernode.rate"} <= set(names.split(", "))


def test_what_a_format_cannot_say_is_asked_for_and_not_guessed(tmp_path: Path) -> None:
    path = written(tmp_path, "topology.conf")

    with pytest.raises(SpecError, match=r"how many GPUs n01 has .* FILE,gpus-per-node=8"):
        load_cluster(path)


def test_the_supernode_option_says_how_many_gpus_a_machine_has_where_the_file_does_not(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, "topology.conf")

    assert load_cluster(path, supernode=4).capacities("supernode") == (4,) * 7


def test_a_named_cluster_lends_the_gpus_of_its_boards_and_that_is_said(tmp_path: Path) -> None:
    path = written(tmp_path, "topology.conf")

    fabric = load_cluster(f"{path},rates-from=hgx-h100")

    assert len(fabric.gpus) == 7 * 8
    assert fabric.assumed["gpus_per_node"] == "8: not in the file: as hgx-h100 of the catalogue"


def test_a_real_cluster_is_not_rebuilt_with_other_supernodes(tmp_path: Path) -> None:
    path = written(tmp_path, "dump.txt")

    with pytest.raises(SpecError, match="have 2 GPUs and are not rebuilt with 4"):
        load_cluster(path, supernode=4)


def test_the_job_may_be_smaller_than_the_cluster_whose_other_gpus_are_spare(tmp_path: Path) -> None:
    fabric = load_cluster(written(tmp_path, "dump.txt"), gpus=2)

    assert (fabric.job_gpus, len(fabric.gpus)) == (2, 4)


def test_one_machines_matrix_is_taken_as_often_as_asked(tmp_path: Path) -> None:
    fabric = load_cluster(f"{written(tmp_path, 'matrix.txt')},machines=3")

    assert fabric.capacities("supernode") == (2, 2, 2)
    assert fabric.tier("supernode").bytes_per_s == 12 * 25e9  # 12 NVLinks of 25 GB/s
    assert "machines" in fabric.assumed


def test_a_rack_of_aiconfigurator_is_one_supernode(tmp_path: Path) -> None:
    fabric = load_cluster(f"{written(tmp_path, 'system.yaml')},accelerator=GB200")

    assert set(fabric.capacities("supernode")) == {72}
    assert {len(host.gpus) for host in fabric.hosts} == {4}
    assert fabric.tier("supernode").bytes_per_s == 900e9
    assert fabric.nic.line_bytes_per_s == 100e9


@pytest.mark.parametrize("name", SAMPLES)
def test_the_cluster_file_written_from_an_import_is_the_same_cluster(
    tmp_path: Path, name: str
) -> None:
    text = f"{written(tmp_path, name)}{SAMPLES[name][1]}"
    direct = load_cluster(text)
    asked = ImportAsked(
        gpus_per_host=8 if "gpus-per" in text else None,
        machines=3 if "machines" in text else None,
        accelerator=text.rpartition("accelerator=")[2] if "accelerator=" in text else "",
    )
    path = tmp_path / "cluster.yaml"
    found = import_fabric(tmp_path / name, asked)

    path.write_text(cluster_file_text(resolved_import(found, asked)), encoding="utf-8")

    again = load_cluster(path)
    assert shape(again) == shape(direct)
    assert again.assumed == direct.assumed


def test_parts_joined_by_hand_stay_joined_in_the_cluster_file(tmp_path: Path) -> None:
    forest = tmp_path / "topology.conf"
    forest.write_text("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=m[1-2]\n", encoding="utf-8")
    asked = ImportAsked(gpus_per_host=4, join=True)
    path = tmp_path / "cluster.yaml"

    path.write_text(
        cluster_file_text(resolved_import(import_fabric(forest, asked), asked)), encoding="utf-8"
    )

    assert shape(load_cluster(path)) == shape(load_cluster(f"{forest},gpus-per-node=4,join"))


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (",gpus-per-nod=8", "did you mean 'gpus-per-node'"),
        (",gpus-per-node=x", "gpus-per-node=x: expected a whole number"),
        (",join=yes", "join=yes: takes no value"),
        (",gpus-per-node=8,gpus-per-node=4", "given twice"),
        (",rates-from=nowhere", "unknown cluster 'nowhere'"),
        (",format=telepathy", "format 'telepathy' is unknown"),
        (",gpus-per-node=8,machines=2", "only a file of one machine"),
    ],
)
def test_an_option_that_is_none_is_named(tmp_path: Path, options: str, fault: str) -> None:
    with pytest.raises(SpecError, match=fault):
        load_cluster(f"{written(tmp_path, 'topology.conf')}{options}")


def test_a_file_of_our_own_form_takes_no_options(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("name: own\nsupernode:\n  size: 8\n", encoding="utf-8")

    assert not is_foreign(str(path))
    with pytest.raises(SpecError, match="options are for other files"):
        load_cluster(f"{path},gpus-per-node=8")


def test_what_only_our_own_form_can_do_says_so(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="as another tool found it"):
        load_spec(written(tmp_path, "dump.txt"))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("gpus: 2", "gpus: two"), "expected a whole number from 0 to 1024"),
        (("hop_latency", "hop_latencies"), "unknown key 'hop_latencies'"),
        (("to: leaf1", "to: leaf9"), "is neither machine nor switch"),
        (("rate: 50 GB/s", "rate: fast"), "rate"),
    ],
)
def test_a_fault_in_a_cluster_file_is_named(
    tmp_path: Path, change: tuple[str, str], fault: str
) -> None:
    asked = ImportAsked()
    found = import_fabric(written(tmp_path, "dump.txt"), asked)
    text = cluster_file_text(resolved_import(found, asked))
    assert change[0] in text
    path = tmp_path / "cluster.yaml"
    path.write_text(text.replace(*change), encoding="utf-8")

    with pytest.raises(SpecError, match=fault):
        load_cluster(path)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"provider": {"name": "test"},\n "engine": {"name": "slurm"}}', "a request to topograph"),
        ('{"pp_size_2": 7.6, "pp_size_4": 8.0}', "a profile of Galvatron's"),
        ("apiVersion: kueue.x-k8s.io/v1beta1\nkind: Topology\n", "a Kubernetes manifest"),
        ("ClusterName=c\nNodeName=n[1-4] CPUs=8\n", "a slurm.conf"),
        ('{"model_type": "llama", "hidden_size": 64}', "is a model: --model"),
    ],
)
def test_what_is_often_taken_for_a_cluster_is_told_what_it_is(
    tmp_path: Path, text: str, what: str
) -> None:
    path = tmp_path / "file.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(SpecError, match=what):
        load_cluster(path)


def test_several_topologies_of_one_file_are_asked_for_by_the_option(tmp_path: Path) -> None:
    path = tmp_path / "topology.yaml"
    tree = "tree: {switches: [{switch: s, nodes: 'n[1-2]'}]}"
    path.write_text("".join(f"- topology: t{i}\n  {tree}\n" for i in (1, 2)), encoding="utf-8")

    with pytest.raises(SpecError, match="name it FILE,topology=NAME, one of t1 "):
        load_cluster(path)
    assert len(load_cluster(f"{path},topology=t2,gpus-per-node=4").gpus) == 8


def test_parts_that_share_no_switch_are_joined_by_the_option(tmp_path: Path) -> None:
    path = tmp_path / "topology.conf"
    path.write_text("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=m[1-2]\n", encoding="utf-8")

    with pytest.raises(SpecError, match=r"2 parts without .* name it FILE,join"):
        load_cluster(f"{path},gpus-per-node=4")


def test_a_supernode_bears_the_name_that_its_links_bear(tmp_path: Path) -> None:
    """A machine alone is a supernode of its own name, in tables as in links; not sn00."""
    file = tmp_path / "topology.conf"
    file.write_text(
        "SwitchName=r Switches=s[1-2]\n"
        "SwitchName=s1 Nodes=node[003-004]\nSwitchName=s2 Nodes=node[001-002]\n"
    )

    fabric = load_cluster(f"{file},gpus-per-node=8")

    named = {domain.name: domain.gpus for domain in fabric.tier("supernode").domains}
    assert set(named) == {"node001", "node002", "node003", "node004"}
    for name, gpus in named.items():
        assert {fabric.gpus[g].partition(".")[0] for g in gpus} == {name}
        assert f"{name}.switch" in fabric.graph
    assert [host.name for host in fabric.hosts] == list(named)


def loaded(folder: Path, name: str, text: str, options: str) -> Fabric:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load_cluster(f"{path}{options}")


def domains(fabric: Fabric, tier: str) -> tuple[str, ...]:
    return tuple(domain.name for domain in fabric.tier(tier).domains)


def test_domains_are_called_after_the_switches_of_the_file(tmp_path: Path) -> None:
    two_spines = (
        "SwitchName=isw-a Nodes=n[1-2]\n"
        "SwitchName=isw-b Nodes=n[3-4]\nSwitchName=top1 Switches=isw-a,isw-b\n"
        "SwitchName=top2 Switches=isw-a,isw-b\n"
    )

    one = loaded(tmp_path, "one.conf", TREE, ",gpus-per-node=8")
    two = loaded(tmp_path, "two.conf", two_spines, ",gpus-per-node=8")

    assert domains(one, "leaf") == ("s0", "s1")
    assert domains(one, "cluster") == ("top",)
    assert domains(two, "leaf") == ("isw-a", "isw-b")
    assert domains(two, "cluster") == ("cluster",)  # two switches are as high


def test_a_switch_that_is_called_like_an_inner_domain_has_its_tier_in_front() -> None:
    sets = Sets()
    sets.join("h1", "rack1")

    names = domain_names(sets, [sets.root("h1")], {"rack1": 1}, tier="leaf", taken={"rack1"})

    assert names == ("leaf.rack1",)


def test_a_pod_below_several_switches_is_called_after_the_first_and_how_many_more() -> None:
    sets = Sets()
    for low, high in (("h1", "a1"), ("h1", "a2"), ("h1", "a3"), ("h2", "b")):
        sets.join(low, high)
    up = {"h1": 0, "h2": 0, "a3": 1, "a1": 1, "a2": 1, "b": 1}

    names = domain_names(sets, [sets.root("h1"), sets.root("h2")], up, tier="leaf", taken=())

    assert names == ("a1+2", "b")


def test_a_file_of_another_tool_lends_its_rates_and_what_it_borrowed_is_said(
    tmp_path: Path,
) -> None:
    lending = tmp_path / "dump.txt"
    lending.write_text(DUMP, encoding="utf-8")  # NDR: 50 GB/s an adapter, two a machine

    fabric = loaded(tmp_path, "new.conf", TREE, f",gpus-per-node=8,rates-from={lending}")

    assert fabric.nic.line_bytes_per_s == 50e9
    assert fabric.assumed["nic.rate"] == f"not in the file: as the file {lending} has it"
    said = fabric.assumed["supernode.rate"]
    assert said == f"not in the file: as the file {lending} has it, assumed there too"
    assert f"as the file {lending} has it: " in fabric.assumed["cluster.rates"]
    # the dump's two machines are on two leaves, three links of 0.225 us apart; on one leaf: two
    lent_s = load_cluster(str(lending)).tiers[-1].latency_s
    assert fabric.tier("leaf").latency_s == pytest.approx(lent_s - 0.225e-6)


def test_a_machine_without_a_network_lends_no_rates(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="has no network, so that it lends no rates"):
        loaded(tmp_path, "t.conf", TREE, f",rates-from={written(tmp_path, 'matrix.txt')}")
