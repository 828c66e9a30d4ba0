"""Layouts with a seat for every rank, as ``planner.place`` seats them, and timed as they sit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.layout import Layout
from planner.place import place
from planner.place.check import CheckedEntry, judged
from planner.search.defaults import AS_GOOD_SHARE
from planner.search.search import Swept, unlike
from planner.search.seated_steps import SeatedSteps
from planner.search.sets import degrees_of
from planner.search.space import DEGREES
from planner.search.ties import told_apart
from planner.steptime.memory import Memory
from planner.steptime.step import Step, layout_memory
from planner.traffic import Family, step_families

if TYPE_CHECKING:
    from planner.fabric import Fabric
    from planner.model import ModelSpec
    from planner.place.answer import Placement
    from planner.search.chosen import Chooser
    from planner.search.seated_rows import SeatedRow

AS_LONG_SHARE = 5e-4
"""Steps of one layout in two seatings so close are told as one [1]: no page shows the difference.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalist:
    """A layout with a seat for every rank.

    Args:
        layout: its degrees and how it is run.
        step: in the faster of two seatings: the least cut's, and the rank order's.
        memory: of the fullest stage.
        placement: the seating that cuts least, with its bound and proof.
        seating: ``least-cut`` or ``rank-order``, the one that *step* is of.
        crossed: bytes over the supernode's cut in that seating, by parallel degree [bytes].
        estimated_s: its step in the better closed-form seating [s].
        twins: layouts of other degrees with the same step and memory to 1e-9 [1].
    """

    layout: Layout
    step: Step
    memory: Memory
    placement: Placement
    seating: str
    crossed: Mapping[str, float]
    estimated_s: float
    twins: int = 0

    @property
    def step_s(self) -> float:
        """The step as seated [s]."""
        return float(self.step.total_s)

    @property
    def token_s(self) -> float:
        """What a token takes: the step over its tokens [s]."""
        return 1.0 / float(self.step.tokens_per_s)

    @property
    def seated_bytes(self) -> float:
        """What crosses in the seating that the step is of [bytes]."""
        return sum(self.crossed.values())


def finalists(
    chooser: Chooser,
    swept: Swept,
    first: Layout,
    *,
    most: int,
    seed: int = 0,
    time_limit_s: float = 1.0,
) -> tuple[Finalist, ...]:
    """Return *first*, and then the fastest layouts as seated, *most* in all.

    Which are the fastest is sure in quick seats: see ``SeatedRows.best_of_sets``. Sets of degrees
    that the model cannot tell apart before seating, by step or memory, are shown as one; the
    degrees of *first* again only where they are run faster by more than a default may be slower.

    Args:
        chooser: of the cluster.
        swept: its evaluated space.
        first: a layout that leads the list, however fast the others are.
        most: layouts wanted, of different degrees [1].
        seed: of everything random in a seating.
        time_limit_s: seconds a solver may take for one seating [s].
    """
    entries = unlike(swept.evaluated, swept.best)
    twins = {degrees_of(swept.space, int(swept.evaluated.rows[one])): n for one, n in entries}
    wanted = [(first, 0)]
    for one in _fastest_of_sets(chooser, swept, first, entries, most - 1):
        layout = swept.space.layout(one.row, swept.fixed)
        wanted.append((layout, twins[degrees_of(swept.space, one.row)]))
    seated = [
        seat(chooser.steps, chooser.job.model, layout, seed=seed, time_limit_s=time_limit_s,
             estimated_s=_estimated_s(swept, layout), twins=alike)
        for layout, alike in wanted
    ]  # fmt: skip
    return (seated[0], *sorted(seated[1:], key=_by_step))


def _fastest_of_sets(
    chooser: Chooser, swept: Swept, first: Layout, entries: Sequence[tuple[int, int]], most: int
) -> list[SeatedRow]:
    """Return the fastest row of each of the *most* fastest sets of degrees, in quick seats."""
    if not most:
        return []
    space, steps, model = swept.space, chooser.steps, chooser.job.model
    own = tuple(getattr(first, name) for name in DEGREES)
    faster_s = steps.quick_s(model, first) / (1.0 + AS_GOOD_SHARE)

    def no_other(found: SeatedRow) -> bool:
        return degrees_of(space, found.row) == own and found.step_s >= faster_s

    good = [steps.quick_s(model, swept.layout(entry)) for entry, _ in entries[: most + 1]]
    enough_s = max(good) if len(good) > most else np.inf
    sets = space.sets(swept.evaluated.rows)
    unlike_sets = np.isin(sets, sets[[entry for entry, _ in entries]])
    rows = np.intersect1d(
        swept.evaluated.rows[unlike_sets], chooser.whole().near(1.0, enough_s), assume_unique=True
    )
    return chooser.rows_of(rows, enough_s).best_of_sets(most, no_other)


