"""How many layouts are proved, how fast: every power-of-two layout of 1024 GPUs.

    python -m tests.bench.proved_layouts [--limit SECONDS] [--every N] [--sample] [--cluster NAME]

prints one row for each model and cluster: layouts, share proved optimal, share proved within 2 s,
the mean and largest gap of the rest, and the time of one placement on an otherwise idle machine.
``--sample`` takes 13 layouts of Llama-3.1-405B and 28 of DeepSeek-V3, evenly spread over all.
Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import monotonic

from planner.errors import LayoutError
from planner.layout import Layout, check_layout
from planner.model import ModelSpec
from planner.place import Proof, solve_question
from planner.place.baselines import baselines
from planner.place.question import ask, cut_bytes
from planner.traffic import step_families
from topologies.model_reader import read_model

GPUS = 1024
CLUSTERS = {
    "8": (8,) * 128,
    "64": (64,) * 16,
    "72": (*(72,) * 14, 16),
    "384+384+256": (384, 384, 256),
    "3x384": (384, 384, 384),
}
POWERS = (1, 2, 4, 8, 16, 32, 64)
SAMPLE = {"llama-3.1-405b": slice(1, None, 12), "deepseek-v3": slice(3, None, 47)}
SOON_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One placement: its gap, whether proved, its time, and whether a baseline beats it."""

    gap_share: float
    proved: bool
    wall_s: float
    beaten: bool


def layouts(model: ModelSpec) -> Iterator[Layout]:
    """Yield every valid layout with power-of-two degrees, TP up to 64, CP and PP up to 16."""
    experts = (1, 2, 4, 8, 16, 32, 64, 128, 256) if model.experts else (1,)
    for tp in POWERS:
        for cp in POWERS[:5]:
            for pp in POWERS[:5]:
                dp = GPUS // (tp * cp * pp)
                for ep in experts:
                    if dp < 1:
                        continue
                    try:
                        layout = Layout(
                            tp=tp, cp=cp, dp=dp, pp=pp, ep=ep, seq=8192, global_batch=4096
                        )
                        check_layout(layout, model, GPUS)
                    except LayoutError:
                        continue
                    yield layout


def placed(model: ModelSpec, layout: Layout, capacities: tuple[int, ...], limit_s: float) -> Row:
    """Place one layout and hold it against the baselines."""
    question = ask(layout, step_families(model, layout), capacities)
    start_s = monotonic()
    answer = solve_question(question, time_limit_s=limit_s)
    wall_s = monotonic() - start_s
    rivals = [cut_bytes(question, home) for _, home in baselines(question, 0)]
    gap = 0.0
    if answer.objective_bytes > 0:
        gap = 1 - answer.lower_bound_bytes / answer.objective_bytes
    return Row(
        gap_share=gap,
        proved=answer.proof is not Proof.INCUMBENT,
        wall_s=wall_s,
        beaten=min(rivals) < answer.objective_bytes * (1 - 1e-9),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=0.0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--cluster", choices=tuple(CLUSTERS), action="append")
    asked = parser.parse_args()
    print(  # noqa: T201
        "model           cluster       layouts  proved  within 2 s  mean gap  worst gap  median s"
        "   worst s  beaten"
    )
    for name, sample in SAMPLE.items():
        model = read_model(name)
        for cluster in asked.cluster or CLUSTERS:
            some = list(layouts(model))[sample if asked.sample else slice(None, None, asked.every)]
            rows = [placed(model, layout, CLUSTERS[cluster], asked.limit) for layout in some]
            gaps = [row.gap_share for row in rows if not row.proved]
            soon = sum(row.proved and row.wall_s <= SOON_S for row in rows)
            print(  # noqa: T201
                f"{name:15} {cluster:12} {len(rows):8} {100 * (1 - len(gaps) / len(rows)):6.1f} %"
                f" {100 * soon / len(rows):9.1f} %"
                f" {100 * sum(gaps) / max(1, len(gaps)):7.2f} % {100 * max(gaps, default=0):8.2f} %"
                f" {median(row.wall_s for row in rows):9.3f} {max(row.wall_s for row in rows):9.3f}"
                f" {sum(row.beaten for row in rows):7}",
                flush=True,
            )


if __name__ == "__main__":
    main()
