"""The job that a network model is asked about: its options, and the layout seated."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.planner_options import (
    Cluster,
    Cp,
    Dp,
    DpShard,
    Ep,
    Etp,
    Json,
    LayoutFile,
    Model,
    Order,
    Out,
    Pp,
    Supernode,
    Tp,
    whole,
)

if TYPE_CHECKING:
    from cli.net_seats import SeatedJob

SomeGpus = Annotated[
    int | None,
    whole("--gpus", show_default="1024, or the cluster's own", help="GPUs of the job."),
]
Seats = Annotated[
    str,
    typer.Option(
        "--placement", metavar="order|optimal|FILE", help="Where the ranks sit, as planner step."
    ),
]
_DEGREES = ("tp", "cp", "ep", "etp", "dp", "pp", "dp_shard")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What the options say of the job; None where they say nothing.

    Args:
        cluster, model, layout: named ones, or files.
        supernode, gpus: sizes [1].
        degrees: of parallelism by name [1].
        order: of the launcher's ranks.
        placement: where the ranks sit.
    """

    cluster: str | None
    supernode: int | None
    gpus: int | None
    model: str | None
    layout: Path | None
    degrees: dict[str, Any]
    order: str
    placement: str

    @property
    def is_named(self) -> bool:
        """Whether any option says something of the job, its order and seats apart."""
        said = (self.cluster, self.supernode, self.gpus, self.model, self.layout)
        return any(one is not None for one in (*said, *self.degrees.values()))

    def seated(self) -> SeatedJob:
        """Return the layout that the options name or leave to be chosen, seated."""
        from cli.net_seats import seated_job
        from cli.planner_inputs import Asked

        asked = Asked(
            cluster=self.cluster,
            supernode=self.supernode,
            gpus=self.gpus,
            model=self.model,
            layout_file=self.layout,
            layout=self.degrees,
            order=self.order,
        )
        return seated_job(asked, self.placement)


def _shared(
    cluster: Cluster = None,
    supernode: Supernode = None,
    gpus: SomeGpus = None,
    model: Model = None,
    layout: LayoutFile = None,
    tp: Tp = None,
    cp: Cp = None,
    ep: Ep = None,
    etp: Etp = None,
    dp: Dp = None,
    pp: Pp = None,
    dp_shard: DpShard = None,
    order: Order = "tp-cp-ep-dp-pp",
    placement: Seats = "order",
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Have the options that every command about a job has, in their order."""


def about_a_job(command: Callable[..., None]) -> Callable[..., None]:
    """Return *command* with the options of a job behind its own.

    *command* takes them together as ``job``, and ``as_json`` and ``out`` as all commands do.
    """
    shared = inspect.signature(_shared, eval_str=True).parameters
    own = [
        parameter
        for name, parameter in inspect.signature(command, eval_str=True).parameters.items()
        if name not in {"job", "as_json", "out"}
    ]

    def called(**given: Any) -> None:
        said = {name: given.pop(name) for name in shared if name not in {"as_json", "out"}}
        degrees = {name: said.pop(name) for name in _DEGREES}
        command(job=JobOptions(degrees=degrees, **said), **given)

    parameters = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *shared.values())
    ]
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called
