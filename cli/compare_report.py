"""The answer of ``planner compare``: as a document, as CSV and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cli.compare_front import pareto_rows
from cli.compare_inputs import Compare
from cli.compare_sizes import sizes_document
from cli.inputs_document import question_document
from cli.part_used_words import part_document, part_of_question
from cli.planner_output import document
from cli.search_report import (
    FINALIST_LIMIT_S,
    finalist_document,
    layout_document,
)
from planner.errors import InputError
from planner.procure.bill import Bill, bill_of_materials
from planner.procure.budget import money_of
from planner.procure.run import Run, run_of
from planner.search.chosen import Fastest
from planner.search.compare import Compared, Entry, compare, compare_layouts
from planner.search.effort import Effort
from planner.search.flips import Flip, Looked, Varied, flips
from planner.search.gains import Gain, gains, worth
from planner.search.price_flips import Bid, cheapest, price_flips, price_now
from planner.search.seated_flips import SeatedFlip, SeatedFlips, Today, seated_flips
from planner.search.seated_gains import seated_gains
from planner.search.stages import Stage, Tell, untold

if TYPE_CHECKING:
    from planner.procure.prices import PriceList
    from planner.search.part_used import PartUsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison and what follows from it.

    Args:
        asked: the clusters and layouts.
        compared: ranked.
        flips: where the winner changes with every rank in a seat, or by money.
        contradicted: where it changes in rank order alone.
        unseated, unanswered: flips of rank order that too much would be seated for, as of
            ``SeatedFlips``.
        interrupted: the user ended the search for flips and gains, of which there are none then.
        looked: how far and how closely the rank orders were looked at.
        gains: cluster to what better parts bring.
        parts_used: cluster to what using a part of each supernode brings, where it brings any.
        bills: cluster to its parts.
        runs: what a run takes, in the order of ``compared.ranked``.
        cheapest: cluster that trains a token for the least money, empty without money.
        seed, time_limit_s, prices, tokens: as asked.
    """

    asked: Compare
    compared: Compared
    flips: tuple[Flip, ...]
    contradicted: tuple[SeatedFlip, ...]
    unseated: tuple[Flip, ...]
    unanswered: tuple[Flip, ...]
    interrupted: bool
    looked: tuple[Looked, ...]
    gains: Mapping[str, tuple[Gain, ...]]
    parts_used: Mapping[str, PartUsed]
    bills: Mapping[str, Bill]
    runs: tuple[Run, ...]
    cheapest: str
    seed: int
    time_limit_s: float
    prices: PriceList | None
    tokens: float | None

    @property
    def first(self) -> Entry:
        """The winner, from which flips are looked for."""
        return self.compared.ranked[0]

    def best_token_s(self, one: Entry) -> float:
        """Return a token of the fastest layout of an entry's cluster, by which it is ranked [s]."""
        fastest = self.compared.fastest.get(one.candidate.name)
        return one.finalist.token_s if fastest is None else fastest.token_s


