"""From options to a cluster, a model and a layout, with every fault of all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from cli.given_layout import GivenLayout, LaunchFileRead, given_layout
from cli.gpu_counts import DEFAULT_GPUS as DEFAULT_GPUS  # noqa: PLC0414 - others look for it here
from cli.gpu_counts import (
    contradicted,
    gpus_of,
    launch_words,
    product,
    ranks_left,
    ranks_of,
    too_few,
    whose_gpus,
)
from planner.errors import InfeasibleError, InputError, LayoutError
from planner.fabric import Fabric
from planner.layout import Layout
from planner.model import ModelSpec
from planner.search.chosen import Chooser
from planner.search.defaults import Choice, Job, Take
from planner.search.given import given_faults
from planner.search.rules import Rule
from planner.search.seated_rows import Told, untold
from planner.search.seated_steps import SeatedSteps
from planner.search.training import usual_batch
from planner.steptime.covered import kind_of
from planner.steptime.rates import Efficiency
from planner.words import counted
from topologies.fabric_catalogue import generic_cluster, load_cluster
from topologies.imported_run import shard_fields
from topologies.model_reader import read_model
from topologies.own_efficiency import OwnFits, reached_by

DEFAULT_SUPERNODE = 64
DEFAULT_ORDER = "tp-cp-ep-dp-pp"
_TYPED = {"zero_stage": "zero"}  # fields whose option is called otherwise
# The largest dense Llama 3 that so many GPUs train with room to spare.
_DEFAULT_MODELS = ((512, "llama-3.1-405b"), (64, "llama-3.1-70b"), (1, "llama-3.1-8b"))

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the user gave; None is what was left out.

    Args:
        cluster: a name of the catalogue or a file.
        supernode: GPUs of a supernode [1].
        gpus: GPUs of the job [1].
        model: a name of the catalogue or a file.
        planned_model: the model itself, of a plan that is read back, where none is named.
        layout_file: a YAML file with some of the fields of ``Layout``, or a launch file, whose
            model and GPUs are taken where no option names others.
        layout: fields of ``Layout`` from options.
        order: rank order.
        ignore_memory: also take a layout that does not fit.
        where: conditions that a layout must meet.
        free: a free list: only its GPUs may be used. The cluster is then the whole one, so that
            *gpus* is the job's with a cluster by name and the cluster's in the generic family.
        planned_free: the free GPUs of a plan that is read back, as one free list; empty for all.
        planned_cluster_gpus: GPUs of the whole cluster of such a plan in the generic family [1].
        own_fits: what accelerators reach, where that is not what ships.
        take: which layout is taken where it is left open, as ``Chooser.taken``.
    """

    cluster: str | None = None
    supernode: int | None = None
    gpus: int | None = None
    model: str | None = None
    planned_model: ModelSpec | None = None
    layout_file: Path | None = None
    layout: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    order: str = DEFAULT_ORDER
    ignore_memory: bool = False
    where: tuple[Rule, ...] = ()
    free: Path | None = None
    planned_free: str = ""
    planned_cluster_gpus: int = 0
    own_fits: OwnFits | None = None
    take: Take = "usual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a command is asked, before a layout is chosen.

    Args:
        fabric, model: as read.
        gpus: GPUs of the job [1].
        cluster: what the cluster was asked for as.
        given: names of the fields of the layout that the user gave.
        given_by: the layout file and the options that gave them, as they are typed.
        fixed: the fields of ``Layout`` that every layout shares: those given, the batch and the
            precision.
        efficiency: what was fitted on this accelerator, where anything was.
        assumed: what was left out and what was taken instead, name to reason.
        own_fits: where the efficiency is from, None where it is what ships.
        launch: the launch file that stands as the layout, None without one.
    """

    fabric: Fabric
    model: ModelSpec
    gpus: int
    cluster: str
    given: tuple[str, ...]
    given_by: tuple[str, ...]
    fixed: Mapping[str, Any]
    efficiency: Efficiency | None
    assumed: Mapping[str, str]
    own_fits: OwnFits | None = None
    launch: LaunchFileRead | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs(Question):
    """What a command works on.

    Args:
        layout: as given or chosen.
        choice: what it was chosen from.
        steps: of the layouts that were seated for it.
    """

    layout: Layout
    choice: Choice
    steps: SeatedSteps


def read_inputs(asked: Asked, told: Told = untold) -> Inputs:
    """Return the cluster, the model and the layout that *asked* names or leaves to be chosen.

    Args:
        asked: what the user gave.
        told: is told after each layout that is seated to choose one.

    Raises:
        InputError: every fault of the cluster, the model and the given part of the layout.
        InfeasibleError: no layout fits, or more ranks than seats.
    """
    question = read_question(asked)
    steps = SeatedSteps(question.fabric, question.efficiency)
    chooser = Chooser(job_of(question, asked.where), steps, told=told)
    choice = chooser.taken(asked.take, ignore_memory=asked.ignore_memory)
    known = {f.name: getattr(question, f.name) for f in fields(Question)}
    if not choice.layout.dp_shard and "dp" in question.given:  # as if it had been left out
        known["given"] = tuple(name for name in question.given if name != "dp_shard")
    return Inputs(**known, layout=choice.layout, choice=choice, steps=steps)


def job_of(question: Question, rules: tuple[Rule, ...] = ()) -> Job:
    """Return what a layout is wanted for."""
    return Job(
        model=question.model, fabric=question.fabric, gpus=question.gpus, fixed=question.fixed,
        efficiency=question.efficiency, rules=rules,
    )  # fmt: skip


def read_question(asked: Asked) -> Question:
    """Return the cluster, the model and what is given of the layout that *asked* names.

    Raises:
        InputError: every fault of the cluster, the model and the given part of the layout.
        InfeasibleError: more ranks than seats.
    """
    faults: list[str] = []
    of_layout: list[str] = []
    stated = _tried(of_layout, lambda: _given_layout(asked)) or GivenLayout()
    fabric = _tried(faults, lambda: read_fabric(asked, ranks_of(stated)))
    faults += of_layout
    gpus, why = gpus_of(asked, fabric, stated)
    faults += contradicted(asked, stated, product(stated.fields))
    dp = ranks_left(stated.fields, gpus)
    given = _tried(faults, lambda: shard_fields(stated.fields, dp)) or stated.fields
    model = _tried(faults, lambda: _model_of(asked, stated, gpus))
    if model is not None:
        batch = usual_batch(model, gpus, given)
        whole = {**given, "seq": batch.seq, "global_batch": batch.global_batch}
        faults += given_faults(model, gpus, whole, whose_gpus(asked, fabric, stated))
    few = too_few(asked, fabric, stated, gpus)
    if fabric is None or model is None or faults:
        raise InputError(*dict.fromkeys(faults + few))
    if few:
        raise InfeasibleError(*few)
    assumed = {**stated.assumed, **_what_was_left_out(asked, fabric, stated, gpus, model)}
    if why:
        assumed["gpus"] = why
    fixed = _fixed(fabric, model, gpus, given, assumed)
    kind = kind_of(
        model, fabric.accelerator.name, fixed["precision"], gpus=gpus,
        domain=max(fabric.capacities("supernode")), seq=fixed["seq"],
    )  # fmt: skip
    reached = reached_by(fabric.accelerator, kind, asked.own_fits)
    if reached.why:
        assumed["efficiency"] = reached.why
    return Question(
        fabric=fabric, model=model, gpus=gpus, cluster=asked.cluster or "generic",
        given=tuple(sorted(given)), given_by=_given_by(asked), fixed=MappingProxyType(fixed),
        efficiency=reached.efficiency, assumed=MappingProxyType(assumed), own_fits=reached.own,
        launch=stated.launch,
    )  # fmt: skip


def _model_of(asked: Asked, stated: GivenLayout, gpus: int) -> ModelSpec:
    """Return the model: as named, of the plan, of the launch file, or the default.

    Raises:
        InputError: no such model, or a launch file that describes one only in part.
    """
    if asked.model is not None:
        return read_model(asked.model)
    if asked.planned_model is not None:
        return asked.planned_model
    launch = stated.launch
    if launch is not None and launch.model is not None:
        return launch.model
    if launch is not None and launch.unread_model:
        raise InputError(
            f"{launch.provenance} describes a model, but not one that can be taken: "
            f"{launch.unread_model.removeprefix('not read: ')}; expected all of it there, or "
            "--model NAME|FILE"
        )
    return read_model(next(name for least, name in _DEFAULT_MODELS if gpus >= least))


def read_fabric(asked: Asked, ranks: int = 0) -> Fabric:
    """Return the cluster that *asked* names, or the generic family's.

    Args:
        asked: what the user gave.
        ranks: how many a file states, which sizes the generic family where no option does; 0 where
            none does [1].
    """
    if asked.free is not None or asked.planned_free:
        return _free_part(asked)
    if asked.cluster is not None:
        return _cluster_of_job(asked, asked.cluster)
    gpus = asked.gpus or ranks or product(asked.layout) or DEFAULT_GPUS
    return generic_cluster(asked.supernode or min(DEFAULT_SUPERNODE, gpus), gpus)


def _cluster_of_job(asked: Asked, cluster: str) -> Fabric:
    """Return the cluster at the size of the job, or as it stands where dead parts rule that out."""
    if asked.gpus is None:
        return load_cluster(cluster, supernode=asked.supernode)
    try:
        fabric = load_cluster(cluster, supernode=asked.supernode, gpus=asked.gpus)
    except InputError as error:  # what is dead may be of the part that is not built
        whole = load_cluster(cluster, supernode=asked.supernode)
        if len(whole.gpus) < asked.gpus:
            raise error from None
        return whole
    if len(fabric.gpus) < asked.gpus:
        whole = load_cluster(cluster, supernode=asked.supernode)
        return whole if len(whole.gpus) >= asked.gpus else fabric
    return fabric


def _free_part(asked: Asked) -> Fabric:
    """Return the whole cluster's GPUs that the free list names."""
    from topologies.free_list import free_gpus, only_gpus, read_free_list  # noqa: PLC0415 - seldom

    if asked.cluster is not None:
        whole = load_cluster(asked.cluster, supernode=asked.supernode)
    else:
        gpus = asked.planned_cluster_gpus or asked.gpus or DEFAULT_GPUS
        whole = generic_cluster(asked.supernode or min(DEFAULT_SUPERNODE, gpus), gpus)
    if asked.free is not None:
        return read_free_list(asked.free, whole)
    return only_gpus(whole, free_gpus(asked.planned_free, "the plan's free list", whole))


