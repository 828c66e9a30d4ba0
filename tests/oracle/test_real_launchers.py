"""What we write, read by the tools it is written for: Slurm, Open MPI and Kubernetes' schemas.

Each test needs its tool on this machine and says so where it is absent. Daemons listen on the
loopback address only and are ended by their process numbers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from planner.documents import read_documents
from planner.layout import Layout
from topologies.export_graph import dot_text, slurm_topology_conf_text
from topologies.export_launch import kueue_text, mpi_rankfile_text, slurm_text
from topologies.export_seats import SeatedPlan, seated_plan
from topologies.fabric_catalogue import load_cluster
from topologies.host_lists import expand_hosts, fold_hosts
from topologies.import_slurm_conf import import_slurm_conf

SHARED = Path(os.environ.get("PLANNER_SHARED", Path(__file__).resolve().parents[3] / "shared"))
TREE = "SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[3-4]\nSwitchName=top Switches=s[0-1]\n"
SCATTERED = (5, 0, 3, 6, 1, 7, 2, 4)  # GPUs of ranks 0 to 7 on four machines of two
LISTS = (
    "n[08-11],im0,r[1-2]u[7,9]",
    "circe-n[040,060,062-064],login",
    "D0-n[00-03]",
    "m22-bold-[0-2],switch.2.[1-3]",
    "n[1-3],n[01-03]",
    "a[9-11]b[1-2]",
)


def tool(*names: str) -> None:
    absent = [name for name in names if shutil.which(name) is None]
    if absent:
        pytest.skip(f"not installed here: {', '.join(absent)}")


UNEVEN = (5, 0, 3, 1, 7, 2)  # six ranks: two machines have two, two have one


def spread_plan(folder: Path, seats: tuple[int, ...] = SCATTERED) -> SeatedPlan:
    path = folder / "tree.conf"
    path.write_text(TREE, encoding="utf-8")
    fabric = load_cluster(f"{path},gpus-per-node=2")
    layout = Layout(tp=2, dp=len(seats) // 2, global_batch=60 * len(seats), seq=2048)
    return seated_plan(layout, fabric, seats, source="a test")


def homes(plan: SeatedPlan) -> dict[int, str]:
    return {seat.rank: seat.host for seat in plan.seats}


def ran(words: list[str], environment: dict[str, str], *, limit_s: float = 60) -> str:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=limit_s, check=False,
            env={**os.environ, **environment},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.skip(f"{words[0]} does not answer within {limit_s:.0f} s on this machine")
    return done.stdout + done.stderr


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def slurm_conf(folder: Path, machines: tuple[str, ...]) -> Path:
    user = os.environ.get("USER") or ("root" if os.geteuid() == 0 else "nobody")
    host = socket.gethostname().split(".")[0]
    for name in ("state", "spool"):
        (folder / name).mkdir(exist_ok=True)
    lines = [
        "ClusterName=plan", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={free_port()}",
        "AuthType=auth/none", "CredType=cred/none", f"SlurmUser={user}", f"SlurmdUser={user}",
        f"StateSaveLocation={folder}/state", f"SlurmdSpoolDir={folder}/spool/%n",
        f"SlurmctldPidFile={folder}/ctld.pid", f"SlurmdPidFile={folder}/%n.pid",
        "MailProg=/bin/true", "TopologyPlugin=topology/tree", "MpiDefault=none",
        "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "SwitchType=switch/none",
        "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core", "ReturnToService=2",
        "SlurmdParameters=config_overrides",
        *(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=2"
            for name in machines
        ),
        "PartitionName=all Nodes=ALL Default=YES",
    ]  # fmt: skip
    path = folder / "slurm.conf"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


@contextmanager
def running(commands: list[list[str]], folder: Path) -> Iterator[None]:
    with (folder / "daemons.log").open("w") as log:
        started = [subprocess.Popen(words, stdout=log, stderr=log) for words in commands]
        try:
            yield
        finally:
            for one in reversed(started):
                one.terminate()
            for one in started:
                try:
                    one.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    one.kill()


@pytest.mark.parametrize("text", LISTS)
def test_slurm_expands_a_host_list_to_the_same_names(tmp_path: Path, text: str) -> None:
    tool("scontrol")
    conf = {"SLURM_CONF": str(slurm_conf(tmp_path, ("n1",)))}

    names = expand_hosts(text)

    assert tuple(ran(["scontrol", "show", "hostnames", text], conf).split()) == names
    folded = fold_hosts(names)
    assert tuple(ran(["scontrol", "show", "hostnames", folded], conf).split()) == names


@pytest.mark.parametrize("seats", [SCATTERED, UNEVEN])
def test_slurms_controller_has_the_planned_tree_and_srun_puts_each_rank_where_it_belongs(
    tmp_path: Path, seats: tuple[int, ...]
) -> None:
    tool("slurmctld", "slurmd", "srun", "scontrol")
    plan = spread_plan(tmp_path, seats)
    machines = plan.host_names
    conf = slurm_conf(tmp_path, machines)
    (tmp_path / "topology.conf").write_text(slurm_topology_conf_text(plan), encoding="utf-8")
    hosts = tmp_path / "hosts"
    hosts.write_text(slurm_text(plan), encoding="utf-8")
    flags = next(line for line in hosts.read_text().splitlines() if "srun" in line)
    words = flags.partition("srun ")[2].split()
    environment = {"SLURM_CONF": str(conf), "SLURM_HOSTFILE": str(hosts)}
    daemons = [["slurmctld", "-D", "-c", "-f", str(conf)]]
    daemons += [["slurmd", "-D", "-N", name, "-f", str(conf)] for name in machines]

    with running(daemons, tmp_path):
        for _ in range(40):
            states = ran(["sinfo", "-h", "-N", "-o", "%t"], environment).split()
            if states == ["idle"] * len(machines):
                break
            time.sleep(0.5)
        else:
            pytest.skip(f"Slurm's daemons do not come up here: {states}")
        tree = ran(["scontrol", "show", "topology"], environment)
        told = "echo rank $SLURM_PROCID $SLURMD_NODENAME"
        out = ran(["srun", *words, "sh", "-c", told], environment)

    placed = {int(r): host for r, host in re.findall(r"rank (\d+) (\S+)", out)}
    assert placed == homes(plan), out + (tmp_path / "daemons.log").read_text()[-3000:]
    ours, theirs = (
        import_slurm_conf(text, "f") for text in ((tmp_path / "topology.conf").read_text(), tree)
    )
    assert {(one.a, one.b) for one in theirs.links} == {(one.a, one.b) for one in ours.links}


def test_open_mpi_puts_each_rank_where_the_rankfile_says(tmp_path: Path) -> None:
    tool("mpirun", "lstopo-no-graphics")
    plan = spread_plan(tmp_path)
    agent = tmp_path / "agent.sh"
    agent.write_text('#!/bin/sh\nhost=$1; shift\nexec env PLANNED=$host sh -c "$*"\n')
    agent.chmod(0o755)
    (tmp_path / "rankfile").write_text(mpi_rankfile_text(plan), encoding="utf-8")
    slots = "".join(f"{name} slots=2\n" for name in plan.host_names)
    (tmp_path / "hostfile").write_text(slots, encoding="utf-8")
    cores = str(tmp_path / "cores.xml")
    ran(["lstopo-no-graphics", "--input", "pack:1 numa:1 core:8 pu:1", "--of", "xml", cores], {})
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    words = ["mpirun", "-mca", "plm", "rsh", "-mca", "plm_rsh_agent", str(agent)]
    words += ["-mca", "hwloc_base_topo_file", cores, "--hostfile", str(tmp_path / "hostfile")]
    words += ["-rf", str(tmp_path / "rankfile"), "-np", "8", "--display-map"]

    for _ in range(4):  # its four daemons on one machine race for one folder at times
        out = ran(
            [*words, "sh", "-c", "echo rank $OMPI_COMM_WORLD_RANK $PLANNED"], root, limit_s=20
        )
        if "JOB MAP" in out:
            break
    if "JOB MAP" not in out:
        pytest.skip(f"Open MPI does not start daemons on this machine: {out[-200:]!r}")
    first = out.split("JOB MAP")[1]
    mapped: dict[int, str] = {}
    host = ""
    for line in first.splitlines():
        if found := re.search(r"Data for node: (\S+)", line):
            host = found.group(1)
        if found := re.search(r"Process rank: (\d+)", line):
            mapped[int(found.group(1))] = host
    assert mapped == homes(plan)
    placed = {int(r): where for r, where in re.findall(r"rank (\d+) (n\d)", out)}
    assert placed == homes(plan) or not placed  # the map is printed even where nothing can run


def test_graphviz_reads_the_same_graph_with_every_rank_on_its_gpu(tmp_path: Path) -> None:
    tool("dot")
    plan = spread_plan(tmp_path)
    path = tmp_path / "plan.dot"
    path.write_text(dot_text(plan), encoding="utf-8")

    read = json.loads(ran(["dot", "-Tdot_json", str(path)], {}))

    names = {one["_gvid"]: one["name"] for one in read["objects"]}
    edges = {frozenset((names[e["tail"]], names[e["head"]])) for e in read["edges"]}
    assert set(names.values()) == set(plan.cluster.graph)
    assert edges == {frozenset(edge) for edge in plan.cluster.graph.edges}
    labels = {one["name"]: one["label"] for one in read["objects"]}
    assert all(f"rank {seat.rank}" in labels[seat.gpu] for seat in plan.seats)


def test_kueues_schema_takes_the_topology_that_is_written(tmp_path: Path) -> None:
    validator = pytest.importorskip("jsonschema")
    crd = SHARED / "inputs" / "kueue" / "crd_topologies.yaml"
    if not crd.exists():
        pytest.skip("no folder of real files: set PLANNER_SHARED")
    layout = Layout(tp=8, dp=8, global_batch=64, seq=2048)
    plan = seated_plan(layout, load_cluster("gb200-nvl72", gpus=144), range(64), source="a test")
    path = tmp_path / "kueue.yaml"
    path.write_text(kueue_text(plan), encoding="utf-8")

    topology = read_documents(path)[0].root.plain()

    schemas: dict[str, Any] = {
        version["name"]: version["schema"]["openAPIV3Schema"]
        for document in read_documents(crd)
        for version in document.root.plain()["spec"]["versions"]
    }
    schema = schemas[topology["apiVersion"].rpartition("/")[2]]
    validator.validate(topology, schema)


def test_kubernetes_schema_takes_the_jobs_that_are_written(tmp_path: Path) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    layout = Layout(tp=8, dp=8, global_batch=64, seq=2048)
    plan = seated_plan(layout, load_cluster("gb200-nvl72", gpus=144), range(64), source="a test")
    path = tmp_path / "kueue.yaml"
    path.write_text(kueue_text(plan), encoding="utf-8")

    jobset = read_documents(path)[1].root.plain()

    for job in jobset["spec"]["replicatedJobs"]:
        written = {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "planned"},
            **job["template"],
        }  # fmt: skip
        validate.validate(written, "1.29", strict=True)
