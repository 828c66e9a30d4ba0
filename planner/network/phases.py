"""One cluster, opposite fears: what training, prefill and decode ask of the same network.

- training reduces its gradients once a step: one large message on a tight budget;
- prefill reduces activations of megabytes at every tensor-parallel boundary: bandwidth rules;
- decode reduces a few kilobytes twice a layer: the start-up rules, and more bandwidth buys nothing;
- experts on several GPUs add an all-to-all to them and one back from them, in every MoE layer.

time = start-up + bytes / rate, by ``planner.collectives.cost.cheapest``; the larger part is what
dominates.

Source: E-S23-073 and the chapter's table of training against inference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.collectives.cost import cheapest
from planner.network.premises import Premise
from planner.network.ranges import below_zero, not_above_zero, not_counts, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from planner.collectives.links import LinkNumbers, Spread
    from planner.model import ModelSpec

SOURCE = "derived in the text of planner.network.phases"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLoad:
    """The collectives of one phase.

    Args:
        phase: ``training``, ``prefill`` or ``decode``.
        collective: what runs.
        payload_bytes: of one execution; of one ordered pair of an all-to-all [bytes].
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


_EXCHANGES_PER_LAYER = 2
"""To the experts and back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSpreads:
    """Where the groups of the three phases sit.

    Args:
        tensor: one tensor-parallel group.
        gradients: one group that reduces gradients.
        experts: one group that shares a layer's experts; of one rank where none does.
    """

    tensor: Spread
    gradients: Spread
    experts: Spread


def phase_load(
    phase: str,
    payload_bytes: float,
    times: int,
    spread: Spread,
    links: LinkNumbers,
    *,
    collective: str = "all_reduce",
    per_layer: int = 0,
    budget_s: float | None = None,
    available: Mapping[str, Sequence[str]] | None = None,
) -> PhaseLoad:
    """Return what *times* collectives of *payload_bytes* cost, and which part dominates.

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
    known = None if available is None else available[collective]
    cost = cheapest(collective, payload_bytes, spread, links, available=known)
    startup_s, time_s = float(cost.startup_s), float(cost.time_s)
    return PhaseLoad(
        phase=phase,
        collective=collective,
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
    spreads: PhaseSpreads,
    links: LinkNumbers,
    *,
    gradient_bytes: float,
    prefill_tokens: int = 4096,
    decode_tokens: int = 1,
    activation_bytes: float = 2.0,
    budget_s: float | None = 3e-3,
    available: Mapping[str, Sequence[str]] | None = None,
) -> tuple[PhaseLoad, ...]:
    """Return training, prefill and decode of *model* on the same links.

    An all-reduce of tokens x h at every tensor-parallel boundary; an all-to-all of
    tokens x top-k x h / ep for each ordered pair to the experts and one back, in each MoE layer.

    Args:
        model: its shape gives hidden width, layers, reductions a layer, and experts.
        spreads: where the groups sit.
        links: the tiers' numbers.
        gradient_bytes: gradients one group reduces in a step [bytes].
        prefill_tokens: tokens of one prefill, m in m x h, on each rank of an expert group [1].
        decode_tokens: sequences decoded together, one token each, likewise [1].
        activation_bytes: bytes of one activation element [bytes].
        budget_s: what the gradients may take [s].
        available: algorithms to choose from, by collective.
    """
    refuse(
        not_counts(prefill_tokens=prefill_tokens, decode_tokens=decode_tokens),
        not_above_zero(activation_bytes=activation_bytes, gradient_bytes=gradient_bytes),
        _spread_faults(model, spreads),
    )
    row_bytes = model.hidden * activation_bytes
    loads = [
        phase_load(
            "training",
            gradient_bytes,
            1,
            spreads.gradients,
            links,
            budget_s=budget_s,
            available=available,
        )
    ]
    for phase, tokens in (("prefill", prefill_tokens), ("decode", decode_tokens)):
        loads += _inference_loads(phase, tokens * row_bytes, model, spreads, links, available)
    return tuple(loads)


def _inference_loads(
    phase: str,
    rows_bytes: float,
    model: ModelSpec,
    spreads: PhaseSpreads,
    links: LinkNumbers,
    available: Mapping[str, Sequence[str]] | None,
) -> Iterator[PhaseLoad]:
    """Yield what reductions and experts cost when tokens of *rows_bytes* pass all layers."""
    if spreads.tensor.group_size > 1:
        per_layer = reductions_per_layer(model)
        yield phase_load(
            phase,
            rows_bytes,
            per_layer * model.layers,
            spreads.tensor,
            links,
            per_layer=per_layer,
            available=available,
        )
    if spreads.experts.group_size > 1:
        yield phase_load(
            phase,
            rows_bytes * model.top_k / spreads.experts.group_size,
            _EXCHANGES_PER_LAYER * model.moe_layer_count,
            spreads.experts,
            links,
            collective="all_to_all",
            per_layer=_EXCHANGES_PER_LAYER,
            available=available,
        )


def _spread_faults(model: ModelSpec, spreads: PhaseSpreads) -> list[str]:
    tp, ep = int(spreads.tensor.group_size), int(spreads.experts.group_size)
    faults = []
    if ep > 1 and not model.experts:
        faults.append(f"ep={ep}: {model.name} has no experts: expected 1")
    elif ep > 1 and model.experts % ep:
        faults.append(f"ep={ep}: expected a divisor of the {model.experts} experts")
    if tp < 2 and ep < 2:
        faults.append(f"tp={tp}: expected 2 or more, or experts on several GPUs: nothing is sent")
    return faults


def phase_premises() -> tuple[Premise, ...]:
    """Return what the table takes for granted."""
    return (
        Premise(
            states="One collective at a time on these links",
            holds=None,
            otherwise="`planner net sharing` prices what is active together",
        ),
        Premise(
            states="Tokens go to all experts alike",
            holds=None,
            otherwise="the busiest expert's GPU sets the time of the all-to-all",
        ),
        Premise(
            states="Start-up is latency and launch; the in-flight limit is in the rate",
            holds=None,
            otherwise="small messages also leave slots unfilled: `planner net concurrency`",
        ),
    )
