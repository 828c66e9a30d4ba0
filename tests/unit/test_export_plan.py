"""What is exported is read back, by our importers or bit by bit, and means the same placement."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from planner.documents import read_documents
from planner.errors import InputError, SpecError
from planner.fabric import Fabric
from planner.layout import Layout
from tests.launch_texts import read_run
from topologies.allocated_seats import allocated_gpus, part_of
from topologies.export_graph import (
    astra_sim_text,
    dot_text,
    graphml_text,
    node_link_text,
    slurm_topology_text,
)
from topologies.export_launch import (
    kueue_text,
    mpi_rankfile_text,
    nccl_env_text,
    node_order_text,
    rank_map_json_text,
    rank_map_text,
    slurm_text,
    torchrun_text,
)
from topologies.export_megatron import megatron_text
from topologies.export_seats import SeatedPlan, seated_plan
from topologies.fabric_catalogue import generic_cluster
from topologies.fabric_import import ImportAsked, fabric_of, import_fabric_text
from topologies.free_list import only_gpus
from topologies.import_allocation import read_allocation

LAYOUT = Layout(tp=4, dp=4, pp=2, global_batch=8, order="tp-cp-ep-pp-dp")
SWAPPED = (*range(8, 16), *range(8), *range(16, 32))  # machines 0 and 1 change places
JOBSET_SPEC = {
    "coordinator", "failurePolicy", "managedBy", "network", "replicatedJobs", "startupPolicy",
    "successPolicy", "suspend", "ttlSecondsAfterFinished", "volumeClaimPolicies",
}  # fmt: skip
REPLICATED_JOB = {"dependsOn", "groupName", "name", "replicas", "template"}
SCATTERED = tuple((r % 4) * 8 + r // 4 for r in range(32))


def plan(seats: Sequence[int] = SWAPPED, fabric: Fabric | None = None, **more: Any) -> SeatedPlan:
    fabric = fabric or generic_cluster(8, 32)
    return seated_plan(LAYOUT, fabric, seats, source="32 ranks", **more)


@pytest.mark.parametrize("seats", [SWAPPED, SCATTERED])
@pytest.mark.parametrize("write", [rank_map_text, rank_map_json_text, mpi_rankfile_text])
def test_what_seats_ranks_freely_reads_back_as_the_same_seats(
    write: Callable[..., str], seats: tuple[int, ...]
) -> None:
    made = plan(seats)
    back = read_allocation(write(made), "f")
    assert allocated_gpus(back, made.cluster, 32) == seats


@pytest.mark.parametrize("seats", [SWAPPED, SCATTERED])
def test_a_slurm_hostfile_reads_back_as_the_same_machines(
    seats: tuple[int, ...],
) -> None:
    made = plan(seats)
    text = slurm_text(made)
    back = read_allocation(text, "f")
    assert back.by_rank
    assert back.hosts == tuple(seat.host for seat in made.seats)
    assert "--distribution=arbitrary" in text
    machine = [g // 8 for g in allocated_gpus(back, made.cluster, 32)]
    assert machine == [g // 8 for g in seats]


ENVIRONMENT = """\
SLURM_JOB_ID=77
SLURM_TASKS_PER_NODE=8(x3)
declare -x SLURM_NODELIST="n[1-2],m7"
export SLURM_JOB_NODELIST=n[1-2],m7
HOME=/root
"""
PRINTED_JOB = """\
JobId=77 JobName=train
   NumNodes=3 NumTasks=24 ReqNodeList=(null) ExcNodeList=(null)
   NodeList=n[1-2],m7
   BatchHost=n1
