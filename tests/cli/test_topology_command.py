"""``planner topology`` as a user runs it."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

import cli.topology_command
from cli.topology_command import app
from planner.errors import SpecError
from topologies.fabric_accelerators import CATALOGUE

RUN = CliRunner()
SCHEMAS = Path(cli.topology_command.__file__).parent / "schemas"


def printed(*args: str, code: int = 0) -> str:
    result = RUN.invoke(app, list(args), env={"COLUMNS": "80"})
    assert result.exit_code == code, result.output
    return result.stdout


def document(*args: str, code: int = 0) -> Any:
    return json.loads(printed(*args, "--json", code=code))


@pytest.mark.parametrize(
    "args",
    [("list",), ("show", "hgx-h100"), ("show", "cloudmatrix384-3x384"), ("show", "ub-mesh-64"),
     ("show", "--supernode", "64"), ("check", "llama3-roce"), ("check", "hgx-h100")],
)  # fmt: skip
def test_what_people_read_fits_80_columns(args: tuple[str, ...]) -> None:
    assert max(map(len, printed(*args).splitlines())) <= 80


@pytest.mark.parametrize(
    "args",
    [("list",), ("show", "cloudmatrix384-3x384"), ("show", "tpu-torus"),
     ("show", "--supernode", "1024"), ("check", "llama3-roce"), ("check", "hgx-h100")],
)  # fmt: skip
def test_each_document_has_its_published_schema(args: tuple[str, ...]) -> None:
    doc = document(*args)

    schema = json.loads((SCHEMAS / f"topology-{args[0]}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(doc, schema)
    assert set(doc) == set(schema["properties"])


def test_the_list_names_every_cluster_in_full() -> None:
    text, doc = printed("list"), document("list")

    assert doc["schema"] == "planner.topology-list/1"
    names = [row["name"] for row in doc["clusters"]]
    assert {"generic", "hgx-h100", "ub-mesh-64", "cloudmatrix384-3x384"} <= set(names)
    assert all(name in text for name in names)
    assert {"H100-SXM", "Ascend-910C"} <= {row["name"] for row in doc["accelerators"]}


def test_show_tells_tiers_rates_parts_and_sources_in_si() -> None:
    doc = document("show", "hgx-h100")

    assert doc["inputs"]["cluster"] == "hgx-h100"
    assert [t["tier"] for t in doc["tiers"]] == ["supernode", "leaf", "cluster"]
    assert doc["tiers"][0]["bytes_per_s"] == 450e9
    assert doc["tiers"][0]["domain_gpus"] == {"8": 128}
    assert doc["parts"] == {
        "gpu": 1024,
        "nic": 1024,
        "scale_up_switch": 512,
        "leaf": 32,
        "spine": 16,
    }
    assert "supernode.rate" in doc["sources"]
    assert "nic.turnaround" in doc["assumed"]


def test_spare_gpus_are_counted_apart() -> None:
    doc = document("show", "cloudmatrix384-3x384")

    assert (doc["gpus"], doc["job_gpus"], doc["spare_gpus"]) == (1152, 1024, 128)
    assert "1024 for the job and 128 spare" in printed("show", "cloudmatrix384-3x384")


def test_supernode_alone_means_the_generic_family() -> None:
    doc = document("show", "--supernode", "384")

    assert doc["cluster"] == "generic-sn384"
    assert doc["tiers"][0]["domain_gpus"] == {"384": 2, "256": 1}
    assert doc["inputs"] == {
        "cluster": "generic",
        "supernode": 384,
        "gpus": 1024,
        "sha256": doc["inputs"]["sha256"],
    }


def test_a_cluster_may_be_named_by_option_and_rebuilt() -> None:
    doc = document("show", "--cluster", "hgx-h100", "--supernode", "5", "--gpus", "12")

    assert doc["tiers"][0]["domain_gpus"] == {"5": 2, "2": 1}


def test_the_same_inputs_give_the_same_bytes() -> None:
    assert printed("show", "hpn", "--json") == printed("show", "hpn", "--json")


def test_check_counts_what_it_finds() -> None:
    doc = document("check", "llama3-roce")

    assert doc["faults"] == 0
    assert [f["check"] for f in doc["findings"]] == ["single point of failure", "oversubscription"]
    assert "2 warnings" in printed("check", "llama3-roce")


def test_a_cluster_that_cannot_work_makes_check_exit_with_2(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    source = (CATALOGUE / "llama3-roce.yaml").read_text()
    own.write_text(source + "dead: {switches: [leaf07], gpus: [5]}\n")

    doc = document("check", str(own), code=2)

    assert doc["faults"] == 1
    assert doc["inputs"]["file_sha256"] == sha256(own.read_bytes()).hexdigest()
    assert doc["findings"][0]["check"] == "disconnected"
    assert "1 fault" in printed("check", str(own), code=2)


def test_out_writes_the_document_whole(tmp_path: Path) -> None:
    target = tmp_path / "show.json"

    printed("show", "hgx-h100", "--out", str(target))

    assert json.loads(target.read_text()) == document("show", "hgx-h100")


def test_two_names_for_the_cluster_are_refused() -> None:
    result = RUN.invoke(app, ["show", "hpn", "--cluster", "hgx-h100"])

    assert result.exit_code == 2


def test_every_fault_of_a_file_reaches_the_user(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("name: own\ngpus: 0\nuplnk: 3\n")

    with pytest.raises(SpecError) as refusal:
        RUN.invoke(app, ["check", str(own)], catch_exceptions=False)

    faults = str(refusal.value)
    assert f"{own}:2:7: gpus: expected a whole number from 1" in faults
    assert f"{own}:3:1: unknown key 'uplnk'" in faults
    assert "missing key 'supernode'" in faults
