"""Where the parts of a plan contradict each other: what is counted again is not what is written.

Nothing here is shared with what made the plan: bytes are counted from the ranks' seats and the
traffic in the file (``cli.report_html_traffic``), sums and shares from their parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import isclose, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cli.report_html_traffic import crossings, homes_in, total_cut_bytes
from planner.units import format_bytes, format_share, format_time

if TYPE_CHECKING:
    from cli.report_html_read import PlanFile

_MOST_STAGES = 1024
_MOST_GPUS = 1_000_000  # as many as planner place takes
_SAME_SHARE = 1e-6  # a solver proves to 1e-6, and sums are taken in another order here
_SAME_BYTES = 1.0  # of a sum of floats


def contradictions(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the counts of a plan do not agree: axes, seats, domains, lists of one length."""
    axes, placement = document["axes"], document["placement"]
    ranks = len(placement["rank_to_gpu"])
    stride = 1
    for i, axis in enumerate(axes):
        if axis["stride"] != stride:
            yield f"axes[{i}].stride: expected {stride}, got {axis['stride']}"
            return
        stride *= axis["size"]
    if stride != ranks:
        yield f"axes: have {stride} ranks in all, placement.rank_to_gpu has {ranks}"
    if len(set(placement["rank_to_gpu"])) != ranks:
        yield "placement.rank_to_gpu: two ranks on one GPU"
    if len(placement["gpus"]) != ranks:
        yield f"placement.gpus: expected {ranks} names, got {len(placement['gpus'])}"
    elif len(set(placement["gpus"])) != ranks:
        twice = Counter(placement["gpus"]).most_common(1)[0][0]
        yield f"placement.gpus: {twice[:60]!r} holds two ranks"
    held = [rank for domain in placement["domains"] for rank in domain["ranks"]]
    if sorted(held) != list(range(ranks)):
        yield f"placement.domains: must hold each rank from 0 to {ranks - 1} exactly once"
    for i, domain in enumerate(placement["domains"]):
        if len(domain["ranks"]) > domain["capacity"]:
            yield (
                f"placement.domains[{i}]: {len(domain['ranks'])} ranks on {domain['capacity']} GPUs"
            )
    yield from _layout_contradictions(document, ranks)
    yield from _tier_contradictions(document)
    names = {axis["name"] for axis in axes}
    for i, family in enumerate(document["traffic"]):
        unknown = [name for name in family["axes"] if name not in names]
        if unknown or not family["axes"]:
            yield f"traffic[{i}].axes: expected some of {sorted(names)}, got {family['axes']}"
        else:
            yield from _family_contradictions(f"traffic[{i}]", family, axes, ranks)
    yield from _stage_contradictions(document)
    yield from _answer_contradictions(document)


def _layout_contradictions(document: Mapping[str, Any], ranks: int) -> Iterator[str]:
    """Yield where the layout of the inputs is not that of the axes."""
    inputs, axes = document["inputs"], document["axes"]
    if inputs["gpus"] != ranks:
        yield f"inputs.gpus: expected {ranks}, one for each rank seated, got {inputs['gpus']}"
    for digit in ("tp", "cp", "dp", "pp"):
        size = prod(
            axis["size"] for axis in axes if axis["name"].rstrip("0123456789") == digit
        )  # an axis that the traffic divides has a number behind its name
        if inputs["layout"][digit] != size:
            yield f"inputs.layout.{digit}: expected {size} by the axes, got " + str(
                inputs["layout"][digit]
            )


