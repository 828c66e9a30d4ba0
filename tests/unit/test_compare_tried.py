"""What is said where no size of a cluster does a run in time: it is no proof that none could."""

from __future__ import annotations

import pytest

from cli.compare_tried import Tried
from planner.errors import InfeasibleError, InputError


def test_a_cluster_whose_file_ends_is_not_called_impossible() -> None:
    tried = Tried(rates={32: 1e6, 64: 2e6}, whole_gpus=64)

    with pytest.raises(InputError) as told:
        tried.none_in_time(15e12, 60.0, 64, 1.0)

    # 15e12 tokens / (2e6 a second x 86,400 s a day) = 86.8 days
    assert told.value.faults[0] == (
        "of the sizes tried, up to 64 GPUs, none trains 15T tokens in 60 days; 64 GPUs take 86.81 "
        "days; its file or what is dead in it fixes its 64 GPUs; describe a larger cluster, give "
        "more days, or leave this cluster out"
    )


def test_sizes_up_to_the_most_that_are_looked_at_are_called_tried() -> None:
    with pytest.raises(InfeasibleError) as told:
        Tried(rates={128: 2e6}).none_in_time(15e12, 60.0, 131_072, 1.0)

    assert told.value.faults[0].startswith("of the sizes tried, up to 131,072 GPUs, none trains")
