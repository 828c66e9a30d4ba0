"""How far a long search is, on stderr: one line that is written over, or one now and then."""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING

from planner.units import format_bytes, format_share, format_time
from planner.words import counted

if TYPE_CHECKING:
    from planner.place.answer import Progress
    from planner.search.seated_rows import Seating

_QUIET_S = 1.0  # a search that ends sooner says nothing
_EVERY_S = 10.0  # seconds between lines where nobody can write over them
_WIDTH = 79


class _Line:
    """A line on stderr, once a second has passed."""

    def __init__(self) -> None:
        self.starts_s = monotonic()
        self.told_s = self.starts_s
        self.live = sys.stderr.isatty()
        self.shown = False

    def due(self) -> bool:
        """Return whether anything is to be said now, and take it for said."""
        now_s = monotonic()
        if now_s - self.starts_s < _QUIET_S or not (self.live or now_s - self.told_s > _EVERY_S):
            return False
        self.told_s = now_s
        return True

    def say(self, line: str) -> None:
        """Write *line*, over the last one where that can be."""
        self.shown = True
        sys.stderr.write(f"\r{line}"[: _WIDTH + 1].ljust(_WIDTH) if self.live else f"{line}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Leave a terminal's line empty for what follows."""
        if self.live and self.shown:
            sys.stderr.write("\r" + " " * _WIDTH + "\r")
            sys.stderr.flush()


class ProgressLine(_Line):
    """Tells a terminal of every better seating or bound, and a log of one every ten seconds.

    Args:
        limit_s: seconds that the solver may take [s].
    """

    def __init__(self, limit_s: float) -> None:
        super().__init__()
        self.limit_s = limit_s

    def __call__(self, progress: Progress) -> None:
        """Say what is in hand."""
        if not self.due():
            return
        passed_s = format_time(float(round(self.told_s - self.starts_s)))
        line = (
            f"{format_bytes(progress.cut_bytes)} cross, at least "
            f"{format_bytes(progress.lower_bound_bytes)} must: gap {format_share(progress.gap)}; "
            f"{passed_s} of about {format_time(self.limit_s)}"
        )
        self.say(f"{line}; Ctrl-C keeps it" if self.live else line)


class SeatingLine(_Line):
    """Tells how many layouts were seated so far to choose one."""

    def __call__(self, seating: Seating) -> None:
        """Say how far it is."""
        if self.due():
            self.say(
                f"choosing: {counted(seating.seated, 'layout')} seated, the shortest step so far "
                f"{format_time(seating.shortest_s)}"
            )


class StageLine:
    """Tells a terminal what a command of many seconds is at, on one line that is written over."""

    def __init__(self) -> None:
        self._starts_s = monotonic()
        self._live = sys.stderr.isatty()

    def __call__(self, stage: str) -> None:
        """Say what begins, and how long it took so far; an empty *stage* leaves the line empty."""
        if not self._live:
            return
        passed_s = monotonic() - self._starts_s
        line = f"{stage} ({format_time(round(passed_s, 1))} so far)" if stage else ""
        sys.stderr.write(f"\r{line[:_WIDTH].ljust(_WIDTH)}" + ("" if stage else "\r"))
        sys.stderr.flush()
