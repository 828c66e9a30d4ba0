"""How long a large regular cluster takes to build and to seat, and how much memory.

    PYTHONPATH=. python tests/bench/scale.py [GPUS ...]

Every size and kind of layout runs in a process of its own; its time is that process's own (CPU), so
other work on the machine does not count, and its memory the most that it held. The cluster is
``four_tiers.yaml``: boards of 8, supernodes of 64, leaves of 512 and pods of 16,384; all four cuts
are made as low as they get, bounded, and counted again by the checker on the cluster's graph.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SIZES = (1024, 8192, 32_768, 131_072)
KINDS = ("dense", "experts")
CLUSTER = Path(__file__).with_name("four_tiers.yaml")
LIMIT_S, LIMIT_BYTES = 10.0, 2**31  # of 131,072 GPUs


def measured(kind: str, gpus: int) -> dict[str, Any]:
    """Return what one placement took, run here and now."""
    started_s = time.process_time()
    from planner.layout import Layout
    from planner.place import place
    from planner.traffic import step_families
    from topologies.fabric_catalogue import load_cluster
    from topologies.model_reader import read_model

    fabric = load_cluster(CLUSTER, gpus=gpus)
    if kind == "dense":
        model = read_model("llama-3.1-405b")
        layout = Layout(tp=8, cp=4, pp=16, dp=gpus // 512, global_batch=gpus // 512 * 16, seq=8192)
    else:
        model = read_model("deepseek-v3")
        layout = Layout(
            tp=2, cp=2, ep=min(64, gpus // 16), pp=16, dp=gpus // 64, global_batch=gpus // 4,
            seq=4096,
        )  # fmt: skip
    families = step_families(model, layout)
    assert fabric.graph is not None
    built_s = time.process_time() - started_s
    placement = place(layout, families, fabric)
    return {
        "kind": kind,
        "gpus": gpus,
        "build_s": built_s,
        "total_s": time.process_time() - started_s,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "tiers": [
            {"tier": cut.tier, "proof": cut.proof.value, "gap": cut.gap}
            for cut in placement.tiers
            if cut.tier in placement.tier_order
        ],
    }


def measured_apart(kind: str, gpus: int) -> dict[str, Any]:
    """Return the same, run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.scale", "--one", kind, str(gpus)],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row(found: dict[str, Any]) -> str:
    """Return one line of the table."""
    gaps = "  ".join(
        f"{cut['tier']} {'proved' if cut['proof'] != 'time_limit' else format(cut['gap'], '.2%')}"
        for cut in found["tiers"]
    )
    return (
        f"{found['gpus']:>9,}  {found['kind']:<8} {found['build_s']:>7.1f} {found['total_s']:>7.1f}"
        f" {found['peak_bytes'] / 2**20:>6.0f}  {gaps}"
    )


def main(arguments: list[str]) -> None:
    """Print the table."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(measured(arguments[1], int(arguments[2]))))  # noqa: T201
        return
    sizes = [int(text) for text in arguments] or list(SIZES)
    print(f"{'GPUs':>9}  {'layout':<8} {'build s':>7} {'all s':>7} {'MiB':>6}  gap by tier")  # noqa: T201
    for gpus in sizes:
        for kind in KINDS:
            print(row(measured_apart(kind, gpus)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
