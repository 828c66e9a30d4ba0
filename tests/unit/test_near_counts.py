"""Fewer GPUs that hold a model where the job's number, for want of divisors, does not."""

from __future__ import annotations

from planner.search.near_counts import fewer_gpus_that_fit, fewer_gpus_words
from topologies.model_reader import read_model

GB = 1e9


def test_an_awkward_number_of_gpus_names_fewer_that_hold_the_model() -> None:
    model = read_model("deepseek-v3")
    fixed = {"seq": 4096, "global_batch": 15360, "zero_stage": 3}

    counts = fewer_gpus_that_fit(model, 1023, fixed, 85.5 * GB)

    # 1023 = 3 x 11 x 31 shares neither heads (128) nor experts (256); 1020 = 4 x 255 does.
    assert counts[0] == 1020
    assert all(count % 4 == 0 for count in counts)
    assert "on 1,020 or" in fewer_gpus_words(1023, counts)


def test_nothing_is_named_where_degrees_are_given_or_memory_is_far_too_small() -> None:
    model = read_model("deepseek-v3")
    fixed = {"seq": 4096, "global_batch": 15360, "zero_stage": 3}

    assert fewer_gpus_that_fit(model, 1023, {**fixed, "dp": 1023}, 85.5 * GB) == []
    assert fewer_gpus_that_fit(model, 13, fixed, 8 * GB) == []
