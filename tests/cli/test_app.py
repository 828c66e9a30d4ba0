"""The command itself: help, mistakes, exit codes; nothing here knows what a command does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli import planner_app
from cli.planner_errors import exit_code_of
from cli.planner_version import __version__
from planner.errors import InfeasibleError, InputError, LayoutError, SolverError
from tests.conftest import ROOT, Ran

Planner = Callable[..., Ran]

PROBE = '''
import time
from pathlib import Path
from typing import Annotated
import typer
from cli.planner_options import Json, TimeLimit, Zero, command_app, counts, quantity
from cli.planner_output import document, emit, json_text
from planner.errors import InputError
from planner.units import KIB, parse_bytes

app = command_app()

@app.command("probe")
def probe(
    payload: Annotated[
        float, quantity("--payload", parse_bytes, shown="8 KiB", help="Size.")
    ] = 8 * KIB,
    supernode: Annotated[str, typer.Option("--supernode")] = "8",
    time_limit: TimeLimit = None,
    zero: Zero = None,
    fail: bool = False,
    sleep: bool = False,
    as_json: Json = False,
) -> None:
    """Show what was understood."""
    if fail:
        raise InputError("a.yaml:1:2: x", "a.yaml:2:1: y")
    if sleep:
        emit("asleep")
        time.sleep(60)
    inputs = {"payload_bytes": payload, "supernodes": counts(supernode, option="--supernode")}
    emit(json_text(document("probe", inputs, {"zero": zero})))
'''


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the planner one command more, in a module outside the package."""
    (tmp_path / "probe_command.py").write_text(PROBE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "probe_command", raising=False)
    lazy = planner_app.LazyCommand(name="probe", module="probe_command", help="Probe the app.")
    gone = planner_app.LazyCommand(name="gone", module="no_such_module", help="Not there yet.")
    monkeypatch.setattr(planner_app, "COMMANDS", (lazy, gone))
    return tmp_path


def test_help_lists_the_commands_whose_module_is_there_without_importing_them(
    planner: Planner, probe: Path
) -> None:
    ran = planner("--help")

    assert (ran.code, ran.err) == (0, "")
    assert "  probe  Probe the app." in ran.out
    assert "gone" not in ran.out
    assert "probe_command" not in sys.modules


def test_every_command_of_the_table_is_there_under_its_name(planner: Planner) -> None:
    for command in planner_app.COMMANDS:
        if (ROOT / f"{command.module.replace('.', '/')}.py").exists():
            ran = planner(command.name, "--help")
            assert ran.code == 0, ran.err
            assert ran.out.startswith(f"Usage: planner {command.name} ")


def test_help_fits_80_columns(planner_process: Planner) -> None:
    ran = planner_process("--help", COLUMNS="80")

    assert max(len(line) for line in ran.out.splitlines()) <= 80
    widest = max(len(command.name) for command in planner_app.COMMANDS)
    assert all(2 + widest + 2 + len(c.help) <= 78 for c in planner_app.COMMANDS)


def test_the_version_is_that_of_the_package(planner: Planner) -> None:
    ran = planner("--version")

    assert (ran.code, ran.out) == (0, f"planner {__version__}\n")


def test_a_mistyped_command_names_the_nearest_one(planner: Planner, probe: Path) -> None:
    ran = planner("porbe")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: no such command 'porbe'. Did you mean 'probe'?\n  see 'planner --help'\n"
    )


def test_a_mistyped_option_names_the_nearest_one(planner: Planner, probe: Path) -> None:
    ran = planner("probe", "--supernod", "8")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: no such option '--supernod'\n"
        "  did you mean --supernode?\n"
        "  see 'planner probe --help'\n"
    )


