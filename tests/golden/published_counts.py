"""A published count of parameters, and what a model's shape is held against it by.

Totals given to the last digit are the sizes of the released checkpoints (the safetensors total
that the model's page shows, without MTP and without quantization scales); the others are rounded
as the paper or the model card rounds them. Cards count *active* parameters in two ways: with the
output head only (``head``) or with the input embedding as well (``both``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from planner.documents import document_from_text
from planner.model import ModelSpec
from topologies.model_reader import model_from_document


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    model: str
    total: float
    active: float = 0.0
    counts: str = "head"
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A config.json, and what is published of the model."""

    text: str
    published: Published


def by_model(entries: Iterable[tuple[Mapping[str, Any], Published]]) -> dict[str, Config]:
    return {
        published.model: Config(text=json.dumps(config), published=published)
        for config, published in entries
    }


def model_of(text: str, name: str) -> ModelSpec:
    return model_from_document(
        document_from_text(text, name=f"{name}.json", kind="json"), name=name
    )


def check(model: ModelSpec, published: Published) -> None:
    assert model.parameters() == pytest.approx(published.total, rel=0.005)
    if published.total % 1000:
        assert model.parameters() == published.total
    if published.active:
        counted = {
            "head": model.active_parameters(), "both": model.active_parameters_with_lookup(),
        }[published.counts]  # fmt: skip
        digit = next(digit for digit in (1e9, 1e8, 1e7) if published.active % digit == 0)
        assert -digit / 2 <= counted - published.active < digit  # rounded or cut off
