"""A cluster whose network cannot be built large enough for a run is not told to be impossible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.test_compare import FEW, NARROW
from tests.conftest import Ran

Planner = Callable[..., Ran]

SMALL = """
name: small
about: 32 GPUs
source: ours
accelerator: H100-SXM
gpus: 32
supernode: {size: 8, kind: switched, rate: 450 GB/s, latency: 3 us, links: 18, switches: 4}
nic: {rate: 400 Gb/s, in_flight: 8, transaction: 512 KiB, turnaround: 20 us, pcie: 63 GB/s,
      startup: 2.35 us}
network:
  kind: fat_tree
  leaf: {gpus: 8, oversubscription: 1, uplink_rate: 400 Gb/s, radix: 16, latency: 0.225 us}
  spine: {radix: 8, latency: 0.45 us}
"""
RUN = ("--model", "llama-3.1-8b", "--tokens", "15T", *FEW, *NARROW)


def test_where_the_network_ends_it_is_said_how_far_it_goes(
    planner: Planner, tmp_path: Path
) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)

    ran = planner("compare", "--cluster", "hgx-h100", "--cluster", str(file), "--days", "60", *RUN)

    # A spine of radix 8 joins 8 leaves of 8 GPUs: 64, the ninth leaf has no port.
    said = " ".join(ran.err.split())
    assert ran.code == 2
    assert "small: of the sizes tried, that can be built, none trains 15T tokens in 60 days" in said
    assert "days; 64 GPUs take" in said
    assert "it cannot be built with 72: network: 3 pods of 4 leaf groups and no core" in said
    assert "hgx-h100:" not in said
