"""The cells of one row of a table of steps: text and numbers by column, and what was assumed.

Every cell that ought to be a number is read before anything is made of it, so that a row is refused
with all of its faults at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from planner.units import GB
from topologies.plausible import CELLS

COUNTS = ("layers", "hidden", "heads", "vocab", "seq", "n_gpus", "gpus_per_node", "scaleup_domain",
          "tp", "cp", "pp", "vpp", "dp", "ep", "etp", "micro_batch", "global_batch")  # fmt: skip
"""Columns of whole numbers, 1 at least."""

RATES = ("intra_bw_GBps", "measured_step_s", "predicted_step_s")
"""Columns of numbers above 0."""

NIC = "inter_bw_GBps_per_gpu"
"""0 where there is none."""

NUMBERS = ("ffn", "kv_heads", "head_dim", "n_experts", "topk", "moe_ffn", "shared_expert_ffn",
           "first_dense_layers", "mtp_layers", "zero_stage")  # fmt: skip
"""Columns of whole numbers, 0 where a model has no such thing."""

FLAGS = ("sp", "gated_mlp")
"""Columns of 0 or 1."""

TEXTS = ("id", "source", "model", "gpu", "precision", "recompute", "attention", "notes", "check")

UNREAD = ("source_locator", "measured_tflops_per_gpu", "measured_mfu", "tokens_per_s_per_gpu",
          "step_origin", "tflops_kind", "predictor", "predicted_err_pct", "calc_tflops_full_attn",
          "calc_tflops_causal_attn", "tflops_ratio", "flags", "measured_memory_GiB",
          "reserved_memory_GiB")  # fmt: skip
"""Columns of the published tables that say where a row is from or what else was measured."""

COLUMNS = (*TEXTS, *COUNTS, *RATES, NIC, *NUMBERS, *FLAGS)

_MOST = 1e15


class UnusableError(Exception):
    """A row that cannot be predicted; the message has all reasons."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))


class Cells:
    """One row's cells.

    Args:
        cells: column to text, as read.

    Raises:
        UnusableError: a cell that is no number, or one out of range.
    """

    def __init__(self, cells: Mapping[str, str | None]) -> None:
        self.cells = cells
        self.assumed: dict[str, str] = {}
        faults = []
        for columns, right, says in (
            (COUNTS, _is_count, "is not a whole number of at least 1"),
            (RATES, _is_above_zero, "is not above 0: leave it empty where it is not known"),
            (NUMBERS, _is_whole, "is not a whole number"),
            (FLAGS, _is_flag, "is neither 0 nor 1"),
            ((NIC,), _is_any, ""),
        ):
            for column in columns:
                fault = _fault(column, self.text(column))
                value = 0.0 if fault else float(self.text(column) or 1)
                if not fault and not right(value):
                    fault = f"{column}={self.text(column)} {says}"
                fault = fault or _implausible(column, value, self.text(column))
                faults += [fault] if fault else []
        if faults:
            raise UnusableError(*faults)

    def text(self, column: str) -> str:
        """Return a cell's text, empty where there is none."""
        return (self.cells.get(column) or "").strip()

    def number(self, column: str, default: float | None = None, because: str = "") -> float:
        """Return a cell's number, or *default* where it is empty.

        Args:
            column: which.
            default: what is taken where nothing is stated; None where it must be.
            because: why that; it is remembered as assumed.

        Raises:
            UnusableError: empty, and there is no default.
        """
        text = self.text(column)
        if text:
            return float(text)
        if default is None:
            raise UnusableError(f"{column} not stated")
        if because:
            self.assumed[column] = f"not stated: {default:g}, {because}"
        return default

    def size(self, column: str, usual: float, because: str) -> int:
        """Return a cell's number, or *usual* where it is empty or 0, which is remembered."""
        value = self.number(column, 0.0)
        if not value:
            self.assumed[column] = f"not stated: {usual:g}, {because}"
        return int(value or usual)


def _fault(column: str, text: str) -> str:
    try:
        value = float(text or 1)
    except ValueError:
        return f"{column}={text!r} is not a number"
    most = _MOST if column not in CELLS else math.inf
    if 0 <= value < most:
        return ""
    return f"{column}={text} is out of range: expected 0 or more" + (
        f", below {most:.0e}" if value >= most else ""
    )


def _implausible(column: str, value: float, text: str) -> str:
    """Return what no run can have in *column*, or nothing; empty cells and 0 are none of it."""
    possible = CELLS.get(column)
    if possible is None or not text or not value:
        return ""
    fault = possible.fault(value * (GB if "GBps" in column else 1.0))
    return f"{column}={text}: {fault}" if fault else ""


def _is_any(_value: float) -> bool:
    return True


def _is_count(value: float) -> bool:
    return value >= 1 and value == int(value)


def _is_above_zero(value: float) -> bool:
    return value > 0


def _is_whole(value: float) -> bool:
    return value == int(value)


def _is_flag(value: float) -> bool:
    return value in (0, 1)
