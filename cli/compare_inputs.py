"""From the options of ``compare`` to the clusters and layouts it compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cli.compare_sizes import Goal, Sizes, sizes_of
from cli.given_layout import given_layout
from cli.planner_inputs import DEFAULT_GPUS, Asked, Inputs, Question, read_fabric, read_question
from cli.search_inputs import read_even_if_overfull
from planner.errors import InfeasibleError, InputError
from planner.fabric import Fabric
from planner.layout import Layout
from planner.search.compare import Candidate
from planner.search.rules import Rule
from planner.search.stages import Stage, Tell, untold
from topologies.own_efficiency import OwnFits

DEFAULT_SUPERNODES = (8, 64, 384)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the user gave; the fields are those of ``planner_inputs.Asked``, but several."""

    clusters: tuple[str, ...]
    supernodes: tuple[int, ...]
    gpus: int | None
    model: str | None
    layout_files: tuple[Path, ...]
    layout: Mapping[str, Any]
    order: str
    where: tuple[Rule, ...] = ()
    own_fits: OwnFits | None = None
    goal: Goal = field(default_factory=lambda: Goal(equal="gpus"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """What is compared.

    Args:
        candidates: the clusters.
        inputs: what each was read from.
        asked: what each was asked for as.
        layouts: name to layout, of each layout file on the first cluster; empty without files.
        sizes: how many GPUs each got, and why.
        where: the conditions that every layout meets.
    """

    candidates: tuple[Candidate, ...]
    inputs: tuple[Question, ...]
    asked: tuple[Asked, ...]
    layouts: Mapping[str, Layout]
    sizes: Sizes
    where: tuple[Rule, ...]


def read_candidates(wanted: Wanted, tell: Tell = untold) -> Compare:
    """Return the clusters and layouts of *wanted*, telling *tell* how far it is.

    Raises:
        InputError: every fault of every cluster and layout.
        InfeasibleError: a cluster is too small, or no layout of a file fits; all are named.
    """
    wanted = replace(wanted, gpus=_gpus_of(wanted))
    faults: list[str] = []
    impossible: list[str] = []
    found: list[Question] = []
    asked_as: list[Asked] = []
    bigger: list[Fabric | None] = []
    layouts: dict[str, Layout] = {}
    models: dict[str, str] = {}
    clusters = [
        Asked(
            cluster=cluster, supernode=supernode, gpus=wanted.gpus or DEFAULT_GPUS,
            model=wanted.model, layout=wanted.layout, order=wanted.order, where=wanted.where,
            own_fits=wanted.own_fits,
        )
        for cluster, supernode in _pairs(wanted)
    ]  # fmt: skip
    if wanted.goal.equal != "gpus" and wanted.layout_files:
        raise InputError("--layout fixes the number of GPUs: compare such layouts at --equal gpus")
    sizes = sizes_of(clusters, wanted.goal, tell)
    model = _one_model(clusters, wanted, sizes)
    for done, (one, sized) in enumerate(zip(clusters, sizes.each, strict=True)):
        tell(Stage(what="reading the clusters", done=done, of=len(clusters)))
        for path in wanted.layout_files or (None,):
            asked = replace(one, gpus=sized.gpus, model=model, layout_file=path)
            try:
                inputs = read_question(asked) if path is None else read_even_if_overfull(asked)
            except InfeasibleError as error:
                name = one.cluster or f"supernode {one.supernode}"
                impossible += [f"{name}: {fault}" for fault in error.faults]
                continue
            except InputError as error:
                faults += error.faults
                continue
            if isinstance(inputs, Inputs) and path is not None:
                models.setdefault(inputs.model.name, str(path))
                layouts.setdefault(_file_name(path, wanted.layout_files), inputs.layout)
            if path == (wanted.layout_files or (None,))[0]:
                found.append(inputs)
                asked_as.append(asked)
                bigger.append(_bigger(asked, inputs))
    if len(models) > 1:
        named = ", ".join(f"{name} ({path})" for name, path in models.items())
        faults.append(f"the layouts' files are of several models: {named}; --model NAME takes one")
    if faults:
        raise InputError(*dict.fromkeys(faults))
    _refuse_fits_of_others(wanted.own_fits, found)
    if impossible:
        raise InfeasibleError(*dict.fromkeys(impossible))
    names = _names(found)
    return Compare(
        candidates=tuple(
            Candidate(name=name, fabric=one.fabric, model=one.model, gpus=one.gpus,
                      fixed=one.fixed, efficiency=one.efficiency, bigger=twice, rules=wanted.where)
            for name, one, twice in zip(names, found, bigger, strict=True)
        ),
        inputs=tuple(found),
        asked=tuple(asked_as),
        layouts=layouts,
        sizes=sizes,
        where=wanted.where,
    )  # fmt: skip


def _gpus_of(wanted: Wanted) -> int | None:
    """Return the GPUs that are asked for, or that launch files run on; None where nothing says."""
    if wanted.gpus is not None:
        return wanted.gpus
    launched = {str(path): given_layout({}, path).launch for path in wanted.layout_files}
    stated = {name: run.gpus for name, run in launched.items() if run is not None and run.gpus}
    if len(set(stated.values())) > 1:
        named = ", ".join(f"{name} on {gpus:,}" for name, gpus in stated.items())
        raise InputError(f"the layouts' files run on several numbers of GPUs: {named}; give --gpus")
    return next(iter(stated.values()), None)


def _refuse_fits_of_others(own: OwnFits | None, found: list[Question]) -> None:
    """Refuse a fit that no cluster's accelerator is timed with."""
    if own is not None and found and all(one.own_fits is None for one in found):
        here = ", ".join(dict.fromkeys(one.fabric.accelerator.name for one in found))
        raise InputError(
            f"{own.name} has a fit of {', '.join(own.by_chip)}, but the clusters compared have "
            f"{here}: expected a fit of one of them"
        )


def _one_model(clusters: list[Asked], wanted: Wanted, sizes: Sizes) -> str | None:
    """Return the model that all train: the default depends on the GPUs, which may now differ."""
    if wanted.model is not None or len({one.gpus for one in sizes.each}) == 1:
        return wanted.model
    return read_question(clusters[0]).model.name


def _bigger(asked: Asked, inputs: Question) -> Fabric | None:
    """Return the cluster with supernodes of twice the size, or None where there can be none."""
    size = max(inputs.fabric.capacities("supernode"))
    if size >= inputs.gpus:
        return None
    try:
        fabric = read_fabric(replace(asked, supernode=min(2 * size, inputs.gpus), gpus=inputs.gpus))
    except InputError:  # its graph is fixed
        return None
    return fabric if len(fabric.gpus) >= inputs.gpus else None


def _file_name(path: Path, files: tuple[Path, ...]) -> str:
    """Return the file's stem, or its whole path where another file has that stem."""
    alike = [other for other in files if other.stem == path.stem and other != path]
    return str(path) if alike else path.stem


def _pairs(wanted: Wanted) -> list[tuple[str | None, int | None]]:
    """Return the clusters asked for: each of them with each supernode size, where sizes are."""
    sizes: tuple[int | None, ...] = tuple(dict.fromkeys(wanted.supernodes))
    clusters: tuple[str | None, ...] = tuple(dict.fromkeys(wanted.clusters))
    if not sizes and not clusters:
        sizes = DEFAULT_SUPERNODES if not wanted.layout_files else (None,)
        sizes = tuple(s for s in sizes if s is None or s <= (wanted.gpus or DEFAULT_GPUS))
    return [(c, s) for c in clusters or (None,) for s in sizes or (None,)]


def _names(found: list[Question]) -> list[str]:
    """Return the clusters' names, each with its supernode where two are called the same."""
    names = [one.fabric.name for one in found]
    sized = [
        f"{name}/{max(one.fabric.capacities('supernode'))}" if names.count(name) > 1 else name
        for name, one in zip(names, found, strict=True)
    ]
    return [
        f"{name} ({sized[: i + 1].count(name)})" if sized.count(name) > 1 else name
        for i, name in enumerate(sized)
    ]
