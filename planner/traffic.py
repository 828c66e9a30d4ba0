"""Layout x model to the families of collectives of one step.

Every formula takes the layout's degrees as scalars or as arrays (one entry a layout) and
broadcasts. Payloads and counts are means over the pipeline's stages: summed over all groups they
give the step's exact bytes when the stages' groups are spread alike.

Source: Megatron-LM's forward and backward passes, arXiv 1909.08053 (TP), 2205.05198 (SP),
2104.04473 (PP, VPP), 1910.02054 (ZeRO), 2304.11277 (hybrid sharding), 2006.16668 (EP), 2310.01889
(ring CP), 2309.14509 (Ulysses).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.layout import PART_OF, groups_along

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.layout import Layout
    from planner.model import ModelSpec

_CROSS_ENTROPY_REDUCES = 3  # max, predicted logit, sum of exponentials (vocabulary parallel)
_CROSS_ENTROPY_BYTES = 4  # logit statistics are FP32


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """All groups that run one kind of collective, and how much each moves.

    Args:
        name: ``tp_forward_gather``, ``dp_reduce``, ``ep_forward_dispatch``, ``pp_forward`` …
        digit: the parallel degree the family belongs to: ``tp``, ``cp``, ``ep``, ``etp``,
            ``dp`` (dense gradients, spans cp x dp; with hybrid sharding a part of that), ``edp``,
            ``pp``.
        axes: indices into ``layout.axes`` along which a group's members vary.
        group_size: members of one group [1].
        groups: groups of the family [1].
        collective: ``all_reduce``, ``reduce_scatter``, ``all_gather``, ``all_to_all``,
            ``domain_all_to_all`` (one copy of a token for each domain), ``ring``, ``chain``.
        payload_bytes: V of all_reduce/reduce_scatter/all_gather (the full vector), v per ordered
            pair of all_to_all, of domain_all_to_all all tokens of one member once, bytes of one
            hop of ring and chain [bytes].
        times_per_step: executions by one group in one step, mean over pipeline stages [1].
        phase: ``forward``, ``backward`` or ``end``.
        ends_only: only the first and the last member along the axes take part (the link that
            closes an interleaved pipeline, tied embeddings).
        experts, top_k: of domain_all_to_all: routed experts, and those a token picks [1].
        repeats_per_step: of ``times_per_step``, those that run in the backward, where full
            recomputation repeats the forward [1].
        along: with hybrid sharding the part of *digit* that *axes* are, else empty.
    """

    name: str
    digit: str
    axes: tuple[int, ...]
    group_size: int
    groups: int
    collective: str
    payload_bytes: float
    times_per_step: float
    phase: str
    ends_only: bool = False
    experts: int = 0
    top_k: int = 0
    repeats_per_step: float = 0.0
    along: str = ""

    @property
    def part(self) -> str:
        """What ``Layout.axes_of`` calls the axes: the digit, or its part of hybrid sharding."""
        return self.along or self.digit

    def members(self, layout: Layout) -> NDArray[np.int64]:
        """Return the ranks of every group, array [groups, group_size]."""
        ranks = groups_along([axis.size for axis in layout.axes], self.axes)
        return ranks[:, [0, -1]] if self.ends_only else ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One kind of collective of a step before it is tied to axes; values may be arrays.

    Fields are those of ``Family``; *along* is the part of *digit* that it would have with hybrid
    sharding, whether the layout has it or not.
    """

    name: str
    digit: str
    collective: str
    payload_bytes: Any
    times_per_step: Any
    phase: str
    ends_only: bool = False
    along: str = ""


def step_families(model: ModelSpec, layout: Layout) -> tuple[Family, ...]:
    """Return the families of one step that move bytes, in a fixed order."""
    families = []
    once = step_flows(model, replace(layout, recompute="none"))
    for flow, unrepeated in zip(step_flows(model, layout), once, strict=True):
        axes = layout.axes_of(flow.along or flow.digit)
        size = int(np.prod([layout.axes[i].size for i in axes]))
        if size < 2 or not flow.times_per_step or not flow.payload_bytes:
            continue
        groups = layout.gpus // size
        families.append(
            Family(
                name=flow.name,
                digit=flow.digit,
                axes=axes,
                group_size=2 if flow.ends_only else size,
                groups=groups,
                collective=flow.collective,
                payload_bytes=float(flow.payload_bytes),
                times_per_step=float(flow.times_per_step),
                phase=flow.phase,
                ends_only=flow.ends_only,
                repeats_per_step=float(flow.times_per_step - unrepeated.times_per_step),
                along=flow.along if layout.dp_shard and flow.along in PART_OF else "",
            )
        )
    if layout.ep_copies == "domain":
        families = [_by_domain(model, f) if f.digit == "ep" else f for f in families]
    return tuple(families)


