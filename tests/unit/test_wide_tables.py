"""Tables wider than the page: every value stays whole, in as many tables as that takes."""

from __future__ import annotations

import io

import pytest
from rich import box
from rich.console import Console
from rich.table import Table

from cli.page_tables import simple_table
from cli.planner_output import console
from cli.wide_tables import tables_within

HEADS = ("cluster", "layout", "GPUs", "batch", "step", "tokens/s", "fewer", "memory")
ROWS = (
    ("hgx-h100-of-the-north", "tp8 dp224 zero1", "43,584", "15,360", "194 ms", "18.94 M", "8.26 %",
     "64.4 GB"),
    ("gb200-nvl72", "dp1080 zero1", "1,080", "1,080", "214 ms", "20.65 M", "", "81.5 GB !"),
)  # fmt: skip


def shown(width: int) -> list[str]:
    table = simple_table(*HEADS, left=2)
    table.columns[0].no_wrap = True
    for row in ROWS:
        table.add_row(*row)
    stream = io.StringIO()
    page = Console(file=stream, width=width, markup=False, highlight=False)
    for part in tables_within(table, width):
        page.print(part)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 84])
def test_no_value_and_no_heading_loses_a_character(width: int) -> None:
    lines = shown(width)

    assert max(map(len, lines)) <= width
    text = " ".join(lines)
    for row in (HEADS, *ROWS):
        for value in row[2:]:
            assert value in text


def test_each_part_names_its_rows() -> None:
    lines = shown(60)

    parts = sum(line.startswith("cluster ") for line in lines)
    assert parts > 1
    assert sum(line.startswith("gb200-nvl72 ") for line in lines) == parts


def test_a_table_that_fits_stays_one() -> None:
    assert len(tables_within(simple_table(*HEADS), 80)) == 1


def test_a_value_wider_than_the_page_is_wrapped() -> None:
    table = simple_table("name", "value")
    table.add_row("a", "9" * 100)
    stream = io.StringIO()
    for part in tables_within(table, 40):
        Console(file=stream, width=40).print(part)

    assert stream.getvalue().count("9") == 100


def test_a_name_that_is_indented_is_not_broken_and_the_parts_stand_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    heads = ("layout", "step", "slower", "tie", "MFU", "memory", "USD a million", "energy of it",
             "tokens/day")  # fmt: skip
    table = simple_table("  cluster", *heads, left=2)
    table.add_row("  gb200-nvl72", "dp576 zero1 mb2", "380 ms", "", "", "41.6 %", "103 GB", "1.073",
                  "4.2 kWh", "1,073 G")  # fmt: skip

    console().print(table)

    page = capsys.readouterr().out
    assert "\n\n  cluster " in page
    assert page.count("\n  gb200-nvl72 ") == page.count("  cluster ") == 2
    assert all(len(line) <= 80 for line in page.splitlines())


def test_a_heading_wraps_before_a_sentence_and_a_sentence_before_a_number() -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for head in ("group", "sits in", "best of 32 random"):
        table.add_column(head)
    table.add_row("PP 16 x 64", "8 supernodes, 2 in each", "15.5 TB")
    stream = io.StringIO()
    for part in tables_within(table, 48):
        Console(file=stream, width=48).print(part)

    assert "8 supernodes, 2 in each" in stream.getvalue()
    assert "15.5 TB" in stream.getvalue()


def test_a_table_with_edges_keeps_its_title_and_its_values() -> None:
    table = Table(title="Clusters", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("name", no_wrap=True)
    table.add_column("up/NIC, GB/s")
    table.add_row("cloudmatrix384-3x384", "392/50")
    stream = io.StringIO()
    for part in tables_within(table, 32):
        Console(file=stream, width=32).print(part)

    assert "Clusters" in stream.getvalue()
    assert "cloudmatrix384-3x384" in stream.getvalue()


def test_a_cluster_in_a_heading_breaks_behind_its_hyphen_before_a_label_wraps() -> None:
    table = simple_table("  part", "generic-sn64", "generic-sn384")
    table.add_row("  scale up switch", "13,824,000", "14,336,000")
    stream = io.StringIO()
    for part in tables_within(table, 43):
        Console(file=stream, width=43).print(part)

    lines = stream.getvalue().splitlines()
    assert lines[0].split() == ["generic-", "generic-"]
    assert lines[1].split() == ["part", "sn64", "sn384"]
    assert lines[3].split("  ")[1] == "scale up switch"


def test_a_label_that_wraps_keeps_its_indent() -> None:
    table = simple_table("  layout", "estimate", "head-room")
    table.add_row("  tp4 cp2 ep64 dp8 pp16 vpp3 zero3 mb4 rec", "3.28 s", "72.7 GB")
    stream = io.StringIO()
    for part in tables_within(table, 50):
        Console(file=stream, width=50).print(part)

    labels = [line[:30].rstrip() for line in stream.getvalue().splitlines()[3:]]
    assert labels
    assert all(label.startswith("  ") and label[2] != " " for label in labels if label)
