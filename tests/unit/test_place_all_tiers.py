"""All tiers at once through ``place()``: bounds, weights, the checker, large grids."""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod
from typing import Any

import networkx as nx
import numpy as np
import pytest

import planner.place as door
from planner.errors import InputError, PlannerError
from planner.layout import Layout
from planner.place import Proof, place
from planner.place.check import checked_cuts, walked_tiers
from planner.place.inside import sunk
from planner.place.labour import Labour
from planner.place.large import solve_large, unit_box
from planner.place.question import Charge, Kind, Question, ask, cut_bytes
from planner.place.tier_search import Search
from planner.place.tiers import weights_of
from planner.place.tiles import box_cut_bytes, boxes
from planner.place.tree import tree_of
from planner.traffic import step_families
from tests.bench import scale
from topologies.fabric_catalogue import load_cluster
from topologies.model_reader import read_model


def _dense() -> tuple[Layout, list]:
    layout = Layout(tp=8, cp=2, pp=8, dp=8, global_batch=256, seq=8192)
    return layout, list(step_families(read_model("llama-3.1-405b"), layout))


def test_all_tiers_of_a_dragonfly_are_proved_the_least_in_their_order() -> None:
    layout, families = _dense()

    placement = place(layout, families, load_cluster("dragonfly-plus"))

    assert placement.tier_order == ("supernode", "leaf", "pod")
    assert placement.tiers_proved == 3
    for cut in placement.tiers[:3]:
        assert cut.proof is Proof.BOUND
        assert cut.checked_bytes == pytest.approx(cut.cut_bytes)
        assert cut.gap == pytest.approx(0.0)


def test_the_leaf_cut_is_below_that_of_seating_supernodes_in_rank_order() -> None:
    layout = replace(_dense()[0], order="tp-cp-ep-pp-dp")
    families = step_families(read_model("llama-3.1-405b"), layout)
    fabric = load_cluster("hgx-h100")

    placement = place(layout, families, fabric)

    leaf = next(cut for cut in placement.tiers if cut.tier == "leaf")
    in_order = fabric.domain_index("leaf")
    question = ask(layout, families, fabric.capacities("leaf"))
    assert leaf.cut_bytes < 0.5 * cut_bytes(question, in_order)


def test_boards_below_the_asked_tier_hold_whole_tp_groups() -> None:
    layout, families = _dense()
    fabric = load_cluster("cloudmatrix384")

    placement = place(layout, families, fabric)

    board = fabric.domain_index("board")[np.array(placement.rank_to_gpu)].reshape(-1, 8)
    assert (board == board[:, :1]).all()
    assert placement.tiers_proved == 2


def test_a_tier_that_the_checker_counts_differently_withholds_the_placement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layout, families = _dense()
    true = checked_cuts

    def wrong(*args: Any, **kwargs: Any) -> tuple:
        cuts = list(true(*args, **kwargs))
        cuts[0] = replace(cuts[0], total_bytes=cuts[0].total_bytes * 1.001)
        return tuple(cuts)

    monkeypatch.setattr(door, "checked_cuts", wrong)

    with pytest.raises(PlannerError, match=r"board cut of .* independent checker"):
        place(layout, families, load_cluster("ub-mesh-64"))


def test_ctrl_c_leaves_the_asked_tier_as_it_was_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    layout, families = _dense()
    fabric = load_cluster("hgx-a100")

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("planner.place.tier_search.risen", interrupt)

    placement = place(layout, families, fabric)

    assert placement.interrupted
    assert placement.proof is Proof.BOUND
    assert placement.tiers_proved == 1
    assert sorted(set(placement.rank_to_gpu)) == list(range(1024))


def _in_order(state: Search, asked: int, home: Any) -> None:
    """Fill the other tiers in order, which is far from the least."""
    state.offer(sunk(state.questions[asked], state.tree, asked, home, labour=Labour(ends_s=-inf)))


def test_ctrl_c_while_tiers_are_judged_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    layout, families = _dense()
    fabric = load_cluster("hgx-a100")

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("planner.place.tiers._closer_bound", interrupt)
    monkeypatch.setattr("planner.place.tiers.search", _in_order)

    placement = place(layout, families, fabric)

    assert placement.interrupted
    assert sorted(set(placement.rank_to_gpu)) == list(range(1024))


def test_weighted_tiers_sum_the_time_of_all_borders() -> None:
    layout, families = _dense()
    fabric = load_cluster("ub-mesh-64")

    placement = place(layout, families, fabric, tiers="weighted")

    rates = [
        sum(d.uplink_bytes_per_s for d in fabric.tier(t).domains) for t in ("board", "supernode")
    ]
    summed_s = sum(c.cut_bytes / r for c, r in zip(placement.tiers[:2], rates, strict=True))
    assert placement.weighted_s == pytest.approx(summed_s)
    assert placement.weighted_bound_s <= placement.weighted_s


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"rack": 1.0}, "tier 'rack' is unknown: one of board, supernode, cluster"),
        ({"board": -1.0}, "tier 'board': weight -1.0: expected 0 or more"),
        ({"board": float("nan")}, "tier 'board': weight nan: expected 0 or more"),
    ],
)
def test_weights_that_cannot_be_are_refused(given: dict[str, float], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        weights_of(tree_of(load_cluster("ub-mesh-64")), given)


# The checker's walk


@pytest.mark.parametrize("name", ["cloudmatrix384", "dragonfly-plus", "hgx-a100", "tpu-torus"])
def test_one_walk_finds_the_components_of_every_tier(name: str) -> None:
    fabric = load_cluster(name)
    names = [tier.name for tier in fabric.tiers]

    found = walked_tiers(fabric.graph, fabric.gpus, tiers=names)

    for t, label in enumerate(found):
        inside = set(names[: t + 1])
        kept = [(a, b) for a, b, tier in fabric.graph.edges(data="tier") if tier in inside]
        graph = nx.Graph(kept)
        graph.add_nodes_from(fabric.gpus)
        number = {v: i for i, part in enumerate(nx.connected_components(graph)) for v in part}
        pairs = {(number[gpu], mine) for gpu, mine in zip(fabric.gpus, label.tolist(), strict=True)}
        assert len(pairs) == len(set(label.tolist())) == len({a for a, _ in pairs})
        assert list(dict.fromkeys(label.tolist())) == list(range(len(pairs)))


# Large grids


@pytest.mark.nightly
@pytest.mark.parametrize("kind", scale.KINDS)
def test_131072_gpus_in_four_tiers_are_built_and_seated_in_10_s_and_2_gib(kind: str) -> None:
    found = scale.measured_apart(kind, 131_072)

    assert found["total_s"] <= scale.LIMIT_S
    assert found["peak_bytes"] <= scale.LIMIT_BYTES
    assert [cut["tier"] for cut in found["tiers"]] == ["board", "supernode", "leaf", "pod"]


def test_a_large_grid_is_seated_by_boxes_as_well_as_by_ranks() -> None:
    lines = [
        Charge(axes=(i,), kind=Kind.TOUCH, weight_bytes=w) for i, w in enumerate((90.0, 8.0, 1.0))
    ]
    question = Question(sizes=(8, 64, 64), charges=tuple(lines), capacities=(64,) * 512)

    answer = solve_large(question)

    assert prod(unit_box(question)) > 1
    assert answer.proof is Proof.BOUND
    assert answer.objective_bytes == cut_bytes(question, np.array(answer.home))
    tiles = boxes(question.sizes, 64)
    assert answer.objective_bytes == box_cut_bytes(question, tiles).min()
