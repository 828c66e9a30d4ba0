"""What ``calibrate`` and ``validate`` say of rows that they cannot take for what they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_own_efficiency import HEAD
from tests.conftest import Ran

Planner = Callable[..., Ran]


def table(path: Path, head: str = HEAD, **cells: str) -> Path:
    """Write three layouts of 8B on 16 H100 that took about as long as they do."""
    rows = []
    for tp, step_s in ((1, "3.1"), (2, "3.3"), (4, "3.7")):
        known = {
            "id": f"tp{tp}", "model": "llama", "layers": "32", "hidden": "4096", "ffn": "14336",
            "heads": "32", "kv_heads": "8", "gated_mlp": "1", "vocab": "128256", "seq": "8192",
            "gpu": "H100", "n_gpus": "16", "tp": f"{tp}", "pp": "1", "dp": f"{16 // tp}",
            "sp": str(int(tp > 1)), "micro_batch": "1", "global_batch": "32", "precision": "bf16",
            "measured_step_s": step_s,
        }  # fmt: skip
        known["step_time_ms"] = f"{1000 * float(step_s):g}"
        rows.append(",".join((known | cells).get(name, "") for name in head.split(",")))
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_step_in_another_column_is_named_beside_the_one_that_is_read(
    planner: Planner, tmp_path: Path
) -> None:
    path = table(tmp_path / "ms.csv", HEAD.replace("measured_step_s", "step_time_ms"))

    for ran in (planner("calibrate", str(path)), planner("validate", str(path))):
        told = " ".join((ran.out + ran.err).split())
        assert "the column measured_step_s, in seconds, has none" in told
        assert "columns that are not read: step_time_ms" in told
    assert planner("validate", str(path)).code == 0


def test_a_table_of_which_nothing_can_be_read_is_refused_with_the_reasons(
    planner: Planner, tmp_path: Path
) -> None:
    ran = planner("validate", str(table(tmp_path / "a.csv", gpu="Z9")))

    assert ran.code == 2
    assert "no row can be predicted" in ran.err
    assert "gpu='Z9' is not in the catalogue" in ran.err


@pytest.mark.parametrize(("rate", "code"), [("50", 0), ("400", 2), ("50000", 2)])
def test_a_nic_that_no_gpu_has_is_a_slip_of_its_unit(
    planner: Planner, tmp_path: Path, rate: str, code: int
) -> None:
    path = table(tmp_path / "n.csv", f"{HEAD},inter_bw_GBps_per_gpu", inter_bw_GBps_per_gpu=rate)

    ran = planner("validate", str(path), "--json")

    assert ran.code == code
    assert ("cannot be: expected 1 MB/s to 300 GB/s" in ran.err) == bool(code)


def test_rows_held_are_counted_and_one_row_has_no_constant_mfu(
    planner: Planner, tmp_path: Path
) -> None:
    path = table(tmp_path / "one.csv")
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:2]) + "\n", encoding="utf-8")

    ran = planner("validate", str(path))
    document = json.loads(planner("validate", str(path), "--json").out)

    assert document["inside_interval_rows"]["sources"]["rows"] == 1
    held = document["inside_interval_rows"]["sources"]["held"]
    assert f"holds {held} of the 1 rows" in " ".join(ran.out.split())
    assert document["sources"][0]["constant_mfu_share"] is None


def test_all_lines_of_what_is_assumed_are_two_columns_in(planner: Planner, tmp_path: Path) -> None:
    ran = planner("calibrate", str(table(tmp_path / "t.csv")), "--all")

    assert ran.code == 0, ran.err
    below = ran.out.split("Assumed\n")[1].splitlines()
    assert len(below) > 4
    assert all(line.startswith("  ") for line in below if line)
