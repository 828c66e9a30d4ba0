"""Where the ranks of ``planner step`` sit: in order, at the optimum, or as a plan says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from cli.planner_inputs import Asked, Inputs, read_inputs
from cli.search_inputs import read_even_if_overfull
from planner.documents import content_of
from planner.errors import InputError
from planner.layout import Layout
from planner.model import ModelSpec
from topologies.file_kinds import handed_as
from topologies.own_efficiency import planned_fits

_MOST_GPUS = 1_000_000
_LARGEST = 10**12
_SHOWN = 20
_MOST_BYTES = 64 * 2**20
"""A plan of a million ranks has 57 MB."""
_WHOLE = ("cluster_gpus", "cluster_supernode")  # of the cluster that a free list cuts down


@dataclass(frozen=True, slots=True, kw_only=True)
class Seated:
    """Inputs with every rank's seat.

    Args:
        inputs: cluster, model, layout.
        rank_to_gpu: index of each rank's GPU.
        source: ``order``, ``optimal`` or the plan's file.
        asked: what they were read from.
    """

    inputs: Inputs
    rank_to_gpu: tuple[int, ...]
    source: str
    asked: Asked


def read_seated(asked: Asked, placement: str, *, seed: int, time_limit_s: float) -> Seated:
    """Return the inputs and seats.

    Args:
        asked: what the user gave.
        placement: ``order``, ``optimal`` or the path of a plan.
        seed: of the placement.
        time_limit_s: for the placement [s].
    """
    if placement == "order":
        inputs = read_even_if_overfull(asked)
        seats = tuple(range(inputs.gpus))
        return Seated(inputs=inputs, rank_to_gpu=seats, source=placement, asked=asked)
    if placement == "optimal":
        from cli.planner_plan import make_plan  # noqa: PLC0415 - the solver is not always needed

        inputs = read_even_if_overfull(asked)
        seats = make_plan(inputs, seed=seed, time_limit_s=time_limit_s).placement.rank_to_gpu
        return Seated(inputs=inputs, rank_to_gpu=seats, source=placement, asked=asked)
    if not Path(placement).exists():
        raise InputError(
            f"--placement {placement}: No such file or directory; give order, optimal, or the file "
            "that planner place --out wrote"
        )
    return _from_plan(asked, Path(placement))


def _from_plan(asked: Asked, path: Path) -> Seated:
    if asked.layout_file is not None:
        raise InputError(
            f"--layout {asked.layout_file}: the layout is that of the plan {path}: leave it out, "
            "or seat the file's with --placement order or optimal"
        )
    plan = read_plan_document(path)
    told, seats = told_of(path, plan)
    layout = {f.name: told["layout"][f.name] for f in fields(Layout) if f.name in told["layout"]}
    cluster, supernode = _cluster_of(asked, told, path)
    given = replace(
        asked,
        cluster=cluster,
        supernode=supernode,
        gpus=asked.gpus or _gpus_asked(cluster, told),
        model=asked.model or (None if "model_shape" in told else str(told["model"])),
        planned_model=_model_of(asked, told, path),
        layout={**layout, **{k: v for k, v in asked.layout.items() if v is not None}},
        order=str(layout.get("order", asked.order)),
        ignore_memory=True,
        own_fits=asked.own_fits or planned_fits(told, str(path)),
    )
    given = _with_free_list(given, asked, told, path)
    given = replace(given, layout={k: v for k, v in given.layout.items() if k != "order"})
    inputs = read_inputs(given)
    if len(seats) != inputs.layout.gpus:
        raise InputError(
            f"{path}: placement.rank_to_gpu has {len(seats)} seats for the "
            f"{inputs.layout.gpus} ranks of the layout"
        )
    wrong = [seat for seat in seats if not 0 <= seat < len(inputs.fabric.gpus)]
    if wrong or len(set(seats)) != len(seats):
        raise InputError(
            f"{path}: placement.rank_to_gpu must name {len(seats)} different GPUs of "
            f"0 to {len(inputs.fabric.gpus) - 1}"
        )
    return Seated(inputs=inputs, rank_to_gpu=seats, source=str(path), asked=given)


def _gpus_asked(cluster: str | None, told: Mapping[str, Any]) -> int | None:
    """Return the GPUs to size the cluster by; None where a plan took part of a whole one [1].

    The layout's degrees then say how many they are.
    """
    taken = str(told.get("assumed", {}).get("gpus", "rebuilt"))
    whole = cluster is not None and not taken.startswith("rebuilt")
    return None if whole else int(told["gpus"])


def _model_of(asked: Asked, told: Mapping[str, Any], path: Path) -> ModelSpec | None:
    """Return the plan's model by its shape: the file it came from may be gone."""
    from topologies.plan_model import model_of_shape  # noqa: PLC0415 - only a plan needs it

    if asked.model is not None or "model_shape" not in told:
        return None
    return model_of_shape(told["model_shape"], name=str(path))


