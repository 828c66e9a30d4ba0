"""The comparison behind ``planner verify``, as a document and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cli.export_command import read_host_names
from cli.plan_cluster import read_planned
from cli.planner_inputs import Inputs
from cli.planner_output import document
from cli.planner_plan import DEFAULT_TIME_LIMIT_S, seated_step
from planner.documents import read_bytes
from planner.fabric import Fabric
from planner.layout import Layout
from planner.place import place
from planner.place.question import ask, cut_bytes
from planner.traffic import Family, step_families
from planner.units import format_bytes, format_time
from topologies.allocated_seats import allocated_gpus, part_of
from topologies.export_launch import rank_map_text
from topologies.export_seats import seated_plan
from topologies.fabric_import import ImportAsked, decoded, fabric_of, import_fabric
from topologies.import_allocation import read_allocation

if TYPE_CHECKING:
    from rich.console import Console

_TIER = "supernode"
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found.

    Args:
        document: for ``--json``.
        rank_map: the best order on the allocation, as a CSV.
    """

    document: dict[str, Any]
    rank_map: str


def verdict(
    plan: Path,
    allocation: Path,
    *,
    hosts: Path | None = None,
    topology: Path | None = None,
    cluster: str | None = None,
    seed: int = 0,
    time_limit_s: float | None = None,
) -> Verdict:
    """Return how far *allocation* is from *plan*; the arguments are those of the command."""
    limit_s = time_limit_s or DEFAULT_TIME_LIMIT_S
    seated = read_planned(plan, cluster=cluster, seed=seed)
    layout, planned = seated.inputs.layout, seated.inputs.fabric
    families = step_families(seated.inputs.model, layout)
    names = read_host_names(hosts) if hosts is not None else ()
    content = read_bytes(allocation)
    given = read_allocation(decoded(content, allocation.name), allocation.name)
    real = planned if topology is None else _real(topology, planned)
    seats = allocated_gpus(given, real, layout.gpus, names)
    taken = sorted(set(seats)) if given.by_rank else _all_of(given.hosts, real, names, layout.gpus)
    part = part_of(real, taken)
    best = place(layout, families, part, tier=_TIER, seed=seed, time_limit_s=limit_s)
    best_seats = tuple(taken[g] for g in best.rank_to_gpu)
    inputs = replace(seated.inputs, fabric=real)
    body = {
        "allocation": {"kind": given.kind, "machines": len(set(given.hosts)), "gpus": len(taken)},
        "tier": _TIER,
        "planned": _judged(seated.inputs, planned, layout, families, seated.rank_to_gpu),
        "allocated": _judged(inputs, real, layout, families, seats),
        "best": {
            **_judged(inputs, real, layout, families, best_seats),
            "lower_bound_bytes": best.lower_bound_bytes,
            "proof": best.proof,
        },
        "groups": _crossing(layout, families, planned, seated.rank_to_gpu, real, seats),
        "reordering": {
            "moved_ranks": sum(a != b for a, b in zip(seats, best_seats, strict=True)),
            "gpus": [real.gpus[g] for g in best_seats],
        },
    }
    told = {
        "plan_sha256": sha256(plan.read_bytes()).hexdigest(),
        "allocation_sha256": sha256(content).hexdigest(),
        "hosts_sha256": None if hosts is None else sha256(hosts.read_bytes()).hexdigest(),
        "topology_sha256": None if topology is None else sha256(topology.read_bytes()).hexdigest(),
        "cluster": real.name,
        "gpus": layout.gpus,
        "seed": seed,
        "time_limit_s": limit_s,
        "assumed": real.assumed,
    }
    csv = seated_plan(layout, real, best_seats, host_names=names)
    return Verdict(document=document("verify", told, body), rank_map=rank_map_text(csv))


def _real(topology: Path, planned: Fabric) -> Fabric:
    """Return the real cluster, with the planned one's GPUs in a machine and its rates."""
    per_host = max(len(host.gpus) for host in planned.hosts)
    asked = ImportAsked(gpus_per_host=per_host)
    found = import_fabric(topology, asked)
    real = fabric_of(found, asked)
    return replace(real, accelerator=planned.accelerator)


def _all_of(hosts: Sequence[str], fabric: Fabric, names: Sequence[str], ranks: int) -> list[int]:
    """Return every GPU of the machines given: the best order may leave out others than the last."""
    known = tuple(names) or tuple(host.name for host in fabric.hosts)
    wanted = set(hosts)
    gpus = [
        g for name, host in zip(known, fabric.hosts, strict=True) if name in wanted
        for g in host.gpus
    ]  # fmt: skip
    return sorted(gpus) if len(gpus) >= ranks else gpus


def _judged(
    inputs: Inputs, fabric: Fabric, layout: Layout, families: Sequence[Family], seats: Sequence[int]
) -> dict[str, Any]:
    """Return the bytes that cross supernodes and the step's seconds of one seating."""
    question = ask(layout, families, fabric.capacities(_TIER))
    home = fabric.domain_index(_TIER)[np.array(seats)]
    return {
        "cut_bytes": float(cut_bytes(question, home)),
        "step_s": float(seated_step(inputs, seats).total_s),
    }


def _crossing(
    layout: Layout,
    families: Sequence[Family],
    planned: Fabric,
    before: Sequence[int],
    real: Fabric,
    after: Sequence[int],
) -> list[dict[str, Any]]:
    """Return, for each family, how many of its groups cross now and did in the plan."""
    rows = []
    for family in families:
        members = np.asarray(family.members(layout))
        crosses = []
        for fabric, seats in ((planned, before), (real, after)):
            home = fabric.domain_index(_TIER)[np.array(seats)][members]
            crosses.append((home != home[:, :1]).any(axis=1))
        new = np.flatnonzero(crosses[1] & ~crosses[0])
        rows.append(
            {
                "family": family.name,
                "groups": len(members),
                "crossing_planned": int(crosses[0].sum()),
                "crossing_allocated": int(crosses[1].sum()),
                "newly_crossing": [members[i].tolist() for i in new[:_SHOWN]],
            }
        )
    return rows


def print_verdict(page: Console, found: dict[str, Any]) -> None:
    """Print *found* for a reader."""
    given = found["allocation"]
    page.print(f"Allocation: a {given['kind']}, {given['machines']} machines, {given['gpus']} GPUs")
    for name in ("planned", "allocated", "best"):
        row = found[name]
        page.print(
            f"  {name:10} {format_bytes(row['cut_bytes']):>10} cross supernodes in a step, "
            f"step {format_time(row['step_s'])}"
        )
    worse = [g for g in found["groups"] if g["crossing_allocated"] != g["crossing_planned"]]
    for row in worse:
        page.print(
            f"  {row['family']}: {row['crossing_allocated']} of {row['groups']} groups cross, "
            f"planned {row['crossing_planned']}"
            + (f", e.g. ranks {row['newly_crossing'][0][:8]}" if row["newly_crossing"] else "")
        )
    if not worse:
        page.print("No group crosses that the plan keeps inside a supernode.")
    moved = found["reordering"]["moved_ranks"]
    saved = found["allocated"]["cut_bytes"] - found["best"]["cut_bytes"]
    if saved > 0:
        page.print(
            f"Seated anew on the same machines, {moved} ranks move and {format_bytes(saved)} a "
            "step no longer cross: --rank-map FILE writes that order."
        )
    else:
        page.print("No order of the ranks on these machines crosses less than the one given.")
