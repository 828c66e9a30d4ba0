"""Several models side by side: what each cluster brings and costs for all of them."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest

from cli.joint_table import joint_rows
from cli.joint_verdict import joint_document, joint_of, joint_sentences
from tests.cli.test_compare_models import SCHEMAS, compared, entry


def priced(model: str, *ranked: tuple[dict[str, Any], float], gpus: int = 8) -> dict[str, Any]:
    """Return a comparison whose clusters train a token for so much money."""
    document = compared(model, *(
        {**one, "gpus": gpus, "step": {**one["step"], "tokens_per_s": 100 / one["step"]["total_s"]},
         "run": {"cost": 2e9 * cost, "cost_per_token": cost, "days": 4.0}}
        for one, cost in ranked
    ))  # fmt: skip
    document["bills"] = {
        one["cluster"]: {"currency": "EUR", "total": 5e6 if one["cluster"] == "wide" else None}
        for one, _ in ranked
    }
    return document


@pytest.fixture
def both() -> list[dict[str, Any]]:
    return [
        priced("a", (entry("wide", 1.0, 9.0), 1e-6), (entry("deep", 1.01, 1.0), 9e-6)),
        priced("b", (entry("wide", 1.0, 9.0), 3e-6), (entry("deep", 1.0, 1.0), 2e-6)),
    ]


def test_every_figure_of_each_model_stands_beside_that_of_the_other_clusters(
    both: list[dict[str, Any]],
) -> None:
    joint = joint_of(both)

    assert joint is not None
    rows = {row.name: [cell.text for cell in row.cells] for row in joint_rows(joint, both)}
    assert [one.cluster for one in joint.order] == ["wide", "deep"]
    assert rows["a: M tokens/s"] == ["0.0001", "9.901e-05"]
    assert rows["a: days"] == ["4", "4"]
    assert rows["b: EUR/M tokens"] == ["3", "2"]
    # 2e9 tokens of each: 2,000 + 6,000 on wide, 18,000 + 4,000 on deep.
    assert rows["EUR all runs"] == ["8,000", "22,000"]
    assert rows["EUR to buy"] == ["5,000,000", ""]
    assert "a: GPUs" not in rows


def test_the_cluster_that_is_taken_for_one_model_alone_is_named_with_its_reason(
    both: list[dict[str, Any]],
) -> None:
    joint = joint_of(both)

    assert joint is not None
    assert joint.pick.cluster == "wide"  # 4 EUR for a million of each; 11 on deep
    assert joint_sentences(joint, "EUR")[1] == (
        "For no model alone is another surely faster than wide; alone, deep for b would be taken, "
        "for of those that tie there it costs less a token."
    )
    schema = json.loads((SCHEMAS / "compare-models.json").read_text())
    told = joint_document(joint)
    assert told is not None
    assert told["taken_alone"] == {"b": "deep"}
    jsonschema.validate(told, {**schema["properties"]["joint"], "$defs": schema.get("$defs", {})})


def test_without_prices_money_is_left_out_of_the_table() -> None:
    bare = [
        compared(model, *(
            {**entry(name, 1.0, 9.0), "run": {"cost": None, "cost_per_token": None, "days": None},
             "step": {"total_s": 1.0, "interval_s": [0.9, 1.1], "tokens_per_s": 100.0}}
            for name in ("wide", "deep")
        )) | {"bills": {name: {"currency": "", "total": None} for name in ("wide", "deep")}}
        for model in "ab"
    ]  # fmt: skip
    joint = joint_of(bare)

    assert joint is not None
    names = [row.name for row in joint_rows(joint, bare)]
    assert names == ["a: M tokens/s", "b: M tokens/s"]
    assert not any(re.search("run|buy|days", name) for name in names)


def test_of_clusters_of_their_own_the_purchases_are_summed() -> None:
    runs = [
        {**priced(model, (entry("wide", 1.0, 9.0), 1e-6), (entry("deep", 1.0, 1.0), 2e-6)),
         "bills": {"wide": {"currency": "EUR", "total": total},
                   "deep": {"currency": "EUR", "total": None if model == "b" else total}}}
        for model, total in (("a", 5e6), ("b", 7e6))
    ]  # fmt: skip
    for one in runs:
        one["inputs"]["sizes"]["equal"] = "run"
    joint = joint_of(runs)

    assert joint is not None
    rows = {row.name: [cell.text for cell in row.cells] for row in joint_rows(joint, runs)}
    assert rows["EUR to buy"] == ["12,000,000", ""]