def _with_free_list(given: Asked, asked: Asked, told: Mapping[str, Any], path: Path) -> Asked:
    """Return *given* with the free list of a plan that was made with one, its cluster whole."""
    free = told.get("free")
    if free is None:
        return given
    hosts = free.get("hosts") if isinstance(free, dict) else None
    sizes: list[Any] = [free.get(key) if isinstance(free, dict) else "" for key in _WHOLE]
    if (
        not isinstance(hosts, str)
        or not hosts
        or any(not (size is None or (type(size) is int and size > 0)) for size in sizes)
    ):
        raise InputError(f"{path}: inputs.free is damaged: expected hosts, {' and '.join(_WHOLE)}")
    gpus, supernode = sizes
    return replace(
        given,
        planned_free=hosts,
        planned_cluster_gpus=gpus or 0,
        supernode=asked.supernode or supernode,
    )


def _cluster_of(asked: Asked, told: Mapping[str, Any], path: Path) -> tuple[str | None, int | None]:
    """Return the plan's cluster and supernodes, or those that were asked for instead."""
    from topologies.fabric_catalogue import is_foreign  # noqa: PLC0415 - only a plan needs it

    filed = str(told.get("cluster_asked", "generic"))
    if filed == "generic" and asked.cluster is None:
        return None, asked.supernode or int(told["supernode"])
    cluster = asked.cluster or filed
    try:
        foreign = is_foreign(cluster)
    except InputError as error:
        hint = f"{path} was planned on {filed}: --cluster FILE says where that cluster's file is"
        raise InputError(*error.faults, hint) from None
    as_found = foreign or "supernode.size" in told.get("assumed", {})
    return cluster, asked.supernode or (int(told["supernode"]) if as_found else None)


def read_plan_document(path: Path) -> Mapping[str, Any]:
    """Return the document in the file *path*."""
    with handed_as("plan", path):
        return _plan_in(path)


def _plan_in(path: Path) -> Mapping[str, Any]:
    try:
        content = content_of(path, _MOST_BYTES)
        if len(content) > _MOST_BYTES:
            raise InputError(f"{path}: larger than {_MOST_BYTES / 2**20:.0f} MiB: no plan is")
        plan = json.loads(content.decode("utf-8"))
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}; name the file that planner place --out wrote"
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a JSON document: {error}") from None
    if not isinstance(plan, dict):
        raise InputError(f"{path}: expected a JSON object, the document of planner place --out")
    return plan


def plan_sha256(path: Path) -> str:
    """Return the hash of the document that was read from *path*."""
    return sha256(content_of(path, _MOST_BYTES)).hexdigest()


def told_of(path: Path, plan: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[int, ...]]:
    """Return the inputs of the document *plan*, checked, and the GPU of each rank."""
    with handed_as("plan", path):
        return _told_of(path, plan)


def _told_of(path: Path, plan: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[int, ...]]:
    inputs, placement = plan.get("inputs"), plan.get("placement")
    faults = []
    if not isinstance(inputs, dict) or not isinstance(inputs.get("layout"), dict):
        faults.append(f"{path}: inputs.layout is missing; is it from planner place --out?")
    seats = placement.get("rank_to_gpu") if isinstance(placement, dict) else None
    if not isinstance(seats, list) or not all(type(seat) is int for seat in seats):
        faults.append(f"{path}: placement.rank_to_gpu is missing or not a list of whole numbers")
    if faults or not isinstance(inputs, dict) or not isinstance(seats, list):
        raise InputError(*faults)
    lacking = [key for key in ("supernode", "gpus", "model") if key not in inputs]
    if lacking:
        raise InputError(f"{path}: inputs lacks {', '.join(lacking)}")
    wrong = _wrong_types(inputs)
    if wrong:
        raise InputError(*(f"{path}: {fault}" for fault in wrong[:_SHOWN]))
    return inputs, tuple(seats)


def _wrong_types(inputs: Mapping[str, Any]) -> list[str]:
    """Return a fault for each value of a plan's inputs that is of another type than it was."""
    kinds = {"int": int, "str": str, "bool": bool}
    wanted = [("supernode", int), ("gpus", int), ("model", str), ("cluster_asked", str)]
    faults = [
        f"inputs.{key}={str(inputs[key])[:40]!r}: expected {kind.__name__}"
        for key, kind in wanted
        if key in inputs and type(inputs[key]) is not kind
    ]
    faults += [
        f"inputs.{key}={inputs[key]}: expected 1 to {_MOST_GPUS}"
        for key in ("supernode", "gpus")
        if type(inputs[key]) is int and not 1 <= inputs[key] <= _MOST_GPUS
    ]
    layout = inputs["layout"]
    faults += [
        f"inputs.layout.{f.name}={str(layout[f.name])[:40]!r}: expected {f.type}"
        for f in fields(Layout)
        if f.name in layout and type(layout[f.name]) is not kinds.get(str(f.type))
    ]
    faults += [
        f"inputs.layout.{key}={value}: expected a number of at most {_LARGEST}"
        for key, value in layout.items()
        if type(value) is int and abs(value) > _LARGEST
    ]
    if not isinstance(inputs.get("assumed", {}), dict):
        faults.append("inputs.assumed: expected a mapping")
    return faults
