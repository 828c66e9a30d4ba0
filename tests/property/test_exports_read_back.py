"""Plans of odd shapes: what each export writes means the same placement when it is read back."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path

import pytest

from planner.documents import document_from_text
from planner.errors import InputError
from planner.fabric import Fabric
from planner.layout import CP_KINDS, PRECISIONS, RECOMPUTES, Layout
from tests.launch_texts import read_run
from topologies.allocated_seats import allocated_gpus
from topologies.export_graph import (
    astra_sim_text,
    dot_text,
    graphml_text,
    node_link_text,
    slurm_topology_conf_text,
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
from topologies.fabric_catalogue import generic_cluster, load_cluster
from topologies.fabric_import import ImportAsked, fabric_of, import_fabric_text
from topologies.free_list import only_gpus
from topologies.import_allocation import read_allocation
from topologies.imported_run import layout_of

DEGREES = ((1,), (7,), (2, 3), (5, 3), (3, 2, 5), (13,), (4, 8), (2, 2, 7), (11, 2))
UNTOLD = {  # of Megatron's flags, or without a meaning in the layout at hand
    "activation_bytes", "dispatch_bytes", "combine_bytes", "parameter_bytes", "schedule",
}  # fmt: skip


def odd_fabric(draw: random.Random, folder: Path) -> Fabric:
    """Return a cluster with unequal supernodes, leaves or machines, some GPUs of it dead."""
    kind = draw.randrange(4)
    if kind == 0:
        total = draw.choice((1, 7, 24, 40))
        return generic_cluster(min(total, draw.choice((1, 3, 5, 8, 12))), total)
    if kind == 1:
        return load_cluster("cloudmatrix384", gpus=1024)
    if kind == 2:
        whole = generic_cluster(draw.choice((4, 8)), 32)
        return only_gpus(whole, sorted(draw.sample(range(32), draw.randrange(1, 32))))
    path, first, leaves = folder / "tree.conf", 1, []
    for leaf in range(draw.randrange(1, 5)):
        machines = draw.randrange(1, 6)
        leaves.append(f"SwitchName=s{leaf} Nodes=n[{first:02d}-{first + machines - 1:02d}]")
        first += machines
    path.write_text("\n".join([*leaves, f"SwitchName=top Switches=s[0-{len(leaves) - 1}]", ""]))
    return load_cluster(f"{path},gpus-per-node={draw.choice((1, 2, 3, 7, 8))}")


def odd_layout(draw: random.Random, ranks: int) -> Layout:
    """Return a layout of at most *ranks* ranks, its degrees prime as often as not."""
    for _ in range(50):
        degrees = [*draw.choice(DEGREES), 1, 1, 1]
        names = draw.sample(("tp", "cp", "dp", "pp"), 3)
        chosen = dict(zip(names, degrees, strict=False))
        with suppress(InputError):
            layout = Layout(
                **chosen,
                global_batch=chosen.get("dp", 1) * draw.choice((1, 2, 6)),
                ep=draw.choice((1, 1, chosen.get("dp", 1))),
                order=draw.choice(("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")),
                zero_stage=draw.randrange(4),
                recompute=draw.choice(RECOMPUTES),
                precision=draw.choice(PRECISIONS),
                cp_kind=draw.choice(CP_KINDS),
                overlap_parameters=draw.random() < 0.5,
                sequence_parallel=draw.random() < 0.5,
                gradient_bytes=draw.choice((2, 4)),
                dp_shard=draw.choice((0, 1, 2, 3)),
            )
            if layout.gpus <= ranks:
                return layout
    return Layout()


def odd_plan(seed: int, folder: Path) -> SeatedPlan:
    draw = random.Random(seed)
    fabric = odd_fabric(draw, folder)
    layout = odd_layout(draw, len(fabric.gpus))
    seats = list(range(len(fabric.gpus)))
    order = draw.randrange(3)
    if order == 0:
        draw.shuffle(seats)
    elif order == 1:  # machines shuffled, each one's ranks in a run
        hosts = list(fabric.hosts)
        draw.shuffle(hosts)
        seats = [gpu for host in hosts for gpu in host.gpus]
    return seated_plan(layout, fabric, seats[: layout.gpus], source=f"plan {seed}")


def seats_of(plan: SeatedPlan) -> tuple[int, ...]:
    number = {name: gpu for gpu, name in enumerate(plan.cluster.gpus)}
    return tuple(number[seat.gpu] for seat in plan.seats)


SEEDS = range(60)


@pytest.mark.parametrize("write", [rank_map_text, rank_map_json_text, mpi_rankfile_text])
def test_ranks_sit_where_they_did(write: Callable[[SeatedPlan], str], tmp_path: Path) -> None:
    for seed in SEEDS:
        plan = odd_plan(seed, tmp_path)

        back = read_allocation(write(plan), "f")

        assert allocated_gpus(back, plan.cluster, len(plan.seats)) == seats_of(plan), seed


def test_slurms_tasks_run_on_the_same_machines(tmp_path: Path) -> None:
    for seed in SEEDS:
        plan = odd_plan(seed, tmp_path)

        back = read_allocation(slurm_text(plan), "f")

        assert back.hosts == tuple(seat.host for seat in plan.seats), seed


def test_an_order_of_machines_is_the_same_placement_or_none_is_written(tmp_path: Path) -> None:
    written = 0
    for seed in SEEDS:
        plan = odd_plan(seed, tmp_path)
        per_host = max(map(len, plan.ranks_of().values()))
        try:
            ordered, script = node_order_text(plan), torchrun_text(plan)
        except InputError:
            continue
        written += 1

        hosts = read_allocation(ordered, "f").hosts
        nodes = re.search(r"nodes=\(\n(.*?)\n\)", script, re.DOTALL)
        assert nodes is not None
        assert hosts == tuple(nodes[1].split())
        visible = re.search(r"visible=\(\n(.*?)\n\)", script, re.DOTALL)
        slots = [[*range(per_host)]] * len(hosts)
        if visible is not None:
            slots = [[int(n) for n in one.split(",")] for one in visible[1].split()]
        told = [(hosts[r // per_host], slots[r // per_host][r % per_host])
                for r in range(len(plan.seats))]  # fmt: skip
        assert told == [(seat.host, seat.slot) for seat in plan.seats], seed

    assert written > len(SEEDS) // 4


def test_megatron_gets_the_plans_layout_or_none(tmp_path: Path) -> None:
    written = 0
    for seed in SEEDS:
        plan = odd_plan(seed, tmp_path)
        layout, path = plan.layout, tmp_path / "train.sh"
        try:
            path.write_text(megatron_text(plan))
        except InputError:
            continue
        written += 1

        back = layout_of(read_run(path), gpus=len(plan.seats))

        void = set(UNTOLD)
        void |= {"sequence_parallel"} if layout.tp == 1 else set()
        void |= {"cp_kind"} if layout.cp == 1 else set()
        void |= {"overlap_parameters"} if not layout.zero_stage else set()
        for one in fields(Layout):
            if one.name not in void:
                assert getattr(back, one.name) == getattr(layout, one.name), (seed, one.name)

    assert written > len(SEEDS) // 8


@pytest.mark.parametrize("write", [slurm_topology_text, slurm_topology_conf_text])
def test_slurms_topology_has_the_same_machines_together(
    write: Callable[[SeatedPlan], str], tmp_path: Path
) -> None:
    for seed in range(20):
        plan = odd_plan(seed, tmp_path)
        asked = ImportAsked(gpus_per_host=1)

        back = fabric_of(import_fabric_text(write(plan).encode(), "f", asked), asked)

        names = [host.name for host in back.hosts]
        theirs = {frozenset(names[g] for g in d.gpus) for t in back.tiers for d in t.domains}
        host_of = {g: host.name for host in plan.cluster.hosts for g in host.gpus}
        ours = {frozenset(host_of[g] for g in d.gpus)
                for t in plan.cluster.tiers for d in t.domains}  # fmt: skip
        assert {one for one in theirs if len(one) > 1} == {one for one in ours if len(one) > 1}


@pytest.mark.parametrize("kind", ["node-link", "graphml"])
def test_graphs_have_the_same_gpus_together(kind: str, tmp_path: Path) -> None:
    for seed in range(20):
        plan = odd_plan(seed, tmp_path)
        if len(plan.cluster.gpus) > 100:
            continue  # the whole catalogue has tests of its own
        text = node_link_text(plan.cluster) if kind == "node-link" else graphml_text(plan)

        back = fabric_of(import_fabric_text(text.encode(), "f", ImportAsked()), ImportAsked())

        theirs, ours = (
            sorted(len(one.gpus) for one in fabric.tier("supernode").domains)
            for fabric in (back, plan.cluster)
        )
        assert theirs == ours, seed


def test_equal_tiers_are_the_same_for_astra_sim(tmp_path: Path) -> None:
    written = 0
    for seed in SEEDS:
        plan = odd_plan(seed, tmp_path)
        try:
            text = astra_sim_text(plan)
        except InputError:
            continue
        written += 1

        back = fabric_of(import_fabric_text(text.encode(), "f", ImportAsked()), ImportAsked())

        sizes = [{*plan.cluster.capacities(t.name)} for t in plan.cluster.tiers]
        theirs = [{*back.capacities(t.name)} for t in back.tiers]
        assert [one for one in theirs if one != {1}] == [
            one for one, inner in zip(sizes, [{1}, *sizes], strict=False) if one != inner
        ]

    assert written


@pytest.mark.parametrize(
    "seeds", [range(130), pytest.param(range(130, 400), marks=pytest.mark.nightly)]
)
def test_kueues_slices_are_the_supernodes_of_the_plan_or_none_is_written(
    tmp_path: Path, seeds: range
) -> None:
    """Pods count machines in rank order; so many in a row must come into one domain."""
    written = sliced = 0
    for seed in seeds:
        plan = odd_plan(seed, tmp_path)
        per_host = max(map(len, plan.ranks_of().values()))
        try:
            text = kueue_text(plan)
        except InputError:
            continue
        written += 1

        topology, jobset = (
            document_from_text(part, name="f", kind="yaml").root.plain()
            for part in text.split("---\n")
        )
        levels = [level["nodeLabel"] for level in topology["spec"]["levels"]]
        job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
        marks = job["template"]["metadata"]["annotations"]
        (container,) = job["template"]["spec"]["containers"]
        assert job["parallelism"] == job["completions"] == len(plan.hosts), seed
        assert container["resources"]["limits"]["nvidia.com/gpu"] == per_host, seed
        assert levels[-1] == "kubernetes.io/hostname"
        size = int(marks.get("kueue.x-k8s.io/podset-slice-size", "1"))
        homes = [plan.seats[pod * per_host].supernode for pod in range(len(plan.hosts))]
        slices = [{*homes[at : at + size]} for at in range(0, len(homes), size)]
        assert all(len(one) == 1 for one in slices), seed
        assert size > 1 or len(homes) == len({*homes}), seed
        if size > 1:
            sliced += 1
            assert marks["kueue.x-k8s.io/podset-slice-required-topology"] in levels
            assert len(homes) == size * len({*homes}), seed

    assert written > 0.04 * len(seeds)
    assert sliced > 0.01 * len(seeds)


DOT_NODE = re.compile(r'"([^"]+)" \[label="([^"]+)", fillcolor=\w+\];')
DOT_EDGE = re.compile(r'"([^"]+)" -- "([^"]+)" \[label="(\d+) x, ([^ ]+) GB/s"\];')


def test_a_picture_of_the_graph_has_every_part_link_and_rank(tmp_path: Path) -> None:
    for seed in range(25):
        plan = odd_plan(seed, tmp_path)
        graph = plan.cluster.graph
        if len(graph) > 400:
            continue  # read by Graphviz itself elsewhere

        lines = [line.strip() for line in dot_text(plan).splitlines()]

        nodes = {
            found[1]: found[2] for line in lines if (found := DOT_NODE.fullmatch(line)) is not None
        }
        edges = [found.groups() for line in lines if (found := DOT_EDGE.fullmatch(line))]
        assert {*nodes} == {*graph}, seed
        assert {frozenset(edge[:2]) for edge in edges} == {frozenset(e) for e in graph.edges}
        for a, b, _, rate in edges:
            stated = graph[a][b]["capacity_bytes_per_s"] / 1e9
            assert float(rate) == pytest.approx(stated, rel=1e-5)
        ranks = {
            name: int(label.rpartition("rank ")[2])
            for name, label in nodes.items()
            if "rank " in label
        }
        assert ranks == {seat.gpu: seat.rank for seat in plan.seats}, seed


def test_the_channels_told_to_nccl_are_the_fewest_that_fill_the_line(tmp_path: Path) -> None:
    for seed in range(40):
        plan = odd_plan(seed, tmp_path)
        draw = random.Random(seed)
        nic = replace(
            plan.cluster.nic,
            line_bytes_per_s=draw.choice((12.5e9, 50e9, 100e9)),
            in_flight=draw.choice((1, 8, 64)),
            transaction_bytes=draw.choice((256.0, 131072.0, 524288.0)),
            turnaround_s=draw.choice((2e-6, 20e-6, 100e-6)),
        )
        plan = replace(plan, fabric=replace(plan.cluster, nic=nic))

        text = nccl_env_text(plan)

        said = dict(re.findall(r"^# (NCCL_\w+)=(\d+)$", text, re.MULTILINE))
        assert not [line for line in text.splitlines() if line and not line.startswith("#")]
        channels, buffer_bytes = int(said["NCCL_MIN_NCHANNELS"]), int(said["NCCL_BUFFSIZE"])
        assert buffer_bytes == nic.in_flight * nic.transaction_bytes
        # Little: what is on the way over the time until it is acknowledged
        assert channels * buffer_bytes / nic.turnaround_s >= nic.line_bytes_per_s * (1 - 1e-12)
        fewer = (channels - 1) * buffer_bytes / nic.turnaround_s
        assert fewer < nic.line_bytes_per_s * (1 - 1e-12)
