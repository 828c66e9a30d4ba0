"""Flows between the same switches routed as one, against every flow routed for itself."""

from __future__ import annotations

import numpy as np
import pytest

from planner.fabric import Fabric
from planner.layout import Layout
from planner.network.contention import unit_load
from planner.network.flows import PASSES, Flows, group_flows, in_passing_order
from planner.network.routes import route
from planner.network.sharing import link_load
from planner.network.wiring import Wiring, wiring_of
from planner.traffic import step_families
from topologies.fabric_catalogue import generic_cluster, load_cluster
from topologies.model_reader import read_model


def _each_for_itself(wiring: Wiring, flows: Flows) -> tuple[np.ndarray, np.ndarray]:
    routes = route(
        wiring.links,
        wiring.vertices[flows.sources],
        wiring.vertices[flows.targets],
        known=wiring.known,
    )
    return link_load(routes, flows.sizes_bytes), link_load(routes, np.ones(len(flows)))


CLUSTERS = [
    ("generic", lambda: generic_cluster(8, 60), True),
    ("hgx-h100", lambda: load_cluster("hgx-h100", gpus=256), True),
    ("llama3-roce", lambda: load_cluster("llama3-roce", gpus=512), True),
    ("gb200-nvl72", lambda: load_cluster("gb200-nvl72", gpus=200), True),
    ("dragonfly-plus", lambda: load_cluster("dragonfly-plus", gpus=512), True),
    ("cloudmatrix384", lambda: load_cluster("cloudmatrix384", gpus=768), False),
    ("rail-only", lambda: load_cluster("rail-only", gpus=128), True),
    ("hpn", lambda: load_cluster("hpn", gpus=256), False),
    ("mi300x", lambda: load_cluster("mi300x", gpus=64), False),
]


@pytest.mark.parametrize(
    ("cluster", "attached"),
    [pytest.param(make, attached, id=name) for name, make, attached in CLUSTERS],
)
def test_any_flows_put_the_same_on_every_link(cluster: object, attached: bool) -> None:
    fabric: Fabric = cluster()  # type: ignore[operator]
    wiring = wiring_of(fabric)
    draw = np.random.default_rng(7)
    gpus = len(fabric.gpus)
    flows = Flows(
        sources=draw.integers(0, gpus, 600),
        targets=draw.integers(0, gpus, 600),
        sizes_bytes=draw.uniform(0.1, 3.0, 600),
    )

    load, counts = unit_load(wiring, flows)

    wanted_load, wanted_counts = _each_for_itself(wiring, flows)
    assert (wiring.attached is not None) == attached
    np.testing.assert_allclose(load, wanted_load, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(counts, wanted_counts, rtol=1e-9, atol=1e-9)


def test_the_families_of_a_step_put_the_same_on_every_link() -> None:
    fabric = load_cluster("llama3-roce", gpus=512)
    wiring = wiring_of(fabric)
    layout = Layout(tp=4, cp=1, dp=32, pp=4, micro_batch=1, global_batch=64)
    for family in step_families(read_model("llama-3.1-8b"), layout):
        flows = group_flows(
            "all_gather" if family.collective in PASSES else family.collective,
            1.0,
            in_passing_order(family, family.members(layout)),
            wiring.homes,
        )

        load, counts = unit_load(wiring, flows)

        wanted_load, wanted_counts = _each_for_itself(wiring, flows)
        np.testing.assert_allclose(load, wanted_load, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(counts, wanted_counts, rtol=1e-9, atol=1e-9)
