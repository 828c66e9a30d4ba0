"""A sweep's results as one flat Parquet table: a row a combination, a column a figure.

SQLite keeps the results while a sweep runs, for it survives any end and knows what is done; Parquet
can only be written whole, so it is an export of the finished sweep. PyArrow is optional
(``pip install 'cluster-topology-planner[parquet]'``) and imported here only.
"""

# ruff: noqa: PLC0415 - pyarrow is optional, and slow to import

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from cli.search_report import shard_ranks
from planner.errors import InputError

_ASKED = ("model", "cluster", "supernode", "gpus", "seq", "prices")
_LAYOUT = ("tp", "cp", "ep", "etp", "dp", "pp", "vpp", "zero_stage", "micro_batch", "global_batch",
           "recompute", "precision")  # fmt: skip
_STEP = ("total_s", "compute_s", "bubble_s", "update_s", "mfu", "tokens_per_s")
_RUN = ("power_w", "cost_per_token")
_SHARD = "dp_shard"  # last, so that what reads columns by their place still does


def refuse_without_pyarrow() -> None:
    """Refuse before any work is done where the table could not be written.

    Raises:
        InputError: PyArrow is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise InputError(
            "--parquet needs PyArrow: pip install 'cluster-topology-planner[parquet]'"
        ) from None
    del pa


def flat_row(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return one result's figures by column; None where it has none.

    Memory has the margin in it: it is what must be free for the layout to fit. ``dp_shard`` is all
    of ``dp`` where no fewer ranks share one copy of what ZeRO shards.
    """
    best = one["best"] or {}
    step, memory, cut = best.get("step", {}), best.get("memory", {}), best.get("cut", {})
    return {
        **{name: one[name] for name in _ASKED},
        "refused": "; ".join(one["refused"]) or None,
        **{name: best.get("layout", {}).get(name) for name in _LAYOUT},
        **{f"step_{name}": step.get(name) for name in _STEP},
        "memory_bytes": memory["worst_stage_bytes"] + memory["margin_bytes"] if memory else None,
        "seated_bytes": best.get("seated_bytes"),
        "cut_bytes": cut.get("objective_bytes"),
        "cut_gap_share": cut.get("gap"),
        "cut_proof": cut.get("proof"),
        **{name: (one["run"] or {}).get(name) for name in _RUN},
        _SHARD: shard_ranks(best["layout"]) if best else None,
    }


def parquet_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the results of a sweep's document as a Parquet file, the same for the same results."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = ("model", "cluster", "prices", "refused", "recompute", "precision", "cut_proof")
    whole = ("supernode", "gpus", "seq", *_LAYOUT, _SHARD)
    rows = [flat_row(one) for one in document["results"]]
    kinds = {
        name: pa.string() if name in text else pa.int64() if name in whole else pa.float64()
        for name in flat_row(_EMPTY)
    }
    table = pa.Table.from_pylist(
        rows, schema=pa.schema(kinds, metadata={"inputs_sha256": document["inputs"]["sha256"]})
    )
    held = io.BytesIO()
    pq.write_table(table, held, compression="zstd")
    return held.getvalue()


_EMPTY: Mapping[str, Any] = {
    **dict.fromkeys(_ASKED), "refused": [], "best": None, "run": None,
}  # fmt: skip
