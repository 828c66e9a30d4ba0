"""What no seating makes a step shorter than: the bound by which layouts are left out unseated.

A group of n ranks touches k supernodes, no fewer than hold it, and two at least where not every
group of its kind finds room in one. Let r be the most members that all groups of a kind can have in
the supernode that holds fewest of each, and I and R the most that leaves a GPU inside its supernode
and over its NIC. Some supernode leaves out no more than its share of the GPUs to spare, and all of
them hold two parts of r or more of each group that is not whole: both bound r. No link carries more
for a GPU than leaves it, so that a byte takes

- in a ring of a whole group 1 / I; of a split one 1 / (r R) at least, and 1 / (I + R), for of m
  members each sends (m - 1) / m of it inside and 1 / m across;
- in an all-reduce two rings' time, or over a tree 0.6 of that, and 1 / (I + 2 R) of two at least;
- in an all-to-all of a whole group n - 1 times a pair's bytes / I, of a split one (n - r) / R;
- in a hop of a ring over a border 1 / R.

What leaves a GPU by way of a NIC leaves that NIC, too.

Where a group could be whole, NICs may yet make it faster split: it takes what is less of both.

Two kinds of groups that cross, as TP and DP do, compete for a supernode of c: every rank there has
a of its TP group with it, and each of these b of its own DP group, so that a b <= c. Whatever a is,
the step takes what it takes at least with that a and the b it leaves.

Start-ups, hops of pipelines, and what hybrid sharding or one copy for each domain sends are left
out; sharing links only lengthens what is left.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.collectives.links import LinkNumbers, Spread, TierNumbers, links_of
from planner.network.wiring import MOST_ATTACHED_GPUS, SCALE_UP_COST, Wiring, wiring_of
from planner.search.changed import AS_IT_IS, changed_fabric, changed_wiring
from planner.search.evaluate import CHUNK_ROWS
from planner.search.placed import inside_spreads
from planner.search.whole import longer_columns
from planner.steptime.spread import Spreads, digits_of
from planner.steptime.step import step_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from planner.fabric import Fabric
    from planner.model import ModelSpec
    from planner.search.changed import Change
    from planner.search.evaluate import Machine
    from planner.search.space import Space
    from planner.steptime.columns import LayoutColumns

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_TREE_SHARE = 0.6
"""Of two rings' time, what a tree takes at least [1]: a NIC at 0.8 of its rate sends 1, not 2."""
_NEGLIGIBLE = 1e-6
"""A share that leaves next to nothing of a digit's time, and yet no hop of 0 s [1]."""


