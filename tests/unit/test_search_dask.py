"""Combinations on real local workers: one that ends every worker is given up, no other is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from planner.errors import InputError
from planner.search.dask_engine import dask_engine
from tests.conftest import ROOT

PROGRAM = """
import os, sys
from planner.errors import SolverError
from planner.search.dask_engine import dask_engine

def solve(one):
    if one["size"] == 2:
        os._exit(9)
    return {"square": one["size"] ** 2}

if __name__ == "__main__":
    found = {}
    with dask_engine(solve, own_version="1", workers=2) as engine:
        try:
            for position, answer in engine([(n, {"size": n}) for n in range(5)]):
                found[position] = answer["square"]
        except SolverError as error:
            print(error.faults[0])
    print(sorted(found.items()))
"""


@pytest.mark.nightly
def test_what_ends_every_worker_is_named_after_all_others_are_done() -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install '.[dask]'")

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip

    said = done.stdout.splitlines()
    assert said[0] == "given up after it ended its worker again and again: size 2", done.stderr
    assert said[1] == "[(0, 0), (1, 1), (3, 9), (4, 16)]"


def test_without_dask_workers_are_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    with (
        pytest.raises(InputError, match=r"pip install .*\[dask\]"),
        dask_engine(dict, own_version="1", workers=1),
    ):
        pass
