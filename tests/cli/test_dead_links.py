"""Dead NICs: stages that send least sit where links are worst, by the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Ran

CLUSTER = """\
name: mine
accelerator: H100-SXM
gpus: 32
supernode: {size: 8, kind: switched, rate: 450 GB/s, latency: 3 us, links: 18, switches: 4}
nic:
  rate: 400 Gb/s
  in_flight: 8
  transaction: 512 KiB
  turnaround: 20 us
  pcie: 63 GB/s
  startup: 2 us
network:
  kind: fat_tree
  leaf: {gpus: 8, uplinks: 8, uplink_rate: 400 Gb/s, radix: 64, latency: 0.5 us}
  spine: {radix: 64, latency: 0.5 us}
dead: {nics: [8, 9, 10, 11]}
"""
PIPELINE = ("--model", "llama-3.1-8b", "--tp", "8", "--cp", "1", "--dp", "1", "--pp", "4")


def test_the_worst_links_have_an_end_of_the_pipeline(
    planner: Callable[..., Ran], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(CLUSTER, encoding="utf-8")

    ran = planner("place", "--cluster", str(file), *PIPELINE, "--json")

    assert ran.code == 0, ran.err
    placement = json.loads(ran.out)["placement"]
    stages = {s["name"]: {rank // 8 for rank in s["ranks"]} for s in placement["domains"]}
    assert stages["sn01"] in ({0}, {3})
