"""The best layouts of a model on a cluster: the whole space in closed form, finalists seated.

Every layout is timed in the better of two closed-form seatings; the best of each set of degrees
go on, and the first few are seated by ``planner.place`` and timed again as they sit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import hypot, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.collectives.links import links_of
from planner.errors import InfeasibleError, LayoutError
from planner.layout import Layout
from planner.place import place
from planner.place.check import CheckedEntry, judged
from planner.search.defaults import AS_GOOD_SHARE
from planner.search.evaluate import Evaluated, Machine, evaluate_on
from planner.search.given import out_of_memory
from planner.search.placed import placed_spreads, tier_indices
from planner.search.seats import RankOrderSeats
from planner.search.space import Choices, Space, first_of_each, layout_space, wide_choices
from planner.steptime.columns import columns_of
from planner.steptime.memory import Memory, step_memory
from planner.steptime.shared_links import Seating, seated_step_time, seated_wiring
from planner.steptime.step import Step, layout_memory
from planner.steptime.uncertainty import faster
from planner.traffic import Family, step_families

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Fabric
    from planner.model import ModelSpec
    from planner.place.answer import Placement
    from planner.search.rules import Rule
    from planner.steptime.rates import Efficiency

SEATED = 4
"""Layouts that ``fastest_seated`` seats at most."""
_KEPT_SHARE = 0.002
TOO_LARGE = "does not fit in memory"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A space and what became of it.

    Args:
        space, evaluated: the layouts that can run, and those of them that fit.
        fixed: the fields of ``Layout`` that all share.
        machine: where they run.
        best: entries of ``evaluated``, the best of each set of degrees, fastest first.
        rules: conditions that every layout of the space meets.
    """

    space: Space
    evaluated: Evaluated
    fixed: Mapping[str, Any]
    machine: Machine
    best: NDArray[np.int64]
    rules: tuple[Rule, ...] = ()

    @property
    def rejected(self) -> dict[str, int]:
        """Reason to how many layouts fell to it, each counted once."""
        counts = dict(self.space.rejected)
        return counts | ({TOO_LARGE: self.evaluated.too_large} if self.evaluated.too_large else {})

    def layout(self, entry: int) -> Layout:
        """Return the layout of one entry of ``evaluated``."""
        return self.space.layout(int(self.evaluated.rows[entry]), self.fixed)

    def layout_rows(self, most: int) -> NDArray[np.int64]:
        """Return the rows of the best *most* sets of degrees."""
        return self.evaluated.rows[self.best[:most]]

    def entry(self, layout: Layout) -> int | None:
        """Return the entry of ``evaluated`` that is *layout*, or None where it has none."""
        rows = self.space.rows_like(layout)
        entries = np.flatnonzero(np.isin(self.evaluated.rows, rows))
        same = [int(entry) for entry in entries if self.layout(int(entry)) == layout]
        return same[0] if same else None


def machine_of(fabric: Fabric, gpus: int, efficiency: Efficiency | None) -> Machine:
    """Return what a step of a job on the first *gpus* GPUs of *fabric* is predicted from."""
    return Machine(
        accelerator=fabric.accelerator,
        links=links_of(fabric),
        seats=RankOrderSeats([home[:gpus] for home in tier_indices(fabric)]),
        efficiency=efficiency,
    )


def sweep(
    model: ModelSpec,
    machine: Machine,
    gpus: int,
    fixed: Mapping[str, Any],
    choices: Choices | None = None,
    rules: Sequence[Rule] = (),
) -> Swept:
    """Return every layout of *model* on *gpus* GPUs, evaluated; see ``sweep_on``."""
    return sweep_on(model, (machine,), gpus, fixed, choices, rules)[0]


