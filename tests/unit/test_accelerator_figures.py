"""Accelerators that a file tells by figures or PCI numbers, and those that it names in vain."""

from __future__ import annotations

import json

import pytest

from topologies.fabric_import import ImportAsked, fabric_of, import_fabric_text
from topologies.imported_fabric import ImportedFabric

AIC = """\
gpu:
  mem_bw: {rate}
  mem_capacity: {size}
  bfloat16_tc_flops: {peak}
  sm_version: 100
node:
  num_gpus_per_node: 4
  num_gpus_per_rack: 72
  inter_rack_bw: 100000000000
  inter_node_bw: 900000000000
  intra_node_bw: 900000000000
"""
XML = '<system version="2"><cpu>{gpus}</cpu></system>'
GPU = '<pci busid="0000:{at}:00.0" class="0x120000" vendor="0x1002" device="{device}"/>'


def read(text: str) -> ImportedFabric:
    return import_fabric_text(text.encode(), "f", ImportAsked())


def calculon(tflops: float, gib: float, gbps: float) -> str:
    return json.dumps(
        {
            "matrix": {"float16": {"tflops": tflops}},
            "mem1": {"GiB": gib, "GBps": gbps},
            "networks": [
                {"bandwidth": 300, "size": 8, "latency": 1e-5},
                {"bandwidth": 25, "size": 64, "latency": 2e-5},
            ],
        }
    )


def test_a_system_with_a_gb200s_figures_has_gb200s_not_the_lenders_gpus() -> None:
    text = AIC.format(rate="8000000000000", size="198674743296", peak="2500000000000000")

    fabric = fabric_of(read(text), ImportAsked())

    assert fabric.accelerator.name == "GB200"
    assert "nearest" in fabric.assumed["accelerator"]


def test_a_system_with_an_a100s_figures_in_rounded_units_has_a100s() -> None:
    found = read(calculon(312, 80, 2048))

    assert found.accelerator == "A100-SXM-80"


@pytest.mark.parametrize(
    "text",
    [
        calculon(700, 80, 2048),  # between an A100 and an H100
        AIC.format(rate="8000000000000", size="0", peak="2500000000000000"),
    ],
)
def test_figures_of_no_known_accelerator_name_none(text: str) -> None:
    assert read(text).accelerator == ""


def test_a_device_that_the_catalogue_has_not_is_warned_of_by_its_name() -> None:
    gpus = "".join(GPU.format(at=f"{at:02x}", device="0x74a0") for at in range(4))

    found = read(XML.format(gpus=gpus))

    assert found.accelerator == ""
    assert any("MI300A" in one.message and one.severity == "warning" for one in found.findings)


def test_machines_for_virtual_machines_name_no_device_and_are_not_warned_of() -> None:
    gpus = '<pci busid="ffff:ff:01.0" class="0x030200"/>' * 2

    assert not any("PCI device" in one.message for one in read(XML.format(gpus=gpus)).findings)
