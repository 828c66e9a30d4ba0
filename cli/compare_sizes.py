"""How many GPUs a compared cluster gets: the same number, money or power, or enough for a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import gcd
from typing import TYPE_CHECKING, Any

from cli.compare_tried import Tried
from cli.planner_inputs import (
    DEFAULT_GPUS,
    Asked,
    Question,
    job_of,
    read_fabric,
    read_inputs,
    read_question,
)
from planner.errors import InfeasibleError, InputError, LayoutError, SpecError
from planner.procure.bill import Bill, bill_of_materials
from planner.procure.budget import Cost, format_money, money_of, parse_amount, power_of
from planner.procure.run import DAY_S, run_of
from planner.search.defaults import best_layout
from planner.search.sizing import (
    best_within,
    least_between,
    least_for,
    most_within,
    untried_below,
)
from planner.search.stages import Stage, Tell, untold
from planner.units import format_power, parse_power

if TYPE_CHECKING:
    from planner.fabric import Fabric
    from planner.procure.prices import PriceList

MOST_GPUS = 131_072
RUN_COST = "cost of the run"
_PART_GPUS = 64
_MOST_W = 1e12  # a third of what the world generates; more is a slip of the pen
_SEATED_TRIED = 8  # sizes between the usual ones of which layouts are seated: seconds each
_UNSPENT_SHARE = 0.1  # of a budget; more than this is spent on part of a supernode


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What the clusters have in common.

    Args:
        equal: ``gpus``, ``money``, ``power`` or ``run`` (each just large enough for it).
        budget: money or power as the user wrote it; None for what the first cluster costs.
        tokens, days: of the run [1], [days].
        prices: the user's list, if any.
        goodput_share: of the time that trains; the rest is lost to faults and restarts [1].
    """

    equal: str
    budget: str | None = None
    tokens: float | None = None
    days: float | None = None
    prices: PriceList | None = None
    goodput_share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """How large a cluster became.

    Args:
        gpus: of the job [1].
        spent: what it costs of the budget, None at equal GPUs.
        why_unspent: why the rest of the budget buys nothing more, empty without a budget.
        all_tried: whether every smaller size that might do the run was tried; None of no run.
    """

    gpus: int
    spent: float | None
    why_unspent: str = ""
    all_tried: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large each cluster became, and within what.

    Args:
        goal: as asked.
        each: one for each cluster, in the order asked.
        budget: in the list's currency or in watts; None where there is none.
        basis: of what the budget is, e.g. ``rent per hour``.
    """

    goal: Goal
    each: tuple[Sized, ...]
    budget: float | None = None
    basis: str = ""


class _Cluster:
    """A cluster that can be asked what it costs and trains at any number of supernodes."""

    def __init__(self, asked: Asked, goal: Goal, tell: Tell) -> None:
        fabric = read_fabric(replace(asked, gpus=None) if asked.cluster else asked)
        self.name = fabric.name
        self.supernode = max(fabric.capacities("supernode"))
        self.unit = self.supernode
        smallest = read_fabric(replace(asked, gpus=self.unit))
        fixed = len(smallest.gpus) != self.unit
        self.most = max(1, (len(smallest.gpus) if fixed else MOST_GPUS) // self.unit)
        self.why_no_larger = ""
        self.tried = Tried(whole_gpus=len(smallest.gpus) if fixed else 0)
        self._asked, self._goal, self._tell = asked, goal, tell
        self.rate_of: Callable[[int], float] = cache(self._rate)
        self.cost_of: Callable[[int], float] = cache(self._amount)

    def in_parts(self) -> _Cluster:
        """Return the cluster growing by parts of a supernode, the last one partly filled."""
        other = _Cluster(self._asked, self._goal, self._tell)
        other.unit = gcd(self.supernode, _PART_GPUS)
        other.most = MOST_GPUS // other.unit
        return other

    def cost(self, count: int) -> Cost:
        """Return what *count* units cost; fewer than a supernode, as much as one."""
        gpus = max(count * self.unit, self.supernode)
        return cost_of(self._built(gpus), gpus, self._goal)

    def why_no_money(self) -> str:
        """Return why nobody knows what a run costs, or nothing."""
        fabric = read_fabric(replace(self._asked, gpus=self.supernode))
        bill = bill_of_materials(fabric, self._goal.prices)
        return run_of(1.0, self.supernode, bill, self._goal.prices, 1.0).why_no_cost

    def _amount(self, count: int) -> float:
        """Return what *count* units cost, infinite where so many cannot be built."""
        try:
            return self.cost(count).amount
        except SpecError as error:
            if count == 1:
                raise
            self.why_no_larger = error.faults[0]
            return math.inf

    def _built(self, gpus: int) -> Fabric:
        fabric = read_fabric(replace(self._asked, gpus=gpus))
        if len(fabric.gpus) != gpus:
            raise InputError(
                f"cannot be built with {gpus:,} GPUs, only with its {len(fabric.gpus):,}: its file "
                "or what is dead in it fixes its graph; compare it at --equal gpus"
            )
        return fabric

    def _rate(self, count: int) -> float:
        """Return tokens a second with *count* units, 0 where no layout fits or can run."""
        gpus = count * self.unit
        if gpus < self.supernode:
            return 0.0
        self._tell(Stage(what=f"sizing {self.name}", now=f"trying {gpus:,} GPUs"))
        try:
            read_fabric(replace(self._asked, gpus=gpus))
        except SpecError as error:
            if count == 1:
                raise
            self.tried.unbuilt[gpus] = error.faults[0]
            return 0.0
        try:
            question = read_question(replace(self._asked, gpus=count * self.unit))
            choice = best_layout(job_of(question, self._asked.where))
        except (InfeasibleError, LayoutError) as error:
            self.tried.unfit[gpus] = error.faults[0]
            return 0.0
        rate_per_s = choice.layout.global_batch * choice.layout.seq / choice.fastest_s
        self.tried.rates[gpus] = rate_per_s
        return rate_per_s

    def seated_per_s(self, count: int) -> float:
        """Return tokens a second of the layout that is taken with *count* units, as seated."""
        self._tell(Stage(what=f"sizing {self.name}", now=f"seating {count * self.unit:,} GPUs"))
        try:
            choice = read_inputs(replace(self._asked, gpus=count * self.unit)).choice
        except (InfeasibleError, LayoutError):
            return 0.0
        step_s = choice.seated_s or choice.step_s
        return choice.layout.global_batch * choice.layout.seq / step_s


def cost_of(fabric: Fabric, gpus: int, goal: Goal) -> Cost:
    """Return what a cluster costs, in money or power as *goal* says."""
    bill: Bill = bill_of_materials(fabric, goal.prices)
    if goal.equal == "power":
        return power_of(bill, goal.prices)
    if goal.prices is None:
        raise InputError("--equal money needs --prices: no price is known here but yours")
    return money_of(gpus, bill, goal.prices)


def sizes_of(clusters: list[Asked], goal: Goal, tell: Tell = untold) -> Sizes:
    """Return how large each cluster becomes.

    Args:
        clusters: the first one with the number of GPUs that the budget is taken from.
        goal: what they have in common.
        tell: is told how far it is.

    Raises:
        InputError: a price or a power is missing, of any cluster; all of them are named.
        InfeasibleError: the budget buys no cluster that trains the model, or none is large enough.
    """
    if goal.equal == "gpus":
        return Sizes(goal=goal, each=tuple(Sized(gpus=_gpus(one), spent=None) for one in clusters))
    model = clusters[0].model or read_question(clusters[0]).model.name
    found = [_Cluster(replace(one, model=model), goal, tell) for one in clusters]
    if goal.equal == "run":
        most = None if goal.budget is None else _run_budget(found, goal)
        each = _each(found, lambda one: _for_run(one, goal))
        return Sizes(goal=goal, each=each, budget=most, basis="" if most is None else RUN_COST)
    costs = _costs(clusters, goal)
    free = [one.name for one, cost in zip(found, costs, strict=True) if not cost.amount]
    if free:
        raise InputError(
            f"--equal {goal.equal}: {', '.join(free)} costs nothing at these prices, so that no "
            "budget bounds it"
        )
    budget, basis = _budget(costs[0], goal), costs[0].basis
    unlike = {cost.basis for cost in costs} - {basis}
    if unlike:
        raise InputError(
            f"--prices: money is {basis} for {found[0].name} and {', '.join(sorted(unlike))} for "
            "another cluster; give all the same kind of price"
        )
    each = _each(found, lambda one: _within(one, budget, goal))
    return Sizes(goal=goal, each=each, budget=budget, basis=basis)


def _gpus(asked: Asked) -> int:
    return asked.gpus or DEFAULT_GPUS


def _each(found: list[_Cluster], size: Callable[[_Cluster], Sized]) -> tuple[Sized, ...]:
    """Return the size of each cluster, or every reason why there is none."""
    sizes: list[Sized] = []
    faults: list[str] = []
    impossible: list[str] = []
    for one in found:
        try:
            sizes.append(size(one))
        except InfeasibleError as error:
            impossible += [f"{one.name}: {fault}" for fault in error.faults]
        except InputError as error:
            faults += [f"{one.name}: {fault}" for fault in error.faults]
    if faults:
        raise InputError(*dict.fromkeys([*faults, *impossible]))
    if impossible:
        raise InfeasibleError(*impossible)
    return tuple(sizes)


def _costs(clusters: list[Asked], goal: Goal) -> list[Cost]:
    """Return what each cluster costs with the GPUs it was asked with, or every missing price."""
    costs: list[Cost] = []
    faults: list[str] = []
    for one in clusters:
        fabric = read_fabric(one)
        try:
            costs.append(cost_of(fabric, _gpus(one), goal))
        except InputError as error:
            faults += [f"{fabric.name}: {fault}" for fault in error.faults]
    if faults:
        raise InputError(*dict.fromkeys(faults))
    return costs


def _run_budget(found: list[_Cluster], goal: Goal) -> float:
    """Return what the run may cost.

    Raises:
        InputError: what it costs on some cluster cannot be told.
    """
    if goal.prices is None:
        raise InputError("--budget of a run needs --prices: no price is known here but yours")
    most = parse_amount(goal.budget or "")
    faults = {one.name: one.why_no_money() for one in found}
    missing = [f"{name}: no money for the run: {why}" for name, why in faults.items() if why]
    if missing:
        raise InputError(*missing)
    return most


def _budget(first: Cost, goal: Goal) -> float:
    """Return the budget: as given, or what the first cluster costs with its GPUs."""
    if goal.budget is None:
        return first.amount
    if goal.equal == "money":
        return parse_amount(goal.budget)
    watts = parse_power(goal.budget)
    if not 0 < watts <= _MOST_W:
        raise InputError(
            f"--budget: expected a power above 0, at most {format_power(_MOST_W)}, "
            f"got {goal.budget[:40]!r}"
        )
    return watts


def _shown(amount: float, goal: Goal) -> str:
    """Return what a cluster costs, in watts or in the list's currency."""
    if goal.equal == "power":
        return format_power(amount)
    return format_money(amount, goal.prices.currency if goal.prices else "")


