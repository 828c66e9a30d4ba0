"""ns-3 topology files of the RDMA simulators, and SimAI's form of them, to an ImportedFabric.

Plain: a line ``nodes switches links``, the switches' numbers, then ``a b 100Gbps 1000ns 0`` for
each link. SimAI's first line is ``nodes gpus_per_server nv_switches switches links gpu_type``, and
the first of the listed switches are scale-up ones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from planner.errors import SpecError
from topologies.imported_fabric import MOST_VERTICES, ImportedFabric, ImportedHost, ImportedLink
from topologies.imported_links import Sets
from topologies.text_lines import numbered_lines

_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([TGMK]?)bps", re.IGNORECASE)
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,12})?)(ns|us|ms|s)")
_BITS = {"T": 1e12, "G": 1e9, "M": 1e6, "K": 1e3, "": 1.0}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_GPUS = {"H100": "H100-SXM", "H200": "H200-SXM", "B200": "B200-SXM", "A100": "A100-SXM-80"}
_MOST_LINKS = 2_000_000
_SHOWN = 20
_FIELDS = 5
_Line = tuple[int, list[str]]  # its number, its words


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    nodes: int
    scale_up: int
    switches: int
    links: int
    per_server: int
    gpu: str


@dataclass(slots=True)
class _Links:
    """Links of GPUs to scale-up switches, and all others."""

    scale_up: dict[int, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    others: list[tuple[int, int, float]] = field(default_factory=list)
    scale_up_delays_s: set[float] = field(default_factory=set)
    delays_s: set[float] = field(default_factory=set)


def import_ns3(text: str, name: str) -> ImportedFabric:
    """Return the network: every node that is no switch is a GPU.

    Raises:
        SpecError: every fault, with its line.
    """
    lines = (
        (number, words) for number, line in numbered_lines(text, name) if (words := line.split())
    )
    number, words = next(lines, (1, []))
    head = _header(words, f"{name}:{number}")
    switches = _switches(lines, head, name)
    links = _links(lines, head, switches, name)
    gpus = sorted(set(range(head.nodes)) - set(switches))
    servers = [gpus[at : at + head.per_server] for at in range(0, len(gpus), head.per_server)]
    home = {gpu: f"node{i:05d}" for i, server in enumerate(servers) for gpu in server}
    out = dict.fromkeys(switches[head.scale_up :])
    assumed = {"gpus_per_node": "1: the file has nodes, not machines"} if not head.gpu else {}
    if head.gpu == "A100":
        assumed["accelerator"] = "A100-SXM-80: the file says A100"
    ups = [sum(rate for _, rate in ends) for ends in links.scale_up.values()]
    return ImportedFabric(
        name="ns3",
        kind="ns3",
        provenance=f"ns-3 topology {name}",
        hosts=tuple(
            ImportedHost(name=home[server[0]], gpus=len(server), supernode=label)
            for server, label in zip(servers, _supernodes(servers, home, links), strict=True)
        ),
        switches=tuple(f"sw{n}" for n in out),
        links=tuple(
            ImportedLink(a=home.get(a, f"sw{a}"), b=home.get(b, f"sw{b}"), bytes_per_s=rate)
            for a, b, rate in links.others
        ),
        scale_up_bytes_per_s=min(ups) if ups else None,
        scale_up_latency_s=2 * max(links.scale_up_delays_s) if links.scale_up_delays_s else None,
        hop_latency_s=max(links.delays_s) if links.delays_s else None,
        accelerator=_GPUS.get(head.gpu.upper(), ""),
        assumed=assumed,
    )


def _header(words: list[str], where: str) -> _Header:
    plain = len(words) == 3
    simai = len(words) >= 6
    numbers = words if plain else words[:5]
    if not (plain or simai) or not all(_whole(word) for word in numbers):
        raise SpecError(
            f"{where}: {' '.join(words)[:60]!r}: expected 'nodes switches links', or 'nodes "
            "gpus_per_server nv_switches switches links gpu_type'"
        )
    if plain:
        nodes, switches, links = map(int, numbers)
        head = _Header(nodes=nodes, scale_up=0, switches=switches, links=links, per_server=1,
                       gpu="")  # fmt: skip
    else:
        nodes, per_server, nv, switches, links = map(int, numbers)
        head = _Header(nodes=nodes, scale_up=nv, switches=switches, links=links,
                       per_server=per_server, gpu=words[5])  # fmt: skip
    gpus = head.nodes - head.scale_up - head.switches
    faults = []
    if head.nodes > MOST_VERTICES or head.links > _MOST_LINKS:
        faults.append(f"{where}: {head.nodes:,} nodes and {head.links:,} links are too many")
    if gpus < 1:
        faults.append(f"{where}: {head.nodes} nodes leave {gpus} GPUs: expected one at least")
    if not 1 <= head.per_server <= 1024:
        faults.append(f"{where}: gpus_per_server={head.per_server}: expected 1 to 1024")
    if faults:
        raise SpecError(*faults)
    return head


def _switches(lines: Iterator[_Line], head: _Header, name: str) -> list[int]:
    """Return the numbers of the switches, scale-up ones first; *lines* is left behind them."""
    wanted = head.scale_up + head.switches
    found: list[int] = []
    while len(found) < wanted:
        number, words = next(lines, (0, []))
        if not words:
            break
        wrong = [word for word in words if not (_whole(word) and int(word) < head.nodes)]
        if wrong or len(found) + len(words) > wanted:
            raise SpecError(
                f"{name}:{number}: {' '.join(words)[:40]!r}: expected {wanted} numbers of "
                f"switches below {head.nodes}, {wanted - len(found)} of them from here"
            )
        found += map(int, words)
    if len(found) < wanted or len(set(found)) != len(found):
        raise SpecError(f"{name}: lists {len(set(found))} switches: expected {wanted}")
    return found


def _links(lines: Iterator[_Line], head: _Header, switches: list[int], name: str) -> _Links:
    scale_up, every = set(switches[: head.scale_up]), set(switches)
    found, faults, count = _Links(), [], 0
    for number, words in lines:
        count += 1
        if count > head.links:
            faults.append(
                f"{name}:{number}: has more links than the {head.links} of its first line"
            )
            break
        bytes_per_s = _bytes_per_s(words[2]) if len(words) == _FIELDS else 0.0
        delay_s = _delay_s(words[3]) if bytes_per_s else None
        ends = [int(w) for w in words[:2] if _whole(w) and int(w) < head.nodes]
        if delay_s is None or len(ends) != 2:
            faults.append(
                f"{name}:{number}: {' '.join(words)[:50]!r}: expected two nodes below "
                f"{head.nodes}, a rate, a delay and an error rate, as '0 16 100Gbps 500ns 0'"
            )
            if len(faults) >= _SHOWN:
                break
            continue
        a, b = ends
        hub = next((end for end in ends if end in scale_up), None)
        if hub is None:
            found.others.append((a, b, bytes_per_s))
            found.delays_s.add(delay_s)
        elif (other := a if hub == b else b) not in every:
            found.scale_up[other].append((hub, bytes_per_s))
            found.scale_up_delays_s.add(delay_s)
    if not faults and count < head.links:
        faults.append(f"{name}: has {count} links, its first line says {head.links}")
    if faults:
        raise SpecError(*faults)
    return found


@lru_cache(maxsize=1024)
def _bytes_per_s(text: str) -> float:
    """Return the rate *text*, 0 where it is none; a file has few different ones."""
    rate = _RATE.fullmatch(text)
    return float(rate.group(1)) * _BITS[rate.group(2).upper()] / 8 if rate else 0.0


@lru_cache(maxsize=1024)
def _delay_s(text: str) -> float | None:
    """Return the time *text*, None where it is none."""
    wait = _TIME.fullmatch(text)
    return float(wait.group(1)) * _SECONDS[wait.group(2)] if wait else None


def _supernodes(servers: list[list[int]], home: dict[int, str], links: _Links) -> list[str]:
    """Return the scale-up domain of each server: servers that share a scale-up switch."""
    sets = Sets()
    for gpu, ends in links.scale_up.items():
        for hub, _ in ends:
            sets.join(("hub", hub), home[gpu])
    first: dict[object, str] = {}
    return [first.setdefault(sets.root(home[s[0]]), home[s[0]]) for s in servers]


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 8
