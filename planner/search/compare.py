"""Layouts by clusters: each cluster with its own best layout, and what crosses its cut."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InfeasibleError, LayoutError
from planner.search.chosen import Chooser, Fastest
from planner.search.defaults import Job
from planner.search.fastest import fastest_on
from planner.search.finalist import Finalist, seat
from planner.search.pool import Pool
from planner.search.search import Swept, machine_of
from planner.search.seated_rows import Seating
from planner.search.seated_steps import SeatedSteps
from planner.search.stages import Stage, Tell, untold
from planner.search.together import grouped
from planner.units import format_time
from planner.words import counted

if TYPE_CHECKING:
    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.model import ModelSpec
    from planner.search.rules import Rule
    from planner.steptime.rates import Efficiency

_GOOD_ROWS = 32
"""Of each cluster, the layouts that a search under any change starts from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A cluster that is compared.

    Args:
        name: what it is called in the tables.
        fabric: the cluster.
        model: what is trained.
        gpus: GPUs of the job [1].
        fixed: the fields of ``Layout`` that every layout on it shares.
        efficiency: what was fitted on its accelerator, where anything was.
        bigger: the cluster with supernodes of twice the size, where it can be built.
        rules: conditions that every layout on it must meet.
    """

    name: str
    fabric: Fabric
    model: ModelSpec
    gpus: int
    fixed: Mapping[str, Any]
    efficiency: Efficiency | None
    bigger: Fabric | None = None
    rules: tuple[Rule, ...] = ()

    @property
    def job(self) -> Job:
        """What a layout on it is wanted for."""
        return Job(
            model=self.model, fabric=self.fabric, gpus=self.gpus, fixed=self.fixed,
            efficiency=self.efficiency, rules=self.rules,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One layout seated on one cluster.

    Args:
        candidate: the cluster.
        label: whose layout it is: ``own best``, or the name it was given by.
        finalist: seated and timed.
    """

    candidate: Candidate
    label: str
    finalist: Finalist


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A comparison.

    Args:
        ranked: every cluster with the layout that is taken on it, the one whose fastest layout
            takes least first, from which flips start, too; or each given layout, fastest first.
        moved: the first one's layout on each other cluster, to see what falls on its cut.
        pools: each cluster with a few layouts that are good on some of them, in the order asked;
            empty where layouts were given.
        seats: cluster to the steps of layouts that were seated on it.
        fastest: cluster to the fastest layout of all as seated, which what is taken ties with;
            empty where layouts were given.
    """

    ranked: tuple[Entry, ...]
    moved: tuple[Entry, ...]
    pools: tuple[Pool, ...]
    seats: Mapping[str, SeatedSteps]
    fastest: Mapping[str, Fastest]


def compare(
    candidates: Sequence[Candidate], *, seed: int = 0, time_limit_s: float = 1.0,
    tell: Tell = untold,
) -> Compared:  # fmt: skip
    """Return each cluster with the layout that is taken on it, ranked.

    Args:
        candidates: the clusters.
        seed: of everything random in a seating.
        time_limit_s: seconds a solver may take for one seating [s].
        tell: is told how far it is.
    """
    searched = _searched(candidates, tell)
    seats = _seats(candidates)
    own: list[Entry] = []
    fastest: dict[str, Fastest] = {}
    for done, (one, found) in enumerate(zip(candidates, searched, strict=True)):
        steps, at = seats[one.name], _Choosing(one.name, done, len(candidates), tell)
        chooser = Chooser(one.job, steps, whole=found.pool.whole, told=at.seated)
        choice = chooser.taken()
        fastest[one.name] = chooser.fastest(choice)
        at.tell("proving the least cut")
        finalist = seat(
            steps, one.model, choice.layout, seed=seed, time_limit_s=time_limit_s,
            estimated_s=choice.step_s,
        )  # fmt: skip
        own.append(Entry(candidate=one, label="own best", finalist=finalist))
    ranked = _ranked(own, {name: one.token_s for name, one in fastest.items()})
    return Compared(
        ranked=ranked,
        moved=_moved(ranked[0], own, seats, seed, time_limit_s),
        pools=tuple(
            found.seated(fastest[entry.candidate.name].step_s, entry.finalist.step.spread)
            for found, entry in zip(searched, own, strict=True)
        ),
        seats=seats,
        fastest=fastest,
    )


@dataclass(frozen=True, slots=True)
class _Choosing:
    """Tells how far the choice of layouts is, on the one of all clusters that has its turn."""

    name: str
    done: int
    of: int
    on: Tell

    def tell(self, now: str) -> None:
        self.on(Stage(what="choosing a layout on each cluster", done=self.done, of=self.of,
                      now=f"{self.name}: {now}"))  # fmt: skip

    def seated(self, seating: Seating) -> None:
        self.tell(
            f"{counted(seating.seated, 'layout')} seated, the shortest "
            f"{format_time(seating.shortest_s)}"
        )


def _seats(candidates: Sequence[Candidate]) -> dict[str, SeatedSteps]:
    return {one.name: SeatedSteps(one.fabric, one.efficiency) for one in candidates}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Searched:
    """A cluster's space: the fastest of it, and what else is good on clusters that share it."""

    swept: Swept
    pool: Pool

    def seated(self, step_s: float, spread: float) -> Pool:
        """Return the pool with how much longer its best takes in its seats, and how sure it is."""
        ratio = step_s / float(self.swept.evaluated.total_s.min())
        return replace(self.pool, seated_ratio=ratio, spread=spread)


