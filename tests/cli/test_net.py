"""``planner net`` as a user runs it: the chapter's case, units, JSON, faults."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Ran
from tests.net_files import faults_of_a_file

Planner = Callable[..., Ran]
SCHEMAS = Path(__file__).parents[2] / "cli" / "schemas"
SINGLE = (
    "schedule",
    "reuse",
    "slots",
    "congestion",
    "concurrency",
    "overlap",
    "loss",
    "endpoints",
    "pause",
    "incast",
    "queues",
    "phases",
    "walks",
    "buffers",
    "deadlock",
)
OF_A_JOB = ("sharing", "blast", "endpoints")


def told(planner: Planner, *arguments: str) -> dict[str, Any]:
    ran = planner("net", *arguments, "--json")
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    return document


@pytest.mark.parametrize("command", SINGLE)
def test_without_options_it_prints_a_case_with_its_premises_in_80_columns(
    planner: Planner, command: str
) -> None:
    ran = planner("net", command)

    assert ran.code == 0
    assert ran.err == ""
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "Premises" in ran.out
    assert "Source: " in ran.out


@pytest.mark.parametrize("command", SINGLE)
def test_its_document_has_inputs_their_hash_premises_and_the_published_schema(
    planner: Planner, command: str
) -> None:
    document = told(planner, command)

    assert document["schema"] == f"planner.net-{command}/1"
    assert len(document["inputs"]["sha256"]) == 64
    assert document["premises"]
    schema = json.loads((SCHEMAS / f"net-{command}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    assert told(planner, command) == document


@pytest.mark.parametrize("command", OF_A_JOB)
def test_models_of_a_job_take_a_cluster_and_a_layout(planner: Planner, command: str) -> None:
    job = (
        "--supernode", "8", "--gpus", "12", "--model", "llama-3.1-8b", "--tp", "4", "--dp", "3",
        "--pp", "1",
    )  # fmt: skip

    ran, document = planner("net", command, *job), told(planner, command, *job)

    assert ran.code == 0
    assert document["inputs"]["gpus"] == 12
    jsonschema.validate(document, json.loads((SCHEMAS / f"net-{command}.json").read_text()))


def test_of_each_kind_of_part_the_worst_fails_and_slowed_ranks_are_told(planner: Planner) -> None:
    """TP 4 x DP 3 on 8 + 4 GPUs: the first supernode touches all three groups of four twice."""
    job = (
        "--supernode", "8", "--gpus", "12", "--model", "llama-3.1-8b", "--tp", "4", "--dp", "3",
        "--pp", "1",
    )  # fmt: skip

    document, text = told(planner, "blast", *job), planner("net", "blast", *job).out

    kinds = {kind["kind"]: kind for kind in document["kinds"]}
    by_kind = dict(zip(kinds, document["failures"], strict=True))
    assert {kind: kinds[kind]["parts"] for kind in ("gpu", "nic", "gpu - nic", "supernode")} == {
        "gpu": 12, "nic": 12, "gpu - nic": 12, "supernode": 2,
    }  # fmt: skip
    assert len(by_kind["gpu"]["stalled_ranks"]) == 4 + 3 - 1
    assert kinds["supernode"]["part"] == "sn00"
    assert len(by_kind["supernode"]["dead_ranks"]) == 8
    assert len(by_kind["scale_up_switch"]["slowed_ranks"]) == 8
    # 63 GB/s to the NIC are left of 450 + 63
    assert "8 to 12%" in text
    assert max(map(len, text.splitlines())) <= 80


def test_layouts_of_a_search_are_judged_for_the_state_they_make(planner: Planner) -> None:
    """A ring of 32 leaves a node of 8 by one peer at each end; connected in pairs it has 24."""
    job = ("--supernode", "8", "--gpus", "32", "--model", "llama-3.1-8b", "--tp", "1", "--pp", "1",
           "--cp", "1", "--best", "1", "--queue-pairs", "8", "--state", "1KiB")  # fmt: skip

    rings = told(planner, "endpoints", *job)
    pairs = told(planner, "endpoints", *job, "--every-pair", "--cache", "191KiB")
    text = planner("net", "endpoints", *job, "--every-pair", "--cache", "191KiB").out

    assert [len(told["layouts"]) for told in (rings, pairs)] == [1, 1]
    assert rings["layouts"][0]["layout"]["dp"] == 32
    assert rings["layouts"][0]["state"]["peers"] == 1
    assert pairs["layouts"][0]["state"]["peers"] == 24
    reliable = pairs["layouts"][0]["state"]["transports"][0]
    assert reliable["state_bytes"] == 24 * 8 * 1024
    assert not reliable["fits"]
    assert "1 of 1 layouts" in text
    jsonschema.validate(pairs, json.loads((SCHEMAS / "net-endpoints.json").read_text()))


def test_groups_wider_than_the_cluster_are_refused(planner: Planner) -> None:
    ran = planner("net", "phases", "--cluster", "hgx-h100", "--tp", "2000", "--ep", "1025")

    assert ran.code == 2
    assert "--tp 2000: expected at most the 1024 GPUs of hgx-h100" in ran.err
    assert "--ep 1025: expected at most the 1024 GPUs of hgx-h100" in ran.err


def test_slots_give_the_chapters_figures_under_the_promised_names(planner: Planner) -> None:
    sixteen, eight = told(planner, "slots"), told(planner, "slots", "--slots", "8")

    assert sixteen["transfer_end_s"] == pytest.approx(20e-6)
    assert eight["transfer_end_s"] == pytest.approx(48e-6)
    assert sixteen["release_end_s"] == eight["release_end_s"] == pytest.approx(80e-6)
    assert sixteen["sustained_bytes_per_s"] == pytest.approx(1.6384e9)
    assert sixteen["required_completions_per_s"] == pytest.approx(6.1e6, rel=0.01)
    assert sixteen["binding"] == "completion"


def test_slots_say_that_more_of_them_move_the_transfers_not_the_release(planner: Planner) -> None:
    ran = planner("net", "slots")

    assert "More slots move the transfers earlier, not the release" in " ".join(ran.out.split())


def test_congestion_gives_the_chapters_figures_under_the_promised_names(planner: Planner) -> None:
    seen = told(planner, "congestion")

    assert seen["time_to_full_s"] == seen["deadline_s"] == pytest.approx(5.24288e-6)
    assert seen["excess_bytes"] == pytest.approx(1e6)
    assert seen["lost_bytes"] == pytest.approx(737_856)
    assert seen["drain_s"] == pytest.approx(52.4288e-6)
    assert seen["empty_at_s"] == pytest.approx(72.4288e-6)


def test_congestion_says_why_slowing_to_the_service_rate_does_not_drain(planner: Planner) -> None:
    ran = planner("net", "congestion", "--reduced", "50GB/s")
    seen = told(planner, "congestion", "--reduced", "50GB/s")

    assert seen["drain_s"] is None
    assert "dQ/dt = 0" in " ".join(ran.out.split())


def test_concurrency_and_overlap_give_the_chapters_figures(planner: Planner) -> None:
    rate, step = told(planner, "concurrency"), told(planner, "overlap")

    assert rate["sustained_bytes_per_s"] == pytest.approx(16.384e9)
    assert rate["transfer_s"] == pytest.approx(1.536e-3)
    assert rate["required_in_flight"] == 391
    assert step["serial_s"] == pytest.approx(23.3e-3)
    assert step["overlapped_s"] == pytest.approx(22e-3)
    assert step["exposed_s"] == 0
    assert step["free"] is True


def test_units_are_read_in_every_spelling(planner: Planner) -> None:
    a = told(planner, "concurrency", "--line-rate", "400 Gb/s", "--turnaround", "2000ns")
    b = told(planner, "concurrency", "--line-rate", "50GB/s", "--turnaround", "2us")

    assert a == b


def test_decode_is_start_up_and_prefill_is_bandwidth(planner: Planner) -> None:
    phases = {row["phase"]: row for row in told(planner, "phases")["phases"]}

    assert phases["decode"]["payload_bytes"] == 10 * 1024
    assert phases["decode"]["per_layer"] == 2
    assert phases["decode"]["dominates"] == "start-up"
    assert phases["prefill"]["dominates"] == "bandwidth"
    assert phases["training"]["payload_bytes"] == 192 * 2**20
    assert phases["training"]["in_budget"] is True


def test_a_cluster_is_judged_for_both_loads_as_wires_and_as_its_library(planner: Planner) -> None:
    document = told(planner, "phases", "--cluster", "hgx-h100")

    wires = {load["phase"]: load for load in document["phases"]}
    library = {load["phase"]: load for load in document["library"]}
    assert document["inputs"]["scale_up_bytes_per_s"] == 450e9
    assert wires["decode"]["dominates"] == library["decode"]["dominates"] == "start-up"
    assert wires["prefill"]["dominates"] == library["prefill"]["dominates"] == "bandwidth"
    # dgxc-benchmarking nccl/README.md: 8 H100 take 15 to 20 us for 8 and 16 KiB
    assert 15e-6 < library["decode"]["startup_s"] + library["decode"]["transfer_s"] < 20e-6
    jsonschema.validate(document, json.loads((SCHEMAS / "net-phases.json").read_text()))


def test_what_a_cluster_says_is_not_said_twice(planner: Planner) -> None:
    ran = planner("net", "phases", "--cluster", "hgx-h100", "--nic", "1GB/s", "--scale-up", "2GB/s")

    assert ran.code == 2
    assert "--scale-up, --nic: --cluster hgx-h100 says that" in ran.err


BAD = [
    (("slots", "--payload", "8", "--slots", "0", "--poll-interval", "0us"), 3),
    (("slots", "--operations", "-5", "--batch", "1.5", "--line-rate", "-50GB/s"), 3),
    (("congestion", "--arrival", "nan", "--buffer", "512", "--used", "1GiB"), 2),
    (("congestion", "--used", "1MiB"), 1),
    (("concurrency", "--in-flight", "0", "--turnaround", "0s"), 2),
    (("overlap", "--ready", "21ms"), 1),
    (("overlap", "--compute", "0s", "--contention", "2"), 2),
    (("loss", "--loss", "1", "--scheme", "none", "--paths", "4us,x"), 3),
    (("endpoints", "--peers", "1", "--peer-nodes", "2"), 1),
    (("pause", "--xon", "1MiB"), 1),
    (("incast", "--degree", "-1", "--room", "0B"), 2),
    (("phases", "--tp", "1", "--nic", "0GB/s"), 2),
    (("phases", "--nic-latency", "1e300s"), 1),
    (("walks", "--nodes", "1", "--ranks", "1"), 2),
    (("queues", "--until", "0s"), 1),
    (("buffers", "schedule", "--interval", "0s", "--buffers", "0"), 2),
]


@pytest.mark.parametrize(("arguments", "faults"), BAD)
def test_every_fault_is_named_and_the_exit_code_is_2(
    planner: Planner, arguments: tuple[str, ...], faults: int
) -> None:
    ran = planner("net", *arguments)

    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.count("error: ") >= faults or len(ran.err.splitlines()) >= faults, ran.err
    assert "Traceback" not in ran.err
    assert not re.search(r"\w=", ran.err), "a fault names an option, not a field of the model"


def test_a_models_fault_names_the_option_and_what_was_typed(planner: Planner) -> None:
    ran = planner("net", "congestion", "--buffer", "8KiB", "--used", "1 MB")

    assert ran.err.strip() == "error: --used 1 MB: expected at most --buffer 8KiB"


def test_pause_counts_what_a_400g_sender_may_still_send_while_it_reacts(planner: Planner) -> None:
    # 2 x 4,096 + 905 quanta of 64 + 2 x 50 GB/s x 500 ns = 116,112 bytes; 112 KiB are there
    ran = planner("net", "pause", "--line-rate", "50GB/s", "--mtu", "4096B", "--xoff", "400KiB")

    assert ran.code == 0
    assert "lossless         NO        1.39 KiB too little" in ran.out
    fast = planner("net", "pause", "--line-rate", "200GB/s")
    assert fast.code == 2
    assert "known up to 800 Gb/s" in fast.err


def test_what_a_text_could_not_say_is_not_refused_a_second_time(planner: Planner) -> None:
    ran = planner("net", "pause", "--xon", "much", "--xoff", "1B")

    assert len(ran.err.splitlines()) == 1
    assert "--xon: expected a size" in ran.err


HUGE = [
    ("slots", "--operations", "1000000000000"),
    ("slots", "--operations", "1000000000000", "--slots", "999999999"),
    ("slots", "--operations", "1000000000000", "--slots", "1000000000000", "--batch", "7"),
    ("slots", "--operations", "1000000000000", "--poll-interval", "1ns", "--interrupt"),
    ("slots", "--operations", "1000000000000", "--poll-interval", "1ns"),
    ("queues", "--until", "1e9s"),
    ("loss", "--paths", "0us,1s"),
    ("walks", "--ranks", "1000000000", "--nodes", "1000000"),
]


@pytest.mark.parametrize("arguments", HUGE)
def test_a_huge_case_is_answered_or_refused_and_never_hangs(
    planner: Planner, arguments: tuple[str, ...]
) -> None:
    start = time.process_time()

    ran = planner("net", *arguments)

    assert ran.code in {0, 2}
    assert time.process_time() - start < 8


def test_a_row_of_queues_is_read_from_a_file(planner: Planner, tmp_path: Path) -> None:
    row = tmp_path / "row.yaml"
    row.write_text(
        "queues:\n"
        "  - {name: port, service: 50 GB/s, buffer: 512 KiB, used: 256 KiB, mark: 256 KiB}\n"
        "sources:\n"
        "  - {name: gpu, rate: [{start: 0 us, rate: 100 GB/s}], enters: port,\n"
        "     feedback: 20 us, reduced: 40 GB/s}\n"
    )

    port = told(planner, "queues", "--row", str(row))["queues"][0]

    assert port["lost_bytes"] == pytest.approx(737_856)
    assert port["empty_at_s"] == pytest.approx(72.4288e-6)


def test_faults_of_such_a_file_come_with_their_lines(planner: Planner, tmp_path: Path) -> None:
    refused = faults_of_a_file(
        planner, tmp_path / "row.yaml", "queues", "--row",
        "queues:\n"
        "  - {name: port, service: 50 GBps, buffer: 512 KiB}\n"
        "sources:\n"
        "  - {name: gpu, rate: 1 GB/s, enters: nowhere, speed: 3}\n",
    )  # fmt: skip

    assert "row.yaml:2" in refused
    assert "row.yaml:4" in refused


def test_a_queue_that_cannot_be_is_refused_with_its_line_and_its_key(
    planner: Planner, tmp_path: Path
) -> None:
    refused = faults_of_a_file(
        planner, tmp_path / "row.yaml", "queues", "--row",
        "queues:\n"
        "  - {name: port, service: 50 GB/s, buffer: 1 kB, used: 2 kB}\n"
        "  - {name: next, service: 50 GB/s, buffer: 1 kB, xoff: 400 B, xon: 600 B}\n"
        "sources:\n"
        "  - {name: gpu, rate: [{start: 1 us, rate: 1 GB/s}], enters: port}\n",
    )  # fmt: skip

    assert "row.yaml:2:5: queues[0]: queue 'port': used=2000.0: expected at most buffer=" in refused
    assert "row.yaml:3:5: queues[1]: queue 'next': xon=600.0, xoff=400.0" in refused
    assert "row.yaml:5:5: sources[0]: source 'gpu': phases: expected a first phase at" in refused


def test_out_writes_the_document_and_prints_the_text(planner: Planner, tmp_path: Path) -> None:
    file = tmp_path / "slots.json"

    ran = planner("net", "slots", "--out", str(file))

    assert json.loads(file.read_text())["schema"] == "planner.net-slots/1"
    assert "Completion slots" in ran.out


def test_the_longest_in_flight_settings_name_the_ceiling_that_binds(planner: Planner) -> None:
    seen = told(
        planner, "concurrency", "--in-flight", "1000", "--channels", "1", "--round-trip", "100us"
    )

    assert seen["binding"] == "nccl channels"
    assert [c["name"] for c in seen["ceilings"]] == ["nic", "nccl channels"]
