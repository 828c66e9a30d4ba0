"""What each family of collectives takes, for a layer and micro-batch or once a step.

Payloads are those of ``planner.traffic``: V = b (s/cp) h e for TP, K and V for CP, routed copies
for EP, parameters and gradients for DP, V (over tp with SP) for a pipeline hop.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.model import ModelSpec
from planner.steptime.columns import LayoutColumns, Values, anywhere, larger, select
from planner.steptime.parameters import StageParameters
from planner.steptime.wires import (
    Wire,
    Wires,
    all_reduce_s,
    all_to_all_s,
    chain_hop_s,
    gather_s,
    hop_s,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientTraffic:
    """Seconds of data parallelism.

    Args:
        reduce_s: gradients of a stage, once (ZeRO-3: once a micro-batch) [s].
        gather_s: parameters of a stage, once [s].
        expert_reduce_s, expert_gather_s: the same for the routed experts [s].
    """

    reduce_s: Values
    gather_s: Values
    expert_reduce_s: Values
    expert_gather_s: Values


def volume_bytes(model: ModelSpec, columns: LayoutColumns) -> Values:
    """Return V, the activations of one micro-batch on one rank [bytes]."""
    return columns.tokens * model.hidden * columns.activation_bytes


def tensor_s(model: ModelSpec, columns: LayoutColumns, wires: Wires) -> tuple[Values, Values]:
    """Return one pair of TP collectives (half a dense layer), forward and backward [s].

    Without SP an all-reduce each way; with SP a gather and a scatter, and the backward gathers
    the saved input again.
    """
    volume = volume_bytes(model, columns)
    reduce = all_reduce_s(volume, wires.tp)
    half = gather_s(volume, wires.tp)
    return (
        select(columns.sequence_parallel, 2.0 * half, reduce),
        select(columns.sequence_parallel, 3.0 * half, reduce),
    )


def context_s(model: ModelSpec, columns: LayoutColumns, wires: Wires) -> tuple[Values, Values]:
    """Return a layer's CP collectives, forward and backward [s]."""
    shape = model.attention
    width = shape.head_dim + shape.v_head_dim
    kv = larger(1.0, shape.kv_heads / columns.tp) * width
    hop = columns.tokens * kv * columns.activation_bytes
    one_hop = hop_s(hop, wires.cp)
    two_hops = hop_s(2.0 * hop, wires.cp)
    around = columns.cp - 1.0
    gathered = gather_s(hop * columns.cp, wires.cp)
    sent = larger(kv, columns.cp * width)  # Ulysses copies K and V to whole heads
    exchanged = columns.tokens * (shape.heads / columns.tp * width + sent)
    exchange = all_to_all_s(exchanged * columns.activation_bytes / columns.cp, wires.cp)
    ring = columns.cp_kind == 0
    ulysses = columns.cp_kind == 2
    forward = select(ring, around * one_hop, select(ulysses, exchange, gathered))
    backward = select(ring, around * two_hops, select(ulysses, exchange, 2.0 * gathered))
    return forward, backward


def expert_s(model: ModelSpec, columns: LayoutColumns, wires: Wires) -> tuple[Values, Values]:
    """Return a MoE layer's EP and ETP collectives one way, forward; the backward is the same [s].

    One copy per expert, or with ``domain_copies`` one copy per supernode that holds at least one
    of the token's experts: 1 - C(E - E_d, k) / C(E, k) of them, forwarded inside.
    """
    copies = columns.tokens / columns.tp * model.top_k
    wire = model.hidden * (columns.dispatch_bytes + columns.combine_bytes)
    pair = copies * wire / columns.ep
    flat = all_to_all_s(pair, wires.ep)
    ep = select(columns.domain_copies, _domain_copies_s(model, columns, wires), flat)
    latency = select(columns.ep > 1, wires.ep.inside_latency_s, 0.0)
    etp = gather_s(copies * model.hidden * columns.activation_bytes * columns.etp, wires.etp)
    return ep + latency, 2.0 * etp


