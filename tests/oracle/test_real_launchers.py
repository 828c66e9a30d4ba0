"""What we write, read by the tools it is written for: Open MPI, torchrun, Graphviz, Kubernetes.

Each test needs its tool on this machine and says so where it is absent.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planner.documents import read_documents
from planner.layout import Layout
from tests.real_tools import SHARED, free_port, homes, ran, spread_plan, tool
from topologies.export_graph import dot_text
from topologies.export_launch import kueue_text, mpi_rankfile_text, torchrun_text
from topologies.export_seats import SeatedPlan, seated_plan
from topologies.fabric_catalogue import load_cluster

RUN = "torch.distributed.run"  # what the command torchrun calls


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


def rack_plan() -> SeatedPlan:
    layout = Layout(tp=8, dp=8, global_batch=64, seq=2048)
    return seated_plan(layout, load_cluster("gb200-nvl72", gpus=144), range(64), source="a test")


def test_kueues_schema_takes_the_topology_that_is_written(tmp_path: Path) -> None:
    validator = pytest.importorskip("jsonschema")
    crd = SHARED / "inputs" / "kueue" / "crd_topologies.yaml"
    if not crd.exists():
        pytest.skip("no folder of real files: set PLANNER_SHARED")
    path = tmp_path / "kueue.yaml"
    path.write_text(kueue_text(rack_plan()), encoding="utf-8")

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
    path = tmp_path / "kueue.yaml"
    path.write_text(kueue_text(rack_plan()), encoding="utf-8")

    jobset = read_documents(path)[1].root.plain()

    for job in jobset["spec"]["replicatedJobs"]:
        written = {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "planned"},
            **job["template"],
        }  # fmt: skip
        validate.validate(written, "1.29", strict=True)


def test_jobsets_own_classes_take_the_job_set_that_is_written(tmp_path: Path) -> None:
    models = pytest.importorskip("kubeflow_trainer_api.models.jobset_v1alpha2_job_set")
    path = tmp_path / "kueue.yaml"
    path.write_text(kueue_text(rack_plan()), encoding="utf-8")

    jobset = read_documents(path)[1].root.plain()

    # The classes are made from JobSet's OpenAPI and drop what they do not know.
    assert models.JobsetV1alpha2JobSet.from_dict(jobset).to_dict() == jobset


def test_torchrun_gives_each_rank_to_the_machine_and_gpu_of_the_plan(tmp_path: Path) -> None:
    pytest.importorskip("torch.distributed.run")
    plan = spread_plan(tmp_path, (2, 3, 6, 7, 0, 1))  # machines n2, n4, n1; n3 has no rank
    script, train = tmp_path / "run.sh", tmp_path / "train.py"
    text = torchrun_text(plan).replace("exec torchrun", f"exec {sys.executable} -m {RUN}")
    local = f"--master-addr=127.0.0.1 --master-port={free_port()}"
    script.write_text(re.sub(r"--master-addr=\S+ --master-port=\d+", local, text))
    train.write_text(
        "import os\n"
        "one = [os.environ[key] for key in ('RANK', 'NODE_NAME', 'LOCAL_RANK', 'WORLD_SIZE')]\n"
        f"open('{tmp_path}/rank' + one[0], 'w').write(' '.join(one))\n"
    )

    started = [
        subprocess.Popen(["/bin/bash", str(script), str(train)], env=os.environ | {"NODE_NAME": n})
        for n in plan.hosts
    ]
    codes = [one.wait(timeout=120) for one in started]

    assert codes == [0, 0, 0]
    told = [(tmp_path / f"rank{rank}").read_text().split() for rank in range(6)]
    assert told == [[str(s.rank), s.host, str(s.slot), "6"] for s in plan.seats]
