"""A machine whose matrix units run slower than the chip's: told apart, and no number for the next.

H100 alone: large BF16 products reach 0.80 of the peak (ML, MAMF), in whole steps about 0.70.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.steptime.calibrate import fit
from planner.steptime.rates import Efficiency
from planner.steptime.runs import Run, batches, predicted_s
from tests.unit.test_steptime_calibrate import TRUE, runs_made_with

CHIP = "H100-SXM"


def of_source(source: str, efficiency: Efficiency) -> list[Run]:
    return [replace(run, source=source) for run in runs_made_with(efficiency)]


USUAL = replace(TRUE, gemm_share={"bf16": 0.70})
COLD = replace(TRUE, gemm_share={"bf16": 0.45}, attention_share={"fused": 0.26})


@pytest.fixture(scope="module")
def fitted() -> Efficiency:
    """Every row of a throttled machine, and every twelfth of a usual one."""
    runs = [*of_source("cold", COLD), *of_source("usual", USUAL)[::12]]
    return fit(runs)[CHIP].efficiency


def test_a_throttled_machine_has_a_clock_and_the_chip_keeps_what_others_reach(
    fitted: Efficiency,
) -> None:
    assert fitted.gemm_share["bf16"] == pytest.approx(0.70, rel=0.06)
    assert set(fitted.clock_ratio) == {"cold"}
    assert fitted.clock_ratio["cold"] == pytest.approx(0.45 / 0.70, rel=0.06)


def test_rows_of_either_machine_are_predicted_at_its_own_clock(fitted: Efficiency) -> None:
    runs = [of_source("cold", COLD)[20], of_source("usual", USUAL)[20]]
    runs.append(replace(runs[1], source="a third"))

    found = predicted_s(batches(runs), {CHIP: fitted}, 3)

    assert found[0] == pytest.approx(runs[0].measured_s, rel=0.06)
    assert found[1] == pytest.approx(runs[1].measured_s, rel=0.06)
    assert found[2] == pytest.approx(runs[1].measured_s, rel=0.06)


def test_a_machine_alone_is_the_chip_as_far_as_anyone_knows() -> None:
    alone = fit(of_source("cold", COLD))[CHIP].efficiency

    assert alone.clock_ratio == {}
    assert alone.gemm_share["bf16"] == pytest.approx(0.45, rel=0.05)


def test_machines_within_what_chips_differ_by_have_no_clocks() -> None:
    slower = replace(TRUE, gemm_share={"bf16": 0.62})

    found = fit([*of_source("slower", slower), *of_source("usual", USUAL)])[CHIP].efficiency

    assert found.clock_ratio == {}


def test_a_clock_moves_the_matrix_units_and_nothing_else() -> None:
    clocked = replace(TRUE, clock_ratio={"cold": 0.75})

    assert clocked.on("other") is clocked
    assert clocked.on("cold").gemm_share["bf16"] == pytest.approx(0.75 * 0.60)
    assert clocked.on("cold").attention_share["fused"] == pytest.approx(0.75 * 0.40)
    assert clocked.on("cold").memory_share == TRUE.memory_share
