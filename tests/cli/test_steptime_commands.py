"""``planner step``, ``validate`` and ``calibrate`` as a user runs them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cli import calibrate_report

SCHEMAS = Path(__file__).parents[2] / "cli" / "schemas"
OWN = Path(__file__).parent.parent / "accuracy" / "published_steps.csv"
SMALL = ("--gpus", "64", "--supernode", "8", "--model", "llama-3.1-8b", "--tp", "8", "--dp", "8",
         "--global-batch", "64", "--seq", "8192", "--micro-batch", "1")  # fmt: skip

Planner = Callable[..., Any]


LATER: dict[str, set[str]] = {
    "step": set(),
    "validate": {"far", "overfull", "inside_interval_rows"},
    "calibrate": {"far", "overfull", "covered"},
}
"""What documents of the first versions of a schema lack."""


def fits_schema(command: str, text: str) -> dict[str, Any]:
    schema = json.loads((SCHEMAS / f"{command}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    document: dict[str, Any] = json.loads(text)
    jsonschema.validate(document, schema)
    return document


@pytest.mark.parametrize(
    "arguments",
    [
        SMALL,
        ("--gpus", "64", "--supernode", "8", "--model", "mixtral-8x7b"),
        ("--gpus", "64", "--supernode", "8", "--model", "llama-3.1-70b", "--tp", "8", "--pp", "1",
         "--dp", "8", "--cp", "1", "--vpp", "1", "--seq", "8192", "--global-batch", "64",
         "--micro-batch", "2", "--recompute", "none", "--zero", "1"),
    ],
    ids=["dense", "experts", "over memory"],
)  # fmt: skip
def test_step_follows_its_published_schema(planner: Planner, arguments: tuple[str, ...]) -> None:
    document = fits_schema("step", planner("step", *arguments, "--json").out)

    step, memory = document["step"], document["memory"]
    assert sum(step["compute_parts_s"].values()) == pytest.approx(step["compute_s"])
    assert sum(memory["parts"].values()) == pytest.approx(memory["worst_stage_bytes"])
    assert sum(one["seconds"] for one in step["critical_path"]) == pytest.approx(step["total_s"])


def test_validate_and_calibrate_follow_their_published_schemas(planner: Planner) -> None:
    validated = fits_schema("validate", planner("validate", str(OWN), "--json").out)
    fits_schema("calibrate", planner("calibrate", str(OWN), "--json").out)

    assert [one["source"] for one in validated["left_out"]] == validated["fitted_on"]
    assert set(validated["inside_interval_share"]) == {"sources", "unseen", "left_out"}


@pytest.mark.parametrize("command", ["step", "validate", "calibrate"])
def test_a_schema_refuses_a_document_that_lacks_a_part(planner: Planner, command: str) -> None:
    arguments = SMALL if command == "step" else (str(OWN),)
    document = fits_schema(command, planner(command, *arguments, "--json").out)
    schema = json.loads((SCHEMAS / f"{command}.json").read_text(encoding="utf-8"))

    for key in sorted(set(document) - LATER[command]):
        part = {name: value for name, value in document.items() if name != key}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(part, schema)


@pytest.mark.parametrize("command", ["validate", "calibrate"])
def test_a_document_of_before_is_as_the_schema_says(planner: Planner, command: str) -> None:
    document = fits_schema(command, planner(command, str(OWN), "--json").out)

    assert set(document) >= LATER[command]
    before = {name: value for name, value in document.items() if name not in LATER[command]}
    fits_schema(command, json.dumps(before))


def test_step_prints_the_time_the_path_and_what_would_change_it(planner: Planner) -> None:
    ran = planner("step", *SMALL)

    assert ran.code == 0, ran.err
    for words in ("a step", "MFU", "Critical path", "matrix products", "Memory of the fullest GPU",
                  "elasticity", "NIC bandwidth", "Assumed", "inputs sha256"):  # fmt: skip
        assert words in ran.out


def test_step_as_json_is_one_document(planner: Planner) -> None:
    ran = planner("step", *SMALL, "--json")

    document = json.loads(ran.out)
    assert document["schema"] == "planner.step/1"
    assert document["step"]["total_s"] > 0
    assert document["inputs"]["sha256"]
    assert {one["name"] for one in document["sensitivity"]} >= {"nic_bandwidth", "in_flight"}


def test_the_same_inputs_give_the_same_bytes(planner: Planner) -> None:
    assert planner("step", *SMALL, "--json").out == planner("step", *SMALL, "--json").out


def test_a_trace_is_written_for_perfetto(planner: Planner, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"

    ran = planner("step", *SMALL, "--trace", str(path))

    assert ran.code == 0, ran.err
    assert json.loads(path.read_text(encoding="utf-8"))["traceEvents"]


def test_a_plan_gives_its_own_seats(planner: Planner, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    assert planner("place", *SMALL, "--out", str(plan)).code == 0

    ran = planner("step", "--placement", str(plan), "--json")

    assert ran.code == 0, ran.err
    placed = json.loads(plan.read_text(encoding="utf-8"))
    assert json.loads(ran.out)["step"]["total_s"] == pytest.approx(placed["step"]["total_s"])


def test_a_layout_that_does_not_fit_is_timed_and_told_what_would_help(planner: Planner) -> None:
    ran = planner("step", "--gpus", "64", "--supernode", "8", "--model", "llama-3.1-70b",
                  "--tp", "8", "--pp", "1", "--dp", "8", "--cp", "1", "--vpp", "1", "--seq", "8192",
                  "--global-batch", "64", "--micro-batch", "2", "--recompute", "none",
                  "--zero", "1", "--json")  # fmt: skip

    document = json.loads(ran.out)
    assert ran.code == 0, ran.err
    assert not document["memory"]["fits"]
    assert document["memory"]["missing_bytes"] > 0
    assert document["remedies"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "No such file"),
        ("{", "not a JSON document"),
        ("[]", "expected a JSON object"),
        ('{"inputs": {"layout": {}}}', "rank_to_gpu is missing"),
    ],
)
def test_what_is_no_plan_is_refused(
    planner: Planner, tmp_path: Path, text: str | None, words: str
) -> None:
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    ran = planner("step", "--placement", str(path))

    assert ran.code == 2
    assert words in ran.err


def test_validate_prints_each_source_and_what_it_rests_on(planner: Planner) -> None:
    ran = planner("validate", str(OWN))

    assert ran.code == 0, ran.err
    for words in ("korthikanti2022", "llama3-paper", "MAPE", "=MFU", "regret", "no test of it",
                  "has not seen its layout", "Furthest off"):  # fmt: skip
        assert words in " ".join(ran.out.split())


def test_validate_writes_a_prediction_for_every_row(planner: Planner, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    rows = OWN.read_text(encoding="utf-8").splitlines()
    table.write_text(
        "\n".join([*rows, rows[1].replace("k-22b-full", "odd").replace("A100", "Abacus")]),
        encoding="utf-8",
    )
    out = tmp_path / "predictions.csv"

    ran = planner("validate", str(table), "--out", str(out))

    assert ran.code == 0, ran.err
    with out.open(encoding="utf-8") as stream:
        found = list(csv.DictReader(stream))
    assert list(found[0]) == [
        "id", "predicted_step_s", "predicted_memory_bytes", "skipped_because",
    ]  # fmt: skip
    assert len(found) == len(rows)
    assert float(found[0]["predicted_step_s"]) > 0
    assert float(found[0]["predicted_memory_bytes"]) > 1e9
    assert "gpu='Abacus' is not in the catalogue: " in found[-1]["skipped_because"]


def test_validate_as_json_names_what_was_fitted_on(planner: Planner) -> None:
    document = json.loads(planner("validate", str(OWN), "--json").out)

    assert document["schema"] == "planner.validate/1"
    assert document["fitted_on"] == ["korthikanti2022"]
    assert [score["source"] for score in document["sources"]] == ["korthikanti2022", "llama3-paper"]
    assert [score["source"] for score in document["unseen"]] == ["korthikanti2022"]


def test_validate_refuses_what_is_no_table(planner: Planner, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")

    ran = planner("validate", str(path))

    assert ran.code == 2
    assert "missing columns id, model" in ran.err


def test_calibrate_writes_what_validate_reads(planner: Planner, tmp_path: Path) -> None:
    fitted = tmp_path / "own.yaml"

    ran = planner("calibrate", str(OWN), "--all", "--out", str(fitted))

    assert ran.code == 0, ran.err
    assert "A100-SXM-80" in ran.out
    again = planner("validate", str(OWN), "--efficiency", str(fitted), "--json")
    assert json.loads(again.out)["sources"][0]["mape_share"] < 0.06


def test_calibrate_says_when_there_is_nothing_to_fit(planner: Planner, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("\n".join(OWN.read_text(encoding="utf-8").splitlines()[:2]), encoding="utf-8")

    ran = planner("calibrate", str(table))

    assert ran.code == 2
    assert "no accelerator has 3 measured rows" in ran.err


def test_calibrate_writes_the_files_that_ship(planner: Planner, tmp_path: Path) -> None:
    ran = planner("calibrate", str(OWN), "--catalogue", str(tmp_path))

    assert ran.code == 0, ran.err
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "step_efficiency.yaml", "step_efficiency_halves.yaml", "step_efficiency_left_out.yaml",
    ]  # fmt: skip
    both = planner("calibrate", str(OWN), "--catalogue", str(tmp_path), "--all")
    assert both.code == 2
    assert "leave out" in both.err


def test_files_that_ship_are_refused_when_writing_them_was_stopped(
    planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = "A100-SXM-80GB: {gemm: {bf16: 0.7}}\n"
    texts = {"step_efficiency.yaml": fit, "step_efficiency_halves.yaml": fit}
    monkeypatch.setattr(calibrate_report, "refit", lambda *_: None)
    monkeypatch.setattr(calibrate_report, "catalogue_texts", lambda _: texts)
    (tmp_path / "step_efficiency_halves.yaml").mkdir()  # so that the second cannot be written

    stopped = planner("calibrate", str(OWN), "--catalogue", str(tmp_path))
    ran = planner("validate", str(OWN), "--efficiency", str(tmp_path / "step_efficiency.yaml"))

    assert stopped.code == ran.code == 2
    assert "--catalogue FOLDER again" in " ".join(ran.err.split())


def test_validate_says_what_it_skipped_assumed_and_did_not_read(
    planner: Planner, tmp_path: Path
) -> None:
    rows = OWN.read_text(encoding="utf-8").splitlines()
    head = rows[0].replace("micro_batch", "microbatch")
    table = tmp_path / "mine.csv"
    zero = rows[2].replace(",1.10,", ",0,")  # korthikanti's 22B: nothing measured is not 0 s
    assert zero != rows[2]
    table.write_text("\n".join([head, rows[1], zero, rows[1]]), encoding="utf-8")
    out = tmp_path / "predictions.csv"

    ran = planner("validate", str(table), "--out", str(out))

    assert "measured_step_s=0 is not above 0" in ran.out
    assert "micro_batch, 2 rows: not stated: 1, the least" in ran.out
    assert "microbatch: micro_batch is read" in ran.out
    with out.open(encoding="utf-8") as stream:
        steps = [row["predicted_step_s"] for row in csv.DictReader(stream)]
    assert steps[0] == steps[2] != ""
    assert steps[1] == ""


def test_calibrate_fits_all_rows_where_half_are_too_few_and_names_what_it_cannot_fit(
    planner: Planner, tmp_path: Path
) -> None:
    rows = OWN.read_text(encoding="utf-8").splitlines()
    other = rows[1].replace("k-22b-full", "one").replace("A100", "H200")
    table = tmp_path / "mine.csv"
    table.write_text("\n".join([*rows[:4], other]), encoding="utf-8")

    ran = planner("calibrate", str(table))

    assert "fitting A100-SXM-80 on 3 rows" in ran.err
    assert "H100-SXM: 1 measured of the 3 rows that a fit needs" in ran.err


def test_validate_says_where_nobody_measured_an_accelerator(
    planner: Planner, tmp_path: Path
) -> None:
    rows = OWN.read_text(encoding="utf-8").splitlines()
    table = tmp_path / "mine.csv"
    table.write_text("\n".join([rows[0], rows[1].replace("A100", "MI300X")]), encoding="utf-8")

    said = json.loads(planner("validate", str(table), "--json").out)["assumed"]

    assert {
        "name": "efficiency",
        "because": "no measured step of MI300X: its achievable share of peak; fp16 as bf16",
        "rows": 1,
    } in said


def test_fits_on_other_rows_of_a_table_are_refused_where_there_are_none(
    planner: Planner, tmp_path: Path
) -> None:
    rows = OWN.read_text(encoding="utf-8").splitlines()
    table = tmp_path / "mine.csv"
    table.write_text("\n".join(rows[:4]), encoding="utf-8")
    alone = tmp_path / "alone.csv"
    alone.write_text("\n".join(rows[:2]), encoding="utf-8")

    one_source = planner("validate", str(table), "--refit", "sources")
    one_half = planner("validate", str(alone), "--refit", "halves")

    assert (one_source.code, one_half.code) == (2, 2)
    assert "need measured rows of two; there is korthikanti2022" in one_source.err
    assert "need measured rows in both" in one_half.err


def test_rows_that_no_other_row_could_fit_are_predicted_by_defaults_and_said_to_be(
    planner: Planner, tmp_path: Path
) -> None:
    table = tmp_path / "mine.csv"
    table.write_text(OWN.read_text(encoding="utf-8"), encoding="utf-8")

    ran = planner("validate", str(table), "--refit", "sources", "--worst", "0")

    assert ran.code == 0, ran.err
    assert "efficiency, 2 rows: too few other rows of H100-SXM: its defaults" in ran.out
    assert "nan" not in ran.out


def test_errors_of_the_rows_furthest_off_have_a_space_before_the_sign(planner: Planner) -> None:
    ran = planner("validate", str(OWN), "--worst", "2")

    assert ran.code == 0, ran.err
    told = " ".join(ran.out.partition("Furthest off")[2].split())
    assert re.search(r"predicted [\d.]+ m?s \([+-]\d+ %\): ", told)
    assert not re.search(r"\d%", told)


@pytest.mark.parametrize("schedule", ["dualpipe", "zb-h1", "gpipe"])
def test_a_schedule_that_does_not_interleave_is_taken_without_virtual_stages(
    planner: Planner, tmp_path: Path, schedule: str
) -> None:
    """Where nobody said how many: DualPipe was timed and drawn with two, at half a pass each."""
    layout, trace = tmp_path / "layout.yaml", tmp_path / "trace.json"
    layout.write_text(
        f"tp: 8\npp: 2\ndp: 4\nglobal_batch: 16\nmicro_batch: 1\nseq: 2048\nschedule: {schedule}\n"
    )

    ran = planner("step", "--gpus", "64", "--supernode", "8", "--model", "llama-3.1-8b",
                  "--layout", str(layout), "--trace", str(trace), "--json")  # fmt: skip

    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["inputs"]["layout"]["vpp"] == 1
    drawn = json.loads(trace.read_text())
    ends = max(e["ts"] + e["dur"] for e in drawn["traceEvents"] if e["ph"] == "X") / 1e6
    beyond = [e["dur"] / 1e6 for e in drawn["traceEvents"] if e["name"].startswith("pipeline")]
    assert drawn["otherData"]["schedule"] == schedule
    assert ends == pytest.approx(drawn["otherData"]["step_s"], rel=1e-4)
    assert max(beyond, default=0.0) < 0.02 * ends


@pytest.mark.parametrize("changed", [{"pp": "5", "dp": "1"}, {"global_batch": "12"}])
def test_dualpipe_is_refused_where_its_micro_batches_cannot_meet(
    planner: Planner, tmp_path: Path, changed: dict[str, str]
) -> None:
    """An odd number of stages, or fewer than two micro-batches for each stage."""
    given = {"tp": "8", "pp": "4", "dp": "2", "schedule": "dualpipe", "global_batch": "32",
             "micro_batch": "1", "seq": "8192", **changed}  # fmt: skip
    layout = tmp_path / "layout.yaml"
    layout.write_text("".join(f"{key}: {value}\n" for key, value in given.items()))
    gpus = str(8 * int(given["pp"]) * int(given["dp"]))

    ran = planner("step", "--gpus", gpus, "--supernode", "8", "--model", "llama-3.1-70b",
                  "--layout", str(layout))  # fmt: skip

    assert ran.code != 0
    assert "DualPipe needs an even pipeline and micro-batches, 2 x pp at least" in ran.err
