"""Where the winner flips when the network is varied: words for it, and the flips between plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cli.property_words import (
    PROPERTIES,
    factor_words,
    property_value,
    property_words,
    span_words,
)
from cli.report_html_parts import Num, table
from cli.report_html_read import PlanFile

_BEHIND = 1e-3  # the winner of today stays until it is so far behind, as in ``planner compare``


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flip:
    """The nearest factor at which another plan is the fastest, and which."""

    name: str
    factor: float
    winner: int


def flips_of_network(plans: Sequence[PlanFile], names: Sequence[str]) -> str:
    """Return at which rates, latencies and limits another of *plans* is the fastest.

    Seats and layouts stay; all clusters are varied alike. Between two factors that were timed the
    logarithm of the step is taken for straight.
    """
    documents = [plan.document for plan in plans]
    able = [i for i, one in enumerate(documents) if one["memory"]["fits"] and "answers" in one]
    fitting = sum(one["memory"]["fits"] for one in documents)
    if len(able) < 2 or len(able) < fitting:
        return ""
    factors = documents[able[0]]["answers"]["factors"]
    if any(documents[i]["answers"]["factors"] != factors for i in able):
        return ""
    first = max(able, key=lambda i: float(documents[i]["step"]["tokens_per_s"]))
    found = [flip for name in _VARIED for flip in _flips(documents, able, first, name)]
    rows: list[list[str | Num]] = [
        [property_words(flip.name),
         property_value(flip.name, _now(documents[first], flip.name) * flip.factor, ""),
         Num(flip.factor, f"x {factor_words(flip.factor)}"), names[first], names[flip.winner]]
        for flip in found
    ]  # fmt: skip
    still = [PROPERTIES[name] for name in _VARIED if name not in {flip.name for flip in found}]
    span = f"from 1/{1 / factors[0]:.3g} to {factors[-1]:.3g} times what it is"
    span += f" ({span_words(_VARIED)})"
    said = f"<p>Looked at {span}, on all clusters alike, in the seats and layouts of the plans."
    if still:
        said += f" No other plan wins by 0.1 % or more by: {', '.join(still)}."
    heads = ["Property", f"On {names[first]}", "Of today's", "From", "To"]
    return (
        table("Where the winner flips by the network", heads, rows) if rows else ""
    ) + f"{said}</p>"


_VARIED = ("nic_rate", "nic_latency", "in_flight", "oversubscription")


def _flips(
    documents: Sequence[Mapping[str, Any]], able: Sequence[int], first: int, name: str
) -> Iterator[_Flip]:
    """Yield the nearest flip below and the nearest above, by one property."""
    factors = np.array(documents[first]["answers"]["factors"])
    # log of the time of a token: what it is today, and how the step answers
    times = {
        i: np.log(documents[i]["answers"]["step_s"][name])
        - np.log(documents[i]["answers"]["step_s"][name][int(np.argmin(abs(factors - 1)))])
        - np.log(documents[i]["step"]["tokens_per_s"])
        for i in able
    }
    middle = int(np.argmin(abs(factors - 1)))
    # Fewer than one transaction in flight is no NIC.
    least = max(1 / max(1.0, _now(documents[i], name)) for i in able) if name == "in_flight" else 0
    for way in (range(middle - 1, -1, -1), range(middle + 1, len(factors))):
        for at in (at for at in way if factors[at] >= least):
            winner = min(able, key=lambda i: (float(times[i][at]), i))
            if times[first][at] - times[winner][at] > np.log1p(_BEHIND):
                near = at + 1 if at < middle else at - 1
                yield _Flip(
                    name=name, factor=_crossing(factors, times[first] - times[winner], near, at),
                    winner=winner,
                )  # fmt: skip
                break


def _crossing(factors: Any, behind: Any, near: int, far: int) -> float:
    """Return the factor at which the winner is 0.1 % behind, on a straight line in logarithms."""
    least = np.log1p(_BEHIND)
    share = (least - behind[near]) / (behind[far] - behind[near])
    logs = np.log(factors)
    return float(np.exp(logs[near] + min(max(share, 0.0), 1.0) * (logs[far] - logs[near])))


def _now(document: Mapping[str, Any], name: str) -> float:
    """Return what a property is on a plan's cluster: bytes/s, s, transactions or 1."""
    fabric = document["inputs"]["fabric"]
    outer, nic = fabric["tiers"][-1], fabric["nic"]
    found = {
        "nic_rate": nic["line_bytes_per_s"],
        "nic_latency": outer["latency_s"],
        "in_flight": nic["in_flight"],
        "oversubscription": outer["bytes_per_s"] / outer["shared_bytes_per_s"],
    }
    return float(found[name])
