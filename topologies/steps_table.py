"""A table of measured (or wanted) training steps to ``Run`` rows: the reader of its columns.

Columns are those of the published table of steps; a row that lacks what a prediction needs is
returned with the reason it is skipped, and whatever was assumed is said.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from planner.collectives.links import LinkNumbers, two_tiers
from planner.errors import InputError, SpecError
from planner.model import Attention, ModelSpec
from planner.steptime.columns import PRECISIONS, LayoutColumns
from planner.steptime.runs import Run
from planner.units import GB, US
from topologies.efficiency_catalogue import chip_named

NEEDED = ("id", "model", "layers", "hidden", "heads", "vocab", "seq", "gpu", "n_gpus", "tp", "pp",
          "dp", "global_batch")  # fmt: skip
MOST_ROWS = 1_000_000
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
    """A table's rows: those that can be predicted, and the others; *order* names all of them."""

    runs: tuple[Run, ...]
    skipped: tuple[Skipped, ...]
    order: tuple[str, ...]


def read_steps(path: Path) -> StepsTable:
    """Return the rows of the CSV file *path*.

    Raises:
        InputError: no such file, not UTF-8, no header, or a needed column is missing.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from error
    return steps_from_text(text, str(path))


def steps_from_text(text: str, name: str) -> StepsTable:
    """Return the rows of a CSV *text* called *name* in messages."""
    reader = csv.DictReader(text.splitlines())
    columns = reader.fieldnames or ()
    missing = [column for column in NEEDED if column not in columns]
    if missing:
        raise InputError(
            f"{name}:1: missing column{'s' if len(missing) > 1 else ''} {', '.join(missing)}; "
            f"a table of steps has at least {', '.join(NEEDED)}"
        )
    runs: list[Run] = []
    skipped: list[Skipped] = []
    order: list[str] = []
    try:
        for line, row in enumerate(reader, start=2):
            if len(order) >= MOST_ROWS:
                raise InputError(f"{name}:{line}: more than {MOST_ROWS:,} rows")
            label = (row.get("id") or f"line {line}").strip()
            order.append(label)
            source = (row.get("source") or name).strip()
            try:
                runs.append(_run(_Row(row), label, source))
            except (SpecError, _UnusableError) as error:
                skipped.append(Skipped(name=label, source=source, because=str(error)))
    except csv.Error as error:
        raise InputError(f"{name}:{reader.line_num}: {error}") from error
    return StepsTable(runs=tuple(runs), skipped=tuple(skipped), order=tuple(order))


class _UnusableError(Exception):
    """A row that cannot be predicted; the message is the reason."""


class _Row:
    """One row's cells: numbers by name, with what was assumed on the way."""

    def __init__(self, cells: Mapping[str, str | None]) -> None:
        self.cells = cells
        self.assumed: dict[str, str] = {}

    def text(self, column: str) -> str:
        return (self.cells.get(column) or "").strip()

    def number(self, column: str, default: float | None = None, because: str = "") -> float:
        text = self.text(column)
        if not text:
            if default is None:
                raise _UnusableError(f"{column} not stated")
            if because:
                self.assumed[column] = f"not stated: {default:g}, {because}"
            return default
        try:
            value = float(text)
        except ValueError:
            raise _UnusableError(f"{column}={text!r} is not a number") from None
        if not 0 <= value < 1e15:
            raise _UnusableError(f"{column}={text} is out of range")
        return value

    def count(self, column: str, default: float | None = None, because: str = "") -> float:
        value = self.number(column, default, because)
        if value < 1 or value != int(value):
            raise _UnusableError(f"{column}={value:g} is not a whole number of at least 1")
        return value


def _run(row: _Row, label: str, source: str) -> Run:
    chip = chip_named(_gpu(row))
    if chip is None:
        raise _UnusableError(f"gpu={row.text('gpu')!r} is not in the catalogue")
    model = _model(row)
    columns = _columns(row, model)
    gpus = row.count("n_gpus")
    if columns.gpus != gpus:
        raise _UnusableError(
            f"tp x cp x dp x pp = {columns.gpus:g} does not equal n_gpus = {gpus:g}"
        )
    if columns.micro_batches < 1:
        raise _UnusableError(
            f"global_batch = {columns.global_batch:g} is less than dp x micro_batch = "
            f"{columns.dp * columns.micro_batch:g}"
        )
    node = row.count("gpus_per_node", 8.0)
    supernode = row.number("scaleup_domain", node) or node
    nic = row.number("inter_bw_GBps_per_gpu", chip.nic_bytes_per_s / GB, "the GPU's usual NIC")
    if not nic and gpus > supernode:
        raise _UnusableError(
            f"inter_bw_GBps_per_gpu not stated, and no usual NIC of {chip.name} is known"
        )
    inner = row.number(
        "intra_bw_GBps", chip.scale_up_bytes_per_s / GB, "the GPU's own scale-up links"
    )
    plain = two_tiers(
        inside_bytes_per_s=inner * GB,
        nic_bytes_per_s=(nic or inner) * GB,
        inside_latency_s=_INNER_LATENCY_S,
        nic_latency_s=_OUTER_LATENCY_S,
    )
    links = _meshed(plain, inner * GB, chip.mesh_gpus) if chip.mesh_gpus else plain
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
        links=links,
        supernode=supernode,
        measured_s=row.number("measured_step_s", 0.0),
        published_s=row.number("predicted_step_s", 0.0),
        weak="weak" in row.text("check"),
        assumed=MappingProxyType(row.assumed),
    )


