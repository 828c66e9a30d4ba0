"""A network that is counted larger than the job needs is said to be, wherever parts are counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema

from tests.conftest import Ran

Planner = Callable[..., Ran]
SCHEMAS = Path(__file__).parents[2] / "cli" / "schemas"
JOB = ("--cluster", "hgx-h100", "--gpus", "16")
MODEL = ("--model", "llama-3.1-8b", "--tp", "2", "--pp", "1")
# 8 leaves, one a rail, each with 32 ports for NICs and as many uplinks.
PORTS = [{"item": "leaf", "ports": 256, "used": 16}, {"item": "spine", "ports": 256, "used": 256}]
SAID = "240 of 256 of the leaves (94 %) are unused"


def test_comparisons_plans_their_pages_and_the_cluster_say_what_is_unused(
    planner: Planner, tmp_path: Path
) -> None:
    compared, plan = tmp_path / "compared.json", tmp_path / "plan.json"

    ran = planner("compare", *JOB, *MODEL, "--out", str(compared))
    assert planner("place", *JOB, *MODEL, "--out", str(plan)).code == 0
    shown = planner("topology", "show", *JOB)
    listed = planner("topology", "show", *JOB, "--json")

    assert ran.code == shown.code == listed.code == 0, ran.err
    assert "hgx-h100: More network counts than these GPUs need" in ran.out.replace("\n", " ")
    for text in (ran.out, shown.out):
        assert SAID in " ".join(text.split())
    for file, schema in ((compared, "compare"), (plan, "place")):
        document = json.loads(file.read_text())
        jsonschema.validate(document, json.loads((SCHEMAS / f"{schema}.json").read_text()))
        bill = document["bills"]["hgx-h100"] if schema == "compare" else document["bill"]
        assert bill["ports"] == PORTS
        assert SAID in planner("report", str(file)).out
    assert json.loads(listed.out)["ports"] == PORTS


def test_a_file_of_before_is_read_and_says_nothing_of_ports(
    planner: Planner, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    assert planner("place", *JOB, *MODEL, "--out", str(plan)).code == 0
    document = json.loads(plan.read_text())
    del document["bill"]["ports"]
    plan.write_text(json.dumps(document))

    ran = planner("report", str(plan))

    assert ran.code == 0, ran.err
    assert "are unused" not in ran.out
