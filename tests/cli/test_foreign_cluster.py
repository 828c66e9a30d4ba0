"""``--cluster`` with other tools' files, and a plan whose cluster's file moved or changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import run_here as run

TREE = "SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[3-4]\nSwitchName=top Switches=s[0-1]\n"
WORK = ("--gpus", 32, "--model", "llama-3.1-8b", "--tp", 8, "--dp", 4)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    path = tmp_path / "topology.conf"
    path.write_text(TREE, encoding="utf-8")
    return path


@pytest.fixture
def plan(tree: Path, tmp_path: Path) -> Path:
    file = tmp_path / "plan.json"
    made = run("place", "--cluster", f"{tree},gpus-per-node=8", *WORK, "--out", file)
    assert made.code == 0, made.err
    return file


@pytest.mark.parametrize("name", ["cluster.yaml", "cluster.json"])
def test_the_file_itself_and_what_import_wrote_of_it_give_the_same_seats(
    tree: Path, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    wrote = run("topology", "import", tree, "--gpus-per-node", 8, "--out", file)
    assert wrote.code == 0, wrote.err

    direct = json.loads(run("place", "--cluster", f"{tree},gpus-per-node=8", *WORK, "--json").out)
    by_way = json.loads(run("place", "--cluster", file, *WORK, "--json").out)

    for key in ("placement", "cut", "step"):
        assert direct[key] == by_way[key]
    # DP of 4 in four machines, each a supernode: its sums cross, 3 of 3 ways at least.
    assert direct["cut"]["objective_bytes"] > 0
    assert "as generic of the catalogue" in direct["inputs"]["assumed"]["nic.rate"]


def test_show_and_check_take_it_and_say_where_the_figures_come_from(tree: Path) -> None:
    shown = json.loads(run("topology", "show", f"{tree},rates-from=hgx-h100", "--json").out)
    checked = run("topology", "check", "--cluster", f"{tree},rates-from=hgx-h100")

    assert [t["domain_gpus"] for t in shown["tiers"]] == [{"8": 4}, {"16": 2}, {"32": 1}]
    assert "hgx-h100" in shown["assumed"]["nic.rate"]
    assert checked.code == 0
    assert "single point of failure" in checked.out


def test_what_the_file_does_not_say_is_asked_for(tree: Path) -> None:
    found = run("place", "--cluster", tree, *WORK)

    assert found.code == 2
    assert "does not say how many GPUs n1 has" in found.err
    assert "FILE,gpus-per-node=8" in found.err


def test_a_plan_finds_its_clusters_file_where_it_was_moved(
    plan: Path, tree: Path, tmp_path: Path
) -> None:
    before = run("export", plan, "--to", "rank-map").out
    moved = tree.rename(tmp_path / "elsewhere.conf")

    lost = run("verify", plan, "--allocation", plan)
    found = run("export", plan, "--to", "rank-map", "--cluster", f"{moved},gpus-per-node=8")

    assert lost.code == 2
    assert "there is no such file" in lost.err
    assert "--cluster FILE says where" in lost.err
    assert found.out == before


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("n[3-4]", "n[3-5]"), "tier supernode: planned with 4 domains"),
        (("n[1-2]", "m[1-2]"), "its machines have other names"),
        (("SwitchName=top", "SwitchName=up"), ""),
    ],
)
def test_a_plan_on_a_cluster_that_changed_since_is_refused(
    plan: Path, tree: Path, change: tuple[str, str], fault: str
) -> None:
    tree.write_text(TREE.replace(*change), encoding="utf-8")

    for words in (("export", plan, "--to", "slurm"), ("verify", plan, "--allocation", plan)):
        told = run(*words)
        if not fault:
            assert words[0] == "verify" or told.code == 0  # switches' names seat nobody
            continue
        assert told.code == 2
        assert fault in told.err
        assert "make the plan anew" in told.err


def test_a_plan_on_a_rebuilt_cluster_is_read_with_the_same_supernodes(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    words = ("--cluster", "hgx-h100", "--supernode", 16, *WORK)
    assert run("place", *words, "--out", file).code == 0

    rows = run("export", file, "--to", "rank-map").out.split()

    assert {row.rpartition(",")[2] for row in rows[1:]} == {"sn00", "sn01"}  # 32 / 16


@pytest.mark.parametrize("kind", ["slurm", "mpi-rankfile", "torchrun", "megatron", "kueue"])
def test_a_plan_alone_is_enough_for_a_launcher(plan: Path, tree: Path, kind: str) -> None:
    before = run("export", plan, "--to", kind).out.splitlines()
    tree.unlink()

    alone = run("export", plan, "--to", kind)

    assert alone.code == 0, alone.err
    assert "the seats are those of the plan" in alone.err
    changed = [a for a, b in zip(before, alone.out.splitlines(), strict=True) if a != b]
    assert all("ranks on topology" in line for line in changed)  # where it comes from


def test_what_needs_the_cluster_says_so(plan: Path, tree: Path) -> None:
    tree.unlink()

    told = run("export", plan, "--to", "slurm-topology")

    assert told.code == 2
    assert "this kind needs the cluster" in told.err


def test_it_is_drawn_with_its_own_names(tree: Path) -> None:
    drawn = run("topology", "draw", f"{tree},gpus-per-node=8")

    assert drawn.code == 0, drawn.err
    assert drawn.out.startswith("<svg")
    for name in ("n1", "n4", "s0", "s1", "top"):
        assert f">{name}</text>" in drawn.out
    assert "32 GPUs, 4 supernodes, 2 leaf switches, 1 spine switch" in drawn.out


def test_a_flag_of_import_is_told_to_stand_behind_the_file(tree: Path) -> None:
    found = run("place", "--cluster", tree, "--gpus-per-node", 8)

    assert found.code == 2
    assert "it stands behind the cluster's file: --cluster FILE,gpus-per-node=8" in found.err


def test_a_launch_file_gives_model_and_layout_and_what_it_leaves_open_is_listed(
    tree: Path, tmp_path: Path
) -> None:
    script = tmp_path / "run.sh"
    script.write_text(
        "torchrun --nproc_per_node 8 --nnodes 4 t.py --tensor-model-parallel-size 8 "
        "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 2048 "
        "--max-position-embeddings 2048 --vocab-size 1024 --micro-batch-size 1 "
        '--global-batch-size 16 "$@"\n'
    )
    cluster = ("--cluster", f"{tree},gpus-per-node=8", "--json")

    alone = json.loads(run("place", *cluster, "--model", script).out)["inputs"]
    both = json.loads(run("place", *cluster, "--model", script, "--layout", script).out)["inputs"]

    assert "run.sh states one too: --layout takes it" in alone["assumed"]["layout_of_file"]
    assert (both["layout"]["tp"], both["layout"]["dp"]) == (8, 4)
    assert "words that only the shell knows" in both["assumed"]["arguments"]
    assert "neither bf16, fp16 nor fp8 stated" in both["assumed"]["precision"]
