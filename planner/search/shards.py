"""Which layouts of a space hybrid sharding of a fixed size rules out, and their column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]


def shard_degree_reasons(shard: int, t: Mapping[str, Any]) -> dict[str, Bools]:
    """Return, for each reason, which degrees cannot be sharded over *shard* ranks of dp.

    Args:
        shard: ``Layout.dp_shard`` of all, 0 for all of dp [1].
        t: degree to one number a layout [1].

    >>> table = {n: np.array([1, 1, 1]) for n in ("tp", "cp", "ep", "etp")}
    >>> reasons = shard_degree_reasons(8, {**table, "dp": np.array([4, 8, 12])})
    >>> reasons["dp_shard does not divide dp"].tolist()
    [True, False, True]
    """
    if not shard:
        return {}
    inside, width = t["etp"] * t["ep"], t["tp"] * t["cp"] * shard
    return {
        "dp_shard does not divide dp": t["dp"] % shard != 0,
        "an expert group spans replicas of dp_shard": (t["dp"] > shard) & (width % inside != 0),
    }


def shard_run_reasons(shard: int, t: Mapping[str, Any]) -> dict[str, Bools]:
    """Return which runs shard nothing, though they are to shard over *shard* of more ranks."""
    if not shard:
        return {}
    return {"ZeRO 0 shards nothing over dp_shard": (t["zero_stage"] == 0) & (t["dp"] > shard)}


def shard_columns(shard: int, t: Mapping[str, Any]) -> dict[str, Any]:
    """Return the column ``shard_gpus``: cp x *shard*, 0 where that is all of cp x dp [1]."""
    return {"shard_gpus": t["cp"] * shard * (t["dp"] > shard)} if shard else {}
