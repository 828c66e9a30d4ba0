"""Dead GPUs, NICs, switches and links: what is left, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import SpecError
from planner.fabric import Fabric
from planner.fabric_walks import islands
from topologies.fabric_catalogue import load_spec
from topologies.fabric_graph import build_fabric, build_graph, usable_gpus
from topologies.fabric_spec import DeadParts


def damaged(name: str, **dead: tuple[object, ...]) -> Fabric:
    return build_fabric(replace(load_spec(name), dead=DeadParts(**dead)))  # type: ignore[arg-type]


def test_a_dead_gpu_leaves_its_supernode_smaller_and_the_rest_as_fast() -> None:
    fabric = damaged("hgx-h100", gpus=(3, 1023))

    assert len(fabric.gpus) == 1022
    assert fabric.job_gpus == 1022
    assert fabric.capacities("supernode")[::127] == (7, 7)
    assert fabric.gpus[3] == "sn000.gpu04"
    assert fabric.tier("supernode").domains[0].uplink_bytes_per_s == 7 * 50e9
    assert fabric.tier("cluster").shared_bytes_per_s == 50e9


def test_a_supernode_without_a_working_gpu_is_no_domain() -> None:
    fabric = damaged("hgx-h100", gpus=tuple(range(8)))

    assert len(fabric.tier("supernode").domains) == 127
    assert fabric.tier("supernode").domains[0].name == "sn001"


def test_a_dead_nic_narrows_the_way_out_of_its_supernode_only() -> None:
    fabric = damaged("hgx-h100", nics=(3,))

    assert len(fabric.gpus) == 1024
    uplinks = [d.uplink_bytes_per_s for d in fabric.tier("supernode").domains]
    assert uplinks[:2] == [7 * 50e9, 8 * 50e9]
    assert fabric.tier("cluster").shared_bytes_per_s == 7 * 50e9 / 8
    assert fabric.walk(3, 8)[1] == "sn000.switch"


def test_a_dead_leaf_takes_one_rail_of_its_group() -> None:
    fabric = damaged("hgx-h100", switches=("leaf0.rail0",))

    assert fabric.tier("leaf").domains[0].uplink_bytes_per_s == 7 * 32 * 50e9
    assert fabric.tier("leaf").domains[1].uplink_bytes_per_s == 8 * 32 * 50e9


def test_a_dead_nvswitch_slows_its_supernode_by_its_share() -> None:
    fabric = damaged("hgx-h100", switches=("sn000.switch",))

    assert fabric.tier("supernode").bytes_per_s == 450e9 * 3 / 4
    assert fabric.graph.nodes["sn000.switch"]["units"] == 3


def test_a_dead_uplink_narrows_its_bundle() -> None:
    whole = damaged("hgx-h100")
    fabric = damaged("hgx-h100", links=(("leaf0.rail0", "spine00"),))

    assert whole.graph.edges["leaf0.rail0", "spine00"]["links"] == 2
    assert fabric.graph.edges["leaf0.rail0", "spine00"]["links"] == 1
    assert fabric.tier("leaf").domains[0].uplink_bytes_per_s == (8 * 32 - 1) * 50e9


def test_one_plane_of_two_may_die() -> None:
    plane = tuple(f"plane0.leaf0.rail{r}" for r in range(8))

    fabric = damaged("hpn", switches=plane)

    assert len(islands(fabric.graph, fabric.gpus)) == 1
    assert fabric.tier("cluster").shared_bytes_per_s == 25e9


def test_what_cuts_gpus_off_is_refused_with_the_gpus() -> None:
    spec = replace(load_spec("llama3-roce"), dead=DeadParts(switches=("leaf07",)))

    with pytest.raises(SpecError, match=r"cuts off 16 GPUs in 2 parts, the first at sn014\.gpu00"):
        build_fabric(spec)
    assert len(usable_gpus(spec)) == 1024
    assert "leaf07" not in build_graph(spec)


def test_a_gpu_without_scale_up_is_to_be_listed_as_dead() -> None:
    links = (("sn000.gpu00", "sn000.switch"),) * 18

    with pytest.raises(SpecError, match=r"GPU sn000\.gpu00 has no scale-up link left"):
        damaged("hgx-h100", links=links)


@pytest.mark.parametrize(
    ("dead", "fault"),
    [
        ({"switches": ("leaf0.rail9",)}, "dead switch 'leaf0.rail9' does not exist: did you mean"),
        ({"switches": ("sn000.gpu00",)}, "dead switch 'sn000.gpu00' does not exist"),
        ({"links": (("sn000.gpu00", "spine00"),)}, "sn000.gpu00 is linked to sn000.nic00"),
        (
            {"links": (("spine0", "leaf0.rail0"),)},
            "dead link spine0 - leaf0.rail0 does not exist: did you mean spine",
        ),
        ({"gpus": (1024,)}, "dead gpu 1024: expected 0 to 1023"),
        ({"nics": (1, 1)}, "a number is listed twice"),
    ],
)
def test_what_does_not_exist_cannot_be_dead(
    dead: dict[str, tuple[object, ...]], fault: str
) -> None:
    with pytest.raises(SpecError) as refusal:
        damaged("hgx-h100", **dead)

    assert fault in str(refusal.value)
