"""A fit gets back what made the numbers, keeps to what is known, and splits by layout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.errors import InputError
from planner.steptime.calibrate import (
    fit,
    fitting_half,
    layout_key,
    paces_of,
    robust_spread,
    thinned,
    weights_of,
)
from planner.steptime.ranking import orders
from planner.steptime.rates import Efficiency
from planner.steptime.runs import Run, batches, predicted_s
from planner.steptime.validate import (
    constant_mfu_error,
    ideal_s,
    inside_interval,
    scores,
)
from topologies.steps_table import steps_from_text

TRUE = Efficiency(
    gemm_share={"bf16": 0.60}, attention_share={"fused": 0.40}, memory_share={"fused": 0.55},
    inner_share=0.8, outer_share=0.7, host_s={"fused": 20e-6}, step_s=0.03,
)  # fmt: skip


def runs_made_with(efficiency: Efficiency) -> list[Run]:
    header = (
        "id,source,model,layers,hidden,heads,kv_heads,ffn,vocab,seq,gpu,n_gpus,tp,pp,dp,sp,"
        "micro_batch,global_batch,precision,gated_mlp,measured_step_s"
    )
    lines = [header]
    number = 0
    for hidden, heads, layers in ((4096, 32, 32), (8192, 64, 80)):
        for tp in (1, 2, 4, 8):
            for pp, dp in ((1, 16), (2, 8), (4, 4)):
                for seq in (2048, 16384):
                    number += 1
                    lines.append(
                        f"r{number},made,m{hidden},{layers},{hidden},{heads},8,{4 * hidden},128256,"
                        f"{seq},H100,{tp * pp * dp},{tp},{pp},{dp},1,1,{dp * 16},bf16,1,1000"
                    )
    runs = steps_from_text("\n".join(lines), "made").runs
    step_s = predicted_s(batches(runs), {"H100-SXM": efficiency}, len(runs))
    return [replace(run, measured_s=float(s)) for run, s in zip(runs, step_s, strict=True)]


@pytest.fixture(scope="module")
def made() -> list[Run]:
    return runs_made_with(TRUE)


def test_a_fit_gets_back_the_shares_that_made_the_steps(made: list[Run]) -> None:
    found = fit(made)["H100-SXM"]

    assert found.efficiency.gemm_share["bf16"] == pytest.approx(0.60, rel=0.04)
    assert found.efficiency.attention_share["fused"] == pytest.approx(0.40, rel=0.05)
    assert found.efficiency.memory_share["fused"] == pytest.approx(0.55, rel=0.08)
    assert np.abs(found.log_ratio).max() < 0.03
    assert found.efficiency.fitted_on == "made"


def test_one_broken_run_does_not_bend_a_fit(made: list[Run]) -> None:
    broken = [replace(made[0], measured_s=5 * made[0].measured_s), *made[1:]]

    found = fit(broken)["H100-SXM"].efficiency

    assert found.gemm_share["bf16"] == pytest.approx(0.60, rel=0.03)


def test_what_a_table_says_nothing_of_stays_where_other_generations_have_it(
    made: list[Run],
) -> None:
    inside = [run for run in made if run.columns.gpus == 16 and run.columns.tp == 1][:4]

    found = fit(inside)["H100-SXM"].efficiency

    assert found.outer_share == pytest.approx(0.7, rel=0.1)


def test_a_fit_says_which_numbers_its_rows_tell(made: list[Run]) -> None:
    inside = [run for run in made if run.columns.gpus == 16 and run.columns.tp == 1]

    all_rows = fit(made)["H100-SXM"].told_share
    few = fit(inside[:4])["H100-SXM"].told_share

    # every row tells of products; of the NIC those do that leave the node; steps of seconds tell
    # nothing of 17 us a launch
    assert all_rows["gemm.bf16"] > 0.8
    assert all_rows["outer"] > 0.2
    assert few["outer"] < 0.001
    assert all_rows["host.fused"] < 0.001
    assert all(0.0 <= few[name] <= all_rows[name] + 0.01 for name in few)


def test_a_table_without_measurements_cannot_be_fitted(made: list[Run]) -> None:
    with pytest.raises(InputError, match="no row has a measured step"):
        fit([replace(run, measured_s=0.0) for run in made])


def test_all_runs_of_one_layout_fall_on_the_same_side(made: list[Run]) -> None:
    again = replace(made[0], name="another-release", measured_s=9.0)

    assert layout_key(again) == layout_key(made[0])
    assert fitting_half(again) == fitting_half(made[0])
    assert {fitting_half(run) for run in made} == {True, False}


def test_a_large_source_is_thinned_and_the_same_rows_are_kept_each_time(made: list[Run]) -> None:
    many = [replace(run, name=f"{run.name}-{i}") for i in range(10) for run in made]

    kept = thinned(many, most=50)

    assert len(kept) == 50
    assert kept == thinned(many, most=50)


def test_weak_and_short_rows_weigh_less(made: list[Run]) -> None:
    rows = [
        replace(made[0], measured_s=10.0),
        replace(made[0], measured_s=10.0, weak=True),
        replace(made[0], measured_s=0.05),
    ]

    full, weak, short = weights_of(rows)

    assert weak == pytest.approx(0.2 * full)
    assert short == pytest.approx(0.1 * full)


def test_a_sources_pace_is_drawn_to_one_the_more_the_fewer_its_rows(made: list[Run]) -> None:
    few = paces_of(made[:2], np.full(2, -0.05))["made"]
    many = paces_of(made[:40], np.full(40, -0.05))["made"]

    assert 1 < few < many < np.exp(0.05)


def test_a_tenth_of_outliers_hardly_moves_the_spread() -> None:
    clean = np.random.default_rng(0).normal(0, 0.1, 1000)
    dirty = clean.copy()
    dirty[:100] = 5.0

    assert robust_spread(clean) == pytest.approx(0.1, rel=0.05)
    assert robust_spread(dirty) < 0.2


def test_a_perfect_prediction_has_no_error_no_regret_and_every_pair_right(
    made: list[Run],
) -> None:
    rows = [replace(run, group="g") for run in made]
    step_s = np.array([run.measured_s for run in rows])

    score = scores(rows, step_s)[0]

    assert score.mape_share == score.regret_share == 0
    assert score.pairs_right_share == 1
    assert np.isnan(score.published_share)


def test_regret_is_the_price_of_the_layout_that_was_picked(made: list[Run]) -> None:
    rows = [
        replace(run, group="g", measured_s=s) for run, s in zip(made, (1.0, 1.1, 1.3), strict=False)
    ]

    group = orders(rows, np.array([3.0, 1.0, 2.0]))[0]

    assert group.regret_share == pytest.approx(0.1)
    assert (group.pairs, group.right) == (3, 1)
    assert (group.picked, group.fastest) == (rows[1].name, rows[0].name)


def test_a_constant_mfu_is_right_where_mfu_is_constant(made: list[Run]) -> None:
    rows = [replace(run, measured_s=2.5 * ideal_s(run)) for run in made]

    assert constant_mfu_error(rows) == pytest.approx(0.0, abs=1e-12)


def test_an_interval_holds_the_rows_that_are_less_than_1_645_deviations_off(
    made: list[Run],
) -> None:
    """Of one source three rows of four, of another none: three eighths at the mean."""
    rows = [replace(run, source=source) for run in made[:4] for source in ("one", "other")]
    off = [1.0, 3.0] * 3 + [3.0, 3.0]  # deviations
    fit_of = replace(TRUE, spread=0.03, machine_spread=0.04)  # 0.05 together
    step_s = np.array([run.measured_s * np.exp(0.05 * d) for run, d in zip(rows, off, strict=True)])

    held = inside_interval(rows, step_s, [fit_of] * len(rows))

    assert held is not None
    assert (held.held, held.rows) == (3, 8)
    assert held.mean_share == pytest.approx(3 / 8)
