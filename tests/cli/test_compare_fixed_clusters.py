"""Money and sizes of clusters that cannot be built as small or as large as one asks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.compare_sizes import Goal, sizes_of
from cli.planner_inputs import Asked
from planner.errors import InputError
from planner.procure.price_file import read_prices
from tests.conftest import ROOT, Ran

Planner = Callable[..., Ran]
JOB = ("--model", "llama-3.1-8b", "--global-batch", "64", "--cp", "1", "--vpp", "1", "--tp", "2",
       "--micro-batch", "1", "--zero", "1", "--recompute", "selective")  # fmt: skip
PRICE = "{{price: {}, power: {} W, source: list, date: 2026-01-01}}"
PARTS = {"H100-SXM": (30000, 700), "server": (60000, 2000), "nic": (1500, 25),
         "scale_up_switch": (8000, 300), "leaf": (40000, 1500), "spine": (40000, 1500),
         "core": (40000, 1500), "nic-leaf": (800, 0), "leaf-spine": (1200, 0),
         "spine-core": (1200, 0)}  # fmt: skip


@pytest.fixture
def hurt(tmp_path: Path) -> str:
    """Return a cluster of 64 GPUs, two of them and a NIC dead: it cannot be built smaller."""
    text = (ROOT / "topologies" / "catalogue" / "hgx-h100.yaml").read_text(encoding="utf-8")
    text = text.replace("name: hgx-h100", "name: hurt").replace("gpus: 1024", "gpus: 64")
    path = tmp_path / "hurt.yaml"
    path.write_text(f"{text.rstrip()}\ndead: {{gpus: [3, 17], nics: [40]}}\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.yaml"
    items = "".join(f"  {name}: {PRICE.format(*two)}\n" for name, two in PARTS.items())
    path.write_text(
        "currency: EUR\nyears: 4\noverhead: 1.25\n"
        f"kwh: {{price: 0.1, source: contract, date: 2026-01-01}}\nitems:\n{items}"
    )
    return path


def test_money_of_a_small_cluster_is_that_of_a_pocket_calculator(
    planner: Planner, prices: Path
) -> None:
    ran = planner("compare", "--supernode", "8", "--gpus", "16", *JOB, "--prices", str(prices),
                  "--tokens", "1T", "--json")  # fmt: skip

    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    (one,), bill = document["ranked"], document["bills"]["generic-sn8"]
    parts = 16 * 30_000 + 2 * 60_000 + 16 * 1_500 + 8 * 8_000 + 40_000 + 16 * 800
    power_w = 1.25 * (16 * 700 + 2 * 2_000 + 16 * 25 + 8 * 300 + 1_500)
    assert bill["total"] == parts
    assert one["run"]["power_w"] == pytest.approx(power_w)
    days = 1e12 / one["step"]["tokens_per_s"] / 86_400
    assert one["run"]["days"] == pytest.approx(days)
    assert one["run"]["energy_j"] == pytest.approx(power_w * days * 86_400)
    bought, kwh = parts * days / (4 * 365), power_w / 1000 * days * 24
    assert one["run"]["cost"] == pytest.approx(bought + 0.1 * kwh)


def test_a_cluster_that_is_counted_whole_is_said_to_be(planner: Planner, hurt: str) -> None:
    ran = planner("compare", "--cluster", hurt, *JOB, "--gpus", "48")

    assert ran.code == 0, ran.err
    said = " ".join(ran.out.split())
    assert "hurt is counted whole, with 62 GPUs, of which the job takes 48" in said


def test_a_cluster_that_cannot_be_built_smaller_is_not_sized_by_money(
    planner: Planner, hurt: str, prices: Path
) -> None:
    ran = planner("compare", "--cluster", hurt, *JOB, "--equal", "money", "--budget", "3M",
                  "--prices", str(prices))  # fmt: skip

    assert ran.code == 2
    assert "hurt: cannot be built with 8 GPUs, only with its 62" in ran.err


def test_a_run_is_sized_below_where_a_cluster_ends(planner: Planner, hurt: str) -> None:
    out = Path(hurt).with_suffix(".json")
    ran = planner("compare", "--cluster", hurt, *JOB, "--days", "60", "--tokens", "1T", "--out",
                  str(out))  # fmt: skip

    assert ran.code == 0, ran.err
    head = " ".join(ran.out.split("Ranked")[0].split())
    assert "in multiples of the GPUs of the largest supernode: hurt" in head
    assert "whole supernodes" not in head
    (one,) = json.loads(out.read_text())["ranked"]
    assert one["gpus"] <= 56
    assert one["run"]["days"] <= 60


def test_a_cluster_file_that_is_wrong_at_any_size_is_refused(tmp_path: Path, prices: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: bad\n")
    goal = Goal(equal="money", budget="1M", prices=read_prices(prices))

    with pytest.raises(InputError):
        sizes_of([Asked(cluster=str(bad), gpus=64, model="llama-3.1-8b")], goal)
