"""A solve in a process of its own: its answer, its faults, and Ctrl-C that need not wait for it."""

from __future__ import annotations

import math
import os
import signal
import threading
import time

import numpy as np
import pytest

from planner.errors import SolverError
from planner.place import whole_numbers
from planner.place.child import in_child
from planner.place.question import Charge, Kind, Question
from planner.place.stage_choice import choice_of
from planner.place.stage_prices import stage_prices
from planner.place.stages import staged
from planner.place.whole_numbers import Effort

MANY = Effort(listed=30_000, nodes=20_000)


def test_a_child_answers_with_what_the_function_returns() -> None:
    assert in_child(math.comb, (5, 2), 10.0) == 10


def test_what_fails_in_a_child_is_named_without_a_traceback() -> None:
    with pytest.raises(SolverError, match="ValueError"):
        in_child(math.sqrt, (-1.0,), 10.0)


def test_a_child_is_kept_for_the_next_solve() -> None:
    first = in_child(os.getpid, (), 10.0)

    assert first != os.getpid()
    assert in_child(os.getpid, (), 10.0) == first


def test_a_kept_child_that_is_gone_is_replaced() -> None:
    first = in_child(os.getpid, (), 10.0)
    assert first is not None
    os.kill(first, signal.SIGKILL)

    assert in_child(math.comb, (6, 2), 10.0) == 15
    assert in_child(os.getpid, (), 10.0) != first


def test_a_solve_that_takes_too_long_leaves_no_process_behind() -> None:
    child = in_child(os.getpid, (), 10.0)
    assert child is not None

    assert in_child(time.sleep, (60.0,), -22.5) is None  # half a second, the grace taken off
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_solves_of_several_threads_do_not_mix_their_answers() -> None:
    found: dict[int, int | None] = {}

    def solve(n: int) -> None:
        found[n] = in_child(math.comb, (n, 2), 20.0)

    threads = [threading.Thread(target=solve, args=(n,)) for n in range(3, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == {3: 3, 4: 6, 5: 10, 6: 15}


def test_an_interrupt_ends_a_solve_at_once() -> None:
    this = threading.get_ident()
    threading.Timer(1.0, lambda: signal.pthread_kill(this, signal.SIGINT)).start()
    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        in_child(time.sleep, (60.0,), 60.0)
    assert time.monotonic() - began_s < 20.0


def test_a_choice_of_patterns_is_the_same_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = Question(
        sizes=(6, 4),
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=3.0),
            Charge(axes=(1,), kind=Kind.CHAIN, weight_bytes=1.0),
        ),
        capacities=(5, 5, 5, 5, 4),
    )
    of = staged(question)
    assert of is not None
    home = np.repeat(np.arange(5), question.capacities)
    priced = stage_prices(of, home, math.inf)
    here = choice_of(of, priced, 60.0, 60.0, MANY)
    monkeypatch.setattr(whole_numbers, "_PROMPT_UNKNOWNS", 0)
    aside = choice_of(of, priced, 60.0, 60.0, MANY)
    assert here.held is not None
    assert aside.held is not None
    assert here.bound_bytes > 0
    assert aside.bound_bytes == here.bound_bytes
    assert (aside.held == here.held).all()
