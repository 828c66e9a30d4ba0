"""Several models in one comparison: one cluster for all of them, and where it is not the best."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cli.joint_verdict import joint_of, joint_sentences, why_none
from tests.conftest import Ran

Planner = Callable[..., Ran]

SCHEMAS = Path(__file__).parents[2] / "cli" / "schemas"


def entry(cluster: str, step_s: float, crossed: float, *, tie: bool = True) -> dict[str, Any]:
    """Return a ranked cluster that trains 100 tokens a step, sure to 10 %."""
    return {
        "cluster": cluster, "gpus": 8, "memory": {"fits": True}, "seated_bytes": crossed,
        "layout": {"global_batch": 10, "seq": 10}, "tie_with_first": tie,
        "run": {"cost": None, "cost_per_token": None},
        "step": {"total_s": step_s, "interval_s": [step_s / 1.1, step_s * 1.1]},
    }  # fmt: skip


def compared(model: str, *ranked: dict[str, Any], equal: str = "gpus") -> dict[str, Any]:
    return {
        "inputs": {
            "sizes": {"equal": equal, "budget": None, "days": None, "gpus": [8] * len(ranked)},
            "layouts": {}, "clusters": [{"model": model}],
        },
        "ranked": list(ranked),
    }  # fmt: skip


def test_the_cluster_that_trains_a_token_of_each_model_soonest_is_taken_for_all() -> None:
    joint = joint_of([
        compared("a", entry("wide", 1.0, 9.0), entry("deep", 2.0, 1.0, tie=False)),
        compared("b", entry("deep", 3.0, 1.0), entry("wide", 3.5, 9.0, tie=False)),
    ])  # fmt: skip

    # 1 + 3.5 s on wide, 2 + 3 s on deep: 5 / 4.5 - 1 = 11.1 %.
    assert joint is not None
    assert joint.pick.cluster == "wide"
    first, second = joint_sentences(joint)
    assert first.startswith("For all models, as many tokens of each model, one after the other: ")
    assert first.endswith(": take wide. Surely slower: deep (11.1 % longer).")
    assert second == "No single cluster is best for each: surely faster than there is b on deep."


def test_of_clusters_that_tie_for_all_the_one_that_crosses_least_is_taken() -> None:
    joint = joint_of([
        compared("a", entry("wide", 1.0, 9.0), entry("deep", 1.02, 1.0)),
        compared("b", entry("wide", 1.0, 9.0), entry("deep", 1.0, 1.0)),
    ])  # fmt: skip

    assert joint is not None
    said = joint_sentences(joint)
    assert "take deep. Over all models together a tie with wide (0.990 % shorter)" in said[0]
    assert said[1] == "For each model alone deep is the best, too, or a tie with it."


def test_a_tie_for_all_models_names_the_model_for_which_a_cluster_surely_loses() -> None:
    joint = joint_of([
        compared("a", entry("wide", 1.0, 1.0), entry("deep", 1.08, 9.0, tie=False)),
        compared("b", entry("deep", 1.0, 9.0), entry("wide", 1.02, 1.0)),
    ])  # fmt: skip

    # 2.08 s on deep, 2.02 s on wide: 2.97 % longer, a tie; for a alone deep is none.
    assert joint is not None
    said = joint_sentences(joint)[0]
    assert "a tie with deep (2.97 % longer; surely slower for a alone)" in said


def test_models_of_one_name_get_no_verdict_and_are_told_why() -> None:
    both = entry("wide", 1.0, 9.0), entry("deep", 2.0, 1.0)
    twice = [compared("llama", *both), compared("llama", *both), compared("b", *both)]
    full = {**both[1], "memory": {"fits": False}}
    apart = [compared("a", *both), compared("b", both[0], full)]

    assert joint_of(twice) is None
    assert "llama is the name of several" in why_none(twice)
    assert joint_of(apart) is None
    assert why_none(apart).endswith("fewer than two clusters hold each of them.")


def test_with_prices_a_tie_for_all_goes_to_the_cheapest_as_for_one_model() -> None:
    dear, cheap = ({"run": {"cost": None, "cost_per_token": cost}} for cost in (2e-6, 1e-6))
    joint = joint_of([
        compared("a", entry("wide", 1.0, 9.0) | cheap, entry("deep", 1.02, 1.0) | dear),
        compared("b", entry("wide", 1.0, 9.0) | cheap, entry("deep", 1.0, 1.0) | dear),
    ])  # fmt: skip

    assert joint is not None
    assert (
        "take wide. Over all models together a tie with deep (1 % longer)"
        in joint_sentences(joint)[0]
    )
    assert "of these it costs least a token" in joint_sentences(joint)[0]


def test_runs_in_time_are_added_up() -> None:
    joint = joint_of([
        compared("a", entry("wide", 1.0, 9.0), entry("deep", 1.0, 1.0), equal="run"),
        compared("b", entry("wide", 1.0, 9.0), entry("deep", 1.0, 1.0) | {"gpus": 16}, equal="run"),
    ])  # fmt: skip

    assert joint is not None
    (said,) = joint_sentences(joint)
    assert said.startswith("For all models, each model's run in time on a cluster of its own: ")
    assert said.endswith(": take wide, 16 GPUs in all; deep 24 GPUs.")


def test_one_model_or_one_cluster_has_no_verdict_for_all() -> None:
    both = compared("a", entry("wide", 1.0, 9.0), entry("deep", 1.0, 1.0))

    assert joint_of([both]) is None
    assert joint_of([both, both]) is None
    assert joint_of([both, compared("b", entry("wide", 1.0, 9.0))]) is None


@pytest.mark.nightly
def test_several_models_make_one_document_that_a_report_reads(
    planner: Planner, tmp_path: Path
) -> None:
    file = tmp_path / "two.json"

    ran = planner("compare", "--supernode", "4,8", "--gpus", "16", "--model", "llama-3.1-8b",
                  "--model", "llama-2-7b", "--tp", "4", "--dp", "4", "--global-batch", "16",
                  "--micro-batch", "1", "--out", str(file))  # fmt: skip
    page = planner("report", str(file)).out

    document = json.loads(file.read_text())
    schema = json.loads((SCHEMAS / "compare-models.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    assert ran.out.startswith("For all models, as many tokens of each model, one after the other:")
    assert document["inputs"]["models"] == ["llama-3.1-8b", "llama-2-7b"]
    assert " ".join(ran.out.split()).count(" is first, with a step of ") == 2
    assert "<h3>For all models</h3>" in page
    assert "<h3>llama-2-7b</h3>" in page
    assert "2 candidates compared" in page
    commands = page.split("These commands ask for it again")[1]
    assert "--model llama-3.1-8b --model llama-2-7b" in commands
    assert "planner report two.json --out report.html" in commands


@pytest.mark.parametrize("option", [("--csv", "a.csv"), ("--plot", "a.svg")])
def test_a_table_and_a_picture_are_of_one_model(planner: Planner, option: tuple[str, str]) -> None:
    ran = planner("compare", "--model", "llama-3.1-8b", "--model", "llama-2-7b", *option)

    assert ran.code == 2
    assert "are for one --model" in ran.err
