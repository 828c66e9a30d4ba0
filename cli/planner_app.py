"""The ``planner`` command: finds a command's module when it is called, and errors to exit codes.

Exit codes: 0 done; 2 input refused; 3 proved impossible; 4 solver, worker or internal trouble;
130 interrupted. A user never sees a traceback unless ``PLANNER_TRACEBACK=1``.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from cli.planner_errors import exit_code_of
from cli.planner_version import __version__

PROGRAM = "planner"
_COLLECT_AFTER = 50_000  # new objects; Python's 700 walk all modules' objects again and again


@dataclass(frozen=True, slots=True, kw_only=True)
class LazyCommand:
    """A command that is imported only when it is called.

    Args:
        name: what the user types.
        module: module whose ``app`` is the command or the group of commands.
        help: the line ``planner --help`` shows.
    """

    name: str
    module: str
    help: str


COMMANDS = (
    LazyCommand(
        name="place",
        module="cli.place_command",
        help="Seat a layout's groups so that the least traffic is cut.",
    ),
    LazyCommand(
        name="step",
        module="cli.step_command",
        help="Step time of a layout on a placement, with its critical path.",
    ),
    LazyCommand(
        name="compare",
        module="cli.compare_command",
        help="Layouts by clusters, ranked, and where the winner flips.",
    ),
    LazyCommand(
        name="search",
        module="cli.search_command",
        help="The best layouts of a model on a cluster.",
    ),
    LazyCommand(
        name="net",
        module="cli.net_command",
        help="The network models alone, each with its premises.",
    ),
    LazyCommand(
        name="topology",
        module="cli.topology_command",
        help="The clusters on file: list, show, check, draw, import.",
    ),
    LazyCommand(
        name="export",
        module="cli.export_command",
        help="Write a plan for a launcher: Slurm, MPI, torchrun, Megatron.",
    ),
    LazyCommand(
        name="verify",
        module="cli.verify_command",
        help="Check a plan with code that had no part in making it.",
    ),
    LazyCommand(
        name="validate",
        module="cli.validate_command",
        help="Predict measured steps and say how far off that is.",
    ),
    LazyCommand(
        name="calibrate",
        module="cli.calibrate_command",
        help="Fit an accelerator's efficiencies to measurements.",
    ),
    LazyCommand(
        name="report",
        module="cli.report_command",
        help="Write a report that opens offline in a browser.",
    ),
)


class LazyGroup(TyperGroup):
    """A group that knows its commands' names and help without importing them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._lazy = {command.name: command for command in COMMANDS if find_spec(command.module)}
        for command in self._lazy.values():
            self.add_command(TyperCommand(name=command.name, callback=None, help=command.help))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the called command itself, imported now, instead of its line in the help."""
        name, command, rest = super().resolve_command(ctx, args)
        lazy = self._lazy.get(name or "")
        if lazy is not None:
            command = typer.main.get_command(import_module(lazy.module).app)
            command.name = lazy.name
        return name, command, rest


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"planner {__version__}")
        raise typer.Exit


app = typer.Typer(
    name=PROGRAM,
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback()
def planner(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Seat a training job on a GPU cluster, prove how good the seating is, and time the step.

    Start with: planner place --supernode 64
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    if arguments is None:  # the process is ours: a tenth of a short command went into its garbage
        gc.set_threshold(_COLLECT_AFTER)
    # A caller may have closed them; what is said then goes nowhere.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a narrow locale shows \u00d7 rather than a traceback
            stream.reconfigure(errors="backslashreplace")
    command = typer.main.get_command(app)
    try:
        if "_PLANNER_COMPLETE" in os.environ:  # a shell asks for completions
            command.main(prog_name=PROGRAM)
        given = sys.argv[1:] if arguments is None else list(arguments)
        with command.make_context(PROGRAM, given) as context:
            command.invoke(context)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - the one place where errors become exit codes
        return exit_code_of(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
