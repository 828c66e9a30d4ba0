"""A disk that is full, a file that may not grow, a run that is killed: old files stay whole."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.export_command import KINDS
from cli.planner_app import main

resource = pytest.importorskip("resource", reason="no limits of a process on this system")
ROOT = Path(__file__).resolve().parents[2]
TREE = "SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[3-4]\nSwitchName=top Switches=s[0-1]\n"
OLD = "as it was\n"
FULL = Path("/dev/full")
TWICE = """
import sys
from cli.planner_output import write_file
print("ready", flush=True)
while True:
    for mark in "ab":
        write_file(sys.argv[1], mark * 3_000_000)
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "tree.conf").write_text(TREE)
    path = folder / "plan.json"
    code = main(
        ["place", "--cluster", f"{folder / 'tree.conf'},gpus-per-node=2", "--model", "llama-3.1-8b",
         "--tp", "2", "--dp", "4", "--out", str(path)]
    )  # fmt: skip
    assert code == 0
    return path


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """Let no file grow beyond *size_bytes*, as on a disk that has no more."""
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, was[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)


def outputs(plan: Path, out: Path) -> dict[str, list[str]]:
    """Return a command line for each kind of file that exports, imports and checks write."""
    tree, given = plan.parent / "tree.conf", plan.parent / "hosts"
    given.write_text("n[1-4]\n")
    imported = ["topology", "import", str(tree), "--gpus-per-node", "2"]
    checked = ["verify", str(plan), "--allocation", str(given)]
    return {
        **{kind: ["export", str(plan), "--to", kind, "--out", str(out)] for kind in KINDS},
        "import": [*imported, "--out", str(out)],
        "import-graph": [*imported, "--graph", str(out)],
        "verify": [*checked, "--out", str(out)],
        "verify-rank-map": [*checked, "--rank-map", str(out)],
    }


@pytest.mark.parametrize("kind", [*KINDS, "import", "import-graph", "verify", "verify-rank-map"])
def test_what_does_not_fit_on_the_disk_is_named_and_the_old_file_stays(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    out = tmp_path / "out"
    out.write_text(OLD)

    with files_of_at_most(16):
        code = main(outputs(plan, out)[kind])

    assert code == 4
    assert f"error: {out}: cannot be written: File too large" in capsys.readouterr().err
    assert out.read_text() == OLD
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("kind", ["slurm", "import", "verify"])
def test_a_full_device_is_named(plan: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    assert main(outputs(plan, FULL)[kind]) == 4
    assert "error: /dev/full: cannot be written: No space left" in capsys.readouterr().err


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("form", [["export", "--to", "slurm"], ["topology", "list"]])
def test_output_that_cannot_be_written_is_said_to_be_the_output(
    plan: Path, form: list[str]
) -> None:
    words = [form[0], str(plan), *form[1:]] if form[0] == "export" else form

    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "cli.planner_app", *words], cwd=ROOT, stdout=full,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip

    assert done.returncode == 4
    assert done.stderr == "error: standard output: cannot be written: No space left on device\n"


def test_a_run_that_is_killed_leaves_one_content_or_the_other_whole(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("a" * 3_000_000)
    seen = set()

    for wait_s in (0.0, 0.01, 0.02, 0.03, 0.05, 0.08):
        with subprocess.Popen(
            [sys.executable, "-c", TWICE, str(out)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as run:
            assert run.stdout is not None
            run.stdout.readline()
            time.sleep(wait_s)
            run.kill()
        seen.add(out.read_text())

    assert seen <= {"a" * 3_000_000, "b" * 3_000_000}
