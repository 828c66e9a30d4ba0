"""What a scheduler really gave: a host file, a node list, a rank file or a rank map."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from planner.errors import SpecError
from topologies.host_lists import MOST_HOSTS, HostListError, expand_hosts
from topologies.strict_json import json_value

MOST_RANKS = 2**20
_RANK_LINE = re.compile(
    r"rank\s+(\d{1,9})\s*=\s*([A-Za-z0-9_.:+-]+)(?:\s+slot\s*=\s*(\S+))?", re.IGNORECASE
)
_TIMES = re.compile(r"(\S+?)(?:\s+(?:slots|max_slots)\s*=\s*(\d{1,6})|[*](\d{1,6})|:(\d{1,6}))?")
Named = Callable[[str, str], Sequence[str]]
_ASSIGNED = re.compile(r"(?:export\s+|declare -x\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_NODE_LISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST", "NodeList")


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
    lines = [
        (number, line)
        for number, raw in enumerate(text.splitlines(), 1)
        if (line := raw.split("#", 1)[0].strip())
    ]
    if not lines:
        raise SpecError(f"{name}:1: names no machine")
    first = lines[0][1].replace(" ", "").lower()
    if first.startswith("rank,") or ",rank," in f",{first},":
        return _rank_map(lines, name)
    if re.match(r"rank\s", lines[0][1], re.IGNORECASE):
        return _rankfile(lines, name)
    lines, listed = _node_lists(lines)
    return _hostfile(lines, name, named, listed=listed)


def _rank_map(lines: list[tuple[int, str]], name: str) -> Allocation:
    header = [h.strip().lower() for h in lines[0][1].split(",")]
    if "host" not in header:
        raise SpecError(
            f"{name}:{lines[0][0]}: columns {','.join(header)[:80]}: expected rank,host"
        )
    found: dict[int, tuple[str, int]] = {}
    faults = []
    for number, line in lines[1:]:
        row = next(csv.reader(io.StringIO(line)), [])
        cells = dict(zip(header, (cell.strip() for cell in row), strict=False))
        slot = cells.get("slot", "-1") or "-1"
        rank, host = cells.get("rank", ""), cells.get("host", "")
        if len(row) != len(header) or not (_whole(rank) and (slot == "-1" or _whole(slot))):
            faults.append(f"{name}:{number}: {line[:60]!r}: expected {','.join(header)[:60]}")
        elif int(rank) in found:
            faults.append(f"{name}:{number}: rank {rank} is seated twice")
        else:
            found[int(rank)] = (host, int(slot))
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
    return _by_rank("rank-map", found, faults, name)


def _count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < MOST_RANKS


def _rankfile(lines: list[tuple[int, str]], name: str) -> Allocation:
    found: dict[int, tuple[str, int]] = {}
    faults = []
    for number, line in lines:
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
    if not faults and sorted(found) != list(range(len(found))):
        missing = next(r for r in range(len(found) + 1) if r not in found)
        faults.append(f"{name}: rank {missing} has no seat: expected 0 to {max(found, default=0)}")
    _refuse(faults)
    seats = [found[r] for r in range(len(found))]
    return Allocation(
        kind=kind, hosts=tuple(h for h, _ in seats), slots=tuple(s for _, s in seats), by_rank=True
    )


def _node_lists(lines: list[tuple[int, str]]) -> tuple[list[tuple[int, str]], bool]:
    """Return the line with the job's node list alone, where the lines are a job's environment.

    ``env`` in a job, or ``scontrol show job``, has many variables: the first of ``_NODE_LISTS``
    that has a value is taken and the others are left out.
    """
    found: dict[str, tuple[int, str]] = {}
    for number, line in lines:
        words = [line] if line.startswith(("SLURM_", "export ", "declare ")) else line.split()
        for word in words:
            match = _ASSIGNED.fullmatch(word)
            if match and match.group(1) in _NODE_LISTS and "(null)" not in match.group(2):
                found.setdefault(match.group(1), (number, match.group(2).strip("\"' ")))
    for key in _NODE_LISTS:
        if key in found:
            return [found[key]], True
    return lines, False


def _hostfile(
    lines: list[tuple[int, str]], name: str, named: Named | None, *, listed: bool
) -> Allocation:
    """Return a host file (names, ``n slots=8``, ``n*8``) or a host list over one or more lines."""
    hosts: list[str] = []
    faults: list[str] = []
    counted = False
    for number, line in lines:
        many = any(mark in line for mark in "[,{")
        listed |= many
        match = None if many else _TIMES.fullmatch(line)
        times = next((int(t) for t in match.groups()[1:] if t), 0) if match else 0
        counted |= times > 0
        try:
            names = expand_hosts(match.group(1) if match else line, named=named)
        except HostListError as error:
            faults += [f"{name}:{number}: {fault}" for fault in error.faults]
            continue
        if len(faults) > 20 or len(hosts) + len(names) * max(1, times) > MOST_RANKS:
            faults.append(f"{name}:{number}: more than {MOST_RANKS:,} ranks")
            break
        for host in names:
            hosts += [host] * max(1, times)
    _refuse(faults)
    twice = max(Counter(hosts).values()) > 1
    if not twice and len(hosts) > MOST_HOSTS:
        raise SpecError(f"{name}: more than {MOST_HOSTS:,} machines")
    by_rank = twice or counted
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
        raise SpecError(*faults[:20])
