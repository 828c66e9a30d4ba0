"""What schedulers do to a plan: machines swapped, lost, replaced, added, GPUs numbered anew.

Three blocks of three machines of two GPUs; the plan's twelve ranks (TP 2, DP 3, PP 2) take two.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.planner_app import main

BLOCKS = "".join(f"BlockName=b{b} Nodes=n[{3 * b - 2}-{3 * b}]\n" for b in (1, 2, 3))
Verified = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "blocks.conf").write_text(BLOCKS + "BlockSizes=3\n")
    cluster = f"{folder / 'blocks.conf'},gpus-per-node=2,blocks-scale-up"
    words = ["--tp", "2", "--dp", "3", "--pp", "2", "--gpus", "12", "--ignore-memory"]
    made = main(["place", "--cluster", cluster, "--model", "llama-3.1-8b", *words,
                 "--out", str(folder / "plan.json")])  # fmt: skip
    assert made == 0
    return folder / "plan.json"


@pytest.fixture
def seats(plan: Path, tmp_path: Path) -> list[list[str]]:
    """Return rank, host and slot of each rank as planned."""
    assert main(["export", str(plan), "--to", "rank-map", "--out", str(tmp_path / "map")]) == 0
    return [line.split(",")[:3] for line in (tmp_path / "map").read_text().split()[1:]]


@pytest.fixture
def verified(plan: Path, tmp_path: Path) -> Verified:
    def held(allocation: str) -> dict[str, Any]:
        given, out = tmp_path / "given", tmp_path / "verdict.json"
        given.write_text(allocation)
        assert main(["verify", str(plan), "--allocation", str(given), "--out", str(out)]) == 0
        found: dict[str, Any] = json.loads(out.read_text())
        return found

    return held


def rank_map(seats: list[list[str]]) -> str:
    return "\n".join(["rank,host,slot", *(",".join(one) for one in seats), ""])


def renamed(seats: list[list[str]], names: dict[str, str]) -> str:
    return rank_map([[rank, names.get(host, host), slot] for rank, host, slot in seats])


def test_machines_swapped_inside_a_supernode_change_nothing(
    seats: list[list[str]], verified: Verified
) -> None:
    told = verified(renamed(seats, {"n1": "n3", "n3": "n1"}))

    assert told["allocated"] == told["planned"]


def test_machines_swapped_between_supernodes_cross_more_and_can_be_put_back(
    seats: list[list[str]], verified: Verified
) -> None:
    told = verified(renamed(seats, {"n1": "n4", "n4": "n1"}))

    assert told["allocated"]["cut_bytes"] > told["planned"]["cut_bytes"]
    assert told["best"]["cut_bytes"] == pytest.approx(told["planned"]["cut_bytes"])
    moved = {one["machine"]: one for one in told["machines"]["other_ranks"]}
    assert set(moved) == {"n1", "n4"}
    assert moved["n1"]["allocated"] == moved["n4"]["planned"]
    assert moved["n4"]["allocated"] == moved["n1"]["planned"]


def test_a_lost_machine_is_too_few_gpus(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "given").write_text("n[1-5]\n")

    assert main(["verify", str(plan), "--allocation", str(tmp_path / "given")]) == 2

    said = capsys.readouterr().err
    assert "10 GPUs on 5 machines, the plan 12 ranks: 2 too few" in said


def test_a_lost_machine_replaced_by_one_further_away_costs_what_now_crosses(
    seats: list[list[str]], verified: Verified
) -> None:
    told = verified(renamed(seats, {seats[0][1]: "n9"} if seats[0][1] != "n9" else {"n9": "n1"}))

    assert told["allocated"]["cut_bytes"] > told["planned"]["cut_bytes"]
    assert told["planned"]["cut_bytes"] <= told["best"]["cut_bytes"]
    assert told["best"]["cut_bytes"] <= told["allocated"]["cut_bytes"]


def test_with_machines_to_spare_the_first_are_taken_and_the_best_are_found(
    verified: Verified,
) -> None:
    told = verified("n[1-2],n[4-5],n[7-9],n3,n6\n")  # two blocks in part before a whole one

    assert told["allocation"]["machines"] == 9
    assert told["allocated"]["cut_bytes"] > told["planned"]["cut_bytes"]
    assert told["best"]["cut_bytes"] == pytest.approx(told["planned"]["cut_bytes"])


def test_gpus_numbered_the_other_way_round_are_the_same_placement(
    seats: list[list[str]], verified: Verified
) -> None:
    told = verified(rank_map([[rank, host, str(1 - int(slot))] for rank, host, slot in seats]))

    assert told["allocated"] == told["planned"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (["0", "n1", "2"], "n1 has no usable GPU 2: it has 0, 1"),
        (["0", "n77", "0"], "1 machines of the allocation are not in"),
    ],
)
def test_a_gpu_or_machine_that_is_not_there_is_refused(
    plan: Path, seats: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    changed: list[str], said: str,
) -> None:  # fmt: skip
    (tmp_path / "given").write_text(rank_map([changed, *seats[1:]]))

    assert main(["verify", str(plan), "--allocation", str(tmp_path / "given")]) == 2
    assert said in capsys.readouterr().err


LISTED = "".join(f"n{number}.site\n" for number in range(1, 7))


@pytest.mark.parametrize("given", ["SLURM_JOB_NODELIST=n[1-6].site", LISTED])
def test_a_list_of_machines_with_their_domain_is_the_same_machines(
    verified: Verified, given: str
) -> None:
    plain = verified(given.replace(".site", ""))

    full = verified(given)

    assert full["allocation"] == plain["allocation"]
    assert full["allocated"] == plain["allocated"]
    assert full["groups"] == plain["groups"]
