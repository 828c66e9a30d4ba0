"""The page on cluster files names every key that is read, and its examples run as printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.documents import document_from_text
from planner.errors import SpecError
from topologies.cluster_chip import cluster_chip
from topologies.fabric_catalogue import load_cluster
from topologies.fabric_reader import fabric_spec_from

PAGE = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"```yaml\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))
ODD = "{zzz: 1}"
MESH = "{kind: mesh, zzz: 1}"
SECTIONS = {
    "": "zzz: 1\n",
    "accelerator": f"accelerator: {{name: x, zzz: 1, peak: {ODD}, efficiency: {ODD}}}\n",
    "supernode": f"supernode: {{zzz: 1, board: {ODD}}}\n",
    "nic": f"nic: {ODD}\n",
    "dead": f"dead: {ODD}\n",
    "clos": f"network: {{kind: multi_plane, zzz: 1, leaf: {ODD}, spine: {ODD}, core: {ODD}}}\n",
    "mesh": f"network: {MESH}\n",
    "dragonfly": f"network: {{kind: dragonfly_plus, zzz: 1, leaf: {ODD}, spine: {ODD}}}\n",
}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_that_a_section_may_have_is_named(section: str) -> None:
    with pytest.raises(SpecError) as refused:
        fabric_spec_from(document_from_text(SECTIONS[section]), {})

    known = re.findall(r"known are (.*)", "\n".join(refused.value.faults))
    keys = {key for line in known for key in line.split(", ")}
    assert keys
    assert {key for key in keys if f"`{key}" not in PAGE} == set()


def written(folder: Path, name: str) -> str:
    path = folder / name
    path.write_text(BLOCKS[name], encoding="utf-8")
    return str(path)


def test_the_example_is_the_cluster_that_it_says(tmp_path: Path) -> None:
    cluster = load_cluster(written(tmp_path, "mine.yaml"))

    assert cluster.capacities("supernode") == (16, 15, *(16,) * 14)
    uplinks = [domain.uplink_bytes_per_s for domain in cluster.tier("supernode").domains]
    # the third has a dead NIC, and a GPU that is dead takes its own with it
    assert uplinks == [16 * 50e9, 15 * 50e9, 15 * 50e9, *(16 * 50e9,) * 13]
    assert cluster.accelerator.memory_bytes_per_s == 4e12


def test_the_chip_alone_is_that_of_the_whole_file(tmp_path: Path) -> None:
    whole = cluster_chip(written(tmp_path, "mine.yaml"))
    alone = cluster_chip(written(tmp_path, "chip.yaml"))

    assert (alone.nic_bytes_per_s, alone.domain_gpus) == (50e9, 16)
    assert alone.nic_bytes_per_s == whole.nic_bytes_per_s
    assert alone.accelerator.peak_flops_per_s == whole.accelerator.peak_flops_per_s
    assert alone.scale_up_bytes_per_s == whole.scale_up_bytes_per_s == 600e9


def test_the_runs_of_the_page_are_fitted_as_printed(
    planner: Callable[..., Any], tmp_path: Path
) -> None:
    runs = tmp_path / "mine.csv"
    runs.write_text(re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)[0], encoding="utf-8")
    fit = tmp_path / "fit.yaml"

    ran = planner(
        "calibrate", str(runs), "--cluster", written(tmp_path, "chip.yaml"), "--out", str(fit)
    )

    assert ran.code == 0, ran.err
    printed = re.findall(r"```\n(Nova-1\n.*?)```", PAGE, re.DOTALL)[0]
    assert printed in ran.out
    stepped = planner("step", "--cluster", written(tmp_path, "mine.yaml"), "--efficiency", str(fit),
                      "--gpus", "16", "--model", "llama-3.1-8b", "--tp", "1", "--pp", "1",
                      "--dp", "16", "--cp", "1", "--vpp", "1", "--micro-batch", "1", "--zero", "1",
                      "--recompute", "none", "--seq", "4096", "--global-batch", "128")  # fmt: skip
    assert stepped.code == 0, stepped.err
    assert "fitted on 3 measured steps" in " ".join(stepped.out.split())
