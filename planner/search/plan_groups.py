"""Which parallel groups of two plans sit otherwise: how many domains they touch, who moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import LayoutError
from planner.layout import Layout, groups_along

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DIGITS = ("tp", "cp", "ep", "etp", "dp", "edp", "pp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seated:
    """How the groups of one parallel degree sit.

    Args:
        groups, group_size: how many, and ranks in each; dp is that of dense gradients, cp x dp [1].
        min_domains, max_domains: that the groups touch, the one that touches fewest and most [1].
    """

    groups: int
    group_size: int
    min_domains: int
    max_domains: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """The groups of one degree in both plans; None where a plan has none of two ranks or more.

    Args:
        digit: the degree.
        before, after: how they sit.
        moved_groups: groups of the same ranks that are split over domains otherwise; None where
            the two plans group ranks differently [1].
    """

    digit: str
    before: Seated | None
    after: Seated | None
    moved_groups: int | None


def group_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[GroupChange, ...]:
    """Return the degrees whose groups do not sit as before, from one plan's document to another's.

    Raises:
        LayoutError: a document's layout cannot exist.
    """
    plans = [_Plan(before), _Plan(after)]
    found = []
    for digit in _DIGITS:
        members = [plan.members(digit) for plan in plans]
        seated = [plan.seated(some) for plan, some in zip(plans, members, strict=True)]
        alike = members[0].shape == members[1].shape and bool((members[0] == members[1]).all())
        moved = None
        if alike:
            splits = [plan.split(members[0]) for plan in plans]
            moved = int((splits[0] != splits[1]).any(axis=1).sum())
        if seated[0] != seated[1] or moved:
            found.append(
                GroupChange(digit=digit, before=seated[0], after=seated[1], moved_groups=moved)
            )
    return tuple(found)


def _layout_of(plan: Mapping[str, Any]) -> Layout:
    """Return the layout of a plan's document, checked: nothing has, so far.

    Raises:
        LayoutError: it cannot be, or has not as many ranks as are seated.
    """
    told, ranks = plan["inputs"]["layout"], len(plan["placement"]["rank_to_gpu"])
    known = {f.name: f.default for f in fields(Layout) if f.name in told}
    faults = [
        f"inputs.layout.{name} is {told[name]!r:.40}, no {type(usual).__name__}"
        for name, usual in known.items()
        if type(told[name]) is not type(usual)
    ]
    if faults:
        raise LayoutError(*faults)
    layout = Layout(**{name: told[name] for name in known})
    if layout.gpus != ranks:
        raise LayoutError(f"inputs.layout has {layout.gpus} ranks, but {ranks} are seated")
    return layout


class _Plan:
    """The ranks of a plan's document: their groups, and the domain that each sits in."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._layout = _layout_of(plan)
        self._has_experts = any(name.startswith("edp_") for name in plan["cut"]["by_family"])
        self._home = np.full(len(plan["placement"]["rank_to_gpu"]), -1)
        for position, domain in enumerate(plan["placement"]["domains"]):
            self._home[domain["ranks"]] = position

    def members(self, digit: str) -> NDArray[np.int64]:
        """Return the ranks of each group, shape [groups, group_size]."""
        sizes = [axis.size for axis in self._layout.axes]
        idle = digit == "edp" and not self._has_experts
        return groups_along(sizes, () if idle else self._layout.axes_of(digit))

    def seated(self, members: NDArray[np.int64]) -> Seated | None:
        """Return how groups sit, None where they are of one rank."""
        if members.shape[1] < 2:
            return None
        homes = np.sort(self._home[members], axis=1)
        touched = 1 + (np.diff(homes, axis=1) != 0).sum(axis=1)
        return Seated(
            groups=members.shape[0], group_size=members.shape[1],
            min_domains=int(touched.min()), max_domains=int(touched.max()),
        )  # fmt: skip

    def split(self, members: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return of each member the place of the first one that sits in its domain."""
        homes = self._home[members]
        keys = homes + (int(self._home.max()) + 1) * np.arange(len(members))[:, None]
        _, first, which = np.unique(keys.ravel(), return_index=True, return_inverse=True)
        return first[which.ravel()].reshape(members.shape)
