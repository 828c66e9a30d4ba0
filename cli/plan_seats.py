"""The seats of a plan without its cluster's file, where the plan itself lists the machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from cli.step_inputs import read_plan_document, told_of
from planner.errors import InputError
from planner.layout import Layout
from topologies.export_seats import Seat, SeatedPlan
from topologies.host_lists import HostListError, expand_hosts

_MOST_GPUS = 1_000_000


def seats_of_plan(path: Path, host_names: Sequence[str] = ()) -> SeatedPlan | None:
    """Return the plan in *path* without its cluster, or None where it lists no machines.

    Args:
        path: the document of ``planner place --out``, on an imported cluster.
        host_names: the machines' real names in the cluster's order; empty for those of the plan.

    Raises:
        InputError: machines or seats that do not belong together.
    """
    plan = read_plan_document(path)
    told, rank_to_gpu = told_of(path, plan)
    rows = told.get("fabric", {}).get("machines") if isinstance(told.get("fabric"), dict) else None
    if not isinstance(rows, list):
        return None
    homes = _homes(rows, path)
    names = list(dict.fromkeys(name for name, _ in homes))
    if host_names and len(host_names) != len(names):
        raise InputError(f"{len(host_names)} names for {len(names)} machines: expected as many")
    real = dict(zip(names, host_names or names, strict=True))
    wrong = [g for g in rank_to_gpu if not 0 <= g < len(homes)]
    if wrong or len(set(rank_to_gpu)) != len(rank_to_gpu):
        raise InputError(
            f"{path}: placement.rank_to_gpu must name different GPUs of 0 to {len(homes) - 1}"
        )
    domains = _domains(plan)
    layout = {f.name: told["layout"][f.name] for f in fields(Layout) if f.name in told["layout"]}
    return SeatedPlan(
        layout=Layout(**layout),
        fabric=None,
        seats=tuple(
            Seat(
                rank=rank,
                host=real[homes[g][0]],
                slot=homes[g][1],
                gpu=f"{homes[g][0]}.{homes[g][1]}",
                supernode=domains.get(rank, homes[g][0]),
            )
            for rank, g in enumerate(rank_to_gpu)
        ),
        host_names=tuple(real[name] for name in names),
        source=f"{len(rank_to_gpu)} ranks, from {path.name} alone",
    )


def _homes(rows: Sequence[Any], path: Path) -> list[tuple[str, int]]:
    """Return the machine of each GPU and its place in it."""
    homes: list[tuple[str, int]] = []
    for row in rows:
        gpus = row.get("gpus") if isinstance(row, Mapping) else None
        hosts = row.get("hosts") if isinstance(row, Mapping) else None
        if type(gpus) is not int or not 0 <= gpus <= 1024 or not isinstance(hosts, str):
            raise InputError(f"{path}: inputs.fabric.machines: expected hosts and gpus")
        try:
            names = expand_hosts(hosts)
        except HostListError as error:
            raise InputError(*(f"{path}: {fault}" for fault in error.faults)) from None
        if len(homes) + len(names) * gpus > _MOST_GPUS:
            raise InputError(f"{path}: inputs.fabric.machines: more than {_MOST_GPUS:,} GPUs")
        homes += [(name, slot) for name in names for slot in range(gpus)]
    return homes


def _domains(plan: Mapping[str, Any]) -> dict[int, str]:
    """Return the supernode of each rank, as far as the plan lists it."""
    found: dict[int, str] = {}
    placement = plan.get("placement")
    listed = placement.get("domains") if isinstance(placement, dict) else None
    for domain in listed if isinstance(listed, list) else ():
        if isinstance(domain, dict) and domain.get("tier") == "supernode":
            ranks, name = domain.get("ranks"), str(domain.get("name"))[:128]
            found |= {r: name for r in ranks if type(r) is int} if isinstance(ranks, list) else {}
    return found
