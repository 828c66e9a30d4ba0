"""What rows of a space share is reckoned once: to the same seconds as row by row."""

from __future__ import annotations

import numpy as np
import pytest

from cli.planner_inputs import Asked, read_inputs
from planner.layout import Layout
from planner.search.evaluate import evaluate
from planner.search.search import machine_of
from planner.search.space import layout_space, wide_choices
from planner.steptime.columns import columns_of
from planner.steptime.kinds import at_rows, kinds_of_rows

NAMES = ("dp", "pp", "zero_stage")


def test_every_row_is_of_a_kind_whose_first_row_is_like_it() -> None:
    layouts = [
        Layout(dp=dp, pp=4, vpp=vpp, zero_stage=zero, global_batch=64)
        for dp in (2, 4, 2) for vpp in (1, 2, 4) for zero in (0, 1, 3)
    ]  # fmt: skip
    columns = columns_of(layouts)

    kinds = kinds_of_rows(columns, NAMES)

    assert kinds is not None
    assert len(kinds.first) == 9  # the third run of rows is like the first, but apart from it
    for name in NAMES:
        own = getattr(columns, name)
        assert np.array_equal(at_rows(at_rows(own, kinds.first), kinds.of_row), own)


def test_rows_that_all_differ_and_a_single_layout_have_no_kinds() -> None:
    differing = columns_of([Layout(dp=dp, global_batch=64) for dp in (1, 2, 4, 8)])

    assert kinds_of_rows(differing, NAMES) is None
    assert kinds_of_rows(columns_of(Layout(dp=2, global_batch=64)), NAMES) is None


@pytest.mark.parametrize(("model", "gpus", "supernode"), [
    ("mixtral-8x7b", 24, 8), ("llama-3.1-8b", 40, 16), ("deepseek-v3", 1000, 384),
])  # fmt: skip
def test_a_space_at_once_takes_as_long_as_each_of_its_rows_alone(
    model: str, gpus: int, supernode: int
) -> None:
    inputs = read_inputs(Asked(supernode=supernode, gpus=gpus, model=model))
    machine = machine_of(inputs.fabric, gpus, inputs.efficiency)
    space = layout_space(inputs.model, gpus, inputs.fixed, wide_choices(inputs.model))
    every = evaluate(inputs.model, space, inputs.fixed, machine)

    for entry in np.linspace(0, len(every.rows) - 1, 12).astype(int):
        row = int(every.rows[entry])
        others = np.delete(np.arange(space.size), row)
        alone = evaluate(inputs.model, space, inputs.fixed, machine, without=others)
        assert alone.rows.tolist() == [row]
        assert alone.total_s[0] == pytest.approx(every.total_s[entry], rel=1e-12)
        assert alone.serial_s[0] == pytest.approx(every.serial_s[entry], rel=1e-12)
