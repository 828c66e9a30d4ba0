"""Families that share links: hand-worked loads, streams that take turns, a digit's factor."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import networkx as nx
import numpy as np
import pytest

from planner.collectives.links import links_of
from planner.errors import InputError
from planner.fabric import Fabric
from planner.layout import Layout
from planner.network.contention import phase_pressures, slowdown
from planner.network.loads import Active, loads_of
from planner.network.pressure import PhasePressure
from planner.network.wiring import wiring_of
from planner.search.placed import placed_spreads
from planner.steptime.columns import columns_of
from planner.steptime.rates import rates_of
from planner.steptime.shared_links import (
    NOT_ROUTED,
    ROUTED,
    Seating,
    active_families,
    seated_step_time,
    tier_time_s,
)
from planner.steptime.step import step_time
from planner.steptime.wires import wires_of
from planner.traffic import step_families
from topologies.fabric_catalogue import generic_cluster, load_cluster
from topologies.model_reader import read_model

MODEL = read_model("llama-3.1-8b")
# 16 GPUs in two supernodes of 8: gradient groups of 2 and pipeline hops both cross, on every NIC
CROSSING = Layout(
    tp=4, dp=2, pp=2, global_batch=32, micro_batch=1, zero_stage=0, sequence_parallel=False
)
SEATS = (0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 4, 5, 6, 7)


def pressures(layout: Layout, seats: tuple[int, ...], **phase_s: float) -> dict[str, PhasePressure]:
    active = active_families(layout, step_families(MODEL, layout), columns_of(layout))
    found = phase_pressures(wiring_of(generic_cluster(8, 16)), active, seats, phase_s)
    return {phase.phase: phase for phase in found}


def seated(layout: Layout, seats: tuple[int, ...], fabric: Fabric) -> Seating:
    return Seating(
        fabric=fabric,
        families=step_families(MODEL, layout),
        rank_to_gpu=seats,
        spreads=placed_spreads(layout, seats, fabric),
    )


def test_the_busiest_nic_carries_a_gradient_ring_and_a_hop_as_counted_by_hand() -> None:
    # ring of 2: each member sends 2 x 1/2 x V to the other; a hop sends its bytes once
    families = {family.name: family for family in step_families(MODEL, CROSSING)}
    gradients, hop = families["dp_reduce"], families["pp_backward"]
    expected = gradients.payload_bytes + hop.payload_bytes * hop.times_per_step

    backward = pressures(CROSSING, SEATS, backward=10.0)["backward"]

    (nic,) = [link for link in backward.links if link.kind == "network"]
    assert nic.load_bytes == pytest.approx(expected)
    assert nic.busy_s == pytest.approx(expected / 50e9)
    assert nic.busy_share == pytest.approx(expected / 50e9 / 10.0)
    assert list(nic.by_family_bytes) == ["dp_reduce", "pp_backward"]


def test_a_gpus_link_to_its_nic_carries_no_more_than_what_is_in_flight() -> None:
    fabric = generic_cluster(8, 16)
    few = replace(fabric.nic, in_flight=128, transaction_bytes=256, turnaround_s=2e-6)
    standing = SimpleNamespace(
        graph=fabric.graph, gpus=fabric.gpus, nic=few, domain_index=fabric.domain_index
    )

    wiring = wiring_of(cast("Fabric", standing), inner_share=1.0, outer_share=0.5)

    reached = {
        wiring.links.name(link): float(rate) for link, rate in enumerate(wiring.reached_bytes_per_s)
    }
    assert reached["sn00.gpu00 -> sn00.nic00"] == pytest.approx(0.5 * 16.384e9)
    assert reached["sn00.nic00 -> sn00.gpu00"] == pytest.approx(0.5 * 16.384e9)
    assert reached["sn00.nic00 -> leaf0"] == pytest.approx(0.5 * 50e9)
    assert reached["sn00.gpu00 -> sn00.switch"] == pytest.approx(450e9)


def test_two_equal_streams_slow_each_other_by_the_others_share_of_the_phase() -> None:
    lasts_s = 100.0

    backward = pressures(CROSSING, SEATS, backward=lasts_s)["backward"]

    one = {family.name: family for family in backward.families}
    assert one["dp_reduce"].slowdown_ratio == pytest.approx(1 + one["pp_backward"].busy_s / lasts_s)
    assert one["pp_backward"].slowdown_ratio == pytest.approx(1 + one["dp_reduce"].busy_s / lasts_s)


def test_who_is_held_back_elsewhere_leaves_the_rest_of_a_link() -> None:
    """Gradient rings over 2 + 2 GPUs: 50 GB/s by their NICs, so TP keeps 400 of a port's 450."""
    layout = Layout(tp=4, dp=4, global_batch=16, zero_stage=0, sequence_parallel=False)
    lasts_s = 10.0

    backward = pressures(layout, tuple(range(16)), backward=lasts_s)["backward"]

    one = {family.name: family for family in backward.families}
    active = one["dp_reduce"].busy_s / lasts_s
    assert 0 < active < 1
    assert one["dp_reduce"].slowdown_ratio == pytest.approx(1.0)
    assert one["tp_backward_reduce"].slowdown_ratio == pytest.approx(
        1 / (1 - active + active * 400 / 450)
    )


