"""What a fit of one's own has seen, and how wide its interval is beyond that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.steptime.covered import Covered, Kind, beyond, covered_by, widened
from planner.steptime.document import interval_s
from planner.steptime.rates import Efficiency
from planner.steptime.step import Step
from planner.steptime.uncertainty import LAYOUT_SPREAD, MACHINE_SPREAD
from tests.unit.test_steptime_calibrate import TRUE
from topologies.own_efficiency import few_rows

DENSE = Kind(accelerator="H100-SXM", precision="bf16", moe=False, gpus=64, crosses=True, seq=4096)
ROWS = covered_by([DENSE, replace(DENSE, gpus=128)])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"moe": True}, "no row is a MoE"),
        ({"precision": "fp8"}, "no row is in fp8"),
        ({"accelerator": "H200-SXM"}, "rows are of H100-SXM, none of H200-SXM"),
        ({"gpus": 512}, "rows have 64 to 128 GPUs, this 512"),
        ({"gpus": 16}, "rows have 64 to 128 GPUs, this 16"),
        ({"seq": 32768}, "rows have 4,096 tokens, this 32,768"),
    ],
)
def test_a_step_unlike_all_rows_says_in_what(asked: dict[str, object], words: str) -> None:
    assert beyond(ROWS, replace(DENSE, **asked)) == (words,)  # type: ignore[arg-type]


@pytest.mark.parametrize("asked", [{}, {"precision": "fp16"}, {"gpus": 256}, {"seq": 8192}])
def test_a_step_like_the_rows_or_one_doubling_away_is_covered(asked: dict[str, object]) -> None:
    assert beyond(ROWS, replace(DENSE, **asked)) == ()  # type: ignore[arg-type]


def test_rows_of_one_node_say_nothing_of_the_network_and_a_silent_file_of_nothing() -> None:
    inside = covered_by([replace(DENSE, gpus=8, crosses=False)])

    assert beyond(inside, replace(DENSE, gpus=16)) == ("none leaves its scale-up domain",)
    assert beyond(Covered(), DENSE) == ("the file does not say what its rows were",)


def test_beyond_its_rows_a_fit_is_no_surer_than_of_a_machine_that_it_has_not_seen() -> None:
    sure = replace(TRUE, spread=0.05, machine_spread=0.0)
    shipped = replace(TRUE, spread=0.15)

    assert widened(sure, shipped).spread == 0.15
    assert widened(sure, None).spread == LAYOUT_SPREAD
    assert widened(sure, None).machine_spread == MACHINE_SPREAD
    assert widened(replace(sure, spread=0.4), shipped).spread == 0.4


def test_few_rows_that_scatter_are_not_said_to_be_sure_but_for_other_machines() -> None:
    calm = Efficiency(gemm_share={"bf16": 0.5}, attention_share={}, memory_share={}, rows=6,
                      spread=0.1)  # fmt: skip

    assert "other machines' more than theirs" in few_rows(calm)
    assert "their own scatter's" in few_rows(replace(calm, spread=0.4))


def test_no_step_is_promised_faster_than_the_peak_allows(step_at_80_percent: Step) -> None:
    """At an MFU of 0.8 and a spread of 0.3 the plain interval would start at 1.3 times the peak."""
    low_s, high_s = interval_s(step_at_80_percent)

    assert low_s == pytest.approx(0.8 * 10.0)
    assert high_s == pytest.approx(10.0 * 2.718281828 ** (1.645 * 0.3))


@pytest.fixture
def step_at_80_percent() -> Step:
    class Bare:
        total_s, least_s, spread, machine_spread = 10.0, 8.0, 0.3, 0.0

    return Bare()  # type: ignore[return-value]
