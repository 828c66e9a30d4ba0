"""The bound of the step of any placement against the steps of every placement, or of many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from planner.errors import LayoutError
from planner.fabric import Fabric
from planner.layout import Layout
from planner.place.expand import seats
from planner.search.least_placed import least_placed_s
from planner.search.placed import placed_spreads
from planner.steptime.shared_links import Seating, seated_step_time, seated_wiring
from planner.traffic import step_families
from tests.oracles import every_seating
from topologies.fabric_catalogue import load_cluster
from topologies.model_reader import read_model

_DENSE = replace(read_model("llama-3.1-8b"), layers=8)
_EXPERTS = read_model("mixtral-8x7b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The bound, and the shortest step seen."""

    bound_s: float
    shortest_s: float


def steps_of(layout: Layout, fabric: Fabric, seatings: Iterable[Sequence[int]]) -> Steps:
    model = _EXPERTS if layout.ep > 1 else _DENSE
    families = step_families(model, layout)
    wiring = seated_wiring(fabric, layout)

    def step_s(rank_to_gpu: Sequence[int]) -> float:
        seating = Seating(
            fabric=fabric,
            families=families,
            rank_to_gpu=rank_to_gpu,
            spreads=placed_spreads(layout, rank_to_gpu, fabric),
            wiring=wiring,
        )
        return float(seated_step_time(model, layout, seating).total_s)

    return Steps(
        bound_s=least_placed_s(model, layout, families, fabric, wiring=wiring),
        shortest_s=min(map(step_s, seatings)),
    )


def every_placement(ranks: int, fabric: Fabric) -> Iterator[Sequence[int]]:
    for home in every_seating(ranks, fabric.capacities("supernode")):
        yield seats(home.astype(np.int64), fabric, "supernode")


def random_placements(ranks: int, fabric: Fabric, count: int, seed: int) -> Iterator[Sequence[int]]:
    """Yield the rank order, and placements with blocks of many sizes together, in any order."""
    random = np.random.default_rng(seed)
    gpus = np.arange(len(fabric.gpus))
    yield gpus[:ranks].tolist()
    for _ in range(count):
        block = int(2 ** random.integers(0, 4))
        blocks = gpus.reshape(-1, block) if len(gpus) % block == 0 else gpus.reshape(-1, 1)
        yield random.permutation(blocks).ravel()[:ranks].tolist()


_SMALL = (
    Layout(tp=2, dp=2, pp=2, global_batch=16),
    Layout(tp=4, dp=2, global_batch=8, zero_stage=0),
    Layout(cp=2, dp=2, pp=2, global_batch=16),
    Layout(dp=8, ep=4, global_batch=16),
    Layout(dp=4, ep=2, pp=2, global_batch=16, zero_stage=3),
    Layout(tp=2, dp=4, ep=4, global_batch=8),
)


@pytest.mark.parametrize(
    "layout",
    _SMALL,
    ids=lambda layout: f"tp{layout.tp}-cp{layout.cp}-dp{layout.dp}-ep{layout.ep}-pp{layout.pp}",
)
def test_no_placement_of_eight_ranks_is_faster_than_the_bound(layout: Layout) -> None:
    fabric = load_cluster("generic", supernode=4, gpus=8)

    found = steps_of(layout, fabric, every_placement(8, fabric))

    assert found.bound_s <= found.shortest_s
    assert found.bound_s > 0.7 * found.shortest_s


def test_in_one_supernode_placements_are_as_fast_as_the_bound() -> None:
    fabric = load_cluster("hgx-h100", gpus=8)

    found = steps_of(_SMALL[0], fabric, random_placements(8, fabric, 3, 0))

    assert found.bound_s == pytest.approx(found.shortest_s, rel=0.01)
    assert found.bound_s <= found.shortest_s


_CLUSTERS = (
    ("generic", 4, 16), ("generic", 2, 16), ("generic", 8, 32), ("llama3-roce", None, 32),
    ("hgx-a100", None, 32), ("mi300x", None, 32), ("ub-mesh-64", 64, 128), ("tpu-torus", 64, 128),
    ("dragonfly-plus", None, 64), ("gb200-nvl72", 18, 36), ("rail-only", None, 32),
    ("deepseek-mpft", None, 64), ("hpn", None, 32),
)  # fmt: skip


def random_layout(random: np.random.Generator, ranks: int) -> Layout:
    """Return a layout of at most *ranks* ranks, dense or with experts."""
    tp, cp, pp = (int(2 ** random.integers(0, 3)) for _ in range(3))
    pp, cp = min(pp, ranks // tp), min(cp, ranks // tp // min(pp, ranks // tp))
    dp = ranks // (tp * cp * pp)
    dp = 2 ** int(np.log2(dp))
    experts = random.random() < 0.5
    ep = int(2 ** random.integers(1, 4)) if experts else 1
    ep = max(1, min(ep, dp * cp * tp, 8))
    return Layout(
        tp=tp, cp=cp, pp=pp, dp=dp, ep=ep,
        vpp=2 if pp > 1 and random.random() < 0.3 else 1,
        dp_shard=dp // 2 if dp >= 4 and ep == 1 and random.random() < 0.2 else 0,
        zero_stage=int(random.choice([0, 1, 3])) if pp == 1 else int(random.choice([0, 1])),
        micro_batch=int(random.choice([1, 2])),
        global_batch=dp * pp * int(random.choice([2, 4, 16])),
        seq=int(random.choice([1024, 4096, 16384])),
        sequence_parallel=ep > 1 or random.random() < 0.7,
        cp_kind=str(random.choice(["ring", "ulysses", "gather"])) if cp > 1 else "ring",
        overlap_gradients=bool(random.random() < 0.7),
        ep_copies=str(random.choice(["expert", "domain"])),
    )  # fmt: skip


def too_fast(seeds: Iterable[int], placements: int) -> list[str]:
    wrong = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        name, supernode, gpus = _CLUSTERS[random.integers(len(_CLUSTERS))]
        fabric = load_cluster(name, supernode=supernode, gpus=gpus)
        try:
            layout = random_layout(random, int(random.choice([gpus, gpus // 2])))
            found = steps_of(
                layout, fabric, random_placements(layout.gpus, fabric, placements, seed)
            )
        except LayoutError:
            continue
        if found.bound_s > found.shortest_s:
            wrong.append(f"seed {seed}: {found}, {layout} on {name} of {gpus}")
    return wrong


def test_no_random_placement_on_any_kind_of_cluster_is_faster_than_the_bound() -> None:
    assert too_fast(range(15), 4) == []


@pytest.mark.nightly
def test_nor_is_any_of_thousands_more() -> None:
    assert too_fast(range(1500), 12) == []
