"""Readers of a document's values: every fault with its line, all in one refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from planner.documents import Node, document_from_text
from planner.errors import SpecError

CLUSTER = """\
name: sn64
uplink: 400 Gb/s
latency: 2 us
memory: 80 GiB
peak: 989 TFLOP/s
board: 700 W
price: 30000
gpus: 1024
busy: 0.5
sharp: true
kind: fat-tree
link:
  rate: 50 GB/s
sizes: [384, 384, 256]
"""


def test_a_reader_gets_si_whatever_unit_the_file_uses() -> None:
    document = document_from_text(CLUSTER)
    root = document.root

    assert root.name("name") == "sn64"
    assert root.rate("uplink") == 50e9
    assert root.time("latency") == 2e-6
    assert root.bytes("memory") == 80 * 2**30
    assert root.flops("peak") == 989e12
    assert root.power("board") == 700
    assert root.money("price") == 30_000
    assert root.count("gpus") == 1024
    assert root.share("busy") == 0.5
    assert root.flag("sharp") is True
    assert root.text("kind", choices=("fat-tree", "torus")) == "fat-tree"
    assert root.map("link").rate("rate") == 50e9
    assert [item.as_count() for item in root.list("sizes")] == [384, 384, 256]
    document.finish()


def test_every_fault_is_named_with_its_line_in_one_refusal() -> None:
    document = document_from_text(
        "uplink: 50 GBps\nuplnk: 1\ngpus: 0\nlink: {rate: 3}\ngpus: 9\n", name="sn64.yaml"
    )
    root = document.root

    root.rate("uplink")
    root.count("gpus")
    root.map("link").rate("rate")
    root.time("latency")
    root.map("nic").count("in_flight")
    root.only("uplink", "gpus", "link", "latency", "nic")
    with pytest.raises(SpecError) as refusal:
        document.finish()

    rate = "expected a rate such as '50 GB/s' or '400 Gb/s'"
    meant = "did you mean 'GB/s' or 'Gb/s' or 'Gbps'?"
    assert refusal.value.exit_code == 2
    assert refusal.value.faults == (
        "sn64.yaml:1:1: missing key 'latency'",
        "sn64.yaml:1:1: missing key 'nic'",
        f"sn64.yaml:1:9: uplink: {rate}, got '50 GBps': unknown unit 'GBps', {meant}",
        "sn64.yaml:2:1: unknown key 'uplnk', did you mean 'uplink'?",
        "sn64.yaml:3:7: gpus: expected a whole number from 1 to 1000000000, got 0",
        f"sn64.yaml:4:14: link.rate: {rate}, got 3 without a unit",
        "sn64.yaml:5:1: key 'gpus' is given twice, first in line 3",
    )


def test_a_key_left_out_has_the_default_the_reader_names() -> None:
    document = document_from_text("{}")
    root = document.root

    assert root.rate("uplink", default=1.0) == 1.0
    assert root.count("gpus", default=8) == 8
    assert root.map("link", default=None) is None
    assert root.list("sizes", default=()) == ()
    assert root.flag("sharp", default=True) is True
    assert not root.has("uplink")
    assert root.optional("uplink") is None
    document.finish()


@pytest.mark.parametrize(
    ("value", "read", "says"),
    [
        ("no", lambda n: n.flag("k"), "k: expected true or false, got 'no'"),
        ("1", lambda n: n.flag("k"), "k: expected true or false, got 1"),
        ("910", lambda n: n.text("k"), "k: expected text, got 910; put it in quotes: '910'"),
        ("1.5", lambda n: n.count("k"), "k: expected a whole number from 1 to"),
        ("1e3", lambda n: n.count("k"), "k: expected a whole number from 1 to"),
        ("true", lambda n: n.count("k"), "whole number from 1 to 1000000000, got true"),
        ("010", lambda n: n.count("k"), "got '010'"),
        ("-1", lambda n: n.money("k"), "k: expected a number of at least 0, got -1"),
        ("9", lambda n: n.number("k", minimum=1, maximum=2), "of at least 1 and at most 2, got 9"),
        ("9", lambda n: n.number("k", maximum=2), "k: expected a number of at most 2, got 9"),
        ("50 %", lambda n: n.share("k"), "k: expected a share from 0 to 1, got '50 %'"),
        ("1.01", lambda n: n.share("k"), "k: expected a share from 0 to 1, got 1.01"),
        ("-2 us", lambda n: n.time("k"), "k: expected a time such as"),
        ("[1]", lambda n: n.time("k"), "k: expected a number with its unit, got a list of 1 item"),
        ("", lambda n: n.rate("k"), "k: expected a number with its unit, got nothing"),
        ("x", lambda n: n.map("k"), "k: expected a mapping of keys to values, got 'x'"),
        ("{a: 1, b: 2}", lambda n: n.list("k"), "k: expected a list, got a map of 2 keys"),
        ("'rack[/]'", lambda n: n.name("k"), "k: expected a name of at most 128 letters"),
        ("x" * 129, lambda n: n.name("k"), "k: expected a name of at most 128 letters"),
        ("fat_tree", lambda n: n.text("k", choices=("fat-tree", "torus")),
         "k: expected one of fat-tree, torus, got 'fat_tree', did you mean 'fat-tree'?"),
        ("abc", lambda n: n.text("k", pattern="[0-9]+"), "text of the form [0-9]+, got 'abc'"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_refused_with_what_was_seen(
    value: str, read: Callable[[Node], Any], says: str
) -> None:
    document = document_from_text(f"k: {value}")

    read(document.root)
    with pytest.raises(SpecError) as refusal:
        document.finish()

    assert len(refusal.value.faults) == 1
    assert says in refusal.value.faults[0]


def test_a_file_that_is_no_mapping_is_refused_once() -> None:
    document = document_from_text("- 1\n- 2\n")

    document.root.rate("uplink")
    document.root.count("gpus")
    with pytest.raises(SpecError) as refusal:
        document.finish()

    assert refusal.value.faults == (
        "<text>:1:1: expected a mapping of keys to values, got a list of 2 items",
    )


def test_a_readers_own_fault_stands_at_the_value_it_is_about() -> None:
    document = document_from_text("a:\n  b: 3\n")

    document.root.map("a").fault("3 does not divide 8", key="b")
    with pytest.raises(SpecError, match=r"<text>:2:6: a\.b: 3 does not divide 8"):
        document.finish()


def test_a_flood_of_faults_is_cut_and_counted() -> None:
    document = document_from_text("\n".join(f"key{i}: 1" for i in range(200)))

    document.root.only("gpus")
    with pytest.raises(SpecError) as refusal:
        document.finish()

    assert len(refusal.value.faults) == 51
    assert refusal.value.faults[-1] == "and 150 more faults of the same file"


def test_what_a_file_says_cannot_steer_a_terminal_through_a_message() -> None:
    document = document_from_text('k: "' + "x" * 500 + '"')

    document.root.count("k")
    with pytest.raises(SpecError) as refusal:
        document.finish()

    assert len(str(refusal.value)) < 200
