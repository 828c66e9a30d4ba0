"""Rules tied to a layout and a cluster: boxes kept together, domains allowed, groups counted.

*Boxes.* A group that may not leave a domain of tier T is a box of whole axes; two such rules at
one tier keep the box of all their axes, for each cell is in a group of either. A box of an inner
tier lies in one domain of every outer one, so the boxes of the tiers are nested, and a domain
holds floor(sum over the inner domains of the inner boxes they hold / inner boxes of a box) of
them. All of it is arithmetic: what does not fit is proved not to.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InfeasibleError
from planner.layout import groups_along
from planner.place.rules import Form, Rule, is_host
from planner.words import counted, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from planner.fabric import Domain, Fabric
    from planner.layout import Layout

_CLASSES = 12  # different rows of which every set is tried; of more, sets of one and two


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBoxes:
    """Boxes that may not leave a domain of one tier.

    Args:
        tier: name of the tier.
        index: domain of each GPU in it, shape [GPUs].
        axes: axes of the box, whole.
        held: boxes that each of its domains can hold, shape [domains].
        rules: texts of the rules that ask for it.
    """

    tier: str
    index: NDArray[np.int64]
    axes: tuple[int, ...]
    held: NDArray[np.int64]
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Groups along *axes* touch *most* domains at most."""

    axes: tuple[int, ...]
    most: int
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRules:
    """What the rules leave of a grid of cells and the domains of the placed tier.

    Args:
        rules: as read.
        boxes: boxes kept together, innermost tier first; the last is the placed tier's, or an
            inner tier's that counts there as well.
        axes: axes of the box that may not leave a domain of the placed tier; empty for none.
        capacities: such boxes that each domain of the placed tier can hold.
        allowed: domains where each such box may sit, shape [boxes, domains]; None for any.
        counted: groups that may touch so many domains only.
    """

    rules: tuple[Rule, ...]
    boxes: tuple[KeptBoxes, ...]
    axes: tuple[int, ...]
    capacities: tuple[int, ...]
    allowed: NDArray[np.bool_] | None
    counted: tuple[Counted, ...]


def bound_rules(rules: Sequence[Rule], layout: Layout, fabric: Fabric, tier: str) -> BoundRules:
    """Return what *rules* (checked ones) mean for *layout* on *fabric*.

    Raises:
        InfeasibleError: no seating can keep them, by arithmetic; names the rule and by how much.
    """
    sizes = tuple(axis.size for axis in layout.axes)
    boxes = _kept_boxes(rules, layout, fabric)
    placed = fabric.domain_index(tier)
    axes = boxes[-1].axes if boxes else ()
    capacities = _held(boxes, sizes, placed, axes)
    cells = prod(sizes) // prod(sizes[i] for i in axes)
    if sum(capacities) < cells:
        raise InfeasibleError(_too_few(boxes[-1], sizes, fabric, tier, capacities))
    allowed = _allowed(rules, layout, fabric, tier, axes)
    if allowed is not None:
        _refuse_crowds(rules, allowed, capacities, axes, sizes, fabric.capacities(tier))
    limits = tuple(
        Counted(axes=layout.axes_of(rule.digit), most=rule.most, rule=rule.text)
        for rule in rules
        if rule.form is Form.AT_MOST
    )
    for entry in limits:
        _refuse_counted(entry, sizes, fabric.capacities(tier), tier)
    return BoundRules(
        rules=tuple(rules), boxes=boxes, axes=axes, capacities=capacities, allowed=allowed,
        counted=limits,
    )  # fmt: skip


def parts_of(fabric: Fabric, tier: str) -> tuple[Domain, ...]:
    """Return the domains called *tier*: a tier's, or the machines where no tier has the name."""
    return fabric.hosts if is_host(tier, fabric) else fabric.tier(tier).domains


def _index_of(fabric: Fabric, tier: str) -> NDArray[np.int64]:
    index = np.empty(len(fabric.gpus), np.int64)
    for number, domain in enumerate(parts_of(fabric, tier)):
        index[list(domain.gpus)] = number
    return index


def _kept_boxes(rules: Sequence[Rule], layout: Layout, fabric: Fabric) -> tuple[KeptBoxes, ...]:
    """Return the nested boxes of every tier that a rule names, innermost first."""
    within = [rule for rule in rules if rule.form is Form.WITHIN]
    named = sorted({rule.tier for rule in within}, key=lambda name: -len(parts_of(fabric, name)))
    sizes = tuple(axis.size for axis in layout.axes)
    boxes: list[KeptBoxes] = []
    axes: set[int] = set()
    asked: list[str] = []
    for name in named:
        mine = [rule for rule in within if rule.tier == name]
        axes |= {i for rule in mine for i in layout.axes_of(rule.digit) if sizes[i] > 1}
        asked += [rule.text for rule in mine]
        if not axes:
            continue
        index = _index_of(fabric, name)
        ordered = tuple(sorted(axes))
        boxes.append(
            KeptBoxes(
                tier=name, index=index, axes=ordered,
                held=np.array(_held(tuple(boxes), sizes, index, ordered)), rules=tuple(asked),
            )
        )  # fmt: skip
    return tuple(boxes)


