"""A solve in a process of its own: ended in time, and at once when the user presses Ctrl-C.

HiGHS' own limit is not kept on large models, and while it runs Python handles no signal. The
process is kept for the next solve, for it takes half a second to start; it ends after a while
without work, with its parent, and when a solve has to be ended.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import pickle
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TypeVar

from planner.errors import SolverError
from planner.place.clock import left_s

if TYPE_CHECKING:
    from collections.abc import Callable

_GRACE_S = 3.0
_LAST_S = 1.0  # seconds past the end of the whole run
_START_S = 20.0  # a child that imports slowly on a busy machine is not a hung solver
_IDLE_S = 15.0  # seconds without work after which a child ends
_HEAD = 8  # bytes that tell how long a message is

_Result = TypeVar("_Result")


class _EndedError(Exception):
    """The child's process is gone."""


@dataclass(frozen=True, slots=True)
class _Worker:
    """A child that waits for work.

    Args:
        process: itself.
        owner: process that started it.
        paths: where it looks for modules.
    """

    process: subprocess.Popen[bytes]
    owner: int
    paths: tuple[str, ...]

    def ask(self, asked: bytes, limit_s: float) -> bytes:
        """Return its answer.

        Raises:
            TimeoutError: there was none in time.
            _EndedError: it ended before that.
        """
        into, out = self.process.stdin, self.process.stdout
        if into is None or out is None:  # both are pipes
            raise _EndedError
        answers: list[bytes | None] = []
        reader = threading.Thread(target=_hear, args=(out, answers), daemon=True)
        try:
            into.write(len(asked).to_bytes(_HEAD, "big") + asked)
            into.flush()
        except OSError as error:
            raise _EndedError from error
        reader.start()  # a pipe cannot be waited for on every system, a thread can
        reader.join(max(0.0, limit_s))
        if not answers:
            raise TimeoutError
        if answers[0] is None:
            raise _EndedError
        return answers[0]

    def end(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what a dead child was not told yet
                    pipe.close()


_kept: list[_Worker] = []  # those that have no work
_others: list[_Worker] = []  # of the process that this one was forked from: theirs to end


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
    asked = pickle.dumps((function, arguments))
    worker = _waiting()
    answered = None
    if worker is not None:
        with contextlib.suppress(_EndedError):  # it had waited too long
            answered = _asked(worker, asked, _most_s(time_limit_s))
    try:
        if answered is None:
            worker = _started()
            answered = _asked(worker, asked, _most_s(time_limit_s))
    except _EndedError as error:
        raise SolverError(
            f"the solver's process ended without an answer (exit code {error}); "
            "a smaller --time-limit stops it sooner"
        ) from None
    if not answered:
        return None
    result = pickle.loads(answered)  # noqa: S301 - written by our own child
    if isinstance(result, str):
        raise SolverError(f"the solver failed: {result}")
    found: _Result = result
    return found


def _most_s(time_limit_s: float) -> float:
    """Return how long to wait for an answer, from now on [s]."""
    return min(time_limit_s + _GRACE_S + _START_S, left_s() + _LAST_S)


def _asked(worker: _Worker, asked: bytes, limit_s: float) -> bytes:
    """Return its answer, empty if there was none in time.

    Raises:
        _EndedError: it ended before that, with this exit code.
    """
    try:
        answered = worker.ask(asked, limit_s)
    except TimeoutError:
        worker.end()
        return b""
    except _EndedError:
        worker.end()
        raise _EndedError(worker.process.returncode) from None
    except BaseException:  # Ctrl-C: the solve ends with it
        worker.end()
        raise
    _keep(worker)
    return answered


def _waiting() -> _Worker | None:
    """Return a child that waits for work, if one is ours and still there."""
    while _kept:
        try:
            worker = _kept.pop()
        except IndexError:  # another thread took it
            break
        if worker.owner != os.getpid():
            _others.append(worker)
        elif worker.process.poll() is None and worker.paths == tuple(sys.path):
            return worker
        else:
            worker.end()
    return None


def _keep(worker: _Worker) -> None:
    """Have it wait for work, and end another that waits."""
    other = _waiting()
    _kept.append(worker)
    if other is not None:
        other.end()


def _started() -> _Worker:
    process = subprocess.Popen(
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
    )
    return _Worker(process, os.getpid(), tuple(sys.path))


@atexit.register
def _end_kept() -> None:
    worker = _waiting()
    if worker is not None:
        worker.end()


def serve() -> None:
    """Answer questions from stdin on stdout, one after the other: the child's side."""
    _end_with_parent()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    while True:
        idle = threading.Timer(_IDLE_S, os._exit, (0,))
        idle.daemon = True
        idle.start()
        asked = _message(sys.stdin.buffer)
        idle.cancel()
        if asked is None:
            return
        function, arguments = pickle.loads(asked)  # noqa: S301 - written by our own parent
        try:
            result: object = function(*arguments)
        except Exception as error:  # noqa: BLE001 - the parent names it; no traceback to the user
            result = f"{type(error).__name__}: {error}"
        answer = pickle.dumps(result)
        out.write(len(answer).to_bytes(_HEAD, "big") + answer)
        out.flush()


def _message(source: IO[bytes]) -> bytes | None:
    """Return the next message, None at the end."""
    head = source.read(_HEAD)
    if len(head) < _HEAD:
        return None
    size = int.from_bytes(head, "big")
    told = source.read(size)
    return told if len(told) == size else None


def _hear(source: IO[bytes], answers: list[bytes | None]) -> None:
    """Add the next message to *answers*."""
    with contextlib.suppress(ValueError):  # closed before it was read: nobody waits any more
        answers.append(_message(source))


def _end_with_parent() -> None:
    """Have the system end this process when its parent dies, killed or not (Linux)."""
    if sys.platform == "linux":
        die_with_parent = 1  # PR_SET_PDEATHSIG of prctl(2)
        ctypes.CDLL(None, use_errno=True).prctl(die_with_parent, signal.SIGKILL)
