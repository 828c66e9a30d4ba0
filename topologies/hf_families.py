"""What a Hugging Face model class does without saying so in its config.json.

A config leaves out what its class fixes (Qwen2 has biases on q, k and v) or defaults (Gemma ties
its embeddings). Each entry says so for the ``model_type`` it stands for. An unknown type has no
entry; ``import_hf_config`` then takes it for a Llama only if the file says all that makes it one.

Source: the configuration classes of transformers 5.24.0 say what is tied and what has a bias by
default (held against them by a test where the package is installed), and of classes that are not
among them the copies that ``hf_hub_classes`` names; what a class fixes in its modeling code (norms,
parallel blocks, three matrices) is known from that code in 4.x and 5.x.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class HfFamily:
    """Defaults of one model class.

    Args:
        tied: whether the head is the input embedding where the file does not say.
        gated: the feed-forward has three matrices.
        qkv_bias, out_bias, mlp_bias: biases where no key says.
        bias_keys: keys that switch these biases, for q, k, v and for the output.
        out_follows: the output projection follows the same key as q, k and v.
        mlp_bias_keys: keys that switch the biases of the feed-forward.
        norm_bias: LayerNorm with bias, not RMSNorm.
        norms: norm vectors of width h in a layer.
        qk_norm: a norm on queries and keys where no key says.
        qk_norm_wide: it is as wide as all heads together, not as one.
        qk_norm_bias: it has a bias.
        parallel: attention and feed-forward side by side.
        positions: a learned position table.
        position_offset: entries the table has beyond the longest sequence (OPT).
        ffn_ratio: width of the feed-forward over h where the file does not say, 0: must be said.
        expert_is_intermediate: ``intermediate_size`` is the width of one expert.
        router_bias: one bias per expert where no key says.
        windows: rule for the layers with a window: ``all``, ``even``, ``pattern``, ``late``,
            ``chunk``, ``none``.
        window_pattern: every so many layers one is full, where the file does not say.
    """

    tied: bool = False
    gated: bool = True
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    bias_keys: tuple[str, ...] = ("attention_bias",)
    out_follows: bool = True
    mlp_bias_keys: tuple[str, ...] = ("mlp_bias",)
    norm_bias: bool = False
    norms: int = 2
    qk_norm: bool = False
    qk_norm_wide: bool = False
    qk_norm_bias: bool = False
    parallel: bool = False
    positions: bool = False
    position_offset: int = 0
    ffn_ratio: int = 0
    expert_is_intermediate: bool = False
    router_bias: bool = False
    windows: str = "none"
    window_pattern: int = 0
    embedding_norm: bool = False


LLAMA = HfFamily()
_MISTRAL = HfFamily(windows="all")
_MIXTRAL = HfFamily(windows="all", expert_is_intermediate=True)
_QWEN2 = HfFamily(
    qkv_bias=True, bias_keys=("qkv_bias", "attention_bias"), out_follows=False, windows="late"
)
_QWEN3 = HfFamily(qk_norm=True, windows="late")
_DEEPSEEK = HfFamily()
_DEEPSEEK3 = HfFamily(router_bias=True)
_GLM = HfFamily(out_follows=False)
_GLM_BIASED = HfFamily(qkv_bias=True, out_follows=False)
_GPT2 = HfFamily(
    tied=True, gated=False, qkv_bias=True, out_bias=True, mlp_bias=True, bias_keys=(),
    mlp_bias_keys=(), norm_bias=True, positions=True, ffn_ratio=4,
)  # fmt: skip
_FALCON = HfFamily(
    tied=True, gated=False, bias_keys=("bias",), mlp_bias_keys=("bias",), norm_bias=True,
    ffn_ratio=4,
)  # fmt: skip
_PHI = replace(_GPT2, tied=False, positions=False, parallel=True, norms=1, qk_norm_bias=True)
_COHERE = HfFamily(tied=True, norms=1, parallel=True, qk_norm_wide=True)

FAMILIES: dict[str, HfFamily] = {
    "aquila": LLAMA,
    "apertus": HfFamily(gated=False, qk_norm=True),
    "arcee": HfFamily(gated=False),
    "baichuan": LLAMA,
    "bloom": replace(_GPT2, positions=False, embedding_norm=True),
    "chatglm": HfFamily(
        bias_keys=("add_qkv_bias", "add_bias_linear"), out_follows=False,
        mlp_bias_keys=("add_bias_linear",),
    ),
    "cohere": _COHERE,
    "cohere2": replace(_COHERE, windows="pattern", window_pattern=4),
    "dbrx": HfFamily(),
    "deepseek": _DEEPSEEK,
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK3,
    "deepseek_v32": _DEEPSEEK3,
    "dots1": replace(_DEEPSEEK3, qk_norm=True, windows="late"),
    "ernie4_5": HfFamily(tied=True, bias_keys=("use_bias",), mlp_bias_keys=("use_bias",)),
    "ernie4_5_moe": HfFamily(
        tied=True, bias_keys=("use_bias",), mlp_bias_keys=("use_bias",), router_bias=True
    ),
    "exaone": LLAMA,
    "exaone4": HfFamily(qk_norm=True, windows="pattern"),
    "falcon": _FALCON,
    "RefinedWeb": _FALCON,
    "RefinedWebModel": _FALCON,
    "gemma": HfFamily(tied=True),
    "gemma2": HfFamily(tied=True, norms=4, windows="even"),
    "gemma3": HfFamily(tied=True, norms=4, qk_norm=True, windows="pattern", window_pattern=6),
    "gemma3_text": HfFamily(tied=True, norms=4, qk_norm=True, windows="pattern", window_pattern=6),
    "glm": _GLM_BIASED,
    "glm4": replace(_GLM_BIASED, norms=4),
    "glm4_moe": replace(_GLM, router_bias=True),
    "glm_moe_dsa": _DEEPSEEK3,
    "gpt2": _GPT2,
    "gpt_bigcode": _GPT2,
    "gpt_neo": replace(_GPT2, qkv_bias=False),
    "gpt_neox": replace(
        _GPT2, tied=False, positions=False, bias_keys=("attention_bias",), parallel=True,
        ffn_ratio=0,
    ),
    "gpt_oss": HfFamily(
        qkv_bias=True, out_bias=True, expert_is_intermediate=True, router_bias=True, windows="even"
    ),
    "gptj": replace(_PHI, qkv_bias=False, out_bias=False),
    "granite": LLAMA,
    "granitemoe": HfFamily(expert_is_intermediate=True),
    "grok-1": HfFamily(norms=4, expert_is_intermediate=True),
    "helium": LLAMA,
    "hunyuan_v1_dense": HfFamily(qk_norm=True),
    "hunyuan_v1_moe": HfFamily(qk_norm=True),
    "internlm": HfFamily(qkv_bias=True, out_bias=True, bias_keys=("bias",)),
    "internlm2": HfFamily(qkv_bias=True, out_bias=True, bias_keys=("bias",)),
    "internlm3": HfFamily(bias_keys=("qkv_bias",), out_follows=False),
    "kimi_k2": _DEEPSEEK3,
    "llama": LLAMA,
    "llama4": HfFamily(expert_is_intermediate=True, windows="chunk"),
    "llama4_text": HfFamily(expert_is_intermediate=True, windows="chunk"),
    "minicpm": HfFamily(tied=True),
    "minimax_m2": HfFamily(
        expert_is_intermediate=True, router_bias=True, qk_norm=True, qk_norm_wide=True
    ),
    "ministral": _MISTRAL,
    "mistral": _MISTRAL,
    "mistral3": _MISTRAL,
    "mixtral": _MIXTRAL,
    "mpt": HfFamily(tied=True, gated=False, bias_keys=(), mlp_bias_keys=(), ffn_ratio=4),
    "nemotron": HfFamily(gated=False, norm_bias=True),
    "olmo": HfFamily(norms=0),
    "olmo2": HfFamily(qk_norm=True, qk_norm_wide=True),
    "olmo3": HfFamily(qk_norm=True, qk_norm_wide=True, windows="pattern", window_pattern=4),
    "olmoe": HfFamily(expert_is_intermediate=True, qk_norm=True, qk_norm_wide=True),
    "opt": replace(
        _GPT2, bias_keys=("enable_bias",), mlp_bias_keys=("enable_bias",), position_offset=2,
        ffn_ratio=0,
    ),
    "persimmon": HfFamily(
        gated=False, qkv_bias=True, out_bias=True, mlp_bias=True, bias_keys=(), mlp_bias_keys=(),
        norm_bias=True, qk_norm=True, qk_norm_bias=True,
    ),
    "phi": _PHI,
    "phi-msft": _PHI,
    "phi3": _MISTRAL,
    "phimoe": HfFamily(norm_bias=True, expert_is_intermediate=True, windows="all"),
    "qwen2": _QWEN2,
    "qwen2_moe": _QWEN2,
    "qwen2_vl": _QWEN2,
    "qwen2_vl_text": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3,
    "qwen3_vl_text": _QWEN3,
    "qwen3_vl_moe_text": _QWEN3,
    "qwen3_omni_moe_text": _QWEN3,
    "seed_oss": HfFamily(qkv_bias=True, bias_keys=("attention_bias",), out_follows=False),
    "smollm3": HfFamily(tied=True),
    "stablelm": HfFamily(
        norm_bias=True, bias_keys=("use_qkv_bias",), out_follows=False, qk_norm_wide=True
    ),
    "starcoder2": HfFamily(
        tied=True, gated=False, qkv_bias=True, out_bias=True, mlp_bias=True,
        bias_keys=("use_bias",), mlp_bias_keys=("use_bias",), norm_bias=True, windows="all",
    ),
    "Yi": LLAMA,
}  # fmt: skip

_HEAD_BIAS = "the bias of the output matrix: one parameter for each entry of the vocabulary"
LEFT_OUT: dict[str, str] = {
    "apertus": "two parameters of the activation in each layer",
    "gptj": _HEAD_BIAS,
    "phi": _HEAD_BIAS,
    "phi-msft": _HEAD_BIAS,
}
"""What a class has and a ``ModelSpec`` has not: less than 2e-5 of its parameters."""

REFUSED_TYPES: dict[str, str] = {
    **dict.fromkeys(
        ("bamba", "falcon_h1", "granitemoehybrid", "jamba", "mamba", "mamba2", "nemotron_h",
         "recurrent_gemma", "rwkv", "rwkv5", "rwkv6", "rwkv7", "zamba", "zamba2", "lfm2",
         "lfm2_moe", "falcon_mamba", "plamo2"),
        "some of its layers have no attention (state space, recurrence or convolution)",
    ),
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "kimi_linear",
         "minimax", "minimax_text_01", "MiniMaxText01", "minimax_m1", "MiniMaxM1",
         "bailing_moe_linear"),
        "some of its layers have linear attention",
    ),
    **dict.fromkeys(
        ("albert", "bert", "deberta", "deberta-v2", "distilbert", "electra", "modernbert",
         "roberta", "xlm-roberta", "mpnet", "nomic_bert"),
        "it is an encoder, not a decoder",
    ),
    **dict.fromkeys(
        ("bart", "mbart", "marian", "mt5", "pegasus", "t5", "umt5", "whisper", "nllb-moe",
         "switch_transformers", "m2m_100", "blenderbot"),
        "it has an encoder and a decoder",
    ),
    **dict.fromkeys(
        ("clip", "clip_vision_model", "siglip", "vit", "dinov2", "deit", "swin"),
        "it is a vision model",
    ),
}  # fmt: skip
