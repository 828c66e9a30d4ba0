"""Which routes can lock up."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

from planner.errors import InputError
from planner.network.deadlock import Route, check_routes
from planner.network.deadlock_fabric import check_fabric
from planner.network.deadlock_fabric import findings as fabric_findings
from topologies.fabric_catalogue import generic_cluster


def edge(graph: Any, a: str, kind_a: str, b: str, kind_b: str, tier: str = "cluster") -> None:
    graph.add_node(a, kind=kind_a)
    graph.add_node(b, kind=kind_b)
    graph.add_edge(a, b, capacity_bytes_per_s=1.0, latency_s=0.0, tier=tier)


def fat_tree(links: dict[str, list[str]]) -> Any:
    """Return leaves with one GPU each and the given uplinks."""
    graph = nx.Graph()
    for leaf, spines in links.items():
        gpu, nic = f"gpu-{leaf}", f"nic-{leaf}"
        edge(graph, gpu, "gpu", f"sw-{leaf}", "scale_up_switch", "supernode")
        edge(graph, gpu, "gpu", nic, "nic")
        edge(graph, nic, "nic", leaf, "leaf")
        for spine in spines:
            edge(graph, leaf, "leaf", spine, "spine")
    return graph


def gpus_of(graph: Any) -> list[str]:
    return [name for name, kind in graph.nodes(data="kind") if kind == "gpu"]


def torus(*sides: int) -> Any:
    graph = nx.Graph()
    grid = nx.grid_graph(list(sides), periodic=True)
    for a, b in grid.edges:
        edge(graph, f"g{a}", "gpu", f"g{b}", "gpu", "supernode")
    return graph


def test_a_fat_tree_routed_up_and_down_is_clean() -> None:
    graph = fat_tree({f"l{i}": ["s0", "s1"] for i in range(4)})

    assert check_fabric(graph, gpus_of(graph)).free
    assert fabric_findings(graph, gpus_of(graph)) == []


@pytest.mark.parametrize("sides", [(4, 4), (5,), (3, 3, 4)])
def test_a_torus_without_virtual_channels_is_not(sides: tuple[int, ...]) -> None:
    graph = torus(*sides)

    found = check_fabric(graph, gpus_of(graph))

    assert not found.free
    for cycle in found.cycles:
        heads = [link.split(" -> ") for link in cycle.links]
        assert all(a[1] == b[0] for a, b in zip(heads, heads[1:] + heads[:1], strict=True))
        assert all(cycle.closing_routes)


def test_a_valley_around_failed_links_is_not() -> None:
    # l0 and l1 have lost an uplink each, so traffic between them goes down and up again in l2, l3
    whole = {f"l{i}": ["s0", "s1"] for i in range(4)}
    failed = {**whole, "l0": ["s0"], "l1": ["s1"]}

    before, after = fat_tree(whole), fat_tree(failed)

    assert check_fabric(before, gpus_of(before)).free
    found = check_fabric(after, gpus_of(after))
    assert not found.free
    links = found.cycles[0].links
    turns = zip(links, links[1:] + links[:1], strict=True)
    assert any(a.startswith("s") and b.split(" -> ")[1].startswith("s") for a, b in turns)
    closing = {name for names in found.cycles[0].closing_routes for name in names}
    assert closing & {"gpu-l0 to gpu-l1", "gpu-l1 to gpu-l0"}


def test_a_second_class_of_buffers_breaks_the_ring() -> None:
    def ring(classes: dict[str, tuple[int, ...]]) -> list[Route]:
        steps = [("a", "b", "c"), ("b", "c", "d"), ("c", "d", "a"), ("d", "a", "b")]
        return [
            Route(name="".join(s), vertices=s, priorities=classes.get("".join(s), (0,)))
            for s in steps
        ]

    assert not check_routes(ring({})).free
    # a dateline between d and a: what crosses it goes on in class 1
    assert check_routes(ring({"cda": (0, 1), "dab": (1, 1)})).free


def test_giving_up_the_suggested_turns_leaves_no_cycle() -> None:
    for graph in (torus(4, 4), torus(6)):
        gpus = gpus_of(graph)
        routes = [
            Route(name=f"{a} to {b}", vertices=tuple(path))
            for a in gpus
            for b in gpus
            if a != b
            for path in nx.all_shortest_paths(graph, a, b)
        ]
        found = check_routes(routes)
        given_up = set(found.breaks)

        kept = [
            route
            for route in routes
            if not any(
                (str(a), str(b)) in given_up
                for a, b in zip(route.channels(), route.channels()[1:], strict=False)
            )
        ]

        assert not found.free
        assert check_routes(kept).free
        assert len(given_up) < found.dependencies / 2


def test_a_gpu_that_takes_messages_whole_ends_the_wait() -> None:
    steps = [("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b")]
    routes = [Route(name="".join(s), vertices=s) for s in steps]

    assert not check_routes(routes).free
    assert check_routes(routes, ends_at=frozenset("abc")).free


def test_the_report_names_the_links_their_routes_and_the_turn_to_forbid() -> None:
    steps = [("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b"), ("c", "a", "b")]
    routes = [Route(name=f"{i}", vertices=s) for i, s in enumerate(steps)]

    (cycle,) = check_routes(routes).cycles

    assert cycle.links == ("a -> b", "b -> c", "c -> a")
    assert cycle.closing_routes == (("0",), ("1",), ("2", "3"))
    assert cycle.break_at == ("a -> b", "b -> c")
    assert "1 route needs it" in cycle.advice


def test_it_says_how_many_turns_leave_no_circle_at_all_and_names_a_few() -> None:
    """A ring of five turns both ways at each of five vertices; each way round must give up one."""
    (first, *_) = fabric_findings(torus(5), gpus_of(torus(5)))

    assert "giving up 2 of the 10 turns in use leaves no circle at all: " in first.message


def test_scale_up_switches_that_lead_to_gpus_only_do_not_count_as_attachments() -> None:
    """2,200 machines of two on 69 leaves: these are the attachments, of 2,048 at most."""
    fabric = generic_cluster(2, 4 * 1100)

    assert fabric_findings(fabric.graph, fabric.gpus) == []


def test_a_stated_single_virtual_channel_makes_the_cycle_a_fault() -> None:
    graph = torus(5)
    said, many = graph.copy(), graph.copy()
    said.graph["virtual_channels"] = 1
    many.graph["virtual_channels"] = 2

    assert {f.severity for f in fabric_findings(graph, gpus_of(graph))} == {"warning"}
    assert {f.severity for f in fabric_findings(said, gpus_of(graph))} == {"fault"}
    assert fabric_findings(many, gpus_of(graph)) == []


def test_a_route_of_one_vertex_is_refused() -> None:
    with pytest.raises(InputError, match="2 vertices at least"):
        Route(name="x", vertices=("a",))
