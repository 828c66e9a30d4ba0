"""A plan read back, its cluster held against the one that it was made on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.fabric_figures_document import fabric_document
from cli.planner_inputs import Asked
from cli.planner_options import DEFAULT_TIME_LIMIT_S
from cli.step_inputs import Seated, read_plan_document, read_seated
from planner.errors import InputError
from planner.fabric import Fabric

_SAME_SHARE = 1e-9
_LARGEST = 1e30


def read_planned(plan: Path, *, cluster: str | None = None, seed: int = 0) -> Seated:
    """Return the plan in the file *plan*: inputs, and the GPU of every rank.

    A plan's seats are numbers of GPUs of its cluster, so that a cluster whose machines changed
    since is refused.

    Args:
        plan: the document of ``planner place --out``.
        cluster: name or file of the cluster, where it is not where the plan has it.
        seed: of what is drawn at random.

    Raises:
        InputError: no plan, no cluster, or one whose machines or tiers are others by now.
    """
    told = read_plan_document(plan).get("inputs")
    seated = read_seated(
        Asked(cluster=cluster), str(plan), seed=seed, time_limit_s=DEFAULT_TIME_LIMIT_S
    )
    filed = told.get("fabric") if isinstance(told, dict) else None
    if isinstance(filed, dict):
        changed = changes(filed, seated.inputs.fabric)
        if changed:
            raise InputError(
                *(f"{plan}: {change}" for change in changed),
                f"{seated.inputs.cluster} is not the cluster that the plan was made on: make the "
                "plan anew with planner place, or name the old file with --cluster",
            )
    return seated


def changes(filed: Mapping[str, Any], fabric: Fabric) -> list[str]:
    """Return what is not as it was in a plan's ``inputs.fabric``.

    A plan of an older version, without the hash of its machines, is held against its tiers alone.
    """
    now = fabric_document(fabric)
    tiers = filed.get("tiers")
    old = [t for t in tiers if isinstance(t, dict)] if isinstance(tiers, list) else []
    names = [t.get("tier") for t in old]
    if names != [t["tier"] for t in now["tiers"]]:
        return [f"planned with tiers {names}, now {[t['tier'] for t in now['tiers']]}"]
    found = []
    for before, after in zip(old, now["tiers"], strict=True):
        listed = before.get("capacities")
        sizes = listed if isinstance(listed, list) else []
        if sizes != list(after["capacities"]):
            found.append(
                f"tier {after['tier']}: planned with {_sizes(sizes)}, now "
                f"{_sizes(after['capacities'])}"
            )
        for key in ("bytes_per_s", "shared_bytes_per_s", "latency_s"):
            was, is_now = before.get(key), after[key]
            number = isinstance(was, int | float) and abs(was) < _LARGEST
            if not number or abs(was - is_now) > _SAME_SHARE * abs(is_now):
                found.append(f"tier {after['tier']}: {key} was {was}, is {is_now}")
    machines = filed.get("machines_sha256", now["machines_sha256"])
    if not found and machines != now["machines_sha256"]:
        found.append("its machines have other names, another order, or hang on other switches")
    return found


def _sizes(sizes: Any) -> str:
    """Return e.g. ``4 domains of 8, 8, 8, ... GPUs``."""
    few = ", ".join(map(str, list(sizes)[:4])) + (", ..." if len(sizes) > 4 else "")
    return f"{len(sizes)} domains of {few} GPUs"
