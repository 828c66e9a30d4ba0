"""``planner topology draw``: a cluster's switches, links and supernodes as one picture."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.planner_options import Cluster, Supernode, whole, writable

Named = Annotated[
    str | None,
    typer.Argument(metavar="[NAME|FILE]", show_default=False, help="The cluster, as --cluster."),
]
SomeGpus = Annotated[int | None, whole("--gpus", help="GPUs of the job; else as the file says.")]
SvgOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        callback=writable,
        metavar="FILE",
        show_default=False,
        help="Where it goes; else to stdout.",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add the command to the group ``planner topology``."""
    app.command("draw")(draw)


def draw(
    named: Named = None,
    cluster: Cluster = None,
    supernode: Supernode = None,
    gpus: SomeGpus = None,
    out: SvgOut = None,
) -> None:
    """Draw a cluster: supernodes, leaves, spines, what joins them, and what is dead.

    SVG, or PNG where --out ends in .png.
    """
    from cli.plan_wiring import shown_fabric
    from cli.planner_output import emit, note, write_file
    from cli.topology_foreign import foreign_fabric
    from cli.topology_picture import cluster_picture, picture_of
    from topologies.fabric_catalogue import load_spec

    if named is not None and cluster is not None:
        raise typer.BadParameter(f"name one cluster, not both {named!r} and {cluster!r}")
    name = named or cluster or "generic"
    foreign = foreign_fabric(name, supernode, gpus)
    if foreign is None:
        text = cluster_picture(load_spec(name, supernode=supernode, gpus=gpus))
    else:
        text = picture_of(shown_fabric(foreign))
    if out is None:
        emit(text)
        return
    if out.suffix.lower() == ".png":
        from cli.report_pictures_file import flat, png_bytes, refuse_other_formats

        refuse_other_formats(out)
        write_file(out, png_bytes(flat(text)))
    else:
        write_file(out, text)
    note(f"wrote {out}")