def _by_domain(model: ModelSpec, family: Family) -> Family:
    """Return an expert exchange of one copy for each domain: v n / top_k is a member's tokens."""
    return replace(
        family,
        collective="domain_all_to_all",
        payload_bytes=family.payload_bytes * family.group_size / model.top_k,
        experts=model.experts,
        top_k=model.top_k,
    )


def step_flows(model: ModelSpec, layout: Any) -> tuple[Flow, ...]:
    """Return every flow of one step; those a layout does not use have zero times or payload.

    Args:
        model: the transformer's shape.
        layout: a ``Layout``, or anything with its field names whose degrees are arrays.
    """
    return (
        *_tensor_flows(model, layout),
        *_context_flows(model, layout),
        *_expert_flows(model, layout),
        *_gradient_flows(model, layout),
        *_pipeline_flows(model, layout),
    )


def activation_bytes(model: ModelSpec, layout: Any) -> Any:
    """Return V = b x (s / cp) x h x e, one micro-batch's activation on one rank [bytes]."""
    tokens = layout.micro_batch * layout.seq / layout.cp
    return tokens * model.hidden * layout.activation_bytes


def _micro_batches(layout: Any) -> Any:
    return layout.global_batch / (layout.dp * layout.micro_batch)


def _forwards(layout: Any) -> Any:
    """Forward passes of a layer in a step and micro-batch: 2 under full recomputation."""
    return 1 + np.where(np.equal(layout.recompute, "full"), 1, 0)


def _tensor_flows(model: ModelSpec, layout: Any) -> tuple[Flow, ...]:
    """TP: 2 all-reduces of V a layer each way, or their gather/scatter halves with SP.

    A MoE layer has the attention's pair, and the feed-forward's only for shared experts: its
    routed experts move tokens by EP and ETP instead. With SP the backward gathers saved inputs
    again. First and last stage add the embedding's and the logits', spread over pp here.
    """
    volume, micro = activation_bytes(model, layout), _micro_batches(layout)
    layers = model.layers + model.mtp_layers
    moe = model.moe_layer_count + (model.mtp_layers if model.experts else 0)
    pairs = layers + (layers - moe) + (moe if model.shared_expert_ffn else 0)
    if model.parallel_block:  # attention and feed-forward share one input and one sum
        pairs = layers
    per_stage = micro * pairs / layout.pp
    ends = micro / layout.pp
    split = np.where(layout.sequence_parallel, 1, 0)
    whole = 1 - split
    forward = per_stage * _forwards(layout)
    statistics = (layout.micro_batch * layout.seq / layout.cp) * _CROSS_ENTROPY_BYTES
    heads = 1 + model.mtp_layers

    def flow(name: str, collective: str, payload: Any, times: Any, phase: str) -> Flow:
        return Flow(
            name=name, digit="tp", collective=collective, payload_bytes=payload,
            times_per_step=times, phase=phase,
        )  # fmt: skip

    return (
        flow("tp_forward_reduce", "all_reduce", volume, (forward + ends) * whole, "forward"),
        flow("tp_backward_reduce", "all_reduce", volume, (per_stage + ends * heads) * whole,
             "backward"),
        flow("tp_forward_gather", "all_gather", volume, (forward + ends * heads) * split,
             "forward"),
        flow("tp_forward_scatter", "reduce_scatter", volume, (forward + ends) * split, "forward"),
        flow("tp_backward_gather", "all_gather", volume,
             (2 * per_stage + ends * (1 + heads)) * split, "backward"),
        flow("tp_backward_scatter", "reduce_scatter", volume, (per_stage + ends * heads) * split,
             "backward"),
        flow("tp_cross_entropy", "all_reduce", statistics, _CROSS_ENTROPY_REDUCES * ends * heads,
             "forward"),
    )  # fmt: skip


