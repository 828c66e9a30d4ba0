"""What a report says in sentences, from a plan's document alone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from cli.report_html_read import PlanFile
from planner.units import format_bytes, format_share, format_time

DIGITS = {
    "tp": "tensor parallel", "cp": "context parallel", "ep": "expert parallel",
    "etp": "tensor parallel inside experts", "dp": "data parallel",
    "edp": "data parallel of experts", "pp": "pipeline",
}  # fmt: skip
_PARTS = {
    "gemm": "matrix products", "memory": "memory-bound work", "host": "kernel launches",
    "recompute": "recomputation", "bubble": "pipeline bubble", "update": "optimizer",
    "fixed": "data and logging",
}  # fmt: skip
_OPTIONS = {
    "tp": "--tp", "cp": "--cp", "ep": "--ep", "etp": "--etp", "dp": "--dp", "pp": "--pp",
    "vpp": "--vpp", "zero_stage": "--zero", "micro_batch": "--micro-batch",
    "global_batch": "--global-batch", "seq": "--seq", "recompute": "--recompute",
    "precision": "--precision",
}  # fmt: skip
SEATINGS = {"megatron-order": "Megatron's rank order"}


def layout_words(document: Mapping[str, Any]) -> str:
    """Return the degrees above 1 of the plan's layout."""
    layout = document["inputs"]["layout"]
    degrees = [
        f"{name} {layout[name]}"
        for name in ("tp", "cp", "ep", "etp", "dp", "pp")
        if layout[name] > 1
    ]
    if layout["vpp"] > 1:
        degrees.append(f"{layout['vpp']} virtual stages")
    return ", ".join(degrees) or "no parallelism"


def part_words(entry: Mapping[str, Any]) -> str:
    """Return what a part of the step is called."""
    if entry["kind"] == "communication":
        return f"{entry['name'].upper()} traffic"
    return str(_PARTS.get(entry["name"], entry["name"]))


def seating_words(name: str) -> str:
    """Return what a baseline is called."""
    return SEATINGS.get(name, name.replace("-", " "))


def proof_words(cut: Mapping[str, Any]) -> str:
    """Return what is proved of the cut, and how."""
    if cut["proof"] == "bound":
        return "no seating whatever can do better: the lower bound is as high"
    if cut["proof"] == "solver":
        return "the solver proved that no seating of its model does better"
    return (
        f"not proved best: the solver stopped at its time limit, and up to "
        f"{format_share(cut['gap'])} could still be saved"
    )


def recommendation(plan: PlanFile) -> list[str]:
    """Return the three sentences a board reads: what to do, what it brings, what is in doubt."""
    document = plan.document
    inputs, cut, step, memory = (document[k] for k in ("inputs", "cut", "step", "memory"))
    against = _against(document)
    verb = "Seat" if memory["fits"] else "Do not run this, for it does not fit in memory: seat"
    first = (
        f"{verb} {inputs['model']} on {inputs['gpus']:,} GPUs of {inputs['cluster']} with "
        f"{layout_words(document)}: {format_bytes(cut['objective_bytes'])} a step cross the border "
        f"of a {cut['tier']}{against}, and {proof_words(cut)}."
    )
    low, high = step["interval_s"]
    top = max(step["critical_path"], key=lambda entry: float(entry["seconds"]), default=None)
    most = (
        f"; most of it is {part_words(top)}, {format_share(top['share'])}"
        if top is not None
        else ""
    )
    second = (
        f"A step takes {format_time(step['total_s'])}, which is {step['tokens_per_s']:,.0f} "
        f"tokens/s at {format_share(step['mfu'])} of peak{most}."
    )
    assumed = len(assumptions(document))
    third = (
        f"In doubt: of such estimates 90 % fall between {format_time(low)} and "
        f"{format_time(high)}, {assumed} numbers are assumed (listed below), and the proof is "
        f"about bytes across {cut['tier']}s, not about the time of a step."
    )
    return [first, second, third]


def _against(document: Mapping[str, Any]) -> str:
    ours = document["cut"]["objective_bytes"]
    for baseline in document["baselines"]:
        if baseline["name"] == "megatron-order":
            theirs = baseline["cut_bytes"]
            if theirs <= ours:
                return f", as many as in {seating_words('megatron-order')}"
            return (
                f", {format_share(1 - ours / theirs)} less than the {format_bytes(theirs)} of "
                f"{seating_words('megatron-order')}"
            )
    return ""


