"""What bounds and rules leave open, layer upon layer: in a moment, before anything is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.place.stacked import stacked_bound

if TYPE_CHECKING:
    from planner.place.solve import Work

_CELLS_MOST = 20_000


def by_layers(work: Work) -> bool:
    """Raise the bound by what domains pay layer upon layer; return whether that proves."""
    if work.question.cells > _CELLS_MOST:
        return False
    return work.raise_bound(stacked_bound(work.question, work.best.cut_bytes))
