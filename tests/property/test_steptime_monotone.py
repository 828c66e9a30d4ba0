"""A step is never shorter for a collective that takes longer, for a slower link, or a split group.

Bounds by which a search leaves layouts out, and whatever a flip says of a network, rest on it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from planner.collectives.links import LinkNumbers, TierNumbers
from planner.layout import Layout
from planner.search.space import Choices, layout_space
from planner.steptime.columns import RECOMPUTE, SCHEDULES, columns_of
from planner.steptime.schedule import StageSeconds, pipeline
from planner.steptime.spread import Spreads, contiguous_spread, strided_spread
from planner.steptime.step import step_time
from topologies.efficiency_catalogue import efficiency_of
from topologies.fabric_catalogue import load_cluster
from topologies.model_reader import read_model

if TYPE_CHECKING:
    from planner.model import ModelSpec

    Floats = np.ndarray[Any, np.dtype[np.float64]]

H100 = load_cluster("hgx-h100").accelerator
ANY = Choices(
    vpp=(1, 2, 3, 4), micro_batch=(1, 2, 4), recompute=RECOMPUTE, zero_stage=(0, 1, 3),
    sequence_parallel=(True, False), cp_kind=("ring", "all_gather", "ulysses"), schedule=SCHEDULES,
    overlap_gradients=(True, False), overlap_parameters=(True, False),
)  # fmt: skip
DIGITS = ("tp", "cp", "ep", "etp", "dp", "edp", "pp")
CAUSES = (*DIGITS, "inside rate", "NIC rate", "inside latency", "NIC latency", "launch")
HAIR = 1e-12


def tier(name: str, rate: float, latency_s: float) -> TierNumbers:
    return TierNumbers(name=name, bytes_per_s=rate, shared_bytes_per_s=rate, latency_s=latency_s)


class Network:
    """Two tiers, which one *cause* makes so many times as slow."""

    def __init__(self, random: np.random.Generator) -> None:
        self.own = 8.0 ** random.uniform(-1.0, 1.0, 5)

    def links(self, cause: str = "", times: float = 1.0) -> LinkNumbers:
        inside, nic, near, far, launch = self.own * [
            times if name == cause else 1.0
            for name in ("inside rate", "NIC rate", "inside latency", "NIC latency", "launch")
        ]
        return LinkNumbers(
            tiers=(tier("supernode", 450e9 / inside, 2e-6 * near),
                   tier("cluster", 50e9 / nic, 5e-6 * far)),
            launch_s=5e-6 * launch,
        )  # fmt: skip


def step_s(model: ModelSpec, layout: Layout, links: LinkNumbers, spreads: Spreads,
           slowdown: dict[str, float] | None = None) -> float:  # fmt: skip
    found = step_time(
        model, layout, accelerator=H100, links=links, spreads=spreads,
        efficiency=efficiency_of(H100.name), slowdown=slowdown,
    )  # fmt: skip
    return float(found.total_s)


def layouts(model: ModelSpec, gpus: int, count: int, random: np.random.Generator) -> list[Layout]:
    """Random layouts of all kinds that there are."""
    fixed = {"seq": 4096, "global_batch": int(random.choice([64, 256])), "precision": "bf16"}
    choices = ANY
    if model.experts:
        choices = replace(ANY, etp=(1, 2, 4), ep_copies=("expert", "domain"))
    space = layout_space(model, gpus, fixed, choices)
    return [space.layout(int(row), fixed) for row in random.choice(space.size, count)]


def shortened(name: str, count: int, seed: int) -> list[str]:
    """Return what made steps of *count* random layouts on each of three clusters shorter."""
    model, random = read_model(name), np.random.default_rng(seed)
    found = []
    for gpus, supernode in ((16, 8), (72, 36), (128, 32)):
        for layout in layouts(model, gpus, count, random):
            network, times = Network(random), 1.0 + 10.0 ** random.uniform(-3.0, 1.0)
            spreads = contiguous_spread(columns_of(layout), supernode)
            before_s = step_s(model, layout, network.links(), spreads)
            for cause in CAUSES:
                slowdown = {cause: times} if cause in DIGITS else None
                after_s = step_s(model, layout, network.links(cause, times), spreads, slowdown)
                if after_s < before_s * (1.0 - HAIR):
                    found.append(f"{cause} x {times:.4g}: {after_s / before_s - 1:.2e}, {layout}")
    return found


@pytest.mark.parametrize("name", ["llama-3.1-8b", "mixtral-8x7b", "deepseek-v3"])
def test_no_collective_that_takes_longer_makes_a_step_shorter(name: str) -> None:
    assert shortened(name, 12, seed=1) == []


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "name", ["llama-3.1-8b", "llama-3.1-405b", "gpt3-175b", "mixtral-8x7b", "qwen3-30b-a3b",
             "deepseek-v3"],
)  # fmt: skip
def test_no_collective_of_many_that_takes_longer_makes_a_step_shorter(name: str, seed: int) -> None:
    assert shortened(name, 300, seed) == []


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-30b-a3b", "mixtral-8x7b"])
def test_no_step_is_shorter_because_its_tensor_groups_are_split(name: str) -> None:
    model, random, found = read_model(name), np.random.default_rng(2), []
    # NICs of a sixteenth of the rate inside: no collective of a split group is shorter
    links = LinkNumbers(
        tiers=(tier("supernode", 800e9, 2e-6), tier("cluster", 50e9, 1e-5)), launch_s=5e-6
    )
    for layout in layouts(model, 32, 150, random):
        columns = columns_of(layout)
        spreads = contiguous_spread(columns, 32)
        whole_s = step_s(model, layout, links, spreads)
        for held in (1, 2, 4, 8):
            split = replace(spreads, tp=strided_spread(columns.tp, 1.0, [float(held)]))
            if step_s(model, layout, links, split) < whole_s * (1.0 - HAIR):
                found.append(f"{held} together, {layout}")
    assert found == []


def test_no_pass_and_no_hop_that_takes_longer_makes_a_pipeline_shorter() -> None:
    random, count = np.random.default_rng(3), 40_000
    code = random.integers(0, 4, count)
    stages = random.integers(2, 10, count).astype(float)
    chunks = np.where(code == 0, random.integers(1, 5, count), 1).astype(float)
    rounds = random.integers(1, 30, count)
    columns = replace(
        columns_of(Layout()), pp=stages, vpp=chunks, schedule=code.astype(float),
        global_batch=np.where(chunks > 1, stages * (1 + rounds % 4), rounds).astype(float),
        overlap_hops=random.integers(0, 2, count).astype(float),
    )  # fmt: skip
    scale = random.choice([1.0, 0.25, 2.0], count)
    forward, backward = random.uniform(0.5, 1.5, (2, 3, count))
    backward *= scale
    hop_s = random.choice([0.0, 0.01, 0.1, 1.0, 3.0], count) * random.random(count)
    weights = stage_seconds(np.minimum(0.5 * backward, forward))

    def total_s(longer: Floats, hop_s: Floats) -> Any:
        there, back = stage_seconds(forward + longer[:3]), stage_seconds(backward + longer[3:])
        return pipeline(columns, there, back, weights, hop_s).total_s

    none = np.zeros((6, count))
    before_s, more_s = total_s(none, hop_s), random.exponential(0.2, count)
    for which in ([0], [1], [2], [3], [4], [5], [0, 1, 2], [3, 4, 5], list(range(6))):
        longer = none.copy()
        longer[which] = more_s
        assert (total_s(longer, hop_s) >= before_s * (1.0 - HAIR)).all(), which
    assert (total_s(none, hop_s + more_s) >= before_s * (1.0 - HAIR)).all()


def stage_seconds(values: Floats) -> StageSeconds:
    first, middle, last = values
    return StageSeconds(first=first, middle=middle, middle_mean=0.95 * middle, last=last)
