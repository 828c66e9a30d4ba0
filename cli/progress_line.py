"""How far a long search is, on stderr: one line that is written over, or one now and then."""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING

from planner.units import format_bytes, format_share, format_time

if TYPE_CHECKING:
    from planner.place.answer import Progress

_QUIET_S = 1.0  # a search that ends sooner says nothing
_EVERY_S = 10.0  # seconds between lines where nobody can write over them
_WIDTH = 79


class ProgressLine:
    """Tells a terminal of every better seating or bound, and a log of one every ten seconds.

    Args:
        limit_s: seconds that the solver may take [s].
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.starts_s = monotonic()
        self.told_s = self.starts_s
        self.live = sys.stderr.isatty()
        self.shown = False

    def __call__(self, progress: Progress) -> None:
        """Say what is in hand."""
        now_s = monotonic()
        if now_s - self.starts_s < _QUIET_S or not (self.live or now_s - self.told_s > _EVERY_S):
            return
        self.told_s = now_s
        passed_s, limit_s = format_time(float(round(now_s - self.starts_s))), self.limit_s
        line = (
            f"{format_bytes(progress.cut_bytes)} cross, at least "
            f"{format_bytes(progress.lower_bound_bytes)} must: gap {format_share(progress.gap)}; "
            f"{passed_s} of about {format_time(limit_s)}"
        )
        self.shown = True
        if self.live:
            line = f"\r{line}; Ctrl-C keeps it"[:_WIDTH].ljust(_WIDTH)
        sys.stderr.write(line if self.live else line + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Leave a terminal's line empty for what follows."""
        if self.live and self.shown:
            sys.stderr.write("\r" + " " * _WIDTH + "\r")
            sys.stderr.flush()


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
