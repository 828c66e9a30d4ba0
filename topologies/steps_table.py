"""A table of measured (or wanted) training steps to ``Run`` rows: the reader of its columns.

Columns are those of the published table of steps; a row that lacks what a prediction needs is
returned with the reasons it is skipped, and whatever was assumed is said.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from planner.collectives.links import LinkNumbers, two_tiers
from planner.documents import content_of
from planner.errors import InputError, SpecError
from planner.model import ModelSpec
from planner.steptime.columns import PRECISIONS, LayoutColumns
from planner.steptime.runs import Run
from planner.steptime.step import model_flops
from planner.units import GB, US, format_flops
from topologies.efficiency_catalogue import Chip, chip_named
from topologies.fabric_accelerators import accelerator_names
from topologies.file_kinds import handed_as
from topologies.steps_cells import COLUMNS, NIC, UNREAD, Cells, UnusableError
from topologies.steps_layout import checked_columns
from topologies.steps_model import model_of

NEEDED = ("id", "model", "layers", "hidden", "heads", "vocab", "seq", "gpu", "n_gpus", "tp", "pp",
          "dp", "global_batch")  # fmt: skip
MOST_ROWS = 1_000_000
_MOST_BYTES = 1024 * 2**20
"""A kilobyte for each of the rows."""
_USUAL_NODE = 8.0
_INNER_LATENCY_S = 5.0 * US
_OUTER_LATENCY_S = 15.0 * US


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A row that cannot be predicted, and why."""

    name: str
    source: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsTable:
    """A table of steps.

    Args:
        rows: in the order of the file.
        unknown: columns that nothing is read from.
    """

    rows: tuple[Run | Skipped, ...]
    unknown: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[Run, ...]:
        """The rows that can be predicted."""
        return tuple(row for row in self.rows if isinstance(row, Run))

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The others."""
        return tuple(row for row in self.rows if isinstance(row, Skipped))


def read_steps(path: Path, own: Chip | None = None) -> StepsTable:
    """Return the rows of the CSV file *path*.

    Args:
        path: the file.
        own: an accelerator that rows may name beside those of the catalogue.

    Raises:
        InputError: no such file, not UTF-8, no header, or a needed column is missing.
    """
    try:
        text = table_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from error
    with handed_as("runs", path):
        return steps_from_text(text, str(path), own)


def table_bytes(path: Path) -> bytes:
    """Return the bytes of the CSV file *path*; of a pipe the same ones each time.

    Raises:
        InputError: it cannot be read, or is larger than any table.
    """
    try:
        content = content_of(path, _MOST_BYTES)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    if len(content) > _MOST_BYTES:
        raise InputError(f"{path}: larger than {_MOST_BYTES / 2**20:,.0f} MiB: no table is")
    return content


def steps_from_text(text: str, name: str, own: Chip | None = None) -> StepsTable:
    """Return the rows of a CSV *text* called *name* in messages; *own* as of ``read_steps``."""
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        header = next(reader, [])
        _check_header(header, name)
        rows = tuple(_rows(reader, header, name, own))
    except csv.Error as error:
        raise InputError(f"{name}:{reader.line_num}: {error}") from error
    known = {*COLUMNS, *UNREAD, ""}
    return StepsTable(rows=rows, unknown=tuple(one for one in header if one not in known))


def _check_header(header: Sequence[str], name: str) -> None:
    missing = [column for column in NEEDED if column not in header]
    twice = sorted({column for column in header if column and header.count(column) > 1})
    faults = []
    if missing:
        faults.append(
            f"{name}:1: missing column{'s' if len(missing) > 1 else ''} {', '.join(missing)}; "
            f"a table of steps has at least {', '.join(NEEDED)}, with commas between them"
        )
    faults += [f"{name}:1: column {column} is there more than once" for column in twice]
    if faults:
        raise InputError(*faults)


def _rows(
    reader: Iterator[list[str]], header: Sequence[str], name: str, own: Chip | None
) -> Iterator[Run | Skipped]:
    for number, row in enumerate((row for row in reader if row), start=1):
        if number > MOST_ROWS:
            raise InputError(f"{name}: more than {MOST_ROWS:,} rows")
        cells = dict(zip(header, row, strict=False))
        label = cells.get("id", "").strip() or f"row {number}"
        source = cells.get("source", "").strip() or name
        try:
            if len(row) != len(header):
                needed = "a text with commas needs quotes" if len(row) > len(header) else "too few"
                raise UnusableError(f"{len(row)} cells, but {len(header)} columns: {needed}")
            yield _run(Cells(cells), label, source, own)
        except (SpecError, UnusableError) as error:
            yield Skipped(name=label, source=source, because=str(error))


def _run(row: Cells, label: str, source: str, own: Chip | None) -> Run:
    chip = chip_named(_gpu(row), own)
    if chip is None:
        cluster = f"the cluster's, {own.name}" if own else "that of a cluster file, with --cluster"
        raise UnusableError(
            f"gpu={row.text('gpu')!r} is not in the catalogue: {', '.join(accelerator_names())}; "
            f"or {cluster}"
        )
    model = model_of(row)
    columns = checked_columns(row, model)
    gpus = row.number("n_gpus")
    supernode = _supernode(row, chip)
    _refuse_beyond_peak(row, model, columns, chip)
    return Run(
        name=label,
        source=source,
        group=(
            f"{source} {model.name} on {gpus:g} {row.text('gpu')}, {columns.global_batch:g} x "
            f"{columns.seq:g} tokens, {PRECISIONS[int(columns.precision)]}"
        ),
        model=model,
        columns=columns,
        accelerator=chip.accelerator,
        chip=chip.fitted_as,
        links=_links(row, chip, gpus > supernode),
        supernode=supernode,
        measured_s=row.number("measured_step_s", 0.0),
        published_s=row.number("predicted_step_s", 0.0),
        weak="weak" in row.text("check"),
        assumed=MappingProxyType(row.assumed),
    )


def _refuse_beyond_peak(row: Cells, model: ModelSpec, columns: LayoutColumns, chip: Chip) -> None:
    """Refuse a measured step in which the GPUs would have done more than their peak."""
    peaks = chip.accelerator.peak_flops_per_s
    precision = PRECISIONS[int(columns.precision)]
    fastest = max((peaks[p] for p in (precision, "bf16", "fp16") if p in peaks), default=0.0)
    flops = model_flops(model, columns)
    least_s = flops / (float(columns.gpus) * fastest) if fastest else 0.0
    if 0.0 < row.number("measured_step_s", 0.0) < least_s:
        raise UnusableError(
            f"measured_step_s={row.text('measured_step_s')} is less than the {least_s:.3g} s that "
            f"{columns.gpus:g} {chip.name} at their peak of {format_flops(fastest)} need for "
            f"{columns.global_batch:g} x {columns.seq:g} tokens: a step is meant, in seconds"
        )


def _supernode(row: Cells, chip: Chip) -> float:
    if chip.domain_gpus:
        return row.number("scaleup_domain", chip.domain_gpus, f"the domain of {chip.name}")
    node = row.number("gpus_per_node", _USUAL_NODE)
    return row.number("scaleup_domain", node, "a node")


def _links(row: Cells, chip: Chip, leaves_the_supernode: bool) -> LinkNumbers:
    nic = row.number(NIC, chip.nic_bytes_per_s / GB, "the GPU's usual NIC")
    if not nic and leaves_the_supernode:
        none = f"{NIC} not stated, and no usual NIC of {chip.name} is known"
        stated = f"{NIC}=0, but the GPUs do not fit in one supernode"
        raise UnusableError(stated if row.text(NIC) else none)
    inner = row.number(
        "intra_bw_GBps", chip.scale_up_bytes_per_s / GB, "the GPU's own scale-up links"
    )
    if not inner:
        raise UnusableError(f"intra_bw_GBps not stated, and {chip.name}'s own is not known")
    plain = two_tiers(
        inside_bytes_per_s=inner * GB,
        nic_bytes_per_s=(nic or inner) * GB,
        inside_latency_s=_INNER_LATENCY_S,
        nic_latency_s=_OUTER_LATENCY_S,
    )
    return _meshed(plain, inner * GB, chip.mesh_gpus) if chip.mesh_gpus else plain


def _gpu(row: Cells) -> str:
    """Return what the row calls its GPU; an A100 of 2020 is the one of 40 GB and 1,555 GB/s."""
    called = row.text("gpu")
    if called.upper() == "A100" and "a100 (2020)" in row.text("notes").lower():
        row.assumed["gpu"] = "an A100 of 2020: 40 GB, those of 80 GB came in that November"
        return "A100-40GB"
    return called


def _meshed(links: LinkNumbers, inner_bytes_per_s: float, gpus: int) -> LinkNumbers:
    """Return *links* of a full mesh of *gpus*: between two of them one link of many."""
    pair = inner_bytes_per_s / (gpus - 1)
    return replace(links, tiers=(replace(links.inside, pair_bytes_per_s=pair), *links.outer))
