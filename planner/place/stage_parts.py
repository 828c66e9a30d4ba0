"""Patterns of a pipeline's stages at the prices of the stages' parts.

Stages are sheets, too. A price on every size of part of a stage says what sizes go together, which
one on every cell and piece does not; with prices on the pieces of a stage's lines it says more yet.
What the hops of a pattern cost is counted here as it is. Proof: ``FORMULATION.md``, "Swept".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.place.stage_prices import Patterns

if TYPE_CHECKING:
    from planner.place.sheet_prices import SheetPrices
    from planner.place.stages import Staged


def of_stages(of: Staged, prices: SheetPrices) -> bool:
    """Return whether the sheets that have these prices are the stages."""
    sheets = prices.of
    stage = tuple(i for i, n in enumerate(of.sheet.sizes) if n > 1)
    return sheets.axes == stage and not sheets.beside.charges and not sheets.traces


def patterns_at(of: Staged, prices: SheetPrices) -> Patterns:
    """Return the patterns where parts of stages, and cells, have these prices.

    Args:
        of: the question cut along its pipeline.
        prices: of its stages; see ``of_stages``.
    """
    sheets = prices.of
    inside = replace(of, pays_bytes=sheets.part_bytes, inside_given_bytes=sheets.inside_given_bytes)
    held = prices.price_bytes + prices.cell_bytes * np.arange(sheets.largest + 1)
    given = prices.sheets.least(sheets.sheet.cells) + prices.cell_bytes * sheets.sheet.cells
    return Patterns(inside, np.tile(held, (of.stages, 1)), np.full(of.stages, given))
