"""The text of ``planner net phases``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.net_text import Row, net_text, table_text, with_table
from planner.network import phases
from planner.units import format_binary_bytes, format_rate, format_share, format_time


def phases_text(
    inputs: Mapping[str, Any],
    seen: Sequence[phases.PhaseLoad],
    library: Sequence[phases.PhaseLoad],
    assumed: str,
) -> str:
    """Return the text of ``planner net phases``; *library* is empty where no GPU is known."""
    case = (
        f"{inputs['model']}, TP {inputs['tp']}"
        + (f", experts over {inputs['ep']}" if inputs["ep"] > 1 else "")
        + (f" on {inputs['cluster']}," if inputs["cluster"] else " on")
        + f" supernodes of {inputs['supernode']}; "
        f"{format_rate(inputs['scale_up_bytes_per_s'])} and "
        f"{format_time(inputs['scale_up_latency_s'])} inside, "
        f"{format_rate(inputs['nic_bytes_per_s'])} and "
        f"{format_time(inputs['nic_latency_s'])} across"
    )
    table = table_text(
        ("phase", "payload", "times", "start-up", "transfer", "total", "dominates"),
        [
            (
                _name(row),
                format_binary_bytes(row.payload_bytes),
                str(row.times) + (f" ({row.per_layer:g}/layer)" if row.per_layer else ""),
                format_time(row.startup_s),
                format_time(row.transfer_s),
                format_time(row.total_s),
                row.dominates,
            )
            for row in seen
        ],
    )
    rows = [
        Row(_name(row), format_share(row.gain_twice_rate_share), "saved by twice the rate")
        for row in seen
    ]
    rows += [
        Row(
            f"{row.phase} budget",
            format_time(row.budget_s),
            "met" if row.in_budget else "MISSED",
        )
        for row in seen
        if row.budget_s is not None
    ]
    rows += [
        Row(
            f"{_name(row)} by a library",
            format_time(row.total_s),
            f"{format_time(row.total_s / row.times)} each, {row.dominates} dominates",
        )
        for row in library
    ]
    says = [
        (
            "One cluster, opposite fears: large messages on a tight budget, and small messages "
            "very often. Bandwidth buys the first, fewer and shorter start-ups the second."
        ),
        *(["By a library: as stock NCCL was measured to run it, launch and all."] * bool(library)),
        *([f"Assumed: {assumed}."] * bool(assumed)),
    ]
    text = net_text(
        "Training, prefill, decode", case, rows, says, phases.phase_premises(), phases.SOURCE
    )
    return with_table(text, table)


def _name(row: phases.PhaseLoad) -> str:
    return row.phase + (" experts" if row.collective == "all_to_all" else "")
