"""Where another plan wins when the network is varied: against curves and machines by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.plan_answers import FACTORS
from cli.report_html_flips import flips_of_network
from planner.errors import InputError
from tests.conftest import ROOT, Ran
from tests.report_plans import saved, small_plan, taking

Planner = Callable[..., Ran]
PROPERTIES = ("nic_rate", "nic_latency", "in_flight", "oversubscription")
LAYOUT = ("--gpus", "64", "--model", "llama-3.1-8b", "--tp", "2", "--pp", "2", "--cp", "2",
          "--zero", "1", "--micro-batch", "4", "--vpp", "8", "--global-batch", "64",
          "--ignore-memory")  # fmt: skip


def answering(total_s: float, **wire_s: float) -> dict[str, Any]:
    """Return a plan whose step is *total_s*, of which *wire_s* falls as 1 / property."""
    plan = small_plan()
    plan["inputs"]["fabric"]["nic"] = {"line_bytes_per_s": 50e9, "in_flight": 8}
    taking(plan, total_s)
    plan["answers"] = {
        "factors": list(FACTORS),
        "step_s": {
            name: [total_s - wire_s.get(name, 0.0) * (1 - 1 / f) for f in FACTORS]
            for name in PROPERTIES
        },
    }
    return plan


def flips(tmp_path: Path, *plans: dict[str, Any]) -> str:
    read = [saved(tmp_path, plan, f"{name}.json") for name, plan in zip("abc", plans, strict=False)]
    return flips_of_network(read, ["a", "b", "c"][: len(read)])


def test_the_flip_is_where_the_curves_cross(tmp_path: Path) -> None:
    # a: 2 s, nothing on the wire; b: 3 s, of which 2 s as 1 / rate: 1 + 2 / f is 2 s at f = 2.
    page = flips(tmp_path, answering(2.0), answering(3.0, nic_rate=2.0))

    found = re.search(r">NIC rate</td>.*?>([\d.]+) GB/s<.*?>x ([\d.]+)<.*?>a<.*?>b<", page)
    assert found
    assert float(found[2]) == pytest.approx(2.0, rel=0.01)
    assert float(found[1]) == pytest.approx(100, rel=0.01)
    assert "by: NIC latency, in-flight limit, oversubscription." in page


def test_below_and_above_are_both_looked_at_and_the_nearest_is_told(tmp_path: Path) -> None:
    # a falls as 0.5 + 1.5 / f: at f below 1 it is dearer than c, whose 2.5 s stay: f = 0.75.
    page = flips(tmp_path, answering(2.0, nic_rate=1.5), answering(9.0), answering(2.5))

    assert page.count(">NIC rate</td>") == 1
    assert float(re.findall(r">x ([\d.]+)<", page)[0]) == pytest.approx(0.75, rel=0.02)
    assert ">c</td>" in page


@pytest.mark.parametrize(("wire_s", "flipped"), [(0.2, True), (0.1, False)])
def test_a_limit_below_one_transaction_in_flight_is_not_looked_at(
    tmp_path: Path, wire_s: float, flipped: bool
) -> None:
    # a: 2 s, of which wire_s as 1 / limit, against 3 s: they cross at f = 1 / (1 + 1 / wire_s),
    # 1/6 or 1/11 of 8 in flight; 1/8 is one transaction.
    page = flips(tmp_path, answering(2.0, in_flight=wire_s), answering(3.0))

    assert (">in-flight limit</td>" in page) == flipped


def test_without_answers_of_all_that_fit_nothing_is_claimed(tmp_path: Path) -> None:
    assert flips(tmp_path, answering(2.0), small_plan()) == ""
    assert flips(tmp_path, answering(2.0)) == ""


def test_answers_that_are_none_are_refused(tmp_path: Path) -> None:
    short, still = answering(2.0), answering(2.0)
    short["answers"]["step_s"]["nic_rate"].pop()
    still["answers"]["factors"][0] = 1.0
    still["inputs"]["fabric"]["nic"] = {}

    for plan, said in ((short, "answers.step_s.nic_rate: expected 41"),
                       (still, "answers.factors: expected rising")):  # fmt: skip
        with pytest.raises(InputError) as caught:
            saved(tmp_path, plan)
        assert said in " ".join(caught.value.faults)
    assert "inputs.fabric.nic.in_flight: expected a number above 0" in " ".join(caught.value.faults)


def test_twice_the_rate_is_the_step_of_a_cluster_built_with_it(
    planner: Planner, tmp_path: Path
) -> None:
    text = (ROOT / "topologies" / "catalogue" / "hgx-h100.yaml").read_text(encoding="utf-8")
    doubled = text.replace("400 Gb/s", "800 Gb/s")
    doubled = doubled.replace("pcie: 63 GB/s", "pcie: 126 GB/s")  # all that a byte passes
    assert doubled.count("800 Gb/s") == text.count("400 Gb/s") > 1
    (tmp_path / "fast.yaml").write_text(doubled.replace("name: hgx-h100", "name: fast"))
    plans = []
    for cluster in ("hgx-h100", str(tmp_path / "fast.yaml")):
        ran = planner("place", "--cluster", cluster, *LAYOUT, "--json")
        assert ran.code == 0, ran.err
        plans.append(json.loads(ran.out))

    told = plans[0]["answers"]
    at = told["factors"].index(2.0)
    assert told["step_s"]["nic_rate"][told["factors"].index(1.0)] == plans[0]["step"]["total_s"]
    # Sharing is counted anew on the cluster that is built, and stays as it is in the answers.
    assert told["step_s"]["nic_rate"][at] == pytest.approx(plans[1]["step"]["total_s"], rel=5e-3)
    assert told["step_s"]["nic_rate"][at] < plans[0]["step"]["total_s"]
    assert told["step_s"]["oversubscription"][at] > plans[0]["step"]["total_s"]
