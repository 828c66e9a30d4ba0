"""The candidates of a report that compares: plans, or the entries of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cli.report_html_bill import costs_of
from cli.report_html_traffic import crossings
from cli.report_words import power_words

if TYPE_CHECKING:
    from cli.report_choice import Cost
    from cli.report_html_bill import Account
    from cli.report_html_read import PlanFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One candidate, whichever document it came from.

    Args:
        name: what it is called.
        model, cluster: what it trains, and on which cluster.
        gpus: of the job [1].
        layout: degrees and batch, as a document has them.
        step, memory: entries of its document.
        tier: whose border the cut is of.
        cut_bytes: what crosses in the seats that the step is timed in [bytes].
        least_bytes: what crosses in the seats with the least that were found [bytes].
        open_share: of *least_bytes*, what another seating could save by the bound [1].
        proved_of: what the bound is about where it is not all bytes of all seatings, in words.
        crossed: what of it crosses, by digit [bytes].
        ties: whether it cannot be told from the fastest of its comparison, as that says; None of a
            plan, whose file knows no other.
        power_w: known power, 0 where none is known [W].
        power_name: what it is called: of the parts, or at the meter with what cools them.
        cost: of a million tokens, None where it is not known.
        run: cost of the whole run, None where it is not known or was not asked.
        best_step_s: the shortest step known on its cluster, of a plan its own [s].
        best_tokens_per_s: of the fastest layout on its cluster, by which a comparison ranks [1/s].
    """

    name: str
    model: str
    cluster: str
    gpus: int
    layout: Mapping[str, Any]
    step: Mapping[str, Any]
    memory: Mapping[str, Any]
    tier: str
    cut_bytes: float
    least_bytes: float
    open_share: float
    proved_of: str
    crossed: Mapping[str, float]
    ties: bool | None
    power_w: float
    power_name: str
    cost: Cost | None
    run: Cost | None
    best_step_s: float
    best_tokens_per_s: float

    @property
    def fits(self) -> bool:
        """Whether it fits in memory."""
        return bool(self.memory["fits"])

    @property
    def tokens_per_s(self) -> float:
        """Tokens a second [1/s]."""
        return float(self.step["tokens_per_s"])


def candidates_of(
    plans: Sequence[PlanFile], names: Sequence[str], found: Sequence[Account | None]
) -> list[Candidate]:
    """Return the candidates that *plans* are.

    Args:
        plans: at least one.
        names: what they are called.
        found: what each takes to run; money is shown where it is known of all.
    """
    costs: list[Cost | None] = [*costs_of(found)] or [None for _ in plans]
    return [
        _candidate(plan.document, name, _crossed(plan), account, cost)
        for plan, name, account, cost in zip(plans, names, found, costs, strict=True)
    ]


def _candidate(
    document: Mapping[str, Any], name: str, crossed: Mapping[str, float], account: Account | None,
    cost: Cost | None,
) -> Candidate:  # fmt: skip
    inputs, cut = document["inputs"], document["cut"]
    return Candidate(
        name=name, model=inputs["model"], cluster=inputs["cluster"], gpus=inputs["gpus"],
        layout=inputs["layout"], step=document["step"], memory=document["memory"],
        tier=cut["tier"], cut_bytes=cut["objective_bytes"], least_bytes=cut["objective_bytes"],
        open_share=cut["gap"], proved_of=_proved_of(document), crossed=crossed, ties=None,
        power_w=account.run.power_w if account else 0.0,
        power_name=power_words(account.overhead_ratio if account else 1.0), cost=cost, run=None,
        best_step_s=document["step"]["total_s"], best_tokens_per_s=document["step"]["tokens_per_s"],
    )  # fmt: skip


def _proved_of(document: Mapping[str, Any]) -> str:
    """Return what the bound of a plan is about where it is not all bytes of all seatings."""
    of_what = {"bottleneck": " for the busiest border", "time": " of the bytes that a step shows"}
    ruled = " under the rules" if "rules" in document else ""
    return of_what.get(document["cut"]["objective"], "") + ruled


def _crossed(plan: PlanFile) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for crossing in crossings(plan):
        digit = crossing.family["digit"]
        found[digit] = found.get(digit, 0.0) + crossing.cut_bytes
    return found
