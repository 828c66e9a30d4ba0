"""How far a long search is, on stderr: one line that is written over, or one now and then."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING

from planner.units import format_bytes, format_share, format_time
from planner.words import counted

if TYPE_CHECKING:
    from planner.place.answer import Progress
    from planner.search.seated_rows import Seating
    from planner.search.stages import Stage

_QUIET_S = 1.0  # a search that ends sooner says nothing
_EVERY_S = 10.0  # seconds between lines where nobody can write over them
_BEAT_S = 1.0  # so often a terminal's line is written anew though nothing was told
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


class _Beating(_Line, ABC):
    """A line that goes on counting seconds while nothing is told."""

    def __init__(self) -> None:
        super().__init__()
        self._one, self._over = Lock(), Event()
        self._heart = Thread(target=self._beat, daemon=True)
        self._heart.start()

    def close(self) -> None:
        """Leave a terminal's line empty for what follows."""
        self._over.set()
        self._heart.join()
        super().close()

    def _beat(self) -> None:
        while not self._over.wait(_BEAT_S):
            with self._one:
                line = self._line()
                if line and self.due():
                    self.say(self._line())

    @abstractmethod
    def _line(self) -> str:
        """Return what is to be said; nothing before anything was told."""


class ProgressLine(_Beating):
    """Tells a terminal of every better seating or bound, and a log of one every ten seconds.

    Args:
        limit_s: seconds that the solver may take [s].
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._progress: Progress | None = None
        super().__init__()

    def __call__(self, progress: Progress) -> None:
        """Say what is in hand."""
        with self._one:
            self._progress = progress
            if self.due():
                self.say(self._line())

    def _line(self) -> str:
        """Return what crosses, what must, and how long that took so far."""
        progress = self._progress
        if progress is None:
            return ""
        passed_s = round(monotonic() - self.starts_s)
        cut, least = format_bytes(progress.cut_bytes), format_bytes(progress.lower_bound_bytes)
        line = f"{cut} cross, at least {least} must: gap {format_share(progress.gap)}"
        if cut == least and progress.gap > 0:  # two numbers alike do not show what is between them
            line = f"{cut} cross, {format_share(progress.gap)} of it perhaps for nothing"
        line = f"{line}; {passed_s} of {format_time(self.limit_s)}"
        return f"{line}; Ctrl-C keeps it" if self.live else line


class SeatingLine(_Line):
    """Tells how many layouts were seated so far to choose one."""

    def __call__(self, seating: Seating) -> None:
        """Say how far it is."""
        if self.due():
            self.say(
                f"choosing: {counted(seating.seated, 'layout')} seated, the shortest step so far "
                f"{format_time(seating.shortest_s)}"
            )


class StageLine(_Beating):
    """Tells what a command of many seconds is at, how much of it is done and how long is left."""

    def __init__(self) -> None:
        self._stage: Stage | None = None
        self._stage_starts_s = monotonic()
        super().__init__()

    def __call__(self, stage: Stage) -> None:
        """Say how far it is."""
        with self._one:
            if self._stage is None or stage.what != self._stage.what:
                self._stage_starts_s = monotonic()
            self._stage = stage
            if self.due():
                self.say(self._line())

    def _line(self) -> str:
        """Return the stage, what is left of it by what its parts took, and all that has passed."""
        stage = self._stage
        if stage is None:
            return ""
        now_s = monotonic()
        passed = f"{format_time(float(round(now_s - self.starts_s)))} so far"
        if stage.of:
            passed = f"{stage.done} of {stage.of}, {passed}"
        if 0 < stage.done < stage.of:
            each_s = (now_s - self._stage_starts_s) / stage.done
            left_s = max(1.0, each_s * (stage.of - stage.done))
            passed += f", about {format_time(float(round(left_s)))} left"
        return "; ".join(part for part in (f"{stage.what}: {passed}", stage.now) if part)
