"""Errors to what a person reads on stderr, and to exit codes."""

from __future__ import annotations

import difflib
import errno
import os
import re
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from typer.exceptions import Abort, Exit, TyperException

from planner.errors import PlannerError

INTERRUPTED = 130
REFUSED = 2
TROUBLE = 4
_LONGEST_LINE = 4000
"""Characters of one line; the longest that we write ourselves lists forty names."""

_LONGEST_VALUE = 40
_ON_FREE = "  planner place --free FILE --out plan.json seats the job on them, then "
_BY_PLAN = {  # commands that know what is free from a plan alone
    "step": [f"{_ON_FREE}planner step --placement plan.json"],
    "compare": [f"{_ON_FREE}planner compare plan.json OTHER.json"],
    "search": ["  planner place --free FILE chooses the layout for what is free"],
}
_CHOICES = re.compile(r" is not one of (.+?)\.?$")

_USERS_OS_ERRORS = {
    errno.EACCES, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR,
    errno.EPERM, errno.EROFS,
}  # fmt: skip


def exit_code_of(error: BaseException) -> int:
    """Say on stderr what *error* means for the user and return the exit code."""
    match error:
        case Exit():
            return error.exit_code
        case SystemExit():
            return error.code if isinstance(error.code, int) else 1
        case BrokenPipeError():
            _let_go_of_stdout()
            return 0
        case KeyboardInterrupt() | Abort():
            _say(["interrupted; what was finished is kept"])
            return INTERRUPTED
        case PlannerError():
            _say(fault_lines(error.faults))
            return error.exit_code
        case TyperException():
            _say(misuse_lines(error))
            return REFUSED
    return _trouble(error)


def fault_lines(faults: Iterable[str]) -> list[str]:
    """Return one line that says what happened, then one for each fault if there are several.

    >>> fault_lines(["ep=3 does not divide dp x cp = 8"])
    ['error: ep=3 does not divide dp x cp = 8']
    >>> fault_lines(["sn64.yaml:3:17: a", "sn64.yaml:4:1: b"])
    ['error: 2 faults', '  sn64.yaml:3:17: a', '  sn64.yaml:4:1: b']
    """
    listed = [line for fault in faults for line in fault.splitlines()] or ["no reason was given"]
    if len(listed) == 1:
        return [f"error: {listed[0]}"]
    return [f"error: {len(listed)} faults", *(f"  {fault}" for fault in listed)]


def misuse_lines(error: TyperException) -> list[str]:
    """Return what was wrong with the command line, what was probably meant, where to read on."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        return [error.message]
    option = getattr(error, "option_name", None)
    message = error.format_message().replace(error.message, _refused(error))
    hints = []
    if type(error).__name__ == "NoSuchOption" and option is not None:
        known = [] if context is None else _options_of(context)
        message = f"no such option {option!r}"
        hints = [
            f"  did you mean {near}?" for near in difflib.get_close_matches(option, known, n=1)
        ]
        if "--cluster" in known:
            hints = _behind_the_file(option) or hints
        if option == "--free" and context is not None:
            hints = _BY_PLAN.get(context.info_name, hints)
    lines = [f"error: {message[:1].lower()}{message[1:]}", *hints]
    if context is not None:
        lines.append(f"  see '{context.command_path} --help'")
    return lines


def _refused(error: TyperException) -> str:
    """Return why a value was refused, in our words where pydantic's stand behind Typer's."""
    faults = getattr(error.__cause__, "errors", None)
    if faults is None:
        return error.message
    first = faults()[0]
    limits, got = first.get("ctx", {}), str(first.get("input"))[:_LONGEST_VALUE]
    right = {
        "greater_than_equal": f"at least {limits.get('ge')}",
        "less_than_equal": f"at most {limits.get('le')}",
        "int_parsing": "a whole number",
        "float_parsing": "a number",
        "bool_parsing": "true or false",
    }.get(first["type"])
    if right is None and (known := _CHOICES.search(error.message)):
        right = f"one of {known[1].replace(chr(39), '')}"
    return error.message if right is None else f"expected {right}, got {got!r}"


def _behind_the_file(option: str) -> list[str]:
    """Return where *option* of ``topology import`` stands in other commands, if it is one.

    >>> _behind_the_file("--gpus-per-node")
    ["  it stands behind the cluster's file: --cluster FILE,gpus-per-node=8"]
    """
    # Few runs end here, and the importers take a while to load.
    from topologies.imported_cluster import OPTIONS  # noqa: PLC0415

    key = option.lstrip("-")
    if key not in OPTIONS:
        return []
    shown = {"gpus-per-node": "=8", "join": "", "blocks-scale-up": ""}.get(key, "=...")
    return [f"  it stands behind the cluster's file: --cluster FILE,{key}{shown}"]


def _options_of(context: object) -> list[str]:
    parameters = context.command.get_params(context)  # type: ignore[attr-defined]
    return [
        name for parameter in parameters for name in (*parameter.opts, *parameter.secondary_opts)
    ]


def _trouble(error: BaseException) -> int:
    """Say what went wrong that is no refusal of ours, and return the exit code."""
    if os.environ.get("PLANNER_TRACEBACK"):
        traceback.print_exception(error)
    match error:
        case MemoryError():
            _say(["error: out of memory; fewer GPUs, layouts or groups would need less"])
        case RecursionError():
            _say(["error: the input is nested too deeply to be worked on"])
        case OSError():
            name = "" if error.filename is None else f"{error.filename}: "
            _say([f"error: {name}{error.strerror or error}"])
            return REFUSED if error.errno in _USERS_OS_ERRORS else TROUBLE
        case _:
            frames = traceback.extract_tb(error.__traceback__)
            where = f", at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
            _say(
                [
                    f"error: a fault of the planner itself: {type(error).__name__}: {error}{where}",
                    "  PLANNER_TRACEBACK=1 shows where it came from; please report it",
                ]
            )
    return TROUBLE


def _shown(line: str) -> str:
    r"""Return *line* as a terminal may be given it: nothing in it moves the cursor or is endless.

    >>> _shown("f:1: '\x1b[31mred' is no name")
    "f:1: '\\x1b[31mred' is no name"
    """
    cut = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)


def _say(lines: Iterable[str]) -> None:
    try:
        sys.stdout.flush()
        sys.stderr.write("".join(_shown(one) + "\n" for line in lines for one in line.split("\n")))
        sys.stderr.flush()
    except OSError:
        _let_go_of_stdout()


def _let_go_of_stdout() -> None:
    """Keep the interpreter from complaining, at its end, about a reader that has gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
