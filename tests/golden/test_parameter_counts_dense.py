"""Published parameter counts of dense models, from the shape that a config.json states."""

from __future__ import annotations

import pytest

from tests.golden.published_counts import Published, by_model, check, model_of

CONFIGS = by_model(
    (
        (
            {"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
             "sliding_window": 4096, "vocab_size": 32000, "max_position_embeddings": 32768},
            Published(model="Mistral-7B", total=7_241_732_096, source="model page"),
        ),
        (
            {"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
             "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
             "vocab_size": 152064, "use_sliding_window": False, "sliding_window": 131072,
             "tie_word_embeddings": False},
            Published(model="Qwen2.5-7B", total=7_615_616_512, source="model page"),
        ),
        (
            {"model_type": "qwen2", "hidden_size": 8192, "intermediate_size": 29568,
             "num_attention_heads": 64, "num_hidden_layers": 80, "num_key_value_heads": 8,
             "vocab_size": 152064, "tie_word_embeddings": False},
            Published(model="Qwen2.5-72B", total=72_706_203_648, source="model page"),
        ),
        (
            {"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
             "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
             "vocab_size": 151936, "tie_word_embeddings": True},
            Published(model="Qwen2.5-0.5B", total=494_032_768, source="model page"),
        ),
        (
            {"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
             "vocab_size": 32064, "sliding_window": 262144, "max_position_embeddings": 131072},
            Published(model="Phi-3.5-mini", total=3_821_079_552, source="model page"),
        ),
        (
            {"model_type": "llama", "hidden_size": 7168, "intermediate_size": 20480,
             "num_attention_heads": 56, "num_hidden_layers": 60, "num_key_value_heads": 8,
             "vocab_size": 64000, "tie_word_embeddings": False},
            Published(model="Yi-1.5-34B", total=34_388_917_248, source="model page"),
        ),
        (
            {"model_type": "internlm2", "bias": False, "hidden_size": 4096,
             "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
             "num_key_value_heads": 8, "vocab_size": 92544, "tie_word_embeddings": False},
            Published(model="InternLM2.5-7B", total=7_737_708_544, source="model page"),
        ),
        (
            {"model_type": "cohere", "hidden_size": 4096, "intermediate_size": 14336,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
             "use_qk_norm": False, "vocab_size": 256000},
            Published(model="Aya-Expanse-8B", total=8_028_033_024, source="model page"),
        ),
        (
            {"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528,
             "num_attention_heads": 64, "num_hidden_layers": 40, "num_key_value_heads": 64,
             "use_qk_norm": False, "vocab_size": 256000},
            Published(model="Command-R", total=35e9, source="model card: 35 billion"),
        ),
        (
            {"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": None,
             "vocab_size": 51200, "qk_layernorm": False},
            Published(model="Phi-2", total=2.78e9, source="model page: 2.78B"),
        ),
        (
            {"model_type": "gemma2", "hidden_size": 4608, "intermediate_size": 36864,
             "num_attention_heads": 32, "num_hidden_layers": 46, "num_key_value_heads": 16,
             "head_dim": 128, "vocab_size": 256000, "sliding_window": 4096},
            Published(model="Gemma-2-27B", total=27.2e9, source="model page: 27.2B"),
        ),
        (
            {"model_type": "gemma3_text", "hidden_size": 5376, "intermediate_size": 21504,
             "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16,
             "head_dim": 128, "vocab_size": 262208, "sliding_window": 1024,
             "sliding_window_pattern": 6},
            Published(
                model="Gemma-3-27B", total=1_416e6 + 25_600e6,
                source="arXiv:2503.19786 table 1: 1,416 M embedding + 25,600 M",
            ),
        ),
        (
            {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12,
             "n_positions": 1024, "vocab_size": 50257},
            Published(model="GPT-2", total=124_439_808, source="model page: 124M"),
        ),
        (
            {"model_type": "bloom", "n_embed": 14336, "hidden_size": 14336, "n_head": 112,
             "n_layer": 70, "vocab_size": 250880},
            Published(
                model="BLOOM", total=176_247_271_424, source="BigScience's model card"
            ),
        ),
        (
            {"model_type": "opt", "hidden_size": 12288, "ffn_dim": 49152, "num_attention_heads": 96,
             "num_hidden_layers": 96, "vocab_size": 50272, "max_position_embeddings": 2048,
             "word_embed_proj_dim": 12288},
            Published(model="OPT-175B", total=175e9, source="arXiv:2205.01068 table 1: 175B"),
        ),
        (
            {"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576,
             "num_attention_heads": 64, "num_hidden_layers": 44, "vocab_size": 50432,
             "tie_word_embeddings": False},
            Published(
                model="GPT-NeoX-20B", total=20_554_567_680,
                source="model card: 20554567680 parameters",
            ),
        ),
        (
            {"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71,
             "num_hidden_layers": 32, "vocab_size": 65024, "bias": False, "multi_query": True,
             "parallel_attn": True, "new_decoder_architecture": False},
            Published(
                model="Falcon-7B", total=7.22e9 - 0.295e9,
                source="model page: 7.22B with a second copy of the tied embedding (0.295B)",
            ),
        ),
        (
            {"model_type": "starcoder2", "hidden_size": 3072, "intermediate_size": 12288,
             "num_attention_heads": 24, "num_hidden_layers": 30, "num_key_value_heads": 2,
             "vocab_size": 49152, "use_bias": True},
            Published(model="StarCoder2-3B", total=3.03e9, source="model page: 3.03B"),
        ),
        (
            {"model_type": "olmo", "hidden_size": 4096, "intermediate_size": 11008,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
             "vocab_size": 50304, "tie_word_embeddings": False},
            Published(
                model="OLMo-7B", total=6_888_095_744,
                source="arXiv:2402.00838: 6.9B; counted by Hugging Face's class",
            ),
        ),
        (
            {"model_type": "olmo2", "hidden_size": 4096, "intermediate_size": 11008,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
             "vocab_size": 100352, "tie_word_embeddings": False},
            Published(
                model="OLMo-2-7B", total=7_298_617_344,
                source="arXiv:2501.00656: 7B; counted by Hugging Face's class",
            ),
        ),
        (
            {"model_type": "olmo2", "hidden_size": 5120, "intermediate_size": 27648,
             "num_attention_heads": 40, "num_hidden_layers": 64, "num_key_value_heads": 8,
             "vocab_size": 100352, "tie_word_embeddings": False},
            Published(
                model="OLMo-2-32B", total=32_234_279_936,
                source="model page: 32B; counted by Hugging Face's class",
            ),
        ),
        (
            {"model_type": "phi3", "hidden_size": 5120, "intermediate_size": 17920,
             "num_attention_heads": 40, "num_hidden_layers": 40, "num_key_value_heads": 10,
             "vocab_size": 100352, "sliding_window": None, "tie_word_embeddings": False},
            Published(model="Phi-4", total=14_659_507_200, source="model page: 14.7B"),
        ),
    )
)  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_json_gives_the_published_parameters(name: str) -> None:
    one = CONFIGS[name]

    check(model_of(one.text, name), one.published)
