"""Runs on a chip that only a user's cluster file describes: calibrated, validated, planned."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.steptime.rates import Efficiency
from planner.steptime.runs import batches, predicted_s
from planner.steptime.uncertainty import few_rows_spread
from topologies.cluster_chip import chip_of
from topologies.fabric_catalogue import load_cluster
from topologies.own_efficiency import read_own_fits
from topologies.steps_table import steps_from_text

Planner = Callable[..., Any]

CLUSTER = """\
name: ours
about: 64 chips, 16 to a box
source: the data sheet of its maker
accelerator:
  name: Nova-1
  peak: {bf16: 1500 TFLOP/s, fp8: 3000 TFLOP/s}
  memory: 128 GiB
  memory_rate: 4 TB/s
  power: 900 W
  efficiency: {bf16: 0.7, fp8: 0.65, memory: 0.85}
gpus: 64
supernode: {size: 16, kind: switched, rate: 600 GB/s, latency: 3 us, links: 12, switches: 4}
nic:
  {rate: 400 Gb/s, in_flight: 8, transaction: 512 KiB, turnaround: 20 us, pcie: 63 GB/s,
   startup: 2.35 us}
network:
  kind: rail_optimised
  rails: 16
  leaf: {gpus: 32, uplinks: 32, uplink_rate: 400 Gb/s, radix: 64, latency: 0.225 us}
  spine: {radix: 64, latency: 0.45 us}
"""
SHORT = """\
accelerator:
  name: Nova-1
  peak: {bf16: 1500 TFLOP/s, fp8: 3000 TFLOP/s}
  memory: 128 GiB
  memory_rate: 4 TB/s