def _held(
    boxes: Sequence[KeptBoxes], sizes: Sequence[int], index: NDArray[np.int64], axes: Sequence[int]
) -> tuple[int, ...]:
    """Return how many boxes along *axes* each domain of *index* can hold."""
    volume = prod(sizes[i] for i in axes)
    domains = int(index.max()) + 1
    if not boxes:
        return tuple((np.bincount(index, minlength=domains) // volume).tolist())
    inner = boxes[-1]
    owner = np.zeros(len(inner.held), np.int64)
    owner[inner.index] = index
    small = np.bincount(owner, weights=inner.held, minlength=domains).astype(np.int64)
    return tuple((small // (volume // prod(sizes[i] for i in inner.axes))).tolist())


def _too_few(
    box: KeptBoxes, sizes: Sequence[int], fabric: Fabric, tier: str, capacities: Sequence[int]
) -> str:
    """Return why the boxes do not fit, naming the rules and by how much."""
    volume = prod(sizes[i] for i in box.axes)
    needed = prod(sizes) // volume
    largest = max(len(domain.gpus) for domain in parts_of(fabric, box.tier))
    what = f"what may not leave a {box.tier} is {volume} ranks"
    if volume > largest:
        why = f"{what}, {volume - largest} more than the {largest} usable GPUs of the largest"
    else:
        fit = sum(capacities)
        why = (
            f"{what}; the {plural(tier)}' usable GPUs take {counted(fit, 'such group')} whole and "
            f"the layout has {needed}: {counted(needed - fit, 'group')}, "
            f"{counted((needed - fit) * volume, 'rank')}, too many"
        )
    return f"{_quoted(box.rules)} cannot be kept: {why}"


def _quoted(rules: Sequence[str]) -> str:
    said = " and ".join(repr(rule) for rule in rules)
    return f"rule{'s' if len(rules) > 1 else ''} {said}"


def restricted_cells(rule: Rule, layout: Layout) -> NDArray[np.bool_]:
    """Return which ranks an ``on`` rule is about, shape [ranks]."""
    sizes = [axis.size for axis in layout.axes]
    about = np.ones(layout.gpus, bool)
    if rule.group >= 0:
        groups = groups_along(sizes, layout.axes_of(rule.digit))
        about[:] = False
        about[groups[:, rule.group] if rule.stage else groups[rule.group]] = True
    return about


def allowed_domains(rule: Rule, fabric: Fabric, tier: str) -> NDArray[np.bool_]:
    """Return which domains of *tier* lie in those that an ``on`` rule names, shape [domains]."""
    outer = [t for t in fabric.tiers if any(d.name in rule.names for d in t.domains)]
    gpus = [g for t in outer for d in t.domains if d.name in rule.names for g in d.gpus]
    allowed = np.zeros(len(fabric.tier(tier).domains), bool)
    allowed[fabric.domain_index(tier)[gpus]] = True
    return allowed


def _allowed(
    rules: Sequence[Rule], layout: Layout, fabric: Fabric, tier: str, axes: tuple[int, ...]
) -> NDArray[np.bool_] | None:
    """Return where each box may sit: where all of its ranks may."""
    named = [rule for rule in rules if rule.form is Form.ON]
    if not named:
        return None
    sizes = [axis.size for axis in layout.axes]
    members = boxes_of(sizes, axes)
    allowed = np.ones((len(members), len(fabric.tier(tier).domains)), bool)
    for rule in named:
        about = restricted_cells(rule, layout)[members].any(axis=1)
        before = allowed.any(axis=1)
        allowed[about] &= allowed_domains(rule, fabric, tier)
        if (before & ~allowed.any(axis=1)).any():
            clash = [r.text for r in named[: named.index(rule) + 1]]
            kept = [r.text for r in rules if r.form is Form.WITHIN]
            raise InfeasibleError(
                f"{_quoted([*clash, *kept])} cannot be kept together: no domain is left for "
                f"{int((~allowed.any(axis=1)).sum()) * members.shape[1]} ranks"
            )
    return allowed


def boxes_of(sizes: Sequence[int], axes: Sequence[int]) -> NDArray[np.int64]:
    """Return the cells of every box of whole *axes*, boxes in the coarse grid's order."""
    return groups_along(sizes, axes) if axes else np.arange(prod(sizes))[:, None]


def _refuse_crowds(
    rules: Sequence[Rule], allowed: NDArray[np.bool_], capacities: Sequence[int],
    axes: Sequence[int], sizes: Sequence[int], gpus: Sequence[int],
) -> None:  # fmt: skip
    """Refuse boxes that have more members than seats among the domains allowed to them (Hall)."""
    volume = prod(sizes[i] for i in axes)
    named = [rule.text for rule in rules if rule.form is Form.ON]
    for classes in _class_sets(allowed):
        open_to = np.array(classes).any(axis=0)
        boxes = int((allowed <= open_to).all(axis=1).sum())
        seats = int(np.array(capacities)[open_to].sum())
        if boxes > seats:
            usable = int(np.array(gpus)[open_to].sum())
            raise InfeasibleError(
                f"{_quoted(named)} cannot be kept: {boxes * volume} ranks may sit on "
                f"{counted(int(open_to.sum()), 'domain')} only, whose {usable} usable GPUs take "
                f"{seats * volume} of them: {(boxes - seats) * volume} too many"
            )


def _class_sets(allowed: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], ...]]:
    """Yield every set of the different rows of *allowed*, the smallest sets first."""
    classes = list(np.unique(allowed, axis=0))
    for count in range(1, len(classes) + 1) if len(classes) <= _CLASSES else (1, 2):
        yield from combinations(classes, count)


def _refuse_counted(
    entry: Counted, sizes: Sequence[int], capacities: Sequence[int], tier: str
) -> None:
    """Refuse groups that are larger than the largest domains they may touch, taken together."""
    size = prod(sizes[i] for i in entry.axes)
    seats = sum(sorted(capacities, reverse=True)[: entry.most])
    if size > seats:
        raise InfeasibleError(
            f"rule {entry.rule!r} cannot be kept: a group has {size} ranks and the {entry.most} "
            f"largest {plural(tier)} {seats} usable GPUs: {size - seats} too few"
        )