def _tier_contradictions(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the domains and seats are not those of the cluster's tiers."""
    placement, cut = document["placement"], document["cut"]
    filed = {tier["tier"]: tier["capacities"] for tier in document["inputs"]["fabric"]["tiers"]}
    for name, sizes in filed.items():
        if sum(sizes) > _MOST_GPUS:
            yield (
                f"inputs.fabric.tiers: {name[:60]} has {sum(sizes):,} GPUs; at most {_MOST_GPUS:,}"
            )
            return
        last = max(placement["rank_to_gpu"], default=0)
        if last >= sum(sizes):
            yield (
                f"placement.rank_to_gpu: GPU {last} of the {sum(sizes):,} "
                f"of tier {name[:60]}; they are numbered from 0"
            )
            return
    for i, tier in enumerate(document["tiers"]):
        if tier["tier"] not in filed:
            yield (
                f"tiers[{i}].tier: {tier['tier'][:60]!r} is none of inputs.fabric.tiers: "
                f"{', '.join(filed)[:60]}"
            )
    capacities = [domain["capacity"] for domain in placement["domains"]]
    if cut["tier"] not in {tier["tier"] for tier in document["tiers"]}:
        yield f"tiers: expected {cut['tier'][:60]!r}, the tier of the cut, among them"
    if cut["tier"] not in filed:
        yield f"cut.tier: {cut['tier'][:60]!r} is none of inputs.fabric.tiers"
    elif list(filed[cut["tier"]]) != capacities:
        yield "placement.domains: their capacities are not those of inputs.fabric.tiers"


def _family_contradictions(
    at: str, family: Mapping[str, Any], axes: Sequence[Mapping[str, Any]], ranks: int
) -> Iterator[str]:
    """Yield where a family's groups are not those along its axes."""
    along = prod(axis["size"] for axis in axes if axis["name"] in family["axes"])
    members = 2 if family["ends_only"] else along
    if family["group_size"] != members:
        yield f"{at}.group_size: expected {members} by its axes, got {family['group_size']}"
    if family["groups"] * along != ranks:
        yield f"{at}.groups: expected {ranks // along} by its axes, got {family['groups']}"


def _stage_contradictions(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the stages of a plan's step do not agree with its axes or with each other."""
    if "stages" not in document:
        return
    stages = document["stages"]
    wanted = 1
    for axis in document["axes"]:
        wanted *= axis["size"] if axis["name"].rstrip("0123456789") == "pp" else 1
    lists = {key: stages[key] for key in ("forward_s", "backward_s", "weights_s")}
    for key in ("traffic_s", "exposed_s"):
        lists |= {f"{key}.{family[:20]}": values for family, values in stages[key].items()}
    for key, values in lists.items():
        if len(values) != wanted:
            yield f"stages.{key}: expected {wanted} numbers, one a stage, got {len(values)}"
    if stages["chunks"] > 1 and (stages["micro_batches"] % wanted or stages["schedule"] != "1f1b"):
        yield (
            f"stages.micro_batches: {stages['micro_batches']} of {stages['chunks']} virtual stages "
            f"do not go round {wanted} stages"
        )
    halves = stages["micro_batches"] % 2 or wanted % 2 or stages["micro_batches"] < 2 * wanted
    if stages["schedule"] == "dualpipe" and wanted > 1 and halves:
        yield (
            f"stages.micro_batches: {stages['micro_batches']} do not meet in {wanted} stages: "
            "DualPipe needs both even, and two micro-batches a stage"
        )
    most = max(stages["chunks"], wanted, 1)
    if most > _MOST_STAGES:
        yield f"stages: expected at most {_MOST_STAGES} stages and virtual stages, got {most}"


def _answer_contradictions(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the steps at other rates of the network are not one for each factor."""
    if "answers" not in document:
        return
    nic = document["inputs"]["fabric"].get("nic", {})
    for key in ("line_bytes_per_s", "in_flight"):
        value = nic.get(key) if isinstance(nic, dict) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            yield f"inputs.fabric.nic.{key}: expected a number above 0, got {value!r:.40}"
    if not document["inputs"]["fabric"].get("tiers"):
        yield "inputs.fabric.tiers: expected one at least"
    factors = document["answers"]["factors"]
    if 1 not in factors or any(b <= a for a, b in pairwise([0, *factors])):
        yield "answers.factors: expected rising numbers above 0 with 1 among them"
        return
    total_s = document["step"]["total_s"]
    for name, steps in document["answers"]["step_s"].items():
        at = f"answers.step_s.{name[:20]}"
        if len(steps) != len(factors) or min(steps, default=0) <= 0:
            yield f"{at}: expected {len(factors)} numbers above 0, one a factor"
        elif not _same(steps[factors.index(1)], total_s):
            yield f"{at}: {format_time(steps[factors.index(1)])} at today's, the step takes " + (
                format_time(total_s)
            )


def recounted(plan: PlanFile) -> Iterator[str]:
    """Yield where figures of a plan are not what its seats, its traffic and its parts give."""
    yield from _seats_recounted(plan)
    yield from _cut_recounted(plan)
    document = plan.document
    yield from step_recounted(document["step"], document["inputs"]["layout"])
    yield from part_recounted(document, document["inputs"]["gpus"])
    yield from memory_recounted(document["memory"])


def _seats_recounted(plan: PlanFile) -> Iterator[str]:
    """Yield where a rank's GPU is in another domain than the rank."""
    placement = plan.document["placement"]
    homes = homes_in(plan, [domain["capacity"] for domain in placement["domains"]])
    for rank in np.flatnonzero(homes != plan.home)[:1]:
        names = [domain["name"][:60] for domain in placement["domains"]]
        yield (
            f"placement.rank_to_gpu[{rank}]: GPU {placement['rank_to_gpu'][rank]} is one of "
            f"{names[homes[rank]]}, placement.domains has the rank in {names[plan.home[rank]]}"
        )


def _cut_recounted(plan: PlanFile) -> Iterator[str]:
    """Yield where bytes that cross, counted from the seats, are not those of the file."""
    document = plan.document
    cut = document["cut"]
    found = crossings(plan)
    total = sum(crossing.cut_bytes for crossing in found)
    for key in ("objective_bytes", "checked_bytes"):
        if not same_bytes(cut[key], total):
            yield f"cut.{key}: {differ(cut[key], total)}"
    by_family = {crossing.family["family"]: crossing.cut_bytes for crossing in found}
    for name, written in cut["by_family"].items():
        if not same_bytes(written, by_family.get(name, 0.0)):
            yield f"cut.by_family.{name[:60]}: {differ(written, by_family.get(name, 0.0))}"
    for name, counted in by_family.items():
        if name not in cut["by_family"] and counted > _SAME_BYTES:
            yield f"cut.by_family.{name[:60]}: is missing; {format_bytes(counted)} of it cross"
    filed = {tier["tier"]: tier["capacities"] for tier in document["inputs"]["fabric"]["tiers"]}
    for i, tier in enumerate(document["tiers"]):
        counted = total_cut_bytes(plan, homes_in(plan, filed[tier["tier"]]))
        if not same_bytes(tier["cut_bytes"], counted):
            yield f"tiers[{i}].cut_bytes: {differ(tier['cut_bytes'], counted)}"
    if cut["objective"] == "total":
        yield from bound_recounted(cut, total)
        yield from _baseline_contradictions(document)


def bound_recounted(cut: Mapping[str, Any], total: float) -> Iterator[str]:
    """Yield where bound, gap and proof of a cut cannot all be true of the *total* that crosses."""
    least = cut["lower_bound_bytes"]
    if least > total and not same_bytes(least, total):
        yield (
            f"cut.lower_bound_bytes: {format_bytes(least)} is above the {format_bytes(total)} that "
            "cross: it is no bound"
        )
    gap = max(0.0, 1 - least / total) if total > 0 else 0.0
    if abs(gap - cut["gap"]) > _SAME_SHARE:
        yield f"cut.gap: expected {format_share(gap)} by the bound, got {format_share(cut['gap'])}"
    if cut["proof"] != "time_limit" and gap > _SAME_SHARE:
        yield f"cut.proof: {cut['proof']!r} with a gap of {format_share(gap)}: nothing is proved"


def _baseline_contradictions(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield which baselines cross less than what was proved the least."""
    least = document["cut"]["lower_bound_bytes"]
    if "rules" in document:  # a baseline need not keep them
        return
    for i, baseline in enumerate(document["baselines"]):
        if baseline["cut_bytes"] < least and not same_bytes(baseline["cut_bytes"], least):
            yield (
                f"baselines[{i}].cut_bytes: {format_bytes(baseline['cut_bytes'])} is below the "
                f"lower bound, {format_bytes(least)}"
            )


def step_recounted(step: Mapping[str, Any], layout: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the figures of a step do not follow from its parts and its layout."""
    total_s = step["total_s"]
    low_s, high_s = step["interval_s"]
    if not low_s <= high_s:
        yield f"step.interval_s: expected the lesser first, got {low_s} and {high_s}"
    elif not low_s <= total_s <= high_s:
        yield f"step.interval_s: {format_time(total_s)}, the step, is not in it"
    tokens_per_s = layout["global_batch"] * layout["seq"] / total_s
    if not _same(step["tokens_per_s"], tokens_per_s):
        yield (
            f"step.tokens_per_s: expected {tokens_per_s:,.0f} by batch, sequence and step, got "
            f"{step['tokens_per_s']:,.0f}"
        )
    path = step["critical_path"]
    parts_s = sum(entry["seconds"] for entry in path)
    if path and not _same(parts_s, total_s):
        yield (
            f"step.critical_path: its parts are {format_time(parts_s)} in all, the step takes "
            f"{format_time(total_s)}"
        )
    for i, entry in enumerate(path):
        if abs(entry["share"] - entry["seconds"] / total_s) > _SAME_SHARE:
            yield (
                f"step.critical_path[{i}].share: expected "
                f"{format_share(entry['seconds'] / total_s)}, got {format_share(entry['share'])}"
            )


def memory_recounted(memory: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the figures of a memory do not follow from its parts."""
    worst, parts = memory["worst_stage_bytes"], sum(memory["parts"].values())
    if not same_bytes(worst, parts):
        yield f"memory.worst_stage_bytes: {differ(worst, parts)}"
    fullest = max(
        (sum(stage["parts"].values()) for stage in memory.get("by_stage", ())), default=worst
    )
    if not same_bytes(worst, fullest):
        yield f"memory.by_stage: {differ(fullest, worst)}"
    needed, capacity = worst + memory.get("margin_bytes", 0.0), memory["capacity_bytes"]
    if memory["fits"] != (needed <= capacity) and not same_bytes(needed, capacity):
        yield (
            f"memory.fits: {format_bytes(needed)} are needed of {format_bytes(capacity)}, got "
            f"{str(memory['fits']).lower()}"
        )


def _same(a: float, b: float) -> bool:
    return isclose(a, b, rel_tol=_SAME_SHARE)


def same_bytes(a: float, b: float) -> bool:
    """Return whether two sums of bytes are one, taken in another order."""
    return isclose(a, b, rel_tol=_SAME_SHARE, abs_tol=_SAME_BYTES)


def differ(written: float, counted: float) -> str:
    """Return what to say of bytes that are not those counted again."""
    return f"{format_bytes(written)} in the file, {format_bytes(counted)} when counted again"


def part_recounted(document: Mapping[str, Any], gpus: int) -> Iterator[str]:
    """Yield where ``part_used`` of a plan or of an entry contradicts itself or the rest.

    Args:
        document: the plan or the entry; with no such part nothing is yielded.
        gpus: of its job [1].
    """
    part = document.get("part_used")
    if part is None:
        return
    used = part["gpus_of_each"] * part["supernodes"]
    if used != gpus:
        yield f"part_used.gpus_of_each: expected {gpus:,} GPUs in all, got {used:,}"
    if part["cluster_gpus"] <= used or part["cluster_gpus"] % part["supernodes"]:
        yield (
            f"part_used.cluster_gpus: expected a multiple of {part['supernodes']:,} above "
            f"{used:,}, got {part['cluster_gpus']:,}"
        )
    step_s = document["step"]["total_s"]
    if part["step_s"] >= step_s:
        yield (
            f"part_used.step_s: expected less than the step, {format_time(step_s)}, got "
            f"{format_time(part['step_s'])}"
        )
