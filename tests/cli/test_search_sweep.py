"""``planner search --sweep``: killed in the middle, resumed, and the same as one run."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from planner.errors import InputError
from tests.conftest import Ran

Planner = Callable[..., Ran]
SCHEMA = Path(__file__).parents[2] / "cli" / "schemas" / "search-sweep.json"
SWEEP = "models: [llama-3.1-8b]\nsupernodes: [2, 4, 8, 64]\ngpus: [16, 1]\n"


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.yaml"
    path.write_text(SWEEP)
    return path


def rows(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT * FROM results ORDER BY position").fetchall()


def test_a_killed_sweep_is_resumed_to_the_same_bytes(
    planner: Planner, sweep: Path, tmp_path: Path
) -> None:
    whole, parts = tmp_path / "whole.sqlite", tmp_path / "parts.sqlite"
    first = planner("search", "--sweep", str(sweep), "--into", str(whole), "--json")
    assert first.code == 0, first.err
    process = _held_after_its_first_row(sweep, parts)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = rows(parts)

    second = planner("search", "--sweep", str(sweep), "--into", str(parts), "--resume", "--json")

    assert second.code == 0, second.err
    assert second.out == first.out
    assert len(kept) == 1
    assert "1 of 8 were there already" in second.err
    assert rows(parts) == rows(whole)
    results = json.loads(second.out)["results"]
    assert len(results) == 8
    refused = [one for one in results if one["best"] is None]
    assert {(one["supernode"], one["gpus"]) for one in refused} == {(n, 1) for n in (2, 4, 8, 64)}


def _begun(sweep: Path, into: Path, *options: str, **more: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "cli.planner_app", "search", "--sweep", str(sweep), "--into",
         str(into), *options],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        **{"stderr": subprocess.PIPE, **more},
    )  # fmt: skip


def _held_after_its_first_row(sweep: Path, into: Path, *options: str) -> subprocess.Popen[bytes]:
    """Begin a sweep that cannot go on after its first row until someone reads what it says.

    Its stderr is a pipe that is full already: the note that follows the first row waits for room,
    however fast or busy the machine is. Whoever reads the pipe lets it go on.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for size in (4096, 1):
        try:
            while True:
                os.write(writer, b"." * size)
        except BlockingIOError:
            pass
    os.set_blocking(writer, True)
    process = _begun(sweep, into, *options, stderr=writer)
    os.close(writer)
    process.stderr = os.fdopen(reader, "rb")
    deadline = time.monotonic() + 100
    while _count(into) < 1:
        assert time.monotonic() < deadline, "no row after 100 s"
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    return process