def _within(one: _Cluster, budget: float, goal: Goal) -> Sized:
    limit = budget * (1.0 + 1e-9)
    most = most_within(one.cost_of, limit, one.most)
    if most and one.cost_of(most) < (1.0 - _UNSPENT_SHARE) * budget:
        one = _finer(one, limit)
        most = most_within(one.cost_of, limit, one.most)
    count = best_within(one.rate_of, most) if most else 0
    if not count:
        unit = "supernodes" if one.unit == one.supernode else "parts of a supernode"
        why = one.tried.why_none_fits() if most else f"one costs {_shown(one.cost_of(1), goal)}"
        raise InfeasibleError(f"the budget of {_shown(budget, goal)} buys {most} {unit}; {why}")
    part = "a whole supernode" if one.unit == one.supernode else "the next part of a supernode"
    if count < most:
        why = (
            f"of the sizes tried, up to {most * one.unit:,} GPUs, none trains more tokens a second"
        )
    elif most == one.most:
        why = f"no more than {MOST_GPUS:,} GPUs are looked at"
    elif math.isinf(one.cost_of(most + 1)):
        why = f"it cannot be built larger: {one.why_no_larger}"
    else:
        why = f"the {one.unit:,} GPUs of {part} cost more than that"
    return Sized(gpus=count * one.unit, spent=one.cost_of(count), why_unspent=why)


