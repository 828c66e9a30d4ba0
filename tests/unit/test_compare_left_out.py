"""Supernode sizes that hold more than the job are left out where others are compared."""

from __future__ import annotations

from cli.compare_inputs import Wanted, left_out_words


def wanted(*supernodes: int, gpus: int) -> Wanted:
    return Wanted(clusters=(), supernodes=supernodes, gpus=gpus, model=None, layout_files=(),
                  layout={}, order="tp-cp-ep-dp-pp")  # fmt: skip


def test_a_size_above_the_job_is_named_where_another_is_left() -> None:
    (said,) = left_out_words(wanted(8, 64, gpus=32))

    assert said.startswith("--supernode 64: left out")
    assert "32 GPUs" in said


def test_nothing_is_left_out_where_nothing_would_be_left_or_all_fit() -> None:
    assert left_out_words(wanted(64, gpus=32)) == []
    assert left_out_words(wanted(8, 32, gpus=32)) == []
