"""The job that a network model is asked about: its options, and the layout seated."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from cli.net_seats import SeatedJob

SomeGpus = Annotated[
    int | None,
    typer.Option(
        "--gpus", min=1, max=1_000_000, show_default="1024, or the cluster's own",
        help="GPUs of the job.",
    ),
]  # fmt: skip
Seats = Annotated[
    str,
    typer.Option(
        "--placement", metavar="order|optimal|FILE", help="Where the ranks sit, as planner step."
    ),
]


def job_of(
    cluster: str | None,
    supernode: int | None,
    gpus: int | None,
    model: str | None,
    layout: Path | None,
    degrees: dict[str, Any],
    order: str,
    placement: str,
) -> SeatedJob:
    """Return the layout that the options name or leave to be chosen, seated."""
    from cli.net_seats import seated_job
    from cli.planner_inputs import Asked

    return seated_job(
        Asked(
            cluster=cluster,
            supernode=supernode,
            gpus=gpus,
            model=model,
            layout_file=layout,
            layout=degrees,
            order=order,
        ),
        placement,
    )