def _searched(candidates: Sequence[Candidate], tell: Tell) -> list[_Searched]:
    """Return each cluster's space, once for all that differ in their network alone.

    Raises:
        LayoutError: no combination can run, on any of them.
        InfeasibleError: none fits; every cluster that holds none is named.
    """
    found: dict[int, _Searched] = {}
    faults: list[str] = []
    impossible: list[str] = []
    for some in grouped(candidates, key=_but_for_the_network):
        alike = [candidates[position] for position in some]
        first, names = alike[0], ", ".join(one.name for one in alike)
        tell(Stage(what="searching layouts", done=len(found), of=len(candidates), now=names))
        machines = [machine_of(one.fabric, one.gpus, one.efficiency) for one in alike]
        try:
            whole, swept = fastest_on(
                first.model, machines, first.gpus, first.fixed, rules=first.rules
            )
        except InfeasibleError as error:
            impossible += [f"{names}: {fault}" for fault in error.faults]
        except LayoutError as error:
            faults += error.faults
        else:
            rows = np.unique(np.concatenate([one.layout_rows(_GOOD_ROWS) for one in swept]))
            pools = [
                Pool.of(one.name, one.fabric, machine, whole, rows, one.rules)
                for one, machine in zip(alike, machines, strict=True)
            ]
            for at, one, pool in zip(some, swept, pools, strict=True):
                found[at] = _Searched(swept=one, pool=pool)
    if faults:
        raise LayoutError(*dict.fromkeys(faults))
    if impossible:
        raise InfeasibleError(*impossible)
    return [found[position] for position in range(len(candidates))]


def _but_for_the_network(one: Candidate) -> Hashable:
    """Return all that decides on a space and its steps but for the network, as text."""
    return repr((one.model, one.gpus, sorted(one.fixed.items()), one.fabric.accelerator,
                 one.efficiency, [rule.text for rule in one.rules]))  # fmt: skip


def compare_layouts(
    candidates: Sequence[Candidate],
    layouts: Mapping[str, Layout],
    *,
    seed: int = 0,
    time_limit_s: float = 1.0,
) -> Compared:
    """Return every one of *layouts* on every cluster, ranked."""
    seats = _seats(candidates)
    entries = [
        Entry(candidate=one, label=name, finalist=seat(
            seats[one.name], one.model, layout, seed=seed, time_limit_s=time_limit_s))
        for one in candidates
        for name, layout in layouts.items()
    ]  # fmt: skip
    return Compared(ranked=_ranked(entries, {}), moved=(), pools=(), seats=seats, fastest={})


def _ranked(entries: Sequence[Entry], fastest_s: Mapping[str, float]) -> tuple[Entry, ...]:
    """Return those that fit first, by a token of the cluster's fastest layout, then of their own.

    Which layout is taken is also a matter of what is usual; which cluster is faster is not.
    """

    def slowness(one: Entry) -> tuple[bool, float, float]:
        own_s = one.finalist.token_s
        fits = bool(one.finalist.memory.fits)
        return not fits, fastest_s.get(one.candidate.name, own_s), own_s

    return tuple(sorted(entries, key=slowness))


def _moved(
    first: Entry, own: Sequence[Entry], seats: Mapping[str, SeatedSteps], seed: int,
    time_limit_s: float,
) -> tuple[Entry, ...]:  # fmt: skip
    """Return the first one's layout on every other cluster of the same model and GPUs."""
    layout = first.finalist.layout
    return tuple(
        Entry(
            candidate=one.candidate, label=f"best of {first.candidate.name}",
            finalist=seat(seats[one.candidate.name], one.candidate.model, layout, seed=seed,
                          time_limit_s=time_limit_s),
        )
        for one in own
        if one is not first and one.finalist.layout != layout
        and one.candidate.gpus == layout.gpus
    )  # fmt: skip