def comparison(plans: Sequence[PlanFile], names: Sequence[str]) -> list[str]:
    """Return the three sentences about several plans: the best, by how much, and the doubt."""
    fitting = [i for i, plan in enumerate(plans) if plan.document["memory"]["fits"]]
    if not fitting:
        return [
            "None of the candidates fits in memory.",
            "The side-by-side table says what each needs.",
            "In doubt: memory is an estimate with a margin; a candidate close to it may fit.",
        ]
    work = {_work(plan) for plan in plans}
    order = sorted(fitting, key=lambda i: -float(plans[i].document["step"]["tokens_per_s"]))
    best = plans[order[0]].document
    rate = best["step"]["tokens_per_s"]
    first = (
        f"Take {names[order[0]]}: {rate:,.0f} tokens/s, a step of "
        f"{format_time(best['step']['total_s'])}, {format_bytes(best['cut']['objective_bytes'])} a "
        f"step across {best['cut']['tier']}s."
    )
    if len(order) == 1:
        second = "It is the only candidate that fits in memory."
    else:
        next_best = plans[order[1]].document["step"]["tokens_per_s"]
        second = (
            f"The next, {names[order[1]]}, brings {format_share(1 - next_best / rate)} fewer "
            "tokens a second: the winner flips when the first turns out that much slower, or "
            f"the next {format_share(rate / next_best - 1)} faster."
        )
    third = (
        f"In doubt: the 90 % intervals of {_overlapping(plans, order)} of the {len(order) - 1} "
        "others overlap the winner's; plans share one model of the step, so errors that they "
        "share do not change their order."
    )
    if len(work) > 1:
        third += (
            " The candidates do not do the same work (model, batch, sequence or GPUs differ): "
            "compare tokens a second with care."
        )
    return [first, second, third]


def _work(plan: PlanFile) -> tuple[Any, ...]:
    inputs = plan.document["inputs"]
    layout = inputs["layout"]
    return inputs["model"], inputs["gpus"], layout["global_batch"], layout["seq"]


def _overlapping(plans: Sequence[PlanFile], order: Sequence[int]) -> int:
    """Return how many others' intervals of tokens a second reach into the best's."""

    def rates(i: int) -> tuple[float, float]:
        step = plans[i].document["step"]
        tokens = step["tokens_per_s"] * step["total_s"]
        low_s, high_s = step["interval_s"]
        return tokens / max(high_s, 1e-12), tokens / max(low_s, 1e-12)

    least = rates(order[0])[0]
    return sum(rates(i)[1] >= least for i in order[1:])


def assumptions(document: Mapping[str, Any]) -> dict[str, str]:
    """Return every assumed number and its source."""
    found = {**document["inputs"]["assumed"], **document["step"].get("assumed", {})}
    return {str(name): str(text) for name, text in sorted(found.items())}


def sources(document: Mapping[str, Any]) -> dict[str, str]:
    """Return where the cluster's figures come from."""
    found = document["inputs"]["fabric"].get("sources", {})
    return {str(name): str(text) for name, text in sorted(found.items())}


def command_of(document: Mapping[str, Any]) -> str:
    """Return the command that asks for this plan again."""
    inputs, layout = document["inputs"], document["inputs"]["layout"]
    words = ["planner", "place"]
    if inputs["cluster_asked"] != "generic":
        words += ["--cluster", inputs["cluster_asked"]]
    if inputs["cluster_asked"] == "generic" or "supernode.size" in inputs["assumed"]:
        words += ["--supernode", str(inputs["supernode"])]
    words += ["--gpus", str(inputs["gpus"]), "--model", inputs["model"]]
    given = set(inputs["layout_given"])
    for key, option in _OPTIONS.items():
        if key in given or (key == "zero_stage" and "zero" in given):
            words += [option, str(layout[key])]
    words += ["--order", inputs["order"], "--tier", inputs["tier"], "--seed", str(inputs["seed"])]
    words += ["--time-limit", f"{inputs['time_limit_s']:g}", "--json"]
    return shlex.join(str(word) for word in words)
