"""The options that several commands share, so that each has one name and one meaning.

A command module does ``app = command_app()`` (or ``group_app(help)``) and annotates its
parameters with these aliases; the default stands in the signature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cli.planner_output import refuse_unwritable
from planner.errors import PlannerError

_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def command_app() -> typer.Typer:
    """Return the Typer app of a module with one command."""
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=_HELP,
    )


def group_app(help_line: str) -> typer.Typer:
    """Return the Typer app of a module with several commands below one name."""
    group = typer.Typer(
        add_completion=False,
        help=help_line,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=_HELP,
    )
    group.callback()(_nothing)
    return group


def _nothing() -> None:
    """Keep a group a group while it has only one command."""


def quantity(
    name: str,
    parse: Callable[[str], float],
    *,
    shown: str,
    help: str,  # noqa: A002 - Typer's word
) -> Any:
    """Return an option whose text has a unit and whose value is SI.

    Args:
        name: e.g. ``--payload``.
        parse: one of ``planner.units.parse_*``.
        shown: the default as a person writes it, for the help text.
        help: what the option means.
    """

    def parsed(text: Any) -> float:
        if isinstance(text, float | int):  # the default, already SI
            return float(text)
        try:
            return parse(text)
        except PlannerError as error:
            raise typer.BadParameter(error.faults[0]) from None

    return typer.Option(name, parser=parsed, metavar="QUANTITY", show_default=shown, help=help)


def writable(path: Path | None) -> Path | None:
    """Return *path*, or refuse a file that nothing could be written to, before any work is done."""
    if path is not None:
        refuse_unwritable(path)
    return path


def counts(text: str, *, option: str) -> tuple[int, ...]:
    """Return the whole numbers of a list such as ``8,64,384``.

    Args:
        text: numbers of at least 1, parted by commas.
        option: what to call it in the error.

    >>> counts("8,64,384", option="--supernode")
    (8, 64, 384)
    """
    parts = [part.strip() for part in text.split(",")]
    wrong = [
        part for part in parts if not (part.isascii() and part.isdigit() and 0 < len(part) < 10)
    ]
    if wrong or any(int(part) < 1 for part in parts):
        raise typer.BadParameter(f"{option}: expected whole numbers such as 8,64,384, got {text!r}")
    return tuple(int(part) for part in parts)


def _finite_and_positive(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"expected a number of seconds above 0, got {value}")
    return value


def whole(
    name: str,
    *,
    help: str,  # noqa: A002 - Typer's word
    minimum: int = 1,
    maximum: int = 1_000_000,
    show_default: bool | str = False,
) -> Any:
    """Return an option whose value is a whole number from *minimum* to *maximum*."""

    def parsed(given: Any) -> int:
        text = str(given).strip()
        digits = text.isascii() and text.isdigit() and len(text) < 12
        if not digits or not minimum <= int(text) <= maximum:
            raise typer.BadParameter(
                f"expected a whole number from {minimum} to {maximum}, got {text[:40]!r}"
            )
        return int(text)

    return typer.Option(name, parser=parsed, metavar="N", show_default=show_default, help=help)


Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        callback=writable,
        metavar="FILE",
        show_default=False,
        help="Also write the document here.",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        callback=writable,
        metavar="FILE.svg|png",
        show_default=False,
        help="Also draw it as a picture.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="NAME|FILE",
        show_default=False,
        help="A cluster of the catalogue, a cluster file, or any file that topology import reads; "
        "what that does not say stands behind it: FILE,gpus-per-node=8,rates-from=hgx-h100.",
    ),
]
OfCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="NAME|FILE",
        show_default=False,
        help="A cluster whose accelerator the table's gpu column names, which need not be in the "
        "catalogue: its peaks, memory and links stand where a row does not state its own. A file "
        "with that accelerator's data sheet alone will do.",
    ),
]
Supernode = Annotated[
    int | None,
    whole(
        "--supernode",
        help="GPUs in a supernode: alone, of the generic family; with --cluster, that one rebuilt.",
    ),
]
GpusOrFiled = Annotated[
    int | None,
    whole("--gpus", show_default="1024, or the cluster's own", help="GPUs of the cluster."),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME|FILE",
        show_default=False,
        help="A model of the catalogue, a config.json, or a YAML file.",
    ),
]
LayoutFile = Annotated[
    Path | None,
    typer.Option(
        "--layout",
        metavar="FILE",
        show_default=False,
        help="A YAML file with the layout, or a launch file: instead of the options below.",
    ),
]
Tp = Annotated[int | None, whole("--tp", help="Tensor-parallel degree.")]
Cp = Annotated[int | None, whole("--cp", help="Context-parallel degree.")]
Ep = Annotated[int | None, whole("--ep", help="Expert-parallel degree.")]
Etp = Annotated[int | None, whole("--etp", help="Tensor-parallel degree inside an expert.")]
Dp = Annotated[int | None, whole("--dp", help="Data-parallel degree.")]
DpShard = Annotated[
    int | None,
    whole(
        "--dp-shard",
        help="Data-parallel ranks that ZeRO shards over; their replicas sum gradients (HSDP). "
        "Left out, all of --dp; it is never searched over.",
    ),
]
Pp = Annotated[int | None, whole("--pp", help="Pipeline stages.")]
Vpp = Annotated[int | None, whole("--vpp", help="Virtual stages on each pipeline stage.")]
Zero = Annotated[
    int | None,
    whole("--zero", minimum=0, maximum=3, help="ZeRO stage, 0 to 3."),
]
MicroBatch = Annotated[int | None, whole("--micro-batch", help="Sequences in a micro-batch.")]
GlobalBatch = Annotated[int | None, whole("--global-batch", help="Sequences in a step.")]
Seq = Annotated[
    int | None,
    whole("--seq", maximum=100_000_000, help="Tokens in a sequence."),
]
Recompute = Annotated[
    Literal["none", "selective", "full"] | None,
    typer.Option("--recompute", show_default=False, help="Activations computed again."),
]
Precision = Annotated[
    Literal["bf16", "fp16", "fp8"] | None,
    typer.Option("--precision", show_default=False, help="Precision of the matrix products."),
]
Order = Annotated[
    str,
    typer.Option(
        "--order", metavar="ORDER", help="Rank order of the launcher, innermost degree first."
    ),
]
OwnEfficiency = Annotated[
    Path | None,
    typer.Option(
        "--efficiency",
        metavar="FILE",
        show_default=False,
        help="What your accelerators reach, as planner calibrate --out wrote it, instead of what "
        "ships.",
    ),
]
Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices", metavar="FILE", show_default=False,
        help="Your price list (YAML, template: docs/prices.md); without one there is no money.",
    ),
]  # fmt: skip
Tokens = Annotated[
    str | None,
    typer.Option(
        "--tokens", metavar="N", show_default=False, help="Tokens of the whole run, e.g. 15T."
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where", metavar="CONDITION", show_default=False,
        help="Only layouts that meet it, e.g. 'tp <= 8 and pp % 2 == 0'; may be given again.",
    ),
]  # fmt: skip
Seed = Annotated[
    int,
    whole(
        "--seed",
        minimum=0,
        maximum=2**31 - 1,
        show_default=True,
        help="Seed of whatever is drawn at random.",
    ),
]
DEFAULT_TIME_LIMIT_S = 20.0
"""What ``planner place`` gives its solvers where ``--time-limit`` does not say [s]."""
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        callback=_finite_and_positive,
        show_default=False,
        help="Stop the solver after this long and report the gap.",
    ),
]
RunLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        callback=_finite_and_positive,
        show_default=False,
        help="End the whole run near this, with the best so far and its gap; a layout left open "
        "is chosen in full first. Left out: after 20 s a search begins no long step.",
    ),
]
