"""A fit of one's own runs, wherever a step is timed: same words, same numbers, kept in the plan."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "cli" / "schemas"
SLOWER = 1.25
JOB = ("--gpus", "16", "--model", "llama-3.1-8b", "--seq", "8192", "--global-batch", "32",
       "--micro-batch", "1", "--recompute", "none", "--zero", "1")  # fmt: skip
LAYOUT = ("--tp", "2", "--pp", "1", "--dp", "8", "--cp", "1", "--vpp", "1")
CLUSTER = ("--cluster", "hgx-h100")
HEAD = ("id,model,layers,hidden,ffn,heads,kv_heads,gated_mlp,vocab,seq,gpu,n_gpus,tp,pp,dp,sp,"
        "micro_batch,global_batch,precision,measured_step_s")  # fmt: skip


def rows(measured: dict[str, str]) -> str:
    """Return eight layouts of Llama 3.1 8B on 16 H100, with the steps in *measured*."""
    lines = [HEAD]
    for tp, pp in ((1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (2, 2), (4, 2), (1, 4)):
        name = f"tp{tp}pp{pp}"
        lines.append(
            f"{name},llama,32,4096,14336,32,8,1,128256,8192,H100,16,{tp},{pp},{16 // tp // pp},"
            f"{int(tp > 1)},1,32,bf16,{measured.get(name, '')}"
        )
    return "\n".join(lines) + "\n"


def predictions(planner: Planner, table: Path, *arguments: str) -> dict[str, float]:
    out = table.with_suffix(".predictions")
    ran = planner("validate", str(table), "--out", str(out), *arguments)
    assert ran.code == 0, ran.err
    with out.open(encoding="utf-8") as stream:
        return {row["id"]: float(row["predicted_step_s"]) for row in csv.DictReader(stream)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("own")


@pytest.fixture(scope="module")
def table(folder: Path) -> Path:
    """Return runs of a machine that takes a quarter longer than what ships says of its kind."""
    from cli.planner_app import main

    path, out = folder / "runs.csv", folder / "shipped.csv"
    path.write_text(rows({}), encoding="utf-8")
    assert main(["validate", str(path), "--out", str(out)]) == 0
    with out.open(encoding="utf-8") as stream:
        steps = {one["id"]: float(one["predicted_step_s"]) for one in csv.DictReader(stream)}
    path.write_text(rows({k: f"{SLOWER * v:.4f}" for k, v in steps.items()}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def own(table: Path) -> Path:
    from cli.planner_app import main

    path = table.with_name("mine.yaml")
    assert main(["calibrate", str(table), "--out", str(path)]) == 0
    return path


def step_of(ran: Ran) -> dict[str, Any]:
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    return document


def test_a_slower_machine_is_timed_slower_and_as_validate_times_its_rows(
    planner: Planner, table: Path, own: Path
) -> None:
    asked = ("step", *CLUSTER, *JOB, *LAYOUT, "--json")
    shipped = step_of(planner(*asked))
    mine = step_of(planner(*asked, "--efficiency", str(own)))

    assert mine["step"]["total_s"] == pytest.approx(SLOWER * shipped["step"]["total_s"], rel=0.05)
    of_row = predictions(planner, table, "--efficiency", str(own))["tp2pp1"]
    assert mine["step"]["total_s"] == pytest.approx(of_row, rel=0.03)


def test_the_interval_is_that_of_the_fit(planner: Planner, own: Path) -> None:
    document = step_of(planner("step", *CLUSTER, *JOB, *LAYOUT, "--json", "--efficiency", str(own)))

    spread = next(
        float(line.split()[1])
        for line in own.read_text(encoding="utf-8").splitlines()
        if line.strip().startswith("spread")
    )
    low, high = document["step"]["interval_s"]
    assert high / low == pytest.approx(math.exp(2 * 1.645 * spread), rel=1e-6)


def test_a_plan_keeps_the_fit_and_is_timed_with_it_when_the_file_is_gone(
    planner: Planner, own: Path, tmp_path: Path
) -> None:
    fit, plan = tmp_path / "fit.yaml", tmp_path / "plan.json"
    fit.write_bytes(own.read_bytes())
    placed = planner("place", *CLUSTER, *JOB, *LAYOUT, "--efficiency", str(fit), "--out", str(plan))
    assert placed.code == 0, placed.err
    assert "fitted on 8" in " ".join(placed.out.split())
    fit.unlink()

    kept = json.loads(plan.read_text(encoding="utf-8"))
    again = step_of(planner("step", "--placement", str(plan), "--json"))
    hosts = tmp_path / "hosts"
    assert planner("export", str(plan), "--to", "node-order", "--out", str(hosts)).code == 0
    held = step_of(planner("verify", str(plan), "--allocation", str(hosts), "--json"))

    for command, one in (("place", kept), ("step", again)):
        schema = json.loads((SCHEMAS / f"{command}.json").read_text(encoding="utf-8"))
        jsonschema.validate(one, schema)
    assert kept["inputs"]["efficiency_file"]["file"] == str(fit)
    assert len(kept["inputs"]["efficiency_file"]["sha256"]) == 64
    assert "8 measured steps of" in kept["inputs"]["assumed"]["efficiency"]
    for one in (again["step"]["total_s"], held["planned"]["step_s"]):
        assert one == pytest.approx(kept["step"]["total_s"])
    assert again["step"]["interval_s"] == pytest.approx(kept["step"]["interval_s"])
    assert again["inputs"]["efficiency_file"] == kept["inputs"]["efficiency_file"]
    assert "8 measured steps of" in " ".join(planner("step", "--placement", str(plan)).out.split())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("efficiency_file", 3), "inputs.efficiency_file.file: expected text"),
        (("efficiency", None), "inputs.efficiency: expected the numbers"),
        (("efficiency", {"spread": "x"}), "inputs.efficiency.spread=x: expected"),
    ],
)
def test_a_plan_whose_fit_is_damaged_is_refused(
    planner: Planner, own: Path, tmp_path: Path, change: tuple[str, Any], words: str
) -> None:
    plan = tmp_path / "plan.json"
    planner("place", *CLUSTER, *JOB, *LAYOUT, "--efficiency", str(own), "--out", str(plan))
    document = json.loads(plan.read_text(encoding="utf-8"))
    key, value = change
    document["inputs"][key] = value
    plan.write_text(json.dumps(document), encoding="utf-8")

    ran = planner("step", "--placement", str(plan))

    assert ran.code == 2
    assert words in ran.err


def test_search_and_sweeps_say_whose_numbers_they_use(
    planner: Planner, own: Path, tmp_path: Path
) -> None:
    searched = planner("search", *CLUSTER, *JOB, *LAYOUT, "--efficiency", str(own), "--json")
    listed = tmp_path / "sweep.yaml"
    listed.write_text(
        "models: [llama-3.1-8b]\nclusters: [hgx-h100, hgx-b200]\ngpus: [16]\n", encoding="utf-8"
    )
    swept = planner("search", "--sweep", str(listed), "--into", str(tmp_path / "s.db"),
                    *JOB[4:], *LAYOUT, "--efficiency", str(own), "--json")  # fmt: skip

    found, many = step_of(searched), step_of(swept)
    name = found["inputs"]["efficiency_file"]["file"]
    assert name == many["inputs"]["efficiency_file"]["file"] == str(own)
    assert "H100-SXM is timed with" in searched.err
    first, second = many["results"]
    assert first["best"]["step"]["total_s"] == pytest.approx(found["best"][0]["step"]["total_s"])
    assert "none of B200-SXM" in second["refused"][0]


def test_a_comparison_times_what_was_fitted_with_the_fit_and_the_rest_as_shipped(
    planner: Planner, own: Path, tmp_path: Path
) -> None:
    both, out = (*CLUSTER, "--cluster", "hgx-b200"), tmp_path / "compared.json"
    asked = ("compare", *both, *JOB, *LAYOUT, "--efficiency", str(own), "--out", str(out))
    ran = planner(*asked)

    document = json.loads(out.read_text(encoding="utf-8"))
    clusters = {one["cluster"]: one for one in document["inputs"]["clusters"]}
    assert clusters["hgx-h100"]["efficiency_file"]["file"] == str(own)
    assert "efficiency_file" not in clusters["hgx-b200"]
    assert "the shipped numbers" in clusters["hgx-b200"]["assumed"]["efficiency"]
    assert "B200-SXM is timed with the shipped numbers" in " ".join(ran.out.split())
    assert "B200-SXM is timed with the shipped numbers" in ran.err
    other = planner("compare", "--cluster", "hgx-b200", *JOB, "--efficiency", str(own))
    assert other.code == 2
    assert "the clusters compared have B200-SXM" in other.err


@pytest.mark.parametrize("command", ["place", "step", "search"])
def test_a_fit_of_another_accelerator_or_precision_is_refused(
    planner: Planner, own: Path, command: str
) -> None:
    other = planner(command, "--cluster", "hgx-b200", *JOB, *LAYOUT, "--efficiency", str(own))
    narrow = planner(command, *CLUSTER, *JOB, "--precision", "fp8", "--efficiency", str(own))

    assert other.code == narrow.code == 2
    assert "has a fit of H100-SXM, none of B200-SXM" in other.err
    assert "has H100-SXM in bf16, not in fp8" in narrow.err


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[: text.index("  spread")], "missing key 'spread'"),
        (lambda text: text[: text.index("  source")], "missing key 'source'"),
        (lambda text: text.replace("bf16: 0", "bf16: .nan #"), "expected a share from 0 to 1"),
        (lambda text: text.replace("inner: 0", "inner: 7"), "expected a share from 0 to 1"),
        (lambda text: text.replace("\n  step: ", "\n  step: -"), "expected a time"),
        (lambda _: "", "the file holds nothing"),
        (lambda _: "[]", "expected accelerators and their fits"),
        (lambda _: "H100-SXM: {nic: 50 GB/s}", "no fit of any accelerator"),
        (lambda _: HEAD, "is a table of training runs"),
        (lambda _: '{"schema": "planner.place/1"}', "is a plan of planner place"),
    ],
)
@pytest.mark.parametrize("command", ["step", "validate"])
def test_what_is_no_whole_fit_is_refused(
    planner: Planner, table: Path, own: Path, tmp_path: Path, command: str,
    damage: Callable[[str], str], words: str,
) -> None:  # fmt: skip
    broken = tmp_path / "broken.yaml"
    broken.write_text(damage(own.read_text(encoding="utf-8")), encoding="utf-8")
    arguments = (str(table),) if command == "validate" else (*CLUSTER, *JOB, *LAYOUT)

    ran = planner(command, *arguments, "--efficiency", str(broken))

    assert ran.code == 2
    assert words in ran.err


def test_a_plan_from_before_machines_had_clocks_is_read(
    planner: Planner, own: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    planner("place", *CLUSTER, *JOB, *LAYOUT, "--efficiency", str(own), "--out", str(plan))
    document = json.loads(plan.read_text(encoding="utf-8"))
    del document["inputs"]["efficiency"]["clock_ratio"]
    plan.write_text(json.dumps(document), encoding="utf-8")

    ran = planner("step", "--placement", str(plan), "--json")

    assert ran.code == 0, ran.err
    assert step_of(ran)["step"]["total_s"] == pytest.approx(document["step"]["total_s"])


def test_two_plans_are_not_timed_anew(planner: Planner, own: Path) -> None:
    ran = planner("compare", "a.json", "b.json", "--efficiency", str(own))

    assert ran.code == 2
    assert "two plans are compared as they are" in ran.err


@pytest.mark.parametrize("call", ["os.replace", "os.fsync"])
def test_a_fit_that_is_killed_while_it_is_written_leaves_the_old_one_whole(
    table: Path, tmp_path: Path, call: str
) -> None:
    out = tmp_path / "mine.yaml"
    out.write_text("as it was\n", encoding="utf-8")
    killed = (
        f"import os, signal\n{call} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from cli.planner_app import main\n"
        f"main(['calibrate', {str(table)!r}, '--all', '--out', {str(out)!r}])\n"
    )

    done = subprocess.run([sys.executable, "-c", killed], cwd=ROOT, check=False, timeout=60)

    assert done.returncode == -9
    assert out.read_text(encoding="utf-8") == "as it was\n"


def test_a_fit_counts_every_row_and_is_scored_by_rows_it_has_not_seen(
    planner: Planner, table: Path
) -> None:
    errors = json.loads(planner("calibrate", str(table), "--json").out)["errors"]

    assert [(one["rows"], one["held_out"]) for one in errors] == [(8, False), (8, True)]


def test_a_fit_of_four_rows_is_on_all_of_them_and_promises_no_more_than_it_can(
    planner: Planner, table: Path, tmp_path: Path
) -> None:
    few = tmp_path / "few.csv"
    few.write_text("\n".join(table.read_text(encoding="utf-8").splitlines()[:5]), encoding="utf-8")

    document = json.loads(planner("calibrate", str(few), "--json").out)

    assert [(one["rows"], one["held_out"]) for one in document["errors"]] == [(4, False)]
    assert document["efficiencies"]["H100-SXM"]["spread"] > 0.1


def test_a_fit_of_the_same_chip_is_used_and_said_to_be(planner: Planner, own: Path) -> None:
    ran = planner("step", "--cluster", "hgx-h200", *JOB, *LAYOUT, "--efficiency", str(own),
                  "--json")  # fmt: skip

    assert "as H100-SXM, the same chip" in step_of(ran)["inputs"]["assumed"]["efficiency"]


def test_two_plans_with_different_fits_say_so_side_by_side(
    planner: Planner, own: Path, tmp_path: Path
) -> None:
    plans = [tmp_path / name for name in ("shipped.json", "mine.json", "same.json")]
    copied = tmp_path / "copied.yaml"
    copied.write_bytes(own.read_bytes())
    for plan, fit in zip(plans, ((), own, copied), strict=True):
        more = ("--efficiency", str(fit)) if fit else ()
        assert planner("place", *CLUSTER, *JOB, *LAYOUT, *more, "--out", str(plan)).code == 0

    told = step_of(planner("compare", str(plans[0]), str(plans[1]), "--json"))
    page = " ".join(planner("compare", str(plans[0]), str(plans[1])).out.split())
    alike = step_of(planner("compare", str(plans[1]), str(plans[2]), "--json"))

    changed = told["changed_inputs"]["efficiency"]
    assert changed["before"].startswith("shipped with planner ")
    assert changed["after"].startswith(f"{own} (sha256 ")
    assert "timed with different efficiencies: seconds" in page
    assert told["moved_ranks"] == 0
    assert "efficiency" not in alike["changed_inputs"]  # the same numbers under another name


def test_an_allocation_held_against_a_plan_says_whose_seconds_they_are(
    planner: Planner, own: Path, tmp_path: Path
) -> None:
    plan, hosts, older = (tmp_path / name for name in ("plan.json", "hosts", "older.json"))
    fitted = ("--efficiency", str(own), "--out", str(plan))
    assert planner("place", *CLUSTER, *JOB, *LAYOUT, *fitted).code == 0
    assert planner("export", str(plan), "--to", "node-order", "--out", str(hosts)).code == 0
    document = json.loads(plan.read_text(encoding="utf-8"))
    del document["inputs"]["efficiency_file"]  # as if these numbers had shipped with it
    older.write_text(json.dumps(document), encoding="utf-8")

    mine = planner("verify", str(plan), "--allocation", str(hosts))
    was = step_of(planner("verify", str(older), "--allocation", str(hosts), "--json"))

    assert f"All seconds here are timed with {own}" in " ".join(mine.out.split()).replace("- ", "-")
    assert "others than the plan was made with" in was["timed_with"]
    jsonschema.validate(was, json.loads((SCHEMAS / "verify.json").read_text(encoding="utf-8")))


def test_of_a_moe_a_fit_of_dense_rows_is_no_surer_than_of_a_machine_not_seen(
    planner: Planner, own: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    asked = (*CLUSTER, "--gpus", "16", "--model", "qwen3-30b-a3b", "--efficiency", str(own))

    page = planner("step", *asked)
    low_s, high_s = step_of(planner("step", *asked, "--json"))["step"]["interval_s"]
    assert planner("place", *asked, "--out", str(plan)).code == 0
    again = step_of(planner("step", "--placement", str(plan), "--json"))

    assert "no row is a MoE: its interval is that of a machine not fitted on" in " ".join(
        page.out.split()
    )
    assert "set on published tables" in page.out
    assert high_s / low_s > math.exp(2 * 1.645 * 0.18)
    assert "no row is a MoE" in again["inputs"]["assumed"]["efficiency"]
    low_s, high_s = again["step"]["interval_s"]
    assert high_s / low_s > math.exp(2 * 1.645 * 0.18)


def test_a_fit_of_another_chip_of_the_family_is_no_surer_than_of_a_machine_not_seen(
    planner: Planner, own: Path
) -> None:
    document = step_of(planner("step", "--cluster", "hgx-h200", *JOB, *LAYOUT, "--efficiency",
                               str(own), "--json"))  # fmt: skip

    low_s, high_s = document["step"]["interval_s"]
    assert high_s / low_s > math.exp(2 * 1.645 * 0.18)
    assert "rows are of H100-SXM, none of H200-SXM" in document["inputs"]["assumed"]["efficiency"]
