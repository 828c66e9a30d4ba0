"""What we write for Slurm, read by Slurm's own controller, and host lists as Slurm expands them.

topology.yaml needs Slurm 25.05 or newer: where the machine has an older one, PLANNER_SLURM_ROOT
names a folder with the root of a system that has it
(``mmdebstrap --include=slurmctld,slurm-client sid FOLDER``).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.layout import Layout
from tests.real_tools import (
    SCATTERED,
    SHARED,
    free_port,
    homes,
    ran,
    running,
    spread_plan,
    tool,
)
from topologies.export_graph import slurm_topology_conf_text, slurm_topology_text
from topologies.export_launch import slurm_text
from topologies.export_seats import seated_plan
from topologies.fabric_catalogue import load_cluster
from topologies.host_lists import expand_hosts, fold_hosts
from topologies.import_slurm_conf import import_slurm_conf
from topologies.import_slurm_yaml import import_slurm_yaml

UNEVEN = (5, 0, 3, 1, 7, 2)  # six ranks: two machines have two, two have one
LISTS = (
    "n[08-11],im0,r[1-2]u[7,9]",
    "circe-n[040,060,062-064],login",
    "D0-n[00-03]",
    "m22-bold-[0-2],switch.2.[1-3]",
    "n[1-3],n[01-03]",
    "a[9-11]b[1-2]",
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSlurm:
    """A Slurm that reads topology.yaml.

    Args:
        root: the folder of its system, ``/`` for this one.
    """

    root: Path

    def words(self, *command: str) -> list[str]:
        if self.root == Path("/"):
            return list(command)
        see = "".join(f"mount --bind /{one} {self.root}/{one} && " for one in ("proc", "dev"))
        inside = shlex.join(["chroot", str(self.root), *command])
        return ["unshare", "--mount", "sh", "-c", f"{see}exec {inside}"]

    def tree_of(self, text: str, machines: Sequence[str]) -> str:
        """Return what its controller says of *text*'s default topology, nothing if it refuses."""
        folder = Path(tempfile.mkdtemp(dir=self.root / "tmp"))
        own = Path("/") / folder.relative_to(self.root)
        for name in ("state", "spool"):
            (folder / name).mkdir()
        lines = [
            "ClusterName=plan", f"SlurmctldHost={socket.gethostname().split('.')[0]}(127.0.0.1)",
            f"SlurmctldPort={free_port()}", "AuthType=auth/none", "CredType=cred/none",
            "SlurmUser=root", f"StateSaveLocation={own}/state", f"SlurmdSpoolDir={own}/spool",
            f"SlurmctldPidFile={own}/pid", "MailProg=/bin/true", "MpiDefault=none",
            "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none",
            "SelectType=select/cons_tres", f"NodeName={fold_hosts(machines)} CPUs=2 State=FUTURE",
            "PartitionName=all Nodes=ALL Default=YES",
        ]  # fmt: skip
        (folder / "slurm.conf").write_text("\n".join([*lines, ""]), encoding="utf-8")
        (folder / "topology.yaml").write_text(text, encoding="utf-8")
        conf = str(own / "slurm.conf")
        told = ""
        with running([self.words("slurmctld", "-D", "-c", "-f", conf)], folder) as started:
            for _ in range(40):
                time.sleep(0.25)
                if started[0].poll() is not None:
                    break
                told = ran(self.words("env", f"SLURM_CONF={conf}", "scontrol", "show", "topo"), {})
                if "Name=" in told:
                    break
        sys.stderr.write((folder / "daemons.log").read_text())  # shown where the test fails
        shutil.rmtree(folder)
        return told if "Name=" in told else ""


CONTINUED = {
    "in a list": "SwitchName=l1 Nodes=n[1-4,\\\n6-8]\nSwitchName=l2 Nodes=n5\n",
    "in a word": "SwitchName=l1 Nodes=n[1-4],n\\\n5\nSwitchName=l2 Nodes=n[6-8]\n",
    "before a comment": "SwitchName=l1 \\ # rack\n Nodes=n[1-8]\n",
    "in a comment": "SwitchName=l1 Nodes=n[1-4]\n# old \\\nSwitchName=l2 Nodes=n[5-8]\n",
    "before blanks": "SwitchName=l1 \\   \n Nodes=n[1-8]\n",
}


@pytest.mark.parametrize("text", CONTINUED.values(), ids=CONTINUED)
def test_slurms_controller_joins_continued_lines_to_the_same_tree(
    tmp_path: Path, text: str
) -> None:
    tool("slurmctld", "scontrol")
    conf = slurm_conf(tmp_path, expand_hosts("n[1-8]"))
    (tmp_path / "topology.conf").write_text(text, encoding="utf-8")

    tree = ""
    with running([["slurmctld", "-D", "-c", "-f", str(conf)]], tmp_path):
        for _ in range(40):
            tree = ran(["scontrol", "show", "topology"], {"SLURM_CONF": str(conf)})
            if "SwitchName" in tree:
                break
            time.sleep(0.25)
        else:
            pytest.skip(f"Slurm's controller does not come up here: {tree[:200]}")

    ours, theirs = (import_slurm_conf(one, "f") for one in (text, tree))
    assert {(one.a, one.b) for one in theirs.links} == {(one.a, one.b) for one in ours.links}


