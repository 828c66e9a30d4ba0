"""A GPU keeps its number on its machine, whichever others are dead or busy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import InputError
from planner.fabric import Fabric
from planner.layout import Layout
from topologies.allocated_seats import allocated_gpus
from topologies.export_launch import rank_map_text, torchrun_text
from topologies.export_seats import seated_plan
from topologies.fabric_catalogue import generic_cluster, load_spec
from topologies.fabric_graph import build_fabric
from topologies.fabric_spec import DeadParts
from topologies.free_list import free_gpus, only_gpus
from topologies.host_slots import slots_of
from topologies.import_allocation import read_allocation


def damaged(*gpus: int) -> Fabric:
    return build_fabric(replace(load_spec("hgx-h100"), dead=DeadParts(gpus=gpus)))


def test_a_dead_gpu_keeps_its_number_from_the_others() -> None:
    assert slots_of(damaged(0, 9))[:14] == (1, 2, 3, 4, 5, 6, 7, 0, 2, 3, 4, 5, 6, 7)


def test_numbers_begin_anew_on_every_board_of_a_supernode() -> None:
    cluster = generic_cluster(16, 32)  # two boards of 8 each
    free = only_gpus(cluster, free_gpus("sn00.board01:5-7,sn01.board00:0-1", "free", cluster))
    assert free.gpus[0] == "sn00.gpu13"
    assert slots_of(free) == (5, 6, 7, 0, 1)
    again = only_gpus(free, free_gpus("sn00.board01:6-7", "free", free))
    assert (again.gpus, slots_of(again)) == (("sn00.gpu14", "sn00.gpu15"), (6, 7))


def test_a_free_list_counts_dead_gpus_even_where_one_is_dead_on_every_machine() -> None:
    cluster = damaged(*range(0, 1024, 8))  # GPU 0 of each
    assert [cluster.gpus[g] for g in free_gpus("sn000.board00:1,3", "free", cluster)] == [
        "sn000.gpu01",
        "sn000.gpu03",
    ]


def test_launchers_get_the_numbers_that_drivers_count() -> None:
    cluster = generic_cluster(8, 16)
    free = only_gpus(cluster, free_gpus("sn00.board00:4-7,sn01.board00:0,2,4,6", "free", cluster))
    layout = Layout(tp=4, dp=2, micro_batch=1, global_batch=8, seq=128)

    plan = seated_plan(layout, free, range(8))

    assert "4,sn01.board00,0,sn01.gpu00,sn01\n5,sn01.board00,2,sn01.gpu02" in rank_map_text(plan)
    script = torchrun_text(plan)
    assert "visible=(\n  4,5,6,7\n  0,2,4,6\n)" in script
    given = read_allocation(rank_map_text(plan), "map")
    assert allocated_gpus(given, free, 8) == tuple(range(8))


def test_an_allocation_on_a_busy_gpu_is_refused_by_its_number() -> None:
    cluster = generic_cluster(8, 16)
    free = only_gpus(cluster, free_gpus("sn00.board00:4-7", "free", cluster))
    given = read_allocation("rank,host,slot\n0,sn00.board00,4\n1,sn00.board00,3\n", "map")
    with pytest.raises(InputError, match="no usable GPU 3: it has 4, 5, 6, 7"):
        allocated_gpus(given, free, 2)
