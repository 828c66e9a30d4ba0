"""The closed form of a pipeline against the explicit graph of its passes."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.layout import Layout
from planner.steptime.columns import SCHEDULES, columns_of
from planner.steptime.dag import StageWork, step_graph, timeline
from planner.steptime.orders import stage_order
from planner.steptime.schedule import Pipeline, StageSeconds, pipeline

STAGES = st.sampled_from([1, 2, 3, 4, 6, 8])
ROUNDS = st.integers(1, 5)
TIMES = st.floats(0.1, 10.0)


def longest_path_s(graph: nx.DiGraph) -> float:
    """The longest path by NetworkX: a vertex's duration on the edges that leave it, a sink."""
    weighted = nx.DiGraph()
    for one, data in graph.nodes(data=True):
        weighted.add_edge(one, "end", weight=data["duration_s"])
    for before, after, data in graph.edges(data=True):
        weight = graph.nodes[before]["duration_s"] + data["delay_s"]
        weighted.add_edge(before, after, weight=weight)
    return float(nx.dag_longest_path_length(weighted, weight="weight"))


def on_stages(values: list[float]) -> StageSeconds:
    between = values[1:-1] or values[:1]
    return StageSeconds(
        first=values[0], middle=max(between), middle_mean=sum(between) / len(between),
        last=values[-1],
    )  # fmt: skip


def closed(
    schedule: str, work: list[StageWork], chunks: int, micro_batches: int, hop_s: float
) -> Pipeline:
    columns = replace(
        columns_of(Layout()), pp=float(len(work)), vpp=float(chunks),
        global_batch=float(micro_batches), schedule=float(SCHEDULES.index(schedule)),
    )  # fmt: skip
    return pipeline(
        columns,
        on_stages([w.forward_s for w in work]),
        on_stages([w.backward_s for w in work]),
        on_stages([w.weights_s for w in work]),
        hop_s,
    )


def explicit_s(
    schedule: str, work: list[StageWork], chunks: int, micro_batches: int, hop_s: float
) -> float:
    return timeline(step_graph(schedule, work, chunks, micro_batches, hop_s)).total_s


def alike(stages: int, forward_s: float, backward_s: float, weights_s: float) -> list[StageWork]:
    return [StageWork(forward_s=forward_s, backward_s=backward_s, weights_s=weights_s)] * stages


@given(STAGES, ROUNDS, TIMES, TIMES, st.floats(0.0, 3.0))
@settings(max_examples=40)
def test_gpipe_is_its_graph(
    stages: int, rounds: int, forward_s: float, backward_s: float, hop_s: float
) -> None:
    work = alike(stages, forward_s, backward_s, 0.0)

    found = closed("gpipe", work, 1, stages * rounds, hop_s)

    assert found.total_s == pytest.approx(
        explicit_s("gpipe", work, 1, stages * rounds, hop_s), rel=1e-9
    )


@given(STAGES, st.integers(1, 20), TIMES, TIMES)
@settings(max_examples=40)
def test_1f1b_is_its_graph(
    stages: int, micro_batches: int, forward_s: float, backward_s: float
) -> None:
    work = alike(stages, forward_s, backward_s, 0.0)

    found = closed("1f1b", work, 1, micro_batches, 0.0)

    assert found.total_s == pytest.approx(explicit_s("1f1b", work, 1, micro_batches, 0.0), rel=1e-9)


@given(STAGES, st.integers(1, 24), st.floats(0.0, 0.3))
@settings(max_examples=40)
def test_1f1b_with_hops_is_its_graph(stages: int, micro_batches: int, hop_s: float) -> None:
    work = alike(stages, 1.0, 2.0, 1.0)

    found = closed("1f1b", work, 1, micro_batches, hop_s)

    assert found.total_s == pytest.approx(
        explicit_s("1f1b", work, 1, micro_batches, hop_s), rel=1e-9
    )


@given(st.sampled_from([2, 4]), st.sampled_from([2, 3, 4]), ROUNDS, st.floats(0.0, 0.24))
@settings(max_examples=30)
def test_an_interleaved_schedule_is_its_graph(
    stages: int, chunks: int, rounds: int, hop_s: float
) -> None:
    work = alike(stages, 1.0, 2.0, 1.0)

    found = closed("1f1b", work, chunks, stages * rounds, hop_s)

    assert found.total_s == pytest.approx(
        explicit_s("1f1b", work, chunks, stages * rounds, hop_s), rel=1e-9
    )


