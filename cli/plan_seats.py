"""The seats of a plan without its cluster's file, where the plan itself lists the machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cli.step_inputs import read_plan_document, told_of
from planner.errors import InputError
from planner.layout import Layout
from topologies.export_seats import Seat, SeatedPlan
from topologies.host_lists import HostListError, expand_hosts
from topologies.imported_links import gpu_names

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
    gpus = _gpus(told, rows, path)
    names = list(dict.fromkeys(gpu.machine for gpu in gpus))
    if host_names and len(host_names) != len(names):
        raise InputError(f"{len(host_names)} names for {len(names)} machines: expected as many")
    real = dict(zip(names, host_names or names, strict=True))
    wrong = [g for g in rank_to_gpu if not 0 <= g < len(gpus)]
    if wrong or len(set(rank_to_gpu)) != len(rank_to_gpu):
        raise InputError(
            f"{path}: placement.rank_to_gpu must name different GPUs of 0 to {len(gpus) - 1}"
        )
    domains = _domains(plan)
    layout = {f.name: told["layout"][f.name] for f in fields(Layout) if f.name in told["layout"]}
    return SeatedPlan(
        layout=Layout(**layout),
        fabric=None,
        seats=tuple(
            Seat(
                rank=rank,
                host=real[gpus[g].machine],
                slot=gpus[g].slot,
                gpu=gpus[g].name,
                supernode=domains.get(rank, gpus[g].machine),
            )
            for rank, g in enumerate(rank_to_gpu)
        ),
        host_names=tuple(real[name] for name in names),
        source=f"{len(rank_to_gpu)} ranks, from {path.name} alone",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gpu:
    """A GPU by name, its machine, and its number on it."""

    name: str
    machine: str
    slot: int


def _gpus(told: Mapping[str, Any], rows: Sequence[Any], path: Path) -> list[_Gpu]:
    """Return the GPUs of the plan's cluster in order, of a free list only those that were free.

    Args:
        told: the plan's inputs.
        rows: its machines, with as many GPUs as the plan may use.
        path: of the plan.
    """
    names: list[str] = []
    for row in rows:
        count = row.get("gpus") if isinstance(row, Mapping) else None
        hosts = row.get("hosts") if isinstance(row, Mapping) else None
        if type(count) is not int or not 0 <= count <= 1024 or not isinstance(hosts, str):
            raise InputError(f"{path}: inputs.fabric.machines: expected hosts and gpus")
        machines = _expanded(hosts, path)
        if len(names) + len(machines) * count > _MOST_GPUS:
            raise InputError(f"{path}: inputs.fabric.machines: more than {_MOST_GPUS:,} GPUs")
        names += [name for machine in machines for name in gpu_names(machine, count)]
    whole = [_gpu(name, path) for name in names]
    free = told.get("free")
    if free is None:
        return whole
    listed = free.get("hosts") if isinstance(free, Mapping) else None
    gpus = [_gpu(name, path) for name in _expanded(str(listed), path)]
    if [gpu.machine for gpu in gpus] != [gpu.machine for gpu in whole]:
        raise InputError(f"{path}: inputs.free does not list the GPUs of inputs.fabric.machines")
    return gpus


def _expanded(hosts: str, path: Path) -> tuple[str, ...]:
    try:
        return expand_hosts(hosts)
    except HostListError as error:
        raise InputError(*(f"{path}: {fault}" for fault in error.faults)) from None


def _gpu(name: str, path: Path) -> _Gpu:
    machine, _, number = name.rpartition(".gpu")
    if not (machine and number.isascii() and number.isdigit() and len(number) < 5):
        raise InputError(f"{path}: {name[:60]!r}: expected a GPU such as n01.gpu00")
    return _Gpu(name=name, machine=machine, slot=int(number))


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
