"""Which one cluster to take for several models, and for which of them another is surely faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from cli.report_choice import best_step
from planner.procure.budget import format_money
from planner.search.ties import told_apart
from planner.units import format_share

_NINETY_PERCENT = 1.645  # standard deviations to each side that hold 90 %
EQUAL_TOKENS = "as many tokens of each model, one after the other"
OWN_RUNS = "each model's run in time on a cluster of its own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A cluster that all the models were compared on.

    Args:
        cluster: its name.
        token_s: what a token of each model takes together, by the fastest layouts [s].
        spread: of the fit of that, in log [1].
        crossed_bytes: what leaves supernodes for a token of each, by the layouts shown [bytes].
        gpus: of all the runs where each has a cluster of its own, else of the cluster [1].
        token_cost: of a token of each, None where it is not known.
        cost: of all the runs, None where it is not known or not asked.
    """

    cluster: str
    token_s: float
    spread: float
    crossed_bytes: float
    gpus: int
    token_cost: float | None
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """What to take for a set of models.

    Args:
        rule: by what, in words.
        pick: the cluster to take.
        order: all of them, the best first.
        alike: the best and those that the model cannot tell from it; one where needs decide.
        surely_faster: model to the cluster that is first for it alone, where *pick* is surely
            slower.
        loses: cluster to the models for which another cluster is surely faster; those with none
            are left out.
        alone: model to the cluster that would be taken for it alone, where that is not *pick*.
    """

    rule: str
    pick: Shared
    order: tuple[Shared, ...]
    alike: tuple[Shared, ...]
    surely_faster: Mapping[str, str]
    loses: Mapping[str, tuple[str, ...]]
    alone: Mapping[str, str]


def joint_of(documents: Sequence[Mapping[str, Any]]) -> Joint | None:
    """Return what to take for the models of *documents*; None where no two clusters hold them all.

    For the same number of tokens of each model, trained one after the other, it is the cluster that
    takes least; of those that cannot be told from it the cheapest, or where money is not known of
    all, the one that asks least of its network: as for one model. Where each cluster is just large
    enough for a run, it is the one whose runs cost least together, or where money is not known of
    all, have the fewest GPUs.

    Args:
        documents: of ``planner compare``, each of another model. There is no verdict where they do
            not have the same in common, or are of given layouts.
    """
    common = {_common(one["inputs"]["sizes"]) for one in documents}
    models = {_model(one) for one in documents}
    given = any(one["inputs"]["layouts"] for one in documents)
    if len(models) < max(2, len(documents)) or len(common) > 1 or given:
        return None
    by_name = [
        {one["cluster"]: one for one in document["ranked"] if one["memory"]["fits"]}
        for document in documents
    ]
    names = [name for name in by_name[0] if all(name in found for found in by_name)]
    if len(names) < 2:
        return None
    by_need = documents[0]["inputs"]["sizes"]["equal"] == "run"
    each = {name: [found[name] for found in by_name] for name in names}
    if by_need:
        return _by_need([
            _shared(name, entries, gpus=sum(one["gpus"] for one in entries))
            for name, entries in each.items()
        ])  # fmt: skip
    shared = [_shared(name, entries, gpus=entries[0]["gpus"]) for name, entries in each.items()]
    order = sorted(shared, key=lambda one: one.token_s)
    alike = [one for one in order if one is order[0] or not _apart(order[0], one)]
    priced = all(one.token_cost is not None for one in alike)
    pick = min(alike, key=lambda one: (one.token_cost or 0.0) if priced else one.crossed_bytes)
    firsts = {_model(one): one["ranked"][0]["cluster"] for one in documents}
    return Joint(
        rule=EQUAL_TOKENS, pick=pick, order=tuple(order), alike=tuple(alike),
        surely_faster={
            model: first
            for (model, first), found in zip(firsts.items(), by_name, strict=True)
            if first != pick.cluster and not found[pick.cluster]["tie_with_first"]
        },
        loses=_losses(names, firsts, by_name),
        alone={
            _model(one): taken for one in documents
            if (taken := _taken_alone(one)) != pick.cluster
        },
    )  # fmt: skip