def test_families_of_one_stream_take_turns() -> None:
    layout = Layout(tp=8, cp=2, global_batch=16, overlap_gradients=False, overlap_parameters=False)

    forward = pressures(layout, tuple(range(16)), forward=1.0)["forward"]

    assert {family.stream for family in forward.families} == {"layer"}
    assert all(family.slowdown_ratio == 1.0 for family in forward.families)


def test_what_is_active_always_halves_an_equal_and_starves_nobody() -> None:
    assert slowdown([1.0], [2.0], [2.0]) == pytest.approx(2.0)
    assert slowdown([0.7, 0.7], [2.0, 2.0], [2.0, 2.0]) == pytest.approx(2.0)
    assert slowdown([], [], []) == 1.0


def test_a_step_without_shared_links_is_that_of_the_tiers() -> None:
    layout = Layout(tp=8, dp=2, global_batch=32, overlap_gradients=False, overlap_parameters=False)
    fabric, seats = generic_cluster(8, 16), tuple(range(16))
    seating = seated(layout, seats, fabric)

    step = seated_step_time(MODEL, layout, seating)

    plain = step_time(
        MODEL, layout, accelerator=fabric.accelerator, links=links_of(fabric),
        spreads=seating.spreads,
    )  # fmt: skip
    assert step.slowdown == pytest.approx({"tp": 1.0, "dp": 1.0})
    assert float(step.total_s) == pytest.approx(float(plain.total_s))


def test_shared_links_lengthen_a_step_and_are_named() -> None:
    layout = Layout(tp=4, dp=2, pp=2, global_batch=32, micro_batch=1, zero_stage=3)
    fabric = generic_cluster(8, 16)
    seating = seated(layout, SEATS, fabric)

    step = seated_step_time(MODEL, layout, seating)

    plain = step_time(
        MODEL, layout, accelerator=fabric.accelerator, links=links_of(fabric),
        spreads=seating.spreads,
    )  # fmt: skip
    assert float(step.total_s) > float(plain.total_s)
    assert step.slowdown["pp"] > 1.05
    assert float(step.communication_s["dp"]) > float(plain.communication_s["dp"])
    assert {phase.phase for phase in step.phases} >= {"forward", "backward"}
    assert "shared_links" in step.assumed


def test_oversubscription_is_counted_once() -> None:
    """Pods of 128 GPUs; a stage fills one, so every NIC sends its hop over the core at once."""
    fabric = load_cluster("llama3-roce")
    layout = Layout(tp=8, dp=16, pp=8, global_batch=128)
    seating = seated(layout, tuple(range(1024)), fabric)
    hop = next(f for f in seating.families if f.name == "pp_forward")

    step = seated_step_time(MODEL, layout, seating)

    even_share = fabric.tier("cluster").shared_bytes_per_s
    assert even_share < 0.15 * fabric.nic.line_bytes_per_s
    told = {one.name: one for phase in step.phases for one in phase.families}
    outer_share = rates_of(fabric.accelerator, columns_of(layout)).outer_share
    assert told["pp_forward"].alone_s == pytest.approx(hop.payload_bytes / even_share / outer_share)
    wire = wires_of(seating.spreads, links_of(fabric)).pp
    assert tier_time_s(hop, wire) == pytest.approx(hop.payload_bytes / even_share)


def test_a_ring_that_leaves_a_pod_once_is_not_charged_as_if_all_left() -> None:
    """Gradient rings over all supernodes: 8 of a pod's 128 NICs cross, which its uplink stands."""
    fabric = load_cluster("llama3-roce")
    layout = Layout(tp=8, dp=128, global_batch=128, zero_stage=0)
    seating = seated(layout, tuple(range(1024)), fabric)
    (gradients,) = [f for f in seating.families if f.digit == "dp"]
    active = active_families(layout, [gradients], columns_of(layout))

    (phase,) = phase_pressures(wiring_of(fabric), active, seating.rank_to_gpu, {})

    sent = 2 * 127 / 128 * gradients.payload_bytes
    assert phase.families[0].alone_s == pytest.approx(sent / fabric.nic.line_bytes_per_s)


