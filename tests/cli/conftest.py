"""What the tests of the report share: a plan, and a browser to see its page in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.browser import Browser, chromium


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a plan of 64 GPUs in supernodes of 8, with experts."""
    from cli.planner_app import main

    path = tmp_path_factory.mktemp("plans") / "small.json"
    sizes = ["--supernode", "8", "--gpus", "64", "--model", "mixtral-8x7b"]
    layout = ["--tp", "2", "--ep", "8", "--pp", "2", "--ignore-memory"]
    arguments = ["place", *sizes, *layout, "--with-groups", "--json"]
    assert main([*arguments, "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def one_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium on this machine")
    made = Browser(tmp_path_factory.mktemp("profile"), program)
    yield made
    made.close()


@pytest.fixture
def browser(one_browser: Browser) -> Browser:
    """Return the browser as new: an empty page, nothing seen, nothing pretended."""
    one_browser.reset()
    return one_browser
