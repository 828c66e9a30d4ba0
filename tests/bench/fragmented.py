"""How near to the least on a busy or damaged cluster: 9,600 GPUs, a free list in fragments.

    python -m tests.bench.fragmented [--limit SECONDS] [--gpus 1024,4096] [--domain 8,64]
        [--dead 0,1,5] [--model dense,moe] [--state busy,idle] [--seed N]

prints a row for each cluster, job and share of dead GPUs: free GPUs and domains that have any,
the gap, how it was proved, seconds, and whether a baseline does better. The aim is a gap of at
most 1 % in 60 s. Nothing here asserts a time; ``cases`` yields plain questions.

A busy cluster is filled by jobs of 1 to 512 GPUs, each on the boards that a shuffled list offers
next, until half of it is taken; then single GPUs die. Same seed, same list.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from planner.layout import Layout, check_layout
from planner.place import Question, solve_question
from planner.place.baselines import baselines
from planner.place.question import ask, cut_bytes
from planner.traffic import step_families
from topologies.model_reader import read_model

GPUS = 9600
BOARD = 8
BUSY_SHARE = 0.5
JOB_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
DOMAINS = (8, 64)
DEAD_PERCENT = (0, 1, 5)
SIZES = (1024, 2048, 4096)
STATES = ("busy", "idle")
MODELS = {"dense": "llama-3.1-405b", "moe": "deepseek-v3"}
_LIMIT_S = 60.0
_BASELINE_CELLS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question of the benchmark and what it stands for."""

    state: str
    domain: int
    dead_percent: int
    model: str
    gpus: int
    question: Question


def free_gpus(state: str, dead_percent: int, seed: int = 0) -> np.ndarray:
    """Return which of the 9,600 GPUs are free, shape [boards, 8] of booleans."""
    free = np.ones((GPUS // BOARD, BOARD), dtype=bool)
    if state == "busy":
        _fill(free, np.random.default_rng(seed))
    luck = np.random.default_rng([seed, 1]).random(free.shape)
    alive: np.ndarray = free & (luck >= dead_percent / 100)
    return alive


def _fill(free: np.ndarray, random: np.random.Generator) -> None:
    boards = random.permutation(len(free)).tolist()
    shared: list[int] = []  # boards that hold a job of less than a board
    taken = 0
    while taken < BUSY_SHARE * GPUS:
        size = int(random.choice(JOB_SIZES))
        taken += size
        for _ in range(size // BOARD):
            free[boards.pop()] = False
        if size < BOARD:
            if not shared or random.random() < 0.5:
                shared.append(boards.pop())
            board = shared[int(random.integers(len(shared)))]
            free[board, np.flatnonzero(free[board])[:size]] = False


def capacities(free: np.ndarray, domain: int) -> tuple[int, ...]:
    """Return the free GPUs of every domain that has any."""
    held = free.reshape(-1, domain).sum(axis=1)
    return tuple(held[held > 0].tolist())


def layout_of(model: str, gpus: int) -> Layout:
    """Return how the job is split: TP 8 and PP 16 dense; EP 64 and PP 16 with experts."""
    if model == "dense":
        return Layout(tp=8, pp=16, dp=gpus // 128, seq=8192, global_batch=4096)
    return Layout(tp=1, ep=64, pp=16, dp=gpus // 16, seq=4096, global_batch=4096)


def cases(
    *,
    states: tuple[str, ...] = STATES,
    domains: tuple[int, ...] = DOMAINS,
    dead: tuple[int, ...] = DEAD_PERCENT,
    models: tuple[str, ...] = tuple(MODELS),
    sizes: tuple[int, ...] = SIZES,
    seed: int = 0,
) -> Iterator[Case]:
    """Yield the benchmark's questions."""
    for model in models:
        spec = read_model(MODELS[model])
        for gpus in sizes:
            layout = layout_of(model, gpus)
            check_layout(layout, spec, gpus)
            families = step_families(spec, layout)
            for state in states:
                for domain in domains:
                    for percent in dead:
                        held = capacities(free_gpus(state, percent, seed), domain)
                        yield Case(
                            state=state,
                            domain=domain,
                            dead_percent=percent,
                            model=model,
                            gpus=gpus,
                            question=ask(layout, families, held),
                        )


def row(case: Case, limit_s: float, seed: int) -> str:
    """Solve one case and return its row of the table."""
    question = case.question
    start_s = perf_counter()
    answer = solve_question(question, time_limit_s=limit_s, seed=seed)
    wall_s = perf_counter() - start_s
    cut, bound = answer.objective_bytes, answer.lower_bound_bytes
    gap = 1 - bound / cut if cut > 0 else 0.0
    rivals = baselines(question, seed) if question.cells <= _BASELINE_CELLS else ()
    best = min((cut_bytes(question, home) for _, home in rivals), default=float("inf"))
    return (
        f"{case.state:5} {case.domain:6} {case.dead_percent:4} % {case.model:6} {case.gpus:5}"
        f" {sum(question.capacities):6} {len(question.capacities):8}"
        f" {cut / 1e12:10.3f} {100 * gap:7.2f} % {answer.proof.value:10} {wall_s:8.1f}"
        f" {'yes' if best < cut * (1 - 1e-9) else 'no':>7}  {answer.method}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=_LIMIT_S)
    parser.add_argument("--seed", type=int, default=0)
    for name, values in (
        ("gpus", SIZES),
        ("domain", DOMAINS),
        ("dead", DEAD_PERCENT),
        ("model", tuple(MODELS)),
        ("state", STATES),
    ):
        parser.add_argument(f"--{name}", default=",".join(map(str, values)))
    asked = parser.parse_args()
    print(  # noqa: T201
        "state domain   dead model   gpus   free  domains     cut TB       gap proof      seconds"
        "  beaten  found as"
    )
    for case in cases(
        states=tuple(asked.state.split(",")),
        domains=tuple(map(int, asked.domain.split(","))),
        dead=tuple(map(int, asked.dead.split(","))),
        models=tuple(asked.model.split(",")),
        sizes=tuple(map(int, asked.gpus.split(","))),
        seed=asked.seed,
    ):
        print(row(case, asked.limit, asked.seed), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
