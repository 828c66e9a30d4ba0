"""The model of one row of a table of steps."""

from __future__ import annotations

import re

from planner.model import Attention, ModelSpec
from topologies.steps_cells import Cells, UnusableError

_KNOWN = r"(mha|mqa|gqa|mla)(\s*\(.*|\W*sliding.*)?"
_USUAL_WINDOW = 128


def model_of(row: Cells) -> ModelSpec:
    """Return the model of a row.

    Raises:
        UnusableError, SpecError: its numbers make no transformer.
    """
    heads, hidden, layers = (int(row.number(name)) for name in ("heads", "hidden", "layers"))
    experts = int(row.number("n_experts", 0.0))
    first_dense = int(row.number("first_dense_layers", 0.0))
    width = int(row.number("head_dim", 0.0))
    if not width and hidden % heads:
        raise UnusableError(f"head_dim not stated, and heads={heads} does not divide {hidden=}")
    attention = _attention(row, heads, width or hidden // heads)
    gated = _is_gated(row, attention.kv_heads < heads or experts > 0)
    windows = _windows(row, layers)
    if windows and experts:
        row.assumed["expert_bias"] = "sliding attention and experts: biased, as gpt-oss"
    ffn = int(row.number("ffn", 4.0 * hidden, "4 x hidden"))
    limited = re.search(r"router limited to (\d+) nodes", row.text("notes").lower())
    return ModelSpec(
        name=row.text("model") or "model",
        hidden=hidden,
        vocab=int(row.number("vocab")),
        layers=layers,
        attention=attention,
        ffn=ffn,
        gated_mlp=gated,
        experts=experts,
        top_k=int(row.number("topk")) if experts else 0,
        expert_ffn=row.size("moe_ffn", ffn, "as wide as the feed-forward") if experts else 0,
        shared_expert_ffn=int(row.number("shared_expert_ffn", 0.0)) if experts else 0,
        moe_layers=tuple(i >= first_dense for i in range(layers)) if experts else (),
        windows=windows,
        mtp_layers=int(row.number("mtp_layers", 0.0)),
        router_groups=8 if limited else 0,
        router_top_groups=int(limited[1]) if limited else 0,
        expert_bias=bool(windows and experts),
        tied_embeddings=not gated,
        learned_positions=0 if gated else 2048,
        norm_bias=not gated,
    )


def _attention(row: Cells, heads: int, width: int) -> Attention:
    text = row.text("attention").lower()
    if text and not re.fullmatch(_KNOWN, text):
        raise UnusableError(f"attention={text!r} is none of mha, mqa, gqa, mla, gqa+sliding128")
    if text.startswith("mla"):
        row.assumed["attention"] = "mla: ranks 1536 and 512, 64 rotary, as DeepSeek-V2/V3"
        return Attention(
            kind="mla", heads=heads, kv_heads=heads, head_dim=width + 64, v_head_dim=width,
            q_lora_rank=1536, kv_lora_rank=512, rope_head_dim=64,
        )  # fmt: skip
    kv_heads = row.size("kv_heads", heads, "one for each head")
    return Attention(heads=heads, kv_heads=kv_heads, head_dim=width, v_head_dim=width)


def _is_gated(row: Cells, recent: bool) -> bool:
    usual = "as models with grouped heads or experts" if recent else "as GPT"
    return row.number("gated_mlp", float(recent), usual) > 0


def _windows(row: Cells, layers: int) -> tuple[int, ...]:
    """Return the windows where every other layer's attention slides."""
    _, sliding, behind = row.text("attention").lower().partition("sliding")
    if not sliding:
        return ()
    stated = re.match(r"\D?(\d+)", behind)
    if stated is None:
        row.assumed["window"] = f"not stated: {_USUAL_WINDOW}, as gpt-oss"
    size = int(stated[1]) if stated else _USUAL_WINDOW
    return tuple(size if i % 2 == 0 else 0 for i in range(layers))
