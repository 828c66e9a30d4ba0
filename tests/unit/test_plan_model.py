"""A plan keeps its model's shape, so that it is read without the file the model came from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.inputs_document import asdict_of
from planner.errors import PlannerError
from topologies.model_reader import read_catalogue_model
from topologies.plan_model import model_of_shape


def shape_of(name: str) -> dict[str, Any]:
    shape = asdict_of(read_catalogue_model(name).model)
    del shape["assumed"]
    return dict(json.loads(json.dumps(shape)))


@pytest.mark.parametrize("name", ["llama-3.1-405b", "deepseek-v3"])
def test_the_model_that_went_in_comes_out(name: str) -> None:
    assert model_of_shape(shape_of(name), name="plan.json") == read_catalogue_model(name).model


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("hidden", "8192", "hidden: '8192': expected int"),
        ("hidden", None, "hidden: 'None': expected int"),
        ("tied_embeddings", 1, "tied_embeddings: '1': expected bool"),
        ("moe_layers", [0, 1], "moe_layers"),
        ("moe_layers", "many", "moe_layers"),
        ("attention", [], "attention: expected a mapping"),
        ("attention", {"heads": 8}, "missing field 'kv_heads'"),
        ("colour", 1, "unknown field 'colour'"),
        ("layers", -1, "layers"),
    ],
)
def test_a_shape_that_is_none_is_refused(field: str, value: object, fault: str) -> None:
    with pytest.raises(PlannerError, match=fault):
        model_of_shape({**shape_of("deepseek-v3"), field: value}, name="plan.json")


def test_a_field_without_default_must_be_there() -> None:
    shape = shape_of("deepseek-v3")
    del shape["vocab"]

    with pytest.raises(PlannerError, match="missing field 'vocab'"):
        model_of_shape(shape, name="plan.json")


def test_no_shape_at_all_is_refused() -> None:
    with pytest.raises(PlannerError, match="expected a mapping"):
        model_of_shape(7, name="plan.json")
