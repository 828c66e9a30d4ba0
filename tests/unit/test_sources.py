"""Sources that commands print lead a reader somewhere: a text with a year or a number, a module."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import iter_modules

import pytest

import planner.collectives
import planner.network

MODULES = [
    f"{package.__name__}.{one.name}"
    for package in (planner.network, planner.collectives)
    for one in iter_modules(package.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_a_source_is_a_published_text_or_a_module_that_says_how(name: str) -> None:
    source = getattr(import_module(name), "SOURCE", None)
    if source is None:
        return
    assert not re.search(r"\b[A-Z]-[A-Z]\d\d-\d+", source)
    derived = re.search(r"planner(\.\w+)+", source)
    if derived:
        assert import_module(derived[0]).__doc__
    else:
        assert re.search(r"\b(19|20)\d\d\b|IEEE 802", source)