def test_an_interrupt_keeps_what_is_finished(planner: Planner, sweep: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts.sqlite"
    process = _held_after_its_first_row(sweep, parts)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    kept = rows(parts)

    again = planner("search", "--sweep", str(sweep), "--into", str(parts), "--resume", "--json")

    assert process.returncode == 130, said
    assert b"Traceback" not in said
    assert len(kept) == 1
    assert again.code == 0
    assert rows(parts)[:1] == kept
    assert "1 of 8 were there already" in again.err


def test_a_full_disk_keeps_what_is_finished(planner: Planner, sweep: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts.sqlite"

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    process = _begun(sweep, parts, preexec_fn=little_room)
    _, said = process.communicate(timeout=100)
    kept = rows(parts)

    again = planner("search", "--sweep", str(sweep), "--into", str(parts), "--resume", "--json")

    assert process.returncode == 4, said
    assert b"cannot be written" in said
    assert b"--resume goes on" in said
    assert 1 <= len(kept) < 8
    assert again.code == 0
    assert rows(parts)[: len(kept)] == kept
    assert len(rows(parts)) == 8


def test_a_worker_that_is_killed_changes_no_byte(
    planner: Planner, sweep: Path, tmp_path: Path
) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install '.[dask]'")
    psutil = pytest.importorskip("psutil")
    whole, parts, document = (tmp_path / name for name in ("w.sqlite", "p.sqlite", "p.json"))
    serial = planner("search", "--sweep", str(sweep), "--into", str(whole), "--json")
    assert serial.code == 0, serial.err
    process = _held_after_its_first_row(sweep, parts, "--workers", "2", "--out", str(document))
    family = psutil.Process(process.pid)
    workers = [one for one in family.children(recursive=True)
               if "spawn_main" in " ".join(one.cmdline())]  # fmt: skip
    listening = {
        connection.laddr.ip
        for one in (family, *workers)
        for connection in one.net_connections()
        if connection.status == "LISTEN"
    }
    workers[0].kill()
    _, said = process.communicate(timeout=120)

    assert process.returncode == 0, said
    assert len(workers) == 2
    assert listening == {"127.0.0.1"}
    assert document.read_text() == serial.out
    assert rows(parts) == rows(whole)


def test_the_table_has_a_row_a_combination(planner: Planner, tmp_path: Path, sweep: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="PyArrow is not installed")
    sweep.write_text("models: [llama-3.1-8b]\nsupernodes: [8]\ngpus: [16, 1]\n")
    file = tmp_path / "table.parquet"

    ran = planner("search", "--sweep", str(sweep), "--into", str(tmp_path / "a.sqlite"),
                  "--parquet", str(file), "--json")  # fmt: skip

    assert ran.code == 0, ran.err
    results = json.loads(ran.out)["results"]
    table = parquet.read_table(file).to_pylist()
    assert [row["supernode"] for row in table] == [one["supernode"] for one in results]
    assert table[0]["step_total_s"] == results[0]["best"]["step"]["total_s"]
    memory = results[0]["best"]["memory"]
    assert table[0]["memory_bytes"] == memory["worst_stage_bytes"] + memory["margin_bytes"]
    assert table[1]["step_total_s"] is table[1]["memory_bytes"] is None
    assert "none of 8 layouts fits in memory" in table[1]["refused"]


def test_prices_and_lengths_are_swept_too(planner: Planner, tmp_path: Path, sweep: Path) -> None:
    for name, price in (("dear", 4.0), ("cheap", 2.0)):
        (tmp_path / name).write_text(
            f"currency: USD\ngpu_hour: {{price: {price}, source: s, date: 2026-01-01}}\n"
        )
    sweep.write_text(
        "models: [llama-3.1-8b]\nsupernodes: [8]\ngpus: [16]\nseqs: [4096, 8192]\n"
        f"prices: [{tmp_path / 'dear'}, {tmp_path / 'cheap'}]\n"
    )

    ran = planner("search", "--sweep", str(sweep), "--into", str(tmp_path / "a.sqlite"), "--json")

    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    results = document["results"]
    assert [one["seq"] for one in results] == [4096, 4096, 8192, 8192]
    costs = [one["run"]["cost_per_token"] for one in results]
    assert costs[0] == pytest.approx(2 * costs[1])
    assert costs[2] == pytest.approx(2 * costs[3])
    assert len(document["inputs"]["files_sha256"]) == 2
    page = planner("search", "--sweep", str(sweep), "--into", str(tmp_path / "a.sqlite"),
                   "--resume").out  # fmt: skip
    assert page.startswith("All: llama-3.1-8b, generic-sn8, 16 GPUs.")
    for one in results:  # what tells them apart stands in each line
        name, cost = Path(one["prices"]).name, one["run"]["cost_per_token"] * 1e6
        tokens_per_s = one["best"]["step"]["tokens_per_s"]
        row = rf" {one['seq']:,} .* {tokens_per_s:,.0f} +{name}: {cost:,.4g} [A-Z]{{3}}"
        assert re.search(row, page), (row, page)


def test_why_a_list_gives_no_money_is_said_once(
    planner: Planner, tmp_path: Path, sweep: Path
) -> None:
    listed = tmp_path / "prices.yaml"
    listed.write_text("currency: USD\nyears: 4\n")
    sweep.write_text(
        f"models: [llama-3.1-8b]\nsupernodes: [8]\ngpus: [8, 16]\nprices: [{listed}]\n"
    )

    page = planner("search", "--sweep", str(sweep), "--into", str(tmp_path / "a.sqlite"))

    assert page.code == 0, page.err
    assert len(re.findall(r" none *$", page.out, re.MULTILINE)) == 2
    assert page.out.count("No money by") == 1
    assert "lacks a price for H100-SXM" in " ".join(page.out.split())


def test_progress_of_many_small_searches_is_told_once_a_second(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cli import search_sweep

    clock = [0.0]
    monkeypatch.setattr("cli.search_sweep.time.monotonic", lambda: clock[0])
    progress = search_sweep._Progress()
    progress(0, 1000)
    for done in range(1, 1001):
        clock[0] = done / 100
        progress(done, 1000)

    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("1 of 1,000, 6e+03 a minute, 9.99 s left")
    assert said[-1].startswith("1,000 of 1,000")
    assert len(said) == 11


def test_a_price_that_no_combination_has_a_part_for_is_named_once(
    planner: Planner, tmp_path: Path, sweep: Path
) -> None:
    listed = tmp_path / "prices.yaml"
    listed.write_text(
        "currency: USD\nyears: 4\nkwh: {price: 0.1, source: s, date: 2026-01-01}\nitems:\n"
        "  H100-SXM: {price: 30000, source: s, date: 2026-01-01}\n"
        "  B200-SXM: {price: 42000, source: s, date: 2026-01-01}\n"
        "  leef: {price: 40000, source: s, date: 2026-01-01}\n"
    )
    sweep.write_text(
        f"models: [llama-3.1-8b]\nclusters: [hgx-h100, hgx-b200]\ngpus: [16]\nprices: [{listed}]\n"
    )
    asked = ("search", "--sweep", str(sweep), "--into", str(tmp_path / "a.sqlite"), "--json")

    first, again = planner(*asked), planner(*asked, "--resume")

    jsonschema.validate(json.loads(first.out), json.loads(SCHEMA.read_text()))
    for ran in (first, again):
        told = [line for line in ran.err.splitlines() if "is not used" in line]
        assert len(told) == 1, ran.err
        assert told[0].startswith(f"{listed}: 'leef' under items is not used: no part is called so")
        assert "'leaf'" in told[0]


def test_a_sweeps_rule_holds_and_is_part_of_what_was_asked(
    planner: Planner, tmp_path: Path, sweep: Path
) -> None:
    sweep.write_text("models: [llama-3.1-8b]\nsupernodes: [8]\ngpus: [8, 16]\n")
    asked = ("search", "--sweep", str(sweep), "--into", str(tmp_path / "a.sqlite"), "--json")

    ran = planner(*asked, "--where", "pp == 2")
    other = planner(*asked, "--where", "pp == 4", "--resume")

    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert [one["best"]["layout"]["pp"] for one in document["results"]] == [2, 2]
    assert document["inputs"]["where"] == ["pp == 2"]
    assert other.code == 2
    assert "holds another sweep" in other.err


def test_workers_of_other_versions_are_refused() -> None:
    from planner.search.dask_engine import _Checked, versions_here

    here = versions_here("1.0")

    assert _Checked(dict, here)({"a": 1}) == {"a": 1}
    with pytest.raises(InputError, match=r"a worker runs other versions: numpy .* for 0.1 here"):
        _Checked(dict, {**here, "numpy": "0.1"})({"a": 1})


def _count(path: Path) -> int:
    if not path.exists():  # looking must not make it
        return 0
    try:
        with closing(sqlite3.connect(path, timeout=1)) as database:
            return int(database.execute("SELECT COUNT(*) FROM results").fetchone()[0])
    except sqlite3.Error:
        return 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: 3\nfoo: 1\n", ("models", "foo")),
        ("supernodes: [8, x]\n", ("supernodes[1]",)),
        ("gpus: [8, 8]\n", ("same twice",)),
        ("3\n", ("expected a sweep",)),
        ("seqs: [0]\nprices: [1]\n", ("seqs[0]", "prices[0]")),
    ],
)
def test_every_fault_of_a_sweep_is_named(
    planner: Planner, tmp_path: Path, text: str, said: tuple[str, ...]
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(text)

    ran = planner("search", "--sweep", str(bad), "--into", str(tmp_path / "x.sqlite"))

    assert ran.code == 2
    assert all(part in ran.err for part in said), ran.err


def test_a_sweep_needs_somewhere_to_go(planner: Planner, sweep: Path) -> None:
    ran = planner("search", "--sweep", str(sweep))

    assert ran.code == 2
    assert "--into" in ran.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workers", "2", "--scheduler", "tcp://127.0.0.1:1"), "not beside --scheduler"),
        (("--workers", "0"), "--workers"),
    ],
)
def test_ways_to_sweep_that_exclude_each_other_are_refused(
    planner: Planner, sweep: Path, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    ran = planner("search", "--sweep", str(sweep), "--into", str(tmp_path / "a.sqlite"), *options)

    assert ran.code == 2
    assert said in ran.err


def test_without_a_sweep_there_is_nothing_for_workers_to_do(planner: Planner) -> None:
    ran = planner("search", "--workers", "2")

    assert ran.code == 2
    assert "go with --sweep" in ran.err