def sweep_on(
    model: ModelSpec,
    machines: Sequence[Machine],
    gpus: int,
    fixed: Mapping[str, Any],
    choices: Choices | None = None,
    rules: Sequence[Rule] = (),
) -> list[Swept]:
    """Return every layout of *model* on *gpus* GPUs, evaluated on each machine.

    Args:
        model: the transformer's shape.
        machines: where it runs; they differ in their network alone.
        gpus: GPUs every layout occupies [1].
        fixed: fields of ``Layout`` that are given; ``seq`` and ``global_batch`` must be.
        choices: what is tried where nothing is fixed; left out, ``wide_choices``.
        rules: conditions that every layout must meet.

    Raises:
        LayoutError: no combination can run; says how many fell to each reason.
        InfeasibleError: none fits in memory; says by how much the nearest misses.
    """
    space = space_on(model, machines, gpus, fixed, choices, rules)
    found = evaluate_on(model, space, fixed, machines)
    if not len(found[0].rows):
        nearest = space.layout(found[0].nearest, fixed)
        memory = step_memory(model, columns_of(nearest), machines[0].accelerator.memory_bytes)
        raise InfeasibleError(
            out_of_memory(model, nearest, memory, space.size).partition("; take more GPUs")[0]
            + "; take more GPUs, a smaller batch or a shorter sequence"
        )
    sets = space.sets(found[0].rows)
    return [
        Swept(space=space, evaluated=one, fixed=fixed, machine=machine,
              best=best_of_each(one, sets), rules=tuple(rules))
        for machine, one in zip(machines, found, strict=True)
    ]  # fmt: skip


def space_on(
    model: ModelSpec,
    machines: Sequence[Machine],
    gpus: int,
    fixed: Mapping[str, Any],
    choices: Choices | None = None,
    rules: Sequence[Rule] = (),
) -> Space:
    """Return the layouts that can run, whether they fit or not; see ``sweep_on``.

    Raises:
        LayoutError: there is none; says how many fell to each reason.
    """
    sizes = sorted({size for one in machines for size in one.seats.supernode_gpus})
    space = layout_space(
        model, gpus, fixed, choices or wide_choices(model, rules), rules=rules, domain_gpus=sizes
    )
    if not space.size:
        counted = "; ".join(f"{count:,}: {reason}" for reason, count in space.rejected.items())
        raise LayoutError(
            f"no layout for {gpus} GPUs is left: of {space.considered:,} considered, {counted}"
        )
    return space


