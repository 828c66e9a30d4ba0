"""What each cluster brings and costs for several models, side by side, for both pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cli.joint_verdict import OWN_RUNS
from planner.units import format_number

if TYPE_CHECKING:
    from cli.joint_verdict import Joint


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A figure, and how it is written; 0 and nothing where it is not known."""

    value: float = 0.0
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointRow:
    """One figure of all clusters.

    Args:
        name: of what, for which model, in which unit.
        cells: one for each cluster.
    """

    name: str
    cells: tuple[Cell, ...]


def joint_rows(joint: Joint, documents: Sequence[Mapping[str, Any]]) -> list[JointRow]:
    """Return the figures of each cluster, in the order of the verdict; those known of none are out.

    Args:
        joint: the verdict for all models.
        documents: of ``planner compare``, each of another model.
    """
    names = [one.cluster for one in joint.order]
    bought = _of_each if joint.rule == OWN_RUNS else _once
    currency = next((bill["currency"] for bill in documents[0]["bills"].values()), "")
    rows: list[JointRow] = []
    for document in documents:
        model = document["inputs"]["clusters"][0]["model"]
        found = {one["cluster"]: one for one in document["ranked"]}
        each = [found[name] for name in names]
        if len({one["gpus"] for one in each}) > 1:
            rows.append(_row(f"{model}: GPUs", [one["gpus"] for one in each], "{:,.0f}"))
        rows.append(_row(f"{model}: M tokens/s",
                         [one["step"]["tokens_per_s"] / 1e6 for one in each]))  # fmt: skip
        rows.append(_row(f"{model}: days", [one["run"]["days"] for one in each]))
        rows.append(_row(f"{model}: {currency}/M tokens", [
            None if one["run"]["cost_per_token"] is None else one["run"]["cost_per_token"] * 1e6
            for one in each
        ]))  # fmt: skip
        rows.append(_row(f"{model}: {currency} a run", [one["run"]["cost"] for one in each],
                         "{:,.0f}"))  # fmt: skip
    rows.append(_row(f"{currency} all runs", [one.cost for one in joint.order], "{:,.0f}"))
    totals = {name: [one["bills"][name]["total"] for one in documents] for name in names}
    rows.append(_row(f"{currency} to buy", [bought(totals[name]) for name in names], "{:,.0f}"))
    return [row for row in rows if any(cell.text for cell in row.cells)]


def _row(name: str, values: Sequence[float | None], form: str = "") -> JointRow:
    """Return a row; four digits where no *form* says how a value is written."""
    return JointRow(
        name=name,
        cells=tuple(
            Cell() if one is None
            else Cell(value=one, text=form.format(one) if form else format_number(one, digits=4))
            for one in values
        ),
    )  # fmt: skip


def _once(totals: Sequence[float | None]) -> float | None:
    """Return what a cluster costs on which models take turns; None where that is not known."""
    return totals[0] if len(set(totals)) == 1 else None


def _of_each(totals: Sequence[float | None]) -> float | None:
    """Return what clusters cost of which each model has its own; None where one is not known."""
    known = [one for one in totals if one is not None]
    return sum(known) if len(known) == len(totals) else None