def _key_value_width(model: ModelSpec, layout: Any) -> Any:
    """Width of K and V together on one TP rank [elements]; kv heads are copied when TP exceeds."""
    attention = model.attention
    if attention.kind == "mla":
        heads, width = attention.heads / layout.tp, attention.head_dim + attention.v_head_dim
    else:
        heads = np.maximum(attention.kv_heads / layout.tp, 1)
        width = attention.head_dim + attention.v_head_dim
    return heads * width


def _context_flows(model: ModelSpec, layout: Any) -> tuple[Flow, ...]:
    """CP: ring hops of K and V (and their gradients), or gathers, or Ulysses' all-to-all."""
    layers = (model.layers + model.mtp_layers) * _micro_batches(layout) / layout.pp
    forward, hops = layers * _forwards(layout), layout.cp - 1
    tokens = layout.micro_batch * layout.seq / layout.cp
    hop = tokens * _key_value_width(model, layout) * layout.activation_bytes
    attention = model.attention
    query = attention.heads * (attention.head_dim + attention.v_head_dim) / layout.tp
    shared = _key_value_width(model, layout)
    least = layout.cp * (attention.head_dim + attention.v_head_dim)  # a head is not split further
    exchanged = tokens * (query + np.maximum(shared, least)) * layout.activation_bytes
    ring = np.where(np.equal(layout.cp_kind, "ring"), 1, 0)
    gather = np.where(np.equal(layout.cp_kind, "all_gather"), 1, 0)
    ulysses = np.where(np.equal(layout.cp_kind, "ulysses"), 1, 0)

    def flow(name: str, collective: str, payload: Any, times: Any, phase: str) -> Flow:
        return Flow(
            name=name, digit="cp", collective=collective, payload_bytes=payload,
            times_per_step=times, phase=phase,
        )  # fmt: skip

    return (
        flow("cp_forward_ring", "ring", hop, forward * hops * ring, "forward"),
        flow("cp_backward_ring", "ring", 2 * hop, layers * hops * ring, "backward"),
        flow("cp_forward_gather", "all_gather", hop * layout.cp, forward * gather, "forward"),
        flow("cp_backward_gather", "all_gather", hop * layout.cp, layers * gather, "backward"),
        flow("cp_backward_scatter", "reduce_scatter", hop * layout.cp, layers * gather, "backward"),
        flow(
            "cp_forward_exchange", "all_to_all", exchanged / layout.cp, forward * ulysses, "forward"
        ),
        flow(
            "cp_backward_exchange",
            "all_to_all",
            exchanged / layout.cp,
            layers * ulysses,
            "backward",
        ),
    )


def _expert_flows(model: ModelSpec, layout: Any) -> tuple[Flow, ...]:
    """EP: dispatch and combine of top-k copies each way; ETP: gather and scatter of the tokens.

    v = tokens x k x h x e / ep per ordered pair, under uniform routing.
    """
    if not model.experts:
        return ()
    moe = model.moe_layer_count + model.mtp_layers
    layers = moe * _micro_batches(layout) / layout.pp
    forward = layers * _forwards(layout)
    copies = layout.micro_batch * layout.seq / layout.cp / layout.tp * model.top_k
    dispatch = copies * model.hidden * layout.dispatch_bytes / layout.ep
    combine = copies * model.hidden * layout.combine_bytes / layout.ep
    tokens = copies * model.hidden * layout.activation_bytes * layout.etp

    def flow(name: str, collective: str, payload: Any, times: Any, phase: str) -> Flow:
        digit = "ep" if collective == "all_to_all" else "etp"
        return Flow(
            name=name, digit=digit, collective=collective, payload_bytes=payload,
            times_per_step=times, phase=phase,
        )  # fmt: skip

    return (
        flow("ep_forward_dispatch", "all_to_all", dispatch, forward, "forward"),
        flow("ep_forward_combine", "all_to_all", combine, forward, "forward"),
        flow("ep_backward_dispatch", "all_to_all", dispatch, layers, "backward"),
        flow("ep_backward_combine", "all_to_all", combine, layers, "backward"),
        flow("etp_forward_gather", "all_gather", tokens, forward, "forward"),
        flow("etp_forward_scatter", "reduce_scatter", tokens, forward, "forward"),
        flow("etp_backward_gather", "all_gather", tokens, layers, "backward"),
        flow("etp_backward_scatter", "reduce_scatter", tokens, layers, "backward"),
    )


