"""Names, disjoint sets and heights of what a foreign file joins."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from topologies.imported_fabric import ImportedLink


class Sets:
    """Disjoint sets of vertices."""

    def __init__(self) -> None:
        self._up: dict[Hashable, Hashable] = {}

    def root(self, v: Hashable) -> Hashable:
        """Return the representative of *v*."""
        up = self._up
        while (parent := up.setdefault(v, v)) != v:
            up[v] = up[parent]
            v = up[v]
        return v

    def join(self, a: Hashable, b: Hashable) -> None:
        """Put *a* and *b* in one set."""
        self._up[self.root(b)] = self.root(a)


_NIC = ".nic"


def is_nic(vertex: str) -> bool:
    """Return whether *vertex* is one of the adapters that this module names."""
    head, _, tail = vertex.rpartition(_NIC)
    return bool(head) and tail.isdigit()


NO_SCALE_UP = (
    "some GPUs of the machine have no links to each other but PCIe, whose rate it does not say: "
    "give --links FILE with what one GPU gets, e.g. scale_up: 12 GB/s"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A scale-out edge of the graph, all parallel links of the same ends together.

    Args:
        a, b: its ends.
        bytes_per_s: what it carries, one direction [bytes/s].
        links: how many links it stands for [1].
        height: half the links on the way between machines that meet over it [1].
    """

    a: str
    b: str
    bytes_per_s: float
    links: int
    height: float


def meeting_height(a: int, b: int) -> float:
    """Return half the links between machines that meet over an edge from height *a* to *b*.

    Over a switch one higher that is its height. Two switches of one height are no common switch:
    between two leaves, machines are three links apart.

    >>> meeting_height(1, 2), meeting_height(1, 1)
    (2, 1.5)
    """
    return a + 0.5 if a == b else max(a, b)


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The heights at which domains grow, innermost first, and their tiers' names."""

    heights: tuple[float, ...]
    names: tuple[str, ...]

    def level_of(self, height: float) -> int:
        """Return which tier a link of this height is part of, 1 for the first outside."""
        return next((i for i, h in enumerate(self.heights, 1) if h >= height), len(self.heights))


def gpu_names(host: str, gpus: int) -> list[str]:
    """Return the vertex name of each GPU of *host*."""
    width = max(2, len(str(gpus - 1)))
    return [f"{host}.gpu{g:0{width}d}" for g in range(gpus)]


def nic_name(gpu: str) -> str:
    """Return the vertex name of a GPU's adapter."""
    host, _, place = gpu.rpartition(".gpu")
    return f"{host}{_NIC}{place}"


