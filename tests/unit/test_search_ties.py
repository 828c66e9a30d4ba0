"""When two layouts cannot be told apart: the doubt of both counts, not that of the first alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.layout import Layout
from planner.search.finalist import is_tie, seat
from planner.search.seated_steps import SeatedSteps
from topologies.fabric_catalogue import generic_cluster
from topologies.model_reader import read_model


@pytest.mark.parametrize(
    ("first_spread", "other_spread", "tie"),
    [(0.05, 0.05, False), (0.05, 0.2, True), (0.2, 0.05, True)],
)
def test_a_rival_of_which_little_is_known_is_not_told_from_the_first(
    first_spread: float, other_spread: float, tie: bool
) -> None:
    # ln(1 / 0.87) = 0.139. By hand, at 90 %: 1.28 sqrt((a^2 + b^2) (1 - 0.33)) = 0.074 where both
    # are 0.05, and 0.216 where one is 0.2.
    layout = Layout(dp=4, pp=4, global_batch=16)
    model = read_model("llama-3.1-8b")
    found = seat(SeatedSteps(generic_cluster(4, 16), None), model, layout, time_limit_s=1.0)

    first = replace(found, step=replace(found.step, tokens_per_s=1000.0, spread=first_spread))
    other = replace(found, step=replace(found.step, tokens_per_s=870.0, spread=other_spread))

    assert is_tie(first, other) is tie
