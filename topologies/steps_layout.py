"""The layout of one row of a table of steps, and how its software ran it: columns and notes."""

from __future__ import annotations

import re
from typing import Any

from planner.errors import LayoutError
from planner.layout import Layout, check_layout
from planner.model import ModelSpec
from planner.steptime.columns import STACKS, LayoutColumns
from topologies.steps_cells import Cells, UnusableError

_DEGREES = ("tp", "cp", "ep", "etp", "dp", "pp", "zero_stage", "micro_batch", "global_batch", "seq")
_EARLY_STOP = (2, 1)
"""PyTorch whose recomputation ends with the last tensor that is needed; FSDP2 is newer."""

_NEWER_ATTENTION = r"cudnn attention|flash ?attention[ -]?[34]\b|\bfa-?[34]\b"
"""Kernels written for Hopper or Blackwell, which PyTorch's own stacks run where they are asked for,
or where cuDNN is new enough: 632 TFLOP/s of an H100, where FlashAttention 2 does 329
(pytorch/pytorch issue 142132)."""

_EXCHANGE = r"(all[-_ ]?to[-_ ]?all|a2a)"
_COPY_FOR_EACH_EXPERT = rf"nccl {_EXCHANGE}|{_EXCHANGE}( token)? dispatch|dispatch[^;,]*{_EXCHANGE}"
_COPY_FOR_EACH_DOMAIN = r"deepep|hybridep|fused experts"
"""Dispatchers: NCCL's all-to-all sends a token once for each expert that it picks, DeepEP and
HybridEP once to each domain."""

_CONTEXT = r"\bcp\b|\bcontext"
_PYTORCH_STACKS = tuple(float(STACKS.index(name)) for name in ("eager", "compiled"))
_ENDS = 2
"""Layers that an interleaved split may have beyond the model's: Megatron can count the embedding
and the logits as one each, 126 layers on 16 x 8 chunks."""


def checked_columns(row: Cells, model: ModelSpec) -> LayoutColumns:
    """Return the layout of a row.

    Raises:
        UnusableError: its degrees cannot be, or text says nothing that is known; with all reasons.
    """
    columns = _columns(row, model)
    faults = _faults(columns, model, row.number("n_gpus"))
    if faults:
        raise UnusableError(*faults)
    return columns


def _faults(columns: LayoutColumns, model: ModelSpec, gpus: float) -> list[str]:
    faults = []
    if columns.gpus != gpus:
        faults.append(f"tp x cp x dp x pp = {columns.gpus:g} does not equal n_gpus = {gpus:g}")
    if columns.micro_batches < 1:
        faults.append(
            f"global_batch = {columns.global_batch:g} is less than dp x micro_batch = "
            f"{columns.dp * columns.micro_batch:g}"
        )
    if columns.vpp > 1 and columns.pp == 1:
        faults.append(f"vpp={columns.vpp:g} needs pp of at least 2")
    split = columns.pp * columns.vpp
    chunks = 1.0 if columns.pp <= model.layers and split <= model.layers + _ENDS else columns.vpp
    degrees: dict[str, Any] = {name: int(getattr(columns, name)) for name in _DEGREES}
    degrees["sequence_parallel"] = columns.sequence_parallel > 0
    if columns.micro_batches < 1:
        degrees["global_batch"] = int(columns.dp * columns.micro_batch)
    try:
        layout = Layout(**degrees, vpp=int(chunks))
        check_layout(layout, model, layout.gpus)
    except LayoutError as error:
        faults += error.faults
    return faults


def _precision(row: Cells) -> float:
    """Return the code of a row's precision, the narrowest that its cell names."""
    low = row.text("precision").lower()
    if not low:
        row.assumed["precision"] = "not stated: bf16"
        return 0.0
    for code, words in ((3.0, "fp4|float4"), (2.0, "fp8|float8"), (1.0, "fp16|(?<!b)float16"),
                        (0.0, "bf16|bfloat16")):  # fmt: skip
        if re.search(words, low):
            return code
    raise UnusableError(f"precision={low!r} is none of bf16, fp16, fp8, fp4")


def _recompute(row: Cells) -> float:
    text = row.text("recompute").lower()
    if text.startswith(("full", "uniform", "block", "1", "true", "yes")):
        return 2.0
    if text.startswith("selective"):
        return 1.0
    if not text or text.startswith("unknown"):
        row.assumed["recompute"] = "not stated: none"
    elif not text.startswith(("none", "no", "0", "false")):
        raise UnusableError(f"recompute={text!r} is none of none, selective, full")
    return 0.0


