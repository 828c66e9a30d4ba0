"""Ctrl-C while a finalist is seated ends the search: its best seats so far are no answer."""

from __future__ import annotations

import signal
from types import FrameType

import pytest

from planner.layout import Layout
from planner.search.finalist import seat
from planner.search.seated_steps import SeatedSteps
from topologies.fabric_catalogue import generic_cluster
from topologies.model_reader import read_model

LAYOUT = Layout(tp=16, cp=8, ep=16, pp=8, global_batch=4096, recompute="full")  # takes over 10 s


def interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_while_ranks_are_seated_is_not_swallowed() -> None:
    steps = SeatedSteps(generic_cluster(72, 1024), None)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            seat(steps, read_model("deepseek-v3"), LAYOUT, time_limit_s=20.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
