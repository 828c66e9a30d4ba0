"""What was passed over is named in the first lines, with the command that takes it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
GENERIC = Path(__file__).parents[2] / "topologies" / "catalogue" / "generic.yaml"


_SEEN: dict[tuple[str, ...], dict[str, Any]] = {}


def page(planner: Planner, *args: str) -> str:
    ran = planner(*args)
    assert ran.code == 0, ran.err
    return " ".join(ran.out.split())


def first_lines(planner: Planner, *args: str) -> str:
    return page(planner, *args).partition("Asked")[0]


def documented(planner: Planner, *args: str) -> dict[str, Any]:
    if args not in _SEEN:
        ran = planner(*args, "--json")
        assert ran.code == 0, ran.err
        _SEEN[args] = json.loads(ran.out)
    return _SEEN[args]


SHARDED = (
    "place", "--supernode", "12", "--gpus", "96", "--model", "qwen3-30b-a3b",
    "--global-batch", "768",
)  # fmt: skip


def test_a_faster_layout_that_was_passed_over_is_named_first_and_taken_where_asked(
    planner: Planner,
) -> None:
    usual = documented(planner, *SHARDED)
    said = first_lines(planner, *SHARDED)
    fastest = documented(planner, *SHARDED, "--take", "fastest")

    choice = usual["choice"]
    assert choice["take"] == "usual"
    assert choice["passed_over_step_s"] * 1.02 < choice["seated_step_s"]
    assert "A faster layout was passed over: " in said
    assert "--take fastest takes it." in said
    taken = fastest["inputs"]["layout"]
    assert {name: taken[name] for name in choice["passed_over"]} == choice["passed_over"]
    assert fastest["step"]["total_s"] == pytest.approx(choice["passed_over_step_s"], rel=0.005)
    assert fastest["step"]["total_s"] * 1.02 < usual["step"]["total_s"]
    assert fastest["choice"]["passed_over"] is None
    assert fastest["choice"]["layouts_considered"] > choice["layouts_considered"]


def test_a_search_says_of_the_faster_one_what_place_says(planner: Planner) -> None:
    usual = documented(planner, *SHARDED)
    asked = ("search", *SHARDED[1:], "--best", "2")
    found = documented(planner, *asked)
    said = page(planner, *asked)

    passed = usual["choice"]["passed_over"]
    assert passed in [{name: one["layout"][name] for name in passed} for one in found["best"]]
    assert "planner place --take fastest takes it." in said
    assert (
        f"The usual ways to run are {usual['choice']['layouts_considered']:,} of the "
        f"{found['layouts_considered']:,}: planner place takes one of these" in said
    )


def test_the_command_beside_a_least_cut_that_is_slow_gives_the_faster_seating(
    planner: Planner,
) -> None:
    # two replicas share a supernode only if TP is split; its bytes are few, but nothing hides them
    asked = ("place", "--supernode", "8", "--gpus", "32", "--model", "llama-3.1-8b", "--tp", "4",
             "--dp", "8", "--dp-shard", "2", "--zero", "3", "--micro-batch", "1", "--seq", "4096",
             "--global-batch", "1024")  # fmt: skip
    least = documented(planner, *asked)
    said = first_lines(planner, *asked)
    timed = documented(planner, *asked, "--objective", "time")

    in_rank_order = next(
        one["step_s"] for one in least["baselines"] if one["name"] == "megatron-order"
    )
    assert least["step"]["total_s"] > 1.3 * in_rank_order
    assert "rank order takes" in said
    assert "--objective time seats for the shortest step." in said
    assert timed["step"]["total_s"] <= in_rank_order * (1.0 + 1e-9)


def test_what_a_part_of_every_rack_would_bring_is_what_its_command_gives(
    planner: Planner, tmp_path: Path
) -> None:
    asked = ("place", "--supernode", "9", "--gpus", "64", "--model", "llama-3.1-8b")
    full = documented(planner, *asked)
    said = first_lines(planner, *asked)
    part = full["part_used"]
    free = tmp_path / "free.txt"
    free.write_text("sn[00-07]*8\n", encoding="utf-8")

    shown = documented(planner, "place", "--supernode", "9", "--gpus", "72", "--free", str(free),
                       "--model", "llama-3.1-8b")  # fmt: skip

    assert (part["gpus_of_each"], part["supernodes"], part["cluster_gpus"]) == (8, 8, 72)
    assert "With 8 of the 9 GPUs of each supernode used, of 8 supernodes" in said
    assert "planner place with --supernode 9 --gpus 72 --free FILE beside the same model" in said
    assert "shows it, with sn[00-07]*8 in FILE" in said
    assert shown["inputs"]["gpus"] == 64
    assert shown["step"]["total_s"] == pytest.approx(part["step_s"], rel=0.02)
    assert shown["step"]["total_s"] < 0.98 * full["step"]["total_s"]


def test_racks_to_spare_are_kept_where_their_own_size_is_named_and_told_where_not(
    planner: Planner, tmp_path: Path
) -> None:
    file = tmp_path / "racks.yaml"
    filed = GENERIC.read_text(encoding="utf-8").replace("gpus: 1024", "gpus: 64")
    file.write_text(filed.replace("  size: 8\n", "  size: 9\n  count: 8\n"), encoding="utf-8")
    given = ("place", "--cluster", str(file), "--model", "llama-3.1-8b", "--tp", "8", "--dp", "8",
             "--micro-batch", "1")  # fmt: skip

    whole = documented(planner, *given)
    named = documented(planner, *given, "--supernode", "9")
    other = page(planner, *given, "--supernode", "6")

    assert named["cut"] == whole["cut"]
    assert named["idle"]["gpus"] == whole["idle"]["gpus"] == 8
    assert (
        "rebuilt 11 supernodes of 6, which 64 GPUs need: 6 of the 72 GPUs that are filed are left "
        "out" in other
    )


def test_a_search_says_whose_cut_is_not_proved_the_least(planner: Planner) -> None:
    asked = ("search", "--supernode", "9", "--gpus", "64", "--model", "mixtral-8x7b", "--tp", "1",
             "--pp", "1", "--zero", "3", "--best", "2", "--time-limit", "0.01")  # fmt: skip
    found = documented(planner, *asked)
    said = page(planner, *asked)

    proofs = {one["cut"]["proof"] for one in found["best"] if one["seating"] == "least-cut"}
    assert ("Not proved the least: " in said) == ("time_limit" in proofs)
    assert ("which is proved." in said) == bool(proofs and "time_limit" not in proofs)


PARTLY = ("compare", "--supernode", "5", "--gpus", "24", "--model", "llama-3.1-8b", "--tp", "4",
          "--dp", "6", "--global-batch", "48", "--micro-batch", "8", "--seq", "4096")  # fmt: skip


def test_a_comparison_says_what_a_part_of_every_rack_would_bring(
    planner: Planner, tmp_path: Path
) -> None:
    said = page(planner, *PARTLY, "--out", str(tmp_path / "full.json"))
    full = json.loads((tmp_path / "full.json").read_text(encoding="utf-8"))
    free = tmp_path / "free.txt"
    free.write_text("sn[00-05]*4\n", encoding="utf-8")
    shown = documented(planner, "place", *PARTLY[1:3], "--gpus", "30", "--free", str(free),
                       *PARTLY[5:])  # fmt: skip

    told = re.search(
        "24 GPUs do not fill supernodes of 5: 4 are full, sn04 holds 4, 1 short of it. With 4 of "
        "the 5 GPUs of each supernode used, of 6 supernodes .30 GPUs., a step takes about "
        "([0-9]+) ms", said
    )  # fmt: skip
    assert told is not None
    step_s = float(told[1]) / 1e3
    assert step_s == pytest.approx(shown["step"]["total_s"], rel=0.02)
    assert step_s < 0.98 * full["ranked"][0]["step"]["total_s"]  # groups of 4 straddle racks of 5


def test_a_comparison_under_conditions_tells_no_part_whose_command_has_none(
    planner: Planner,
) -> None:
    said = page(planner, *PARTLY, "--where", "tp == 4")

    assert "24 GPUs do not fill supernodes of 5: 4 are full, sn04 holds 4, 1 short of it." in said
    assert "of each supernode used" not in said


def test_one_candidate_crosses_the_same_bytes_on_every_page(
    planner: Planner, tmp_path: Path
) -> None:
    # rank order takes 29.0564 s of 29.0574 s, for 117 GB instead of 99.7 GB
    asked = ("--supernode", "6", "--gpus", "16", "--model", "llama-3.1-8b", "--tp", "2", "--pp",
             "2", "--dp", "4", "--vpp", "1", "--micro-batch", "1", "--recompute", "selective",
             "--global-batch", "1024", "--seq", "4096")  # fmt: skip
    placed = documented(planner, "place", *asked)
    compared, report = tmp_path / "compared.json", tmp_path / "report.html"
    (own,) = documented(planner, "compare", *asked, "--out", str(compared))["ranked"]
    (found,) = documented(planner, "search", *asked, "--best", "1")["best"]
    assert planner("report", str(compared), "--out", str(report)).code == 0

    rank_order = next(one for one in placed["baselines"] if one["name"] == "megatron-order")
    assert rank_order["step_s"] < placed["step"]["total_s"]
    least_bytes = placed["cut"]["objective_bytes"]
    assert least_bytes < 0.9 * rank_order["cut_bytes"]
    for one in (own, found):
        assert one["seated_bytes"] == pytest.approx(least_bytes)
        assert one["step"]["total_s"] == pytest.approx(placed["step"]["total_s"])
    text = report.read_text(encoding="utf-8")
    assert "99.7 GB" in text
    assert "117 GB" not in text


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param("dead: {gpus: [28, 29, 30, 31]}\n", id="the last has dead GPUs"),
        pytest.param("dead: {gpus: [16, 17, 24, 25]}\n", id="two have dead GPUs"),
    ],
)
def test_of_racks_with_dead_gpus_no_part_is_told(
    planner: Planner, tmp_path: Path, odd: str
) -> None:
    file = tmp_path / "damaged.yaml"
    filed = GENERIC.read_text(encoding="utf-8")
    file.write_text(f"{filed.replace('gpus: 1024', 'gpus: 32', 1).rstrip()}\n{odd}", "utf-8")

    ran = planner("place", "--cluster", str(file), "--model", "llama-3.1-8b", "--time-limit", "60",
                  "--json")  # fmt: skip

    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["inputs"]["gpus"] == 28
    assert "part_used" not in json.loads(ran.out)


def test_no_part_is_told_that_needs_more_racks_than_the_network_joins(
    planner: Planner, tmp_path: Path
) -> None:
    # 48 GPUs fill ten racks of 5, all that two pods of 5 leaves join; 4 of each take twelve
    file = tmp_path / "full.yaml"
    filed = GENERIC.read_text(encoding="utf-8").partition("network:")[0]
    filed = filed.replace("gpus: 1024", "gpus: 48", 1).replace("size: 8\n", "size: 5\n", 1)
    network = (
        "network:\n  kind: fat_tree\n"
        "  leaf: {gpus: 5, uplinks: 5, uplink_rate: 400 Gb/s, radix: 10, latency: 0.225 us}\n"
        "  spine: {radix: 10, latency: 0.45 us}\n"
    )
    file.write_text(f"{filed}{network}", encoding="utf-8")

    ran = planner("place", "--cluster", str(file), "--model", "llama-3.1-8b", "--global-batch",
                  "48", "--time-limit", "60", "--json")  # fmt: skip

    assert ran.code == 0, ran.err
    assert "part_used" not in json.loads(ran.out)