def make_comparison(
    asked: Compare,
    *,
    seed: int = 0,
    time_limit_s: float | None = None,
    prices: PriceList | None = None,
    tokens: float | None = None,
    tell: Tell = untold,
) -> Comparison:
    """Return the comparison of *asked*.

    Args:
        asked: the clusters and layouts.
        seed: of everything random in a seating.
        time_limit_s: for seating each layout [s].
        prices: the user's list, if any.
        tokens: of the run, if asked [1].
        tell: is told how far it is.
    """
    limit_s = FINALIST_LIMIT_S if time_limit_s is None else time_limit_s
    if asked.layouts:
        found = compare_layouts(asked.candidates, asked.layouts, seed=seed, time_limit_s=limit_s)
    else:
        found = compare(asked.candidates, seed=seed, time_limit_s=limit_s, tell=tell)
    bills = {one.name: bill_of_materials(one.fabric, prices) for one in asked.candidates}
    runs = {
        id(one): run_of(float(one.finalist.step.tokens_per_s) * asked.sizes.goal.goodput_share,
                        one.candidate.gpus, bills[one.candidate.name], prices, tokens)
        for one in found.ranked
    }  # fmt: skip
    if asked.sizes.goal.equal == "run":
        found = replace(found, ranked=_by_need(found.ranked, runs))
    bids = [
        Bid(name=one.candidate.name, bill=bills[one.candidate.name], gpus=one.candidate.gpus,
            tokens_per_s=float(one.finalist.step.tokens_per_s))
        for one in found.ranked
    ] if found.pools else []  # fmt: skip
    priced = prices is not None and all(one.cost_per_token is not None for one in runs.values())
    after = _after(asked, found, bills, tell)
    return Comparison(
        asked=asked,
        compared=found,
        flips=(*after.seated.held, *price_flips(bids, prices)),
        contradicted=after.seated.contradicted,
        unseated=after.seated.unseated,
        unanswered=after.seated.unanswered,
        interrupted=after.interrupted,
        looked=after.looked,
        gains=after.gains,
        parts_used=after.parts_used,
        bills=bills,
        runs=tuple(runs[id(one)] for one in found.ranked),
        cheapest=cheapest(bids, prices) if bids and priced and prices is not None else "",
        seed=seed, time_limit_s=limit_s, prices=prices, tokens=tokens,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _After:
    """What is looked for once the clusters are ranked, in fields as of ``Comparison``."""

    seated: SeatedFlips = field(default_factory=SeatedFlips)
    looked: tuple[Looked, ...] = ()
    gains: Mapping[str, tuple[Gain, ...]] = field(default_factory=dict)
    parts_used: Mapping[str, PartUsed] = field(default_factory=dict)
    interrupted: bool = False


def _after(asked: Compare, found: Compared, bills: Mapping[str, Bill], tell: Tell) -> _After:
    """Return flips and what could be better; nothing of them where the user has enough of it."""
    try:
        flipped = _seated_flips(asked, found, tell)
        return replace(flipped, gains=_gains(asked, found, bills, tell),
                       parts_used=_parts_used(asked, found))  # fmt: skip
    except KeyboardInterrupt:
        return _After(interrupted=True)


def _parts_used(asked: Compare, found: Compared) -> dict[str, PartUsed]:
    """Return what using a part of each supernode brings, by cluster.

    Nothing is looked for where layouts are given or must meet conditions: they are not passed on.
    """
    if asked.layouts or asked.where:
        return {}
    steps_s = {one.candidate.name: one.finalist.step_s for one in found.ranked}
    parts = {
        one.name: part_of_question(as_what, question, steps_s[one.name])
        for one, as_what, question in zip(asked.candidates, asked.asked, asked.inputs, strict=True)
    }
    return {name: part for name, part in parts.items() if part is not None}


def _gains(
    asked: Compare, found: Compared, bills: Mapping[str, Bill], tell: Tell
) -> dict[str, tuple[Gain, ...]]:
    gained: dict[str, tuple[Gain, ...]] = {}
    effort = Effort()
    for pool, one in zip(found.pools, asked.candidates, strict=False):
        tell(Stage(what="looking where to spend", done=len(gained), of=len(found.pools),
                   now=one.name))  # fmt: skip
        nics = _nics(bills[one.name], one.gpus)
        ordered = gains(pool, nics_per_gpu=nics, bigger=one.bigger)
        gained[pool.name] = tuple(seated_gains(
            ordered, pool, found.seats[one.name], found.fastest[one.name], nics_per_gpu=nics,
            bigger=one.bigger, effort=effort,
        ))  # fmt: skip
    return gained


def _seated_flips(asked: Compare, found: Compared, tell: Tell) -> _After:
    """Return where the winner flips; for a run that all do in time, only where its layout does."""
    if not found.pools:
        return _After()
    first = found.ranked[0]
    raced = [one for one in found.ranked if one is first or asked.sizes.goal.equal != "run"]
    names = {one.candidate.name for one in raced}
    varied = Varied([pool for pool in found.pools if pool.name in names], first.candidate.name)
    today = Today(
        token_s={name: found.fastest[name].token_s for name in sorted(names)},
        layouts={name: found.fastest[name].layout for name in sorted(names)},
        winner=first.candidate.name,
    )
    ordered = flips(varied, tell)
    seated = seated_flips(ordered.found, varied, found.seats, today, tell)
    return _After(seated=seated, looked=ordered.looked)


def _by_need(ranked: Sequence[Entry], runs: Mapping[int, Run]) -> tuple[Entry, ...]:
    """Return the clusters that are just large enough by the run's cost, without money by GPUs."""
    costs = [runs[id(one)].cost for one in ranked]
    return tuple(
        sorted(
            ranked,
            key=lambda one: (
                runs[id(one)].cost or 0.0 if None not in costs else one.candidate.gpus,
                one.finalist.token_s,
            ),
        )
    )


def _nics(bill: Bill, gpus: int) -> float:
    """Return the NICs of a GPU; 1 where the bill has none that can be counted."""
    return sum(line.count for line in bill.lines if line.item == "nic") / gpus or 1.0


def compare_document(found: Comparison) -> dict[str, Any]:
    """Return the document of ``planner compare --json``."""
    asked = {
        "clusters": [question_document(one) for one in found.asked.inputs],
        "layouts": {name: layout_document(one) for name, one in found.asked.layouts.items()},
        "where": [rule.text for rule in found.asked.where],
        "seed": found.seed, "time_limit_s": found.time_limit_s, "tokens": found.tokens,
        "prices": found.prices, "sizes": sizes_document(found.asked.sizes, found.asked.inputs),
    }  # fmt: skip
    return document("compare", asked, {
        "ranked": [
            {**_entry(one, found), "run": run,
             **part_document(found.parts_used.get(one.candidate.name))}
            for one, run in zip(found.compared.ranked, found.runs, strict=True)
        ],
        "moved": [_entry(one, found) for one in found.compared.moved],
        "flips": [_flip(one, found) for one in found.flips] + [
            {**_flip(one, found), "seated": None} for one in found.unseated
        ],
        "contradicted_flips": [
            {**_flip(one.flip, found),
             "seated": {"holds": False, "before": one.before, "after": one.after}}
            for one in found.contradicted
        ],
        "flips_looked": [
            {"property": one.name, "kind": one.kind, "to_factor": one.factor,
             "proved": not one.unproved,
             "unproved": [[each.near_factor, each.far_factor] for each in one.unproved],
             **_not_seated(one, found)}
            for one in found.looked
        ],
        **({"interrupted": True} if found.interrupted else {}),
        "gains": {
            name: [{"name": one.name, "step_s": one.step_s, "gain_share": one.gain_share,
                    "worth_per_gpu": worth_per_gpu(one, name, found),
                    **({} if one.seated else {"seated": False})} for one in some]
            for name, some in found.gains.items()
        },
        "cheapest": found.cheapest or None,
        "bills": {
            name: {"lines": bill.lines, "currency": bill.currency, "total": bill.total,
                   "unpriced": bill.unpriced, "ports": bill.ports}
            for name, bill in found.bills.items()
        },
        "pareto": [row["cluster"] for row in pareto_rows(found) if row["on_front"]],
        "pareto_points": pareto_rows(found),
    })  # fmt: skip


def _not_seated(looked: Looked, found: Comparison) -> dict[str, Any]:
    """Return that a question was too much to be answered with seats; nothing where it was not."""
    asked = {(one.name, one.kind) for one in (*found.unseated, *found.unanswered)}
    return {"seated": False} if (looked.name, looked.kind) in asked else {}


def _entry(one: Entry, found: Comparison) -> dict[str, Any]:
    return {
        "cluster": one.candidate.name,
        "supernode": one.candidate.fabric.full_supernode_gpus,
        "gpus": one.candidate.gpus,
        "label": one.label,
        **finalist_document(one.finalist, found.first.finalist),
        "fastest": _fastest(found.compared.fastest.get(one.candidate.name)),
    }


def _fastest(one: Fastest | None) -> dict[str, Any] | None:
    """Return the fastest layout of a cluster in quick seats, None where layouts were given."""
    if one is None:
        return None
    return {"layout": layout_document(one.layout), "step_s": one.step_s,
            "timed": "in quick seats"}  # fmt: skip


def _flip(one: Flip, found: Comparison) -> dict[str, Any]:
    """Return a flip; what money decides has no seats of its own."""
    return {
        "property": one.name, "kind": one.kind, "factor": one.factor, "before": one.before,
        "after": one.after, "held_factor": one.held_factor, "value": flip_value(one, found),
        "held_value": flip_value(replace(one, factor=one.held_factor), found),
        "seated": None if one.kind == "cheapest"
        else {"holds": True, "before": one.before, "after": one.after},
    }  # fmt: skip


def flip_value(one: Flip, found: Comparison) -> float:
    """Return the property's value on the winner at the flip: bytes/s, s, 1, tokens or money."""
    if one.name.startswith("price ") and found.prices is not None:
        return price_now(one.name.removeprefix("price "), found.prices) * one.factor
    winner = found.first
    fabric = winner.candidate.fabric
    now = {
        "nic_rate": fabric.nic.line_bytes_per_s,
        "nic_latency": float(fabric.tiers[-1].latency_s),
        "in_flight": float(fabric.nic.in_flight),
        "oversubscription": float(fabric.tiers[-1].oversubscription),
        "seq": float(winner.finalist.layout.seq),
        "experts": float(winner.candidate.model.experts),
    }
    return now[one.name] * one.factor


def worth_per_gpu(gain: Gain, cluster: str, found: Comparison) -> float | None:
    """Return what a better part may cost for each GPU, by the price list; None without one."""
    one = next(c for c in found.asked.candidates if c.name == cluster)
    if found.prices is None:
        return None
    try:
        cost = money_of(one.gpus, found.bills[cluster], found.prices)
    except InputError:
        return None
    return worth(gain, cost.amount, one.gpus)
