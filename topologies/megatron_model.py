"""Megatron's arguments to the model they describe, with Megatron's own defaults.

Source of names and defaults: megatron/training/arguments.py and
megatron/core/transformer/transformer_config.py of Megatron-LM (core 0.14).
"""

from __future__ import annotations

from math import ceil
from types import MappingProxyType

from planner.errors import SpecError
from planner.model import Attention, ModelSpec
from topologies.megatron_args import MegatronArguments
from topologies.pattern_text import MOST_ENTRIES, parse_pattern

TOKENIZERS: tuple[tuple[str, int], ...] = (
    ("nemotron_2_256k", 256000),
    ("nemotron-3", 256000),
    ("deepseekv3", 129280),
    ("deepseek-v3", 129280),
    ("deepseekv2", 102400),
    ("deepseek-v2", 102400),
    ("llama-3", 128256),
    ("llama3", 128256),
    ("llama-4", 202048),
    ("llama-2", 32000),
    ("llama2", 32000),
    ("mixtral", 32000),
    ("qwen3", 151936),
    ("qwen2.5-72b", 152064),
    ("gpt2bpe", 50257),
)
"""Vocabulary of tokenizers by a part of their name, as the models' config.json have them."""

NOT_MODELLED = {
    "hybrid_override_pattern": "it mixes attention with state-space layers",
    "is_hybrid_model": "it mixes attention with state-space layers",
    "heterogeneous_layers_config_path": "its layers have shapes of their own",
    "encoder_num_layers": "it has an encoder",
    "linear_attention_freq": "some of its layers have linear attention",
}


def megatron_model(args: MegatronArguments, *, tp: int) -> ModelSpec | None:
    """Return the model, none (with the reason assumed) where the arguments do not describe it.

    Args:
        args: the arguments; faults are recorded there.
        tp: tensor-parallel degree, which pads the vocabulary [1].
    """
    for name, reason in NOT_MODELLED.items():
        if args.has(name):
            _not_read(args, f"{name}: {reason}, which is not modelled")
            return None
    needed = ("num_layers", "hidden_size", "num_attention_heads")
    missing = [name for name in needed if not args.has(name)]
    if missing:
        _not_read(args, f"{', '.join(missing)} not stated")
        return None
    layers = args.count("num_layers", minimum=1, maximum=MOST_ENTRIES)
    hidden = args.count("hidden_size", minimum=1)
    vocab = _vocabulary(args, tp)
    if not vocab:
        _not_read(args, "neither vocab_size nor a tokenizer whose vocabulary is known is stated")
        return None
    heads = args.count("num_attention_heads", minimum=1)
    if args.faults:
        return None
    gated = args.flag("swiglu")
    ffn = args.count("ffn_hidden_size", _default_width(hidden, gated=gated), minimum=1)
    biased = args.flag("add_bias_linear", default=True) and not args.flag("disable_bias_linear")
    experts = args.count("num_experts")
    flags = _moe_flags(args, layers) if experts else ()
    learned = args.text("position_embedding_type", "learned_absolute") == "learned_absolute"
    if args.flag("use_rotary_position_embeddings") or args.flag("use_rope"):
        learned = False
    positions = args.count("max_position_embeddings")
    expert_ffn = args.count("moe_ffn_hidden_size", ffn, minimum=1) if experts else 0
    attention = _attention(args, hidden, heads, biased=biased)
    if args.faults:
        return None
    try:
        return ModelSpec(
            name=_named(args, layers, hidden), hidden=hidden, vocab=vocab, layers=layers,
            attention=Attention(**attention), ffn=0 if experts and all(flags) else ffn,  # type: ignore[arg-type]
            gated_mlp=gated, mlp_bias=biased, expert_bias=biased and experts > 0,
            experts=experts, top_k=args.count("moe_router_topk", 2) if experts else 0,
            expert_ffn=expert_ffn,
            shared_expert_ffn=args.count("moe_shared_expert_intermediate_size") if experts else 0,
            shared_expert_gate=experts > 0 and args.flag("moe_shared_expert_gate"),
            router_bias=experts > 0 and args.flag("moe_router_enable_expert_bias"),
            moe_layers=flags, windows=_windows(args, layers),
            mtp_layers=args.count("mtp_num_layers"),
            tied_embeddings=not args.flag("untie_embeddings_and_output_weights"),
            learned_positions=positions if learned else 0, max_positions=positions,
            norm_bias=args.text("normalization", "LayerNorm").lower() == "layernorm",
            router_groups=args.count("moe_router_num_groups") if experts else 0,
            router_top_groups=args.count("moe_router_group_topk") if experts else 0,
            assumed=MappingProxyType(dict(sorted(args.assumed.items()))),
        )  # fmt: skip
    except SpecError as error:
        args.faults.extend(f"{args.name}: {fault}" for fault in error.faults)
        return None