def _gpu(row: _Row) -> str:
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


def _model(row: _Row) -> ModelSpec:
    heads = int(row.count("heads"))
    hidden = int(row.count("hidden"))
    layers = int(row.count("layers"))
    experts = int(row.number("n_experts", 0.0))
    first_dense = int(row.number("first_dense_layers", 0.0))
    width = int(row.number("head_dim", 0.0)) or hidden // heads
    gated = row.number("gated_mlp", 0.0) > 0
    attention_text = row.text("attention")
    if attention_text.startswith("mla"):
        row.assumed["attention"] = "mla: ranks 1536 and 512, 64 rotary, as DeepSeek-V2/V3"
        attention = Attention(
            kind="mla", heads=heads, kv_heads=heads, head_dim=width + 64, v_head_dim=width,
            q_lora_rank=1536, kv_lora_rank=512, rope_head_dim=64,
        )  # fmt: skip
    else:
        attention = Attention(
            heads=heads, kv_heads=int(row.number("kv_heads", 0.0)) or heads, head_dim=width,
            v_head_dim=width,
        )  # fmt: skip
    windows: tuple[int, ...] = ()
    if "sliding" in attention_text:
        digits = "".join(c for c in attention_text.split("sliding")[1] if c.isdigit() or c == "(")
        size = int(digits.split("(")[0] or 128)
        windows = tuple(size if i % 2 == 0 else 0 for i in range(layers))
        if experts:
            row.assumed["expert_bias"] = "sliding attention and experts: biased, as gpt-oss"
    mtp = int(row.number("mtp_layers", 0.0))
    ffn = int(row.number("ffn", 4.0 * hidden, "4 x hidden"))
    limited = re.search(r"router limited to (\d+) nodes", row.text("notes").lower())
    return ModelSpec(
        name=row.text("model") or "model",
        hidden=hidden,
        vocab=int(row.count("vocab")),
        layers=layers,
        attention=attention,
        ffn=ffn,
        gated_mlp=gated,
        experts=experts,
        top_k=int(row.number("topk", 0.0)) if experts else 0,
        expert_ffn=int(row.number("moe_ffn", 0.0)) or ffn if experts else 0,
        shared_expert_ffn=int(row.number("shared_expert_ffn", 0.0)) if experts else 0,
        moe_layers=tuple(i >= first_dense for i in range(layers)) if experts else (),
        windows=windows,
        mtp_layers=mtp,
        router_groups=8 if limited else 0,
        router_top_groups=int(limited[1]) if limited else 0,
        expert_bias=bool(windows and experts),
        tied_embeddings=not gated,
        learned_positions=0 if gated else 2048,
        norm_bias=not gated,
    )


def _precision(text: str) -> float:
    low = text.lower()
    if "fp4" in low:
        return 3.0
    if "fp8" in low:
        return 2.0
    if "fp16" in low or ("float16" in low and "bfloat16" not in low):
        return 1.0
    return 0.0


def _recompute(row: _Row) -> float:
    text = row.text("recompute").lower()
    if text.startswith(("full", "uniform", "block", "1", "true", "yes")):
        return 2.0
    if text.startswith("selective"):
        return 1.0
    if not text or text.startswith("unknown"):
        row.assumed["recompute"] = "not stated: none"
    return 0.0


