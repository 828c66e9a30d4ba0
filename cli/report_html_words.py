"""What a report says in sentences, from a plan's document alone."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from cli.planner_options import DEFAULT_TIME_LIMIT_S
from cli.report_html_read import PlanFile
from cli.report_words import part_words, shorter_words
from planner.units import format_bytes, format_share, format_time
from planner.words import counted, plural

DIGITS = {
    "tp": "tensor parallel", "cp": "context parallel", "ep": "expert parallel",
    "etp": "tensor parallel inside experts", "dp": "data parallel",
    "edp": "data parallel of experts", "pp": "pipeline",
}  # fmt: skip
PARTS = {
    "dp_shard": "shards of data parallel", "edp_shard": "shards of experts' data parallel",
    "dp_replicate": "replicas of shards",
}  # fmt: skip
OPTIONS = {
    "tp": "--tp", "cp": "--cp", "ep": "--ep", "etp": "--etp", "dp": "--dp", "pp": "--pp",
    "vpp": "--vpp", "dp_shard": "--dp-shard", "zero_stage": "--zero",
    "micro_batch": "--micro-batch", "global_batch": "--global-batch", "seq": "--seq",
    "recompute": "--recompute", "precision": "--precision",
}  # fmt: skip
_ASKED = (
    ("order", "--order", "tp-cp-ep-dp-pp"), ("tier", "--tier", "supernode"),
    ("objective", "--objective", "total"), ("tiers", "--tiers", "lexicographic"),
    ("reductions", "--reductions", "hierarchical"), ("seed", "--seed", 0),
)  # fmt: skip
_BOARD_SHARE = 0.01  # of a step: less decides no purchase, and stands with what crosses only
_ALIKE_SHARE = 5e-4  # of bytes: less would be told as 0 %
SEATINGS = {"megatron-order": "Megatron's rank order"}


def part_of(family: Mapping[str, Any]) -> str:
    """Return the digit of a family of groups, or with hybrid sharding its part of it."""
    return str(family.get("part", family["digit"]))


def family_words(family: Mapping[str, Any]) -> str:
    """Return what a family of groups is called, from an entry of a plan's ``traffic``.

    >>> family_words({"digit": "dp", "axes": ["cp", "dp"]})
    'DP (data and context parallel)'
    """
    digit = family["digit"]
    words = DIGITS[digit]
    if "part" in family:
        words = PARTS[family["part"]]
    elif digit == "dp" and any(axis.startswith("cp") for axis in family["axes"]):
        words = "data and context parallel"
    return f"{digit.upper()} ({words})"


def layout_words(layout: Mapping[str, Any]) -> str:
    """Return the degrees above 1 of a layout."""
    degrees = [
        f"{name} {layout[name]}"
        for name in ("tp", "cp", "ep", "etp", "dp", "pp")
        if layout[name] > 1
    ]
    if layout.get("dp_shard"):
        degrees.append(f"shards over {layout['dp_shard']}")
    if layout["vpp"] > 1:
        degrees.append(f"{layout['vpp']} virtual stages")
    return ", ".join(degrees) or "no parallelism"


def seating_words(name: str) -> str:
    """Return what a baseline is called."""
    return SEATINGS.get(name, name.replace("-", " "))


def proof_words(document: Mapping[str, Any]) -> str:
    """Return what is proved of a plan's cut, and how.

    Where the plan keeps rules its bound holds for the seatings that keep them, and for no others.
    """
    cut, ruled = document["cut"], "rules" in document
    of_what = {
        "bottleneck": " by its busiest border's time",
        "time": " by the bytes that its step exposes",
    }.get(cut["objective"], "")
    keeps = " that keeps the rules" if ruled else ""
    if cut["proof"] == "bound":
        which = keeps or " whatever"
        return f"no seating{which} can do better{of_what}: the lower bound is as high"
    if cut["proof"] == "solver":
        return f"the solver proved that no seating of its model{keeps} does better{of_what}"
    why = "the search ended with the bound below it, and "
    if cut.get("interrupted"):
        why = "the search was interrupted, and "
    elif cut["objective"] == "time":
        why = ""
    by = f" by a seating{keeps}" if ruled else ""
    return (
        f"not proved best{of_what}: {why}up to {format_share(cut['gap'])} could still be saved{by}"
    )


def recommendation(plan: PlanFile, million: str = "") -> list[str]:
    """Return the three sentences a board reads: what to do, what it brings, what is in doubt.

    Args:
        plan: what is recommended.
        million: what a million tokens cost, where that is known.
    """
    document = plan.document
    inputs, cut, step, memory = (document[k] for k in ("inputs", "cut", "step", "memory"))
    against = _against(document)
    verb = "Seat" if memory["fits"] else "Do not run this, for it does not fit in memory: seat"
    crosses = (
        f"{format_bytes(cut['objective_bytes'])} a step cross the border of a {cut['tier']}"
        f"{against}, and {proof_words(document)}"
        if cut["objective_bytes"] > 0
        else f"nothing leaves a {cut['tier']}, which no seating can better"
    )
    first = (
        f"{verb} {inputs['model']} on {counted(inputs['gpus'], 'GPU')} of {inputs['cluster']} with "
        f"{layout_words(inputs['layout'])}: {crosses}{_rules(document)}."
    )
    low, high = step["interval_s"]
    top = max(step["critical_path"], key=lambda entry: float(entry["seconds"]), default=None)
    most = (
        f"; most of it is {part_words(top['kind'], top['name'])}, {format_share(top['share'])}"
        if top is not None
        else ""
    )
    second = (
        f"A step takes {format_time(step['total_s'])}, which is {step['tokens_per_s']:,.0f} "
        f"tokens/s at {format_share(step['mfu'])} of {peak_words(inputs['layout'])}{most}"
        f"{f'; a million tokens cost {million}' if million else ''}."
    )
    shorter = shorter_elsewhere(document, _BOARD_SHARE)
    second += f" {shorter}" if shorter else ""
    assumed = len(assumptions(document))
    third = (
        f"In doubt: of such estimates 90 % fall between {format_time(low)} and "
        f"{format_time(high)}, {assumed} numbers are assumed (listed below), and the proof is "
        f"about {_proved_of(cut)}, not about the time of a step."
    )
    return [first, second, third]


def shorter_elsewhere(document: Mapping[str, Any], least_share: float = 5e-4) -> str:
    """Return what to say when a baseline takes less time than the plan, or nothing.

    Of a plan that keeps rules nothing: a baseline need not keep them.
    """
    if "rules" in document:
        return ""
    rivals = {seating_words(one["name"]): float(one["step_s"]) for one in document["baselines"]}
    return shorter_words(float(document["step"]["total_s"]), rivals, least_share)


def peak_words(layout: Mapping[str, Any]) -> str:
    """Return the peak that a step's share is of, as people read it."""
    return "the 16-bit peak" if layout["precision"] == "fp8" else "peak"


