"""The report: one file of HTML that opens offline, prints, and asks nothing of anyone.

The same plans give the same bytes: no date, no folder, no order that chance decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.joint_table import joint_rows
from cli.joint_verdict import Joint, joint_of, joint_sentences
from cli.planner_output import json_text
from cli.planner_version import __version__
from cli.report_choice import chosen_by_speed
from cli.report_html_bill import accounts, bill_part
from cli.report_html_candidates import Candidate, candidates_of
from cli.report_html_compare import flips_of_speed, side_by_side
from cli.report_html_compared import choice_of, compared_candidates, compared_parts
from cli.report_html_compared_read import ComparisonFile
from cli.report_html_figures import figures
from cli.report_html_flips import flips_of_network
from cli.report_html_origin import clusters_command, origin
from cli.report_html_parts import Num, Part, table
from cli.report_html_plan import plan_parts
from cli.report_html_read import PlanFile
from cli.report_html_reasons import premises_of
from cli.report_html_sizes import budget_of, must_of, size_sentences
from cli.report_html_style import SCRIPT, STYLE, policy
from cli.report_html_verdict import comparison, listed, offers_of, taken
from cli.report_html_words import assumptions, recommendation, sources
from cli.report_pictures import safe
from planner.procure.prices import PriceList
from planner.words import counted


def report(
    plans: Sequence[PlanFile],
    prices: PriceList | None = None,
    tokens: float | None = None,
    compared: Sequence[ComparisonFile] = (),
) -> str:
    """Return the report about *plans*: one, or a comparison of several.

    Args:
        plans: at least one plan, or none where there is a comparison.
        prices: the reader's price list; without one no money is shown.
        tokens: of the whole training run, for its days and its cost [1].
        compared: what ``planner compare`` found, each file that was named.
    """
    names, asked = candidate_names(plans), candidate_names(compared)
    several = len(plans) > 1
    found = accounts(plans, prices, tokens)
    ours = candidates_of(plans, names, found)
    parts = [_recommended(plans, names, ours, compared, asked)]
    if several:
        pick = next(iter(taken(chosen_by_speed(offers_of(ours)), ours)), None)
        body = side_by_side(ours, "Plan", pick) + flips_of_speed(ours)
        body += flips_of_network(plans, names) + _ask_for_flips(plans, compared, prices)
        parts.append(Part(anchor="candidates", title="Plans side by side", body=body))
    for i, (file, name) in enumerate(zip(compared, asked, strict=True)):
        parts += compared_parts(file, name, f"-c{i}") if len(compared) > 1 else (
            compared_parts(file, "", "")
        )  # fmt: skip
    for i, (plan, name) in enumerate(zip(plans, names, strict=True)):
        parts += plan_parts(plan, i, name if several or compared else "")
    if plans:
        parts.append(bill_part(found, names, prices, tokens))
    parts += [
        _premises(plans, names, compared, asked),
        origin(plans, names, compared, prices, tokens),
    ]
    return _page(_title(plans, compared), parts)


def _title(plans: Sequence[PlanFile], compared: Sequence[ComparisonFile]) -> str:
    if compared:
        found = [(file.name, one) for file in compared for one in compared_candidates(file)]
        named = listed(list(dict.fromkeys(one.model for _, one in found)))
        each = {(name, one.name) for name, one in found}
        return f"{named}: {counted(len(each), 'candidate')} compared"
    if len(plans) > 1:
        models = {str(plan.document["inputs"]["model"]) for plan in plans}
        of = f"{models.pop()}: " if len(models) == 1 else ""
        return f"{of}{len(plans)} plans compared"
    first = plans[0].document["inputs"]
    return f"{first['model']} on {counted(first['gpus'], 'GPU')} of {first['cluster']}"


def _page(title: str, parts: Sequence[Part]) -> str:
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
        f'<body><a class="skip" href="#recommendation">To the recommendation</a>'
        f"<header><h1>{safe(title)}</h1></header>\n"
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


def candidate_names(plans: Sequence[PlanFile | ComparisonFile]) -> list[str]:
    """Return a short name for each file, no two alike: its own, numbered where needed.

    Of a file with a comparison for each of several models, it is that of the model.

    >>> candidate_names(())
    []
    """
    stems = [
        plan.of_model
        if isinstance(plan, ComparisonFile) and plan.of_model
        else plan.name.removesuffix(".json")
        for plan in plans
    ]
    return [f"{stem} ({i + 1})" if stems.count(stem) > 1 else stem for i, stem in enumerate(stems)]


def _recommended(
    plans: Sequence[PlanFile], names: Sequence[str], ours: Sequence[Candidate],
    compared: Sequence[ComparisonFile], asked: Sequence[str],
) -> Part:  # fmt: skip
    """Return what to take: of each comparison, where there is none of the plans."""
    body = ""
    for file, name in zip(compared, asked, strict=True):
        found = compared_candidates(file)
        choice = choice_of(file, found)
        sentences = [
            *comparison(choice, found, must_of(file.document), budget_of(file.document)),
            *size_sentences(file.document),
        ]  # fmt: skip
        model = found[0].model
        called = name if model in name else f"{name}: {model}"
        body += f"<h3>{safe(called)}</h3>" if len(compared) > 1 else ""
        body += _led(sentences) + _figures(taken(choice, found))
    joint = joint_of([file.document for file in compared]) if len(compared) > 1 else None
    if joint is not None:
        currency = next((bill["currency"] for bill in compared[0].document["bills"].values()), "")
        body = (
            "<h3>For all models</h3>" + _led(joint_sentences(joint, currency))
            + _joint_table(joint, [file.document for file in compared]) + body
        )  # fmt: skip
    body += _led(_same(compared, asked))
    if not compared and len(plans) == 1:
        cost = ours[0].cost.text if ours[0].cost else ""
        body += _led(recommendation(plans[0], cost)) + _figures(ours)
    elif not compared:
        choice = chosen_by_speed(offers_of(ours))
        said = comparison(choice, ours, "fits in memory")
        body += _led([*said, *_same(plans, names)]) + _figures(taken(choice, ours))
    files: list[PlanFile | ComparisonFile] = [*plans, *compared]
    for one, name in zip(files, [*names, *(file.name for file in compared)], strict=True):
        if not one.untouched:
            body += (
                f'<p class="warn">The inputs of {safe(name)} are not those its hash was taken of: '
                "the file was changed after it was made.</p>"
            )
    return Part(anchor="recommendation", title="Recommendation", body=body)


def _joint_table(joint: Joint, documents: Sequence[Mapping[str, Any]]) -> str:
    rows: list[list[str | Num]] = [
        [row.name, *(Num(cell.value, cell.text) for cell in row.cells)]
        for row in joint_rows(joint, documents)
    ]
    heads = ["With the layouts shown", *(one.cluster for one in joint.order)]
    return table("All models side by side", heads, rows)


def _led(sentences: Sequence[str]) -> str:
    return "".join(f'<p class="lead">{safe(sentence)}</p>' for sentence in sentences)


def _figures(picks: Sequence[Candidate]) -> str:
    """Return the figures at a glance, named where more than one is recommended."""
    return "".join(
        (f"<h4>{safe(one.name)}</h4>" if len(picks) > 1 else "") + figures(one) for one in picks
    )


def _same(files: Sequence[PlanFile | ComparisonFile], names: Sequence[str]) -> list[str]:
    """Return a sentence for files that were named twice, or copied."""
    alike: dict[str, list[str]] = {}
    for file, name in zip(files, names, strict=True):
        alike.setdefault(json_text(file.document), []).append(name)
    return [f"{listed(same)} hold the same." for same in alike.values() if len(same) > 1]


def _ask_for_flips(
    plans: Sequence[PlanFile], compared: Sequence[ComparisonFile], prices: PriceList | None
) -> str:
    """Return how the flips over rates of the network come into a report of plans."""
    if compared:
        return ""
    too = "by sequence length too" if prices is None else "by sequence length and price too"
    return (
        f"<p>Where another cluster wins with the layout that is best there, {too}, this command "
        "looks for; name its file beside the plans, and it stands here:</p>"
        "<pre><code>"
        + safe(clusters_command([plan.document["inputs"] for plan in plans], prices))
        + "</code></pre>"
    )


def _premises(
    plans: Sequence[PlanFile], names: Sequence[str], compared: Sequence[ComparisonFile],
    asked: Sequence[str],
) -> Part:  # fmt: skip
    """Return what the figures rest on; what several plans share stands once."""
    documents: list[Mapping[str, Any]] = [plan.document for plan in plans]
    whose = list(names)
    for file, of in zip(compared, asked, strict=True):
        first = {one["cluster"]: one["step"] for one in reversed(file.document["ranked"])}
        for name, question in file.clusters.items():
            if name in first:
                documents.append({"inputs": question, "step": first[name]})
                whose.append(f"{of}: {name}" if len(compared) > 1 else name)
    more = ["Of"] if len(documents) > 1 else []
    assumed = _shared([assumptions(one) for one in documents], whose)
    filed = _shared([sources(one) for one in documents], whose)
    premises = _shared([premises_of(one) for one in documents], whose)
    return Part(
        anchor="assumed",
        title="Assumed numbers and premises",
        body=table("Assumed: nobody stated these", ["Number", "Value and source", *more], assumed)
        + table("What must hold", ["Part", "Premise", *more], premises)
        + table("Where the cluster's figures come from", ["Figure", "Source", *more], filed),
    )


def _shared(found: Sequence[dict[str, str]], names: Sequence[str]) -> list[list[str]]:
    """Return a row for each different pair, and whose it is where there are several."""
    rows: dict[tuple[str, str], list[str]] = {}
    for pairs, name in zip(found, names, strict=True):
        for pair in pairs.items():
            rows.setdefault(pair, []).append(name)
    whose = {pair: "all" if len(n) == len(names) else ", ".join(n) for pair, n in rows.items()}
    return [[*pair, whose[pair]] if len(names) > 1 else list(pair) for pair in sorted(rows)]
