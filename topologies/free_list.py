"""A busy cluster's free list: which GPUs a job may use, and the cluster with only these.

A line names hosts as the scheduler prints them, with or without the GPUs that are free on each::

    node[001-128]            every GPU of 128 hosts
    node129:0-3,node130:5,7  GPUs 0 to 3 of one host, 5 and 7 of another
    node[131-140]*4          four GPUs of each host, whichever are first

A supernode, a rack or a single GPU can stand where a host does. ``#`` starts a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from planner.documents import read_bytes
from planner.errors import SpecError
from planner.fabric import Domain, Fabric
from planner.words import counted
from topologies.host_lists import MOST_HOSTS, HostListError, expand_hosts, fold_hosts
from topologies.host_slots import machines_of, slots_of
from topologies.text_lines import numbered_lines

_FAULTS = 40
_COMPARED = 4
"""Faults that say what a name may be meant to be: to look for it takes 1 s in 100,000 names."""
_NUMBERS = re.compile(r"[0-9]{1,6}(?:-[0-9]{1,6})?")
_TERM = re.compile(r"(?P<hosts>[^:*]+)(?::(?P<gpus>[0-9][0-9,\s-]*)|\*(?P<count>[0-9]{1,6}))?")
_OUTSIDE = re.compile(r"(?:[^,\s\[]|\[[^\]]*\]?)+")  # a run without comma or blank, brackets whole


@dataclass(frozen=True, slots=True, kw_only=True)
class _Host:
    """A name of the free list: its GPUs, and the number of each where the list may give it."""

    gpus: tuple[int, ...]
    numbers: tuple[int, ...]


class _Known:
    """What a line may name, and how many names there may still be."""

    def __init__(self, hosts: Mapping[str, _Host], room: int) -> None:
        self.hosts, self.room = hosts, room

    def expanded(self, text: str) -> tuple[str, ...]:
        """Return the names of a host list."""
        names = expand_hosts(text, most=max(1, min(MOST_HOSTS, self.room)))
        self.room -= len(names)
        return names


@dataclass(slots=True)
class _Faults:
    """Faults with their lines; of a kind that many lines share, the first tells how many."""

    said: list[str] = field(default_factory=list)
    alike: dict[str, int] = field(default_factory=dict)
    """By the first fault of such a kind: how many more there are."""
    kinds: dict[str, str] = field(default_factory=dict)
    """By kind: its first fault."""

    def add(self, *faults: str) -> None:
        """Add faults that are told one by one."""
        self.said += faults

    def add_alike(self, kind: str, fault: str) -> None:
        """Add a fault of a *kind*; only the first of it is told."""
        if kind in self.kinds:
            self.alike[self.kinds[kind]] += 1
            return
        self.kinds[kind] = fault
        self.alike[fault] = 0
        self.said.append(fault)

    def told(self) -> list[str]:
        """Return the faults as the user reads them."""
        return [
            f"{fault}; {counted(more, 'more host')} of the list likewise"
            if (more := self.alike.get(fault, 0))
            else fault
            for fault in self.said
        ]


def read_free_list(path: Path | str, fabric: Fabric) -> Fabric:
    """Return *fabric* with only the GPUs that the file at *path* lists.

    Raises:
        SpecError: it cannot be read, or names what there is not; every fault with its line.
    """
    content = read_bytes(path)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise SpecError(f"{path}:1: is no text: expected host names") from None
    return only_gpus(fabric, free_gpus(text, str(path), fabric), str(path))


def free_gpus(text: str, name: str, fabric: Fabric) -> tuple[int, ...]:
    """Return the indices of the GPUs that *text* lists, ascending.

    Args:
        text: the free list.
        name: of the file, for its faults.
        fabric: the cluster whose hosts it names.

    Raises:
        SpecError: every fault, with its line.
    """
    known = _Known(_known_hosts(fabric), room=MOST_HOSTS + len(fabric.gpus))
    faults = _Faults()
    listed_at: dict[int, int] = {}
    for number, raw in numbered_lines(text, name):
        line = raw.split("#", 1)[0].strip()
        for gpus in _line_gpus(line, f"{name}:{number}", known, faults) if line else ():
            twice = [gpu for gpu in gpus if gpu in listed_at]
            if twice:
                faults.add(
                    f"{name}:{number}: {fabric.gpus[twice[0]]} is free already on line "
                    f"{listed_at[twice[0]]}: expected each GPU once"
                    + (f" ({len(twice)} GPUs are repeated)" if len(twice) > 1 else "")
                )
            listed_at.update(dict.fromkeys((gpu for gpu in gpus if gpu not in listed_at), number))
        if len(faults.said) > _FAULTS or known.room <= 0:
            raise SpecError(*faults.told()[:_FAULTS], f"{name}:{number}: read no further")
    if faults.said:
        raise SpecError(*faults.told())
    if not listed_at:
        raise SpecError(f"{name}:1: lists no free GPU: expected e.g. {next(iter(known.hosts))}")
    return tuple(sorted(listed_at))


def only_gpus(fabric: Fabric, free: Sequence[int], name: str = "the free list") -> Fabric:
    """Return *fabric* with only the GPUs *free*.

    What leaves a domain is the share of its free GPUs: the others' traffic takes theirs.

    Args:
        fabric: the whole cluster.
        free: indices of the GPUs that may be used, ascending.
        name: where the list comes from.
    """
    index = np.full(len(fabric.gpus), -1, np.int64)
    index[list(free)] = np.arange(len(free))
    slots = slots_of(fabric)
    tiers = tuple(replace(tier, domains=_cut_down(tier.domains, index)) for tier in fabric.tiers)
    assumed = {
        **fabric.assumed,
        "free": f"{len(free)} of {len(fabric.gpus)} GPUs are free by {name}; other jobs take their "
        "GPUs' share of what leaves a domain",
    }
    return replace(
        fabric,
        graph=partial(_graph_of, fabric),
        gpus=tuple(fabric.gpus[gpu] for gpu in free),
        tiers=tiers,
        hosts=_cut_down(fabric.hosts, index),
        host_slots=tuple(slots[gpu] for gpu in free),
        job_gpus=min(fabric.job_gpus, len(free)),
        assumed=MappingProxyType(assumed),
        cut_from=fabric.whole,
    )


def spelled_gpus(fabric: Fabric, gpus: Sequence[int]) -> str:
    """Return *gpus* by name as a free list on one line, names folded from both ends.

    >>> from topologies.fabric_catalogue import generic_cluster
    >>> spelled_gpus(generic_cluster(8, 32), [0, 1, 3, *range(8, 32)])
    'sn00.gpu[00-01,03],sn[01-03].gpu[00-07]'
    """
    ends: dict[str, list[str]] = {}
    for gpu in gpus:
        owner, _, end = fabric.gpus[gpu].rpartition(".")
        ends.setdefault(owner, []).append(end)
    owners: dict[str, list[str]] = {}
    for owner, names in ends.items():
        owners.setdefault(fold_hosts(names), []).append(owner)
    return ",".join(
        f"{owner}.{end}" if owner else end
        for folded, names in owners.items()
        for owner in _OUTSIDE.findall(fold_hosts(names))
        for end in _OUTSIDE.findall(folded)
    )


def _graph_of(fabric: Fabric) -> Any:
    return fabric.graph


def _cut_down(domains: Sequence[Domain], index: np.ndarray) -> tuple[Domain, ...]:
    left = []
    for domain in domains:
        gpus = tuple(g for g in index[list(domain.gpus)].tolist() if g >= 0)
        if gpus:
            share = len(gpus) / len(domain.gpus)
            left.append(
                replace(domain, gpus=gpus, uplink_bytes_per_s=domain.uplink_bytes_per_s * share)
            )
    return tuple(left)


def _known_hosts(fabric: Fabric) -> Mapping[str, _Host]:
    """Return everything that a line may name: hosts, domains of every tier, GPUs."""
    slots = slots_of(fabric)
    numbered = {
        host.gpus: tuple(slots[gpu] for gpu in host.gpus) for host in machines_of(fabric)
    }  # a domain that is one machine counts its GPUs as the machine does
    named = {name: _Host(gpus=(gpu,), numbers=()) for gpu, name in enumerate(fabric.gpus)}
    for tier in reversed(fabric.tiers):
        named |= {
            d.name: _Host(gpus=d.gpus, numbers=numbered.get(d.gpus, ())) for d in tier.domains
        }
    found = {
        host.name: _Host(gpus=host.gpus, numbers=numbered[host.gpus])
        for host in machines_of(fabric)
    }
    return {**found, **{name: host for name, host in named.items() if name not in found}}


def _line_gpus(line: str, place: str, known: _Known, faults: _Faults) -> Iterator[tuple[int, ...]]:
    """Yield the GPUs of every term of a line; append its faults."""
    hosts = known.hosts
    for term in _terms(line):
        if len(faults.said) > _FAULTS or known.room <= 0:
            return
        match = _TERM.fullmatch(term)
        if match is None:
            faults.add(
                f"{place}: {term[:60]!r}: expected a host list such as node[001-128], node001:0-3 "
                "or node001*4"
            )
            continue
        if match["gpus"] is not None and _NUMBERS.fullmatch(match["gpus"]) and (
            "-" not in match["gpus"]
        ):  # fmt: skip
            one, host = match["gpus"], match["hosts"]
            faults.add(
                f"{place}: {term[:60]!r}: is that GPU {one} or {one} GPUs? Write "
                f"{host}:{one}-{one} or {host}*{one}"
            )
            continue
        try:
            names = known.expanded(match["hosts"])
        except HostListError as error:
            faults.add(*(f"{place}: {fault}" for fault in error.faults))
            continue
        unknown = [name for name in names if name not in hosts]
        if unknown:
            compared = hosts if len(faults.said) < _COMPARED else {}
            near = get_close_matches(unknown[0], compared, n=2)
            called = " or ".join(near) or next(iter(hosts), "")
            meant = f"did you mean {called}?" if near else f"expected e.g. {called}"
            faults.add(f"{place}: {_unknown(unknown, len(names))}: {meant}")
        for name in names:
            if name in hosts and (found := _host_gpus(name, match, place, hosts[name], faults)):
                yield found


def _terms(line: str) -> list[str]:
    """Return the terms of a line: commas and blanks part hosts, but not the GPUs of one host."""
    parts: list[list[str]] = []
    for piece in _OUTSIDE.findall(line):
        if _NUMBERS.fullmatch(piece) and parts and ":" in parts[-1][0]:
            parts[-1].append(piece)
        else:
            parts.append([piece])
    return [",".join(part) for part in parts]


def _unknown(unknown: Sequence[str], of: int) -> str:
    """Return which names of *of* are no hosts."""
    first = unknown[0]
    if len(unknown) == 1:
        return f"the cluster has no host {first[:60]!r}"
    return f"{len(unknown)} of {of} names are no hosts of the cluster, first {first[:60]!r}"


def _host_gpus(
    name: str, match: re.Match[str], place: str, host: _Host, faults: _Faults
) -> tuple[int, ...]:
    if match["count"] is not None:
        count = int(match["count"])
        if not 1 <= count <= len(host.gpus):
            faults.add(
                f"{place}: {name} has {len(host.gpus)} usable GPUs, {count} are said to be free"
            )
            return ()
        return host.gpus[:count]
    if match["gpus"] is None:
        return host.gpus
    if not host.numbers:
        faults.add_alike(
            "no numbers", f"{place}: {name}: its GPUs have no numbers: expected {name} or {name}*N"
        )
        return ()
    return _numbered(name, match["gpus"], place, host, faults)


def _numbered(name: str, text: str, place: str, host: _Host, faults: _Faults) -> tuple[int, ...]:
    gpu_of = dict(zip(host.numbers, host.gpus, strict=True))
    found: list[int] = []
    for piece in filter(None, re.split(r"[,\s]+", text)):
        low, _, high = piece.partition("-")
        if _NUMBERS.fullmatch(piece) is None or int(high or low) < int(low):
            faults.add(f"{place}: {name}:{piece[:30]}: expected GPU numbers such as 0-3 or 0,2")
            return ()
        found += range(int(low), int(high or low) + 1)
    if missing := [n for n in found if n not in gpu_of]:
        faults.add(
            f"{place}: {name} has no usable GPU {missing[0]}: it has "
            f"{', '.join(map(str, host.numbers))}"
        )
        return ()
    if len(set(found)) < len(found):
        faults.add(f"{place}: {name}:{text[:30]}: a GPU is listed twice")
    return tuple(gpu_of[n] for n in dict.fromkeys(found))
