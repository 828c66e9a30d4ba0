"""Families across sheets that no touches tell, where the sheets of a domain's parts are known.

Proof: ``FORMULATION.md``, "Names".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.bound import domain_bounds, rebate_bytes
from planner.place.question import Kind, touched_units

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.question import Charge
    from planner.place.sheet_cuttings import Parts
    from planner.place.sheet_parts import Sheeted

_SAME = 1e-9  # relative; of two sums of the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """A family whose groups run through several sheets.

    Args:
        group: of every sheet, by number: sheets of one group have cells of its groups [1].
        width: cells of a group inside a sheet [1].
        units_bytes: what a domain pays that holds 0, 1, … cells of a group; concave [bytes].
    """

    group: tuple[int, ...]
    width: int
    units_bytes: NDArray[np.float64]

    def least_bytes(self, parts: Parts, sheets: Parts) -> float:
        """Return what a domain pays at least that holds such parts of these sheets [bytes].

        As many groups as can be are held in all its sheets, and one takes the rest.
        """
        held: dict[int, list[int]] = {}
        for cells, sheet in zip(parts, sheets, strict=True):
            held.setdefault(self.group[sheet], []).append(cells)
        paid = 0.0
        for each in held.values():
            most = len(each) * self.width
            whole, rest = divmod(sum(each), most)
            paid += whole * float(self.units_bytes[most]) + float(self.units_bytes[rest])
        return paid


class Beside:
    """What domains pay for the families beside, above what they pay by their cells alone.

    Args:
        of: the question cut into sheets.
    """

    def __init__(self, of: Sheeted) -> None:
        beside, capacities = of.beside, of.question.capacities
        self.grouped: tuple[Grouped, ...] = ()
        if not beside.charges or of.stock.spare:
            return
        counted = tuple(c for c in beside.charges if c.kind is not Kind.ENDS)
        self.rest = replace(beside, charges=tuple(c for c in beside.charges if c not in counted))
        self.known = dict(
            zip(
                set(capacities),
                domain_bounds(beside, list(set(capacities)), sharp=True),
                strict=True,
            )
        )
        alone = sum(self.known[c] for c in capacities) - rebate_bytes(beside)
        if of.beside_bytes <= alone + _SAME * abs(alone):  # else more is known of all together
            self.grouped = tuple(_grouped(of, charge) for charge in counted)

    def more_bytes(self, parts: Parts, sheets: Parts) -> float:
        """Return what a full domain with such parts of these sheets pays more [bytes]."""
        if not self.grouped:
            return 0.0
        cells = sum(parts)
        paid = sum(one.least_bytes(parts, sheets) for one in self.grouped)
        paid += domain_bounds(self.rest, [cells], sharp=True)[0]
        return max(0.0, paid - self.known[cells])


def _grouped(of: Sheeted, charge: Charge) -> Grouped:
    sizes = tuple(1 if i in of.axes else n for i, n in enumerate(of.question.sizes))
    outer = tuple(i for i in charge.axes if i not in of.axes)
    group = np.zeros(of.sheets, dtype=np.int64)
    for number, sheets in enumerate(groups_along(sizes, outer)):
        group[sheets] = number
    units = charge.weight_bytes * touched_units(charge, of.question.group_size(charge.axes))
    width = of.question.group_size([i for i in charge.axes if i in of.axes])
    return Grouped(group=tuple(group.tolist()), width=width, units_bytes=units)
