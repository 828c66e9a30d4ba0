"""What changed between two plans: the layout, the seats, the bytes, the seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.procure.bill import SERVER, BillLine, priced_bill
from planner.procure.run import run_of
from planner.search.plan_groups import GroupChange, group_changes

if TYPE_CHECKING:
    from planner.procure.prices import PriceList


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number in both plans; None where a plan does not have it.

    Args:
        name: what it is, its unit at the end.
        before, after: its values.
    """

    name: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float | None:
        """after - before."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDiff:
    """Two plans side by side.

    Args:
        inputs: name of an input that differs to both values.
        layout: the same of the layout's fields.
        ranks: ranks in both [1].
        new_ranks, gone_ranks: ranks that only the second, or only the first plan has [1].
        moved_ranks: of those in both, those whose GPU has another number [1].
        regrouped_ranks: of them, those that sit with other ranks than before, whatever the
            domains are called [1].
        groups: the parallel groups that sit otherwise.
        tier: of the domains that they touch, ``domain`` where the plans are not of one tier.
        families: bytes of each family over the cut [bytes].
        figures: cut, bound, step and its parts, memory.
        money: what the parts cost and draw, and a million tokens; empty without prices.
        why_no_money: what keeps a plan from having a cost, empty where nothing does.
    """

    inputs: Mapping[str, tuple[Any, Any]]
    layout: Mapping[str, tuple[Any, Any]]
    ranks: int
    new_ranks: int
    gone_ranks: int
    moved_ranks: int
    regrouped_ranks: int
    groups: tuple[GroupChange, ...]
    tier: str
    families: tuple[Figure, ...]
    figures: tuple[Figure, ...]
    money: tuple[Figure, ...] = ()
    why_no_money: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Nothing differs."""
        return not (
            self.inputs
            or self.layout
            or self.moved_ranks
            or self.groups
            or any(one.change != 0.0 for one in (*self.families, *self.figures, *self.money))
        )


_INPUTS = (
    "cluster", "supernode", "gpus", "model", "order", "tier", "objective", "tiers", "reductions",
    "rules", "seed",
)  # fmt: skip
EFFICIENCY = "efficiency"
"""The input that changes seconds and nothing of a placement."""
_SHOWN_HASH = 12
_LARGEST = 1e300  # of a figure, whole or not; more is no figure, and its square no float
_NEEDED = {
    "inputs": ("layout", "cluster", "model"),
    "placement": ("rank_to_gpu", "domains"),
    "cut": ("objective_bytes", "lower_bound_bytes", "by_family"),
    "step": ("total_s",),
    "memory": ("worst_stage_bytes",),
}


def plan_faults(plan: Any, name: str) -> list[str]:
    """Return what keeps *plan* from being the document of ``planner place``."""
    if not isinstance(plan, Mapping):
        return [f"{name}: expected the document of planner place --out, got {type(plan).__name__}"]
    if plan.get("schema") != "planner.place/1":
        return [f"{name}: schema {str(plan.get('schema'))[:60]!r}; expected 'planner.place/1'"]
    faults = []
    for part, keys in _NEEDED.items():
        inside = plan.get(part)
        if not isinstance(inside, Mapping):
            faults.append(f"{name}: {part} is missing or no object")
            continue
        faults += [f"{name}: {part}.{key} is missing" for key in keys if key not in inside]
    if faults:
        return faults
    if not isinstance(plan["inputs"]["layout"], Mapping):
        faults.append(f"{name}: inputs.layout is no object")
    by_family = plan["cut"]["by_family"]
    if not isinstance(by_family, Mapping) or not all(map(_is_number, by_family.values())):
        faults.append(f"{name}: cut.by_family is no object of numbers")
    faults += [
        f"{name}: {part}.{key} is no number"
        for part, key in (("cut", "objective_bytes"), ("cut", "lower_bound_bytes"),
                          ("step", "total_s"), ("memory", "worst_stage_bytes"))
        if not _is_number(plan[part][key])
    ]  # fmt: skip
    seats, domains = plan["placement"]["rank_to_gpu"], plan["placement"]["domains"]
    if not isinstance(seats, list) or not all(isinstance(seat, int) for seat in seats):
        faults.append(f"{name}: placement.rank_to_gpu is no list of whole numbers")
    elif len(set(seats)) < len(seats):
        twice = next(gpu for gpu, ranks in Counter(seats).items() if ranks > 1)
        faults.append(f"{name}: placement.rank_to_gpu has GPU {twice} for several ranks")
    elif not _are_domains(domains, len(seats)):
        faults.append(f"{name}: placement.domains do not hold every rank once")
    return faults


def plan_diff(
    before: Mapping[str, Any], after: Mapping[str, Any], prices: PriceList | None = None
) -> PlanDiff:
    """Return what changed from one document of ``planner place`` to another.

    Args:
        before: one document.
        after: the other.
        prices: for what changed in money, if any.

    Raises:
        InputError: every fault of either.
    """
    faults = plan_faults(before, "the first plan") + plan_faults(after, "the second plan")
    if faults:
        raise InputError(*faults)
    seats = [plan["placement"]["rank_to_gpu"] for plan in (before, after)]
    ranks = min(map(len, seats))
    mates = [_mates(plan["placement"]["domains"]) for plan in (before, after)]
    one, two = before["cut"]["by_family"], after["cut"]["by_family"]
    money, why = _money(before, after, prices) if prices is not None else ((), ())
    return PlanDiff(
        inputs=_changed(before["inputs"], after["inputs"], _INPUTS) | _timed_with(before, after),
        layout=_changed(
            before["inputs"]["layout"], after["inputs"]["layout"],
            tuple(sorted({*before["inputs"]["layout"], *after["inputs"]["layout"]})),
        ),
        ranks=ranks,
        new_ranks=len(seats[1]) - ranks,
        gone_ranks=len(seats[0]) - ranks,
        moved_ranks=sum(a != b for a, b in zip(*seats, strict=False)),
        regrouped_ranks=sum(mates[0].get(r) != mates[1].get(r) for r in range(ranks)),
        groups=group_changes(before, after),
        tier=_tier(before, after),
        families=tuple(
            Figure(name=name, before=one.get(name), after=two.get(name))
            for name in dict.fromkeys((*one, *two))
        ),
        figures=_figures(before, after),
        money=money,
        why_no_money=why,
    )  # fmt: skip