@given(STAGES, ROUNDS)
@settings(max_examples=20)
def test_zb_h1_is_its_graph_where_passes_are_equal(stages: int, rounds: int) -> None:
    work = alike(stages, 1.0, 2.0, 1.0)

    found = closed("zb-h1", work, 1, stages * rounds, 0.0)

    assert found.total_s == pytest.approx(
        explicit_s("zb-h1", work, 1, stages * rounds, 0.0), rel=1e-9
    )


@given(st.sampled_from([3, 4, 8]), ROUNDS, st.floats(0.5, 1.0), st.floats(1.0, 2.0))
@settings(max_examples=30)
def test_embedding_and_logits_on_the_ends_are_in_the_graph_too(
    stages: int, rounds: int, first: float, last: float
) -> None:
    scales = [first, *[1.0] * (stages - 2), last]
    work = [StageWork(forward_s=s, backward_s=2 * s, weights_s=s) for s in scales]

    for schedule, chunks in (("1f1b", 1), ("1f1b", 2), ("gpipe", 1)):
        found = closed(schedule, work, chunks, stages * rounds, 0.0)
        explicit = explicit_s(schedule, work, chunks, stages * rounds, 0.0)
        assert found.total_s == pytest.approx(explicit, rel=1e-9)


PASS = st.tuples(st.floats(0.5, 1.45), st.floats(0.5, 1.45))


def with_ends(
    stages: int, first: tuple[float, float], last: tuple[float, float]
) -> list[StageWork]:
    """Stages of 1 + 2 s, the ends scaled, forward and backward apart."""
    scales = [first, *[(1.0, 1.0)] * (stages - 2), last]
    return [StageWork(forward_s=f, backward_s=2.0 * b) for f, b in scales]


@given(st.integers(2, 9), st.integers(1, 24), PASS, PASS)
@settings(max_examples=80)
def test_1f1b_is_its_graph_with_any_ends_and_however_few_micro_batches(
    stages: int, micro_batches: int, first: tuple[float, float], last: tuple[float, float]
) -> None:
    work = with_ends(stages, first, last)

    found = closed("1f1b", work, 1, micro_batches, 0.0)

    assert found.total_s == pytest.approx(explicit_s("1f1b", work, 1, micro_batches, 0.0), rel=1e-9)
    assert found.bubble_s >= -1e-9 * found.busy_s


@given(st.integers(2, 9), st.integers(1, 24), PASS, PASS, st.floats(0.0, 0.3))
@settings(max_examples=80)
def test_1f1b_with_any_ends_and_hops_is_never_longer_than_its_graph_and_hardly_shorter(
    stages: int, micro_batches: int, first: tuple[float, float], last: tuple[float, float],
    hop_s: float,
) -> None:  # fmt: skip
    work = with_ends(stages, first, last)

    found = closed("1f1b", work, 1, micro_batches, hop_s)

    explicit = explicit_s("1f1b", work, 1, micro_batches, hop_s)
    assert 0.975 * explicit <= found.total_s <= explicit * (1.0 + 1e-9)


@given(st.sampled_from([2, 3, 4, 6]), st.integers(2, 4), ROUNDS, st.floats(0.5, 1.0),
       st.floats(0.5, 1.45), st.floats(1.0, 3.0))  # fmt: skip
@settings(max_examples=60)
def test_an_interleaved_schedule_is_its_graph_where_the_first_stage_is_no_busier_than_others(
    stages: int, chunks: int, rounds: int, first: float, last: float, backward_s: float
) -> None:
    scales = [first if stages > 2 else 1.0, *[1.0] * (stages - 2), last]
    work = [StageWork(forward_s=s, backward_s=s * backward_s) for s in scales]

    found = closed("1f1b", work, chunks, stages * rounds, 0.0)

    explicit = explicit_s("1f1b", work, chunks, stages * rounds, 0.0)
    assert found.total_s == pytest.approx(explicit, rel=1e-9)


@given(st.sampled_from([2, 3, 4, 6]), st.integers(2, 4), ROUNDS, PASS, PASS)
@settings(max_examples=60)
def test_an_interleaved_schedule_is_never_longer_than_its_graph_and_hardly_shorter(
    stages: int, chunks: int, rounds: int, first: tuple[float, float], last: tuple[float, float]
) -> None:
    work = with_ends(stages, first, last)

    found = closed("1f1b", work, chunks, stages * rounds, 0.0)

    explicit = explicit_s("1f1b", work, chunks, stages * rounds, 0.0)
    assert 0.94 * explicit <= found.total_s <= explicit * (1.0 + 1e-9)


