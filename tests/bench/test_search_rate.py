"""How many layouts a core gets through, and how much memory that takes."""

from __future__ import annotations

import resource
import time

import pytest

from cli.planner_inputs import Asked, read_inputs
from planner.search.evaluate import evaluate
from planner.search.search import machine_of
from planner.search.space import layout_space, wide_choices
from planner.units import GIB, KIB

pytestmark = pytest.mark.bench


def test_a_core_gets_through_250_000_layouts_of_the_175b_space_a_second() -> None:
    inputs = read_inputs(Asked(supernode=64, gpus=1024, model="gpt3-175b"))
    fixed = inputs.fixed
    machine = machine_of(inputs.fabric, 1024, inputs.efficiency)

    started = time.process_time()
    space = layout_space(inputs.model, 1024, fixed, wide_choices(inputs.model))
    listed = time.process_time()
    found = evaluate(inputs.model, space, fixed, machine)
    core_s = time.process_time() - started

    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB
    print(  # noqa: T201 - what a bench is for
        f"considered {space.considered:,}, can run {space.size:,}, fit {len(found.rows):,}: "
        f"{space.considered / core_s:,.0f} considered and "
        f"{space.size / (core_s - (listed - started)):,.0f} evaluated a core-second; "
        f"peak {peak_bytes / GIB:.2f} GiB"
    )
    assert space.considered >= 1_000_000
    assert space.size / (core_s - (listed - started)) >= 250_000
    assert peak_bytes <= GIB