def test_a_cluster_too_large_to_route_says_so() -> None:
    fabric = generic_cluster(64, 32_832)
    layout = Layout(tp=8, dp=4104, global_batch=4104)

    step = seated_step_time(MODEL, layout, seated(layout, tuple(range(32_832)), fabric))

    assert step.assumed["shared_links"] == NOT_ROUTED
    assert step.slowdown == {}
    assert step.phases == ()


def test_thousands_of_gpus_without_nics_are_not_routed_each_for_itself() -> None:
    graph = nx.Graph()
    names = tuple(f"g{i}" for i in range(4160))
    for i, name in enumerate(names):
        graph.add_node(name, kind="gpu")
        for kind, switch in (("supernode", f"s{i // 8}"), ("cluster", "leaf")):
            graph.add_node(switch, kind="leaf")
            graph.add_edge(name, switch, capacity_bytes_per_s=5e10, latency_s=1e-6, tier=kind)
    usual = generic_cluster(8, 4160)
    fabric = replace(usual, graph=graph, gpus=names, hosts=(), host_slots=())
    layout = Layout(tp=8, dp=520, global_batch=520)

    step = seated_step_time(MODEL, layout, seated(layout, tuple(range(4160)), fabric))

    assert step.assumed["shared_links"] == NOT_ROUTED


def test_flows_between_the_same_leaves_are_routed_as_one_on_thousands_of_gpus() -> None:
    fabric = generic_cluster(64, 4160)
    layout = Layout(tp=8, dp=520, global_batch=520)
    start = time.process_time()

    step = seated_step_time(MODEL, layout, seated(layout, tuple(range(4160)), fabric))

    assert time.process_time() - start < 4
    assert step.assumed["shared_links"] == ROUTED
    assert {phase.phase for phase in step.phases} == {"forward", "backward"}


def test_a_family_that_is_active_all_the_time_slows_no_more_when_it_is_called_more_often() -> None:
    """Hops and gradients both outlast the phase: how often they are called no longer matters."""
    layout = replace(CROSSING, zero_stage=1)
    active = active_families(layout, step_families(MODEL, layout), columns_of(layout))
    often = [
        replace(one, family=replace(one.family, times_per_step=10 * one.family.times_per_step))
        if one.stream == "pipeline"
        else one
        for one in active
    ]

    usual, more = (
        {
            family.name: family.slowdown_ratio
            for phase in phase_pressures(
                wiring_of(generic_cluster(8, 16)), families, SEATS,
                {"forward": 1e-9, "backward": 1e-9, "end": 1e-9},
            )
            if phase.phase == "backward"
            for family in phase.families
        }
        for families in (active, often)
    )  # fmt: skip

    assert {one.stream for one in active if one.phase == "backward"} == {
        "layer",
        "pipeline",
        "data",
    }
    assert more == pytest.approx(usual)
    assert max(usual.values()) > 1.1


def test_a_family_on_seats_of_one_gpu_each_is_active_with_its_phase() -> None:
    layout = Layout(tp=2, pp=2, dp=4, global_batch=32, zero_stage=1)
    active = active_families(layout, step_families(MODEL, layout), columns_of(layout))

    streams = {one.family.name: (one.phase, one.stream) for one in active}

    assert isinstance(active[0], Active)
    assert streams["dp_gather"] == ("forward", "data")
    assert streams["dp_scatter"] == ("backward", "data")
    assert streams["pp_forward"] == ("forward", "pipeline")
    assert streams["tp_forward_gather"] == ("forward", "layer")


def test_a_gpu_without_a_route_leaves_the_tiers_rates_and_says_why() -> None:
    fabric = generic_cluster(8, 16)
    layout = Layout(tp=8, dp=2, global_batch=32)
    seating = seated(layout, tuple(range(16)), fabric)
    whole = wiring_of(fabric)
    assert whole.known is not None
    far = whole.known.costs.copy()
    far[:] = 15_000
    cut = replace(whole, known=replace(whole.known, costs=far, relay_cost=4))

    step = seated_step_time(MODEL, layout, replace(seating, wiring=cut))

    assert "no path from" in step.assumed["shared_links"]
    assert step.phases == ()


def test_thousands_of_gpus_that_pass_traffic_on_are_not_routed_each_to_each() -> None:
    fabric = load_cluster("ub-mesh-64", gpus=2560)
    layout = Layout(tp=8, dp=320, global_batch=320)

    step = seated_step_time(MODEL, layout, seated(layout, tuple(range(2560)), fabric))

    assert "2,560 GPUs, and some pass traffic on for others" in step.assumed["shared_links"]