def safe_name(name: str) -> str:
    """Return *name* with only what a cluster's name may have."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_.:+-") else "-" for c in name)[:128]


def merged(links: Iterable[ImportedLink]) -> tuple[ImportedLink, ...]:
    """Return links with those of the same two ends put together, in the order of the first."""
    merged: dict[tuple[str, str], ImportedLink] = {}
    for one in links:
        a, b = sorted((one.a, one.b))
        if a == b:
            continue
        seen = merged.get((a, b))
        rate = one.bytes_per_s
        if seen is not None:
            known = seen.bytes_per_s is not None and rate is not None
            rate = (seen.bytes_per_s or 0) + (rate or 0) if known else None
        total = one.links + (seen.links if seen else 0)
        merged[a, b] = ImportedLink(a=a, b=b, links=total, bytes_per_s=rate)
    return tuple(merged.values())


def heights(hosts: Sequence[str], links: Sequence[ImportedLink]) -> dict[str, int]:
    """Return the least number of links from a machine to each vertex that reaches one."""
    near: dict[str, list[str]] = defaultdict(list)
    for one in links:
        near[one.a].append(one.b)
        near[one.b].append(one.a)
    height = dict.fromkeys(hosts, 0)
    ring: list[str] = list(hosts)
    while ring:
        ring = [
            other
            for name in ring
            for other in near[name]
            if other not in height and height.setdefault(other, height[name] + 1)
        ]
    return height


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualRate:
    """What most machines have for a GPU, and words on the others where there are any."""

    bytes_per_s: float
    words: str


def usual_rate(rates: Sequence[float]) -> UsualRate:
    """Return the rate of most of *rates*, the least of those that as many have.

    >>> usual_rate([25e9, 25e9, 12.5e9]).bytes_per_s / 1e9
    25.0
    """
    counts = Counter(rates)
    usual = min(counts, key=lambda rate: (-counts[rate], rate))
    low, high = (f"{rate / 1e9:.4g}" for rate in (min(counts), max(counts)))
    words = (
        f"{len(rates) - counts[usual]} of {len(rates)} machines have another rate for a "
        f"GPU ({low} to {high} GB/s): taken as what most have"
    )
    return UsualRate(bytes_per_s=usual, words=words if len(counts) > 1 else "")


def usual_rate_of_machines(
    links: Iterable[ImportedLink], gpus_of: Mapping[str, int]
) -> UsualRate | None:
    """Return what the links of most machines carry for a GPU, none where one has no rate.

    Args:
        links: of machines and switches.
        gpus_of: machine to its GPUs; 0 or less where it has none [1].
    """
    totals: defaultdict[str, float] = defaultdict(float)
    for one in links:
        for end in (one.a, one.b):
            if gpus_of.get(end, 0):
                if one.bytes_per_s is None:
                    return None
                totals[end] += one.bytes_per_s
    rates = [total / gpus_of[name] for name, total in totals.items()]
    return usual_rate(rates) if rates else None


def domain_names(
    sets: Sets,
    roots: Sequence[Hashable],
    height: Mapping[str, int],
    *,
    tier: str,
    taken: Container[str],
) -> tuple[str, ...]:
    """Return what each set of a tier is called: after its topmost switch in the file.

    The whole cluster, below several that are as high, has the name of the tier.

    Args:
        sets: which vertices hang together.
        roots: representatives of the tier's sets.
        height: of every vertex, 0 for machines.
        tier: what the tier is called, and its sets without a switch, a number behind it.
        taken: names of inner tiers' sets; one of them has the tier in front.

    >>> sets = Sets()
    >>> for a, b in (("h1", "isw-a"), ("h2", "isw-b"), ("h2", "isw-c")):
    ...     sets.join(a, b)
    >>> up = {"h1": 0, "h2": 0, "isw-a": 1, "isw-b": 1, "isw-c": 1}
    >>> domain_names(sets, [sets.root("h1"), sets.root("h2")], up, tier="leaf", taken=())
    ('isw-a', 'isw-b+1')
    """
    inside: dict[Hashable, list[str]] = defaultdict(list)
    for name, at in height.items():
        if at:
            inside[sets.root(name)].append(name)
    named = []
    for i, root in enumerate(roots):
        highest = max((height[name] for name in inside[root]), default=0)
        top = sorted(name for name in inside[root] if height[name] == highest)
        more = f"+{len(top) - 1}" if len(top) > 1 else ""
        name = f"{top[0]}{more}" if top else f"{tier}{i:02d}"
        if len(roots) == 1 and len(top) != 1:
            name = tier
        named.append(f"{tier}.{name}" if name in taken else name)
    return tuple(named)


def spelled_parts(parts: Sequence[Sequence[str]]) -> str:
    """Return a few parts of a cluster, each by its first machine and how many more it has.

    >>> spelled_parts([["n1", "n2", "n3"], ["m1"]])
    'n1 and 2 more, m1'
    """
    shown = 6  # as many as one line of a terminal holds
    few = [f"{part[0]} and {len(part) - 1} more" if len(part) > 1 else part[0] for part in parts]
    return ", ".join([*few[:shown], *(["..."] if len(few) > shown else [])])
