"""Figures that no hardware has are refused where they stand, with what would be right."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from planner.documents import document_from_text
from planner.errors import SpecError
from topologies.efficiency_catalogue import fits_in
from topologies.fabric_catalogue import load_cluster
from topologies.fabric_reader import fabric_spec_from
from topologies.own_efficiency import planned_fits
from topologies.plausible import CELLS
from topologies.steps_table import Skipped, steps_from_text

CLUSTER = """\
name: ours
accelerator:
  name: Nova-1
  peak: {bf16: 1500 TFLOP/s}
  memory: 128 GiB
  memory_rate: 4 TB/s
  scale_up: 601 GB/s
  power: 900 W
  efficiency: {bf16: 0.71, memory: 0.85}
gpus: 64
supernode:
  {size: 16, kind: switched, rate: 600 GB/s, latency: 3 us, links: 12, switches: 4,
   board: {gpus: 8, rate: 602 GB/s, latency: 2 us, switches: 3}}
nic:
  {rate: 400 Gb/s, in_flight: 8, transaction: 512 KiB, turnaround: 20 us, pcie: 63 GB/s,
   startup: 2.35 us}
network:
  kind: multi_plane
  planes: 1
  rails: 8
  leaf: {gpus: 32, uplinks: 31, uplink_rate: 401 Gb/s, radix: 64, latency: 0.225 us, buffer: 9 MiB}
  spine: {radix: 63, latency: 0.45 us, switches: 15}
"""
SLIPS = {
    "accelerator.peak.bf16": ("1500 TFLOP/s", "1500 EFLOP/s"),
    "accelerator.memory": ("128 GiB", "128 B"),
    "accelerator.memory_rate": ("4 TB/s", "1e-300 B/s"),
    "accelerator.scale_up": ("601 GB/s", "601 PB/s"),
    "accelerator.power": ("900 W", "900 MW"),
    "accelerator.efficiency.bf16": ("0.71", "1e-9"),
    "accelerator.efficiency.memory": ("0.85", "1e-300"),
    "supernode.rate": ("rate: 600 GB/s", "rate: 600 B/s"),
    "supernode.latency": ("3 us", "3 h"),
    "supernode.links": ("links: 12", "links: 12000000"),
    "supernode.switches": ("switches: 4,", "switches: 40000000,"),
    "supernode.board.rate": ("602 GB/s", "602 EB/s"),
    "supernode.board.latency": ("latency: 2 us", "latency: 1e-300 s"),
    "supernode.board.switches": ("switches: 3}", "switches: 30000000}"),
    "nic.rate": ("400 Gb/s", "400 b/s"),
    "nic.in_flight": ("in_flight: 8", "in_flight: 800000000"),
    "nic.transaction": ("512 KiB", "512 TiB"),
    "nic.turnaround": ("20 us", "1e300 s"),
    "nic.pcie": ("63 GB/s", "63 EB/s"),
    "nic.startup": ("2.35 us", "2.35e-30 us"),
    "network.planes": ("planes: 1", "planes: 1000000"),
    "network.leaf.uplinks": ("uplinks: 31", "uplinks: 31000000"),
    "network.leaf.uplink_rate": ("401 Gb/s", "401 Eb/s"),
    "network.leaf.radix": ("radix: 64", "radix: 64000000"),
    "network.leaf.latency": ("0.225 us", "0.225 h"),
    "network.leaf.buffer": ("9 MiB", "9 B"),
    "network.spine.radix": ("radix: 63", "radix: 63000000"),
    "network.spine.latency": ("0.45 us", "0.45 min"),
    "network.spine.switches": ("switches: 15", "switches: 15000000"),
}  # fmt: skip
"""Figure to its text in the file, and to a slip of its unit or exponent."""
FIT = """\
Nova-1:
  gemm: {bf16: 0.51}
  attention: {fused: 0.3}
  memory: {fused: 0.52}
  inner: 0.78
  outer: 0.69
  host: {fused: 17us}
  step: 30ms
  spread: 0.12
  rows: 5
  source: ours
