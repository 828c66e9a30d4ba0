"""Slowdown by others on a link, against the same link played burst by burst."""

from __future__ import annotations

import random

import pytest

from planner.network.contention import slowdown


def played(work: float, share: float, flows: int, bursts: int) -> float:
    """Return how many times as long one flow takes beside a crowd that comes and goes.

    One flow works all the time. The crowd computes for a while, then has a burst of its own and
    waits for its end. While both are active each flow gets an even part of the link.
    """
    idle_s, burst = work * (1 - share) / bursts, work * share / bursts
    clock = served = 0.0
    while True:
        if served + idle_s >= work:
            return (clock + work - served) / work
        clock, served = clock + idle_s, served + idle_s
        lasts = burst * (flows + 1) / flows
        got = lasts / (flows + 1)
        if served + got >= work:
            return (clock + (work - served) * (flows + 1)) / work
        clock, served = clock + lasts, served + got


@pytest.mark.parametrize("seed", range(100))
def test_slowdown_is_what_a_link_played_in_bursts_gives(seed: int) -> None:
    rng = random.Random(seed)
    share, flows = rng.uniform(0, 0.95), rng.choice([1, 2, 7, 63, 127])

    told = slowdown([share], [(flows + 1) / flows], [float(flows + 1)])

    assert told == pytest.approx(played(1.0, share, flows, bursts=5_000), rel=5e-3)
