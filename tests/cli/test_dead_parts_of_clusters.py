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
    [(), ("--gpus", "384"), ("--tp", "8", "--pp", "1"), ("--dp-shard", "8", "--zero", "3")],
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