def _columns(row: _Row, model: ModelSpec) -> LayoutColumns:
    if not row.text("precision"):
        row.assumed["precision"] = "not stated: bf16"
    code = _precision(row.text("precision"))
    notes = row.text("notes").lower()
    old = code == 1.0
    narrow = (
        code != 0.0 or "release" in notes or "nemo" in notes
    )  # recipes that reduce 16-bit gradients
    serial = "without comm overlap" in notes or "no gradient bucket overlap" in notes
    apart = old or serial  # TP traffic and hops overlap since Transformer Engine
    sequence = row.number("sp", 0.0) > 0
    zero = _zero_stage(row, notes, 0.0 if old else 1.0)
    micro_scaled = "mx" in row.text("precision").lower()
    fused = _release(notes) >= (26, 6) and micro_scaled
    interleaved = row.number("vpp", 1.0) > 1
    spanning = row.number("ep", 1.0) > row.number("scaleup_domain", 8.0)
    schedule = _schedule(notes)
    stack = _stack(row, notes, code, zero)
    overlapped = (interleaved and (fused or (micro_scaled and spanning))) or schedule == 3.0
    return LayoutColumns(
        tp=row.count("tp"),
        cp=row.count("cp", 1.0),
        ep=row.count("ep", 1.0),
        etp=row.count("etp", 1.0),
        dp=row.count("dp"),
        pp=row.count("pp"),
        vpp=row.count("vpp", 1.0, "no interleaving"),
        zero_stage=zero,
        micro_batch=row.count("micro_batch", 1.0, "the least"),
        global_batch=row.count("global_batch"),
        seq=row.count("seq"),
        recompute=_recompute(row),
        precision=code,
        sequence_parallel=float(sequence),
        cp_kind=_cp_kind(row),
        schedule=schedule,
        overlap_gradients=float(not serial),
        overlap_parameters=float(not serial),
        domain_copies=float(model.experts > 0),
        activation_bytes=2.0,
        dispatch_bytes=1.0 if "dispatch in fp8" in notes or "fp8 dispatch" in notes else 2.0,
        combine_bytes=2.0,
        parameter_bytes=2.0,
        gradient_bytes=2.0 if (narrow or zero >= 2) and "fp32 gradients" not in notes else 4.0,
        optimizer_bytes=12.0 if not old else 14.0,
        overlap_tensor=float(sequence and not apart and (stack == 0.0 or "async tp" in notes)),
        overlap_experts=float(overlapped or _says(notes, "ep overlap", "1f1b overlap")),
        fused_experts=float(fused),
        overlap_hops=float(not apart),
        scatter_gather=1.0,
        compiled_loss=float(_says(notes, "loss compiled", "compiled loss")),
        stack=stack,
    )


def _zero_stage(row: _Row, notes: str, usual: float) -> float:
    """Return the stage of sharding: as stated, as the notes name it, or Megatron's default."""
    for phrase, stage in (("zero-3", 3.0), ("fsdp", 3.0), ("zero-2", 2.0)):
        if phrase in notes and not row.text("zero_stage"):
            return row.number("zero_stage", stage, f"the notes say {phrase}")
    return row.number("zero_stage", usual, "Megatron's default")


def _says(notes: str, *phrases: str) -> bool:
    return any(phrase in notes for phrase in phrases)


def _schedule(notes: str) -> float:
    """Return the code of the schedule that *notes* name, 1F1B where they name none."""
    if "dualpipe" in notes:
        return 3.0
    if _says(notes, "zero bubble", "zb-h1", "zb1p"):
        return 2.0
    return 1.0 if "gpipe" in notes else 0.0


def _stack(row: _Row, notes: str, code: float, zero: float) -> float:
    """Return the code of the kernels a row ran.

    What the notes say; else FP16 is from before fused attention, sharded steps are PyTorch's own
    kernels unless an NVIDIA framework ran them (operator by operator where FSDP or DeepSpeed is
    named without ``torch.compile``), and all others are Transformer Engine's.
    """
    if _says(notes, "no flash attention", "without flash attention", "unfused attention"):
        return 2.0
    if code == 1.0 and "flash attention" not in notes:
        row.assumed["attention_kernel"] = "FP16 runs are from before fused attention"
        return 2.0
    nvidia = "release" in notes or _says(notes, "nemo", "megatron", "transformer engine")
    if not (zero >= 2 and not nvidia) and not _says(notes, "deepspeed", "fsdp2"):
        return 0.0
    if _says(notes, "fsdp", "deepspeed", "eager") and "compile" not in notes:
        return 1.0
    row.assumed["kernels"] = "PyTorch's own, element-wise operators fused"
    return 3.0


def _release(notes: str) -> tuple[int, int]:
    """Return the year and month of the software release that *notes* state, else (0, 0)."""
    found = re.search(r"release (\d\d)\.(\d\d)", notes)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _cp_kind(row: _Row) -> float:
    notes = row.text("notes").lower()
    if "ulysses" in notes or "all-to-all" in notes or "all_to_all" in notes:
        return 2.0
    return 1.0 if "all-gather" in notes or "all_gather" in notes else 0.0