supernode: {size: 16, rate: 600 GB/s}
nic: {rate: 400 Gb/s}
"""
EFFICIENCY = re.compile(r"  efficiency: .*\n")
HEADER = (
    "id,model,layers,hidden,heads,kv_heads,ffn,vocab,seq,gpu,n_gpus,tp,pp,dp,sp,micro_batch,"
    "global_batch,precision,gated_mlp,measured_step_s"
)
SHAPES = ("8b,32,4096,32,8,14336,128256,4096", "70b,80,8192,64,8,28672,128256,4096")
LAYOUTS = (
    (0, 16, 1, 1, 16, 1, 128), (0, 16, 2, 1, 8, 2, 128), (0, 64, 1, 1, 64, 1, 512),
    (0, 64, 4, 2, 8, 2, 512), (1, 64, 8, 2, 4, 1, 128), (1, 64, 8, 4, 2, 1, 128),
    (1, 64, 4, 4, 4, 1, 128),
)  # fmt: skip
TRUE = Efficiency(
    gemm_share={"bf16": 0.5}, attention_share={"fused": 0.3}, memory_share={"fused": 0.5},
    inner_share=0.75, outer_share=0.65, host_s={"fused": 20e-6}, step_s=0.03,
)  # fmt: skip


def rows_of(steps_s: Sequence[float]) -> str:
    lines = [HEADER]
    for number, (layout, one_s) in enumerate(zip(LAYOUTS, steps_s, strict=True)):
        shape, gpus, tp, pp, dp, micro, batch = layout
        lines.append(
            f"r{number},{SHAPES[shape]},nova_1,{gpus},{tp},{pp},{dp},{int(tp > 1)},{micro},"
            f"{batch},bf16,1,{one_s:.5g}"
        )
    return "\n".join(lines) + "\n"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "ours.yaml"
    path.write_text(CLUSTER, encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path: Path, cluster: Path) -> Path:
    """Seven steps that a chip of half its peak would take, 2 % of noise about them."""
    chip = chip_of(load_cluster(cluster))
    runs = steps_from_text(rows_of([1000.0] * len(LAYOUTS)), "made.csv", chip).runs
    steps_s = predicted_s(batches(runs), {"Nova-1": TRUE}, len(runs))
    noise = np.exp(np.random.default_rng(3).normal(0.0, 0.02, len(runs)))
    path = tmp_path / "mine.csv"
    path.write_text(rows_of(list(steps_s * noise)), encoding="utf-8")
    return path


def test_without_its_cluster_the_reason_names_the_option(planner: Planner, table: Path) -> None:
    ran = planner("calibrate", str(table))

    assert ran.code == 2
    told = " ".join(ran.err.split())
    assert "gpu='nova_1' is not in the catalogue" in told
    assert "--cluster" in told


def test_seven_runs_on_a_chip_of_the_cluster_file_are_fitted_and_predict_the_eighth(
    planner: Planner, table: Path, cluster: Path, tmp_path: Path
) -> None:
    fit = tmp_path / "fit.yaml"

    ran = planner("calibrate", str(table), "--cluster", str(cluster), "--out", str(fit))

    assert ran.code == 0, ran.err
    assert "Nova-1" in ran.out
    assert "the domain of Nova-1" in ran.out
    validated = planner(
        "validate", str(table), "--cluster", str(cluster), "--efficiency", str(fit), "--json"
    )
    document = json.loads(validated.out)
    assert document["sources"][0]["mape_share"] < 0.03
    assert document["inputs"]["cluster"] == str(cluster)
    eighth = ("step", "--cluster", str(cluster), "--model", "llama-3.1-70b", "--gpus", "64",
              "--tp", "8", "--pp", "1", "--micro-batch", "1", "--global-batch", "128",
              "--seq", "4096", "--recompute", "none", "--dp", "8", "--cp", "1", "--vpp", "1",
              "--zero", "1", "--json")  # fmt: skip
    default_s = json.loads(planner(*eighth).out)["step"]["total_s"]
    fitted_s = json.loads(planner(*eighth, "--efficiency", str(fit)).out)["step"]["total_s"]
    assert fitted_s / default_s == pytest.approx(0.616 / 0.5, rel=0.08)  # GEMMs are most of it


def test_a_fit_hangs_on_no_guess_of_the_cluster_file(
    planner: Planner, table: Path, tmp_path: Path
) -> None:
    guesses = "  efficiency: {bf16: 0.3, fp8: 0.9, memory: 0.4, source: ours}\n"
    cluster = tmp_path / "guessed.yaml"
    found = []
    for file in (CLUSTER, EFFICIENCY.sub(guesses, CLUSTER), EFFICIENCY.sub("", CLUSTER), SHORT):
        cluster.write_text(file, encoding="utf-8")
        ran = planner("calibrate", str(table), "--cluster", str(cluster), "--all", "--json")
        assert ran.code == 0, ran.err
        found.append(json.loads(ran.out)["efficiencies"]["Nova-1"])

    # 0.5 made the steps, and products are most of them; the NIC's 0.65 no row tells
    assert found[0]["gemm_share"]["bf16"] == pytest.approx(0.5, rel=0.02)
    assert found[0]["outer_share"] == pytest.approx(0.7, rel=0.01)
    for other in found[1:]:
        for name in ("gemm_share", "attention_share", "memory_share", "host_s"):
            assert other[name] == pytest.approx(found[0][name], rel=1e-6)
        for name in ("inner_share", "outer_share", "step_s", "spread"):
            assert other[name] == pytest.approx(found[0][name], rel=1e-6)


def test_what_the_runs_do_not_tell_is_said_with_its_value_and_source(
    planner: Planner, table: Path, cluster: Path, tmp_path: Path
) -> None:
    fit = tmp_path / "fit.yaml"

    ran = planner(
        "calibrate", str(table), "--cluster", str(cluster), "--all", "--out", str(fit), "--json"
    )

    told = {one["name"]: one["because"] for one in json.loads(ran.out)["assumed"]}
    assert "Nova-1 gemm.bf16" not in told
    assert told["Nova-1 outer"].startswith("69.9 %: the rows tell 1 % of it")
    assert told["Nova-1 outer"].endswith("the 70 % usual of NICs")
    stepped = planner("step", "--cluster", str(cluster), "--model", "llama-3.1-8b", "--gpus", "16",
                      "--tp", "1", "--efficiency", str(fit))  # fmt: skip
    assert "which tell little of attention.fused, memory.fused, host.fused, inner, outer" in (
        " ".join(stepped.out.split())
    )


def test_a_file_of_the_short_form_is_no_cluster_to_place_on(
    planner: Planner, tmp_path: Path
) -> None:
    short = tmp_path / "short.yaml"
    short.write_text(SHORT, encoding="utf-8")

    ran = planner("step", "--cluster", str(short))

    assert ran.code == 2
    (said,) = ran.err.splitlines()
    assert "is an accelerator's data sheet without a network" in said
    assert f"planner calibrate RUNS.csv --cluster {short} takes it" in said


def test_faults_of_a_short_file_are_all_named_with_their_lines(
    planner: Planner, table: Path, tmp_path: Path
) -> None:
    short = tmp_path / "short.yaml"
    wrong = SHORT.replace("  memory_rate: 4 TB/s\n", "").replace("16, rate", "0, speed")
    short.write_text(wrong, encoding="utf-8")

    ran = planner("calibrate", str(table), "--cluster", str(short))

    assert ran.code == 2
    assert "accelerator: missing key 'memory_rate'" in ran.err
    assert "unknown key 'speed'" in ran.err
    assert f"{short}:5:19" in ran.err


def test_a_row_is_timed_on_the_links_of_the_cluster_but_for_what_it_states(cluster: Path) -> None:
    chip = chip_of(load_cluster(cluster))
    text = rows_of([1000.0] * len(LAYOUTS))
    stated = text.replace(HEADER, f"{HEADER},scaleup_domain,inter_bw_GBps_per_gpu", 1)
    lines = stated.splitlines()
    text_stated = "\n".join([lines[0], *(f"{line},8,25" for line in lines[1:])])

    run = steps_from_text(text, "t.csv", chip).runs[0]
    other = steps_from_text(text_stated, "t.csv", chip).runs[0]

    assert (run.chip, run.supernode, other.supernode) == ("Nova-1", 16, 8)
    assert run.links.inside.bytes_per_s == 600e9
    assert (run.links.outer[0].bytes_per_s, other.links.outer[0].bytes_per_s) == (50e9, 25e9)


def test_a_chip_of_the_catalogue_in_a_cluster_file_keeps_its_fit() -> None:
    chip = chip_of(load_cluster("hgx-h200"))

    assert (chip.name, chip.fitted_as, chip.domain_gpus) == ("H200-SXM", "H100-SXM", 8)
    assert chip.efficiency is not None
    assert replace(chip, mesh_gpus=0) == chip
    assert chip_of(load_cluster("mi300x")).mesh_gpus == 8


def test_the_catalogue_is_not_written_with_a_chip_of_a_cluster_file(
    planner: Planner, table: Path, cluster: Path, tmp_path: Path
) -> None:
    ran = planner("calibrate", str(table), "--cluster", str(cluster), "--catalogue", str(tmp_path))

    assert ran.code == 2
    assert "--cluster" in ran.err


def test_a_fit_in_eight_bits_alone_times_the_vocabulary_alike_whatever_the_file_guesses(
    planner: Planner, table: Path, tmp_path: Path
) -> None:
    narrow, fit = tmp_path / "narrow.csv", tmp_path / "fit.yaml"
    narrow.write_text(table.read_text(encoding="utf-8").replace(",bf16,", ",fp8,"), "utf-8")
    guesses = ("", "  efficiency: {bf16: 0.3, fp8: 0.9, memory: 0.4}\n")
    steps_s = []
    for guess in guesses:
        cluster = tmp_path / "guessed.yaml"
        cluster.write_text(EFFICIENCY.sub(guess, CLUSTER), encoding="utf-8")
        calibrated = planner(
            "calibrate", str(narrow), "--cluster", str(cluster), "--all", "--out", str(fit)
        )
        assert calibrated.code == 0, calibrated.err
        job = ("step", "--cluster", str(cluster), "--efficiency", str(fit), "--gpus", "16",
               "--model", "llama-3.1-8b", "--tp", "1", "--pp", "1", "--dp", "16", "--cp", "1",
               "--vpp", "1", "--micro-batch", "1", "--zero", "1", "--json")  # fmt: skip
        ran = planner(*job, "--precision", "fp8")
        assert ran.code == 0, ran.err
        steps_s.append(json.loads(ran.out)["step"]["total_s"])
        refused = planner(*job, "--precision", "bf16")
        assert refused.code == 2
        assert "has Nova-1 in fp8, not in bf16" in refused.err

    assert steps_s[0] == pytest.approx(steps_s[1], rel=1e-9)


def test_a_step_timed_with_a_fit_of_few_runs_says_so_under_its_verdict(
    planner: Planner, table: Path, cluster: Path, tmp_path: Path
) -> None:
    fit = tmp_path / "fit.yaml"
    fitted = planner("calibrate", str(table), "--all", "--cluster", str(cluster), "--out", str(fit))
    assert fitted.code == 0, fitted.err
    assert "few rows (7; 10 would do)" in fitted.out

    ran = planner("step", "--cluster", str(cluster), "--efficiency", str(fit), "--gpus", "16",
                  "--model", "llama-3.1-8b", "--tp", "1", "--pp", "1", "--dp", "16",
                  "--global-batch", "128", "--micro-batch", "1")  # fmt: skip

    assert ran.code == 0, ran.err
    above = "".join(ran.out.split("Critical path")[0].split())  # a long path is cut by lines
    assert f"Timedwith{fit},afitoffewrows(7;10woulddo)" in above


def test_a_file_cannot_be_surer_of_a_step_than_its_rows_allow(
    planner: Planner, table: Path, cluster: Path, tmp_path: Path
) -> None:
    fit = tmp_path / "fit.yaml"
    planner("calibrate", str(table), "--all", "--cluster", str(cluster), "--out", str(fit))
    text = re.sub(r"spread: .*", "spread: 0.01", fit.read_text(encoding="utf-8"))
    fit.write_text(text, encoding="utf-8")

    own = read_own_fits(fit)

    assert own is not None
    assert own.by_chip["Nova-1"].spread == few_rows_spread(0.0, 7, told=0.0)


def test_a_run_whose_unit_slipped_is_told_and_does_not_make_the_fit_look_sure(
    planner: Planner, table: Path, cluster: Path
) -> None:
    lines = table.read_text(encoding="utf-8").splitlines()
    head, _, measured = lines[1].rpartition(",")
    table.write_text("\n".join([lines[0], f"{head},{1000 * float(measured):.5g}", *lines[2:]]))

    ran = planner("calibrate", str(table), "--cluster", str(cluster), "--json")

    assert ran.code == 0, ran.err
    (far,) = json.loads(ran.out)["far"]
    assert far["name"] == "r0"
    assert far["measured_s"] / far["predicted_s"] == pytest.approx(1000, rel=0.3)