def _figures(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Figure, ...]:
    wanted = [
        ("cut", "objective_bytes"), ("cut", "lower_bound_bytes"), ("step", "total_s"),
        ("step", "compute_s"), ("step", "bubble_s"), ("step", "update_s"),
        ("step", "tokens_per_s"), ("memory", "worst_stage_bytes"),
    ]  # fmt: skip
    found = [
        Figure(name=f"{part}.{key}", before=before[part].get(key), after=after[part].get(key))
        for part, key in wanted
    ]
    one, two = before["step"].get("exposed_s", {}), after["step"].get("exposed_s", {})
    found += [
        Figure(name=f"step.exposed_s.{key}", before=one.get(key), after=two.get(key))
        for key in dict.fromkeys((*one, *two))
    ]
    return tuple(f for f in found if f.before is not None or f.after is not None)


def _money(
    before: Mapping[str, Any], after: Mapping[str, Any], prices: PriceList
) -> tuple[tuple[Figure, ...], tuple[str, ...]]:
    """Return what the parts cost and draw and a million tokens, and what is not known."""
    costs: list[dict[str, float | None]] = []
    why: dict[str, None] = {}
    for name, plan in (("the first plan", before), ("the second plan", after)):
        lines = plan.get("bill", {}).get("lines")
        if not lines:
            why[f"{name}: lists no parts; it is of an older planner: place it again"] = None
            costs.append({})
            continue
        bill = priced_bill(
            [BillLine(**{**line, "price": None, "source": ""}) for line in lines],
            plan["inputs"]["fabric"]["accelerator"]["name"], prices,
            cluster=plan["inputs"]["cluster"],
        )  # fmt: skip
        if SERVER in prices.items and not (bill.has_servers or prices.rent(bill.accelerator)):
            why[f"the servers of {name}: its file counts none; place it again"] = None
        tokens_per_s = float(plan["step"].get("tokens_per_s", 0.0)) or nan
        run = run_of(tokens_per_s, int(plan["inputs"]["gpus"]), bill, prices, None)
        if run.cost_per_token is None:
            why[f"{name}: {run.why_no_cost}"] = None
        per_token = run.cost_per_token
        costs.append({
            "parts_cost": bill.total,
            "known_power_w": run.power_w,
            "cost_per_million_tokens": None if per_token is None else per_token * 1e6,
        })  # fmt: skip
    names = dict.fromkeys(name for cost in costs for name in cost)
    found = (Figure(name=n, before=costs[0].get(n), after=costs[1].get(n)) for n in names)
    return tuple(f for f in found if (f.before, f.after) != (None, None)), tuple(why)


def _changed(
    before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, ...]
) -> dict[str, tuple[Any, Any]]:
    pairs = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _timed_with(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return whose efficiency each plan is timed with, where their numbers differ.

    Shipped numbers of two kinds of accelerator differ as the clusters do, which is said already.
    """
    one, two = before["inputs"], after["inputs"]
    own = "efficiency_file" in one or "efficiency_file" in two
    same_chip = _chip(one) == _chip(two)
    if one.get("efficiency") == two.get("efficiency") or not (own or same_chip):
        return {}
    return {EFFICIENCY: (_whose(before), _whose(after))}


def _chip(inputs: Mapping[str, Any]) -> Any:
    fabric = inputs.get("fabric")
    chip = fabric.get("accelerator") if isinstance(fabric, Mapping) else None
    return chip.get("name") if isinstance(chip, Mapping) else None


def _whose(plan: Mapping[str, Any]) -> str:
    file = plan["inputs"].get("efficiency_file")
    if isinstance(file, Mapping):
        return f"{file.get('file')} (sha256 {str(file.get('sha256'))[:_SHOWN_HASH]})"
    if plan["inputs"].get("efficiency") is None:
        return "not measured: assumed of any accelerator"
    return f"shipped with planner {plan.get('version')}"


def _tier(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the one tier of the domains of both plans, else ``domain``."""
    every = [*before["placement"]["domains"], *after["placement"]["domains"]]
    tiers = {str(domain.get("tier") or "domain") for domain in every}
    return tiers.pop() if len(tiers) == 1 else "domain"


def _mates(domains: list[Mapping[str, Any]]) -> dict[int, tuple[int, ...]]:
    """Return for each rank the ranks it sits with."""
    return {rank: tuple(domain["ranks"]) for domain in domains for rank in domain["ranks"]}


def _are_domains(domains: Any, ranks: int) -> bool:
    if not isinstance(domains, list):
        return False
    held: list[Any] = []
    for domain in domains:
        if not isinstance(domain, Mapping) or not isinstance(domain.get("ranks"), list):
            return False
        held += domain["ranks"]
    return all(isinstance(r, int) for r in held) and sorted(held) == list(range(ranks))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
