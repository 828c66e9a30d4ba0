"""Stages at prices of their parts: no seating cuts less, whatever the prices."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np
import pytest

from planner.place.sheet_lines import lined
from planner.place.sheet_parts import Sheeted, sheeted
from planner.place.sheet_prices import SheetPrices, sheet_prices
from planner.place.stage_joins import Beyond
from planner.place.stage_parts import of_stages, patterns_at
from planner.place.stage_sweep import StageDealing
from planner.place.stages import Staged, staged
from planner.place.sweep import swept
from tests.oracles import brute_force_cut
from tests.property.test_place_stage_sweep import EVERYTHING, SOLVER, _least
from tests.small_questions import small_pipelines

ROUNDING = 1e-9


def _drawn(sheets: Sheeted, random: np.random.Generator) -> SheetPrices:
    scale = float(sheets.pays_bytes[0].max()) / 4
    drawn = random.normal(scale=scale, size=sheets.largest)
    return SheetPrices(of=sheets, price_bytes=np.append(0.0, drawn))


def _prices(of: Staged, seed: int) -> Iterator[tuple[bool, SheetPrices]]:
    """Yield (whether lines have prices, good prices or any) of the stages' parts."""
    random = np.random.default_rng(seed)
    stage = tuple(i for i, n in enumerate(of.sheet.sizes) if n > 1)
    if not stage:
        return
    sheets = sheeted(of.question, stage)
    yield False, sheet_prices(sheets, inf)
    yield False, _drawn(sheets, random)
    for axis in stage if len(stage) > 1 else ():
        both = lined(sheets, (axis,))
        for scale in (0.0, 0.2):
            one = both.pays.lines[0]
            most = float(one.piece_bytes.max())
            pieces = random.normal(scale=scale * most, size=one.largest)
            at = both.begun(None, [np.append(0.0, pieces)]).prices.of
            yield True, sheet_prices(at, inf)
            yield True, _drawn(at, random)


@pytest.mark.parametrize(
    "seeds", [range(500, 515), pytest.param(range(6000, 6300), marks=pytest.mark.nightly)]
)
def test_no_seating_of_a_small_pipeline_cuts_less_than_its_stages_parts_say(seeds: range) -> None:
    asked = 0
    for seed, question in enumerate(small_pipelines(seeds)):
        best, of = brute_force_cut(question), staged(question)
        if of is None or not best:
            continue
        for _, prices in _prices(of, seed):
            if not of_stages(of, prices):
                continue
            patterns = patterns_at(of, prices)
            assert patterns.bound_bytes <= best * (1 + SOLVER), question
            for most, sheet_s in ((30, 0.0), (EVERYTHING, 0.0), (EVERYTHING, 0.05)):
                beyond = Beyond(of=patterns.of, slack_bytes=best, ends_s=inf, sheet_s=sheet_s)
                found = swept(StageDealing(patterns, beyond), 1.5 * best, 0.0, most, inf)
                assert found.bound_bytes <= best * (1 + SOLVER), question
            asked += 1
    assert asked > len(seeds)


def test_a_sweep_at_any_prices_of_parts_finds_what_counting_every_choice_finds() -> None:
    asked = 0
    for seed, question in enumerate(small_pipelines(range(540, 560))):
        of = staged(question)
        if of is None or question.cells > 12:
            continue
        least = _least(of, None)
        for with_lines, prices in _prices(of, seed):
            if with_lines or not of_stages(of, prices):
                continue
            dealing = StageDealing(patterns_at(of, prices))
            found = swept(dealing, 2 * abs(least) + 50.0, 0.0, EVERYTHING, inf)
            assert found.ended
            assert found.bound_bytes == pytest.approx(least, rel=ROUNDING, abs=1e-6), question
            asked += 1
    assert asked > 10
