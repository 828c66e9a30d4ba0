"""One cluster, opposite fears: what training, prefill and decode ask of the same network.

- training reduces its gradients once a step: one large message on a tight budget;
- prefill reduces activations of megabytes at every tensor-parallel boundary: bandwidth rules;
- decode reduces a few kilobytes twice a layer: the start-up rules, and more bandwidth buys nothing.

time = start-up + bytes / rate, by ``planner.collectives.cost.cheapest``; the larger part is what
dominates.

Source: E-S23-073 and the chapter's table of training against inference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.collectives.cost import cheapest
from planner.errors import InputError
from planner.network.premises import Premise
from planner.network.ranges import below_zero, not_above_zero, not_counts, refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.collectives.links import LinkNumbers, Spread
    from planner.model import ModelSpec

SOURCE = "E-S23-073"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLoad:
    """The collectives of one phase.

    Args:
        phase: ``training``, ``prefill`` or ``decode``.
        collective: what runs.
        payload_bytes: of one execution [bytes].
        per_layer: executions per layer [1].
        times: executions per step, or per token step [1].
        algorithm: the cheapest one.
        startup_s: of one execution [s].
        transfer_s: the rest of it [s].
        total_s: of all executions [s].
        dominates: ``start-up`` or ``bandwidth``.
        startup_share: of one execution, 0 to 1.
        budget_s: what all may take, None where there is no budget [s].
        in_budget: whether they do; None without a budget.
        gain_twice_rate_share: time that a network of twice the rate would save, 0 to 1.
    """

    phase: str
    collective: str
    payload_bytes: float
    per_layer: int
    times: int
    algorithm: str
    startup_s: float
    transfer_s: float
    total_s: float
    dominates: str
    startup_share: float
    budget_s: float | None
    in_budget: bool | None
    gain_twice_rate_share: float


def phase_load(
    phase: str,
    payload_bytes: float,
    times: int,
    spread: Spread,
    links: LinkNumbers,
    *,
    per_layer: int = 0,
    budget_s: float | None = None,
    available: Sequence[str] | None = None,
) -> PhaseLoad:
    """Return what *times* all-reduces of *payload_bytes* cost, and which part dominates.

    >>> from planner.collectives.links import Spread, two_tiers
    >>> links = two_tiers(inside_bytes_per_s=450e9, nic_bytes_per_s=50e9, inside_latency_s=2e-6)
    >>> phase_load("decode", 10240, 128, Spread.of(8, 8), links).dominates
    'start-up'
    >>> phase_load("prefill", 40 * 2**20, 128, Spread.of(8, 8), links).dominates
    'bandwidth'
    """
    latencies_s = {f"{tier.name}_latency_s": tier.latency_s for tier in links.tiers}
    refuse(
        not_above_zero(payload_bytes=payload_bytes),
        not_counts(times=times),
        below_zero(**latencies_s),
    )
    cost = cheapest("all_reduce", payload_bytes, spread, links, available=available)
    startup_s, time_s = float(cost.startup_s), float(cost.time_s)
    return PhaseLoad(
        phase=phase,
        collective="all_reduce",
        payload_bytes=payload_bytes,
        per_layer=per_layer,
        times=times,
        algorithm=cost.name,
        startup_s=startup_s,
        transfer_s=time_s - startup_s,
        total_s=times * time_s,
        dominates="start-up" if startup_s > time_s - startup_s else "bandwidth",
        startup_share=startup_s / time_s if time_s else 0.0,
        budget_s=budget_s,
        in_budget=None if budget_s is None else times * time_s <= budget_s,
        gain_twice_rate_share=(time_s - startup_s) / 2 / time_s if time_s else 0.0,
    )


def reductions_per_layer(model: ModelSpec) -> int:
    """Return the tensor-parallel all-reduces of one layer's forward pass.

    One behind attention and one behind the feed-forward; a parallel block has one for both.
    """
    return 1 if model.parallel_block else 2


def model_phases(
    model: ModelSpec,
    tp_spread: Spread,
    dp_spread: Spread,
    links: LinkNumbers,
    *,
    gradient_bytes: float,
    prefill_tokens: int = 4096,
    decode_tokens: int = 1,
    activation_bytes: float = 2.0,
    budget_s: float | None = 3e-3,
    available: Sequence[str] | None = None,
) -> tuple[PhaseLoad, ...]:
    """Return training, prefill and decode of *model* on the same links.

    Args:
        model: its shape gives hidden width, layers, and reductions a layer.
        tp_spread: where one tensor-parallel group sits.
        dp_spread: where one gradient group sits.
        links: the tiers' numbers.
        gradient_bytes: gradients one group reduces in a step [bytes].
        prefill_tokens: tokens of one prefill, m in m x h [1].
        decode_tokens: sequences decoded together, one token each [1].
        activation_bytes: bytes of one activation element [bytes].
        budget_s: what the gradients may take [s].
        available: algorithms to choose from.
    """
    refuse(
        not_counts(prefill_tokens=prefill_tokens, decode_tokens=decode_tokens),
        not_above_zero(activation_bytes=activation_bytes, gradient_bytes=gradient_bytes),
    )
    if tp_spread.group_size < 2:
        raise InputError("tensor parallel degree 1: expected 2 or more, or nothing is reduced")
    per_layer = reductions_per_layer(model)
    times = per_layer * model.layers
    row_bytes = model.hidden * activation_bytes
    return (
        phase_load(
            "training", gradient_bytes, 1, dp_spread, links, budget_s=budget_s, available=available
        ),
        phase_load(
            "prefill",
            prefill_tokens * row_bytes,
            times,
            tp_spread,
            links,
            per_layer=per_layer,
            available=available,
        ),
        phase_load(
            "decode",
            decode_tokens * row_bytes,
            times,
            tp_spread,
            links,
            per_layer=per_layer,
            available=available,
        ),
    )


def phase_premises() -> tuple[Premise, ...]:
    """Return what the table takes for granted."""
    return (
        Premise(
            states="One collective at a time on these links",
            holds=None,
            otherwise="`planner net sharing` prices what is active together",
        ),
        Premise(
            states="Start-up is latency and launch; the in-flight limit is in the rate",
            holds=None,
            otherwise="small messages also leave slots unfilled: `planner net concurrency`",
        ),
    )
