"""Plans and allocations with anything done to them are read or refused by name."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cli.export_command import read_host_names
from cli.inputs_document import inputs_document
from cli.plan_cluster import read_planned
from cli.plan_seats import seats_of_plan
from cli.planner_inputs import Asked, read_inputs
from planner.errors import InputError, PlannerError
from tests.hostile import encoded, restructured
from topologies.fabric_catalogue import load_cluster
from topologies.fabric_groups import machines_by_function
from topologies.fabric_import import decoded, import_fabric
from topologies.free_list import read_free_list
from topologies.import_allocation import read_allocation
from topologies.layout_reader import read_layout_run
from topologies.model_reader import read_model

ODD: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1.5, "", "x", "8", [], {}, [1], [[]], {"a": 1}, "../../etc/passwd",
    "hgx-h100,rates-from=x", "n\x00", "\u202e",
)  # fmt: skip
ALLOCATIONS = (
    "rank,host,slot\n0,n1,0\n1,n2,1\n",
    '{"ranks": [{"rank": 0, "host": "n1", "slot": 0}, {"rank": 1, "host": "n2"}]}',
    "rank 0=n1 slot=0\nrank 1=n2 slot=1\n",
    "n1 slots=2\nn2:2\nn3*2\n",
    "SLURM_JOB_NODELIST=n[1-2],switch{s1},switchwith{n3}\n",
)
TREE = "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[3-4]\nSwitchName=top Switches=s[1-2]\n"


@pytest.fixture(scope="module")
def plan() -> dict[str, Any]:
    degrees = {"tp": 8, "dp": 2, "global_batch": 8, "seq": 2048}
    asked = Asked(supernode=8, gpus=16, model="llama-3.1-8b", layout=degrees, ignore_memory=True)
    inputs = json.loads(json.dumps(inputs_document(read_inputs(asked)), default=dict))
    inputs["fabric"]["machines"] = [{"hosts": "n[1-2]", "gpus": 8}]
    return {"inputs": inputs, "placement": {"rank_to_gpu": list(range(16))}}


def spots(value: Any) -> list[tuple[Any, Any]]:
    """Return every place of a document: its holder, and the key or index in it."""
    found: list[tuple[Any, Any]] = []
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list):
            found += spots(value[key])
    return found


def tried(plan: dict[str, Any], draw: random.Random, path: Path) -> None:
    changed = json.loads(json.dumps(plan))
    for _ in range(draw.randrange(1, 3)):
        holder, key = draw.choice(spots(changed))
        if draw.random() < 0.3 and isinstance(holder, dict):
            del holder[key]
        else:
            holder[key] = draw.choice(ODD)
    path.write_text(json.dumps(changed), encoding="utf-8")
    started = time.process_time()
    with suppress(PlannerError):  # which names what is wrong; anything else fails the test
        read_planned(path)
    with suppress(PlannerError):
        seats_of_plan(path)
    assert time.process_time() - started < 2


def test_the_plan_itself_is_read(plan: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan), encoding="utf-8")

    assert read_planned(path).rank_to_gpu == tuple(range(16))


def test_changed_plans_are_read_or_refused_by_name(plan: dict[str, Any], tmp_path: Path) -> None:
    draw = random.Random(3)
    for _ in range(60):
        tried(plan, draw, tmp_path / "plan.json")


@pytest.mark.nightly
def test_two_thousand_changed_plans_are_read_or_refused_by_name(
    plan: dict[str, Any], tmp_path: Path
) -> None:
    draw = random.Random(5)
    for _ in range(2000):
        tried(plan, draw, tmp_path / "plan.json")


def lists_tried(text: str, rounds: int, folder: Path) -> None:
    """Read changed forms of *text* as an allocation, a free list and a file of names."""
    (folder / "topology.conf").write_text(TREE, encoding="utf-8")
    fabric = load_cluster(f"{folder / 'topology.conf'},gpus-per-node=2")
    named = machines_by_function(fabric)
    draw, path = random.Random(9), folder / "list"
    for _ in range(rounds):
        at = draw.randrange(len(text))
        odd = draw.choice(["9" * 30, "[", "{", "}", "n[1-99999999]", ",", "\x00", "slot", "=", ""])
        changed = text[:at] + odd + text[at + draw.randrange(3) :]
        if draw.random() < 0.5:
            changed = restructured(changed, draw)
        path.write_bytes(encoded(changed, draw))
        started = time.process_time()
        with suppress(PlannerError):
            text_of = decoded(path.read_bytes(), "f")
            assert read_allocation(text_of, "f", named).hosts
        with suppress(PlannerError):
            assert read_free_list(path, fabric).gpus
        with suppress(PlannerError):
            read_host_names(path)
        assert time.process_time() - started < 2


@pytest.mark.parametrize("text", ALLOCATIONS)
def test_changed_lists_are_read_or_refused_by_name(text: str, tmp_path: Path) -> None:
    lists_tried(text, 100, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("text", ALLOCATIONS)
def test_two_thousand_changed_lists_are_read_or_refused_by_name(text: str, tmp_path: Path) -> None:
    lists_tried(text, 2000, tmp_path)


LONG: dict[str, Callable[[], str]] = {
    "one a line": lambda: "a\n" * 8_000_000,
    "lists": lambda: "n[1-131072]\n" * 1000,
    "terms": lambda: ",".join(f"n{i}" for i in range(200_000)),
    "brackets": lambda: ",".join(f"n[{i}]" for i in range(200_000)),
    "slots": lambda: "".join(f"n{i} slots=8\n" for i in range(200_000)),
    "ranks": lambda: "".join(f"rank {i}=n{i} slot=0\n" for i in range(200_000)),
    "map": lambda: "rank,host,slot\n" + "".join(f"{i},n{i},0\n" for i in range(200_000)),
    "commas": lambda: "," * 15_000_000,
    "blank": lambda: "\n" * 15_000_000,
    "open": lambda: "[" * 15_000_000,
}


@pytest.mark.parametrize("kind", LONG)
def test_long_lists_are_refused_soon(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text(LONG[kind](), encoding="utf-8")
    fabric = load_cluster("generic", supernode=8, gpus=64)

    for read in (
        lambda: read_free_list(path, fabric),
        lambda: read_host_names(path),
        lambda: read_allocation(decoded(path.read_bytes(), "f"), "f", None),
    ):
        started = time.process_time()
        with suppress(PlannerError):
            read()
        assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "read",
    [import_fabric, read_model, read_layout_run, read_planned, seats_of_plan, read_host_names],
    ids=lambda read: read.__name__,
)
def test_a_file_of_100_mb_is_refused_unread(read: Any, tmp_path: Path) -> None:
    for name, begins in (("a.json", b'{"nodes": "'), ("a.sh", b"--num-layers "), ("a", b"n[")):
        path = tmp_path / name
        with path.open("wb") as file:
            file.write(begins)
            file.truncate(10**8)  # one line, that takes no room on the disk

        started = time.process_time()
        with pytest.raises(InputError, match=r"larger than (16|64) MiB"):
            read(path)
        assert time.process_time() - started < 2
