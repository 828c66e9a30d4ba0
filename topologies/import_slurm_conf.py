"""Slurm's topology.conf, tree or block, to an ImportedFabric."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from planner.errors import SpecError
from topologies.host_lists import MOST_HOSTS, HostListError, expand_hosts
from topologies.import_slurm_rows import BlockRow, SwitchRow, block_fabric, tree_fabric
from topologies.imported_fabric import ImportedFabric, ImportFinding
from topologies.text_lines import numbered_lines

_SWITCH_KEYS = ("switchname", "nodes", "switches", "linkspeed", "level")
_BLOCK_KEYS = ("blockname", "nodes", "blocksizes", "blockindex", "blocksize")
_COMMENT = re.compile(r"(?<!\\)#")
_PAIR = re.compile(r'([A-Za-z0-9_.]+)[ \t]*=[ \t]*(?:"([^"]+)"|([^\s"]+))(?:\s+|$)')
"""A key and its value as Slurm reads them: spaces around the sign, quotes around the value."""
_MOST_FAULTS = 20
_LARGEST_SIZE = 2**20
_MOST_ROWS = MOST_HOSTS // 4
"""Switches, or blocks: four machines to a leaf where there are as many as there may be."""


def import_slurm_conf(text: str, name: str) -> ImportedFabric:
    """Return what a topology.conf says.

    Keywords in any case, ``#`` comments, lines in any order; ``LinkSpeed`` is in no unit and is
    ignored, as Slurm does. What ``scontrol show topology`` prints is read too: there a switch that
    is above others also lists all machines below them, and unions of blocks are lines of their own.

    Args:
        text: the file's.
        name: what faults call the file.

    Raises:
        SpecError: every fault, with its line.

    >>> found = import_slurm_conf("SwitchName=s0 Nodes=n[0-1]", "topology.conf")
    >>> found.kind, [host.name for host in found.hosts]
    ('slurm-tree', ['n0', 'n1'])
    """
    reader = _Reader(name)
    for number, line in _logical_lines(text, name):
        reader.take(number, line)
        if len(reader.switches) + len(reader.blocks) > _MOST_ROWS:
            reader.faults.append(f"{name}:{number}: more than {_MOST_ROWS:,} switches or blocks")
            break
        if len(reader.faults) >= _MOST_FAULTS:
            break
    if reader.switches and reader.blocks:
        reader.faults.append(f"{name}: has both SwitchName and BlockName lines: expected one kind")
    if not reader.faults and not (reader.switches or reader.blocks):
        reader.faults.append(f"{name}: has no SwitchName or BlockName line: not a topology.conf")
    if reader.faults:
        raise SpecError(*reader.faults)
    if reader.switches:
        found = tree_fabric(
            reader.switches, name="slurm", provenance=f"Slurm topology.conf (tree) {name}"
        )
        return replace(found, findings=(*found.findings, *reader.findings))
    return block_fabric(
        reader.blocks, reader.sizes, name="slurm", where=reader.sizes_at or name,
        provenance=f"Slurm topology.conf (block) {name}",
    )  # fmt: skip


def _logical_lines(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments, those that end in a backslash joined to the next as they are.

    As Slurm does: the comment goes first, and nothing stands for the end of the line, so that a
    list may be cut in the middle of a word.
    """
    held, began = "", 0
    for number, raw in numbered_lines(text, name):
        line = _COMMENT.split(raw, maxsplit=1)[0].rstrip()
        began = began if held else number
        if line.endswith("\\"):
            held += line[:-1]
            continue
        if line := (held + line).strip():
            yield began, line
        held = ""
    if held.strip():
        yield began, held.strip()


class _Reader:
    """Lines to rows, with every fault."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.faults: list[str] = []
        self.findings: list[ImportFinding] = []
        self.switches: list[SwitchRow] = []
        self.blocks: list[BlockRow] = []
        self.sizes: tuple[int, ...] = ()
        self.sizes_at = ""
        self._room = MOST_HOSTS

    def take(self, number: int, line: str) -> None:
        """Read one line."""
        where = f"{self.name}:{number}"
        if line.split(maxsplit=1)[0].lower() == "include":
            self.faults.append(
                f"{where}: Include: another file's lines are not read: put them in its place"
            )
            return
        pairs: dict[str, str] = {}
        at = 0
        while at < len(line):
            pair = _PAIR.match(line, at)
            if pair is None:
                word = line[at : at + 60].split(maxsplit=1)[0]
                self.faults.append(f"{where}: {word!r}: expected Key=value")
                return
            key, quoted, plain = pair.groups()
            if key.lower() in pairs:
                self.faults.append(f"{where}: {key} is given twice on one line")
                return
            pairs[key.lower()] = plain if quoted is None else quoted
            at = pair.end()
        if "aggregatedblock" in pairs:
            return  # of scontrol: follows from the blocks and their sizes
        if "switchname" in pairs and "blockname" in pairs:
            self.faults.append(f"{where}: SwitchName and BlockName on one line")
            return
        allowed = _SWITCH_KEYS if "switchname" in pairs else _BLOCK_KEYS
        if wrong := [key for key in pairs if key not in allowed]:
            self.faults.append(
                f"{where}: {wrong[0][:40]!r} is no key of such a line: {', '.join(allowed)}"
            )
            return
        if "switchname" in pairs:
            self._switch(where, pairs)
        elif "blockname" in pairs:
            self._block(where, pairs)
        elif "nodes" in pairs:
            self.faults.append(f"{where}: Nodes without SwitchName or BlockName")
        if "blocksizes" in pairs:
            self._sizes(where, pairs["blocksizes"])

    def _switch(self, where: str, pairs: dict[str, str]) -> None:
        if "level" in pairs and "switches" in pairs:
            pairs = {key: value for key, value in pairs.items() if key != "nodes"}
        nodes, children = (self._hosts(where, pairs.get(key)) for key in ("nodes", "switches"))
        named = self._hosts(where, pairs["switchname"])
        if len(named) > 1:
            message = f"{pairs['switchname'][:60]}: taken as {len(named)} switches, by Slurm as one"
            self.findings.append(ImportFinding(severity="note", where=where, message=message))
        self.switches += (
            SwitchRow(name=switch, where=where, nodes=nodes, children=children) for switch in named
        )

    def _block(self, where: str, pairs: dict[str, str]) -> None:
        block = self._hosts(where, pairs["blockname"])
        nodes = self._hosts(where, pairs.get("nodes"))
        if len(block) == 1:
            self.blocks.append(BlockRow(name=block[0], where=where, nodes=nodes))
        elif block:
            self.faults.append(f"{where}: BlockName={pairs['blockname'][:40]}: expected one block")

    def _sizes(self, where: str, text: str) -> None:
        sizes = []
        for word in text.split(","):
            if not (word.isascii() and word.isdigit() and len(word) < 8
                    and 1 <= int(word) <= _LARGEST_SIZE):  # fmt: skip
                self.faults.append(f"{where}: BlockSizes={text[:60]}: expected e.g. 18,36")
                return
            sizes.append(int(word))
        if self.sizes_at:
            self.faults.append(f"{where}: BlockSizes is given again; first at {self.sizes_at}")
        self.sizes, self.sizes_at = tuple(sizes), where

    def _hosts(self, where: str, text: str | None) -> tuple[str, ...]:
        if text is None:
            return ()
        try:
            hosts = expand_hosts(text, most=self._room)
        except HostListError as error:
            self.faults += [f"{where}: {fault}" for fault in error.faults]
            return ()
        self._room -= len(hosts) // 4  # a machine may be on a few switches, not on thousands
        self._room = max(1, self._room)
        return hosts
