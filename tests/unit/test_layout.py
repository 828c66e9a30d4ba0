"""Refined axes and groups against writing out every rank's digits one by one."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.errors import LayoutError
from planner.layout import Layout, groups_along
from tests.oracles import digit_groups

# (degrees in Megatron's order without ep, and without cp) by rank order
_DENSE = {"tp-cp-ep-dp-pp": ("tp", "cp", "dp", "pp"), "tp-cp-ep-pp-dp": ("tp", "cp", "pp", "dp")}
_EXPERT = {
    "tp-cp-ep-dp-pp": ("etp", "ep", "edp", "pp"), "tp-cp-ep-pp-dp": ("etp", "ep", "pp", "edp"),
}  # fmt: skip


def _slow_groups(layout: Layout, digits: tuple[str, ...], varies: set[str]) -> list[list[int]]:
    """Write every rank as digits of one factorisation; group ranks that agree outside *varies*."""
    by_rest: dict[tuple[int, ...], list[int]] = {}
    for rank in range(layout.gpus):
        rest, left = [], rank
        for digit in digits:
            degree = getattr(layout, digit)
            if digit not in varies:
                rest.append(left % degree)
            left //= degree
        by_rest.setdefault(tuple(rest), []).append(rank)
    return sorted(by_rest.values())


@st.composite
def _layouts(draw: st.DrawFn) -> Layout:
    small = st.sampled_from([1, 2, 3, 4, 6])
    tp, cp, dp, pp = (draw(small) for _ in range(4))
    width = tp * cp * dp
    divisors = [d for d in range(1, width + 1) if width % d == 0]
    etp = draw(st.sampled_from(divisors))
    ep = draw(st.sampled_from([d for d in divisors if width % (etp * d) == 0]))
    order = draw(st.sampled_from(sorted(_DENSE)))
    try:
        return Layout(
            tp=tp,
            cp=cp,
            dp=dp,
            pp=pp,
            ep=ep,
            etp=etp,
            order=order,
            global_batch=dp,
            seq=tp * cp * 8,
        )
    except LayoutError:
        assume(False)
        raise


@given(_layouts())
def test_dense_and_expert_groups_are_those_of_their_own_digits(layout: Layout) -> None:
    sizes = [axis.size for axis in layout.axes]
    dense, expert = _DENSE[layout.order], _EXPERT[layout.order]

    assert prod(sizes) == layout.gpus
    checks = [
        ("tp", dense, {"tp"}), ("cp", dense, {"cp"}), ("dp", dense, {"cp", "dp"}),
        ("pp", dense, {"pp"}),
    ]  # fmt: skip
    if layout.etp * layout.ep > 1:
        checks += [(d, expert, {d}) for d in expert]
    else:  # no expert is split: each stage's ranks are replicas of all its experts
        checks.append(("edp", dense, {"tp", "cp", "dp"}))
    for digit, digits, varies in checks:
        groups = groups_along(sizes, layout.axes_of(digit))
        assert groups.tolist() == _slow_groups(layout, digits, varies), digit


@given(_layouts())
def test_axes_are_a_mixed_radix_of_the_rank(layout: Layout) -> None:
    stride = 1
    for axis in layout.axes:
        assert axis.stride == stride
        assert axis.size > 1
        stride *= axis.size
    assert stride == layout.gpus
    assert len({axis.name for axis in layout.axes}) == len(layout.axes)


@pytest.mark.parametrize("along", [(), (0,), (1,), (2,), (0, 2), (2, 0), (1, 2), (0, 1, 2)])
def test_groups_along_axes_are_those_with_equal_other_digits(along: tuple[int, ...]) -> None:
    assert groups_along((2, 3, 4), along).tolist() == digit_groups((2, 3, 4), along)


def test_the_worked_example_has_three_axes() -> None:
    layout = Layout(tp=4, cp=2, dp=16, ep=8, global_batch=16)

    assert [axis.size for axis in layout.axes] == [4, 2, 16]
    assert layout.axes_of("ep") == (0, 1)
    assert layout.axes_of("edp") == (2,)
    assert layout.axes_of("dp") == (1, 2)
    assert layout.edp == 16


@pytest.mark.parametrize(
    ("degrees", "message"),
    [
        ({"tp": 8, "dp": 8, "ep": 3, "global_batch": 8}, r"etp x ep = 1 x 3 = 3 does not divide"),
        ({"tp": 0}, r"tp=0 is not a whole number of at least 1"),
        ({"dp": 4, "global_batch": 6}, r"= 4 does not divide global_batch = 6"),
        ({"pp": 2, "vpp": 2, "global_batch": 3}, r"to be a multiple of pp = 2"),
        ({"vpp": 2}, r"vpp=2 needs pp > 1"),
        ({"cp": 3, "seq": 4096}, r"cp=3 does not divide seq = 4096"),
        ({"zero_stage": 4}, r"zero=4 is not a ZeRO stage"),
        ({"precision": "int8"}, r"precision='int8' is unknown"),
        ({"order": "tp-dp"}, r"order='tp-dp' does not name"),
        ({"tp": 6, "dp": 2, "ep": 4, "global_batch": 2, "seq": 6144}, r"do not divide"),
    ],
)
def test_degrees_that_cannot_be_are_refused_with_both_values(
    degrees: dict[str, int], message: str
) -> None:
    with pytest.raises(LayoutError, match=message):
        Layout(**degrees)  # type: ignore[arg-type]


def test_every_fault_of_a_layout_is_named_at_once() -> None:
    with pytest.raises(LayoutError) as refused:
        Layout(dp=4, global_batch=6, cp=3, zero_stage=7, recompute="some")

    assert len(refused.value.faults) == 4