def _finer(one: _Cluster, limit: float) -> _Cluster:
    """Return *one* with a last supernode that may be partly filled, where it can be built so."""
    parts = one.in_parts()
    try:
        return parts if parts.unit < one.unit and parts.cost_of(1) <= limit else one
    except InputError:
        return one


def _for_run(one: _Cluster, goal: Goal) -> Sized:
    if goal.tokens is None or goal.days is None:
        raise InputError("--days needs --tokens, the tokens of the whole run")
    wanted = goal.tokens / (goal.days * DAY_S * goal.goodput_share)
    base = min(max(1, DEFAULT_GPUS // one.unit), one.most)
    rate = one.rate_of(base)
    start = round(base * wanted / rate) if rate > 0 else base
    count = least_for(one.rate_of, wanted, one.most, max(1, min(start, one.most)))
    if not count:
        one.tried.none_in_time(goal.tokens, goal.days, one.most * one.unit, goal.goodput_share)
    each_per_s = max(rate / gpus for gpus, rate in one.tried.rates.items()) * one.unit

    close: set[int] = set()
    seated = 0

    def does(fewer: int) -> bool:
        nonlocal seated
        if one.rate_of(fewer) < wanted:
            return False
        if seated >= _SEATED_TRIED:
            close.add(fewer)
            return False
        seated += 1
        return one.seated_per_s(fewer) >= wanted

    count = least_between(does, count, wanted, each_per_s)
    tried = {gpus // one.unit for gpus in (*one.tried.rates, *one.tried.unfit, *one.tried.unbuilt)}
    more = untried_below(count, tried - close, wanted, each_per_s)
    return Sized(gpus=count * one.unit, spent=None, all_tried=not more)


def sizes_document(sizes: Sizes, inputs: tuple[Question, ...]) -> Mapping[str, Any]:
    """Return what the clusters have in common, for the document."""
    return {
        "equal": sizes.goal.equal,
        "budget": sizes.budget,
        "basis": sizes.basis or None,
        "days": sizes.goal.days,
        "goodput_share": sizes.goal.goodput_share,
        "spent": [one.spent for one in sizes.each],
        "why_unspent": [one.why_unspent or None for one in sizes.each],
        "all_tried": [one.all_tried for one in sizes.each],
        "gpus": [one.gpus for one in inputs],
        "global_batch": [one.fixed["global_batch"] for one in inputs],
    }
