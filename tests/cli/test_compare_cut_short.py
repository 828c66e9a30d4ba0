"""What is left of a comparison whose flips are too much to be seated, or are not waited for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from cli.progress_line import StageLine
from planner.search import effort
from planner.search.stages import Stage
from tests.conftest import Ran

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "cli" / "schemas" / "compare.json").read_text(encoding="utf-8")
)
SMALL = ("compare", "--supernode", "8,32", "--gpus", "32", "--model", "mixtral-8x7b", "--cp", "1",
         "--zero", "1", "--micro-batch", "1", "--recompute", "selective",
         "--global-batch", "256")  # fmt: skip


def test_ctrl_c_while_flips_are_looked_for_leaves_the_ranking_and_exits_130(
    planner: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(line: StageLine, stage: Stage) -> None:
        if stage.what == "seating ranks at each flip":
            raise KeyboardInterrupt

    monkeypatch.setattr(StageLine, "__call__", interrupt)
    out = tmp_path / "out.json"

    ran = planner(*SMALL, "--out", str(out))

    assert ran.code == 130
    assert "the ranking stands" in ran.err
    assert "Ranked" in ran.out
    assert "Cut short by Ctrl-C" in ran.out
    document = json.loads(out.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["interrupted"]
    assert [one["cluster"] for one in document["ranked"]]
    assert (document["flips"], document["gains"]) == ([], {})


def test_what_is_too_much_to_be_seated_is_told_in_rank_order_and_said_to_be(
    planner: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(effort, "QUESTION_RANKS", 1)
    out = tmp_path / "out.json"

    ran = planner(*SMALL, "--out", str(out))

    document = json.loads(out.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert ran.code == 0
    assert "takes too long" in " ".join(ran.out.split())
    assert all(one["seated"] is None for one in document["flips"])
    told = {(one["property"], one["kind"]) for one in document["flips"]}
    said = {(one["property"], one["kind"]) for one in document["flips_looked"] if "seated" in one}
    assert said
    assert {one for one in told if one[0] != "experts"} <= said
    assert {one.get("seated") for some in document["gains"].values() for one in some
            if one["gain_share"] > 0.0} <= {False}  # fmt: skip
    assert "interrupted" not in document
