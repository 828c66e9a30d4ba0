"""Jobs on a cluster of three supernodes with dead GPUs and NICs: planned, whatever their size."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
ROOT = Path(__file__).resolve().parents[2]
FILED = ROOT / "topologies" / "catalogue" / "cloudmatrix384-3x384.yaml"
DEAD = "dead:\n  gpus: [3, 17, 400]\n  nics: [5, 700]\n"


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "damaged.yaml"
    path.write_text(f"{FILED.read_text(encoding='utf-8').rstrip()}\n{DEAD}", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--gpus", "384"),
        ("--tp", "8", "--pp", "1", "--cp", "1"),
        ("--dp-shard", "8", "--zero", "3", "--tp", "1", "--pp", "1", "--cp", "1"),
        pytest.param(("--tp", "8", "--pp", "1"), marks=pytest.mark.nightly),
        pytest.param(("--dp-shard", "8", "--zero", "3"), marks=pytest.mark.nightly),
    ],
)
def test_a_layout_is_chosen_on_supernodes_of_unequal_size(
    planner: Planner, cluster: str, options: tuple[str, ...]
) -> None:
    ran = planner("place", "--cluster", cluster, "--model", "llama-3.1-8b", *options, "--json")

    assert ran.code == 0, ran.err
    plan = json.loads(ran.out)
    wanted = 384 if "--gpus" in options else 1024
    assert plan["inputs"]["gpus"] == len(set(plan["placement"]["gpus"])) == wanted
    assert not {"sn00.gpu003", "sn00.gpu017", "sn01.gpu016"} & set(plan["placement"]["gpus"])


def test_a_dead_part_that_the_whole_cluster_has_not_is_refused(
    planner: Planner, cluster: str
) -> None:
    text = Path(cluster).read_text(encoding="utf-8").replace("700", "7000")
    Path(cluster).write_text(text, encoding="utf-8")

    ran = planner("place", "--cluster", cluster, "--gpus", "384", "--model", "llama-3.1-8b")

    assert ran.code == 2
    assert "dead.nics[1]: expected a whole number from 0 to 1151, got 7000" in ran.err


def test_an_allocation_is_held_against_a_plan_that_leaves_spare_gpus_of_a_damaged_cluster(
    planner: Planner, cluster: str, tmp_path: Path
) -> None:
    plan, hosts = str(tmp_path / "plan.json"), str(tmp_path / "hosts")
    layout = ("--tp", "8", "--cp", "1", "--dp", "8", "--pp", "1", "--model", "llama-3.1-8b")
    assert planner("place", "--cluster", cluster, *layout, "--out", plan).code == 0
    assert planner("export", plan, "--to", "node-order", "--out", hosts).code == 0

    ran = planner("verify", plan, "--allocation", hosts, "--json")

    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["allocated"] == found["planned"]
    assert found["allocation"]["gpus"] >= 64


def test_a_plan_of_part_of_a_whole_cluster_is_timed_where_it_was_made(
    planner: Planner, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    layout = ("--tp", "8", "--cp", "1", "--dp", "4", "--pp", "1", "--model", "llama-3.1-8b")
    assert planner("place", "--cluster", "hgx-h100", *layout, "--out", str(plan)).code == 0

    again = planner("step", "--placement", str(plan), "--json")
    exported = planner("export", str(plan), "--to", "torchrun")

    made, timed = json.loads(plan.read_text(encoding="utf-8")), json.loads(again.out)
    assert timed["inputs"]["fabric"] == made["inputs"]["fabric"]
    assert timed["step"]["total_s"] == pytest.approx(made["step"]["total_s"])
    assert exported.code == 0, exported.err


def test_degrees_that_take_every_usable_gpu_are_taken_however_odd(
    planner: Planner, tmp_path: Path
) -> None:
    filed = ROOT / "topologies" / "catalogue" / "hgx-h100.yaml"
    dead = ", ".join(map(str, range(24)))
    path = tmp_path / "odd.yaml"
    path.write_text(
        f"{filed.read_text(encoding='utf-8').rstrip()}\ndead:\n  gpus: [{dead}]\n", encoding="utf-8"
    )
    layout = ("--tp", "8", "--cp", "1", "--dp", "125", "--pp", "1", "--global-batch", "1000")

    ran = planner("step", "--cluster", str(path), *layout, "--model", "llama-3.1-8b", "--json")

    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["inputs"]["gpus"] == 1000  # 1,024 less 24, no multiple of 16
