"""Which layouts of a space hybrid sharding rules out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]


def shard_degree_reasons(t: Mapping[str, Any]) -> dict[str, Bools]:
    """Return, for each reason, which degrees cannot be sharded over ``dp_shard`` ranks of dp.

    Args:
        t: degree to one number a layout; ``dp_shard`` is 0 where all of dp is one shard group [1].

    >>> table = {n: np.array([1, 1, 1]) for n in ("tp", "cp", "ep", "etp")}
    >>> table |= {"dp_shard": np.array([8, 0, 8]), "dp": np.array([4, 8, 12])}
    >>> shard_degree_reasons(table)["dp_shard does not divide dp"].tolist()
    [True, False, True]
    """
    hybrid = t["dp_shard"] > 0
    shard = np.where(hybrid, t["dp_shard"], 1)
    inside, width = t["etp"] * t["ep"], t["tp"] * t["cp"] * shard
    return {
        "dp_shard does not divide dp": t["dp"] % shard != 0,
        "an expert group spans replicas of dp_shard": hybrid & (width % inside != 0),
    }


def shard_run_reasons(t: Mapping[str, Any]) -> dict[str, Bools]:
    """Return which runs shard nothing, though they are to shard over fewer ranks than dp."""
    return {"ZeRO 0 shards nothing over dp_shard": (t["zero_stage"] == 0) & (t["dp_shard"] > 0)}
