"""What may be the fastest in seats is promised no longer a step than every seating of it takes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cli.planner_inputs import Asked, read_question
from planner.search.changed import AS_IT_IS, Change
from planner.search.effort import QUESTION_RANKS, Effort, SpentError
from planner.search.pool import Pool, steps_at_once_s
from planner.search.search import machine_of, sweep
from planner.search.seatable import Seatable
from planner.search.seated_steps import SeatedSteps
from planner.search.whole import Whole

GPUS = 16
FEW = {"cp": 1, "micro_batch": 1, "recompute": "selective", "zero_stage": 1, "vpp": 1}
CHANGES = [
    AS_IT_IS, Change(nic_rate=0.1), Change(nic_latency=20.0), Change(crowding=6.0), Change(seq=0.5)
]  # fmt: skip


@cache
def steps_on(supernode: int) -> SeatedSteps:
    question = read_question(Asked(supernode=supernode, gpus=GPUS, model="llama-3.1-8b"))
    return SeatedSteps(question.fabric, question.efficiency)


@cache
def pool_on(supernode: int) -> Pool:
    """Return a cluster with one row of a space of a few layouts; full supernodes and a partial."""
    question = read_question(Asked(supernode=supernode, gpus=GPUS, model="llama-3.1-8b"))
    machine = machine_of(question.fabric, GPUS, question.efficiency)
    swept = sweep(question.model, machine, GPUS, {**question.fixed, **FEW})
    whole = Whole.of(question.model, swept.space, swept.fixed, machine)
    best = int(swept.evaluated.rows[np.argmin(swept.evaluated.total_s)])
    return Pool.of(f"sn{supernode}", question.fabric, machine, whole, np.array([best]))


def seatable_on(supernode: int, effort: Effort | None = None) -> Seatable:
    return Seatable(pool_on(supernode), steps_on(supernode), effort or Effort())


@cache
def seated_steps(supernode: int, change: Change) -> dict[int, float]:
    """Return the step of every row that fits, each seated [s]: the slow and obvious way."""
    some = seatable_on(supernode, Effort(lambda effort: effort.begin()))
    whole = some.pool.whole
    rows = whole.that_can(change.seq, np.arange(whole.space.size))
    return {row: some.seated_s(row, change) for row in rows.tolist()}


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("supernode", [5, 8])
def test_no_row_takes_less_in_seats_than_it_is_promised_to(supernode: int, change: Change) -> None:
    seated = seated_steps(supernode, change)
    limit_s = 1.3 * min(seated.values())

    promised = seatable_on(supernode).promised(change, limit_s)

    least_s = dict(zip(promised.rows.tolist(), promised.least_s.tolist(), strict=True))
    assert len(seated) >= 5
    for row, step_s in seated.items():
        if step_s <= limit_s:
            assert least_s[row] <= step_s * (1 + 1e-9)
    assert set(least_s) <= set(seated)
    assert promised.likely_s.tolist() == sorted(promised.likely_s)
    assert (promised.likely_s >= promised.least_s).all()
    assert max(least_s.values()) <= limit_s * (1 + 1e-9)


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("supernode", [5, 8])
def test_what_may_take_so_long_in_its_own_seats_is_no_less_than_what_does(
    supernode: int, change: Change
) -> None:
    some = seatable_on(supernode)

    for row, step_s in seated_steps(supernode, change).items():
        assert some.may_take(row, change, step_s * (1 + 1e-9))
        assert not some.may_take(row, change, 0.3 * step_s)


def test_what_is_promised_under_one_change_holds_after_others_were_asked() -> None:
    one_after_another = seatable_on(5)

    for change in (*CHANGES, *CHANGES):
        limit_s = 1.3 * min(seated_steps(5, change).values())
        again, alone = (
            some.promised(change, limit_s) for some in (one_after_another, seatable_on(5))
        )
        assert set(again.rows.tolist()) == set(alone.rows.tolist())
        assert np.sort(again.least_s) == pytest.approx(np.sort(alone.least_s), rel=1e-9)


def test_rows_are_timed_in_two_rank_orders_and_in_seats_of_their_own_where_those_differ() -> None:
    rows = np.array(sorted(seated_steps(5, AS_IT_IS)))

    some = seatable_on(5).timed(rows)

    ordered_s = steps_at_once_s([(pool_on(5).with_rows(rows), AS_IT_IS)])[0]
    assert np.shape(some.spreads.dp.members[0]) == (3, rows.size)
    assert (steps_at_once_s([(some, AS_IT_IS)])[0] <= ordered_s).all()
    effort = Effort()  # one supernode: whatever the seats, they are alike
    seatable_on(GPUS, effort).timed(rows)
    assert effort.layouts == 0


def test_every_seating_is_counted_and_none_is_begun_beyond_the_most() -> None:
    effort = Effort()
    some = seatable_on(8, effort)
    row = int(some.pool.rows[0])

    some.seated_s(row, AS_IT_IS)
    for _ in range(QUESTION_RANKS // GPUS - 1):
        effort.take(GPUS)

    assert some.tried == {row}
    assert effort.ranks == QUESTION_RANKS
    with pytest.raises(SpentError):
        some.seated_s(row, AS_IT_IS)
    assert effort.ranks == QUESTION_RANKS


def test_a_longer_sequence_is_that_of_the_layout_itself() -> None:
    some, steps = seatable_on(8), steps_on(8)
    row = int(some.pool.rows[0])
    layout = some.pool.layout(row)

    half_s = some.seated_s(row, Change(seq=0.5))

    assert half_s < some.seated_s(row, AS_IT_IS)
    shorter = some.pool.whole.space.layout(row, {**some.pool.whole.fixed, "seq": layout.seq // 2})
    assert half_s == steps.quick_s(some.pool.model, shorter)
