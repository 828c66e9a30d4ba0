"""Axes: the digits of a rank's number in which a layout's dense and expert groups can be written.

The dense factorisation tp x cp x dp x pp and the expert one etp x ep x edp x pp both number the
same ranks. Writing both as mixed-radix digits over one common refinement (*axes*) turns every
group family into *the set of axes along which its members vary*. With hybrid sharding dp is two
digits: the ranks of a shard group, and outside of it the replicas.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from planner.errors import LayoutError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.layout import Layout

_REMEMBERED = 4_096
"""Layouts whose axes are kept: one is asked for its own dozens of times while it is seated."""
_EXPERT_DIGIT = {"tp": "etp", "ep": "ep", "dp": "edp", "pp": "pp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One digit of the rank's mixed-radix number.

    Args:
        name: the dense digit it is part of, with a running number where that digit is split
            (``dp0``, ``dp1``, innermost first).
        size: values the digit takes [1].
        stride: ranks between two neighbours along the axis [1].
        dense: ``tp``, ``cp``, ``dp`` or ``pp``: the dense degree it belongs to.
        expert: ``etp``, ``ep``, ``edp`` or ``pp``: the expert degree it belongs to.
    """

    name: str
    size: int
    stride: int
    dense: str
    expert: str


@lru_cache(maxsize=_REMEMBERED)
def refine(layout: Layout) -> tuple[Axis, ...]:
    """Return the axes: the coarsest mixed radix in which both factorisations can be written.

    Axes of size 1 are left out.

    Raises:
        LayoutError: the two factorisations do not align; names the digits that clash.

    >>> from planner.layout import Layout
    >>> [axis.size for axis in refine(Layout(tp=8, pp=4, dp=2, order="tp-cp-ep-pp-dp",
    ...                                      global_batch=2))]
    [8, 4, 2]
    """
    order = layout.order.split("-")
    dense = [(d, getattr(layout, d)) for d in order if d != "ep"]
    if layout.etp * layout.ep == 1:  # no expert group to align: its replicas are all but pp
        return _numbered(_dense_axes(_split_dp(layout, dense)))
    expert = [(_EXPERT_DIGIT[d], getattr(layout, _EXPERT_DIGIT[d])) for d in order if d != "cp"]
    dense_ends, expert_ends = _ends(dense), _ends(expert)
    split_ends = _ends(_split_dp(layout, dense))
    cuts = sorted({end for _, end in split_ends} | {end for _, end in expert_ends} | {1})
    axes: list[Axis] = []
    for low, high in pairwise(cuts):
        dense_digit, expert_digit = _owner(dense_ends, high), _owner(expert_ends, high)
        if high % low:
            raise LayoutError(
                f"the digits clash: the dense factorisation {_spelled(dense)} and the expert "
                f"factorisation {_spelled(expert)} cannot share ranks, because {low} ranks "
                f"(inside {_owner(dense_ends, low)}/{_owner(expert_ends, low)}) do not divide "
                f"{high} ranks ({dense_digit}/{expert_digit})"
            )
        if (dense_digit == "pp") != (expert_digit == "pp"):
            raise LayoutError(
                f"the digits clash: in the order {layout.order} pp falls on {expert_digit} of the "
                f"experts and on {dense_digit} of the dense layers; use an order that ends in pp, "
                f"or etp x ep = tp x cp (here {layout.etp * layout.ep} and "
                f"{layout.tp * layout.cp})"
            )
        axes.append(
            Axis(
                name=dense_digit,
                size=high // low,
                stride=low,
                dense=dense_digit,
                expert=expert_digit,
            )
        )
    return _numbered(axes)


def replica_axes(layout: Layout) -> tuple[int, ...]:
    """Return the indices of the axes of dp beyond its first ``dp_shard`` ranks; none without it.

    >>> from planner.layout import Layout
    >>> replica_axes(Layout(tp=2, dp=16, dp_shard=4, global_batch=16))
    (2,)
    """
    inside, found = 1, []
    for i, axis in enumerate(layout.axes):
        if axis.dense == "dp":
            if layout.dp_shard and inside >= layout.dp_shard:
                found.append(i)
            inside *= axis.size
    return tuple(found)


def _dense_axes(dense: Sequence[tuple[str, int]]) -> tuple[Axis, ...]:
    axes, stride = [], 1
    for digit, size in dense:
        if size > 1:
            axes.append(
                Axis(
                    name=digit,
                    size=size,
                    stride=stride,
                    dense=digit,
                    expert="pp" if digit == "pp" else "edp",
                )
            )
        stride *= size
    return tuple(axes)


def _split_dp(layout: Layout, dense: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the dense digits with dp in two where replicas hold what a shard group does."""
    parts = [("dp", layout.dp_shard), ("dp", layout.dp_replicate)] if layout.dp_shard else []
    return [one for digit in dense for one in (parts if parts and digit[0] == "dp" else [digit])]


def _ends(digits: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    ends, reach = [], 1
    for name, degree in digits:
        reach *= degree
        if degree > 1:
            ends.append((name, reach))
    return ends


def _owner(ends: Sequence[tuple[str, int]], rank_end: int) -> str:
    return next(name for name, end in ends if end >= rank_end)


def _spelled(digits: Sequence[tuple[str, int]]) -> str:
    return " x ".join(f"{name}{degree}" for name, degree in digits)


def _numbered(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    named = []
    for i, axis in enumerate(axes):
        twins = [j for j, other in enumerate(axes) if other.dense == axis.dense]
        name = axis.name if len(twins) == 1 else f"{axis.name}{twins.index(i)}"
        named.append(
            Axis(
                name=name, size=axis.size, stride=axis.stride, dense=axis.dense, expert=axis.expert
            )
        )
    return tuple(named)