"""
FIT_SLIPS = {
    "gemm.bf16": ("0.51", "1e-300"), "attention.fused": ("0.3", "1e-5"),
    "memory.fused": ("0.52", "1e-7"), "inner": ("0.78", "1e-4"), "outer": ("0.69", "1e-4"),
    "host.fused": ("17us", "17min"), "step": ("30ms", "30h"), "spread": ("0.12", "1e-300"),
}  # fmt: skip
HEADER = "id,model,layers,hidden,heads,vocab,seq,gpu,n_gpus,tp,pp,dp,global_batch,measured_step_s"


def test_the_file_that_slips_are_put_into_is_as_it_should_be() -> None:
    assert fabric_spec_from(document_from_text(CLUSTER), {}).job_gpus == 64
    assert set(fits_in(document_from_text(FIT))) == {"Nova-1"}


@pytest.mark.parametrize("figure", SLIPS)
def test_a_slip_in_a_cluster_file_is_refused_at_its_place(figure: str) -> None:
    right, slip = SLIPS[figure]
    assert CLUSTER.count(right) == 1
    text = CLUSTER.replace(right, slip)

    with pytest.raises(SpecError) as refused:
        fabric_spec_from(document_from_text(text, name="ours.yaml"), {})

    (fault,) = refused.value.faults
    line = next(n for n, row in enumerate(text.splitlines(), start=1) if slip in row)
    assert fault.startswith(f"ours.yaml:{line}:")
    assert f" {figure}: " in fault
    assert " cannot be: expected " in fault


def test_a_memory_that_starves_its_chip_is_refused_though_either_figure_is_possible() -> None:
    text = CLUSTER.replace("4 TB/s", "4 GB/s")

    with pytest.raises(SpecError, match=r":6:16: accelerator.memory_rate: for a peak of 1.5 PFLOP"):
        fabric_spec_from(document_from_text(text, name="ours.yaml"), {})


@pytest.mark.parametrize("figure", FIT_SLIPS)
def test_a_slip_in_a_fit_is_refused_at_its_place(figure: str) -> None:
    right, slip = FIT_SLIPS[figure]

    with pytest.raises(SpecError) as refused:
        fits_in(document_from_text(FIT.replace(right, slip, 1), name="fit.yaml"))

    (fault,) = refused.value.faults
    assert f" Nova-1.{figure}: " in fault
    assert " cannot be: expected " in fault


def skipped(**cells: str) -> str:
    """Return why a row of an 8B model on 16 H100 is skipped with some of its *cells* changed."""
    values = "a,8b,32,4096,32,128256,4096,H100,16,1,1,16,128,3.05"
    usual = dict(zip(HEADER.split(","), values.split(","), strict=True))
    row = usual | cells
    (found,) = steps_from_text(f"{','.join(row)}\n{','.join(row.values())}\n", "runs.csv").rows
    return found.because if isinstance(found, Skipped) else ""


def test_a_plain_row_is_taken() -> None:
    assert skipped() == ""


@pytest.mark.parametrize("column", CELLS)
def test_a_run_of_no_machine_is_skipped_with_its_column(column: str) -> None:
    because = skipped(**{column: "1e14"})

    assert f"{column}=1e14: " in because
    assert "cannot be: expected " in because


def test_a_step_in_which_gpus_beat_their_peak_is_skipped() -> None:
    """6 x 6.97 GFLOP a token, 3.2 of attention, x 524,288 over 16 x 989 TFLOP/s: 1.49 s."""
    assert "less than the 1.49 s" in skipped(measured_step_s="0.00305")
    assert skipped(measured_step_s="1.8") == ""


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("spread", 1e-300, "spread: 1e-300 cannot be"),
        ("step_s", 1e8, "step: 100000000 s cannot be"),
        ("host_s", {"fused": 1e-300}, "host: 1e-300 s cannot be"),
        ("gemm_share", {"bf16": 1e-9}, "share: 1e-07 % cannot be"),
    ],
)
def test_a_fit_that_a_plan_keeps_is_held_to_the_same(field: str, value: object, said: str) -> None:
    fit = fits_in(document_from_text(FIT))["Nova-1"]
    told = {
        "efficiency_file": {"file": "fit.yaml", "sha256": "0" * 64},
        "fabric": {"accelerator": {"name": "Nova-1"}},
        "efficiency": asdict(fit) | {field: value},
    }

    with pytest.raises(SpecError) as refused:
        planned_fits(told, "plan.json")

    assert f"plan.json: inputs.efficiency.{said}" in refused.value.faults[0]
    assert planned_fits(told | {"efficiency": asdict(fit)}, "plan.json") is not None


def test_rates_that_are_lent_to_a_cluster_of_another_tool_are_held_to_the_same(
    tmp_path: Path,
) -> None:
    links = tmp_path / "links.yaml"
    links.write_text("nic: 1e-300 B/s\nuplinks: [50 GB/s, 50 EB/s]\n", encoding="utf-8")
    cluster = tmp_path / "topology.conf"
    cluster.write_text("SwitchName=s0 Nodes=n[0-3]\n", encoding="utf-8")

    with pytest.raises(SpecError) as refused:
        load_cluster(f"{cluster},gpus-per-node=8,links={links}")

    first, second = refused.value.faults
    assert f"{links}:1:6: nic: 1e-300 B/s cannot be" in first
    assert f"{links}:2:20: uplinks[1]: 50 EB/s cannot be" in second
