"""Events of a YAML or JSON text to a tree of Nodes, with limits and strict scalar rules.

What the usual loaders let through is refused here, with its place: repeated keys, keys that are
not text, nesting and expansion without bound, numbers too long or too large, and characters that
would change what a person sees.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn

from planner.errors import SpecError
from planner.nodes import Faults, Node, Place

MOST_YAML_NODES = 200_000
MOST_JSON_NODES = 500_000
DEEPEST = 64
LONGEST_KEY = 256
LONGEST_NUMBER = 100
"""Characters of a scalar that is still read as a number."""

_NO_KEYS: Mapping[str, Place] = MappingProxyType({})
_BEGIN_NUMBERS = frozenset("+-0123456789")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
_REAL = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,4})?")
_WORDS: dict[str, tuple[str, bool | None]] = {
    word: (kind, value)
    for kind, value, words in (
        ("bool", True, ("true", "True", "TRUE")),
        ("bool", False, ("false", "False", "FALSE")),
        ("null", None, ("", "~", "null", "Null", "NULL")),
    )
    for word in words
}
# C0 without tab and line break, DEL and C1, line and paragraph separators, marks and overrides of
# writing direction, zero-width space and byte-order mark, lone surrogates.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff]"
)


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not been read yet."""

    kind: str
    place: Place
    path: str
    nodes_before: int
    anchor: str | None
    values: dict[str, Node] = field(default_factory=dict)
    items: list[Node] = field(default_factory=list)
    key_places: dict[str, Place] = field(default_factory=dict)
    key: str | None = None
    repeated: bool = False


