"""What parts cost beyond what is known of them, line by line: of one sheet, or of two in a chain.

Parts that are cheapest each by itself need not go together. Two that lie upon each other in sheets
that follow each other want the same places in both; parts of one sheet that touch few groups of a
family across sheets may leave odd pieces of its lines to others. So for the parts of a choice the
lines of their sheets are cut into pieces, all lines at once, and what the least of that is above
the costs known is a rule for further choices. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import chain, pairwise
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.question import Kind
from planner.place.sheet_pieces import Held, Join, Together, coordinates, least_more
from planner.place.whole_numbers import Model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.place.sheet_choice import Filling, Listed, PartChoice
    from planner.place.sheet_cuttings import Cuttings, Parts
    from planner.place.sheet_names import Names
    from planner.place.sheet_parts import Sheeted


def joins(of: Sheeted) -> list[Join]:
    """Return what is looked at: every sheet where families have traces, else neighbours."""
    if of.traces:
        return [Join(sheets=(r,), hop_bytes=0.0, shares=(1.0,)) for r in range(of.sheets)]
    hops: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for outer in of.outers:
        for charge in outer.question.charges:
            if charge.kind is Kind.CHAIN:
                for line in groups_along(outer.question.sizes, charge.axes).tolist():
                    for two in pairwise(line):
                        hops[two] += charge.weight_bytes
    times = Counter(chain.from_iterable(hops))
    return [
        Join(sheets=two, hop_bytes=hop, shares=tuple(1 / times[r] for r in two))
        for two, hop in hops.items()
    ]


@dataclass(slots=True, kw_only=True)
class Joins:
    """What choices of named parts cost more, as far as worked out, as rules for further ones.

    Args:
        names: of the parts.
        cuttings: what is known of them.
        slack_bytes: what no better seating costs more than the bound of the prices [bytes].
        joins: that are looked at.
        more_bytes: what was found of each, by its hop and shares and by what domains hold [bytes].
        told: how often lines along some axes said the most, by sheets of a join and axes.
    """

    names: Names
    cuttings: Cuttings
    slack_bytes: float
    joins: list[Join]
    more_bytes: dict[
        tuple[float, tuple[float, ...]], dict[frozenset[tuple[Together, int]], float]
    ] = field(default_factory=dict)
    told: dict[int, Counter[tuple[int, ...]]] = field(default_factory=dict)

    def learn(self, choice: PartChoice, ends_s: float) -> bool:
        """Work out what a choice costs more; return whether that is a rule for the next.

        Args:
            choice: of named parts.
            ends_s: begin no further join when ``time.monotonic()`` is past this [s].
        """
        learned = False
        for join in self.joins:
            held: Counter[Together] = Counter()
            for (_, parts), sheets in zip(choice.domains, choice.sheets, strict=True):
                held[self._of(join, parts, sheets)] += 1
            held.pop((Held(),) * len(join.sheets), None)
            known = self.more_bytes.setdefault((join.hop_bytes, join.shares), {})
            key = frozenset(held.items())
            if key not in known and monotonic() < ends_s:
                known[key] = self._more(join, held, ends_s)
                learned |= known[key] > 0
        return learned

    def ruled(self, model: Model, listed: Listed) -> Model:
        """Return the model with a rule for all that was worked out.

        A rule says that these parts together cost more, and lets go of that for every part which
        the choice has fewer of.
        """
        from scipy.sparse import block_array, csr_array  # noqa: PLC0415 - rarely needed

        rules = [
            (join, key, min(1.0, more / self.slack_bytes))
            for join in self.joins
            for key, more in self.more_bytes.get((join.hop_bytes, join.shares), {}).items()
            if more > 0
        ]
        if not rules:
            return model
        fillings = list(chain.from_iterable(listed.fillings))
        size, found = len(model.cost_bytes), _Rules()
        holding: dict[tuple[int, ...], dict[Together, list[int]]] = {}
        for join, key, more in rules:
            if join.sheets not in holding:
                holding[join.sheets] = self._holding(join, fillings)
            found.add(join, key, more, holding[join.sheets], self.names.of.sheet.cells)
        cost_bytes, highest = np.array(found.cost) * self.slack_bytes, np.array(found.highest)
        left = csr_array(coordinates(found.of_fillings), shape=(len(found.least), size))
        right = csr_array(coordinates(found.of_own), shape=(len(found.least), len(highest)))
        return Model(
            cost_bytes=np.concatenate([model.cost_bytes, cost_bytes]),
            whole=np.concatenate([model.whole, np.array(found.cost) == 0.0]),
            highest=np.concatenate([model.highest, highest]),
            rows=csr_array(block_array([[model.rows, None], [left, right]])),
            least=np.concatenate([model.least, found.least]),
            most=np.concatenate([model.most, found.most]),
        )

    def _of(self, join: Join, parts: Parts, sheets: Parts) -> Together:
        """Return what a domain with these parts holds of the sheets of a join."""
        held = []
        for sheet in join.sheets:
            if sheet not in sheets:
                held.append(Held())
                continue
            rank = sheets.index(sheet)
            before, cells = sheets[:rank], parts[rank]
            weights = self.names.weights_bytes(before, sheet)
            held.append(Held(cells, weights, self.names.joined(before, sheet, cells)))
        return tuple(held)

    def _holding(self, join: Join, fillings: Sequence[Filling]) -> dict[Together, list[int]]:
        """Return the fillings by what they hold of the sheets of a join."""
        found: dict[Together, list[int]] = {}
        for i, one in enumerate(fillings):
            if any(sheet in one.sheets for sheet in join.sheets):
                found.setdefault(self._of(join, one.parts, one.sheets), []).append(i)
        return found

    def _more(self, join: Join, held: Counter[Together], ends_s: float) -> float:
        """Return what these parts of the sheets of a join cost above what is known [bytes]."""
        of = self.names.of
        known = 0.0
        for r, share in enumerate(join.shares):
            parts = tuple(sorted((one[r].cells for one in held.elements()), reverse=True))
            cutting = tuple(k for k in parts if k)
            known += share * (self.cuttings.more_bytes.get(cutting, 0.0) - of.inside_given_bytes)
            known += share * sum(n * _known(of, one[r]) for one, n in held.items())
        told = self.told.setdefault(len(join.sheets), Counter())
        return least_more(of, join, held, known, self.slack_bytes, ends_s, told)


def _known(of: Sheeted, part: Held) -> float:
    """Return what the choice charges for a part inside its sheet and for its traces [bytes]."""
    touched = zip(of.traces, part.weights_bytes, strict=False)
    traced = sum(w * -(-part.cells // of.sheet.group_size(one.axes)) for one, w in touched)
    return float(of.part_bytes[part.cells]) + part.joined_bytes + traced


@dataclass(slots=True)
class _Rules:
    """Rules of a model: those that say what is missing, and those that say what costs more.

    Args:
        cost: of each unknown of their own, as a share of the slack [1].
        highest: the most that it can be.
        least: of every rule.
        most: of every rule.
        of_fillings: factors of fillings: rule, filling, factor.
        of_own: those of the unknowns of their own.
        extra: the unknown that says what a join costs more.
        missing: the unknown that says whether there are fewer than so many.
    """

    cost: list[float] = field(default_factory=list)
    highest: list[float] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)
    of_fillings: list[tuple[int, int, float]] = field(default_factory=list)
    of_own: list[tuple[int, int, float]] = field(default_factory=list)
    extra: dict[tuple[int, ...], int] = field(default_factory=dict)
    missing: dict[tuple[tuple[int, ...], Together, int], int] = field(default_factory=dict)

    def add(
        self,
        join: Join,
        key: frozenset[tuple[Together, int]],
        more: float,
        holding: dict[Together, list[int]],
        cells: int,
    ) -> None:
        """Add the rule that these parts of a join cost *more*, as a share of the slack [1].

        Args:
            join: the sheets.
            key: what domains hold of them, and how many do.
            more: what that costs [1].
            holding: the fillings by what they hold of these sheets.
            cells: of a sheet [1].
        """
        if any(one not in holding for one, _ in key):
            return  # the list has no such choice
        own = []
        for one, n in sorted(key, key=repr):
            if (join.sheets, one, n) not in self.missing:
                unknown = self._unknown(0.0, 1.0)
                self.missing[join.sheets, one, n] = unknown
                most = min(cells // part.cells for part in one if part.cells)
                row = self._rule(-inf, float(most))
                self.of_fillings += [(row, i, 1.0) for i in holding[one]]
                self.of_own.append((row, unknown, float(most - n + 1)))
            own.append(self.missing[join.sheets, one, n])
        if join.sheets not in self.extra:
            self.extra[join.sheets] = self._unknown(1.0, 1.0)
        row = self._rule(more, inf)
        self.of_own += [(row, unknown, more) for unknown in own]
        self.of_own.append((row, self.extra[join.sheets], 1.0))

    def _rule(self, least: float, most: float) -> int:
        self.least.append(least)
        self.most.append(most)
        return len(self.least) - 1

    def _unknown(self, cost: float, highest: float) -> int:
        self.cost.append(cost)
        self.highest.append(highest)
        return len(self.cost) - 1
