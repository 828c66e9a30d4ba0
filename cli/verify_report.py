"""The comparison behind ``planner verify``, as a document and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from cli.export_command import read_host_names
from cli.plan_cluster import read_planned
from cli.planner_inputs import Inputs
from cli.planner_options import DEFAULT_TIME_LIMIT_S
from cli.planner_output import document
from cli.planner_plan import seated_step
from cli.step_inputs import plan_sha256, read_plan_document
from cli.verify_efficiency import SHIPPED, timed_with
from cli.verify_machines import machine_changes, machine_sentences
from planner.documents import read_bytes
from planner.fabric import Fabric
from planner.layout import Layout
from planner.place import place
from planner.place.question import ask, cut_bytes
from planner.traffic import Family, step_families
from planner.units import format_bytes, format_time
from planner.words import plural
from topologies.allocated_seats import allocated_gpus, called_as_in, part_of
from topologies.export_launch import rank_map_text
from topologies.export_seats import seated_plan
from topologies.fabric_catalogue import is_foreign, load_cluster
from topologies.fabric_groups import machines_by_function
from topologies.fabric_import import ImportAsked, decoded, fabric_of, import_fabric
from topologies.import_allocation import read_allocation
from topologies.imported_cluster import split_options
from topologies.imported_machines import with_gpus

if TYPE_CHECKING:
    from rich.console import Console

_TIER = "supernode"
_SHOWN = 3
_SAME_SHARE = 1e-6
_WORTH_SHARE = 0.001  # of the step or the bytes: for less nobody seats a job anew
_NO_BYTES = dict.fromkeys(("cut_planned_bytes", "cut_allocated_bytes", "cut_best_bytes"), 0.0)


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
    real = planned if topology is None else _real(topology, planned)
    by_function = machines_by_function(real, names)
    given = read_allocation(decoded(content, allocation.name), allocation.name, by_function)
    given = called_as_in(given, names or tuple(host.name for host in real.hosts))
    seats = allocated_gpus(given, real, layout.gpus, names)
    taken = sorted(set(seats)) if given.by_rank else _all_of(given.hosts, real, names, layout.gpus)
    part = part_of(real, taken)
    best = place(layout, families, part, tier=_TIER, seed=seed, time_limit_s=limit_s)
    best_seats = tuple(taken[g] for g in best.rank_to_gpu)
    inputs = replace(seated.inputs, fabric=real)
    others = {one.name: tuple(taken[g] for g in one.rank_to_gpu) for one in best.baselines}
    fastest = _fastest(inputs, {"fewest bytes": best_seats, "as given": seats, **others})
    chosen = fastest.seats
    seatings = {
        "planned": (planned, seated.rank_to_gpu),
        "allocated": (real, seats),
        "best": (real, best_seats),
        "fastest": (real, chosen),
    }
    body = {
        "allocation": {"kind": given.kind, "machines": len(set(given.hosts)), "gpus": len(taken)},
        "machines": machine_changes(
            _machines(planned, names if topology is None else (), seated.rank_to_gpu),
            _machines(real, names, seats),
        ),
        "tier": _TIER,
        "timed_with": timed_with(read_plan_document(plan), seated.inputs),
        "planned": _judged(seated.inputs, planned, layout, families, seated.rank_to_gpu),
        "allocated": _judged(inputs, real, layout, families, seats),
        "best": {
            **_judged(inputs, real, layout, families, best_seats),
            "lower_bound_bytes": best.lower_bound_bytes,
            "proof": best.proof,
        },
        "fastest": {
            "order": fastest.order,
            **_judged(inputs, real, layout, families, chosen),
        },
        "tiers": _tier_cuts(layout, families, seatings),
        "groups": _crossing(layout, families, planned, seated.rank_to_gpu, real, seats, best_seats),
        "reordering": {
            "moved_ranks": sum(a != b for a, b in zip(seats, chosen, strict=True)),
            "gpus": [real.gpus[g] for g in chosen],
        },
    }
    told = {
        "plan_sha256": plan_sha256(plan),
        "allocation_sha256": sha256(content).hexdigest(),
        "hosts_sha256": None if hosts is None else sha256(read_bytes(hosts)).hexdigest(),
        "topology_sha256": None if topology is None else _file_sha256(str(topology)),
        "cluster": real.name,
        "gpus": layout.gpus,
        "seed": seed,
        "time_limit_s": limit_s,
        "assumed": real.assumed,
    }
    csv = seated_plan(layout, real, chosen, host_names=names)
    return Verdict(document=document("verify", told, body), rank_map=rank_map_text(csv))


def _machines(fabric: Fabric, names: Sequence[str], seats: Sequence[int]) -> list[str]:
    """Return the machine of each rank, by the real names where they are given."""
    called = tuple(names) or tuple(host.name for host in fabric.hosts)
    of_gpu = {g: name for name, host in zip(called, fabric.hosts, strict=True) for g in host.gpus}
    return [of_gpu[seat] for seat in seats]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    order: str
    seats: tuple[int, ...]


def _fastest(inputs: Inputs, orders: Mapping[str, Sequence[int]]) -> _Order:
    """Return the order with the shortest step; of those as short, the first.

    The fewest bytes are not always the shortest step: bytes may sit in few groups, and all wait.
    """
    steps = {name: float(seated_step(inputs, seats).total_s) for name, seats in orders.items()}
    least = min(steps.values()) * (1 + _SAME_SHARE)
    name = next(name for name, step_s in steps.items() if step_s <= least)
    return _Order(order=name, seats=tuple(orders[name]))


def _real(topology: Path, planned: Fabric) -> Fabric:
    """Return the real cluster; the planned one's GPUs of a machine where its file has none."""
    text = str(topology)
    if split_options(text)[1] is not None or not is_foreign(text):
        return replace(load_cluster(text), accelerator=planned.accelerator)
    per_host = max(len(host.gpus) for host in planned.hosts)
    asked = ImportAsked()
    found = import_fabric(topology, asked)
    if found.assumed.get("gpus_per_node", "").startswith("one for each adapter"):
        asked = replace(asked, gpus_per_host=per_host)
    real = fabric_of(with_gpus(found, per_host, "as the plan's machines"), asked)
    return replace(real, accelerator=planned.accelerator)


