"""Layouts that run at another sequence length, though not at today's: where lengths are varied.

A sequence is cut in equal parts by CP, and by TP and CP together where activations are. Of 24 GPUs
three may share 6,144 tokens and not 4,096: of such layouts nothing is known until they are listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import lcm

import numpy as np

from planner.search.axes import LENGTHS, WIDEST_FACTOR
from planner.search.pool import Pool
from planner.search.search import space_on
from planner.search.together import grouped
from planner.search.whole import Whole


def of_any_length(pools: Sequence[Pool]) -> list[Pool]:
    """Return *pools*, each of a space of all layouts that run at any length; their rows stay.

    What does not run at a length is never found there: see ``Whole.that_can``.
    """
    found: dict[int, Pool] = {}
    for some in grouped(pools, key=lambda pool: id(pool.whole)):
        alike = [pools[at] for at in some]
        whole = _of_any_length(alike)
        today = np.flatnonzero(whole.runs(1.0, np.arange(whole.space.size)))
        for at, pool in zip(some, alike, strict=True):
            longer = replace(pool, whole=whole)
            found[at] = pool if whole is pool.whole else longer.with_rows(today[pool.rows])
    return [found[at] for at in range(len(pools))]


def _of_any_length(pools: Sequence[Pool]) -> Whole:
    """Return the space of *pools*, which share one, with what runs at any other length, too."""
    whole, rules = pools[0].whole, pools[0].rules
    gpus = int(pools[0].columns.gpus[0])
    seq = _that_all_divide(int(whole.fixed["seq"]), gpus)
    if seq == whole.fixed["seq"] or any("seq" in rule.names for rule in rules):
        return whole
    machines = [pool.machine for pool in pools]
    fixed = {**whole.fixed, "seq": seq}
    space = space_on(whole.model, machines, gpus, fixed, rules=rules)
    if space.size == whole.space.size:
        return whole
    return Whole.of(whole.model, space, whole.fixed, machines[0])


def _that_all_divide(seq: int, gpus: int) -> int:
    """Return a multiple of *seq* that any of *gpus* ranks may share at some length asked about.

    >>> _that_all_divide(4096, 1024), _that_all_divide(4096, 24), _that_all_divide(100, 64)
    (4096, 12288, 800)
    """
    twos = gpus & -gpus
    while twos > max(1.0, seq * WIDEST_FACTOR / LENGTHS):
        twos //= 2
    return lcm(seq, gpus // (gpus & -gpus), twos)
