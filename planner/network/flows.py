"""A family's groups, seated on GPUs, to the flows between GPUs that one execution makes.

What a rank sends to whom, by collective (n members, m of them in each domain, V the payload):

- ``all_reduce``, ``reduce_scatter``, ``all_gather``: a ring through all rails. A ring sends
  passes x (n - 1) / n x V over each of its edges, passes 2 for all_reduce and 1 otherwise. The
  ring goes through the domains one after another; where every domain holds at least r members it
  is r rings, each with 1/r of the data and its own crossing from one domain's j-th member to the
  next one's (NCCL's rings through all NICs, same rail to same rail).
- ``all_to_all``: v from every member to every other.
- ``domain_all_to_all``: one copy of a token to every other domain with one of its experts.
- ``ring``: one payload from each member to the next, laid contiguously.
- ``chain``: one payload from each member to the next in the order given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.traffic import Family

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

PASSES = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flows:
    """Flows between GPUs.

    Args:
        sources: GPU that sends; array [flows].
        targets: GPU that receives; array [flows].
        sizes_bytes: what one execution moves; array [flows] [bytes].
    """

    sources: Ints
    targets: Ints
    sizes_bytes: Floats

    def __len__(self) -> int:
        return len(self.sources)


def together(parts: Sequence[Flows]) -> Flows:
    """Return the flows of *parts*, one after another."""
    return Flows(
        sources=np.concatenate([part.sources for part in parts] or [np.zeros(0, np.int64)]),
        targets=np.concatenate([part.targets for part in parts] or [np.zeros(0, np.int64)]),
        sizes_bytes=np.concatenate([part.sizes_bytes for part in parts] or [np.zeros(0)]),
    )


def group_flows(
    collective: str,
    payload_bytes: float,
    groups: Any,
    domain_of_gpu: Ints,
    *,
    rails: int | None = None,
    experts: int = 0,
    top_k: int = 0,
) -> Flows:
    """Return the flows of one execution by every group.

    Args:
        collective: as in ``planner.traffic.Family``.
        payload_bytes: V, v per ordered pair, one member's tokens, or bytes of one hop [bytes].
        groups: GPUs of each group in the order in which data passes them, array
            [groups, members]: the gradients of a pipeline pass its stages from the last on.
        domain_of_gpu: supernode of each GPU, array [gpus].
        rails: rings a group uses at most; None for as many as its smallest share of a domain [1].
        experts: of domain_all_to_all: routed experts [1].
        top_k: of domain_all_to_all: those that a token picks [1].

    >>> flows = group_flows("all_reduce", 16.0, [[0, 1, 2, 3]], np.array([0, 0, 1, 1]))
    >>> crossing = flows.sizes_bytes[(flows.sources < 2) & (flows.targets >= 2)]
    >>> crossing.tolist()  # two rails, each half of 2 x 3/4 x 16
    [12.0, 12.0]
    """
    members = np.atleast_2d(np.asarray(groups, np.int64))
    if members.shape[1] < 2:
        return together([])
    if collective in PASSES:
        n = members.shape[1]
        edge_bytes = PASSES[collective] * (n - 1) / n * payload_bytes
        return _rings(members, domain_of_gpu, edge_bytes, rails)
    if collective == "all_to_all":
        return _all_pairs(members, payload_bytes)
    if collective == "domain_all_to_all":
        if not 1 <= top_k <= experts or experts % members.shape[1]:
            raise InputError(
                f"domain_all_to_all of {members.shape[1]} members: experts={experts}, "
                f"top_k={top_k}: expected as many experts on each member, and 1 to all of them"
            )
        return _copies(members, domain_of_gpu[members], payload_bytes, experts, top_k)
    if collective == "ring":
        return _rings(members, domain_of_gpu, payload_bytes, 1)
    if collective == "chain":
        return _flows(members[:, :-1].ravel(), members[:, 1:].ravel(), payload_bytes)
    known = ", ".join([*PASSES, "all_to_all", "domain_all_to_all", "ring", "chain"])
    raise InputError(f"collective={collective!r}: expected one of {known}")


def in_passing_order(family: Family, groups: Ints) -> Ints:
    """Return *groups* in the order in which the data of *family* passes their members."""
    backward = family.collective == "chain" and family.phase == "backward"
    return groups[:, ::-1] if backward else groups


def mesh_flows(
    payload_bytes: float, groups: Any, domain_of_gpu: Ints, gpu_links: Ints
) -> Flows | None:
    """Return one pass of a reduction by groups that walk GPU-to-GPU links, as many rings at once.

    A ring sends e = (n - 1) / n x V over each of its edges. Rings on a mesh go different ways round
    (a full mesh of an even number m of GPUs has m paths that share no link), so what a domain's
    members hand on leaves each over all its links to the others alike: a full mesh has m - 1 of
    them, a torus two a dimension. That is e from each where the ring closes in the domain, and
    (m - 1) / m x e where it leaves: each rail then carries its part of e to the next domain, as in
    ``group_flows``.

    Args:
        payload_bytes: V [bytes].
        groups: GPUs of each group, array [groups, members].
        domain_of_gpu: supernode of each GPU, array [gpus].
        gpu_links: a x gpus + b of every link from GPU a to GPU b, ascending.

    Returns:
        The flows; None where a member has no such link to another of its domain.

    >>> mesh = np.array([1, 2, 3, 5])  # of 3 GPUs: 0-1, 0-2, 1-0, 1-2; none leaves GPU 2
    >>> mesh_flows(3.0, [[0, 1]], np.zeros(3, int), mesh).sizes_bytes.tolist()
    [1.5, 1.5]
    >>> mesh_flows(3.0, [[0, 1, 2]], np.zeros(3, int), mesh) is None
    True
    """
    members = np.atleast_2d(np.asarray(groups, np.int64))
    gpus, n = len(domain_of_gpu), members.shape[1]
    homes = domain_of_gpu[members]
    together_here = homes[:, :, None] == homes[:, None, :]
    held = together_here.sum(axis=2)
    sources = np.broadcast_to(members[:, :, None], (*members.shape, n))
    targets = np.broadcast_to(members[:, None, :], (*members.shape, n))
    linked = together_here & np.isin(sources * gpus + targets, gpu_links)
    degree = linked.sum(axis=2)
    if (degree[held > 1] == 0).any():
        return None
    edge_bytes = (n - 1) / n * payload_bytes
    passed_on = np.where(held < n, (held - 1) / held, 1.0)  # a ring of one domain closes in it
    leaves_bytes = edge_bytes * passed_on / np.maximum(degree, 1)
    inside = Flows(
        sources=sources[linked],
        targets=targets[linked],
        sizes_bytes=np.broadcast_to(leaves_bytes[:, :, None], linked.shape)[linked],
    )
    rings = _rings(members, domain_of_gpu, edge_bytes, None)
    across = domain_of_gpu[rings.sources] != domain_of_gpu[rings.targets]
    outside = Flows(
        sources=rings.sources[across],
        targets=rings.targets[across],
        sizes_bytes=rings.sizes_bytes[across],
    )
    return together([inside, outside])


def _flows(sources: Ints, targets: Ints, size_bytes: Any) -> Flows:
    sizes = np.broadcast_to(np.asarray(size_bytes, np.float64), sources.shape)
    moving = (sources != targets) & (sizes > 0)
    return Flows(
        sources=sources[moving], targets=targets[moving], sizes_bytes=np.array(sizes[moving])
    )


def _all_pairs(members: Ints, size_bytes: float) -> Flows:
    n = members.shape[1]
    return _flows(
        np.repeat(members, n, axis=1).ravel(), np.tile(members, (1, n)).ravel(), size_bytes
    )


def _copies(members: Ints, homes: Ints, token_bytes: float, experts: int, top_k: int) -> Flows:
    """Return one copy of each token to every other domain that holds one of its experts.

    1 - C(E - E_d, k) / C(E, k) of a member's tokens, spread over the members there; to a member of
    its own domain those with an expert on it. What is then forwarded inside is left out.
    """
    n = members.shape[1]
    missed = np.array(
        [comb(experts - experts // n * held, top_k) / comb(experts, top_k) for held in range(n + 1)]
    )
    same = homes[:, :, None] == homes[:, None, :]
    held = same.sum(axis=1)[:, None, :]  # members in the receiver's domain
    shares = np.where(same, 1.0 - missed[1], (1.0 - missed[held]) / held)
    return _flows(
        np.repeat(members, n, axis=1).ravel(),
        np.tile(members, (1, n)).ravel(),
        token_bytes * shares.ravel(),
    )


def _rings(members: Ints, domain_of_gpu: Ints, edge_bytes: float, rails: int | None) -> Flows:
    """Return rings through the domains of each group, groups of one spread together."""
    homes = domain_of_gpu[members]
    order = np.argsort(homes, axis=1, kind="stable")
    seated = np.take_along_axis(members, order, axis=1)
    homes = np.take_along_axis(homes, order, axis=1)
    new = np.ones(homes.shape, bool)
    new[:, 1:] = homes[:, 1:] != homes[:, :-1]
    parts: list[Flows] = []
    for pattern in np.unique(new, axis=0):
        alike = (new == pattern).all(axis=1)
        parts.append(_alike_rings(seated[alike], np.flatnonzero(pattern), edge_bytes, rails))
    return together(parts)


def _alike_rings(seated: Ints, starts: Ints, edge_bytes: float, rails: int | None) -> Flows:
    """Return the rings of groups whose members change domain at the same places."""
    n = seated.shape[1]
    if len(starts) == 1:
        return _flows(seated.ravel(), np.roll(seated, -1, axis=1).ravel(), edge_bytes)
    counts = np.diff(np.append(starts, n))
    rings = int(counts.min()) if rails is None else min(rails, int(counts.min()))
    part = edge_bytes / rings
    if rings == 1:  # one ring leaves a domain at its last member
        return _flows(seated.ravel(), np.roll(seated, -1, axis=1).ravel(), edge_bytes)
    parts: list[Flows] = []
    for i, (start, count) in enumerate(zip(starts, counts, strict=True)):
        onward = starts[(i + 1) % len(starts)]
        here = seated[:, start : start + count]
        parts.extend(_flows(here[:, rail], seated[:, onward + rail], part) for rail in range(rings))
        # each ring walks the members once and skips the edge that closes their circle
        around = np.full(here.shape, part * rings)
        around[:, :rings] -= part
        parts.append(_flows(here.ravel(), np.roll(here, -1, axis=1).ravel(), around.ravel()))
    return together(parts)
