"""The shape a language model has where its ``text_config`` leaves a key out.

A multimodal file keeps of the part inside only what differs from the defaults of its class. A file
that is a language model's alone states all of them, so that a missing one is a fault there.

Source: the configuration classes of transformers 5.24.0 (Apache-2.0), each made without arguments;
a test does so again where that package is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_FIELDS = ("vocab", "hidden", "ffn", "layers", "heads")


def _shape(*numbers: int) -> Mapping[str, int]:
    return MappingProxyType(dict(zip(_FIELDS, numbers, strict=True)))


NESTED_SHAPES: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "gemma": _shape(256_000, 3072, 24_576, 28, 16),
        "gemma2": _shape(256_000, 2304, 9216, 26, 8),
        "gemma3_text": _shape(262_208, 2304, 9216, 26, 8),
        "llama": _shape(32_000, 4096, 11_008, 32, 32),
        "mistral": _shape(32_000, 4096, 14_336, 32, 32),
        "phi3": _shape(32_064, 3072, 8192, 32, 32),
        "qwen2": _shape(151_936, 4096, 22_016, 32, 32),
        "qwen2_5_vl_text": _shape(152_064, 8192, 29_568, 80, 64),
        "qwen2_vl_text": _shape(152_064, 8192, 29_568, 80, 64),
        "qwen3": _shape(151_936, 4096, 22_016, 32, 32),
        "qwen3_vl_text": _shape(151_936, 4096, 22_016, 32, 32),
    }
)
"""By ``model_type`` of the inner part: entries of the vocabulary, widths, layers and heads [1]."""
