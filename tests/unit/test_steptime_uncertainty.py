"""Intervals, and layouts that cannot be told apart."""

from __future__ import annotations

import math

import pytest

from planner.steptime.uncertainty import LAYOUT_SPREAD, faster, few_rows_spread, interval_s


def test_an_interval_holds_nine_cases_of_ten_of_a_normal_log() -> None:
    low, high = interval_s(1.0, 0.2, 0.0)

    # 1.645 standard deviations, from the tables of the normal distribution
    assert (math.log(low), math.log(high)) == pytest.approx((-0.329, 0.329))


def test_equal_steps_are_an_even_bet() -> None:
    verdict = faster(10.0, 10.0, 0.1)

    assert verdict.faster_share == 0.5
    assert not verdict.told_apart


def test_what_two_layouts_share_does_not_blur_their_order() -> None:
    apart = faster(10.0, 11.5, 0.1, shared_share=0.9)
    blurred = faster(10.0, 11.5, 0.1, shared_share=0.0)

    assert apart.told_apart
    assert not blurred.told_apart
    assert apart.faster_share > blurred.faster_share


def test_a_verdict_and_its_opposite_add_up() -> None:
    assert faster(10.0, 11.0, 0.1).faster_share + faster(
        11.0, 10.0, 0.1
    ).faster_share == pytest.approx(1.0)


@pytest.mark.parametrize(("freedom", "quantile"), [(4, 2.132), (6, 1.943), (10, 1.812)])
def test_few_rows_have_the_tails_of_students_distribution(freedom: int, quantile: float) -> None:
    """95 % points from the tables; rows that tell nothing of their own leave the first four."""
    rows = freedom - 4

    known = few_rows_spread(rows * LAYOUT_SPREAD**2, rows, told=0.0)

    noise = (1 + 1 / max(rows, 1)) ** 0.5
    assert 1.645 * known == pytest.approx(quantile * LAYOUT_SPREAD * noise, rel=2e-3)
