from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from planner.collectives.fit import fit, fit_classes
from planner.collectives.fit_report import error_of, left_out_predictions, report
from planner.collectives.measured import MeasuredCollective, measured_collective, network_class
from planner.collectives.predict import predicted_s
from planner.errors import InputError, SpecError
from planner.fabric import Fabric, Nic
from planner.units import GB, US
from topologies.collective_catalogue import (
    calibration_from_text,
    calibration_text,
    measured_links_of,
    shipped_calibration,
)


def _row(**changes: str) -> dict[str, str]:
    row = {
        "id": "r1",
        "table": "t1",
        "hw": "H100-SXM NVSwitch",
        "n_gpus": "8",
        "scaleup_domain": "8",
        "collective": "all_reduce",
        "size_bytes": "1048576",
        "time_us": "25.4",
        "nic_GBps_per_gpu": "",
    }
    return row | changes


def _made_up(sizes: int = 12) -> list[MeasuredCollective]:
    """Rows whose times are what the shipped numbers say, in four tables of one class."""
    rows = []
    for table, (gpus, collective) in enumerate(
        [(4, "all_reduce"), (8, "all_reduce"), (8, "all_gather"), (8, "alltoall")]
    ):
        for i, size in enumerate(np.geomspace(512, 2**29, sizes)):
            text = _row(
                id=f"{table}-{i}", table=str(table), n_gpus=str(gpus), collective=collective,
                size_bytes=str(int(size)),
            )  # fmt: skip
            rows.append(measured_collective(text))
    times = predicted_s(rows, shipped_calibration())
    return [replace(row, time_s=float(t)) for row, t in zip(rows, times, strict=True)]


def test_a_fit_meets_times_that_its_own_model_made() -> None:
    rows = _made_up()

    found = predicted_s(rows, fit(rows))

    error = error_of(found, np.array([row.time_s for row in rows]))
    assert error.median_share < 0.01
    assert error.p90_share < 0.03


def test_a_left_out_table_is_predicted_from_the_others() -> None:
    rows = [row for row in _made_up(sizes=4) if row.collective != "all_to_all"]

    found = left_out_predictions(rows)

    lines = report(rows, found)
    assert [(line.system, line.collective) for line in lines] == [
        ("hopper", "all_gather"),
        ("hopper", "all_reduce"),
    ]
    assert lines[0].error.median_share < 0.1


def test_an_outlier_row_does_not_steer_the_fit() -> None:
    """One published row is five times slower in place than out of place."""
    rows = _made_up()
    spoilt = [replace(rows[3], time_s=5 * rows[3].time_s), *rows]

    found = predicted_s(rows, fit(spoilt))

    assert error_of(found, np.array([row.time_s for row in rows])).median_share < 0.02


def test_a_row_says_why_it_cannot_be_predicted() -> None:
    no_nic = measured_collective(_row(n_gpus="16"))
    no_switch = measured_collective(_row(hw="L40S PCIe"))
    no_domain = measured_collective(_row(scaleup_domain="0", n_gpus="0"))

    assert "NIC's rate is missing" in no_nic.skipped_because
    assert "no switch joins" in no_switch.skipped_because
    assert "scale-up domain is missing" in no_domain.skipped_because
    with pytest.raises(InputError, match="no row to fit"):
        fit([no_nic, no_switch])
    with pytest.raises(InputError, match="collective 'gossip': expected one of"):
        measured_collective(_row(collective="gossip"))


def test_networks_are_told_apart_by_name_and_speed() -> None:
    assert network_class("A100 p4de, EFA", 6.25 * GB) == "efa_100"
    assert network_class("H100 p5, EFA", 50 * GB) == "efa_400"
    assert network_class("", 50 * GB) == "infiniband_ndr"


def test_what_no_row_tells_stays_at_its_published_start() -> None:
    """A class of network without rows gets the figures of its plugin, not those of another fit."""
    rows = [row for row in _made_up(sizes=4) if row.collective != "all_to_all"]

    found = fit_classes(rows, ("hopper",), ("efa_100", "infiniband_ndr"))

    assert found.network["efa_100"].latency_s == pytest.approx(28 * US, rel=1e-3)
    assert found.network["infiniband_ndr"].latency_s == pytest.approx(5 * US, rel=1e-3)
    assert not found.network["efa_100"].ordered
    assert found.network["infiniband_ndr"].ordered


def test_a_calibration_survives_its_own_file() -> None:
    shipped = shipped_calibration()

    again = calibration_from_text(calibration_text(shipped))

    assert again == shipped


def test_a_fault_in_the_file_is_named_with_its_line() -> None:
    text = calibration_text(shipped_calibration()).replace("issue:", "isue:")

    with pytest.raises(SpecError, match="isue"):
        calibration_from_text(text, name="mine.yaml")


def _fabric(accelerator: str) -> Fabric:
    def tier(name: str, rate: float) -> Any:
        return SimpleNamespace(
            name=name, bytes_per_s=rate, shared_bytes_per_s=rate, latency_s=1 * US,
            in_network_reduction=name == "supernode", pair_bytes_per_s=rate,
            has_switch_links=name != "supernode",
        )  # fmt: skip

    nic = Nic(line_bytes_per_s=50 * GB, in_flight=512, transaction_bytes=4096, turnaround_s=2 * US)
    return cast(
        "Fabric",
        SimpleNamespace(
            tiers=(tier("supernode", 450 * GB), tier("cluster", 50 * GB)),
            nic=nic,
            accelerator=SimpleNamespace(name=accelerator),
        ),
    )


def test_a_fabric_gets_the_class_of_its_gpu_and_a_stranger_the_generic_one() -> None:
    known = measured_links_of(_fabric("H100-SXM"))
    strange = measured_links_of(_fabric("MI300X"))

    assert (known.scale_up, known.network, known.assumed) == ("hopper", "infiniband_ndr", "")
    assert strange.scale_up == "generic"
    assert "MI300X: mean of measured machines; such a guess was 19% off" in strange.assumed