def routed_expert_parameters(model: ModelSpec) -> float:
    """Return the parameters that EP spreads: all routed experts of all layers [1]."""
    if not model.experts:
        return 0.0
    moe = model.moe_layer_count + model.mtp_layers
    return float(moe * model.experts * model.expert_parameters)


def _gradient_flows(model: ModelSpec, layout: Any) -> tuple[Flow, ...]:
    """Gradients and ZeRO: one reduction a step, or with ZeRO-3 gathers every micro-batch.

    ZeRO-0 all-reduces; ZeRO-1/2 reduce-scatters gradients and gathers parameters once a step;
    ZeRO-3 gathers parameters forward and backward and scatters gradients every micro-batch. Hybrid
    sharding gathers and scatters in the shard group, and all-reduces each rank's shard over the
    replicas as often as gradients are scattered (FSDP2's and Megatron's default).
    """
    experts = routed_expert_parameters(model)
    dense = model.parameters() + model.mtp_parameters - experts
    micro = _micro_batches(layout)
    stage = np.asarray(layout.zero_stage)
    zero, full = np.where(stage == 0, 1, 0), np.where(stage == 3, 1, 0)
    sharded = 1 - zero
    scatters = sharded * np.where(stage == 3, micro, 1)
    replicated = np.where(np.asarray(layout.dp_replicate) > 1, 1, 0)
    flows: list[Flow] = []
    for digit, parameters, members in (
        ("dp", dense / (layout.tp * layout.pp), layout.cp * layout.dp),
        ("edp", experts / (layout.ep * layout.etp * layout.pp), layout.edp),
    ):
        gradients = parameters * layout.gradient_bytes
        weights = parameters * layout.parameter_bytes
        shard, across = f"{digit}_shard", "dp_replicate"
        part = gradients / (members / layout.dp_replicate)
        for name, collective, payload, times, phase, along in (
            ("reduce", "all_reduce", gradients, zero, "backward", digit),
            ("scatter", "reduce_scatter", gradients, scatters, "backward", shard),
            ("replica_reduce", "all_reduce", part, scatters * replicated, "backward", across),
            ("gather", "all_gather", weights, sharded * (1 - full), "end", shard),
            ("forward_gather", "all_gather", weights, full * micro, "forward", shard),
            ("backward_gather", "all_gather", weights, full * micro, "backward", shard),
        ):
            flows.append(
                Flow(
                    name=f"{digit}_{name}", digit=digit, collective=collective,
                    payload_bytes=payload, times_per_step=times, phase=phase, along=along,
                )
            )  # fmt: skip
    return tuple(flows)


def _pipeline_flows(model: ModelSpec, layout: Any) -> tuple[Flow, ...]:
    """PP: activations forward and their gradients backward over every (virtual) stage boundary.

    A chain of pp - 1 hops for each of the vpp chunks; interleaving closes it with vpp - 1 hops
    from the last stage to the first. Tied embeddings reduce once between both ends.
    """
    split = np.where(layout.sequence_parallel, layout.tp, 1)
    hop = activation_bytes(model, layout) / split
    micro = _micro_batches(layout)
    piped = np.where(np.asarray(layout.pp) > 1, 1, 0)
    tied = model.vocab * model.hidden / layout.tp * layout.gradient_bytes

    def flow(name: str, times: Any, phase: str, ends: bool) -> Flow:
        return Flow(
            name=name, digit="pp", collective="chain", payload_bytes=hop,
            times_per_step=times, phase=phase, ends_only=ends,
        )  # fmt: skip

    return (
        flow("pp_forward", micro * layout.vpp, "forward", False),
        flow("pp_backward", micro * layout.vpp, "backward", False),
        flow("pp_wrap_forward", micro * (layout.vpp - 1), "forward", True),
        flow("pp_wrap_backward", micro * (layout.vpp - 1), "backward", True),
        Flow(
            name="embedding_reduce",
            digit="pp",
            collective="all_reduce",
            payload_bytes=tied,
            times_per_step=piped * (1 if model.tied_embeddings else 0),
            phase="end",
            ends_only=True,
        ),
    )