def _domain_copies_s(model: ModelSpec, columns: LayoutColumns, wires: Wires) -> Values:
    """One copy per supernode over the NIC, forwarded inside to each rank that has an expert."""
    wire = wires.ep
    tokens = columns.tokens / columns.tp
    moved = tokens * model.hidden * (columns.dispatch_bytes + columns.combine_bytes)
    domains = (wire.k - 1.0) * reached_share(model, wire.m / columns.ep)
    limit = model.router_top_groups
    if limit and model.router_groups:
        limited = limit * (wire.k - 1.0) / larger(wire.k, 1.0)
        domains = select(wire.k > limit, limited, domains)
    outer = domains * moved / wire.rail_bytes_per_s
    ranks = (columns.ep - 1.0) * reached_share(model, 1.0 / columns.ep)
    inner = ranks * moved / wire.inside_bytes_per_s
    latency = wire.across_latency_s + wire.inside_latency_s
    return select(columns.ep > 1, larger(outer, inner) + latency, 0.0)


def reached_share(model: ModelSpec, share: Values) -> Values:
    """Return the probability that a token visits a domain holding *share* of the experts [1].

    1 - C(E - E_d, k) / C(E, k), as the product of the k draws without replacement.

    >>> from planner.model import Attention
    >>> eight = ModelSpec(name="m", hidden=1, vocab=1, layers=1, ffn=1, experts=8, top_k=2,
    ...     expert_ffn=1, moe_layers=(True,),
    ...     attention=Attention(heads=1, kv_heads=1, head_dim=1, v_head_dim=1))
    >>> round(reached_share(eight, 0.5), 4)  # 1 - C(4,2)/C(8,2)
    0.7857
    """
    missed: Values = 1.0
    outside = model.experts * (1.0 - share)
    for drawn in range(model.top_k):
        missed = missed * larger(0.0, outside - drawn) / (model.experts - drawn)
    return 1.0 - missed


def gradient_s(
    columns: LayoutColumns, parameters: StageParameters, wires: Wires
) -> GradientTraffic:
    """Return the gradient reductions and parameter gathers of one stage [s].

    Hybrid sharding scatters and gathers in the shard group, then sums each rank's shard over the
    replicas. A stage without routed experts runs no collective for them. Every piece pays the
    start-ups of its own collective: see ``_pieces``.
    """
    wire = columns.gradient_bytes + columns.widened_bytes
    plain = columns.zero_stage == 0
    dense, experts = (_pieces(columns, n) for n in (parameters.layers, parameters.moe_layers))

    def reduced(payload: Values, pieces: Values, ground: Wire, shard: Wire | None) -> Values:
        piece = payload / pieces
        scattered = gather_s(piece, shard or ground)
        if shard is not None and wires.dp_replicate is not None:
            scattered = scattered + all_reduce_s(piece / shard.n, wires.dp_replicate)
        if anywhere(plain):
            scattered = select(plain, all_reduce_s(piece, ground), scattered)
        return select(payload > 0, pieces * scattered, 0.0)

    def gathered(payload: Values, pieces: Values, ground: Wire) -> Values:
        sharded = (payload > 0) * (columns.zero_stage > 0)
        return select(sharded, pieces * gather_s(payload / pieces, ground), 0.0)

    weights = columns.parameter_bytes
    return GradientTraffic(
        reduce_s=reduced(parameters.dense * wire, dense, wires.dp, wires.dp_shard),
        gather_s=gathered(parameters.dense * weights, dense, wires.dp_shard or wires.dp),
        expert_reduce_s=reduced(parameters.experts * wire, experts, wires.edp, wires.edp_shard),
        expert_gather_s=gathered(
            parameters.experts * weights, experts, wires.edp_shard or wires.edp
        ),
    )


def _pieces(columns: LayoutColumns, layers: Values) -> Values:
    """Return the collectives that a stage's parameters are gathered or reduced in [1].

    Full sharding gathers and scatters layer by layer (PyTorch's FSDP and Megatron's take each
    layer as a unit), so that each pays a ring's start-ups; else all are taken as one.
    """
    return larger(1.0, select(columns.zero_stage >= 3, layers, 1.0))


def pipeline_hop_s(model: ModelSpec, columns: LayoutColumns, wires: Wires) -> Values:
    """Return one hop of activations over a stage boundary [s]: V, over tp with SP or scatter."""
    volume = volume_bytes(model, columns)
    parts = larger(columns.sequence_parallel, columns.scatter_gather)
    hop = select(parts, volume / columns.tp, volume)
    return chain_hop_s(hop, wires.pp)
