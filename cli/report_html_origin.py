"""Where a report comes from: hashes of its inputs, the version, the commands that made it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cli.planner_output import inputs_sha256
from cli.report_html_compared_read import ComparisonFile
from cli.report_html_parts import Part, table
from cli.report_html_read import PlanFile
from cli.report_html_words import OPTIONS, command_of
from cli.report_pictures import safe
from planner.procure.prices import PriceList

_ODD = re.compile(r"[^A-Za-z0-9._]+")  # what a name of a file can do without
_PRICES = ("--prices", "prices.yaml")  # its name is in no document


def origin(
    plans: Sequence[PlanFile], names: Sequence[str], compared: Sequence[ComparisonFile],
    prices: PriceList | None, tokens: float | None,
) -> Part:  # fmt: skip
    """Return the part that says what was read, and which commands ask for it again.

    Args:
        plans: that were named.
        names: what they are called.
        compared: the comparisons that were named.
        prices, tokens: as asked.
    """
    rows = [
        [name, plan.document["inputs"]["sha256"], plan.document["version"]]
        for plan, name in zip(plans, names, strict=True)
    ]
    commands = [f"{command_of(plan.document)} --out {shlex.quote(plan.name)}" for plan in plans]
    asked = ["planner", "report", *(plan.name for plan in plans)]
    rows += [
        [f"{file.name} {file.of_model}".rstrip(), file.document["inputs"]["sha256"],
         file.document["version"]]
        for file in compared
    ]  # fmt: skip
    commands += _compare_commands(compared)
    asked += dict.fromkeys(file.name for file in compared)
    if prices is not None:
        rows.append(["the price list", inputs_sha256({"prices": prices}), ""])
        asked += _PRICES
    asked += [] if tokens is None else ["--tokens", f"{tokens:g}"]
    commands.append(shlex.join([*asked, "--out", "report.html"]))
    body = (
        table("Hash of the inputs", ["File", "SHA-256 of its inputs", "Made by planner"], rows)
        + "<p>These commands ask for it again, from what the inputs say; what came from a file "
        "needs that file.</p><pre><code>" + safe("\n".join(commands)) + "</code></pre>"
    )
    return Part(anchor="origin", title="Where this comes from", body=body)


def _compare_commands(compared: Sequence[ComparisonFile]) -> list[str]:
    """Return a command for each comparison, one for those of several models in one file."""
    models: dict[str, list[str]] = {}
    for file in compared:
        if file.of_model:
            models.setdefault(file.name, []).append(file.of_model)
    found = [
        f"{compare_command(file.document['inputs'], models.get(file.name, ()))} "
        f"--out {shlex.quote(file.name)}"
        for file in compared
    ]
    return list(dict.fromkeys(found))


def clusters_command(asked: Sequence[Mapping[str, Any]], prices: PriceList | None) -> str:
    """Return the command that compares the clusters of plans, each with its best layout.

    Args:
        asked: the inputs of each plan, at least one.
        prices: the reader's list, if any, which is to be named again.
    """
    words = ["planner", "compare", *_clusters(asked)]
    words += ["--gpus", str(max(one["gpus"] for one in asked)), "--model", asked[0]["model"]]
    words += [] if prices is None else _PRICES
    return shlex.join([*words, "--json", "--out", "compared.json"])


def seat_commands(compared: ComparisonFile) -> str:
    """Return the commands that make a plan of each candidate, and a page with all of them."""
    inputs, clusters = compared.document["inputs"], compared.clusters
    lines: list[str] = []
    files: list[str] = []
    for one in compared.document["ranked"]:
        asked, layout = clusters[one["cluster"]], one["layout"]
        words = ["planner", "place", *_clusters([asked]), "--gpus", str(one["gpus"])]
        words += ["--model", asked["model"]]
        if inputs["layouts"]:
            words += ["--layout", f"{one['label']}.yaml"]
        else:
            for key, option in OPTIONS.items():
                words += [option, str(layout[key])] if key in layout else []
        words += [] if one["memory"]["fits"] else ["--ignore-memory"]
        called = f"{one['cluster']}-{one['label']}" if inputs["layouts"] else one["cluster"]
        called += f"-{compared.of_model}" if compared.of_model else ""
        plain = _ODD.sub("-", called).strip("-") or "plan"
        files.append(f"{plain}{f'-{len(files)}' if f'{plain}.json' in files else ''}.json")
        lines.append(shlex.join([*words, "--out", files[-1]]))
    page = ["planner", "report", compared.name, *files]
    page += [] if inputs["prices"] is None else _PRICES
    page += ["--out", "report.html"]
    return "\n".join([*lines, shlex.join(page)])


def _clusters(asked: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the options that name clusters, and those rebuilt with other supernodes."""
    words = []
    for name in dict.fromkeys(one["cluster_asked"] for one in asked):
        words += [] if name == "generic" else ["--cluster", name]
    rebuilt = dict.fromkeys(
        str(one["supernode"])
        for one in asked
        if one["cluster_asked"] == "generic" or "supernode.size" in one["assumed"]
    )
    return words + (["--supernode", ",".join(rebuilt)] if rebuilt else [])


def compare_command(inputs: Mapping[str, Any], models: Sequence[str] = ()) -> str:
    """Return the command that asks for a comparison again, prices from a file of one's own.

    Args:
        inputs: of the comparison, or of the first of several models.
        models: that were compared in one file; empty where it is of one model.
    """
    clusters, sizes = inputs["clusters"], inputs["sizes"]
    first = clusters[0]
    words = ["planner", "compare", *_clusters(clusters)]
    if sizes["equal"] == "gpus":
        words += ["--gpus", str(first["gpus"])]
    if models or "model" not in first["assumed"]:
        for model in models or (first["model"],):
            words += ["--model", model]
    launched = {Path(one["layout_file"]["file"]).stem: one["layout_file"]["file"]
                for one in clusters if "layout_file" in one}  # fmt: skip
    for name in inputs["layouts"]:
        words += ["--layout", launched.get(name, f"{name}.yaml")]
    given = set() if inputs["layouts"] else set(first["layout_given"])
    for key, option in OPTIONS.items():
        if key in first["layout"] and (key in given or (key == "zero_stage" and "zero" in given)):
            words += [option, str(first["layout"][key])]
    fits = [one["efficiency_file"]["file"] for one in clusters if "efficiency_file" in one]
    words += ["--efficiency", fits[0]] if fits else []
    for rule in inputs["where"]:
        words += ["--where", rule]
    if sizes["equal"] in {"money", "power"}:
        words += ["--equal", sizes["equal"]]
    if sizes["budget"] is not None:
        unit = " W" if sizes["equal"] == "power" else ""
        words += ["--budget", f"{sizes['budget']:.15g}{unit}"]
    words += [] if sizes["days"] is None else ["--days", f"{sizes['days']:g}"]
    words += [] if sizes["goodput_share"] == 1 else ["--goodput", f"{sizes['goodput_share']:g}"]
    words += [] if inputs["prices"] is None else _PRICES
    words += [] if inputs["tokens"] is None else ["--tokens", f"{inputs['tokens']:g}"]
    words += [] if inputs["seed"] == 0 else ["--seed", str(inputs["seed"])]
    words += ["--time-limit", f"{inputs['time_limit_s']:g}", "--json"]
    return shlex.join(words)