def _not_read(args: MegatronArguments, reason: str) -> None:
    args.assumed["model"] = f"not read: {reason}"


def _named(args: MegatronArguments, layers: int, hidden: int) -> str:
    kind = "moe" if args.count("num_experts") else "gpt"
    return f"megatron-{kind}-l{layers}-h{hidden}"


def _default_width(hidden: int, *, gated: bool) -> int:
    """Return Megatron's default feed-forward width: 4h, with SwiGLU 2/3 of it in steps of 64."""
    return max(int(4 * hidden * 2 / 3) // 64 * 64, 1) if gated else 4 * hidden


def _vocabulary(args: MegatronArguments, tp: int) -> int:
    """Return the padded vocabulary: a multiple of make_vocab_size_divisible_by x tp."""
    if args.has("padded_vocab_size"):
        return args.count("padded_vocab_size", minimum=1)
    vocab = args.count("vocab_size", minimum=1) if args.has("vocab_size") else 0
    if not vocab:
        label = f"{args.hint('tokenizer_type')} {args.hint('tokenizer_model')}".lower()
        vocab = next((size for part, size in TOKENIZERS if part in label), 0)
        if vocab:
            args.assumed["vocab"] = f"not stated: {vocab}, that of the tokenizer {label.strip()!a}"
    multiple = args.count("make_vocab_size_divisible_by", 128, minimum=1) * tp
    padded = ceil(vocab / multiple) * multiple
    if padded != vocab:
        args.assumed["vocab"] = (
            args.assumed.get("vocab", f"stated: {vocab}") + f"; padded to {padded}"
        )
    return padded


def _attention(
    args: MegatronArguments, hidden: int, heads: int, *, biased: bool
) -> dict[str, str | int | bool]:
    common: dict[str, str | int | bool] = {
        "heads": heads,
        "out_bias": biased,
        "sinks": args.text("softmax_type") == "learnable",
    }
    if args.flag("multi_latent_attention"):
        rope = args.count("qk_pos_emb_head_dim", 64)
        return common | {
            "kind": "mla", "kv_heads": heads, "rope_head_dim": rope, "out_bias": False,
            "head_dim": args.count("qk_head_dim", 128, minimum=1) + rope,
            "v_head_dim": args.count("v_head_dim", 128, minimum=1),
            "q_lora_rank": args.count("q_lora_rank"),
            "kv_lora_rank": args.count("kv_lora_rank", 32, minimum=1),
        }  # fmt: skip
    if not args.has("kv_channels") and hidden % heads:
        args.fault("num_attention_heads", f"{heads} does not divide hidden_size = {hidden}")
    width = args.count("kv_channels", max(hidden // heads, 1), minimum=1)
    groups = heads
    if args.flag("group_query_attention") or args.has("num_query_groups"):
        groups = args.count("num_query_groups", 1, minimum=1)
    return common | {
        "kv_heads": groups, "head_dim": width, "v_head_dim": width,
        "qkv_bias": biased or args.flag("add_qkv_bias"), "qk_norm": args.flag("qk_layernorm"),
    }  # fmt: skip


def _moe_flags(args: MegatronArguments, layers: int) -> tuple[bool, ...]:
    """Return which layers are MoE: every n-th from the first, or a list of flags."""
    text = args.text("moe_layer_freq", "1").strip("'\" ")
    try:
        pattern = parse_pattern(text)
    except SpecError as error:
        args.fault("moe_layer_freq", str(error))
        return (True,) * layers
    if isinstance(pattern, int):
        return tuple(layer % max(pattern, 1) == 0 for layer in range(layers))
    if len(pattern) != layers:
        args.fault("moe_layer_freq", f"{len(pattern)} entries for num_layers = {layers}")
    return tuple(entry > 0 for entry in pattern)


def _windows(args: MegatronArguments, layers: int) -> tuple[int, ...]:
    text = args.text("window_size").strip("()[] ")
    if not text:
        return ()
    first = text.split(",")[0].strip()
    if not first.isascii() or not first.isdigit() or len(first) > 9:
        args.fault("window_size", "expected a left and a right width such as '128,0'")
        return ()
    try:
        skip = parse_pattern(args.text("window_attn_skip_freq", "0"))
    except SpecError as error:
        args.fault("window_attn_skip_freq", str(error))
        return ()
    if isinstance(skip, int):
        narrow = [not skip or (layer + 1) % skip != 0 for layer in range(layers)]
    else:
        narrow = [entry > 0 for entry in skip]
    return tuple(int(first) if flag else 0 for flag in narrow)
