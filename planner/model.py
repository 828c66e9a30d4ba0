"""A transformer's shape: parameters and FLOPs follow from it.

``ModelSpec`` is what every reader of a model file yields. It holds shapes only: no dtype of the
run, no parallel degree. Sums over layers are exact for mixed dense/MoE stacks because each layer
says which kind it is.

Two conventions for *active* parameters are in use, and model cards do not always say which:
``active_parameters`` leaves out the input embedding, which is looked up and not multiplied
(gpt-oss, Kimi-K2, DeepSeek-V3), ``active_parameters_with_lookup`` counts it (Mixtral, Llama 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from planner.errors import SpecError

Number = TypeVar("Number", float, npt.NDArray[np.float64])

MOST = {"vocab": 10**8, "layers": 10**4, "mtp_layers": 10**3, "experts": 10**5, "top_k": 10**5,
        "learned_positions": 10**9, "max_positions": 10**9, "norms_per_layer": 16}  # fmt: skip
MOST_WIDE = 2**24


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Shape of one attention block.

    Args:
        kind: ``gqa`` (multi-head, grouped-query and multi-query alike) or ``mla``.
        heads: query heads [1].
        kv_heads: key/value heads [1]; equals *heads* for MHA and for MLA.
        head_dim: width of one query/key head (MLA: nope + rope part) [1].
        v_head_dim: width of one value head [1]; equals *head_dim* for GQA.
        q_lora_rank: width of MLA's compressed query, 0 where the query is not compressed [1].
        kv_lora_rank: width of MLA's compressed key/value, 0 for GQA [1].
        rope_head_dim: MLA's shared rotary key width, 0 for GQA [1].
        qkv_bias: biases on the q, k, v projections (MLA: on the two that compress).
        out_bias: bias on the output projection.
        qk_norm: a norm on the queries and one on the keys.
        qk_norm_elements: of both, 0 where they are as wide as one head, without bias [1].
        sinks: one learned logit per head (gpt-oss).
    """

    kind: str = "gqa"
    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    rope_head_dim: int = 0
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: bool = False
    qk_norm_elements: int = 0
    sinks: bool = False

    def __post_init__(self) -> None:
        """Refuse a block that cannot exist, with every fault."""
        needed = {"heads": 1, "kv_heads": 1, "head_dim": 1, "v_head_dim": 1}
        faults = [*_not_whole(self, at_least=needed)] or [*self._faults()]
        if faults:
            raise SpecError(*(f"attention: {fault}" for fault in faults))

    def _faults(self) -> Iterator[str]:
        if self.kind == "mla":
            if self.kv_heads != self.heads:
                yield f"kv_heads={self.kv_heads}: MLA has as many as heads={self.heads}"
            if not self.kv_lora_rank:
                yield "kv_lora_rank=0: MLA needs the width of its compressed key/value"
            if self.rope_head_dim > self.head_dim:
                yield f"rope_head_dim={self.rope_head_dim} exceeds head_dim={self.head_dim}"
        elif self.kind == "gqa":
            if self.heads % self.kv_heads:
                yield f"kv_heads={self.kv_heads} does not divide heads={self.heads}"
            for name in ("q_lora_rank", "kv_lora_rank", "rope_head_dim"):
                if getattr(self, name):
                    yield f"{name}={getattr(self, name)}: only kind 'mla' has one"
        else:
            yield f"kind={self.kind!r}: expected 'gqa' or 'mla'"

    def matrix_parameters(self, hidden: int) -> int:
        """Return the elements of the projection matrices at model width *hidden* [1].

        >>> llama = Attention(heads=32, kv_heads=8, head_dim=128, v_head_dim=128)
        >>> llama.matrix_parameters(4096)
        41943040
        """
        query = self.heads * self.head_dim
        out = self.heads * self.v_head_dim * hidden
        if self.kind == "gqa":
            return hidden * (query + self.kv_heads * (self.head_dim + self.v_head_dim)) + out
        rank = self.q_lora_rank
        queries = rank * (hidden + query) if rank else hidden * query
        expanded = self.heads * (self.head_dim - self.rope_head_dim + self.v_head_dim)
        keys = hidden * (self.kv_lora_rank + self.rope_head_dim) + self.kv_lora_rank * expanded
        return queries + keys + out

    def vector_parameters(self, hidden: int) -> int:
        """Return the elements of its biases, inner norms and sinks [1]."""
        norms = self.qk_norm * (self.qk_norm_elements or 2 * self.head_dim)
        if self.kind == "mla":
            norms += self.q_lora_rank + self.kv_lora_rank
            biased = self.q_lora_rank + self.kv_lora_rank + self.rope_head_dim
        else:
            biased = self.heads * self.head_dim + self.kv_heads * (self.head_dim + self.v_head_dim)
        bias = self.qkv_bias * biased + self.out_bias * hidden
        return norms + bias + self.sinks * self.heads


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Shape of a decoder-only transformer.

    Args:
        name: what reports call it.
        hidden: model width h [1].
        vocab: vocabulary entries [1].
        layers: transformer layers, without MTP layers [1].
        attention: shape of the attention of every layer.
        ffn: width of the dense feed-forward (0 where every layer is MoE) [1].
        gated_mlp: three matrices (SwiGLU, GeGLU) instead of two.
        experts: routed experts of a MoE layer, 0 for a dense model [1].
        top_k: experts a token visits [1].
        expert_ffn: width of one routed expert [1].
        shared_expert_ffn: total width of the shared experts, 0 where there are none [1].
        shared_expert_gate: a gate of width h on the shared experts (Qwen2-MoE).
        router_bias: one bias per expert, learned or balanced (gpt-oss, DeepSeek-V3).
        expert_bias: biases on the matrices of the routed experts.
        moe_layers: one flag a layer, True where its feed-forward is MoE.
        windows: one entry a layer: attention window [tokens], 0 for full attention.
        mtp_layers: multi-token-prediction layers after the stack [1].
        tied_embeddings: input and output embedding are one matrix.
        learned_positions: entries of a learned position table, 0 for rotary [1].
        mlp_bias: biases on the dense feed-forward matrices.
        norms_per_layer: norm vectors of width h in a layer [1].
        norm_bias: norms carry a bias (LayerNorm).
        embedding_norm: a norm right after the input embedding (BLOOM).
        parallel_block: attention and feed-forward side by side (Falcon): one reduction, not two.
        max_positions: longest sequence it was made for, 0 where unknown [tokens].
        router_groups: groups that routing is limited within (DeepSeek ``n_group``), 0 for none.
        router_top_groups: groups a token may visit (``topk_group``), 0 for no limit.
        assumed: what the file did not say and the reader assumed, name to reason.

    Raises:
        SpecError: naming every number that cannot be.
    """

    name: str
    hidden: int
    vocab: int
    layers: int
    attention: Attention
    ffn: int
    gated_mlp: bool = True
    experts: int = 0
    top_k: int = 0
    expert_ffn: int = 0
    shared_expert_ffn: int = 0
    shared_expert_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    moe_layers: tuple[bool, ...] = ()
    windows: tuple[int, ...] = ()
    mtp_layers: int = 0
    tied_embeddings: bool = False
    learned_positions: int = 0
    mlp_bias: bool = False
    norms_per_layer: int = 2
    norm_bias: bool = False
    embedding_norm: bool = False
    parallel_block: bool = False
    max_positions: int = 0
    router_groups: int = 0
    router_top_groups: int = 0
    assumed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), compare=False)

    def __post_init__(self) -> None:
        """Refuse a shape that cannot exist, with every fault."""
        faults = [*_not_whole(self, at_least={"hidden": 1, "vocab": 1, "layers": 1})] or [
            *self._stack_faults(), *self._expert_faults()
        ]  # fmt: skip
        if faults:
            raise SpecError(*(f"{self.name}: {fault}" for fault in faults))

    def _stack_faults(self) -> Iterator[str]:
        for name in ("moe_layers", "windows"):
            entries = len(getattr(self, name))
            if entries not in {0, self.layers}:
                yield f"{name} has {entries} entries for {self.layers} layers"
        for layer, window in enumerate(self.windows):
            if window < 0:
                yield f"windows[{layer}]={window}: expected 0 (full attention) or a width in tokens"
        if self.dense_layer_count > 0 and not self.ffn:
            yield f"ffn=0: expected the width of the {self.dense_layer_count} dense layers"

    def _expert_faults(self) -> Iterator[str]:
        if not self.experts:
            for name in ("top_k", "expert_ffn", "shared_expert_ffn", "moe_layer_count"):
                if getattr(self, name):
                    yield f"{name}={getattr(self, name)}: a model with experts=0 has none"
            return
        if not self.moe_layer_count:
            yield f"moe_layers flags no layer, but experts={self.experts}"
        if not 1 <= self.top_k <= self.experts:
            yield f"top_k={self.top_k}: expected 1 to experts={self.experts}"
        if not self.expert_ffn:
            yield "expert_ffn=0: expected the width of one routed expert"
        groups, most = self.router_groups, self.router_top_groups or self.router_groups
        if groups and self.experts % groups:
            yield f"router_groups={groups} does not divide experts={self.experts}"
        elif most > groups:
            yield f"router_top_groups={most} exceeds router_groups={groups}"
        elif groups and most * (self.experts // groups) < self.top_k:
            yield (
                f"router_top_groups={most} of {groups} hold {most * (self.experts // groups)} "
                f"experts, fewer than top_k={self.top_k}"
            )

    @property
    def moe_layer_count(self) -> int:
        """Number of layers whose feed-forward is MoE [1]."""
        return sum(self.moe_layers)

    @property
    def dense_layer_count(self) -> int:
        """Number of layers whose feed-forward is dense [1]."""
        return self.layers - self.moe_layer_count

    @property
    def attention_parameters(self) -> int:
        """Parameters of one layer's attention: projections, biases, inner norms [1]."""
        matrices = self.attention.matrix_parameters(self.hidden)
        return matrices + self.attention.vector_parameters(self.hidden)

    @property
    def norm_parameters(self) -> int:
        """Parameters of one layer's norms of width h [1]."""
        return self.norms_per_layer * self.hidden * (1 + self.norm_bias)

    @property
    def dense_ffn_parameters(self) -> int:
        """Parameters of one dense feed-forward [1]."""
        return self._mlp(self.ffn) + self.mlp_bias * self._mlp_biases(self.ffn)

    @property
    def expert_parameters(self) -> int:
        """Parameters of one routed expert [1]."""
        return self._mlp(self.expert_ffn) + self.expert_bias * self._mlp_biases(self.expert_ffn)

    @property
    def shared_expert_parameters(self) -> int:
        """Parameters of the shared experts of one MoE layer and their gate [1]."""
        return self._mlp(self.shared_expert_ffn) + self.hidden * self.shared_expert_gate

    @property
    def router_parameters(self) -> int:
        """Parameters of the router of one MoE layer [1]."""
        return self.experts * (self.hidden + self.router_bias)

    @property
    def dense_layer_parameters(self) -> int:
        """Parameters of one layer whose feed-forward is dense [1]."""
        return self.attention_parameters + self.norm_parameters + self.dense_ffn_parameters

    @property
    def moe_layer_shared_parameters(self) -> int:
        """Parameters of one MoE layer that every token meets: all but the routed experts [1]."""
        own = self.router_parameters + self.shared_expert_parameters
        return self.attention_parameters + self.norm_parameters + own

    def moe_layer_parameters(self, experts: int | None = None) -> int:
        """Return the parameters of one MoE layer with *experts* routed experts, or all of them."""
        held = self.experts if experts is None else experts
        return self.moe_layer_shared_parameters + held * self.expert_parameters

    @property
    def embedding_parameters(self) -> int:
        """Parameters in front of the first layer: token and position tables, their norm [1]."""
        norm = self.embedding_norm * self.hidden * (1 + self.norm_bias)
        return (self.vocab + self.learned_positions) * self.hidden + norm

    @property
    def head_parameters(self) -> int:
        """Parameters of the output matrix, 0 where it is the input embedding [1]."""
        return 0 if self.tied_embeddings else self.vocab * self.hidden

    @property
    def final_norm_parameters(self) -> int:
        """Parameters of the norm after the last layer; OLMo's norms have none [1]."""
        return self.hidden * (1 + self.norm_bias) if self.norms_per_layer else 0

    @property
    def mtp_parameters(self) -> int:
        """Parameters of the MTP layers, without the embedding and head they share [1].

        Each is a layer, a 2h x h projection and three norms (arXiv:2412.19437 §2.2).
        """
        layer = self.moe_layer_parameters() if self.experts else self.dense_layer_parameters
        return self.mtp_layers * (layer + 2 * self.hidden**2 + 3 * self.final_norm_parameters)

    def parameters(self) -> int:
        """Return all parameters, each matrix once, without those that predict further tokens.

        >>> attention = Attention(heads=32, kv_heads=8, head_dim=128, v_head_dim=128)
        >>> llama = ModelSpec(name="llama-3.1-8b", hidden=4096, vocab=128256, layers=32,
        ...                   attention=attention, ffn=14336)
        >>> llama.parameters()
        8030261248
        """
        return (
            self.embedding_parameters + self.head_parameters + self.final_norm_parameters
            + self.dense_layer_count * self.dense_layer_parameters
            + self.moe_layer_count * self.moe_layer_parameters()
        )  # fmt: skip

    def active_parameters(self) -> int:
        """Return the parameters one token is multiplied with: its top-k experts and the head.

        The input embedding is looked up and not counted, unless it is the head as well.
        """
        head = self.vocab * self.hidden
        return (
            head + self.final_norm_parameters
            + self.dense_layer_count * self.dense_layer_parameters
            + self.moe_layer_count * self.moe_layer_parameters(self.top_k)
        )  # fmt: skip

    def active_parameters_with_lookup(self) -> int:
        """Return ``active_parameters`` with the whole input embedding counted as well."""
        tied = self.vocab * self.hidden if self.tied_embeddings else 0
        return self.active_parameters() + self.embedding_parameters - tied

    def matrix_parameters(self) -> int:
        """Return the matrix elements one token is multiplied with, the output head included."""
        gates = 3 if self.gated_mlp else 2
        routed = self.top_k * self.expert_ffn + self.shared_expert_ffn
        router = self.experts + self.shared_expert_gate
        return (
            self.vocab * self.hidden
            + self.layers * self.attention.matrix_parameters(self.hidden)
            + self.dense_layer_count * gates * self.hidden * self.ffn
            + self.moe_layer_count * self.hidden * (gates * routed + router)
        )

    def forward_flops_per_token(self, seq: Number) -> Number:
        """Return the FLOPs of one token's forward pass, mean over a causal sequence [FLOP].

        2 x matrices + Σ_layers 2 x heads x (head_dim + v_head_dim) x mean keys seen, where query
        i of a sequence sees min(i, window) keys. The backward pass is twice that. Without MTP.

        Args:
            seq: sequence length [tokens].

        Source: 2 FLOPs a multiply-add; Kaplan et al. 2020, arXiv:2001.08361 §2.1.
        Holds for matrix products; norms, softmax and activations are bytes, not FLOPs.
        """
        keys = self.layers * mean_keys(seq, 0)
        for window in self.windows:
            keys += mean_keys(seq, window) - mean_keys(seq, 0)
        each = 2 * self.attention.heads * (self.attention.head_dim + self.attention.v_head_dim)
        flops: Number = 2.0 * self.matrix_parameters() + each * keys
        return flops

    def _mlp(self, width: int) -> int:
        return (3 if self.gated_mlp else 2) * self.hidden * width

    def _mlp_biases(self, width: int) -> int:
        return (2 if self.gated_mlp else 1) * width + self.hidden


def mean_keys(seq: Number, window: int) -> Number:
    """Return how many keys a query sees, mean over a causal sequence [1].

    >>> float(mean_keys(4096, 0)), float(mean_keys(4096, 128))
    (2048.5, 126.015625)
    """
    reach = np.minimum(seq, window) if window else seq
    mean: Number = reach * (2 * seq - reach + 1) / (2 * seq)
    return mean


def _not_whole(shape: Attention | ModelSpec, *, at_least: Mapping[str, int]) -> Iterator[str]:
    """Yield a fault for each number of *shape* that is no integer in its range."""
    for entry in fields(shape):
        if entry.type != "int":
            continue
        value, most = getattr(shape, entry.name), MOST.get(entry.name, MOST_WIDE)
        least = at_least.get(entry.name, 0)
        if isinstance(value, bool) or not isinstance(value, int):
            yield f"{entry.name}={value!r}: expected a whole number"
        elif not least <= value <= most:
            yield f"{entry.name}={value}: expected {least:,} to {most:,}"
