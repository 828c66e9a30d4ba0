"""What one micro-batch costs each kind of stage: compute, and communication that shows.

The first stage has the embedding, the last the logits and the MTP layers, the middle the most
layers; with one stage the first has all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from planner.model import ModelSpec
from planner.steptime.columns import (
    SCHEDULES,
    LayoutColumns,
    Values,
    anywhere,
    larger,
    repeats_operators,
    select,
    smaller,
)
from planner.steptime.communication import context_s, expert_s, tensor_s
from planner.steptime.compute import LayerTime, layer_time
from planner.steptime.operators import dense_layer, embedding, logits, moe_layer
from planner.steptime.parameters import StageLayers, stage_layers
from planner.steptime.rates import Rates
from planner.steptime.schedule import StageSeconds, stage_sum
from planner.steptime.wires import Wires

_FAMILIES = ("tp", "cp", "ep", "etp")
_UNDER = 0.9  # of a window that traffic can run under: the rest is launch and sync
_REPEATED_PRODUCTS = 0.37
"""Of a dense layer's matrix products, those that PyTorch's selective recomputation repeats [1]:
every second one (k, the attention's output, the feed-forward's second), in Llama 3 of any size."""

_LAST_TENSOR_SHARE = 0.25
"""Of a dense layer's TP traffic one way, what follows its last product [1]: one of two gathers and
two scatters."""

_DUALPIPE = SCHEDULES.index("dualpipe")
_EXCHANGE_SHARE = 20.0 / 132.0
"""Of a GPU's multiprocessors, those that DualPipe sets aside for dispatch and combine [1]: 20 of an
H800's 132 (arXiv 2412.19437 §3.2.1 and §3.2.2). Products and attention have the others."""