def _estimated_s(swept: Swept, layout: Layout) -> float:
    """Return the step of *layout* before seating, 0 where the space has no such row [s]."""
    entry = swept.entry(layout)
    return 0.0 if entry is None else float(swept.evaluated.total_s[entry])


def _by_step(one: Finalist) -> tuple[float, float]:
    """Steps 1e-9 apart are equal; then less over the cut is better."""
    return round(log(one.step_s) * 1e9), one.seated_bytes


def seat(
    steps: SeatedSteps,
    model: ModelSpec,
    layout: Layout,
    *,
    seed: int = 0,
    time_limit_s: float = 1.0,
    estimated_s: float = 0.0,
    twins: int = 0,
) -> Finalist:
    """Return *layout* seated on a cluster, and timed as it sits.

    The least cut and the rank order are both timed, links shared by what is active together: fewer
    bytes in all are not always a shorter step, when they are bytes that nothing hides. Where the
    two take as long, to ``AS_LONG_SHARE``, it sits in the least cut, as ``planner place`` seats it.

    Raises:
        KeyboardInterrupt: the user ended the search for seats, and so what they are looked for.
    """
    fabric, families = steps.fabric, step_families(model, layout)
    placement = place(layout, families, fabric, seed=seed, time_limit_s=time_limit_s)
    if placement.interrupted:
        raise KeyboardInterrupt
    seatings = {"least-cut": placement.rank_to_gpu}
    for one in placement.baselines:
        if one.name == "megatron-order" and one.rank_to_gpu != placement.rank_to_gpu:
            seatings["rank-order"] = one.rank_to_gpu
    found = {name: steps.on(model, layout, seated) for name, seated in seatings.items()}
    least_s = min(float(step.total_s) for step in found.values())
    faster_one = next(
        name for name, step in found.items()
        if float(step.total_s) <= least_s * (1.0 + AS_LONG_SHARE)
    )  # fmt: skip
    return Finalist(
        layout=layout,
        step=found[faster_one],
        memory=layout_memory(model, layout, fabric.accelerator),
        placement=placement,
        seating=faster_one,
        crossed=_crossed(layout, families, fabric, seatings[faster_one]),
        estimated_s=estimated_s or float(found[faster_one].total_s),
        twins=twins,
    )


def _crossed(
    layout: Layout, families: Sequence[Family], fabric: Fabric, seats: Sequence[int]
) -> dict[str, float]:
    """Return the bytes over the supernode's cut by parallel degree, by the independent judge."""
    entries = [
        CheckedEntry(collective=one.collective, payload_bytes=one.payload_bytes,
                     times_per_step=one.times_per_step, members=one.members(layout),
                     experts=one.experts, top_k=one.top_k)
        for one in families
    ]  # fmt: skip
    cut = judged(fabric.domain_index("supernode"), seats, entries)
    crossed = dict.fromkeys((one.digit for one in families), 0.0)
    for family, part in zip(families, cut.by_entry, strict=True):
        crossed[family.digit] += part
    return crossed


def is_tie(first: Finalist, other: Finalist) -> bool:
    """Return whether the model cannot tell which of the two trains faster, at 90 %."""
    return not told_apart(first.token_s, other.token_s, first.step.spread, other.step.spread)


def differences(first: Layout, other: Layout) -> dict[str, tuple[Any, Any]]:
    """Return the fields that differ, each with both values.

    >>> differences(Layout(tp=2), Layout(tp=4))
    {'tp': (2, 4)}
    """
    pairs = {f.name: (getattr(first, f.name), getattr(other, f.name)) for f in fields(Layout)}
    if first.dp_shard or other.dp_shard:  # all of dp has a number, too
        pairs["dp_shard"] = (first.dp_shard or first.dp, other.dp_shard or other.dp)
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
