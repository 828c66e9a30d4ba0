"""A solve in a process of its own: ended in time, and at once when the user presses Ctrl-C.

HiGHS' own limit is not kept on large models, and while it runs Python handles no signal.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from planner.errors import SolverError
from planner.place.clock import left_s

if TYPE_CHECKING:
    from collections.abc import Callable

_GRACE_S = 3.0
_LAST_S = 1.0  # seconds past the end of the whole run
_START_S = 20.0  # a child that imports slowly on a busy machine is not a hung solver

_Result = TypeVar("_Result")


def in_child(
    function: Callable[..., _Result], arguments: tuple[Any, ...], time_limit_s: float
) -> _Result | None:
    """Return function(*arguments), worked out in a process of its own; None if it is not ended.

    A plain interpreter, not ``multiprocessing``: that would run the caller's script again.

    Args:
        function: of a module, not nested: the child finds it by its name.
        arguments: of the function, and like its result such as pickle takes.
        time_limit_s: seconds that the function needs; it is ended a little after them, or
            a second after the end of the whole run [s].

    Raises:
        SolverError: the function failed, or its process ended without an answer.
    """
    with subprocess.Popen(
        [
            sys.executable,
            "-c",  # Ctrl-C reaches every process of a terminal: the parent alone answers it
            (
                "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
                "from planner.place.child import serve; serve()"
            ),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    ) as child:
        try:
            asked = pickle.dumps((function, arguments))
            most_s = min(time_limit_s + _GRACE_S + _START_S, left_s() + _LAST_S)
            answered, _ = child.communicate(asked, timeout=most_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            child.kill()
            child.wait()  # Popen does not after Ctrl-C
    if not answered:
        raise SolverError(
            f"the solver's process ended without an answer (exit code {child.returncode}); "
            "a smaller --time-limit stops it sooner"
        )
    result = pickle.loads(answered)  # noqa: S301 - written by our own child
    if isinstance(result, str):
        raise SolverError(f"the solver failed: {result}")
    found: _Result = result
    return found


def serve() -> None:
    """Answer one question from stdin on stdout: the child's side of ``in_child``."""
    _end_with_parent()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    function, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by our own parent
    try:
        result: object = function(*arguments)
    except Exception as error:  # noqa: BLE001 - the parent names it; no traceback to the user
        result = f"{type(error).__name__}: {error}"
    out.write(pickle.dumps(result))
    out.close()


def _end_with_parent() -> None:
    """Have the system end this process when its parent dies, killed or not (Linux)."""
    if sys.platform == "linux":
        die_with_parent = 1  # PR_SET_PDEATHSIG of prctl(2)
        ctypes.CDLL(None, use_errno=True).prctl(die_with_parent, signal.SIGKILL)
