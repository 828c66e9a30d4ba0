"""What a scheduler really gave: a host file, a node list, a rank file or a rank map."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from planner.errors import SpecError
from topologies.host_lists import MOST_HOSTS, HostListError, expand_hosts
from topologies.slurm_job import job_node_list, job_variables, ranks_of_job
from topologies.strict_json import json_value
from topologies.text_lines import numbered_lines

MOST_RANKS = 2**20
_SHOWN = 20
_RANK_LINE = re.compile(
    r"rank\s+(\d{1,9})\s*=\s*([A-Za-z0-9_.:+-]+)(?:\s+slot\s*=\s*(\S+))?", re.IGNORECASE
)
_TIMES = re.compile(
    r"(?P<hosts>\S+?)(?:\s+slots\s*=\s*(?P<slots>\d{1,6})|[*:](?P<times>\d{1,6}))?"
    r"(?:\s+max[-_]slots\s*=\s*(?P<most>\d{1,6}))?"
)
_OF_A_JOB = re.compile("SLURM_|NodeList")
_COUNTED = re.compile(r"[*:=]")
_LISTED = re.compile(r"[,\[]")
_OUTSIDE = re.compile(r"(?:[^,\[]++|\[[^\]]*+\]?+)++")  # a run without comma, brackets whole
_LONGEST_NAME = 4096  # of a term before its count: patterns keep a mark for each character
Named = Callable[[str, str], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Where each rank runs, as far as the file says.

    Args:
        kind: ``rank-map``, ``rankfile``, ``hostfile`` or ``nodelist``.
        hosts: a machine for each rank, by rank; or each machine once, in node order.
        slots: GPU number of each rank, -1 where the file does not say; empty for node order.
        by_rank: whether *hosts* is by rank.
    """

    kind: str
    hosts: tuple[str, ...]
    slots: tuple[int, ...]
    by_rank: bool


def read_allocation(text: str, name: str, named: Named | None = None) -> Allocation:
    """Return the allocation in *text*, its kind recognised.

    Args:
        text: the file's.
        name: what faults call it.
        named: what a host list function such as ``switch{s1}`` means, where a cluster can say it.

    Raises:
        SpecError: every fault, with its line.

    >>> read_allocation("SLURM_JOB_NODELIST=n[1-2],m7", "a").hosts
    ('n1', 'n2', 'm7')
    """
    if text.lstrip()[:1] in {"{", "["}:
        return _rank_map_json(text, name)
    lines = _said(text, name)
    if not lines:
        raise SpecError(f"{name}:1: names no machine")
    first = lines[0][1].replace(" ", "").lower()
    if first.startswith("rank,") or ",rank," in f",{first},":
        return _rank_map(lines, name)
    if re.match(r"rank\s", lines[0][1], re.IGNORECASE):
        return _rankfile(lines, name)
    job = job_variables(lines) if _OF_A_JOB.search(text) else {}
    if (listed := job_node_list(job)) is None:
        return _hostfile(lines, name, named)
    given = _hostfile([listed], name, named)
    ranks = ranks_of_job(job, given.hosts, name)
    if not ranks:
        return replace(given, kind="nodelist")
    return Allocation(kind="nodelist", hosts=ranks, slots=(-1,) * len(ranks), by_rank=True)


def _said(text: str, name: str) -> list[tuple[int, str]]:
    """Return the lines that say something, each with its number."""
    lines = []
    for number, raw in numbered_lines(text, name):
        if line := raw.split("#", 1)[0].strip():
            lines.append((number, line))
        if len(lines) > MOST_RANKS + 1:  # a header stands above a rank map
            raise SpecError(f"{name}:{number}: more than {MOST_RANKS:,} ranks")
    return lines


def _rank_map(lines: list[tuple[int, str]], name: str) -> Allocation:
    header = [h.strip().lower() for h in lines[0][1].split(",")]
    if "host" not in header:
        raise SpecError(
            f"{name}:{lines[0][0]}: columns {','.join(header)[:80]}: expected rank,host"
        )
    found: dict[int, tuple[str, int]] = {}
    faults = []
    for number, line in lines[1:]:
        row = next(csv.reader([line]), []) if '"' in line else line.split(",")
        cells = dict(zip(header, (cell.strip() for cell in row), strict=False))
        slot = cells.get("slot", "-1") or "-1"
        rank, host = cells.get("rank", ""), cells.get("host", "")
        if len(row) != len(header) or not (_whole(rank) and (slot == "-1" or _whole(slot))):
            faults.append(f"{name}:{number}: {line[:60]!r}: expected {','.join(header)[:60]}")
        elif int(rank) in found:
            faults.append(f"{name}:{number}: rank {rank} is seated twice")
        else:
            found[int(rank)] = (host, int(slot))
        if len(faults) > _SHOWN:
            break
    return _by_rank("rank-map", found, faults, name)


