"""The half of filling that a step is never without: against every path, by linear programmes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner.search.rounds import FILL_SHARE, least_rounds
from planner.steptime.longest_1f1b import Passes, longest_1f1b

FIRST_F, FIRST_B, MIDDLE_F, MIDDLE_B, LAST_F, LAST_B, MEAN = np.eye(7)
FIRST, MIDDLE, LAST = FIRST_F + FIRST_B, MIDDLE_F + MIDDLE_B, LAST_F + LAST_B
SIZES = [
    (p, v, m)
    for p in (2, 3, 4, 5, 8, 16)
    for v in (1, 2, 3, 16)
    for m in ((1, 2, 3, p - 1, p, p + 1, p + 2, 3 * p, 50 * p) if v == 1 else
              (p, 2 * p, 3 * p, 50 * p))
]  # fmt: skip


def paths(p: int, v: int, m: int) -> list[np.ndarray]:
    """Return the paths through 1F1B that its closed form knows, as coefficients of the passes.

    Written down from the text of ``longest_1f1b``, every choice of the longer of two apart.
    """
    total = FIRST + LAST + (p - 2) * MEAN
    passes, alone, more = m * v, (v - 1) * p, 2 if v > 1 else 1
    any_f, any_b = (FIRST_F, MIDDLE_F, LAST_F), (FIRST_B, MIDDLE_B, LAST_B)
    if v > 1 and m <= p:
        return [total + (passes - 1) * (f + b) for f, b in product(any_f, any_b)]
    found = [
        total + (passes - 1 - alone) * LAST + alone * (f + b) for f, b in product(any_f, any_b)
    ]
    downs = [(alone + more) * f for f in any_f[:2]] + [alone * f + LAST for f in any_f]
    ups = [(alone + more) * b for b in any_b[:2]] + [alone * b + LAST for b in any_b]
    if passes > 2:
        turned = total + (passes - 1 - alone - more) * MIDDLE - LAST
        found += [turned + down + up for down, up in product(downs, ups)]
    if passes == 2:
        pairs = product(any_f[:2], any_b[:2])
        found += [total + one for f, b in pairs for one in (f, b, f + b - LAST)]
    ahead = alone + more * (p - 1)
    if passes > ahead + 1:
        between = total - FIRST - LAST
        first_down = [ahead * FIRST_F, *(between + down for down in downs)]
        first_up = [ahead * FIRST_B, *(between + up for up in ups)]
        at_first = (passes - ahead) * FIRST
        found += [at_first + down + up for down, up in product(first_down, first_up)]
    return found


def least_of_all_shares_s(p: int, v: int, m: int) -> float:
    """Return the shortest pipeline, one micro-batch being a second on all stages, however shared.

    The mean of the stages between the ends is no more than the fullest of them.
    """
    longest = [[*path, -1.0] for path in paths(p, v, m)]
    mean_at_most = [*(MEAN - MIDDLE), 0.0]
    equal = [[*(FIRST + LAST + (p - 2) * MEAN), 0.0]]
    if p == 2:
        equal += [[*(FIRST_F - MIDDLE_F), 0.0], [*(FIRST_B - MIDDLE_B), 0.0]]
    found = linprog(
        [0.0] * 7 + [1.0],
        A_ub=[*longest, mean_at_most], b_ub=[0.0] * (len(longest) + 1),
        A_eq=equal, b_eq=[1.0] + [0.0] * (len(equal) - 1),
    )  # fmt: skip
    assert found.status == 0
    return float(found.fun) / v


@pytest.mark.parametrize(("p", "v", "m"), SIZES)
def test_no_shares_of_the_stages_fill_the_pipe_in_less_than_half(p: int, v: int, m: int) -> None:
    (least,) = least_rounds(np.array([p]), np.array([v]), np.array([m]), np.array([0]))

    assert least_of_all_shares_s(p, v, m) >= least * (1 - 1e-9)


def test_half_cannot_be_raised_for_all_pipes() -> None:
    filling_s = least_of_all_shares_s(2, 2, 4_000) - 4_000 / 2

    assert filling_s / ((1 - 1 / 2) / 2) == pytest.approx(FILL_SHARE, rel=0.01)


SECONDS = st.floats(1e-6, 10.0)


@settings(max_examples=400, deadline=None)
@given(
    passes=st.tuples(SECONDS, SECONDS, SECONDS, SECONDS, SECONDS, SECONDS),
    mean=st.floats(0.0, 1.0), p=st.integers(2, 64), v=st.integers(1, 16), groups=st.integers(1, 40),
    more=st.integers(0, 63), hop_s=st.sampled_from([0.0, 1e-3, 0.1, 1.0, 30.0]),
)  # fmt: skip
def test_the_closed_form_is_never_below_it(
    passes: tuple[float, ...], mean: float, p: int, v: int, groups: int, more: int, hop_s: float
) -> None:
    first_f, first_b, middle_f, middle_b, last_f, last_b = passes
    if p == 2:
        middle_f, middle_b = first_f, first_b
    m = groups * p if v > 1 else (groups - 1) * p + 1 + more % p
    all_s = first_f + first_b + last_f + last_b + (p - 2) * mean * (middle_f + middle_b)
    work = Passes(
        first_forward_s=first_f, first_backward_s=first_b, middle_forward_s=middle_f,
        middle_backward_s=middle_b, last_forward_s=last_f, last_backward_s=last_b, all_s=all_s,
        stages=float(p), chunks=float(v), micro_batches=float(m),
    )  # fmt: skip

    found = longest_1f1b(work, hop_s)

    (least,) = least_rounds(np.array([p]), np.array([v]), np.array([m]), np.array([0]))
    assert found.alone_s >= least * all_s * (1 - 1e-9)
    assert found.total_s >= found.alone_s * (1 - 1e-9)