def _file_sha256(text: str) -> str:
    return sha256(read_bytes(split_options(text)[0])).hexdigest()


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


def _tier_cuts(
    layout: Layout,
    families: Sequence[Family],
    seatings: Mapping[str, tuple[Fabric, Sequence[int]]],
) -> list[dict[str, Any]]:
    """Return what crosses every tier's borders under each seating, innermost tier first.

    None where a seating's cluster has no such tier; a tier of one domain everywhere is left out.
    """
    names = dict.fromkeys(
        tier.name for fabric, _ in reversed(tuple(seatings.values())) for tier in fabric.tiers
        if len(tier.domains) > 1
    )  # fmt: skip
    rows = []
    for name in names:
        row: dict[str, Any] = {"tier": name}
        for kind, (fabric, seats) in seatings.items():
            row[f"cut_{kind}_bytes"] = None
            if name in {tier.name for tier in fabric.tiers}:
                question = ask(layout, families, fabric.capacities(name))
                home = fabric.domain_index(name)[np.array(seats)]
                row[f"cut_{kind}_bytes"] = float(cut_bytes(question, home))
        rows.append(row)
    return rows


def _crossing(
    layout: Layout,
    families: Sequence[Family],
    planned: Fabric,
    before: Sequence[int],
    real: Fabric,
    after: Sequence[int],
    best: Sequence[int],
) -> list[dict[str, Any]]:
    """Return, for each family, how many of its groups cross, and how much, then and now."""
    seatings = ((planned, before), (real, after), (real, best))
    homes = [fabric.domain_index(_TIER)[np.array(seats)] for fabric, seats in seatings]
    rows = []
    for family in families:
        members = np.asarray(family.members(layout))
        crosses = [(home[members] != home[members][:, :1]).any(axis=1) for home in homes]
        cuts = [
            cut_bytes(ask(layout, [family], fabric.capacities(_TIER)), home)
            for (fabric, _), home in zip(seatings, homes, strict=True)
        ]
        new = np.flatnonzero(crosses[1] & ~crosses[0])
        rows.append(
            {
                "family": family.name,
                "degree": family.digit,
                "groups": len(members),
                "group_size": members.shape[1],
                "crossing_planned": int(crosses[0].sum()),
                "crossing_allocated": int(crosses[1].sum()),
                "crossing_best": int(crosses[2].sum()),
                "cut_planned_bytes": float(cuts[0]),
                "cut_allocated_bytes": float(cuts[1]),
                "cut_best_bytes": float(cuts[2]),
                "newly_crossing": [members[i].tolist() for i in new[:_SHOWN]],
            }
        )
    return rows


