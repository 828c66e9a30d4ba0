"""What contends on a cluster: its best is that of seating every layout, at every change."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf, sqrt

import numpy as np
import pytest

from planner.search.changed import AS_IT_IS, Change
from planner.search.contenders import NOTHING_FITS, Contender, Contest, Contests, contest
from planner.search.incumbent import spelled_degrees
from planner.search.pool import steps_at_once_s
from tests.unit.test_search_seatable import CHANGES, pool_on, seatable_on, seated_steps

GRIPS = 0.001  # what holds the lead keeps it until another is so much faster


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("supernode", [5, 8])
def test_the_best_of_a_contest_is_that_of_all_layouts_seated(
    supernode: int, change: Change
) -> None:
    seated, pool = seated_steps(supernode, change), pool_on(supernode)

    best = contest(seatable_on(supernode), change, (), []).best(change, "")

    row = min(seated, key=lambda one: seated[one])
    assert best.token_s == pytest.approx(seated[row] / pool.tokens, rel=1e-9)
    assert best.words == spelled_degrees(pool.layout(row))


def test_fewer_layouts_are_seated_than_there_are() -> None:
    some = seatable_on(5)

    contest(some, AS_IT_IS, (), [])

    assert len(some.tried) < len(seated_steps(5, AS_IT_IS)) / 2


def test_what_is_asked_for_is_seated_however_long_it_takes() -> None:
    some, seated = seatable_on(5), seated_steps(5, AS_IT_IS)
    slowest = max(seated, key=lambda one: seated[one])

    found = contest(some, AS_IT_IS, (), [some.pool.layout(slowest)])

    assert slowest in {one.row for one in found.contenders}


def test_what_leads_stays_until_another_is_a_thousandth_faster() -> None:
    found = contest(seatable_on(5), AS_IT_IS, (), [])
    first = min(found.contenders, key=lambda one: seated_steps(5, AS_IT_IS)[one.row])
    lead_s = seated_steps(5, AS_IT_IS)[first.row]

    def best(behind: float) -> str:
        """Return who is first where a rival takes so much more than the first [1]."""
        rival = replace(first, words="rival", ratio=first.ratio * (1 + behind))
        pool = found.pool.with_rows(np.array([first.row, first.row]))
        some = Contest(pool=pool, contenders=(first, rival))
        told = some.best(AS_IT_IS, "rival")
        assert told.token_s == pytest.approx(lead_s / pool.tokens, rel=1e-3)
        return told.words

    assert best(0.9 * GRIPS) == "rival"
    assert best(1.1 * GRIPS) == first.words


def test_between_two_contests_a_ratio_goes_evenly_in_log_and_beyond_them_it_stays() -> None:
    some = seatable_on(5)
    row = int(some.pool.rows[0])
    pool = some.timed(np.array([row]))
    expected = {0.05: 2.0, 0.1: 2.0, sqrt(0.02): 3.0, 0.2: 4.0, 0.4: 4.0}
    changes = {rate: Change(nic_rate=rate) for rate in expected}
    contests = Contests(some)
    for rate in (0.1, 0.2):
        one = Contender(words="it", row=row, ratio=expected[rate])
        contests.at(rate, partial(Contest, pool=pool, contenders=(one,)))

    bests = contests.bests(changes, "")

    for rate, ratio in expected.items():
        alone_s = steps_at_once_s([(pool, changes[rate])])[0][0]
        assert bests[rate].token_s * pool.tokens == pytest.approx(ratio * alone_s, rel=1e-9), rate


def test_a_contest_is_made_once_for_each_factor() -> None:
    made: list[Contest] = []
    contests = Contests(seatable_on(8))

    def make() -> Contest:
        made.append(contest(seatable_on(8), AS_IT_IS, (), []))
        return made[-1]

    for _ in range(3):
        contests.at(1.0, make)

    assert len(made) == 1


def test_where_nothing_fits_nothing_wins() -> None:
    some = seatable_on(8)
    empty = Contest(pool=some.pool, contenders=())
    contests = Contests(some)
    contests.at(1.0, lambda: empty)

    assert empty.best(AS_IT_IS, "any") == NOTHING_FITS
    assert contests.bests({1.0: AS_IT_IS, 2.0: Change(nic_rate=2.0)}, "") == {
        1.0: NOTHING_FITS, 2.0: NOTHING_FITS,
    }  # fmt: skip
    assert NOTHING_FITS.token_s == inf
