"""A small plan, written by hand, for tests of what reads plans."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from cli.planner_output import inputs_sha256, json_text
from cli.report_html_read import PlanFile, read_plan

HOSTILE = ("<script>alert(1)</script>", '" onload="alert(1)', "javascript:alert(1)", "</title><b>",
           "'><img src=x onerror=alert(1)>", "]]>", "&lt;")  # fmt: skip


def family(name: str, digit: str, axes: list[str], collective: str, **more: Any) -> dict[str, Any]:
    return {
        "family": name, "digit": digit, "axes": axes, "group_size": 2, "groups": 4,
        "collective": collective, "payload_bytes": 10.0, "times_per_step": 3.0, "phase": "forward",
        "ends_only": False, **more,
    }  # fmt: skip


def entry(name: str, kind: str, seconds: float) -> dict[str, Any]:
    return {"name": name, "kind": kind, "seconds": seconds, "share": seconds / 2, "own_s": seconds,
            "gain_if_free_s": seconds, "premise": "as it was measured"}  # fmt: skip


def small_plan() -> dict[str, Any]:
    """Return 8 ranks, tp 2, dp 2, pp 2, on two domains of 4: pp crosses, the rest stays inside.

    pp: 4 chains of one hop of 10 bytes, 3 times: 120 bytes cross. Nothing else does.
    """
    layout = {
        "tp": 2, "cp": 1, "ep": 1, "etp": 1, "dp": 2, "edp": 2, "pp": 2, "vpp": 1, "zero": 1,
        "zero_stage": 1, "micro_batch": 1, "micro_batches": 4, "global_batch": 8, "seq": 128,
        "recompute": "none", "precision": "bf16", "order": "tp-cp-ep-dp-pp",
    }  # fmt: skip
    inputs: dict[str, Any] = {
        "cluster": "two-boxes", "cluster_asked": "generic", "supernode": 4, "gpus": 8,
        "model": "tiny", "layout": layout, "layout_given": ["tp"], "order": "tp-cp-ep-dp-pp",
        "model_shape": {"hidden": 8, "layers": 2, "vocab": 16, "attention": {}},
        "seed": 0, "tier": "supernode", "objective": "total", "time_limit_s": 20.0,
        "fabric": {"tiers": [{"tier": "supernode", "capacities": [4, 5], "bytes_per_s": 4e11,
                              "shared_bytes_per_s": 2e11, "latency_s": 3e-6}],
                   "accelerator": {"name": "chip"}, "nic": {}, "sources": {"nic": "a table"}},
        "assumed": {"seq": "128: as in the test"},
    }  # fmt: skip
    inputs["sha256"] = inputs_sha256(inputs)
    return {
        "schema": "planner.place/1", "version": "0.1.0", "inputs": inputs,
        "axes": [{"name": "tp", "size": 2, "stride": 1}, {"name": "dp", "size": 2, "stride": 2},
                 {"name": "pp", "size": 2, "stride": 4}],
        "choice": {"given": ["tp"], "layouts_considered": 1, "layouts_feasible": 1, "rejected": {},
                   "estimated_step_s": 2.0, "runner_up": None, "runner_up_step_s": None},
        "traffic": [family("tp_reduce", "tp", ["tp"], "all_reduce"),
                    family("dp_reduce", "dp", ["dp"], "reduce_scatter"),
                    family("pp_forward", "pp", ["pp"], "chain")],
        "placement": {
            "rank_to_gpu": list(range(8)), "gpus": [f"gpu{i}" for i in range(8)],
            "domains": [{"name": "a", "tier": "supernode", "capacity": 4, "ranks": [0, 1, 2, 3]},
                        {"name": "b", "tier": "supernode", "capacity": 5, "ranks": [4, 5, 6, 7]}],
        },
        "cut": {"tier": "supernode", "objective": "total", "objective_bytes": 120.0,
                "lower_bound_bytes": 120.0, "gap": 0.0, "proof": "bound", "method": "by hand",
                "by_family": {"pp_forward": 120.0}, "checked_bytes": 120.0},
        "tiers": [{"tier": "supernode", "cut_bytes": 120.0, "cut_time_s": 1e-9,
                   "bottleneck_link": "a"}],
        "baselines": [{"name": "megatron-order", "cut_bytes": 120.0, "step_s": 2.0},
                      {"name": "greedy", "cut_bytes": 480.0, "step_s": 2.5}],
        "step": {"total_s": 2.0, "interval_s": [1.5, 2.5], "serial_s": 2.2, "compute_s": 1.5,
                 "communication_s": {"pp": 0.5}, "exposed_s": {"pp": 0.25}, "bubble_s": 0.0,
                 "update_s": 0.0, "mfu": 0.4, "tokens_per_s": 512.0,
                 "critical_path": [entry("gemm", "compute", 1.75),
                                   entry("pp", "communication", 0.25)]},
        "memory": {"worst_stage_bytes": 6e9, "capacity_bytes": 8e9, "fits": True,
                   "parts": {"weights": 2e9, "activations": 4e9}},
    }  # fmt: skip


def taking(document: dict[str, Any], total_s: float, *interval_s: float) -> dict[str, Any]:
    """Return *document* with a step of *total_s*, an eighth of it on the pipeline's traffic.

    Tokens: 8 sequences of 128. The interval is a quarter to each side unless it is given.
    """
    document["step"] |= {
        "total_s": total_s, "tokens_per_s": 1024 / total_s,
        "interval_s": list(interval_s or (0.75 * total_s, 1.25 * total_s)),
        "critical_path": [{**entry("gemm", "compute", 0.875 * total_s), "share": 0.875},
                          {**entry("pp", "communication", 0.125 * total_s), "share": 0.125}],
    }  # fmt: skip
    return document


def crossing_bytes(document: dict[str, Any], **by_family: float) -> dict[str, Any]:
    """Return *document* with these bytes across its one tier, proved the least."""
    total = sum(by_family.values())
    document["cut"] |= {"objective_bytes": total, "lower_bound_bytes": total, "gap": 0.0,
                        "checked_bytes": total, "by_family": by_family}  # fmt: skip
    document["tiers"][0]["cut_bytes"] = total
    document["baselines"] = [{"name": "megatron-order", "cut_bytes": total, "step_s": 2.0}]
    return document


def saved(folder: Path, document: Any, name: str = "plan.json") -> PlanFile:
    path = folder / name
    path.write_text(json_text(document), encoding="utf-8")
    return read_plan(path)


class Tags(HTMLParser):
    """Collects what a browser would see as elements and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def many_boxes(count: int) -> dict[str, Any]:
    """Return a plan of *count* domains of one GPU each, tp 1, dp 1, a pipeline through all."""
    document = small_plan()
    document["axes"] = [{"name": "pp", "size": count, "stride": 1}]
    document["inputs"]["gpus"] = count
    document["inputs"]["layout"] |= {"tp": 1, "dp": 1, "pp": count}
    document["inputs"]["fabric"]["tiers"][0]["capacities"] = [1] * count
    document["placement"] = {
        "rank_to_gpu": list(range(count)), "gpus": [f"g{i}" for i in range(count)],
        "domains": [{"name": f"d{i}", "tier": "supernode", "capacity": 1, "ranks": [i]}
                    for i in range(count)],
    }  # fmt: skip
    document["traffic"] = [family("pp_forward", "pp", ["pp"], "chain", group_size=count, groups=1)]
    return crossing_bytes(document, pp_forward=30.0 * (count - 1))