def print_verdict(page: Console, found: dict[str, Any]) -> None:
    """Print *found* for a reader."""
    given = found["allocation"]
    page.print(f"Allocation: a {given['kind']}, {given['machines']} machines, {given['gpus']} GPUs")
    for sentence in machine_sentences(found["machines"]):
        page.print(sentence)
    page.print(_cuts_table(found))
    worse = [
        row for row in _by_degree(found["groups"])
        if row["crossing_allocated"] != row["crossing_planned"]
        or row["cut_allocated_bytes"] > row["cut_planned_bytes"] * (1 + _SAME_SHARE)
    ]  # fmt: skip
    for row in worse:
        page.print(
            f"  {row['degree'].upper()} {row['group_size']}: {row['crossing_allocated']} of "
            f"{row['groups']} groups cross, planned {row['crossing_planned']}; "
            f"{format_bytes(row['cut_allocated_bytes'])}, planned "
            f"{format_bytes(row['cut_planned_bytes'])}, at best "
            f"{format_bytes(row['cut_best_bytes'])}"
            + (f"; e.g. ranks {row['newly_crossing'][0][:8]}" if row["newly_crossing"] else "")
        )
    if not worse:
        page.print("No group crosses that the plan keeps inside a supernode.")
    for row in found["tiers"]:
        before, after = row["cut_planned_bytes"], row["cut_allocated_bytes"]
        if row["tier"] == _TIER or before is None or after is None:
            continue
        if after > before * (1 + _SAME_SHARE):
            page.print(
                f"But more crosses the borders of the {plural(row['tier'])} than planned: "
                f"{format_bytes(after)} against {format_bytes(before)}."
            )
    _print_best_order(page, found)
    if found["timed_with"] != SHIPPED:
        page.print(f"All seconds here are timed with {found['timed_with']}.")


def _cuts_table(found: Mapping[str, Any]) -> Table:
    """Return the bytes across every tier's borders and the step, as planned, given and at best."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("bytes of a step that cross")
    kinds = {"planned": "planned", "allocated": "as given", "best": "fewest bytes"}
    for title in kinds.values():
        table.add_column(title, justify="right")
    for row in found["tiers"]:
        cuts = [row[f"cut_{kind}_bytes"] for kind in kinds]
        table.add_row(
            plural(row["tier"]),
            *("no such tier" if cut is None else format_bytes(cut) for cut in cuts),
        )
    table.add_row("step", *(format_time(found[kind]["step_s"]) for kind in kinds))
    return table


def _by_degree(groups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the families that run on the same groups as one row, their bytes added."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for family in groups:
        same = ("degree", "groups", "group_size", "crossing_planned", "crossing_allocated")
        row = rows.setdefault(tuple(family[key] for key in same), {**family, **_NO_BYTES})
        for key in _NO_BYTES:
            row[key] += family[key]
    return list(rows.values())


def _fewer(tiers: Sequence[Mapping[str, Any]]) -> str:
    """Return, for each tier that the new order relieves, how much less crosses its borders."""
    said = []
    for row in tiers:
        given, new = row["cut_allocated_bytes"], row["cut_fastest_bytes"]
        if given is not None and given - new > given * _WORTH_SHARE:
            said.append(
                f"; {format_bytes(given - new)} less cross the borders of the {plural(row['tier'])}"
            )
    return "".join(said)


def _print_best_order(page: Console, found: dict[str, Any]) -> None:
    moved, fastest = found["reordering"]["moved_ranks"], found["fastest"]
    given, fewest = found["allocated"], found["best"]
    saved_s = given["step_s"] - fastest["step_s"]
    fewer = _fewer(found["tiers"])
    if moved and (saved_s > given["step_s"] * _WORTH_SHARE or fewer):
        page.print(
            f"Seated anew on the same machines ({fastest['order']}), {moved} ranks move and a step "
            f"takes {format_time(fastest['step_s'])}{fewer}: --rank-map FILE writes that order."
        )
    else:
        page.print(
            "No order that was tried on these machines is faster than the one given by 0.1 % or "
            "more."
        )
    if fewest["step_s"] > fastest["step_s"] * (1 + _SAME_SHARE):
        page.print(
            f"The fewest bytes ({format_bytes(fewest['cut_bytes'])}) are not the shortest step "
            f"here: {format_time(fewest['step_s'])}."
        )