def _columns(row: Cells, model: ModelSpec) -> LayoutColumns:
    code = _precision(row)
    notes = row.text("notes").lower()
    old = code == 1.0
    serial = "without comm overlap" in notes or "no gradient bucket overlap" in notes
    apart = old or serial  # TP traffic and hops overlap since Transformer Engine
    sequence = row.number("sp", 0.0) > 0
    zero = _zero_stage(row, notes, 0.0 if old else 1.0)
    micro_scaled = "mx" in row.text("precision").lower()
    newest = _release(notes) >= (26, 6) and micro_scaled
    fused = newest or "fused experts" in notes
    interleaved = row.number("vpp", 1.0) > 1
    spanning = row.number("ep", 1.0) > row.number("scaleup_domain", 8.0)
    schedule = _schedule(notes)
    stack = _stack(row, notes, code, zero)
    gradient = _gradient_bytes(notes, code, zero)
    megatron = interleaved and stack == 0.0
    overlapped = (megatron and (fused or (micro_scaled and spanning))) or schedule == 3.0
    return LayoutColumns(
        tp=row.number("tp"),
        cp=row.number("cp", 1.0),
        ep=row.number("ep", 1.0),
        etp=row.number("etp", 1.0),
        dp=row.number("dp"),
        pp=row.number("pp"),
        vpp=row.number("vpp", 1.0, "no interleaving"),
        zero_stage=zero,
        micro_batch=row.number("micro_batch", 1.0, "the least"),
        global_batch=row.number("global_batch"),
        seq=row.number("seq"),
        recompute=_recompute(row),
        precision=code,
        sequence_parallel=float(sequence),
        cp_kind=_cp_kind(row),
        schedule=schedule,
        overlap_gradients=float(not serial),
        overlap_parameters=float(not serial),
        domain_copies=_domain_copies(row, notes, model, stack),
        activation_bytes=2.0,
        dispatch_bytes=1.0 if "dispatch in fp8" in notes or "fp8 dispatch" in notes else 2.0,
        combine_bytes=2.0,
        parameter_bytes=2.0,
        gradient_bytes=gradient,
        widened_bytes=_widened_bytes(notes, gradient),
        optimizer_bytes=12.0 if not old else 14.0,
        overlap_tensor=float(sequence and not apart and (stack == 0.0 or "async tp" in notes)),
        overlap_experts=float(overlapped or _says(notes, "ep overlap", "1f1b overlap")),
        fused_experts=float(fused),
        overlap_hops=float(not apart),
        scatter_gather=1.0,
        compiled_loss=float(_says(notes, "loss compiled", "compiled loss")),
        newer_attention=float(re.search(_NEWER_ATTENTION, notes) is not None),
        shard_gpus=_shard_gpus(row, notes),
        stops_early=float("fsdp2" in notes or _pytorch(notes) >= _EARLY_STOP),
        stack=stack,
    )


def _domain_copies(row: Cells, notes: str, model: ModelSpec, stack: float) -> float:
    """Return 1 where a token goes once to each domain with experts of it, 0 once to each expert.

    What the notes say; else NVIDIA's frameworks run DeepEP or HybridEP, as their recipes do, and
    PyTorch's own (torchtitan) an all-to-all of NCCL.
    """
    if not model.experts:
        return 0.0
    each_expert = re.search(_COPY_FOR_EACH_EXPERT, notes)
    if each_expert and not re.search(_COPY_FOR_EACH_DOMAIN, notes):
        return 0.0
    if re.search(_COPY_FOR_EACH_DOMAIN, notes) or stack not in _PYTORCH_STACKS:
        return 1.0
    row.assumed["dispatch"] = "not stated: PyTorch's all-to-all, a copy for each expert"
    return 0.0


def _gradient_bytes(notes: str, code: float, zero: float) -> float:
    """Return the bytes of a gradient: sharded steps and recipes of NVIDIA hold 16 bit [bytes]."""
    if "fp32 gradients" in notes:
        return 4.0
    return 2.0 if code != 0.0 or zero >= 2.0 or _says(notes, "release", "nemo") else 4.0


def _widened_bytes(notes: str, gradient_bytes: float) -> float:
    """Return what a gradient grows by before it is reduced: FSDP2 reduces in FP32 [bytes]."""
    in_wide = "fsdp2" in notes and "reduced in bf16" not in notes
    return 4.0 - gradient_bytes if in_wide else 0.0


def _shard_gpus(row: Cells, notes: str) -> float:
    """Return the ranks that share one copy of the parameters: with HSDP those of a supernode."""
    if "hsdp" not in notes:
        return 0.0
    members = row.number("cp", 1.0) * row.number("dp")
    domain = row.number("scaleup_domain", row.number("gpus_per_node", 8.0))
    row.assumed["hsdp"] = "sharded inside a scale-up domain, replicated across"
    shared = max(1.0, min(members, domain // row.number("tp")))
    if members % shared or shared % row.number("cp", 1.0):
        raise UnusableError(
            f"HSDP inside a scale-up domain: {shared:g} ranks of cp x dp = {members:g} share a "
            "copy: expected whole replicas"
        )
    inside = row.number("etp", 1.0) * row.number("ep", 1.0)
    if shared * row.number("tp") % inside:
        raise UnusableError(
            f"HSDP inside a scale-up domain: an expert group of etp x ep = {inside:g} ranks would "
            f"span replicas of {shared * row.number('tp'):g}"
        )
    return shared


def _zero_stage(row: Cells, notes: str, usual: float) -> float:
    """Return the stage of sharding: as stated, as the notes name it, or Megatron's default."""
    for phrase, stage in (("zero-3", 3.0), ("fsdp", 3.0), ("hsdp", 3.0), ("zero-2", 2.0)):
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


def _stack(row: Cells, notes: str, code: float, zero: float) -> float:
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
    fused = _says(notes, "compile", "fused element-wise")
    if _says(notes, "fsdp", "deepspeed", "eager") and not fused:
        return 1.0
    row.assumed["kernels"] = "PyTorch's own, element-wise operators fused"
    return 3.0


def _pytorch(notes: str) -> tuple[int, int]:
    """Return the version of PyTorch that *notes* state, else (0, 0)."""
    found = re.search(r"pytorch (\d+)\.(\d+)", notes)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _release(notes: str) -> tuple[int, int]:
    """Return the year and month of the software release that *notes* state, else (0, 0)."""
    found = re.search(r"release (\d\d)\.(\d\d)", notes)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _cp_kind(row: Cells) -> float:
    """Return the code of how a context is shared: what is said of CP, a ring where nothing is."""
    notes = row.text("notes").lower()
    of_cp = " ".join(clause for clause in re.split(r"[;,]", notes) if re.search(_CONTEXT, clause))
    if "ulysses" in notes or re.search(_EXCHANGE, of_cp):
        return 2.0
    return 1.0 if re.search(r"all[-_ ]?gather", of_cp) else 0.0
