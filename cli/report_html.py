"""The report: one file of HTML that opens offline, prints, and asks nothing of anyone.

The same plans give the same bytes: no date, no folder, no order that chance decides.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cli.planner_output import inputs_sha256
from cli.planner_version import __version__
from cli.report_html_bill import Account, accounts, bill_part, costs_of
from cli.report_html_compare import candidates
from cli.report_html_parts import Part, table
from cli.report_html_plan import plan_parts
from cli.report_html_read import PlanFile
from cli.report_html_reasons import premises_of
from cli.report_html_style import SCRIPT, STYLE, policy
from cli.report_html_words import Cost, assumptions, command_of, comparison, recommendation, sources
from cli.report_pictures import safe
from planner.procure.prices import PriceList


def report(
    plans: Sequence[PlanFile], prices: PriceList | None = None, tokens: float | None = None
) -> str:
    """Return the report about *plans*: one, or a comparison of several.

    Args:
        plans: at least one plan.
        prices: the reader's price list; without one no money is shown.
        tokens: of the whole training run, for its days and its cost [1].
    """
    names = candidate_names(plans)
    several = len(plans) > 1
    first = plans[0].document["inputs"]
    title = (
        f"{len(plans)} plans compared"
        if several
        else f"{first['model']} on {first['gpus']:,} GPUs of {first['cluster']}"
    )
    found = accounts(plans, prices, tokens)
    parts = [_recommended(plans, names, costs_of(found))]
    if several:
        parts.append(candidates(plans, names, found))
    for i, (plan, name) in enumerate(zip(plans, names, strict=True)):
        parts += plan_parts(plan, i, name if several else "")
    parts += [_bill(found, names, prices, tokens), *_premises(plans, names)]
    parts.append(_origin(plans, names, prices, tokens))
    body = "".join(
        f'<section aria-labelledby="{p.anchor}"><h2 id="{p.anchor}">{safe(p.heading)}</h2>'
        f"{p.body}</section>"
        for p in parts
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{safe(title)} - planner report</title><style>{STYLE}</style></head>\n"
        f"<body><header><h1>{safe(title)}</h1></header>\n"
        f'<nav aria-label="Contents">{contents(parts)}</nav>\n<main>{body}</main>\n'
        f"<footer>planner {safe(__version__)}</footer>\n<script>{SCRIPT}</script></body></html>\n"
    )


def contents(parts: Sequence[Part]) -> str:
    """Return the links to the parts: those of one plan on a line of their own."""
    lines: dict[str, list[Part]] = {}
    for part in parts:
        lines.setdefault(part.plan, []).append(part)
    return "".join(
        "<ul>"
        + (f"<li><b>{safe(plan)}</b></li>" if plan else "")
        + "".join(f'<li><a href="#{p.anchor}">{safe(p.title)}</a></li>' for p in each)
        + "</ul>"
        for plan, each in lines.items()
    )


def candidate_names(plans: Sequence[PlanFile]) -> list[str]:
    """Return a short name for each plan, no two alike: its file's, numbered where needed.

    >>> candidate_names(())
    []
    """
    stems = [plan.name.removesuffix(".json") for plan in plans]
    return [f"{stem} ({i + 1})" if stems.count(stem) > 1 else stem for i, stem in enumerate(stems)]


def _bill(
    found: Sequence[Account | None], names: Sequence[str], prices: PriceList | None,
    tokens: float | None,
) -> Part:  # fmt: skip
    return bill_part(found, names, priced=prices is not None, asked_tokens=tokens is not None)


def _recommended(plans: Sequence[PlanFile], names: Sequence[str], costs: Sequence[Cost]) -> Part:
    sentences = recommendation(plans[0]) if len(plans) == 1 else comparison(plans, names, costs)
    body = "".join(f'<p class="lead">{safe(sentence)}</p>' for sentence in sentences)
    for plan, name in zip(plans, names, strict=True):
        if not plan.untouched:
            body += (
                f'<p class="warn">The inputs of {safe(name)} are not those its hash was taken of: '
                "the file was changed after it was made.</p>"
            )
    return Part(anchor="recommendation", title="Recommendation", body=body)


def _premises(plans: Sequence[PlanFile], names: Sequence[str]) -> list[Part]:
    """Return what the figures rest on; what several plans share stands once."""
    assumed = _shared([assumptions(plan.document) for plan in plans], names)
    filed = _shared([sources(plan.document) for plan in plans], names)
    premises = _shared([premises_of(plan.document) for plan in plans], names)
    head = (
        ["Number", "Value and source", "Plans"]
        if len(plans) > 1
        else ["Number", "Value and source"]
    )
    return [
        Part(
            anchor="assumed",
            title="Assumed numbers and premises",
            body=table("Assumed: nobody stated these", head, assumed)
            + table("What must hold", ["Part", "Premise", *head[2:]], premises)
            + table(
                "Where the cluster's figures come from", ["Figure", "Source", *head[2:]], filed
            ),
        )
    ]


def _shared(found: Sequence[dict[str, str]], names: Sequence[str]) -> list[list[str]]:
    """Return a row for each different pair, and whose it is where there are several."""
    rows: dict[tuple[str, str], list[str]] = {}
    for pairs, name in zip(found, names, strict=True):
        for pair in pairs.items():
            rows.setdefault(pair, []).append(name)
    whose = {pair: "all" if len(n) == len(names) else ", ".join(n) for pair, n in rows.items()}
    return [[*pair, whose[pair]] if len(names) > 1 else list(pair) for pair in sorted(rows)]


def _origin(
    plans: Sequence[PlanFile], names: Sequence[str], prices: PriceList | None, tokens: float | None
) -> Part:
    rows = [
        [name, plan.document["inputs"]["sha256"], plan.document["version"]]
        for plan, name in zip(plans, names, strict=True)
    ]
    if prices is not None:
        rows.append(["the price list", inputs_sha256({"prices": prices}), ""])
    asked = ["planner", "report", *(plan.name for plan in plans)]
    asked += [] if prices is None else ["--prices", "prices.yaml"]
    asked += [] if tokens is None else ["--tokens", f"{tokens:g}"]
    commands = "\n".join(
        [*(command_of(plan.document) + " --out " + shlex.quote(plan.name) for plan in plans),
         shlex.join([*asked, "--out", "report.html"])]
    )  # fmt: skip
    body = (
        table("Hash of the inputs", ["Plan", "SHA-256 of its inputs", "Made by planner"], rows)
        + "<p>These commands ask for the plans again, from what their inputs say; a cluster or a "
        f"model that came from a file needs that file.</p><pre><code>{safe(commands)}</code></pre>"
    )
    return Part(anchor="origin", title="Where this comes from", body=body)
