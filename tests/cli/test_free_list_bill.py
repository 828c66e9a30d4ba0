"""Of a cluster cut down by a free list the bill counts all that was bought, and says so."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path

from cli.plan_stages import bill_document
from planner.procure.bill import bill_of_materials
from tests.conftest import Ran
from topologies.fabric_catalogue import generic_cluster
from topologies.free_list import free_gpus, only_gpus

Planner = Callable[..., Ran]


def test_racks_used_in_part_are_bought_whole_with_all_their_servers() -> None:
    # 16 racks of 72 GPUs, of 9 servers of 8 each, are 144; 64 ranks in each sit on 8 of the 9.
    racks = generic_cluster(72, 1152)
    cut = only_gpus(racks, free_gpus("sn[00-15]*64", "free", racks))
    fewer = only_gpus(racks, free_gpus("sn[00-07]*64", "free", racks))

    counts = {line.item: line.count for line in bill_of_materials(cut, None).lines}

    assert (counts["H100-SXM"], counts["server"], counts["supernode"]) == (1152, 144, 16)
    assert bill_of_materials(cut, None) == bill_of_materials(racks, None)
    assert bill_of_materials(fewer, None) == bill_of_materials(racks, None)
    assert only_gpus(cut, range(64)).whole is racks
    assert bill_document(cut, range(1024))["with_ranks"] == {"gpus": 1024, "servers": 128}


def test_a_plan_of_a_free_list_tells_the_size_of_its_racks_and_what_is_bought(
    planner: Planner, tmp_path: Path
) -> None:
    # four racks of 24 GPUs, of 3 servers each, two servers of each free
    free, file = tmp_path / "free.txt", tmp_path / "plan.json"
    free.write_text("sn[00-03]*16\n", encoding="utf-8")

    placed = planner(
        "place", "--supernode", "24", "--gpus", "96", "--free", str(free), "--model",
        "llama-3.1-8b", "--tp", "8", "--dp", "8", "--micro-batch", "1", "--time-limit", "30",
        "--out", str(file),
    )  # fmt: skip
    page = html.unescape(planner("report", str(file)).out)

    said = " ".join(placed.out.split())
    assert "64 H100-SXM in supernodes of 24 (4 of them), in each 16 free" in said
    assert "GPUs that are not in the free list are left out." in said
    assert json.loads(file.read_text("utf-8"))["bill"]["with_ranks"] == {"gpus": 64, "servers": 8}
    assert (
        "the whole cluster counts, 96 GPUs and 12 servers, of which 64 GPUs and 8 servers hold a "
        "rank."
    ) in page


def test_of_parts_of_racks_that_differ_each_is_told_and_none_is_called_short(
    planner: Planner, tmp_path: Path
) -> None:
    free = tmp_path / "free.txt"
    free.write_text("sn[00-02]*16\nsn03*8\n", encoding="utf-8")

    placed = planner(
        "place", "--supernode", "24", "--gpus", "96", "--free", str(free), "--model",
        "llama-3.1-8b", "--tp", "8", "--dp", "7", "--micro-batch", "1", "--global-batch", "56",
        "--time-limit", "30",
    )  # fmt: skip

    said = " ".join(placed.out.split())
    assert "in supernodes of 24 (4 of them), in them 16+16+16+8 free" in said
    assert "do not fill" not in said
