"""A table of measured (or wanted) collectives: CSV to rows, and predictions beside them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from planner.collectives.measured import MeasuredCollective, measured_collective
from planner.documents import read_bytes
from planner.errors import InputError

NEEDED = ("hw", "n_gpus", "scaleup_domain", "collective", "size_bytes")
LARGEST_BYTES = 64 * 2**20
MOST_RANKS = 10**7


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row.

    Args:
        name: its ``id``, or its line.
        measured: what it says; None where it cannot be predicted.
        because: why not, "" where it can.
    """

    name: str
    measured: MeasuredCollective | None
    because: str


def read_collectives(path: Path) -> tuple[TableRow, ...]:
    """Return the rows of the CSV file *path*.

    Columns: ``hw`` (a name that says the GPU, and EFA where it is the network), ``n_gpus``,
    ``scaleup_domain`` (GPUs of one), ``collective``, ``size_bytes`` as nccl-tests counts them;
    beside them ``id``, ``table``, ``nic_GBps_per_gpu`` and ``time_us`` where known.

    Raises:
        InputError: no such file, too large, not UTF-8, or a needed column is missing.
    """
    content = read_bytes(path)
    if len(content) > LARGEST_BYTES:
        raise InputError(f"{path}: has {len(content):,} bytes, more than {LARGEST_BYTES:,}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    return rows_from_text(text, str(path))


def rows_from_text(text: str, name: str) -> tuple[TableRow, ...]:
    """Return the rows of a CSV *text* called *name* in messages."""
    reader = csv.DictReader(text.splitlines())
    try:
        columns = reader.fieldnames or ()
        missing = [column for column in NEEDED if column not in columns]
        if missing:
            raise InputError(
                f"{name}:1: missing column{'s' if len(missing) > 1 else ''} "
                f"{', '.join(missing)}; a table of collectives has at least {', '.join(NEEDED)}"
            )
        return tuple(_row(row, line) for line, row in enumerate(reader, start=2))
    except csv.Error as error:
        raise InputError(f"{name}:{reader.line_num}: {error}") from None


def _row(cells: dict[str, str | None], line: int) -> TableRow:
    filled = {key: (cells.get(key) or "").strip() for key in (*NEEDED, *_SPARE)}
    label = filled["id"] or f"line {line}"
    filled["id"] = label
    bad = [
        f"{key}={filled[key][:40]!r} is not {wanted}"
        for key, (wanted, least) in _NUMBERS.items()
        if not _is_number(filled[key], least, needed=key in NEEDED)
    ]
    if bad:
        return TableRow(name=label, measured=None, because="; ".join(bad))
    for key in ("n_gpus", "scaleup_domain"):
        filled[key] = str(int(float(filled[key])))
    try:
        measured = measured_collective(filled)
    except InputError as error:
        return TableRow(name=label, measured=None, because=str(error).split(": ", 1)[-1])
    if measured.skipped_because:
        return TableRow(name=label, measured=None, because=measured.skipped_because)
    return TableRow(name=label, measured=measured, because="")


_SPARE = ("id", "table", "nic_GBps_per_gpu", "time_us")
_NUMBERS = {
    "n_gpus": ("a whole number from 1 to 10 million", 1.0),
    "scaleup_domain": ("a whole number from 1 to 10 million", 1.0),
    "size_bytes": ("a number of bytes above 0", 1e-9),
    "nic_GBps_per_gpu": ("a rate in GB/s, 0 or more", 0.0),
    "time_us": ("a time in us, 0 or more", 0.0),
}


def _is_number(text: str, least: float, *, needed: bool) -> bool:
    """Return whether *text* is a finite number from *least* up; empty passes unless *needed*."""
    if not text:
        return not needed
    try:
        value = float(text)
    except ValueError:
        return False
    if not isfinite(value) or value < least or value > 1e15:
        return False
    return least != 1.0 or (value == int(value) and value <= MOST_RANKS)


def predictions_text(rows: Sequence[TableRow], predicted_s: Sequence[float]) -> str:
    """Return predictions as CSV: ``id,predicted_time_us,skipped_because``, in the table's order.

    Args:
        rows: the table.
        predicted_s: of the rows that can be predicted, in order [s].
    """
    lines = ["id,predicted_time_us,skipped_because"]
    times = iter(predicted_s)
    for row in rows:
        told = "" if row.measured is None else f"{next(times) * 1e6:.6g}"
        lines.append(",".join(_cell(text) for text in (row.name, told, row.because)))
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    if text[:1] in {"=", "+", "-", "@"}:  # no spreadsheet takes a name for a formula
        text = f"'{text}"
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if set(text) & set(',"\n\r') else text
