from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from planner.collectives.library import (
    LibraryNumbers,
    NetworkClass,
    ScaleUpClass,
    measured_links,
)
from planner.collectives.links import Protocol, Spread, links_of, two_tiers
from planner.fabric import Fabric, Nic
from planner.units import GB, US


def _tier(name: str, rate: float, shared: float, latency: float, reduces: bool = False) -> Any:
    return SimpleNamespace(
        name=name,
        bytes_per_s=rate,
        shared_bytes_per_s=shared,
        latency_s=latency,
        in_network_reduction=reduces,
        pair_bytes_per_s=rate,
        has_switch_links=True,
    )


def _fabric() -> Fabric:
    """A fabric's numbers without its graph: links_of reads tiers and NIC alone."""
    nic = Nic(line_bytes_per_s=50 * GB, in_flight=128, transaction_bytes=256, turnaround_s=2 * US)
    tiers = (
        _tier("board", 900 * GB, 900 * GB, 0.5 * US),
        _tier("supernode", 450 * GB, 400 * GB, 1 * US, reduces=True),
        _tier("leaf", 50 * GB, 50 * GB, 4 * US),
        _tier("cluster", 50 * GB, 10 * GB, 9 * US),
    )
    return cast("Fabric", SimpleNamespace(tiers=tiers, nic=nic))


def test_the_links_of_a_fabric_start_at_the_supernode_and_keep_the_in_flight_limit() -> None:
    links = links_of(_fabric(), nic_efficiency_share=0.9)

    assert [tier.name for tier in links.tiers] == ["supernode", "leaf", "cluster"]
    assert links.inside.bytes_per_s == 450 * GB
    assert links.inside.in_network_reduction
    assert links.outer[0].bytes_per_s == pytest.approx(16.384 * GB)
    assert links.outer[0].shared_bytes_per_s == pytest.approx(16.384 * GB)
    assert links.outer[1].shared_bytes_per_s == 10 * GB
    assert links.outer[0].efficiency_share == 0.9


def test_a_group_of_12_in_supernodes_of_5_touches_three_and_leaves_two_in_the_last() -> None:
    spread = Spread.of(np.array([12.0, 10, 4]), 5)

    assert spread.supernodes.tolist() == [3, 2, 1]
    assert spread.together.tolist() == [5, 5, 4]
    assert spread.least_members.tolist() == [2, 5, 4]


def test_measured_numbers_replace_latency_and_efficiency_but_not_the_nominal_rates() -> None:
    library = LibraryNumbers(protocols=(Protocol(name="simple"),), own_step_share=0.5, issue_s=1e-7)
    hopper = ScaleUpClass(
        launch_s=5 * US, latency_s=0.8 * US, efficiency_share=0.8, reduction_share=0.6
    )
    links = measured_links(
        links_of(_fabric()), library, hopper, NetworkClass(latency_s=6 * US, efficiency_share=0.9)
    )

    assert links.inside.bytes_per_s == 450 * GB
    assert float(np.asarray(links.inside.reduction_share)) == pytest.approx(0.75)
    assert [float(np.asarray(t.latency_s)) for t in links.tiers] == pytest.approx(
        [0.8 * US, 6 * US, 11 * US]
    )


def test_a_class_without_switch_reduction_takes_it_from_the_fabric() -> None:
    links = two_tiers(inside_bytes_per_s=1.0, nic_bytes_per_s=1.0, inside_reduction=True)
    library = LibraryNumbers(protocols=(Protocol(name="simple"),), own_step_share=0.0, issue_s=0.0)
    ampere = ScaleUpClass(launch_s=0.0, latency_s=0.0, efficiency_share=0.8)

    measured = measured_links(
        links, library, ampere, NetworkClass(latency_s=0.0, efficiency_share=1.0)
    )

    assert not np.any(measured.inside.in_network_reduction)
