"""The shipped numbers: fits of every row, of the halves, and without each source; their files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.documents import document_from_text
from planner.errors import InputError
from planner.steptime.calibrate import fitting_half
from planner.steptime.refit import Refit, refit
from planner.steptime.runs import Run
from topologies.efficiency_catalogue import CATALOGUE, read_efficiencies
from topologies.efficiency_text import catalogue_texts
from topologies.steps_table import read_steps

OWN = Path(__file__).parent.parent / "accuracy" / "published_steps.csv"


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """Published steps of A100: two sources, one of them made of the other's odd rows."""
    rows = [run for run in read_steps(OWN).runs if run.source == "korthikanti2022"]
    return [
        replace(run, source="elsewhere" if position % 2 else "korthikanti2022")
        for position, run in enumerate(rows)
    ]


@pytest.fixture(scope="module")
def fits(runs: list[Run]) -> Refit:
    return refit(runs, lambda _: None)


def test_each_half_is_fitted_on_its_own_layouts(runs: list[Run], fits: Refit) -> None:
    halves = {side: [run for run in runs if fitting_half(run) == side] for side in (True, False)}

    assert fits.first["A100-SXM-80"].rows == len(halves[True])
    assert fits.second["A100-SXM-80"].rows == len(halves[False])
    assert fits.whole["A100-SXM-80"].rows == len(runs) == 8


def test_a_fit_without_a_source_has_not_seen_it(fits: Refit) -> None:
    assert set(fits.left_out) == {"korthikanti2022", "elsewhere"}
    for source, chips in fits.left_out.items():
        assert chips["A100-SXM-80"].rows == 4
        assert source not in chips["A100-SXM-80"].fitted_on


def test_all_fits_of_an_accelerator_carry_the_spread_of_what_the_halves_had_not_seen(
    fits: Refit,
) -> None:
    spreads = {
        chips["A100-SXM-80"].spread
        for chips in (fits.whole, fits.first, fits.second, *fits.left_out.values())
    }

    assert len(spreads) == 1
    assert 0.01 < spreads.pop() < 0.15


def test_rows_of_one_half_alone_are_refused(runs: list[Run]) -> None:
    with pytest.raises(InputError, match="both halves"):
        refit([run for run in runs if fitting_half(run)], lambda _: None)


def test_the_files_are_read_as_written_and_keep_what_tables_call_an_accelerator(
    fits: Refit, tmp_path: Path
) -> None:
    texts = catalogue_texts(fits)

    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    written = read_efficiencies(tmp_path / CATALOGUE.name)["A100-SXM-80"]
    whole = fits.whole["A100-SXM-80"]
    assert written.gemm_share == pytest.approx(whole.gemm_share, rel=1e-3)
    assert written.fitted_on == "elsewhere, korthikanti2022"
    assert "  - A100-SXM4-80GB\n" in texts[CATALOGUE.name]
    assert texts[CATALOGUE.name].startswith("# What accelerators reach")
    shipped = document_from_text(CATALOGUE.read_text(encoding="utf-8"))
    assert document_from_text(texts[CATALOGUE.name]).root.keys() == shipped.root.keys()