_ZERO = StageSeconds(first=0.0, middle=0.0, middle_mean=0.0, last=0.0)
_NOWHERE = (_ZERO, _ZERO)
_NONE: tuple[Values, Values] = (0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of one layer (or of the embedding, or the logits) and one micro-batch.

    Args:
        compute: part to seconds, both passes, recomputation included.
        forward_s, backward_s: compute of each pass; the backward has recomputation and weights.
        weights_s: the weight gradients alone.
        traffic: family to (forward, backward) seconds of its own.
        exposed: the same, what is not hidden.
    """

    compute: Mapping[str, Values]
    forward_s: Values
    backward_s: Values
    weights_s: Values
    traffic: Mapping[str, tuple[Values, Values]]
    exposed: Mapping[str, tuple[Values, Values]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCosts:
    """Seconds of one micro-batch on each kind of stage.

    Args:
        forward, backward: with exposed communication.
        weights: weight gradients alone.
        traffic, exposed: family to both passes' own and exposed time.
        layers: what a layer of each kind, the embedding and the logits cost.
    """

    forward: StageSeconds
    backward: StageSeconds
    weights: StageSeconds
    traffic: Mapping[str, StageSeconds]
    exposed: Mapping[str, StageSeconds]
    layers: Mapping[str, Cost]


def _compute_parts(time: LayerTime, again_s: Values) -> dict[str, Values]:
    return {
        "gemm": time.forward.gemm_s + time.backward.gemm_s + time.weights.gemm_s,
        "attention": time.forward.attention_s + time.backward.attention_s,
        "memory": time.forward.memory_s + time.backward.memory_s + time.weights.memory_s,
        "host": time.forward.host_s + time.backward.host_s + time.weights.host_s,
        "recompute": again_s,
    }


def _cost(
    time: LayerTime,
    columns: LayoutColumns,
    traffic: Mapping[str, tuple[Values, Values]],
    spans: Values,
    whole_tp: tuple[Values, Values] | None,
) -> Cost:
    """Put one layer together: recomputation repeats the forward and its collectives.

    PyTorch's own stops once it has all that the backward reads ("Non-reentrant checkpoint stops
    recomputation as soon as all needed intermediate activations have been recomputed",
    torch.utils.checkpoint, since 2.1): before a dense layer's last product and the sum of its
    parts. Megatron's repeats all of it.

    TP overlaps by chunks: of tp chunks all but one run under a GEMM, inside a supernode only.
    Where TP spans supernodes the host launches ahead while a collective is on the NICs. Inside
    one it does not gain: a collective there is as short as a launch and waits for the slowest of
    the hosts (vTrain's 1,440 host-bound steps on one node are longer with TP by all of it). So
    that no step is shorter for a group that is split, what TP takes in one supernode, *whole_tp*,
    is not run ahead of: a pass takes max(split TP, host + whole TP) beside its kernels.
    """
    full = (columns.recompute == 2) * 1.0
    selective = (columns.recompute == 1) * (1.0 - columns.fused_attention)
    operators = _REPEATED_PRODUCTS * time.forward.gemm_s + time.forward.memory_s
    stops = columns.stops_early * (time.last_s > 0)
    again = (
        full * (time.forward.total_s - stops * time.last_s)
        + selective * time.core_s
        + repeats_operators(columns) * operators
    )
    own = {name: (f, b + full * f) for name, (f, b) in traffic.items()}
    repeated = full * (1.0 - stops * _LAST_TENSOR_SHARE)
    f, b = traffic["tp"]
    own["tp"] = (f, b + repeated * f)
    forward = time.forward.total_s
    backward = time.backward.total_s + time.weights.total_s + again
    exposed = dict(own)
    inside = columns.overlap_tensor * (1.0 - 1.0 / columns.tp)
    exposed["tp"] = _beside_products(own["tp"], (1.0 - spans) * inside, time.forward.gemm_s)
    if "cp" in own:
        ring = columns.cp_kind == 0
        f, b = own["cp"]
        core = time.forward.attention_s
        exposed["cp"] = (
            select(ring, larger(0.0, f - core), f),
            select(ring, larger(0.0, b - 2.5 * core), b),
        )
    if "ep" in own:
        under = columns.overlap_experts
        f, b = own["ep"]
        exposed["ep"] = (
            f - smaller(under * f, _UNDER * forward),
            b - smaller(under * b, _UNDER * backward),
        )
    parts = _compute_parts(time, again)
    late = time.backward.host_s + time.weights.host_s
    ahead: tuple[Values, Values] = _NONE
    if whole_tp is not None:
        f, b = (smaller(*both) for both in zip(whole_tp, traffic["tp"], strict=True))
        waited = _beside_products((f, b + repeated * f), inside, time.forward.gemm_s)
        hosts = (time.forward.host_s, late + full * time.forward.host_s)
        forward_s, backward_s = (
            smaller(host, spans * (split - whole))
            for host, split, whole in zip(hosts, exposed["tp"], waited, strict=True)
        )
        ahead = forward_s, backward_s
    parts["host"] = parts["host"] - ahead[0] - smaller(ahead[1], late)
    parts["recompute"] = parts["recompute"] - larger(0.0, ahead[1] - late)
    return Cost(
        compute=parts,
        forward_s=forward - ahead[0],
        backward_s=backward - ahead[1],
        weights_s=time.weights.total_s,
        traffic=own,
        exposed=exposed,
    )


def _beside_products(
    tp: tuple[Values, Values], hidden_share: Values, gemm_s: Values
) -> tuple[Values, Values]:
    """Return what shows of TP's collectives of which *hidden_share* may run under products [s]."""
    f, b = tp
    return (
        f - smaller(hidden_share * f, _UNDER * gemm_s),
        b - smaller(hidden_share * b, _UNDER * 2.0 * gemm_s),
    )


def _beside_the_exchange(columns: LayoutColumns, rates: Rates) -> Rates:
    """Return *rates* with less of what multiplies, where DualPipe exchanges tokens all the time."""
    held = (columns.schedule == _DUALPIPE) * (columns.ep > 1)
    if not anywhere(held):
        return rates
    left = select(held, 1.0 - _EXCHANGE_SHARE, 1.0)
    return replace(
        rates,
        gemm_flops_per_s=rates.gemm_flops_per_s * left,
        logits_flops_per_s=rates.logits_flops_per_s * left,
        attention_flops_per_s=rates.attention_flops_per_s * left,
    )


def layer_costs(
    model: ModelSpec, columns: LayoutColumns, rates: Rates, wires: Wires
) -> dict[str, Cost]:
    """Return the cost of a ``dense`` and a ``moe`` layer, the ``embedding`` and the ``logits``."""
    tp_f, tp_b = tensor_s(model, columns, wires)
    alone: tuple[Values, Values] | None = None
    if wires.tp_whole is not None:
        alone = tensor_s(model, columns, replace(wires, tp=wires.tp_whole))
    cp = context_s(model, columns, wires)
    one = 1.0 if model.parallel_block else 2.0
    spans = (wires.tp.k > 1) * 1.0
    rates = _beside_the_exchange(columns, rates)
    costs = {}

    def times(pairs: float) -> tuple[Values, Values] | None:
        return None if alone is None else (pairs * alone[0], pairs * alone[1])

    if model.dense_layer_count:
        work = dense_layer(model, columns, rates.operand_bytes)
        traffic = {"tp": (one * tp_f, one * tp_b), "cp": cp}
        costs["dense"] = _cost(layer_time(work, rates), columns, traffic, spans, times(one))
    if model.experts:
        work = moe_layer(model, columns, rates.operand_bytes)
        pairs = 2.0 if model.shared_expert_ffn else 1.0
        ep, etp = expert_s(model, columns, wires)
        traffic = {
            "tp": (pairs * tp_f, pairs * tp_b), "cp": cp, "ep": (ep, ep), "etp": (etp, etp),
        }  # fmt: skip
        costs["moe"] = _cost(layer_time(work, rates), columns, traffic, spans, times(pairs))
    never = replace(columns, recompute=0.0)
    for name, work, pair in (
        ("embedding", embedding(model, columns), (tp_f, 0.0 * tp_b)),
        ("logits", logits(model, columns), (0.0 * tp_f, tp_b)),
    ):
        costs[name] = _cost(layer_time(work, rates), never, {"tp": pair}, spans, times(1.0))
    return costs


def stage_costs(model: ModelSpec, columns: LayoutColumns, rates: Rates, wires: Wires) -> StageCosts:
    """Return what one micro-batch costs each kind of stage."""
    costs = layer_costs(model, columns, rates, wires)
    layers = stage_layers(model, columns)

    def stages(pick: Callable[[Cost], Values]) -> StageSeconds:
        return _on_stages(model, columns, layers, {n: pick(c) for n, c in costs.items()})

    def traffic(family: str, direction: int) -> StageSeconds:
        return stages(lambda cost: cost.traffic.get(family, _NONE)[direction])

    def exposed(family: str, direction: int) -> StageSeconds:
        return stages(lambda cost: cost.exposed.get(family, _NONE)[direction])

    present = {family for cost in costs.values() for family in cost.traffic}
    shown = {
        family: (exposed(family, 0), exposed(family, 1)) if family in present else _NOWHERE
        for family in _FAMILIES
    }
    return StageCosts(
        forward=stage_sum((stages(lambda c: c.forward_s), *(pair[0] for pair in shown.values()))),
        backward=stage_sum((stages(lambda c: c.backward_s), *(pair[1] for pair in shown.values()))),
        weights=stages(lambda c: c.weights_s),
        traffic={
            family: stage_sum((traffic(family, 0), traffic(family, 1)))
            if family in present
            else _NOWHERE[0]
            for family in _FAMILIES
        },
        exposed={family: stage_sum(pair) for family, pair in shown.items()},
        layers=costs,
    )


def compute_parts(
    model: ModelSpec, columns: LayoutColumns, costs: StageCosts
) -> dict[str, StageSeconds]:
    """Return each part of the compute of both passes, one micro-batch, on each kind of stage."""
    layers = stage_layers(model, columns)
    return {
        part: _on_stages(
            model, columns, layers, {n: c.compute[part] for n, c in costs.layers.items()}
        )
        for part in costs.layers["logits"].compute
    }


def _on_stages(
    model: ModelSpec, columns: LayoutColumns, layers: StageLayers, each: Mapping[str, Values]
) -> StageSeconds:
    """Add layers, embedding and logits up on each kind of stage."""
    dense, moe = each.get("dense", 0.0), each.get("moe", 0.0)
    head = each["logits"] + model.mtp_layers * (each["logits"] + (moe if model.experts else dense))
    alone = select(columns.pp > 1, 0.0, head)
    first = layers.first_dense * dense + layers.first_moe * moe + each["embedding"] + alone
    last = layers.last_dense * dense + layers.last_moe * moe + head
    first, last = _met(columns, first, select(columns.pp > 1, last, first))
    return StageSeconds(
        first=first,
        middle=layers.middle_dense * dense + layers.middle_moe * moe,
        middle_mean=layers.middle_mean_dense * dense + layers.middle_mean_moe * moe,
        last=last,
    )


def _met(columns: LayoutColumns, first: Values, last: Values) -> tuple[Values, Values]:
    """Return what the first and the last rank do for one micro-batch.

    In DualPipe each of them holds both ends, and runs half of the micro-batches through each.
    """
    both_ways = columns.schedule == _DUALPIPE
    if not anywhere(both_ways):
        return first, last
    mean = (first + last) / 2.0
    return select(both_ways, mean, first), select(both_ways, mean, last)