class DocumentTree:
    """Builds one document's tree; ``root`` is there when the last event has been taken."""

    def __init__(self, faults: Faults, *, most_nodes: int) -> None:
        self.faults = faults
        self._most_nodes = most_nodes
        self.root: Node | None = None
        self._open: list[_Open] = []
        self._nodes = 0
        self._anchored: dict[str, tuple[Node, int]] = {}

    def wants_key(self) -> bool:
        """Return whether the next scalar is a key."""
        return bool(self._open) and self._open[-1].kind == "map" and self._open[-1].key is None

    def begin(self, kind: str, place: Place, anchor: str | None = None) -> None:
        """Enter a ``map`` or a ``list``."""
        if self.wants_key():
            self._stop(place, f"a {kind} cannot be a key")
        if len(self._open) >= DEEPEST:
            self._stop(place, f"nested deeper than {DEEPEST} levels")
        before = self._nodes
        self._count(place, 1)
        self._open.append(_Open(kind, place, self._next_path(), before, anchor))

    def end(self) -> None:
        """Leave the innermost mapping or list."""
        done = self._open.pop()
        value: Any = done.values if done.kind == "map" else tuple(done.items)
        node = Node(
            kind=done.kind,
            value=value,
            place=done.place,
            path=done.path,
            faults=self.faults,
            key_places=done.key_places,
        )
        self._keep(node, done.anchor, self._nodes - done.nodes_before)

    def key(self, key: str, place: Place) -> None:
        """Take a mapping's key; a repeated one is a fault and its value is left out."""
        inside = self._open[-1]
        self._refuse_unseen(key, place)
        if len(key) > LONGEST_KEY:
            self._stop(place, f"a key of {len(key)} characters; at most {LONGEST_KEY} are read")
        if key == "<<":
            self._stop(place, "merge keys ('<<') are not read; write the keys out")
        first = inside.key_places.get(key)
        inside.key, inside.repeated = key, first is not None
        if first is None:
            inside.key_places[key] = place
        else:
            message = f"key {key!r} is given twice, first in line {first.line}"
            self.faults.add(place, message)

    def text(self, value: str, place: Place, anchor: str | None = None) -> None:
        """Take a text."""
        self._refuse_unseen(value, place)
        self._scalar("text", value, place, anchor)

    def plain(self, literal: str, place: Place, anchor: str | None = None) -> None:
        """Take a scalar without quotes: true, false, null, a number, or else a text."""
        if literal in _WORDS:
            self._scalar(*_WORDS[literal], place, anchor)
        elif literal[0] not in _BEGIN_NUMBERS or reads_as_text(literal):
            # What is not to be seen cannot be here: only quotes have escapes.
            self._scalar("text", literal, place, anchor)
        else:
            self._scalar("number", self._number(literal, place), place, anchor)

    def alias(self, anchor: str | None, place: Place) -> None:
        """Take the value of *anchor* again; it counts as often as it is used."""
        shown = (anchor or "")[:60]
        if any(inside.anchor == anchor for inside in self._open):
            self._stop(place, f"alias *{shown} stands inside its own value")
        if self.wants_key():
            self._stop(place, "an alias cannot be a key")
        node, nodes = self._anchored.get(anchor or "", (None, 0))
        if node is None:
            self._stop(place, f"alias *{shown} is not defined before this line")
        self._count(place, nodes)
        self._keep(node, None, nodes)

    def _number(self, literal: str, place: Place) -> int | float:
        if len(literal) > LONGEST_NUMBER:
            self.faults.add(
                place, f"a number of {len(literal)} characters; at most {LONGEST_NUMBER} are read"
            )
            return 0
        if _INTEGER.fullmatch(literal) is not None:
            return int(literal.replace("_", ""))
        value = float(literal.replace("_", ""))
        if not math.isfinite(value):
            self.faults.add(place, f"number {literal} is too large")
            return 0.0
        return value

    def _scalar(self, kind: str, value: Any, place: Place, anchor: str | None) -> None:
        self._count(place, 1)
        node = Node(
            kind=kind,
            value=value,
            place=place,
            path=self._next_path(),
            faults=self.faults,
            key_places=_NO_KEYS,
        )
        self._keep(node, anchor, 1)

    def _keep(self, node: Node, anchor: str | None, nodes: int) -> None:
        """Put *node* where it belongs."""
        if anchor is not None:
            self._anchored[anchor] = (node, nodes)
        if not self._open:
            self.root = node
            return
        inside = self._open[-1]
        if inside.kind == "list":
            inside.items.append(node)
            return
        if inside.key is not None and not inside.repeated:
            inside.values[inside.key] = node
        inside.key = None

    def _next_path(self) -> str:
        """Return the path of the value that comes next."""
        if not self._open:
            return ""
        inside = self._open[-1]
        if inside.kind == "list":
            return f"{inside.path}[{len(inside.items)}]"
        return f"{inside.path}.{inside.key}" if inside.path else str(inside.key)

    def _count(self, place: Place, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > self._most_nodes:
            self._stop(
                place, f"more than {self._most_nodes} values, aliases counted as often as used"
            )

    def _refuse_unseen(self, value: str, place: Place) -> None:
        """Write down the first character of *value* that would not be seen as it is."""
        found = UNSEEN.search(value)
        if found is not None:
            self.faults.add(place, unseen_message(found.group()))

    def _stop(self, place: Place, message: str) -> NoReturn:
        """Refuse the document at once, with what was found before."""
        self.faults.add(place, message)
        self.faults.refuse()
        raise SpecError(f"{place}: {message}")


def reads_as_text(literal: str) -> bool:
    """Return whether *literal*, written without quotes, stays a text.

    >>> [reads_as_text(literal) for literal in ("50 GB/s", "no", "010", "1e3", "true", "")]
    [True, True, True, False, False, False]
    """
    return literal not in _WORDS and _REAL.fullmatch(literal) is None


def unseen_message(character: str) -> str:
    """Return why *character* is refused.

    >>> unseen_message(chr(27))
    'control or invisible character U+001B; write the text without it'
    """
    return f"control or invisible character U+{ord(character):04X}; write the text without it"
