"""A cluster whose own number of GPUs is awkward: 1,001 in thirteen racks of 72 and one of 65."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
GENERIC = Path(__file__).parents[2] / "topologies" / "catalogue" / "generic.yaml"


def _placed(planner: Planner, folder: Path, *degrees: str) -> Ran:
    file = folder / "awkward.yaml"
    filed = GENERIC.read_text(encoding="utf-8")
    filed = filed.replace("gpus: 1024", "gpus: 1001", 1).replace("size: 8\n", "size: 72\n", 1)
    file.write_text(filed, encoding="utf-8")
    return planner(
        "place", "--cluster", str(file), "--model", "llama-3.1-8b", *degrees, "--tp", "1",
        "--ignore-memory", "--time-limit", "5", "--json",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("degrees", "gpus"),
    [
        (("--pp", "1", "--dp", "1001"), 1001),  # 7 x 11 x 13
        (("--pp", "11"), 1001),
        (("--pp", "8"), 992),  # the largest multiple of 16, as without degrees
        (("--pp", "3"), 960),  # of 16 and 3, with 41 idle
        (("--dp", "111"), 999),  # 16 x 111 are too many
    ],
)
def test_the_given_degrees_say_how_many_of_the_gpus_are_taken(
    planner: Planner, tmp_path: Path, degrees: tuple[str, ...], gpus: int
) -> None:
    ran = _placed(planner, tmp_path, *degrees)

    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert document["inputs"]["gpus"] == gpus
    assert len(document["placement"]["rank_to_gpu"]) == gpus
    assert [one["capacity"] for one in document["placement"]["domains"]] == [72] * 13 + [65]


def test_what_a_free_list_leaves_is_not_called_asked_for(planner: Planner, tmp_path: Path) -> None:
    free = tmp_path / "free.txt"
    free.write_text("sn[00-03].board00:0-5", encoding="utf-8")

    ran = planner(
        "place", "--supernode", "8", "--gpus", "64", "--free", str(free), "--model",
        "llama-3.1-8b", "--tp", "16", "--dp", "2", "--ignore-memory",
    )  # fmt: skip

    assert ran.code == 2
    assert f"32 does not divide the 24 GPUs that {free} leaves free" in ran.err


def test_degrees_that_would_leave_much_idle_are_refused_with_the_most_they_divide(
    planner: Planner, tmp_path: Path
) -> None:
    ran = _placed(planner, tmp_path, "--dp", "700")

    assert ran.code == 2
    assert "= 700 does not divide the 992 GPUs of generic" in ran.err
    assert "--gpus N takes another number, such as 700" in ran.err