def new_slurm() -> NewSlurm:
    """Return a Slurm of 25.05 or newer."""
    found = NewSlurm(root=Path(os.environ.get("PLANNER_SLURM_ROOT", "/")))
    if os.geteuid() != 0:
        pytest.skip("slurmctld of another root is started as root")
    if found.root == Path("/"):
        tool("slurmctld", "scontrol")
    version = re.search(r"(\d+)\.(\d+)", ran(found.words("slurmctld", "-V"), {}))
    if version is None or tuple(map(int, version.groups())) < (25, 5):
        seen = version.group() if version else "none"
        pytest.skip(f"topology.yaml needs Slurm 25.05, here is {seen}: set PLANNER_SLURM_ROOT")
    return found


@pytest.mark.parametrize("name", ["gb200-nvl72", "hgx-h100", "llama3-roce"])
def test_a_newer_slurm_has_the_planned_tree_of_a_topology_yaml(name: str) -> None:
    slurm = new_slurm()
    layout = Layout(tp=8, dp=16, global_batch=64, seq=2048)
    plan = seated_plan(layout, load_cluster(name, gpus=1024), range(128), source="a test")
    text = slurm_topology_text(plan)

    told = slurm.tree_of(text, plan.host_names)

    ours, theirs = import_slurm_yaml(text, "f"), import_slurm_conf(told, "scontrol")
    assert {(one.a, one.b) for one in theirs.links} == {(one.a, one.b) for one in ours.links}
    assert {one.name for one in theirs.hosts} == set(plan.host_names)


def test_a_newer_slurm_has_the_planned_supernodes_as_blocks() -> None:
    slurm = new_slurm()
    layout = Layout(tp=8, dp=16, global_batch=64, seq=2048)
    plan = seated_plan(layout, load_cluster("gb200-nvl72"), range(128), source="a test")
    flags = slurm_topology_text(plan)
    blocks_first = re.sub(
        "cluster_default: (true|false)",
        lambda found: f"cluster_default: {'false' if found[1] == 'true' else 'true'}",
        flags,
    )

    told = slurm.tree_of(blocks_first, plan.host_names)

    blocks = dict(re.findall(r"^BlockName=(\S+).*? Nodes=(\S+)", told, re.MULTILINE))
    supernodes = {
        domain.name: {host.name for host in plan.cluster.hosts if {*host.gpus} <= {*domain.gpus}}
        for domain in plan.cluster.tier("supernode").domains
    }
    assert {name: set(expand_hosts(nodes)) for name, nodes in blocks.items()} == supernodes


def test_a_newer_slurm_refuses_the_same_published_files() -> None:
    slurm = new_slurm()
    files = sorted((SHARED / "inputs").glob("slurm*/*.yaml"))
    if not files:
        pytest.skip("no folder of real files: set PLANNER_SHARED")
    theirs, ours = {}, {}
    for file in files:
        text = file.read_text()
        nodes = [n for found in re.findall(r" nodes: *(\S+)", text) for n in expand_hosts(found)]
        theirs[file.name] = slurm.tree_of(text, list(dict.fromkeys(nodes)) or ["n1"]) != ""
        try:
            ours[file.name] = bool(import_slurm_yaml(text, file.name).hosts)
        except SpecError:
            ours[file.name] = False

    assert ours == theirs


def test_a_newer_slurm_has_pods_that_are_called_after_several_switches(tmp_path: Path) -> None:
    slurm = new_slurm()
    path = tmp_path / "two.conf"
    leaves = [f"SwitchName=l{n} Nodes=n[{2 * n}-{2 * n + 1}]" for n in range(1, 5)]
    spines = [f"SwitchName=s{n} Switches=l[{1 if n < 3 else 3}-{2 if n < 3 else 4}]" for n in
              range(1, 5)]  # fmt: skip
    path.write_text("\n".join([*leaves, *spines, "SwitchName=c Switches=s[1-4]", ""]))
    layout = Layout(tp=8, dp=8, global_batch=64, seq=2048)
    plan = seated_plan(layout, load_cluster(f"{path},gpus-per-node=8"), range(64), source="a test")

    told = slurm.tree_of(slurm_topology_text(plan), plan.host_names)

    assert re.findall(r"SwitchName=(\S+) Level=1 \S+ Nodes=(\S+)", told) == [
        ("s1+1", "n[2-5]"), ("s3+1", "n[6-9]"),
    ]  # fmt: skip