@pytest.mark.parametrize(
    ("name", "gpus", "rails", "planes"),
    [("hpn", 8192, 1, 2), ("cloudmatrix384", 8064, 48, 1), ("mi300x", 4096, 1, 1)],
)
def test_gpus_of_any_supernode_are_routed_by_thousands(
    name: str, gpus: int, rails: int, planes: int
) -> None:
    """A gradient ring of n ranks sends 2 (n - 1) / n of V, in parts over its rails and planes."""
    fabric = load_cluster(name, gpus=gpus)
    ranks = gpus // 8
    layout = Layout(tp=8, dp=ranks, global_batch=ranks, zero_stage=0)
    gradients = [f for f in step_families(MODEL, layout) if f.name == "dp_reduce"]
    active = active_families(layout, gradients, columns_of(layout))
    start = time.process_time()

    wiring = wiring_of(fabric)
    (load,) = loads_of(wiring, active, np.arange(gpus))

    assert time.process_time() - start < 4
    assert wiring.known is not None
    assert wiring.known.costs.nbytes < 30e6
    links = wiring.links
    cable = (links.is_nic[links.tails] & ~links.is_gpu[links.heads]) & (load.load_bytes > 0)
    sent = 2 * (ranks - 1) / ranks * gradients[0].payload_bytes
    assert cable.sum() == gpus * planes  # of all 8 tensor-parallel ranks
    np.testing.assert_allclose(load.load_bytes[cable], sent / rails / planes)


def test_four_thousand_gpus_are_routed_like_a_thousand() -> None:
    """Rail-optimised: a ring over n supernodes puts 2 (n - 1) / n of V / 8 on each of its NICs."""
    for gpus in (1024, 4096):
        fabric = generic_cluster(8, gpus)
        layout = Layout(tp=8, dp=gpus // 8, global_batch=gpus // 8, zero_stage=0)
        families = {family.name: family for family in step_families(MODEL, layout)}

        step = seated_step_time(MODEL, layout, seated(layout, tuple(range(gpus)), fabric))

        assert step.assumed["shared_links"] != NOT_ROUTED
        (nic,) = {
            link.load_bytes
            for phase in step.phases
            for link in phase.links
            if link.kind == "network" and "dp_reduce" in link.by_family_bytes
        }
        n = gpus // 8
        assert nic == pytest.approx(2 * (n - 1) / n * families["dp_reduce"].payload_bytes)


def test_a_reduction_on_a_full_mesh_uses_all_links_alike() -> None:
    """8 MI300X joined pair by pair: a gather of V sends V/8 over each of a GPU's 7 links."""
    fabric = load_cluster("mi300x", gpus=16)
    layout = Layout(tp=8, dp=2, global_batch=16)
    gather = next(f for f in step_families(MODEL, layout) if f.name == "tp_forward_gather")
    active = active_families(layout, [gather], columns_of(layout))

    (phase,) = phase_pressures(wiring_of(fabric), active, range(16), {})

    (link,) = phase.links
    assert link.kind == "scale-up"
    assert link.load_bytes == pytest.approx(gather.payload_bytes / 8 * gather.times_per_step)
    wire = wires_of(placed_spreads(layout, range(16), fabric), links_of(fabric)).tp
    assert phase.families[0].alone_s == pytest.approx(tier_time_s(gather, wire), rel=0.01)


def test_a_reduction_over_meshed_supernodes_uses_all_their_links_and_every_rail() -> None:
    """16 MI300X on two boards: rings of e = 15/16 V pass 7 hops on each board, over 56 links."""
    fabric = load_cluster("mi300x", gpus=16)
    layout = Layout(tp=16, global_batch=16)
    gather = next(f for f in step_families(MODEL, layout) if f.name == "tp_forward_gather")
    active = active_families(layout, [gather], columns_of(layout))

    (phase,) = phase_pressures(wiring_of(fabric), active, range(16), {})

    links = {link.kind: link for link in phase.links}
    edge_bytes = 15 / 16 * gather.payload_bytes * gather.times_per_step
    assert links["scale-up"].load_bytes == pytest.approx(7 * 8 * edge_bytes / 8 / 56)
    assert links["network"].load_bytes == pytest.approx(edge_bytes / 8)


def test_a_family_that_cannot_be_is_refused_and_not_timed_at_the_tiers_rates() -> None:
    layout = Layout(tp=8, dp=2, global_batch=32)
    seating = seated(layout, tuple(range(16)), generic_cluster(8, 16))
    odd = tuple(replace(family, collective="gossip") for family in seating.families)

    with pytest.raises(InputError, match="gossip"):
        seated_step_time(MODEL, layout, replace(seating, families=odd))
