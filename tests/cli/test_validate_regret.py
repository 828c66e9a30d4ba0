"""The two tables of ``planner validate`` agree on whether there is a pick to regret."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
OWN = Path(__file__).parent.parent / "accuracy" / "published_steps.csv"


@pytest.mark.parametrize("layouts", [2, 3])
def test_layouts_that_are_equally_fast_leave_nothing_to_regret(
    planner: Planner, tmp_path: Path, layouts: int
) -> None:
    head, row = OWN.read_text(encoding="utf-8").splitlines()[:2]
    assert ",4,4,full,1.42," in row
    # micro-batches of 4, 2 and 1, measured 0.7 and 1.4 % apart: no pair differs by 2 %
    rows = [
        row.replace("k-22b-full", f"k{i}").replace(",4,4,full,1.42,", f",{size},4,full,{step},")
        for i, (size, step) in enumerate([(4, 1.42), (2, 1.43), (1, 1.44)][:layouts])
    ]
    table = tmp_path / "measured.csv"
    table.write_text("\n".join([head, *rows]), encoding="utf-8")

    ran = planner("validate", str(table))
    (source,) = json.loads(planner("validate", str(table), "--json").out)["sources"]

    assert ran.code == 0, ran.err
    (group,) = [line for line in ran.out.splitlines() if "gpt-22b" in line and " 0 " in line]
    assert group.split()[-5:] == [str(layouts), "0", "-", "-", "-"]
    assert (source["pairs"], source["regret_share"]) == (0, None)