class AnySeats:
    """The best seats that a cluster could have for each kind of group by itself.

    Args:
        fabric: the cluster.
        gpus: of the job [1].
        change: of its network.
    """

    def __init__(self, fabric: Fabric, gpus: int, change: Change = AS_IT_IS) -> None:
        self._fabric, self._gpus = fabric, gpus
        self._capacities = sorted(fabric.capacities("supernode"), reverse=True)
        leaving, there = _leaving(fabric, change), changed_fabric(fabric, change)
        self._own_links, self._links = links_of(there), _links(there, leaving)
        self._ratio = leaving.inside_bytes_per_s / leaving.across_bytes_per_s
        self._spare = sum(self._capacities) - gpus
        used = [c for c in self._capacities if c > self._spare]
        self._shared = min(used, default=self._capacities[0])
        self._known: dict[int, tuple[float, float]] = {}
        self._changed = {change: self}

    def under(self, change: Change) -> AnySeats:
        """Return the same on the cluster's network under *change*; its length is not looked at."""
        network = replace(change, seq=1.0)
        if network not in self._changed:
            found = AnySeats(self._fabric, self._gpus, network)
            found._known, found._changed = self._known, self._changed
            self._changed[network] = found
        return self._changed[network]

    def least_s(
        self, model: ModelSpec, machine: Machine, space: Space, fixed: Mapping[str, Any],
        rows: Ints, seq: float = 1.0,
    ) -> Floats:  # fmt: skip
        """Return what the steps of *rows* of *space* take at least, wherever ranks sit [s].

        Args:
            model: the transformer's shape.
            machine: the cluster; its own links and seats are not looked at.
            space: the layouts.
            fixed: the fields of ``Layout`` that they share.
            rows: of the space.
            seq: how many times as long the sequences are [1].
        """
        alone = _Caps(tp=np.inf, others=np.inf, ep=np.inf, edp=np.inf)
        found = [np.empty(0)]
        for start in range(0, rows.size, CHUNK_ROWS):
            columns = longer_columns(space.columns(fixed, rows[start : start + CHUNK_ROWS]), seq)
            found.append(self._least_s(model, machine, columns, alone))
        return np.concatenate(found)

    def closer_s(
        self, model: ModelSpec, machine: Machine, space: Space, fixed: Mapping[str, Any], rows: Ints
    ) -> Floats:
        """Return the same of few rows, closer: with what groups leave to each other [s]."""
        found = np.full(rows.size, np.inf)
        tp, ep = space.table["tp"][rows], space.table["ep"][rows]
        for few_tp in _halvings(int(tp.max(initial=1))):
            for few_ep in _halvings(int(ep.max(initial=1))):
                some = np.flatnonzero((few_tp.least <= tp) & (few_ep.least <= ep))
                caps = _Caps(tp=few_tp.most, others=self._shared / few_tp.least, ep=few_ep.most,
                             edp=self._shared / few_ep.least)  # fmt: skip
                for start in range(0, some.size, CHUNK_ROWS):
                    at = some[start : start + CHUNK_ROWS]
                    columns = space.columns(fixed, rows[at])
                    found[at] = np.minimum(found[at], self._least_s(model, machine, columns, caps))
        return found

    def _least_s(
        self, model: ModelSpec, machine: Machine, columns: LayoutColumns, caps: _Caps
    ) -> Floats:
        spreads = self._spreads(columns, caps)
        step = step_columns(
            model, columns, accelerator=machine.accelerator, links=self._links, spreads=spreads,
            efficiency=machine.efficiency, slowdown=self._shares(columns, spreads),
        )  # fmt: skip
        return np.broadcast_to(step.total_s, columns.tp.shape)

    def placed_s(
        self, model: ModelSpec, machine: Machine, columns: LayoutColumns, spreads: Spreads
    ) -> Floats:
        """Return what steps take at least where groups sit as *spreads* say, links shared [s].

        Where switches join the GPUs of a supernode, with start-ups: bytes alone can take less than
        at the tiers' rates, by no more than these are below what leaves a GPU.

        Args:
            model: the transformer's shape.
            machine: the cluster; its own links and seats are not looked at.
            columns: the layouts.
            spreads: theirs; an axis before that of the rows is of seatings, of which the best.
        """
        links, less = self._own_links, self._slower(self._own_links)
        if not less:
            links, less = self._links, 1.0
            spreads = _on_two_tiers(spreads)
        step = step_columns(
            model, columns, accelerator=machine.accelerator, links=links, spreads=spreads,
            efficiency=machine.efficiency,
            slowdown={name: one * less for name, one in self._shares(columns, spreads).items()},
        )  # fmt: skip
        least_s: Floats = np.atleast_2d(step.total_s).min(axis=0)
        return least_s

    def _slower(self, links: LinkNumbers) -> float:
        """Return the slowest tier's rate over what leaves a GPU; 0 where that bounds nothing."""
        inside, across = self._links.tiers
        if np.any(np.less(links.inside.pair_bytes_per_s, links.inside.bytes_per_s)):
            return 0.0
        own = float(np.min(links.inside.crowded_bytes_per_s() / inside.bytes_per_s))
        out = (float(np.min(one.crowded_bytes_per_s() / across.bytes_per_s)) for one in links.outer)
        return min(own, *out, 1.0)

    def _spreads(self, columns: LayoutColumns, caps: _Caps) -> Spreads:
        """Return the best spread of each kind of group, r no more than *caps* says."""
        sizes = inside_spreads(columns)
        most = {"tp": caps.tp, "cp": caps.others, "dp": caps.others, "ep": caps.ep, "edp": caps.edp}
        return Spreads(
            **{
                name: self._best(getattr(sizes, name).group_size, most.get(name, np.inf))
                for name in digits_of(sizes)
            }
        )

    def _best(self, group_size: Any, most: float) -> Spread:
        sizes, place = np.unique(np.asarray(group_size, dtype=float), return_inverse=True)
        each = np.array([self._touched_and_least(int(size)) for size in sizes])
        touched, least = np.moveaxis(each[place].reshape(*np.shape(group_size), 2), -1, 0)
        touched = np.where(least > most, np.maximum(touched, 2.0), touched)
        least = np.minimum(least, np.minimum(most, group_size / touched))
        return Spread(group_size=group_size, members=(group_size / touched,), domains=(touched,),
                      least_members=least)  # fmt: skip

    def _touched_and_least(self, n: int) -> tuple[float, float]:
        """Return k and r of groups of *n* ranks [1]."""
        if n not in self._known:
            held = np.cumsum(self._capacities)
            if sum(c // n * n for c in self._capacities) >= self._gpus:
                self._known[n] = 1.0, float(n)
            else:
                k = max(2, int(np.searchsorted(held, n)) + 1)
                least = [
                    self._most_least(n, c, self._spare)
                    for c in set(self._capacities) if c > self._spare
                ]  # fmt: skip
                share = self._spare // len(self._capacities)  # no more is spare in one of them
                one = max(self._most_least(n, c, share) for c in set(self._capacities))
                counted = most_counted(self._capacities, n, self._gpus // n)
                self._known[n] = float(k), float(min([n / k, one, counted, *least]))
        return self._known[n]

    @staticmethod
    def _most_least(n: int, capacity: int, spare: int) -> int:
        """Return r in a supernode of *capacity*, of which up to *spare* hold no rank [1]."""
        least_held = max(0, capacity - spare)
        return max(most_least(held, n) for held in range(least_held, capacity + 1))

    def _shares(self, columns: LayoutColumns, spreads: Spreads) -> dict[str, Any]:
        """Return how much of its bytes' time on *spreads* each digit takes at least [1]."""
        ratio = self._ratio
        found: dict[str, Any] = {"pp": _NEGLIGIBLE}
        for name in ("tp", "cp", "ep", "etp", "dp", "edp"):
            spread = getattr(spreads, name)
            n, k, r = spread.group_size, spread.supernodes, spread.least_members
            whole, m = k == 1.0, n / k
            split = np.where((r <= ratio) | (m <= 1.0 + ratio), 1.0, ratio / (1.0 + ratio))
            ring = np.where(whole, ratio / np.minimum(np.maximum(n / 2.0, 1.0), 1.0 + ratio), split)
            pairs = min(1.0, ratio / 2.0)
            share = pairs if name == "ep" else np.minimum(np.minimum(1.0, ring), pairs)
            few = np.where(whole, n <= 1.25 * ratio, m <= 1.0 + 0.5 * ratio)
            tree = np.where(whole & few, 1.0, _TREE_SHARE)
            tree = tree * np.where(few, 1.0, ratio / (2.0 + ratio))
            found[name] = np.where(_all_reduces(name, columns), np.minimum(share, tree), share)
        for name in ("dp", "edp"):
            found[name] = np.where(columns.shard_gpus > 0, _NEGLIGIBLE, found[name])
        found["ep"] = np.where(columns.domain_copies > 0, _NEGLIGIBLE, found["ep"])
        return found


def _on_two_tiers(spreads: Spreads) -> Spreads:
    """Return *spreads* inside supernodes and across them."""
    return Spreads(
        **{
            name: replace(one, members=(one.together,), domains=(one.supernodes,))
            for name in digits_of(spreads)
            for one in (getattr(spreads, name),)
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Caps:
    """The most that r may be, of each kind of group [1].

    Args:
        tp, ep, edp: of those.
        others: of CP, and of the gradients' groups.
    """

    tp: float
    others: float
    ep: float
    edp: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Few:
    """So many members of a group are in the supernode that holds fewest, from *least* to *most*."""

    least: int
    most: int


def _halvings(n: int) -> list[_Few]:
    """Return ranges that r of groups of up to *n* can be in.

    >>> [(one.least, one.most) for one in _halvings(8)]
    [(1, 1), (2, 3), (4, 7), (8, 15)]
    """
    return [_Few(least=2**i, most=2 ** (i + 1) - 1) for i in range(n.bit_length())]


def _all_reduces(name: str, columns: LayoutColumns) -> Any:
    """Return where a digit's groups reduce in one go, with whatever algorithm is fastest."""
    if name == "tp":
        return np.equal(columns.sequence_parallel, 0.0)
    return np.equal(columns.zero_stage, 0.0) if name in {"dp", "edp"} else np.False_


def most_least(held: int, n: int) -> int:
    """Return r: a domain of *held* ranks of groups of *n* may have r of each, but not more.

    Every group has none of its ranks there, all, or from r to n - r, and *held* is their sum.

    >>> most_least(72, 64), most_least(72, 16), most_least(72, 32)  # 36 + 36, 4 whole and 8, 4 x 18
    (28, 8, 14)
    """
    most = 0 if held % n else n // 2
    for whole in range(held // n + 1):
        rest = held - whole * n
        for parts in range(1, 2 * rest // n + 3):
            most = max(most, min(rest // parts, n - -(-rest // parts), n // 2))
    return most


def most_counted(capacities: Sequence[int], n: int, groups: int) -> int:
    """Return r: so many *groups* of *n* may have r wherever they have any, by counting alone.

    A group is whole, or in two supernodes at least. Each of w whole ones in a supernode of c counts
    for two parts there, and of others it holds (c - w n) / r at most; in all two for each group.

    >>> most_counted([72] * 15, 64, 16)  # at 25 and more: two parts in each rack, 30 of 32
    24
    """
    some = Counter(capacities)
    for r in range(n // 2, 1, -1):
        parts = (
            count * max((c - w * n) // r + 2 * w for w in range(c // n + 1))
            for c, count in some.items()
        )
        if sum(parts) >= 2 * groups:
            return r
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaving:
    """The most that leaves a GPU inside its supernode and out of it [bytes/s]."""

    inside_bytes_per_s: float
    across_bytes_per_s: float


def _leaving(fabric: Fabric, change: Change) -> _Leaving:
    """Return what leaves a GPU: over its links, or at its tier's rate where that is more."""
    tiers = links_of(changed_fabric(fabric, change))
    inside = float(np.max(tiers.inside.alone_bytes_per_s()))
    across = max([0.0, *(float(np.max(tier.alone_bytes_per_s())) for tier in tiers.outer)])
    if len(fabric.gpus) <= MOST_ATTACHED_GPUS:
        wiring = changed_wiring(wiring_of(fabric), fabric.nic, change)
        links, own = wiring.links, wiring.links.cost == SCALE_UP_COST
        out = np.zeros((2, len(links.vertices)))
        np.add.at(out, (np.where(own, 0, 1), links.tails), _passed_on(wiring))
        ports, nics = out[:, wiring.vertices].max(axis=1)
        inside = max(inside, float(ports) or float(nics))
        across = max(across, float(nics) if _is_joined(wiring) else float(nics + ports))
    return _Leaving(inside_bytes_per_s=inside, across_bytes_per_s=across or inside)


def _passed_on(wiring: Wiring) -> Floats:
    """Return what each link carries at most, to a GPU's own NIC what leaves that [bytes/s]."""
    links, rates = wiring.links, wiring.reached_bytes_per_s
    from_gpu, to_gpu = links.is_gpu[links.tails], links.is_gpu[links.heads]
    leaves, senders, receivers = np.zeros((3, len(links.vertices)))
    np.add.at(leaves, links.tails, np.where(to_gpu, 0.0, rates))
    np.add.at(senders, links.heads, from_gpu)
    np.add.at(receivers, links.tails, to_gpu)
    own = links.is_nic & (senders == 1) & (receivers <= 1)
    return np.where(own[links.heads], np.minimum(rates, leaves[links.heads]), rates)


def _is_joined(wiring: Wiring) -> bool:
    """Return whether the network joins all GPUs, so that none passes on what others send."""
    network = wiring.links.cost != SCALE_UP_COST
    tails, heads = wiring.links.tails[network], wiring.links.heads[network]
    label = np.arange(len(wiring.links.vertices))
    while True:
        lower = label.copy()
        np.minimum.at(lower, tails, label[heads])
        np.minimum.at(lower, heads, label[tails])
        if np.array_equal(lower, label):
            return bool((label[wiring.vertices] == label[wiring.vertices[0]]).all())
        label = lower


def _links(fabric: Fabric, leaving: _Leaving) -> LinkNumbers:
    """Return two tiers at the rates of *leaving*, without start-ups."""
    known = links_of(fabric)

    def tier(name: str, rate: float) -> TierNumbers:
        return TierNumbers(name=name, bytes_per_s=rate, shared_bytes_per_s=rate, latency_s=0.0)

    inside = replace(
        tier("supernode", leaving.inside_bytes_per_s),
        in_network_reduction=known.inside.in_network_reduction,
        reduction_share=known.inside.reduction_share,
    )
    return LinkNumbers(
        tiers=(inside, tier("across", leaving.across_bytes_per_s)), launch_s=known.launch_s
    )
