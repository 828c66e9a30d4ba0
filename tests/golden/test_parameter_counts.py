"""Published parameter counts of the models that ship."""

from __future__ import annotations

import pytest

from tests.golden.published_counts import Published, check
from topologies.model_reader import model_names, read_model

CATALOGUE = (
    Published(model="llama-3.1-405b", total=405_853_388_800, source="model page; paper: 405B"),
    Published(model="llama-3.1-70b", total=70_553_706_496, source="model page"),
    Published(model="llama-3.1-8b", total=8_030_261_248, source="model page"),
    Published(model="llama-2-7b", total=6_738_415_616, source="model page"),
    Published(model="llama-2-70b", total=68_976_648_192, source="model page"),
    Published(model="gpt3-175b", total=174_600e6, source="arXiv:2005.14165 table D.1: 174,600 M"),
    Published(model="qwen3-32b", total=32.8e9, source="Qwen3-32B card: 32.8B"),
    Published(
        model="qwen3-235b-a22b", total=235.1e9, active=22e9, source="Qwen3-235B-A22B card: 235B/22B"
    ),
    Published(
        model="qwen3-30b-a3b", total=30.5e9, active=3.3e9, counts="both",
        source="Qwen3-30B-A3B card: 30.5B/3.3B",
    ),
    Published(
        model="mixtral-8x7b", total=46_702_792_704, active=12.9e9, counts="both",
        source="model page; Mistral AI's announcement: 46.7B/12.9B",
    ),
    Published(
        model="mixtral-8x22b", total=141e9, active=39e9, counts="both",
        source="Mistral AI's announcement: 141B/39B",
    ),
    Published(
        model="deepseek-v3", total=671_026_419_200, active=36.6e9,
        source="README_WEIGHTS.md: 671B, 36.6B including 0.9B for the output head",
    ),
    Published(
        model="kimi-k2", total=1026e9, active=32e9, source="arXiv:2507.20534: 1.04T/32.6B; card 32B"
    ),
    Published(
        model="gpt-oss-120b", total=116.83e9, active=5.13e9,
        source="arXiv:2508.10925 table 1: 116.83B/5.13B, unembedding counted, embedding not",
    ),
    Published(
        model="llama-4-maverick", total=400e9, active=17e9, counts="both",
        source="Llama 4 card: 400B/17B",
    ),
)  # fmt: skip


@pytest.mark.parametrize("published", CATALOGUE, ids=lambda published: published.model)
def test_a_catalogue_model_has_the_published_parameters(published: Published) -> None:
    check(read_model(published.model), published)


def test_every_catalogue_model_is_held_against_a_published_count() -> None:
    assert {published.model for published in CATALOGUE} == {*model_names()}


def test_deepseek_v3_has_its_published_mtp_module() -> None:
    """README_WEIGHTS.md: 11.5B unique parameters; 256 + 1 experts alone make 11.3B of it."""
    assert read_model("deepseek-v3").mtp_parameters == pytest.approx(11.5e9, rel=0.01)


def test_training_llama_405b_takes_the_published_flops() -> None:
    """arXiv:2407.21783 §3.2: 3.8e25 FLOPs for 15.6T tokens (6 x parameters x tokens)."""
    model = read_model("llama-3.1-405b")

    assert 6 * model.parameters() * 15.6e12 == pytest.approx(3.8e25, rel=0.005)
    assert 3 * model.forward_flops_per_token(8192.0) * 15.6e12 == pytest.approx(3.8e25, rel=0.05)