def _rank_map_json(text: str, name: str) -> Allocation:
    """Return a list of ranks with host and slot, alone or under ``ranks``."""
    value = json_value(text, name)
    rows = value.get("ranks") if isinstance(value, dict) else value
    if not isinstance(rows, list) or not rows or len(rows) > MOST_RANKS:
        raise SpecError(f"{name}: expected a list of ranks, each with rank, host and slot")
    found: dict[int, tuple[str, int]] = {}
    faults = []
    for i, row in enumerate(rows):
        cells = row if isinstance(row, dict) else {}
        rank, host, slot = cells.get("rank"), cells.get("host"), cells.get("slot", -1)
        if not (_count(rank) and isinstance(host, str) and (slot == -1 or _count(slot))):
            faults.append(f"{name}: ranks[{i}]: expected rank, host and slot")
        elif rank in found:
            faults.append(f"{name}: rank {rank} is seated twice")
        else:
            found[rank] = (host, slot)
        if len(faults) > _SHOWN:
            break
    return _by_rank("rank-map", found, faults, name)


def _count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < MOST_RANKS


def _rankfile(lines: list[tuple[int, str]], name: str) -> Allocation:
    found: dict[int, tuple[str, int]] = {}
    faults: list[str] = []
    for number, line in lines:
        if len(faults) > _SHOWN:
            break
        match = _RANK_LINE.fullmatch(line)
        if match is None:
            faults.append(f"{name}:{number}: {line[:60]!r}: expected 'rank N=host slot=S'")
            continue
        rank, host, slot = int(match.group(1)), match.group(2), match.group(3) or ""
        if host.startswith("+n"):
            faults.append(f"{name}:{number}: {host} is relative: write the machine's name")
        if rank in found:
            faults.append(f"{name}:{number}: rank {rank} is seated twice")
        found[rank] = (host, int(slot) if _whole(slot) else -1)
    return _by_rank("rankfile", found, faults, name)


def _by_rank(
    kind: str, found: dict[int, tuple[str, int]], faults: list[str], name: str
) -> Allocation:
    if not faults and not found:
        faults.append(f"{name}: seats no rank: expected a line for each from 0")
    if not faults and sorted(found) != list(range(len(found))):
        missing = next(r for r in range(len(found) + 1) if r not in found)
        faults.append(f"{name}: rank {missing} has no seat: expected 0 to {max(found, default=0)}")
    _refuse(faults)
    seats = [found[r] for r in range(len(found))]
    return Allocation(
        kind=kind, hosts=tuple(h for h, _ in seats), slots=tuple(s for _, s in seats), by_rank=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """Machines of a host file's line, and how many ranks each has; 0 where it does not say."""

    hosts: str
    times: int


def _terms(line: str) -> list[_Term]:
    """Return what a line names: one host list, or several terms where any of them has a count."""
    if not _COUNTED.search(line):
        return [_Term(hosts=line, times=0)]
    parts = _OUTSIDE.findall(line) if _LISTED.search(line) and "{" not in line else [line]
    if max(map(len, parts), default=0) > _LONGEST_NAME:
        return [_Term(hosts=line, times=0)]
    counted = [_TIMES.fullmatch(part.strip()) for part in parts]
    terms = [
        _Term(
            hosts=match["hosts"], times=int(match["slots"] or match["times"] or match["most"] or 0)
        )
        for match in counted
        if match is not None
    ]
    if len(terms) < len(parts) or not any(term.times for term in terms):
        return [_Term(hosts=line, times=0)]
    return terms


def _hostfile(lines: list[tuple[int, str]], name: str, named: Named | None) -> Allocation:
    """Return a host file (names, ``n slots=8``, ``n[1-4]*8``), or a host list over its lines."""
    hosts: list[str] = []
    seen: set[str] = set()
    faults: list[str] = []
    counted = False
    for number, line in lines:
        for term in _terms(line):
            counted |= term.times > 0
            try:
                names = expand_hosts(term.hosts, named=named)
            except HostListError as error:
                faults += [f"{name}:{number}: {fault}" for fault in error.faults]
                continue
            if len(hosts) + len(names) * max(1, term.times) > MOST_RANKS:
                raise SpecError(
                    *faults[:_SHOWN], f"{name}:{number}: more than {MOST_RANKS:,} ranks"
                )
            seen.update(names)
            if len(seen) > MOST_HOSTS:
                raise SpecError(
                    *faults[:_SHOWN], f"{name}:{number}: more than {MOST_HOSTS:,} machines"
                )
            hosts += (host for host in names for _ in range(max(1, term.times)))
        if len(faults) > _SHOWN:
            break
    _refuse(faults)
    by_rank = counted or len(seen) < len(hosts)
    listed = any(mark in line for _, line in lines for mark in "[,{")
    return Allocation(
        kind="nodelist" if listed and not by_rank else "hostfile",
        hosts=tuple(hosts),
        slots=(-1,) * len(hosts) if by_rank else (),
        by_rank=by_rank,
    )


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 8


def _refuse(faults: list[str]) -> None:
    if faults:
        raise SpecError(*faults[:_SHOWN])