@given(st.lists(PASS, min_size=1, max_size=7), st.integers(1, 12), st.floats(0.0, 0.3))
@settings(max_examples=40)
def test_gpipe_is_its_graph_on_stages_of_any_kind(
    passes: list[tuple[float, float]], micro_batches: int, hop_s: float
) -> None:
    work = [StageWork(forward_s=f, backward_s=b) for f, b in passes]

    found = closed("gpipe", work, 1, micro_batches, hop_s)

    assert found.total_s == pytest.approx(
        explicit_s("gpipe", work, 1, micro_batches, hop_s), rel=1e-9
    )


@given(
    st.lists(st.floats(0.8, 1.2), min_size=2, max_size=6), ROUNDS,
    st.sampled_from(["gpipe", "1f1b", "zb-h1"]), st.floats(0.0, 0.1),
)  # fmt: skip
@settings(max_examples=60)
def test_any_uneven_pipeline_is_within_a_tenth_of_its_graph(
    scales: list[float], rounds: int, schedule: str, hop_s: float
) -> None:
    work = [StageWork(forward_s=s, backward_s=2 * s, weights_s=s) for s in scales]

    found = closed(schedule, work, 1, len(scales) * rounds, hop_s)

    explicit = explicit_s(schedule, work, 1, len(scales) * rounds, hop_s)
    assert found.total_s == pytest.approx(explicit, rel=0.1)


@given(STAGES, ROUNDS, st.sampled_from(["gpipe", "1f1b", "zb-h1"]), st.floats(0.0, 1.0))
@settings(max_examples=20)
def test_the_timeline_ends_where_networkx_finds_the_longest_path(
    stages: int, rounds: int, schedule: str, hop_s: float
) -> None:
    graph = step_graph(schedule, alike(stages, 1.0, 2.0, 0.7), 1, stages * rounds, hop_s)

    assert timeline(graph).total_s == pytest.approx(longest_path_s(graph), rel=1e-12)


@pytest.mark.parametrize(("schedule", "chunks"), [("gpipe", 1), ("1f1b", 1), ("1f1b", 3),
                                                  ("zb-h1", 1)])  # fmt: skip
def test_every_pass_runs_once_on_every_stage(schedule: str, chunks: int) -> None:
    kinds = 3 if schedule == "zb-h1" else 2
    for stage in range(4):
        order = stage_order(schedule, stage, 4, chunks, 8)
        assert len(order) == len(set(order)) == kinds * chunks * 8


@pytest.mark.parametrize("stages", [2, 4, 6, 8, 16])
@pytest.mark.parametrize("more", [0, 2, 8, 20])
@pytest.mark.parametrize("hop_s", [0.0, 0.01, 0.2])
def test_dualpipe_is_its_graph_where_passes_are_equal(stages: int, more: int, hop_s: float) -> None:
    work = alike(stages, 1.0, 2.0, 1.0)
    micro_batches = 2 * stages + more

    found = closed("dualpipe", work, 1, micro_batches, hop_s)

    explicit = explicit_s("dualpipe", work, 1, micro_batches, hop_s)
    assert found.total_s == pytest.approx(explicit, rel=0.004 if hop_s else 1e-9)


@given(st.sampled_from([2, 4, 8]), st.integers(2, 4), st.floats(1.6, 3.0), st.floats(0.5, 1.0))
@settings(max_examples=20)
def test_dualpipe_is_near_its_graph_where_they_are_not(
    stages: int, rounds: int, backward_s: float, weights_s: float
) -> None:
    work = alike(stages, 1.0, backward_s, weights_s)

    found = closed("dualpipe", work, 1, stages * rounds, 0.0)

    assert found.total_s == pytest.approx(
        explicit_s("dualpipe", work, 1, stages * rounds, 0.0), rel=0.05
    )


def test_dualpipe_has_the_bubble_of_its_paper() -> None:
    # arXiv 2412.19437 table 2: (p/2 - 1)(F&B + B - 3W) = 3 x (3 + 2 - 3)
    found = closed("dualpipe", alike(8, 1.0, 2.0, 1.0), 1, 16, 0.0)

    assert found.bubble_s == pytest.approx(6.0)


def test_zero_bubble_has_a_third_of_the_bubble_of_1f1b() -> None:
    # arXiv 2401.10241: with F = B = W, (p-1)(F + B - W) against (p-1)(F + B + W)
    work = alike(8, 1.0, 2.0, 1.0)

    ratio = closed("zb-h1", work, 1, 16, 0.0).bubble_s / closed("1f1b", work, 1, 16, 0.0).bubble_s

    assert ratio == pytest.approx(1 / 3)