def _given_layout(asked: Asked) -> GivenLayout:
    """Return the given fields of the layout: of the file, and of the options."""
    given = {name: value for name, value in asked.layout.items() if value is not None}
    order = {} if asked.order == DEFAULT_ORDER else {"order": asked.order}
    return given_layout({**given, **order}, asked.layout_file)


def _given_by(asked: Asked) -> tuple[str, ...]:
    """Return the layout file and the options that give something of the layout, as typed."""
    options = [name for name, value in asked.layout.items() if value is not None]
    options += [] if asked.order == DEFAULT_ORDER else ["order"]
    typed = [f"--{_TYPED.get(name, name).replace('_', '-')}" for name in options]
    return (*([str(asked.layout_file)] if asked.layout_file else []), *typed)


def _what_was_left_out(
    asked: Asked, fabric: Fabric, stated: GivenLayout, gpus: int, model: ModelSpec
) -> dict[str, str]:
    assumed = {}
    if asked.cluster is None and asked.supernode is None:
        assumed["cluster"] = f"{fabric.name}: neither --cluster nor --supernode was given"
    if asked.gpus is None:
        filed = "the cluster's own number" if asked.cluster else "the default"
        assumed["gpus"] = f"{gpus}: {filed}, for --gpus was not given"
    if asked.model is None and asked.planned_model is None:
        launch = stated.launch
        if launch is not None and launch.model is not None:
            assumed["model"] = f"{model.name}: {launch_words(launch, 'model')}"
        else:
            named = next(name for least, name in _DEFAULT_MODELS if gpus >= least)
            none = f", and {launch.provenance} describes none" if launch is not None else ""
            assumed["model"] = (
                f"{named}: the default for {counted(gpus, 'GPU')}, for --model was not given{none}"
            )
    return assumed


def _fixed(
    fabric: Fabric, model: ModelSpec, gpus: int, given: Mapping[str, Any], assumed: dict[str, str]
) -> dict[str, Any]:
    """Return what every layout shares; what nobody gave is noted in *assumed*."""
    batch = usual_batch(model, gpus, given)
    if "seq" not in given:
        assumed["seq"] = f"{batch.seq}: {batch.source}"
    if "global_batch" not in given:
        assumed["global_batch"] = batch.words
    fixed = {**given, "seq": batch.seq, "global_batch": batch.global_batch}
    peaks = fabric.accelerator.peak_flops_per_s
    if "precision" not in given:
        fixed["precision"] = next((p for p in ("bf16", "fp16", "fp8") if p in peaks), "bf16")
        assumed["precision"] = f"{fixed['precision']}: --precision was not given"
    elif given["precision"] not in peaks:
        raise LayoutError(
            f"precision={given['precision']}: {fabric.accelerator.name} has no such peak; "
            f"it has {', '.join(peaks)}"
        )
    return fixed


def _tried(faults: list[str], read: Callable[[], Read]) -> Read | None:
    """Return what *read* returns, or None and its faults."""
    try:
        return read()
    except InputError as error:
        faults += error.faults
    return None
