"""What the first lines compare is what was made least: a border's time, a step, or bytes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from cli.planner_inputs import Asked, read_inputs
from planner.place.borders import tier_cuts
from planner.traffic import step_families
from tests.conftest import Ran

Planner = Callable[..., Ran]
GIVEN = {"tp": 4, "dp": 6, "pp": 1, "cp": 1, "global_batch": 48, "micro_batch": 8}
ASKED = ("place", "--supernode", "5", "--gpus", "24", "--model", "llama-3.1-8b",
         "--tp", "4", "--dp", "6", "--pp", "1", "--cp", "1",
         "--global-batch", "48", "--micro-batch", "8")  # fmt: skip


def page(planner: Planner, *args: str) -> str:
    ran = planner(*ASKED, *args)
    assert ran.code == 0, ran.err
    return " ".join(ran.out.split())


def test_the_busiest_border_is_held_against_rank_order_by_its_time(planner: Planner) -> None:
    inputs = read_inputs(
        Asked(supernode=5, gpus=24, model="llama-3.1-8b", layout={**GIVEN, "zero_stage": None})
    )
    families = step_families(inputs.model, inputs.layout)
    rank_order = tier_cuts(inputs.layout, families, inputs.fabric, range(24))
    theirs_s = next(cut.cut_time_s for cut in rank_order if cut.tier == "supernode")

    said = page(planner, "--objective", "bottleneck", "--time-limit", "30")

    found = re.search(r"takes (\d+) ms of a step .*?\(([\d.]+) % less than in rank order\)", said)
    assert found is not None, said[:300]
    ours_s = float(found[1]) / 1e3
    assert float(found[2]) == pytest.approx(100.0 * (1.0 - ours_s / theirs_s), abs=0.3)


def test_as_many_answers_are_listed_as_are_said_to_be_timed(planner: Planner) -> None:
    said = page(planner, "--objective", "time")

    found = re.search(r"Timed, (\d+) answers that are (\d+) different placements: (.*?)\. No", said)
    assert found is not None, said
    listed = re.findall(r"[\d.]+ m?s", found[3])
    assert len(listed) == int(found[1]) > int(found[2])
    assert f"shortest step of {found[2]} different placements timed" in said


def test_a_placement_by_time_is_held_against_rank_order_by_its_step(planner: Planner) -> None:
    said = page(planner, "--objective", "time")

    # 378 GB against 402 GB cross, and the steps are alike
    assert "(rank order does as well)" in said.partition("Asked")[0]