def test_no_command_at_all_shows_the_help_on_stderr(planner: Planner) -> None:
    ran = planner()

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Usage: planner ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--payload", "8"], "'--payload': expected a size such as '8 KiB' or '80 GB', got '8'"),
        (["--payload", "nan GB"], "'--payload': expected a size such as"),
        (["--time-limit", "nan"], "'--time-limit': expected a number of seconds above 0, got nan"),
        (["--time-limit", "0"], "above 0, got 0.0"),
        (["--zero", "4"], "'--zero': expected a whole number from 0 to 3, got '4'"),
        (["--zero", "1_0"], "'--zero': expected a whole number from 0 to 3, got '1_0'"),
        (["--zero", "9" * 5000], "'--zero': expected a whole number from 0 to 3, got '9999"),
        (["--supernode", "8,x"], "expected whole numbers such as 8,64,384, got '8,x'"),
        (["--supernode", "8,0"], "got '8,0'"),
        (["--supernode", ""], "got ''"),
        (["--supernode"], "'--supernode' requires an argument"),
        (["extra"], "unexpected extra argument"),
    ],
)
def test_a_wrong_option_value_is_refused_with_the_option_and_what_would_be_right(
    planner: Planner, probe: Path, arguments: list[str], says: str
) -> None:
    ran = planner("probe", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert says in ran.err


def test_an_option_with_a_unit_reaches_the_command_as_si(planner: Planner, probe: Path) -> None:
    given = planner("probe", "--payload", "192MiB", "--supernode", "8, 64,384")
    left_out = planner("probe")

    assert '"payload_bytes": 201326592.0' in given.out
    assert '"payload_bytes": 8192.0' in left_out.out
    assert given.err == left_out.err == ""


def test_every_fault_of_a_refusal_is_printed_and_nothing_on_stdout(
    planner: Planner, probe: Path
) -> None:
    ran = planner("probe", "--fail", "--json")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: 2 faults\n  a.yaml:1:2: x\n  a.yaml:2:1: y\n"


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (LayoutError("ep=3 does not divide 8"), 2, "error: ep=3 does not divide 8\n"),
        (InputError("a.yaml:1:2: x"), 2, "error: a.yaml:1:2: x\n"),
        (InfeasibleError("memory: 3 GB too much"), 3, "error: memory: 3 GB too much\n"),
        (SolverError("no answer in 60 s"), 4, "error: no answer in 60 s\n"),
        (MemoryError(), 4, "error: out of memory"),
        (RecursionError("maximum recursion depth"), 4, "error: the input is nested too deeply"),
        (FileNotFoundError(2, "No such file", "x"), 2, "error: x: No such file\n"),
        (OSError(28, "No space left on device"), 4, "error: No space left on device\n"),
        (ValueError("surprise"), 4, "error: a fault of the planner itself: ValueError: surprise"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_each_error_has_its_exit_code_and_no_traceback(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, says: str
) -> None:
    assert exit_code_of(error) == code

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(says)
    assert "Traceback" not in captured.err


def test_an_interrupted_run_ends_with_130_and_keeps_what_it_wrote(probe: Path) -> None:
    run = (
        "import sys; from cli import planner_app as p; "
        "p.COMMANDS = (p.LazyCommand(name='probe', module='probe_command', help=''),); "
        "sys.exit(p.main(['probe', '--sleep']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", run],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{probe}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)

    assert first == "asleep\n"
    assert process.returncode == 130
    assert err == "interrupted; what was finished is kept\n"


@pytest.mark.parametrize("arguments", [["--help"], ["topology", "list"]])
def test_a_reader_that_stops_reading_is_no_error(arguments: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)

    done = subprocess.run(
        [sys.executable, "-m", "cli.planner_app", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write_end)

    assert (done.returncode, done.stderr) == (0, "")


def test_help_needs_no_heavy_import_and_comes_at_once() -> None:
    run = (
        "import sys; from cli.planner_app import main; main(['--help']); "
        "heavy = {'numpy', 'scipy', 'networkx', 'pulp', 'highspy', 'yaml', 'rich', 'pydantic'}; "
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    fastest_s = float("inf")
    for _ in range(3):  # a busy machine: processor time, and the best of three
        before = os.times()
        done = subprocess.run(
            [sys.executable, "-c", run],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        after = os.times()
        busy_s = after.children_user + after.children_system
        fastest_s = min(fastest_s, busy_s - before.children_user - before.children_system)

    assert done.stderr == "[]\n"
    assert fastest_s <= 0.4


def test_completion_offers_the_commands_of_the_table(
    planner_process: Planner,
) -> None:
    ran = planner_process(
        _PLANNER_COMPLETE="complete_bash", COMP_WORDS="planner to", COMP_CWORD="1"
    )

    assert "topology" in ran.out.split()


def test_the_clusters_own_number_of_gpus_is_called_so(planner: Planner) -> None:
    own = planner("place", "--cluster", "hgx-h100", "--tp", "8", "--pp", "7")
    asked = planner("place", "--cluster", "hgx-h100", "--tp", "8", "--pp", "7", "--gpus", "64")

    assert "56 does not divide the 1024 GPUs of hgx-h100; --gpus N takes another number" in own.err
    assert "56 does not divide the 64 GPUs asked for" in asked.err


@pytest.mark.parametrize(
    "words",
    [["export", "none.json", "--to", "slurm"], ["verify", "none.json", "--allocation", "x"]],
)
def test_a_plan_that_is_not_there_is_named_without_an_option_the_command_lacks(
    planner: Planner, words: list[str]
) -> None:
    ran = planner(*words)

    assert ran.code == 2
    assert "none.json: No such file" in ran.err
    assert "--placement" not in ran.err
