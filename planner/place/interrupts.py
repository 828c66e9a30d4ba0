"""Ctrl-C while an answer is in hand and only has to be finished: it waits, and is told of."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import dataclass
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Held:
    """Whether the user pressed Ctrl-C while something was finished."""

    interrupted: bool = False


@contextmanager
def held_back() -> Iterator[Held]:
    """Finish what is within before Ctrl-C counts; a second one does not wait.

    Nothing is held back outside the main thread, or where a program answers SIGINT in its own way.
    """
    held = Held()
    plain = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not plain or current_thread() is not main_thread():
        yield held
        return

    def note(*_: object) -> None:
        if held.interrupted:
            raise KeyboardInterrupt
        held.interrupted = True

    signal.signal(signal.SIGINT, note)
    try:
        yield held
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
