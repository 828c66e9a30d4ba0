"""The matrix of ``nvidia-smi topo -m`` to an ImportedFabric of one machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from planner.errors import SpecError
from topologies.imported_fabric import ImportedFabric, ImportedHost, ImportFinding
from topologies.imported_links import NO_SCALE_UP, Sets
from topologies.text_lines import numbered_lines

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_CELL = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|NV(\d{1,2})|C2C")
_ADAPTER = re.compile(r"NIC\d+|(?:mlx|bnxt_re|rdmap|efa)[A-Za-z0-9_]*")
_BESIDE = {"PIX", "PXB"}
_CERTAIN = {1, 2, 3, 4, 6, 12}
_LINK_BYTES_PER_S = 25e9  # one NVLink of generations 2, 3 and 4, one direction


def import_nvidia_smi(text: str, name: str) -> ImportedFabric:
    """Return the machine in the matrix, cells parted by tabs or blanks, escapes left out.

    ``NVn`` between all pairs alike is n links of each GPU to switches; else they are links of the
    pair. Eighteen links are NVLink 4 or 5, which differ twofold: then the rate stays unknown.

    Raises:
        SpecError: no header, a row too short, a cell that is no relation.
    """
    lines = [_ESCAPE.sub("", raw).rstrip() for _, raw in numbered_lines(text, name)]
    head = next((i for i, line in enumerate(lines) if line.split()[:1] == ["GPU0"]), -1)
    columns = re.findall(r"GPU\d+(?!\s*NUMA)", lines[head]) if head >= 0 else []
    if not columns or columns != [f"GPU{i}" for i in range(len(columns))] or len(columns) > 256:
        raise SpecError(f"{name}:{head + 1}: expected a header GPU0, GPU1, ...")
    matrix: list[list[str]] = []
    faults = []
    for number, line in enumerate(lines[head + 1 :], head + 2):
        words = line.split()
        if not words or not re.fullmatch(r"GPU\d+", words[0]):
            continue
        cells = words[1 : len(columns) + 1]
        if words[0] != f"GPU{len(matrix)}" or len(cells) != len(columns):
            faults.append(f"{name}:{number}: expected GPU{len(matrix)} and {len(columns)} cells")
            break
        if wrong := [cell for cell in cells if not _CELL.fullmatch(cell)]:
            faults.append(f"{name}:{number}: cell {wrong[0][:20]!r}: expected X, NV#, PIX to SYS")
            break
        matrix.append(cells)
    if not faults and len(matrix) != len(columns):
        faults.append(f"{name}: {len(matrix)} GPU rows for {len(columns)} columns")
    if faults:
        raise SpecError(*faults)
    adapters = [
        _Adapter(beside=tuple(cell in _BESIDE for cell in words[1 : len(columns) + 1]))
        for words in map(str.split, lines[head + 1 :])
        if words and _ADAPTER.fullmatch(words[0])
    ]
    return _machine(matrix, name, head + 1, adapters)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Adapter:
    """A NIC, and which GPUs are on a PCIe switch with it."""

    beside: tuple[bool, ...]


def _adapters_beside(adapters: Sequence[_Adapter], size: int) -> float:
    """Return the adapters on the PCIe switch of the GPU that has fewest, shared ones in parts."""
    return min(
        sum(1.0 / sum(one.beside) for one in adapters if one.beside[gpu:][:1] == (True,))
        for gpu in range(size)
    )


def _in_parts(links: list[list[int]]) -> bool:
    """Return whether NVLinks leave some GPUs without a way to others."""
    sets = Sets()
    size = len(links)
    for i, j in combinations(range(size), 2):
        if links[i][j]:
            sets.join(i, j)
    return len({sets.root(i) for i in range(size)}) > 1


def _machine(
    matrix: list[list[str]], name: str, line: int, adapters: Sequence[_Adapter]
) -> ImportedFabric:
    size, where = len(matrix), f"{name}:{line}"
    links = [[int(c[2:]) if c.startswith("NV") else 0 for c in row] for row in matrix]
    findings = []

    def say(message: str, severity: str = "warning") -> None:
        findings.append(ImportFinding(severity=severity, where=where, message=message))

    for i in range(size):
        for j in range(i):
            if matrix[i][j] != matrix[j][i]:
                say(f"GPU{i}-GPU{j} is {matrix[i][j]}, GPU{j}-GPU{i} is {matrix[j][i]}")
    pairs = {links[i][j] for i in range(size) for j in range(size) if i != j}
    if size > 1 and 0 in pairs:
        say("not every pair of GPUs has NVLinks: the rest goes over PCIe, which is not modelled")
    apart = _in_parts(links)
    switched = len(pairs) == 1 and max(pairs, default=0) * (size - 1) > 18
    totals = [max(row) if switched else sum(row) for row in links]
    if len(set(totals)) > 1:
        say(f"GPUs have {min(totals)} to {max(totals)} NVLinks: the least counts")
    least = min(totals)
    rate = None
    if apart:
        rate = None
    elif least and max(totals) in _CERTAIN:
        rate = least * _LINK_BYTES_PER_S
    elif least:
        say(f"{least} NVLinks: of 25 GB/s (NVLink 4) or 50 GB/s (NVLink 5), not said", "note")
    if (several := round(_adapters_beside(adapters, size), 6)) > 1:
        say(
            f"{several:g} adapters are on the PCIe switch of each GPU: taken as one, for ports of "
            "one adapter look the same; give --links FILE with nic: what one GPU has"
        )
    return ImportedFabric(
        name="machine",
        kind="nvidia-smi",
        provenance=f"nvidia-smi topo -m {name}",
        hosts=(ImportedHost(name="machine", gpus=size, supernode="machine"),),
        scale_up_bytes_per_s=rate,
        adapters_per_gpu=min(1.0, len(adapters) / size) if adapters else 1.0,
        no_scale_up=NO_SCALE_UP if apart else "",
        findings=tuple(findings[:20]),
    )
