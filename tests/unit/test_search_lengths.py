"""Where lengths are varied, every layout that runs at a length is looked at there."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf

import numpy as np
import pytest

from cli.planner_inputs import Asked, read_question
from planner.search.axes import axes_of
from planner.search.changed import Change
from planner.search.evaluate import times_on
from planner.search.flips import Varied
from planner.search.pool import Pool
from planner.search.search import machine_of, space_on
from planner.search.whole import Whole
from tests.conftest import Ran

FEW = {"zero_stage": 1, "recompute": "selective", "micro_batch": 1}


def asked(model: str, gpus: int, supernode: int, seq: int) -> Pool:
    inputs = read_question(
        Asked(supernode=supernode, gpus=gpus, model=model,
              layout={**FEW, "global_batch": 4 * gpus, "seq": seq})
    )  # fmt: skip
    machine = machine_of(inputs.fabric, gpus, inputs.efficiency)
    space = space_on(inputs.model, (machine,), gpus, inputs.fixed)
    whole = Whole.of(inputs.model, space, inputs.fixed, machine)
    rows = whole.that_can(1.0, np.arange(space.size))
    return Pool.of("it", inputs.fabric, machine, whole, rows)


def anew_s(pool: Pool, seq: int) -> float:
    """Return the best step of all layouts that a search at *seq* lists, infinite if none fits."""
    fixed, gpus = {**pool.whole.fixed, "seq": seq}, int(pool.columns.gpus[0])
    space = space_on(pool.model, (pool.machine,), gpus, fixed)
    whole = Whole.of(pool.model, space, fixed, pool.machine)
    rows = whole.that_can(1.0, np.arange(space.size))
    if not rows.size:
        return inf
    return float(times_on(pool.model, whole.longer(rows, 1.0), (pool.machine,))[0, 0].min())


@pytest.mark.parametrize(
    ("model", "gpus", "supernode", "seq", "there"),
    [
        ("llama-3.1-70b", 48, 12, 4096, 36_288),  # CP 3 runs there, and nothing that runs at 4,096
        ("qwen3-32b", 40, 8, 4096, 33_280),  # CP 5 does
        ("qwen3-32b", 72, 36, 4096, 4608),
        ("llama-3.1-8b", 24, 8, 1000, 1536),
        ("mixtral-8x7b", 16, 8, 6144, 4096),
    ],
)
def test_the_best_at_a_length_is_that_of_a_search_of_that_length(
    model: str, gpus: int, supernode: int, seq: int, there: int
) -> None:
    pool = asked(model, gpus, supernode, seq)
    varied = Varied([pool], "it")

    best = varied.steps.best(varied.steps.winner, Change(seq=there / seq))
    today = varied.steps.best(varied.steps.winner, Change())

    assert best.step_s == pytest.approx(anew_s(pool, there), rel=1e-9)
    assert best.step_s < inf
    assert today.step_s == pytest.approx(anew_s(pool, seq), rel=1e-9)


@pytest.mark.parametrize(
    ("model", "gpus", "supernode", "seq"),
    [("llama-3.1-70b", 48, 12, 6144), ("llama-3.1-70b", 24, 8, 6144), ("mixtral-8x7b", 24, 8, 6144),
     ("llama-3.1-70b", 40, 8, 4096)],
)  # fmt: skip
def test_where_nothing_fits_at_a_length_nothing_fits_at_a_longer_one(
    model: str, gpus: int, supernode: int, seq: int
) -> None:
    pool = asked(model, gpus, supernode, seq)
    varied = Varied([pool], "it")
    axis = varied.axes["seq"]

    def fits(factor: float) -> bool:
        return varied.steps.best(varied.steps.winner, axis.change(factor)).row >= 0

    held, beyond = 1.0, next(factor for factor in axis.grid(1) if not fits(factor))
    while (middle := axis.between(held, beyond)) is not None:
        held, beyond = (middle, beyond) if fits(middle) else (held, middle)
    longer, factor = [], beyond
    for _ in range(12):
        factor = axis.nearest(factor * 1.03)
        longer.append(factor)

    assert held < beyond < longer[0]
    assert not any(fits(one) for one in longer)


@pytest.mark.parametrize(("gpus", "odd"), [(24, 3), (40, 5), (64, 1)])
def test_lengths_that_are_asked_about_give_all_ranks_whole_parts(gpus: int, odd: int) -> None:
    pool = asked("llama-3.1-8b", gpus, 8, 4096)
    (axis,) = [one for one in axes_of([pool]) if one.name == "seq"]

    lengths = [round(4096 * axis.nearest(factor)) for factor in np.geomspace(1 / 32, 32, 200)]

    assert min(lengths) / 4096 == pytest.approx(1 / 32, rel=0.05)
    assert max(lengths) / 4096 == pytest.approx(32, rel=0.02)
    for length in lengths:
        assert length % (odd * 2 ** max(0, int(np.log2(length / odd / 64)))) == 0


def test_a_comparison_of_gpus_that_do_not_divide_the_length_is_answered(
    planner: Callable[..., Ran],
) -> None:
    found = planner(
        "compare", "--supernode", "2,12", "--gpus", "12", "--model", "llama-2-7b", "--seq", "2048",
        "--global-batch", "48", "--zero", "1", "--json",
    )  # fmt: skip

    assert found.code == 0, found.err
    assert any(one["property"] == "seq" for one in json.loads(found.out)["flips"])
