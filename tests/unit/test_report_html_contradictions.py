"""A plan edited by hand: figures that its own seats, traffic and parts do not give are refused.

The small plan by hand: 120 bytes cross, all of the pipeline; a step of 2 s for 8 x 128 tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from tests.conftest import Ran
from tests.report_plans import saved, small_plan
from tests.unit.test_report_html_read import damaged

SWAPPED = [
    {"name": "a", "tier": "supernode", "capacity": 4, "ranks": [0, 1, 2, 7]},
    {"name": "b", "tier": "supernode", "capacity": 5, "ranks": [3, 4, 5, 6]},
]


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        ("cut.objective_bytes", 60.0, "cut.objective_bytes: 60 B in the file, 120 B when counted"),
        ("cut.checked_bytes", 60.0, "cut.checked_bytes: 60 B in the file, 120 B when counted"),
        ("cut.by_family", {"pp_forward": 60.0}, "cut.by_family.pp_forward: 60 B in the file"),
        ("cut.by_family", {}, "cut.by_family.pp_forward: is missing; 120 B of it cross"),
        ("cut.by_family", {"pp_forward": 120.0, "x": 9.0}, "cut.by_family.x: 9 B in the file, 0 B"),
        ("cut.lower_bound_bytes", 200.0, "200 B is above the 120 B that cross: it is no bound"),
        ("cut.lower_bound_bytes", 60.0, "cut.gap: expected 50 % by the bound, got 0 %"),
        ("cut.lower_bound_bytes", 60.0, "cut.proof: 'bound' with a gap of 50 %: nothing is proved"),
        ("cut.gap", 0.25, "cut.gap: expected 0 % by the bound, got 25 %"),
        ("cut.tier", "rack", "cut.tier: 'rack' is none of inputs.fabric.tiers"),
        ("tiers.0.cut_bytes", 77.0, "tiers[0].cut_bytes: 77 B in the file, 120 B when counted"),
        ("tiers.0.tier", "rack", "tiers[0].tier: 'rack' is none of inputs.fabric.tiers: supernode"),
        ("tiers", [], "tiers: expected 'supernode', the tier of the cut, among them"),
        ("baselines.1.cut_bytes", 60.0, "baselines[1].cut_bytes: 60 B is below the lower bound"),
        ("placement.domains", SWAPPED, "placement.rank_to_gpu[3]: GPU 3 is one of a, placement"),
        ("placement.rank_to_gpu", [0, 1, 2, 9, 4, 5, 6, 7], "GPU 9 of the 9 of tier supernode"),
        ("placement.rank_to_gpu", [7, 1, 2, 3, 4, 5, 6, 0], "rank_to_gpu[0]: GPU 7 is one of b"),
        ("placement.gpus.3", "gpu0", "placement.gpus: 'gpu0' holds two ranks"),
        ("placement.domains.1.capacity", 10**12, "their capacities are not those of inputs.fabric"),
        ("inputs.fabric.tiers.0.capacities", [10**12], "GPUs; at most 1,000,000"),
        ("inputs.layout.tp", 4, "inputs.layout.tp: expected 2 by the axes, got 4"),
        ("inputs.gpus", 9, "inputs.gpus: expected 8, one for each rank seated, got 9"),
        ("traffic.0.group_size", 4, "traffic[0].group_size: expected 2 by its axes, got 4"),
        ("traffic.0.groups", 3, "traffic[0].groups: expected 4 by its axes, got 3"),
        ("traffic.2.payload_bytes", 20.0, "120 B in the file, 240 B when counted again"),
        (
            "step.total_s",
            1.6,
            "step.tokens_per_s: expected 640 by batch, sequence and step, got 512",
        ),
        ("step.total_s", 1.6, "its parts are 2 s in all, the step takes 1.6 s"),
        ("step.tokens_per_s", 5120.0, "step.tokens_per_s: expected 512 by batch"),
        ("step.interval_s", [2.5, 3.0], "step.interval_s: 2 s, the step, is not in it"),
        ("step.critical_path.0.share", 0.5, "critical_path[0].share: expected 87.5 %, got 50 %"),
        ("memory.worst_stage_bytes", 3e9, "3 GB in the file, 6 GB when counted again"),
        ("memory.fits", False, "memory.fits: 6 GB are needed of 8 GB, got false"),
        ("memory.capacity_bytes", 5e9, "memory.fits: 6 GB are needed of 5 GB, got true"),
    ],
)
def test_a_figure_that_its_plan_contradicts_is_refused(
    tmp_path: Path, where: str, value: Any, said: str
) -> None:
    with pytest.raises(InputError) as error:
        saved(tmp_path, damaged(small_plan(), where, value))

    assert said in str(error.value)
    assert all("plan.json: " in fault for fault in error.value.faults)


def test_baselines_need_not_keep_rules_and_may_cross_less(tmp_path: Path) -> None:
    document = small_plan()
    document["baselines"][0]["cut_bytes"] = 20.0
    document["rules"] = {"rules": ["dp within supernode"], "cut_bytes": 120.0,
                         "free_cut_bytes": 20.0, "free_lower_bound_bytes": 20.0,
                         "free_proof": "bound", "price_least_bytes": 100.0,
                         "price_most_bytes": 100.0}  # fmt: skip

    assert saved(tmp_path, document).document == document


def test_a_real_plan_whose_cut_was_halved_ends_with_exit_2_and_its_name(
    planner: Callable[..., Ran], plan_of_64: Path, tmp_path: Path
) -> None:
    document = json.loads(plan_of_64.read_text(encoding="utf-8"))
    document["cut"]["objective_bytes"] /= 2
    edited = tmp_path / "edited.json"
    edited.write_text(json.dumps(document), encoding="utf-8")

    ran = planner("report", str(edited), "--out", str(tmp_path / "page.html"))

    assert ran.code == 2
    assert "edited.json: cut.objective_bytes: " in ran.err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    "more",
    [
        ("--objective", "bottleneck"),
        ("--objective", "time"),
        ("--reductions", "flat"),
        ("--rule", "pp within supernode"),
        ("--order", "tp-pp-dp-cp-ep"),
        ("--zero", "3"),
    ],
)
def test_plans_of_every_kind_hold_together(
    planner: Callable[..., Ran], tmp_path: Path, more: tuple[str, ...]
) -> None:
    made = planner("place", "--supernode", "8", "--gpus", "64", "--model", "llama-3.1-8b", "--tp",
                   "2", *(() if "--zero" in more else ("--pp", "4")), "--ignore-memory", *more,
                   "--json")  # fmt: skip
    (tmp_path / "made.json").write_text(made.out, encoding="utf-8")

    ran = planner("report", str(tmp_path / "made.json"), "--out", str(tmp_path / "page.html"))

    assert ran.code == 0, ran.err


@pytest.fixture(scope="module")
def plan_of_64(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from cli.planner_app import main

    path = tmp_path_factory.mktemp("plans") / "of-64.json"
    asked = ["--supernode", "8", "--gpus", "64", "--model", "mixtral-8x7b", "--tp", "2", "--ep",
             "8", "--pp", "2", "--ignore-memory"]  # fmt: skip
    assert main(["place", *asked, "--json", "--out", str(path)]) == 0
    return path