def _proved_of(cut: Mapping[str, Any]) -> str:
    return {
        "bottleneck": "the busiest border",
        "time": "bytes, weighed by how much of them a step shows",
    }.get(cut["objective"], f"bytes across {plural(cut['tier'])}")


def _rules(document: Mapping[str, Any]) -> str:
    """Return the rules that the plan keeps, for its first sentence; nothing without rules."""
    if "rules" not in document:
        return ""
    kept = document["rules"]["rules"]
    return f"; keeping the {'rule' if len(kept) == 1 else 'rules'}: {'; '.join(kept)}"


def _against(document: Mapping[str, Any]) -> str:
    ours = document["cut"]["objective_bytes"]
    for baseline in document["baselines"]:
        if baseline["name"] == "megatron-order":
            theirs, whose = baseline["cut_bytes"], seating_words("megatron-order")
            if abs(theirs - ours) <= _ALIKE_SHARE * ours:
                return f", as many as in {whose}"
            if theirs < ours:
                free = ", which need not keep the rules" if "rules" in document else ""
                return f", more than the {format_bytes(theirs)} of {whose}{free}"
            saved = format_share(1 - ours / theirs)
            return f", {saved} less than the {format_bytes(theirs)} of {whose}"
    return ""


def small_share(share: float) -> str:
    """Return a share, of which nobody needs to know that it is 0.0131 %.

    >>> small_share(0.000131), small_share(0.022), small_share(0.0)
    ('less than 0.1 %', '2.2 %', '0 %')
    """
    if share == 0:
        return "0 %"
    return "less than 0.1 %" if share < 0.001 else format_share(share, digits=2)


