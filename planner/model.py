"""A transformer's shape: parameters, FLOPs and tensor sizes follow from it.

``ModelSpec`` is what every reader of a model file yields. It holds shapes only: no dtype of the
run, no parallel degree. Sums over layers are exact for mixed dense/MoE stacks because each layer
says which kind it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from planner.errors import SpecError


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
        qkv_bias: biases on the q, k, v projections.
        out_bias: bias on the output projection.
        qk_norm: a norm on each query and key head.
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
    sinks: bool = False


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
        moe_layers: one flag a layer, True where its feed-forward is MoE.
        windows: one entry a layer: attention window [tokens], 0 for full attention.
        mtp_layers: multi-token-prediction layers after the stack [1].
        tied_embeddings: input and output embedding are one matrix.
        learned_positions: entries of a learned position table, 0 for rotary [1].
        mlp_bias: biases on the feed-forward matrices.
        norms_per_layer: norm vectors of width h in a layer [1].
        norm_bias: norms carry a bias (LayerNorm).
        router_groups: groups that routing is limited within (DeepSeek ``n_group``), 0 for none.
        router_top_groups: groups a token may visit (``topk_group``), 0 for no limit.
        assumed: what the file did not say and the reader assumed, name to reason.
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
    max_positions: int = 0
    router_groups: int = 0
    router_top_groups: int = 0
    assumed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def moe_layer_count(self) -> int:
        """Number of layers whose feed-forward is MoE [1]."""
        return sum(self.moe_layers)

    @property
    def dense_layer_count(self) -> int:
        """Number of layers whose feed-forward is dense [1]."""
        return self.layers - self.moe_layer_count

    def __post_init__(self) -> None:
        if self.moe_layers and len(self.moe_layers) != self.layers:
            raise SpecError(
                f"{self.name}: moe_layers has {len(self.moe_layers)} flags for {self.layers} layers"
            )