"""


@pytest.mark.parametrize("text", [ENVIRONMENT, PRINTED_JOB])
def test_a_jobs_environment_or_scontrols_page_of_it_gives_its_machines(text: str) -> None:
    given = read_allocation(text, "f")

    assert (given.kind, given.hosts) == ("nodelist", ("n1", "n2", "m7"))


def test_the_order_of_nodes_reads_back_as_the_same_seats() -> None:
    made = plan(SWAPPED)

    back = read_allocation(node_order_text(made), "f")

    assert not back.by_rank
    assert allocated_gpus(back, made.cluster, 32) == SWAPPED
    with pytest.raises(InputError, match="numbers ranks machine by machine"):
        node_order_text(plan(SCATTERED))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"ranks": []}', "expected a list of ranks"),
        ('[{"rank": 0, "host": 3}]', r"ranks\[0\]: expected rank, host and slot"),
        ('[{"rank": 0, "host": "a"}, {"rank": 0, "host": "b"}]', "rank 0 is seated twice"),
        ('[{"rank": 1, "host": "a"}]', "rank 0 has no seat"),
        ('[{"rank": 0, "host": "a"', "is no JSON"),
        ('[{"rank": 0, "host": "a", "slot": true}]', "expected rank, host and slot"),
    ],
)
def test_a_faulty_rank_map_in_json_is_refused(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        read_allocation(text, "f")


def test_a_supernode_of_many_machines_asks_for_a_segment() -> None:
    made = plan(tuple(range(32)), generic_cluster(16, 32))
    assert "--segment=2" in slurm_text(made)
    assert "podset-slice-size: '2'" in kueue_text(made)


def test_torchrun_gives_each_machine_the_node_rank_of_the_plan(tmp_path: Path) -> None:
    made = plan()
    script = tmp_path / "run.sh"
    script.write_text(torchrun_text(made).replace("exec torchrun", "echo torchrun"))
    for node_rank, host in enumerate(made.hosts):
        ran = subprocess.run(
            ["/bin/bash", str(script), "train.py"],
            env={"NODE_NAME": host, "PATH": "/usr/bin:/bin"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        words = shlex.split(ran.stdout)
        assert f"--node-rank={node_rank}" in words
        assert "--nproc-per-node=8" in words
        ranks = [seat.rank for seat in made.ranks_of()[host]]
        assert ranks == list(range(node_rank * 8, node_rank * 8 + 8))
    lost = subprocess.run(["/bin/bash", str(script)], env={"NODE_NAME": "x", "PATH": "/bin"},
                          capture_output=True, check=False)  # fmt: skip
    assert lost.returncode == 2


def test_torchrun_refuses_ranks_that_it_cannot_place() -> None:
    with pytest.raises(InputError, match=r"holds ranks 0, 4, 8.*mpi-rankfile"):
        torchrun_text(plan(SCATTERED))


def test_megatron_flags_read_back_as_the_same_layout(tmp_path: Path) -> None:
    file = tmp_path / "train.sh"
    file.write_text(megatron_text(plan()))
    run = read_run(file)
    told = {name: run.layout[name] for name in ("tp", "pp", "order")}
    assert told == {"tp": 4, "pp": 2, "order": "tp-cp-ep-pp-dp"}


def test_a_slurm_topology_reads_back_with_the_same_domains() -> None:
    fabric = generic_cluster(16, 64)
    made = seated_plan(Layout(tp=4, dp=16, global_batch=16), fabric, tuple(range(64)))
    asked = ImportAsked(gpus_per_host=8)
    back = fabric_of(import_fabric_text(slurm_topology_text(made).encode(), "f", asked), asked)
    assert [h.name for h in back.hosts] == [h.name for h in fabric.hosts]
    assert back.capacities("leaf") == fabric.capacities("supernode")
    blocks = ImportAsked(gpus_per_host=8, topology="supernodes", blocks_scale_up=True)
    again = fabric_of(import_fabric_text(slurm_topology_text(made).encode(), "f", blocks), blocks)
    assert again.capacities("supernode") == fabric.capacities("supernode")


def test_an_astra_sim_file_reads_back_with_the_same_rates() -> None:
    made = plan()
    back = fabric_of(import_fabric_text(astra_sim_text(made).encode(), "f", ImportAsked()),
                     ImportAsked())  # fmt: skip
    for tier in made.cluster.tiers:
        same = back.tier(tier.name)
        assert same.bytes_per_s == pytest.approx(tier.bytes_per_s)
        assert same.latency_s == pytest.approx(tier.latency_s)
        assert back.capacities(tier.name) == made.cluster.capacities(tier.name)


@pytest.mark.parametrize("kind", ["node-link", "graphml"])
def test_graphs_read_back_as_the_same_cluster(kind: str) -> None:
    made = plan()
    text = node_link_text(made.cluster) if kind == "node-link" else graphml_text(made)
    found = import_fabric_text(text.encode(), "f", ImportAsked())
    back = fabric_of(found, ImportAsked())
    assert found.kind == "graph"
    assert back.capacities("supernode") == made.cluster.capacities("supernode")
    assert back.tier("supernode").bytes_per_s == pytest.approx(450e9)
    assert back.tiers[-1].bytes_per_s == pytest.approx(50e9)
    assert back.graph.number_of_nodes() == made.cluster.graph.number_of_nodes()


def test_one_gpu_is_no_network_for_astra_sim() -> None:
    with pytest.raises(InputError, match="one GPU: ASTRA-sim has no network"):
        astra_sim_text(plan((0,), generic_cluster(1, 1)))


def test_dot_names_every_rank_and_balances_its_quotes() -> None:
    text = dot_text(plan())
    assert all(f'rank {rank}"' in text for rank in range(32))
    assert text.count('"') % 2 == 0


def test_kueue_documents_have_the_fields_of_their_kinds(tmp_path: Path) -> None:
    file = tmp_path / "k.yaml"
    file.write_text(kueue_text(plan(tuple(range(32)), generic_cluster(16, 32))))
    topology, jobset = (d.root.plain() for d in read_documents(file))
    levels = [level["nodeLabel"] for level in topology["spec"]["levels"]]
    assert levels[-1] == "kubernetes.io/hostname"
    job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert job["parallelism"] == job["completions"] == 4
    marks = job["template"]["metadata"]["annotations"]
    assert marks["kueue.x-k8s.io/podset-slice-required-topology"] in levels
    # JobSet v1alpha2: replicatedJobs is all that its spec needs, name and template of one of them.
    assert (jobset["apiVersion"], jobset["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert set(jobset["spec"]) <= JOBSET_SPEC
    for one in jobset["spec"]["replicatedJobs"]:
        assert {"name", "template"} <= set(one) <= REPLICATED_JOB


def test_in_flight_limits_are_comments_with_littles_law() -> None:
    text = nccl_env_text(plan())
    assert all(line.startswith("#") for line in text.splitlines())
    assert "NCCL_BUFFSIZE=4194304" in text  # 8 slots x 512 KiB


def test_real_names_replace_those_of_the_catalogue_and_are_checked() -> None:
    made = plan(host_names=["a", "b", "c", "d"])
    assert made.seats[0].host == "b"
    with pytest.raises(InputError, match="3 names for the 4 machines"):
        plan(host_names=["a", "b", "c"])
    with pytest.raises(InputError, match="'a' is named twice"):
        plan(host_names=["a", "a", "c", "d"])


@pytest.mark.parametrize(
    ("text", "hosts", "by_rank"),
    [
        ("SLURM_JOB_NODELIST=n[1-2]", ("n1", "n2"), False),
        ("n1\nn2\n", ("n1", "n2"), False),
        ("n1 slots=2\nn2 slots=1", ("n1", "n1", "n2"), True),
        ("n1*2\n# c\nn2:1", ("n1", "n1", "n2"), True),
        ("rank 1=b slot=0:*\nrank 0=a slot=1 # x", ("a", "b"), True),
        ("rank,host\n0,a\n1,b", ("a", "b"), True),
    ],
)
def test_allocations_of_every_kind_are_read(
    text: str, hosts: tuple[str, ...], by_rank: bool
) -> None:
    read = read_allocation(text, "f")
    assert (read.hosts, read.by_rank) == (hosts, by_rank)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f:1: names no machine"),
        ("rank 0=a\nrank 0=b", "f:2: rank 0 is seated twice"),
        ("rank 0=+n0 slot=1", "f:1: .*relative"),
        ("rank,host\n0,a\n2,b", "rank 1 has no seat"),
        ("rank,slot\n0,1", "f:1: columns"),
        ("rank,host\n", "f: seats no rank"),
        ("n[1-", "f:1: .*never closed"),
    ],
)
def test_a_faulty_allocation_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        read_allocation(text, "f")


def test_a_part_of_a_cluster_keeps_only_what_was_allocated() -> None:
    part = part_of(generic_cluster(8, 32), [0, 1, 8, 9, 10])
    assert part.capacities("supernode") == (2, 3)
    assert part.gpus == ("sn00.gpu00", "sn00.gpu01", "sn01.gpu00", "sn01.gpu01", "sn01.gpu02")
    assert json.dumps([t.name for t in part.tiers]) == '["supernode", "cluster"]'


def test_a_machine_is_known_by_its_name_with_or_without_a_domain() -> None:
    made = plan(tuple(range(32)), host_names=["n1", "n2", "n3", "n4"])
    given = read_allocation("n4.site.org\nn3.site.org\nn2\nn1.site.org\n", "f")

    seats = allocated_gpus(given, made.cluster, 32, made.host_names)

    assert seats[:8] == tuple(range(24, 32))  # n4
    twice = read_allocation("n1.a\nn1.b\nn2\nn3\n", "f")
    with pytest.raises(InputError, match="2 machines of the allocation are not in"):
        allocated_gpus(twice, made.cluster, 32, made.host_names)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"order": "pp-dp-tp-cp-ep"}, "Megatron has tp-cp-ep-dp-pp and tp-cp-ep-pp-dp only"),
        ({"schedule": "dualpipe"}, "schedule dualpipe: Megatron has 1f1b"),
        ({"optimizer_bytes": 6}, "optimizer_bytes=6: Megatron has 12"),
        ({"overlap_gradients": False}, "only where it overlaps gradients"),
    ],
)
def test_a_layout_that_megatron_has_not_is_refused_rather_than_written_as_another(
    change: dict[str, Any], said: str
) -> None:
    layout = Layout(tp=4, dp=4, pp=2, global_batch=16, **change)
    made = seated_plan(layout, generic_cluster(8, 32), range(32), source="32 ranks")

    with pytest.raises(InputError, match=said):
        megatron_text(made)


def test_gpus_of_other_jobs_are_in_the_graph_and_not_read_as_the_plans() -> None:
    fabric = only_gpus(generic_cluster(8, 32), range(4, 32))

    text = node_link_text(fabric)
    back = fabric_of(import_fabric_text(text.encode(), "f", ImportAsked()), ImportAsked())

    assert text.count('"usable": false') == 4
    assert back.capacities("supernode") == (4, 8, 8, 8)
