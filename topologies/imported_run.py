"""What a training launch file says: a model, parallel degrees, a number of GPUs.

Every importer of a launch file yields an ``ImportedRun``. The layout's fields are only those that
the file states or that its framework fixes; ``layout_of`` makes a ``Layout`` of them. One is none
of ``Layout``'s: ``dp_replicate``, of files that say how many replicas there are of what is sharded
and not how many ranks share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from planner.errors import LayoutError
from planner.layout import Layout
from planner.model import ModelSpec

Field = int | str | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """One launch file, read.

    Args:
        model: the model it trains, none where the file does not describe it.
        layout: fields of ``Layout`` that are known.
        gpus: GPUs of the run, none where the file does not say [1].
        assumed: what was not stated and taken to be so, name to reason.
        provenance: the kind of file and its name.
        unread_model: why a model that the file describes in part, or in a way that is not
            modelled, was not read; empty where it was, and where the file describes none.
    """

    model: ModelSpec | None
    layout: Mapping[str, Field]
    gpus: int | None
    assumed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    provenance: str
    unread_model: str = ""


def shard_fields(fields: Mapping[str, Any], dp: int) -> Mapping[str, Any]:
    """Return *fields* with ``dp_shard`` in the place of ``dp_replicate``.

    Args:
        fields: of ``Layout``, or of an ``ImportedRun``.
        dp: data-parallel ranks, 0 where they are not known [1].

    Raises:
        LayoutError: the replicas do not divide them, or another ``dp_shard`` is given beside.

    >>> shard_fields({"zero_stage": 1, "dp_replicate": 4}, 32)
    {'zero_stage': 1, 'dp_shard': 8}
    """
    replicas = fields.get("dp_replicate", 0)
    if not replicas:
        return fields
    if not dp or dp % replicas:
        raise LayoutError(
            f"dp_replicate={replicas} does not divide dp = {dp or 'what is not known'}"
        )
    rest = {name: value for name, value in fields.items() if name != "dp_replicate"}
    if rest.get("dp_shard", dp // replicas) != dp // replicas:
        raise LayoutError(
            f"dp_shard={rest['dp_shard']} contradicts dp_replicate={replicas}: "
            f"dp / dp_replicate = {dp} / {replicas} = {dp // replicas}"
        )
    return {**rest, "dp_shard": dp // replicas}


def layout_of(run: ImportedRun, *, gpus: int | None = None) -> Layout:
    """Return the run's layout on *gpus* GPUs, its own number where that is not given.

    No launch file states the data-parallel degree of Megatron: it is what is left,
    dp = gpus / (tp x cp x pp). A global batch that is not stated is one micro-batch per replica.

    Raises:
        LayoutError: the number of GPUs is unknown, or does not divide.

    >>> run = ImportedRun(model=None, layout={"tp": 8, "pp": 4}, gpus=64, provenance="by hand")
    >>> layout_of(run).dp
    2
    """
    fields = dict(run.layout)
    total = gpus if gpus is not None else run.gpus
    if "dp" not in fields:
        width = 1
        for name in ("tp", "cp", "pp"):
            width *= int(fields.get(name, 1))
        if total is None:
            raise LayoutError(
                f"{run.provenance}: states no data-parallel degree and no number of GPUs: "
                f"give --gpus, a multiple of tp x cp x pp = {width}"
            )
        if total % width:
            raise LayoutError(
                f"{run.provenance}: tp x cp x pp = {width} does not divide {total} GPUs"
            )
        fields["dp"] = total // width
    fields.setdefault("global_batch", int(fields["dp"]) * int(fields.get("micro_batch", 1)))
    try:
        return Layout(**shard_fields(fields, int(fields["dp"])))
    except LayoutError as error:
        raise LayoutError(*(f"{run.provenance}: {fault}" for fault in error.faults)) from None
