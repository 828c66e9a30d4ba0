"""Ctrl-C while an answer is finished: it is finished, and told to be interrupted."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

import planner.place
from cli import planner_plan
from cli.planner_inputs import Asked, read_inputs
from cli.planner_plan import make_plan
from planner.place import tiers
from planner.place.interrupts import held_back

LAYOUT = {"tp": 2, "cp": 1, "dp": 4, "pp": 4, "global_batch": 64, "zero_stage": 1}


def _press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (planner.place, "on_best_uplinks"),
        (planner.place, "baselines"),
        (tiers, "lower_bound"),
        (planner.place, "tier_cuts"),
        (planner_plan, "layout_memory"),
    ],
)
def test_ctrl_c_while_an_answer_is_finished_does_not_lose_it(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    inner: Callable[..., Any] = getattr(module, name)
    pressed: list[str] = []

    def struck(*arguments: Any, **named: Any) -> Any:
        if not pressed:
            pressed.append(name)
            _press()
        return inner(*arguments, **named)

    monkeypatch.setattr(module, name, struck)
    inputs = read_inputs(
        Asked(cluster="llama3-roce", gpus=32, model="llama-3.1-8b", layout=LAYOUT,
              ignore_memory=True)
    )  # fmt: skip

    plan = make_plan(inputs)

    assert pressed == [name]
    assert plan.placement.interrupted
    assert sorted(plan.placement.rank_to_gpu) == list(range(32))
    assert plan.placement.checked_bytes == pytest.approx(plan.placement.objective_bytes)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _press_twice() -> None:
    with held_back() as held:
        _press()
        assert held.interrupted
        _press()


def test_a_second_ctrl_c_does_not_wait() -> None:
    with pytest.raises(KeyboardInterrupt):
        _press_twice()

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_thread_and_another_answer_to_a_signal_are_left_alone() -> None:
    seen: list[object] = []

    def in_thread() -> None:
        with held_back() as held:
            seen.append(held.interrupted)

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, lambda *_: seen.append("mine"))
    try:
        with held_back() as held:
            _press()
            seen.append(held.interrupted)
    finally:
        signal.signal(signal.SIGINT, before)

    assert seen == [False, "mine", False]