def assumptions(document: Mapping[str, Any]) -> dict[str, str]:
    """Return every assumed number and its source."""
    found = {**document["inputs"]["assumed"], **document["step"].get("assumed", {})}
    return {str(name): str(text) for name, text in sorted(found.items())}


def sources(document: Mapping[str, Any]) -> dict[str, str]:
    """Return where the cluster's figures come from."""
    found = document["inputs"]["fabric"].get("sources", {})
    return {str(name): str(text) for name, text in sorted(found.items())}


def _stated_by(launch: Mapping[str, Any]) -> set[str]:
    """Return the fields that a launch file states, shards that it spells by replicas, too."""
    stated = set(launch.get("fields", ()))
    return stated | {"dp_shard"} if "dp_replicate" in stated else stated


def command_of(document: Mapping[str, Any]) -> str:
    """Return the command that asks for this plan again: the same inputs, the same hash.

    What was left out is left out again, for that is among the inputs, too. Fields of the layout
    that no option names stand before it, as the file that they came from.
    """
    inputs, layout = document["inputs"], document["inputs"]["layout"]
    assumed, free = inputs["assumed"], inputs.get("free") or {}
    launch = inputs.get("layout_file") or {}
    words = ["planner", "place"]
    if inputs["cluster_asked"] != "generic":
        words += ["--cluster", inputs["cluster_asked"]]
    rebuilt = inputs["cluster_asked"] == "generic" or "supernode.size" in assumed
    if rebuilt and "cluster" not in assumed:
        words += ["--supernode", str(free.get("cluster_supernode") or inputs["supernode"])]
    if free.get("cluster_gpus") or assumed.get("gpus", "rebuilt").startswith("rebuilt"):
        words += ["--gpus", str(free.get("cluster_gpus") or inputs["gpus"])]
    if "model" not in assumed:
        words += ["--model", inputs["model"]]
    words += ["--free", free["file"]] if free else []
    for rule in inputs.get("rules", ()):
        words += ["--rule", rule]
    if "efficiency_file" in inputs:
        words += ["--efficiency", inputs["efficiency_file"]["file"]]
    words += ["--layout", launch["file"]] if launch else []
    given = set(inputs["layout_given"]) - _stated_by(launch)
    shown = {"dp_shard": layout["dp"], **layout}  # a layout that shards over all of dp has none
    for key, option in OPTIONS.items():
        if key in given or (key == "zero_stage" and "zero" in given):
            words += [option, str(shown[key])]
    others = sorted(given - set(OPTIONS) - {"zero", "order"})
    filed = {key: layout[key] for key in others if key in layout}
    if filed:
        words += ["--layout", "layout.yaml"]
    for key, option, default in _ASKED:
        if inputs.get(key, default) != default and key not in _stated_by(launch):
            words += [option, str(inputs[key])]
    limit_s = inputs["time_limit_s"]  # the default ends the solvers, not the run
    words += [] if limit_s == DEFAULT_TIME_LIMIT_S else ["--time-limit", f"{limit_s:g}"]
    words += [] if document["memory"]["fits"] else ["--ignore-memory"]
    command = shlex.join(str(word) for word in [*words, "--json"])
    return f"# layout.yaml: {json.dumps(filed)}\n{command}" if filed else command
