"""Every layout of a model on a cluster, timed in the better of two closed-form seatings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.collectives.links import links_of
from planner.errors import InfeasibleError, LayoutError
from planner.search.evaluate import Evaluated, Machine, evaluate_on
from planner.search.given import out_of_memory
from planner.search.placed import tier_indices
from planner.search.seats import RankOrderSeats
from planner.search.space import Choices, Space, first_of_each, layout_space, wide_choices
from planner.steptime.columns import columns_of
from planner.steptime.memory import step_memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.model import ModelSpec
    from planner.search.rules import Rule
    from planner.steptime.rates import Efficiency

TOO_LARGE = "does not fit in memory"


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


def unlike(found: Evaluated, best: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return entries of different step or memory, the first of each, and how many are like it."""
    figures = np.stack([found.total_s[best], np.maximum(found.worst_bytes[best], 1.0)], axis=1)
    _, first, counts = np.unique(
        np.round(np.log(figures) * 1e9), axis=0, return_index=True, return_counts=True
    )
    order = np.argsort(first)
    return [(int(best[first[i]]), int(counts[i]) - 1) for i in order]
