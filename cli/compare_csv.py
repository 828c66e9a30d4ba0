"""The ranking of ``planner compare`` as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.compare_front import pareto_rows
from cli.report_words import plain_cell
from cli.search_report import short_layout, used_bytes
from planner.search.finalist import is_tie
from planner.steptime.document import interval_s
from planner.steptime.spread import DIGITS

if TYPE_CHECKING:
    from cli.compare_report import Comparison


def compare_csv(found: Comparison) -> str:
    """Return the ranking as CSV; what is not known stays empty.

    ``dp_shard`` is the ranks of data parallelism that share one copy of what ZeRO shards, all of
    ``dp`` where none is fewer; ``cut_bytes`` is of the seats that the step is timed in. Rows are
    ranked by ``fastest_step_s``, of the cluster's fastest layout; all else is of ``layout``.
    """
    head = ["cluster", "supernode", "gpus", "label", "layout", "step_s", "interval_low_s",
            "interval_high_s", "tie_with_first", "mfu", "tokens_per_s", "memory_bytes", "cut_bytes",
            *(f"{d}_bytes" for d in DIGITS), "power_w", "days", "cost", "energy_j",
            "head_room_bytes", "switches", "cost_per_million_tokens", "on_front",
            "tokens_per_j", "dp_shard", "least_cut_bytes", "fastest_step_s",
            "cut_proof"]  # fmt: skip
    lines = [",".join(head)]
    points = pareto_rows(found)
    for one, run, point in zip(found.compared.ranked, found.runs, points, strict=True):
        f = one.finalist
        low, high = interval_s(f.step)
        fastest = found.compared.fastest.get(one.candidate.name)
        cells = [
            one.candidate.name, one.candidate.fabric.full_supernode_gpus,
            one.candidate.gpus, one.label, short_layout(f.layout), f.step_s, low, high,
            is_tie(found.first.finalist, f), float(f.step.mfu), float(f.step.tokens_per_s),
            used_bytes(f.memory), f.seated_bytes,
            *(f.crossed.get(d) for d in DIGITS), run.power_w or None, run.days, run.cost,
            run.energy_j or None, point["head_room_bytes"], point["switches"],
            point["cost_per_million_tokens"], point["on_front"], run.tokens_per_j,
            f.layout.dp_shard or f.layout.dp, float(f.placement.checked_bytes),
            None if fastest is None else fastest.step_s, f.placement.proof.value,
        ]  # fmt: skip
        lines.append(",".join("" if cell is None else csv_cell(cell) for cell in cells))
    return "\n".join(lines) + "\n"


def csv_cell(value: object) -> str:
    """Return *value* as one cell; a text that a spreadsheet would run is made plain.

    >>> csv_cell("=1+1"), csv_cell("a, b"), csv_cell(-0.5)
    ("'=1+1", '"a, b"', '-0.5')
    """
    cell = plain_cell(value) if isinstance(value, str) else str(value)
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set(',"\n\r') else cell
