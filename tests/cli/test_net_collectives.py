"""``planner net collectives`` as a user runs it: one collective, and a table of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
SCHEMA = Path(__file__).parents[2] / "cli" / "schemas" / "net-collectives.json"
SAMPLE = Path(__file__).parents[1] / "accuracy" / "data" / "collectives_sample.csv"
HEAD = "id,hw,n_gpus,scaleup_domain,collective,size_bytes,time_us,nic_GBps_per_gpu,table\n"


def told(planner: Planner, *arguments: str) -> dict[str, Any]:
    ran = planner("net", "collectives", *arguments, "--json")
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    return document


def test_one_collective_has_its_algorithm_its_parts_and_the_error_of_its_like(
    planner: Planner,
) -> None:
    time = told(planner, "--size", "16GiB", "--gpu", "H100 p5, EFA")["time"]

    assert time["class"] == "hopper.efa_400"
    # measured on 2 nodes of 8 H100 over EFA: 487 GB/s, more than their 400 GB/s of NICs
    assert time["bus_bytes_per_s"] == pytest.approx(487e9, rel=0.08)
    parts = time["startup_s"] + time["inside_s"] + time["across_s"] - time["hidden_s"]
    assert time["time_s"] == pytest.approx(parts)
    page = planner("net", "collectives").out
    assert "off at the median" in page
    assert "nine in ten" in page
    assert "Premises" in page
    assert max(map(len, page.splitlines())) <= 80


def test_a_gpu_nobody_measured_needs_its_rate_inside_and_is_marked_as_assumed(
    planner: Planner,
) -> None:
    ran = planner("net", "collectives", "--gpu", "Ascend 910C")

    assert ran.code == 2
    assert "give the rate inside" in ran.err
    seen = told(planner, "--gpu", "Ascend 910C", "--scale-up", "392GB/s")
    assert "mean of the measured classes" in seen["time"]["assumed"]
    assert seen["unseen_error_is_of"] == "generic"
    assert [p["holds"] for p in seen["premises"]].count(False) == 1


def test_a_table_is_predicted_row_by_row_with_the_error_of_each_system(
    planner: Planner, tmp_path: Path
) -> None:
    predictions = tmp_path / "p.csv"

    seen = told(planner, "--table", str(SAMPLE), "--predictions", str(predictions))

    with SAMPLE.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    with predictions.open(encoding="utf-8") as lines:
        predicted = list(csv.DictReader(lines))
    assert [row["id"] for row in predicted] == [row["id"] for row in rows]
    assert seen["overall"]["rows"] == sum(line["error"]["rows"] for line in seen["systems"])
    off = [
        abs(float(p["predicted_time_us"]) / float(r["time_us"]) - 1)
        for p, r in zip(predicted, rows, strict=True)
        if p["predicted_time_us"]
    ]
    assert sorted(off)[len(off) // 2] == pytest.approx(seen["overall"]["median_share"], abs=0.01)
    assert sum(part["rows"] for part in seen["skipped"]) == len(rows) - len(off)
    page = planner("net", "collectives", "--table", str(SAMPLE)).out
    assert "unseen" in page


def test_rows_that_cannot_be_predicted_say_why_and_the_others_are(
    planner: Planner, tmp_path: Path
) -> None:
    table, predictions = tmp_path / "t.csv", tmp_path / "p.csv"
    table.write_text(
        HEAD
        + "good,H100,8,8,all_reduce,1048576,,,t\n"
        + "crosses,H100,16,8,all_reduce,1048576,50,,t\n"
        + "odd,H100,8,8,gossip,1048576,50,,t\n"
        + "nan,H100,8,8,all_reduce,nan,50,,t\n"
        + "half,H100,8.5,8,all_reduce,1024,50,,t\n"
        + "new,TPU v9,8,8,all_reduce,1024,50,,t\n"
        + "=cmd(),H100,8,8,all_gather,1024,-3,,t\n",
        encoding="utf-8",
    )

    seen = told(planner, "--table", str(table), "--predictions", str(predictions))

    assert seen["overall"] is None  # no row has both a time and a prediction
    with predictions.open(encoding="utf-8") as lines:
        by_id = {row["id"]: row for row in csv.DictReader(lines)}
    assert float(by_id["good"]["predicted_time_us"]) > 0
    assert "NIC's rate is missing" in by_id["crosses"]["skipped_because"]
    assert "'gossip'" in by_id["odd"]["skipped_because"]
    assert "size_bytes='nan'" in by_id["nan"]["skipped_because"]
    assert "n_gpus='8.5'" in by_id["half"]["skipped_because"]
    assert "a machine not measured" in by_id["new"]["skipped_because"]
    assert "time_us='-3'" in by_id["'=cmd()"]["skipped_because"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a,b\n1,2\n", "missing columns hw, n_gpus"),
        ("", "missing columns hw"),
    ],
)
def test_a_file_that_is_no_such_table_is_refused(
    planner: Planner, tmp_path: Path, content: str, says: str
) -> None:
    table = tmp_path / "t.csv"
    table.write_text(content, encoding="utf-8")

    ran = planner("net", "collectives", "--table", str(table))

    assert ran.code == 2
    assert says in ran.err


def test_every_fault_of_the_options_is_named_at_once(planner: Planner, tmp_path: Path) -> None:
    ran = planner("net", "collectives", "--size", "much", "--ranks", "1", "--nic", "0GB/s")

    assert ran.code == 2
    for option in ("--size", "--ranks", "nic"):
        assert option in ran.err
    assert planner("net", "collectives", "--table", str(tmp_path / "none.csv")).code == 2
    assert planner("net", "collectives", "--predictions", str(tmp_path / "p.csv")).code == 2


@pytest.mark.parametrize("bus_bytes_per_s", [113.9e9, 152.5e9])
def test_the_interval_holds_both_of_one_sites_runs_of_32_a100(
    planner: Planner, bus_bytes_per_s: float
) -> None:
    """coreweave/nccl-tests README at 703d6eb and 5a79e81: all-reduce of 1 GiB, 25 GB/s a NIC."""
    a100 = ("--gpu", "A100", "--ranks", "32", "--nic", "25GB/s", "--size", "1GiB")

    answer = told(planner, *a100)

    time, p90 = answer["time"], answer["unseen_error"]["p90_share"]
    least_s, most_s = time["interval_s"]
    assert time["time_s"] / least_s - 1 == pytest.approx(p90)
    assert 1 - time["time_s"] / most_s == pytest.approx(p90)

    measured_s = 2 * 31 / 32 * 2**30 / bus_bytes_per_s
    assert least_s < time["time_s"] < most_s
    assert least_s < measured_s < most_s


def test_what_hdr_nics_reach_elsewhere_stands_beside_the_one_odd_site(planner: Planner) -> None:
    """nccl-tests issue 119: 24 A100 with four HDR NICs to eight print up to 96 GB/s at 128 MiB."""
    a100 = ("--gpu", "A100", "--ranks", "24", "--nic", "12.5GB/s", "--size", "128MiB")

    answer, page = told(planner, *a100), planner("net", "collectives", *a100).out

    bus_bytes_per_s = 2 * 23 / 24 * 2**27 / answer["time"]["elsewhere_s"]
    assert bus_bytes_per_s == pytest.approx(96e9, rel=0.08)
    assert answer["time"]["elsewhere_s"] < answer["time"]["time_s"]
    assert "where a NIC reaches 96 % of its rate" in page
    assert told(planner)["time"]["elsewhere_s"] is None
