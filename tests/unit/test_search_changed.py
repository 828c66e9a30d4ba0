"""A network under a change is the network of a cluster that is built so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cli.planner_inputs import Asked, read_fabric
from planner.collectives.links import links_of
from planner.fabric import Fabric
from planner.network.wiring import wiring_of
from planner.search.changed import (
    AS_IT_IS,
    Change,
    changed_fabric,
    changed_links,
    changed_wiring,
    outer_bytes_per_s,
)

CATALOGUE = Path(__file__).parents[2] / "topologies" / "catalogue"
CHANGES = [
    Change(nic_rate=0.37), Change(nic_rate=3.0), Change(in_flight=0.25), Change(in_flight=2.0),
    Change(crowding=4.0), Change(nic_latency=7.0), Change(scale_up_rate=0.5),
]  # fmt: skip


def built(
    path: Path, supernode: int, nic: float = 1.0, uplink: float = 1.0, in_flight: int = 8
) -> Fabric:
    """Return two leaves of 64 GPUs in supernodes, with other rates outside them."""
    cluster: dict[str, Any] = yaml.safe_load((CATALOGUE / "generic.yaml").read_text())
    cluster["nic"]["rate"] = f"{400 * nic} Gb/s"
    cluster["nic"]["pcie"] = f"{63 * nic} GB/s"  # a faster NIC is taken to have a faster way to it
    cluster["nic"]["in_flight"] = in_flight
    for tier in ("leaf", "spine"):
        cluster["network"][tier]["uplink_rate"] = f"{400 * uplink} Gb/s"
    path.write_text(yaml.safe_dump(cluster))
    return read_fabric(Asked(cluster=str(path), supernode=supernode, gpus=128))


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_fabric_has_the_changed_links(change: Change) -> None:
    fabric = read_fabric(Asked(supernode=8, gpus=128))
    wanted = changed_links(links_of(fabric), outer_bytes_per_s(fabric), fabric.nic, change)

    found = links_of(changed_fabric(fabric, change))

    for one, other in zip(found.tiers, wanted.tiers, strict=True):
        for name in ("bytes_per_s", "shared_bytes_per_s", "latency_s", "pair_bytes_per_s"):
            assert getattr(one, name) == pytest.approx(float(np.asarray(getattr(other, name))))


@pytest.mark.parametrize("supernode", [8, 72])  # 72 lie on both leaves
@pytest.mark.parametrize(
    ("change", "so"),
    [
        (AS_IT_IS, {}),
        (Change(nic_rate=0.25), {"nic": 0.25, "uplink": 0.25}),
        (Change(nic_rate=2.0), {"nic": 2.0, "uplink": 2.0}),
        (Change(crowding=4.0), {"uplink": 0.25}),
        (Change(in_flight=0.125), {"in_flight": 1}),
        (Change(nic_rate=2.0, in_flight=0.125), {"nic": 2.0, "uplink": 2.0, "in_flight": 1}),
    ],
)
def test_changed_links_reach_what_those_of_such_a_cluster_do(
    tmp_path: Path, change: Change, so: dict[str, Any], supernode: int
) -> None:
    now = built(tmp_path / "now.yaml", supernode)
    then = built(tmp_path / "then.yaml", supernode, **so)

    found = changed_wiring(wiring_of(now, outer_share=0.9), now.nic, change)

    wanted = wiring_of(then, outer_share=0.9)
    assert found.links.vertices == wanted.links.vertices
    assert found.reached_bytes_per_s == pytest.approx(wanted.reached_bytes_per_s)


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        ("generic", 128),  # two leaves
        ("generic", 16),  # one leaf, whose uplinks nothing takes
        ("hgx-h100", 1024),  # leaves are domains, of 8 rails
        ("hpn", 1024),  # one leaf on each rail: ranks that exchange never leave it
    ],
)
def test_a_tier_is_oversubscribed_only_where_its_gpus_meet_over_uplinks(
    tmp_path: Path, name: str, gpus: int
) -> None:
    cluster: dict[str, Any] = yaml.safe_load((CATALOGUE / f"{name}.yaml").read_text())
    path = tmp_path / "then.yaml"
    for tier in ("leaf", "spine"):
        rate, unit = cluster["network"][tier].get("uplink_rate", "400 Gb/s").split()
        cluster["network"][tier]["uplink_rate"] = f"{float(rate) / 4} {unit}"
    path.write_text(yaml.safe_dump(cluster))
    now, then = (read_fabric(Asked(cluster=one, gpus=gpus)) for one in (name, str(path)))

    found = changed_fabric(now, Change(crowding=4.0))

    assert {one.name: one.oversubscription for one in found.tiers} == pytest.approx(
        {one.name: one.oversubscription for one in then.tiers}
    )


def test_a_torus_has_no_switches_to_oversubscribe() -> None:
    fabric = read_fabric(Asked(cluster="tpu-torus"))

    assert links_of(changed_fabric(fabric, Change(crowding=8.0))) == links_of(fabric)