def _taken_alone(document: Mapping[str, Any]) -> str:
    """Return which cluster of a comparison is taken, as its own page says it."""
    fit = [one for one in document["ranked"] if one["memory"]["fits"]]
    alike = [one for one in fit if one is fit[0] or one["tie_with_first"]]
    costs = [one["run"]["cost_per_token"] for one in alike]

    def least(one: Mapping[str, Any]) -> float:
        return float(one["seated_bytes"] if None in costs else one["run"]["cost_per_token"])

    return str(min(alike, key=least)["cluster"])


def why_none(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return why there is no verdict for the models of *documents*, in words.

    Args:
        documents: of ``planner compare``, of which ``joint_of`` makes None.
    """
    models = [_model(one) for one in documents]
    twice = sorted({name for name in models if models.count(name) > 1})
    if twice:
        return (
            f"No verdict for all models: {', '.join(twice)} is the name of several. Give each a "
            "name of its own in its file (name, in a config.json _name_or_path)."
        )
    if any(one["inputs"]["layouts"] for one in documents):
        return "No verdict for all models: layouts were given, and they are of one."
    if len({_common(one["inputs"]["sizes"]) for one in documents}) > 1:
        return "No verdict for all models: they do not share GPUs, money, power or days."
    return "No verdict for all models: fewer than two clusters hold each of them."


def _losses(
    names: Sequence[str], firsts: Mapping[str, str], by_name: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[str, ...]]:
    """Return by cluster for which models alone it is surely slower than the first."""
    lost = {
        name: tuple(
            model
            for (model, first), found in zip(firsts.items(), by_name, strict=True)
            if name != first and not found[name]["tie_with_first"]
        )
        for name in names
    }
    return {name: models for name, models in lost.items() if models}


def _common(sizes: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what clusters have in common: GPUs, an amount of money or power, or days."""
    gpus = tuple(sizes["gpus"]) if sizes["equal"] == "gpus" else ()
    return sizes["equal"], sizes["budget"], sizes["days"], gpus


def _model(document: Mapping[str, Any]) -> str:
    return str(document["inputs"]["clusters"][0]["model"])


def _shared(name: str, entries: Sequence[Mapping[str, Any]], *, gpus: int) -> Shared:
    """Return a cluster with what its entries, one of each model, take together.

    Args:
        name: of the cluster.
        entries: of comparisons.
        gpus: of all the runs, or of the cluster where they take turns on it [1].
    """
    tokens_s = [best_step(one).step_s / best_step(one).tokens for one in entries]
    spreads = [_spread(one["step"]["interval_s"]) for one in entries]
    costs = [one["run"]["cost"] for one in entries]
    token_costs = [one["run"]["cost_per_token"] for one in entries]
    return Shared(
        cluster=name, token_s=sum(tokens_s),
        # Errors of one machine's fit go one way: the whole is as unsure as its parts.
        spread=sum(t * s for t, s in zip(tokens_s, spreads, strict=True)) / sum(tokens_s),
        crossed_bytes=sum(
            one["seated_bytes"] / (one["layout"]["global_batch"] * one["layout"]["seq"])
            for one in entries
        ),
        gpus=gpus,
        token_cost=None if None in token_costs else sum(token_costs),
        cost=None if None in costs else sum(costs),
    )  # fmt: skip


def _spread(interval_s: Sequence[float]) -> float:
    low_s, high_s = interval_s
    return log(high_s / low_s) / (2 * _NINETY_PERCENT) if low_s > 0 else 1.0


def _apart(first: Shared, other: Shared) -> bool:
    return told_apart(first.token_s, other.token_s, first.spread, other.spread)


def _by_need(shared: Sequence[Shared]) -> Joint:
    priced = all(one.cost is not None for one in shared)
    order = sorted(shared, key=lambda one: (one.cost or 0.0) if priced else float(one.gpus))
    return Joint(rule=OWN_RUNS, pick=order[0], order=tuple(order), alike=(order[0],),
                 surely_faster={}, loses={}, alone={})  # fmt: skip


def joint_sentences(joint: Joint, currency: str = "") -> list[str]:
    """Return the verdict for all the models, by which rule, and for whom it is not the best.

    Args:
        joint: the verdict.
        currency: of what runs cost, where they have a cost.
    """
    pick, rest = joint.pick, [one for one in joint.order if one is not joint.pick]
    if joint.rule == OWN_RUNS:
        said = "; ".join(f"{one.cluster} {_need(one, currency)}" for one in rest)
        taken = f"take {pick.cluster}, {_need(pick, currency)} in all"
        return [f"For all models, {OWN_RUNS}: {taken}; {said}."]
    ties = [_tied(one, joint) for one in joint.alike if one is not pick]
    slower = [_longer(one, pick) for one in rest if one not in joint.alike]
    priced = all(one.token_cost is not None for one in joint.alike)
    least = "costs least a token" if priced else "asks least of the network"
    tied = (
        f" Over all models together a tie with {', '.join(ties)}, not told from it at 90 %; of "
        f"these it {least}."
        if ties else ""
    )  # fmt: skip
    behind = f" Surely slower: {', '.join(slower)}." if slower else ""
    return [f"For all models, {EQUAL_TOKENS}: take {pick.cluster}.{tied}{behind}", _each(joint)]


def _each(joint: Joint) -> str:
    """Return whether the cluster is the best for each model alone, and which is taken if not it."""
    if joint.surely_faster:
        said = ", ".join(f"{model} on {name}" for model, name in joint.surely_faster.items())
        return f"No single cluster is best for each: surely faster than there is {said}."
    if not joint.alone:
        return f"For each model alone {joint.pick.cluster} is the best, too, or a tie with it."
    said = ", ".join(f"{name} for {model}" for model, name in joint.alone.items())
    why = (
        "asks less of the network" if any(one.token_cost is None for one in joint.alike)
        else "costs less a token"
    )  # fmt: skip
    return (
        f"For no model alone is another surely faster than {joint.pick.cluster}; alone, {said} "
        f"would be taken, for of those that tie there it {why}."
    )


def _tied(one: Shared, joint: Joint) -> str:
    """Return a cluster that ties for all models, and for which alone it surely loses."""
    lost = joint.loses.get(one.cluster)
    more = f"; surely slower for {' and '.join(lost)} alone" if lost else ""
    return _longer(one, joint.pick, more)


def _longer(one: Shared, pick: Shared, more: str = "") -> str:
    share = one.token_s / pick.token_s - 1.0
    apart = f"{format_share(abs(share))} {'longer' if share >= 0 else 'shorter'}"
    return f"{one.cluster} ({apart}{more})"


def _need(one: Shared, currency: str) -> str:
    cost = "" if one.cost is None else f" for {format_money(one.cost, currency)}"
    return f"{one.gpus:,} GPUs{cost}"


def joint_document(joint: Joint | None) -> dict[str, Any] | None:
    """Return the verdict for a document; None without one."""
    if joint is None:
        return None
    return {
        "rule": joint.rule,
        "cluster": joint.pick.cluster,
        "order": [
            {"cluster": one.cluster, "token_s": one.token_s, "gpus": one.gpus, "cost": one.cost,
             "tie_with_first": one in joint.alike,
             "surely_slower_for": list(joint.loses.get(one.cluster, ()))}
            for one in joint.order
        ],
        "surely_faster_alone": dict(joint.surely_faster),
        "taken_alone": dict(joint.alone),
    }  # fmt: skip