def best_of_each(found: Evaluated, sets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the fastest entry of each set of parallel degrees, fastest first.

    Steps 1e-9 apart are equal; then the one that rests less on hidden communication, then the
    one that needs less memory, then the one considered first.

    Args:
        found: the layouts, in the order in which they were considered.
        sets: the set of degrees that each has, as of ``Space.sets``.
    """
    return first_of_each(
        sets, np.round(np.log(found.total_s) * 1e9), np.round(np.log(found.serial_s) * 1e9),
        found.worst_bytes,
    )  # fmt: skip


def finalists(
    model: ModelSpec,
    fabric: Fabric,
    swept: Swept,
    *,
    most: int,
    first: Layout | None = None,
    seed: int = 0,
    time_limit_s: float = 1.0,
) -> tuple[Finalist, ...]:
    """Return the best *most* layouts as seated, fastest first, but *first* before all others.

    Layouts that the model cannot tell apart at all, by step or memory, are shown as one.

    Args:
        model: the transformer's shape.
        fabric: the cluster.
        swept: its evaluated space.
        most: layouts wanted, of different degrees [1].
        first: one of the space that leads the list, however fast the others are.
        seed: of everything random in a seating.
        time_limit_s: seconds a solver may take for one seating [s].
    """
    entries = unlike(swept.evaluated, swept.best)
    leader = None if first is None else swept.entry(first)
    if leader is not None:
        entries = _led_by(leader, entries, swept)
    seated = [
        seat(model, fabric, swept.layout(int(entry)), swept.machine.efficiency, seed=seed,
             time_limit_s=time_limit_s, estimated_s=float(swept.evaluated.total_s[entry]),
             twins=twins)
        for entry, twins in entries[:most]
    ]  # fmt: skip
    fixed = 0 if leader is None else 1
    return (*seated[:fixed], *sorted(seated[fixed:], key=_by_step))


def fastest_seated(
    model: ModelSpec, fabric: Fabric, swept: Swept, *, seed: int = 0, time_limit_s: float = 1.0
) -> Finalist:
    """Return the fastest layout as seated.

    The first whose seats keep what its closed form promised is taken; where one falls short of
    that, the next is seated too, up to ``SEATED`` of them, and the fastest as seated is taken.
    """
    best: Finalist | None = None
    for entry, twins in unlike(swept.evaluated, swept.best)[:SEATED]:
        promised = float(swept.evaluated.total_s[entry])
        if best is not None and best.step_s <= promised * (1.0 + _KEPT_SHARE):
            break
        one = seat(model, fabric, swept.layout(int(entry)), swept.machine.efficiency, seed=seed,
                   time_limit_s=time_limit_s, estimated_s=promised, twins=twins)  # fmt: skip
        best = one if best is None else min(best, one, key=_by_step)
    if best is None:
        raise ValueError("no layout was evaluated")
    return best


def _led_by(leader: int, entries: list[tuple[int, int]], swept: Swept) -> list[tuple[int, int]]:
    """Return *entries* with *leader* before them, and others of its degrees only if faster.

    What is within the share by which a default may be slower is taken for the same.
    """
    rows, total_s = swept.evaluated.rows, swept.evaluated.total_s
    own = swept.space.degrees(rows[[leader]])[0]
    least_s = total_s[leader] / (1.0 + AS_GOOD_SHARE)
    others = [
        (entry, twins) for entry, twins in entries
        if (swept.space.degrees(rows[[entry]])[0] != own).any() or total_s[entry] < least_s
    ]  # fmt: skip
    return [(leader, 0), *others]


def unlike(found: Evaluated, best: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return entries of different step or memory, the first of each, and how many are like it."""
    figures = np.stack([found.total_s[best], np.maximum(found.worst_bytes[best], 1.0)], axis=1)
    _, first, counts = np.unique(
        np.round(np.log(figures) * 1e9), axis=0, return_index=True, return_counts=True
    )
    order = np.argsort(first)
    return [(int(best[first[i]]), int(counts[i]) - 1) for i in order]


def _by_step(one: Finalist) -> tuple[float, float]:
    """Steps 1e-9 apart are equal; then less over the cut is better."""
    return round(log(one.step_s) * 1e9), one.seated_bytes


def seat(
    model: ModelSpec,
    fabric: Fabric,
    layout: Layout,
    efficiency: Efficiency | None,
    *,
    seed: int = 0,
    time_limit_s: float = 1.0,
    estimated_s: float = 0.0,
    twins: int = 0,
) -> Finalist:
    """Return *layout* seated on *fabric*, and timed as it sits.

    The least cut and the rank order are both timed, links shared by what is active together: fewer
    bytes in all are not always a shorter step, when they are bytes that nothing hides.
    """
    families = step_families(model, layout)
    placement = place(layout, families, fabric, seed=seed, time_limit_s=time_limit_s)
    seatings = {"least-cut": placement.rank_to_gpu}
    for one in placement.baselines:
        if one.name == "megatron-order" and one.rank_to_gpu != placement.rank_to_gpu:
            seatings["rank-order"] = one.rank_to_gpu
    wiring = seated_wiring(fabric, layout, efficiency)
    steps = {
        name: seated_step_time(
            model,
            layout,
            Seating(
                fabric=fabric, families=families, rank_to_gpu=seats,
                spreads=placed_spreads(layout, seats, fabric), wiring=wiring,
            ),
            efficiency,
        )
        for name, seats in seatings.items()
    }  # fmt: skip
    faster_one = min(steps, key=lambda name: float(steps[name].total_s))
    return Finalist(
        layout=layout,
        step=steps[faster_one],
        memory=layout_memory(model, layout, fabric.accelerator),
        placement=placement,
        seating=faster_one,
        crossed=_crossed(layout, families, fabric, seatings[faster_one]),
        estimated_s=estimated_s or float(steps[faster_one].total_s),
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
    if abs(first.token_s / other.token_s - 1.0) < 1e-12:
        return True
    spread = hypot(first.step.spread, other.step.spread) / sqrt(2.0)  # of fits that may differ
    return not faster(first.token_s, other.token_s, spread).told_apart


def differences(first: Layout, other: Layout) -> dict[str, tuple[Any, Any]]:
    """Return the fields that differ, each with both values.

    >>> differences(Layout(tp=2), Layout(tp=4))
    {'tp': (2, 4)}
    """
    pairs = {f.name: (getattr(first, f.name), getattr(other, f.name)) for f in fields(Layout)}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
