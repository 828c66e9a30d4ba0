"""Node: one value of a document with its place, and the readers that turn it into SI.

A reader asks a mapping for what it needs (``node.rate("uplink")``). What is missing or wrong is
written down with its line, a harmless stand-in is returned so that reading goes on, and
``Document.finish`` refuses the document once, with every fault.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple, TypeVar, overload

from planner import units
from planner.errors import SpecError
from planner.near_names import near_names

T = TypeVar("T")

MOST_FAULTS_SHOWN = 50
_NAME = re.compile(r"[A-Za-z0-9_.:+-]{1,128}")
_LARGEST_COUNT = 10**9


class _Required(Enum):
    """The default of a key that must be there."""

    REQUIRED = "required"


REQUIRED: Final = _Required.REQUIRED


class Place(NamedTuple):
    """Where something stands in a file; lines and columns count from 1.

    A tuple, because a large file has 500,000 of them and they are quick to make.
    """

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Faults:
    """Everything that is wrong with one document."""

    def __init__(self) -> None:
        self._found: dict[tuple[Place, str], None] = {}

    def add(self, place: Place, message: str) -> None:
        """Write down one fault; the same fault at the same place counts once."""
        self._found[place, message] = None

    def __len__(self) -> int:
        return len(self._found)

    def refuse(self) -> None:
        """Raise one SpecError with every fault, by line; return if there is none."""
        if not self._found:
            return
        messages = [f"{place}: {message}" for place, message in sorted(self._found)]
        left_out = len(messages) - MOST_FAULTS_SHOWN
        if left_out > 0:
            messages[MOST_FAULTS_SHOWN:] = [f"and {left_out} more faults of the same file"]
        raise SpecError(*messages)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """One value with its place.

    Args:
        kind: ``map``, ``list``, ``text``, ``number``, ``bool`` or ``null``.
        value: dict of Nodes, tuple of Nodes, str, int or float, bool, None.
        place: where the value begins.
        path: keys from the root, e.g. ``supernodes[2].uplink``; empty at the root.
        faults: the document's list of what is wrong.
        key_places: where each key of a map stands.
    """

    kind: str
    value: Any
    place: Place
    path: str
    faults: Faults
    key_places: Mapping[str, Place]

    @property
    def where(self) -> str:
        """The place as ``file:line:column``."""
        return str(self.place)

    def fault(self, message: str, *, key: str | None = None) -> None:
        """Write down that this value, or the one under *key*, is wrong."""
        node = self.optional(key) if key is not None else self
        if node is None:
            self._say(self.place, key, message)
        else:
            self._say(node.place, key, message)

    def plain(self) -> Any:
        """Return the value as plain Python, without places."""
        if self.kind == "map":
            return {key: node.plain() for key, node in self.value.items()}
        if self.kind == "list":
            return [node.plain() for node in self.value]
        return self.value

    # --- keys -----------------------------------------------------------------------------------

    def keys(self) -> tuple[str, ...]:
        """Return the keys in the order of the file; none where this is no mapping."""
        return tuple(self.value) if self._is_map() else ()

    def items(self) -> tuple[tuple[str, Node], ...]:
        """Return keys and values in the order of the file."""
        return tuple(self.value.items()) if self._is_map() else ()

    def has(self, key: str) -> bool:
        """Return whether *key* is there, with any value."""
        return self.kind == "map" and key in self.value

    def optional(self, key: str) -> Node | None:
        """Return the value under *key*, whatever it is, or None."""
        return self.value[key] if self.has(key) else None

    def only(self, *allowed: str) -> None:
        """Refuse every key that is not in *allowed*, and say which was probably meant."""
        for key in self.keys():
            if key not in allowed:
                self.faults.add(self.key_places[key], f"unknown key {key!r}{meant(key, allowed)}")

    # --- values under a key ---------------------------------------------------------------------

    def text(
        self,
        key: str,
        *,
        default: str | _Required = REQUIRED,
        choices: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> str:
        """Return the text under *key*, one of *choices* or whole match of *pattern* if given."""
        return self._read(key, default, "", lambda n: n.as_text(choices=choices, pattern=pattern))

    def name(self, key: str, *, default: str | _Required = REQUIRED) -> str:
        """Return a name that is safe in terminals, HTML and CSV."""
        return self._read(key, default, "", Node.as_name)

    def count(
        self,
        key: str,
        *,
        default: int | _Required = REQUIRED,
        minimum: int = 1,
        maximum: int = _LARGEST_COUNT,
    ) -> int:
        """Return a whole number from *minimum* to *maximum* [1]."""
        return self._read(key, default, minimum, lambda n: n.as_count(minimum, maximum))

    def number(
        self,
        key: str,
        *,
        default: float | _Required = REQUIRED,
        minimum: float | None = None,
        maximum: float | None = None,
    ) -> float:
        """Return a finite number without a unit."""
        return self._read(key, default, 0.0, lambda n: n.as_number(minimum, maximum))

    def share(self, key: str, *, default: float | _Required = REQUIRED) -> float:
        """Return a share from 0 to 1."""
        return self._read(key, default, 0.0, Node.as_share)

    def money(self, key: str, *, default: float | _Required = REQUIRED) -> float:
        """Return an amount of money, 0 or more, in the currency the document names."""
        return self._read(key, default, 0.0, lambda n: n.as_number(0.0, None))

    def flag(self, key: str, *, default: bool | _Required = REQUIRED) -> bool:
        """Return true or false; yes, no, on and off are refused."""
        return self._read(key, default, False, Node.as_flag)

    def bytes(self, key: str, *, default: float | _Required = REQUIRED) -> float:
        """Return a size such as ``8 KiB`` [bytes]."""
        return self._read(key, default, 0.0, Node.as_bytes)

    def rate(self, key: str, *, default: float | _Required = REQUIRED) -> float:
        """Return a rate such as ``50 GB/s`` or ``400 Gb/s`` [bytes/s]."""
        return self._read(key, default, 0.0, Node.as_rate)

    def time(self, key: str, *, default: float | _Required = REQUIRED) -> float:
        """Return a time such as ``20 us`` [s]."""
        return self._read(key, default, 0.0, Node.as_time)

    def flops(self, key: str, *, default: float | _Required = REQUIRED) -> float:
        """Return a rate of operations such as ``989 TFLOP/s`` [FLOP/s]."""
        return self._read(key, default, 0.0, Node.as_flops)

    def power(self, key: str, *, default: float | _Required = REQUIRED) -> float:
        """Return a power such as ``700 W`` [W]."""
        return self._read(key, default, 0.0, Node.as_power)

    @overload
    def map(self, key: str) -> Node: ...
    @overload
    def map(self, key: str, *, default: None) -> Node | None: ...
    def map(self, key: str, *, default: _Required | None = REQUIRED) -> Node | None:
        """Return the mapping under *key*."""
        empty = self._stand_in(key, "map", {})
        return self._read(key, default, empty, lambda n: n.as_map() or empty)

    def list(
        self, key: str, *, default: tuple[Node, ...] | _Required = REQUIRED
    ) -> tuple[Node, ...]:
        """Return the items of the list under *key*."""
        return self._read(key, default, (), Node.as_list)

    # --- this value -----------------------------------------------------------------------------

    def as_text(self, *, choices: Sequence[str] | None = None, pattern: str | None = None) -> str:
        """Return this text."""
        if self.kind != "text":
            quote = f"; put it in quotes: '{self.value}'" if self.kind == "number" else ""
            self._expected("text", quote)
            return ""
        if choices is not None and self.value not in choices:
            self._expected("one of " + ", ".join(choices), meant(self.value, choices))
            return ""
        if pattern is not None and re.fullmatch(pattern, self.value) is None:
            self._expected(f"text of the form {pattern}")
            return ""
        return str(self.value)

    def as_name(self) -> str:
        """Return this name: letters, digits and ``_ . : + -``, at most 128."""
        if self.kind == "text" and _NAME.fullmatch(self.value) is None:
            self._expected("a name of at most 128 letters, digits and _ . : + -")
            return ""
        return self.as_text()

    def as_count(self, minimum: int = 1, maximum: int = _LARGEST_COUNT) -> int:
        """Return this whole number, from *minimum* to *maximum*."""
        whole = self.kind == "number" and isinstance(self.value, int)
        if not whole or not minimum <= self.value <= maximum:
            self._expected(f"a whole number from {minimum} to {maximum}")
            return minimum
        return int(self.value)

    def as_number(self, minimum: float | None = None, maximum: float | None = None) -> float:
        """Return this number, from *minimum* to *maximum* where given."""
        low = -math.inf if minimum is None else minimum
        high = math.inf if maximum is None else maximum
        if self.kind != "number" or not low <= self.value <= high:
            above = "" if minimum is None else f" of at least {minimum:g}"
            below = "" if maximum is None else f"{' and' if above else ' of'} at most {maximum:g}"
            self._expected(f"a number{above}{below}")
            return 0.0
        return float(self.value)

    def as_share(self) -> float:
        """Return this share, 0 to 1."""
        if self.kind != "number" or not 0 <= self.value <= 1:
            self._expected("a share from 0 to 1")
            return 0.0
        return float(self.value)

    def as_flag(self) -> bool:
        """Return this truth value."""
        if self.kind != "bool":
            self._expected("true or false")
            return False
        return bool(self.value)

    def as_bytes(self) -> float:
        """Return this size [bytes]."""
        return self._quantity(units.parse_bytes)

    def as_rate(self) -> float:
        """Return this rate [bytes/s]."""
        return self._quantity(units.parse_rate)

    def as_time(self) -> float:
        """Return this time [s]."""
        return self._quantity(units.parse_time)

    def as_flops(self) -> float:
        """Return this rate of operations [FLOP/s]."""
        return self._quantity(units.parse_flops)

    def as_power(self) -> float:
        """Return this power [W]."""
        return self._quantity(units.parse_power)

    def as_map(self) -> Node | None:
        """Return this mapping itself, or None where it is none."""
        return self if self._is_map() else None

    def as_list(self) -> tuple[Node, ...]:
        """Return the items of this list."""
        if self.kind != "list":
            self._expected("a list")
            return ()
        return tuple(self.value)

    # --- inside ---------------------------------------------------------------------------------

    def _read(
        self, key: str, default: T | _Required, stand_in: T, convert: Callable[[Node], T]
    ) -> T:
        """Return the converted value under *key*, the default, or the stand-in with a fault."""
        if not self._is_map():
            return stand_in
        node = self.value.get(key)
        if node is not None:
            return convert(node)
        if not isinstance(default, _Required):
            return default
        self._say(self.place, None, f"missing key {key!r}")
        return stand_in

    def _is_map(self) -> bool:
        """Return whether this is a mapping; write down the fault where it is not."""
        if self.kind != "map":
            self._expected("a mapping of keys to values")
        return self.kind == "map"

    def _quantity(self, parse: Callable[[str], float]) -> float:
        """Return what *parse* makes of this scalar."""
        if self.kind in {"text", "number"}:
            try:
                return parse(self.value)
            except SpecError as error:
                self._say(self.place, None, error.faults[0])
        else:
            self._expected("a number with its unit")
        return 0.0

    def _expected(self, wanted: str, hint: str = "") -> None:
        self._say(self.place, None, f"expected {wanted}, got {self._shown()}{hint}")

    def _shown(self) -> str:
        """Return what was seen, in a few characters and without control characters."""
        if self.kind in {"map", "list"}:
            size = len(self.value)
            noun = "key" if self.kind == "map" else "item"
            return f"a {self.kind} of {size} {noun}{'' if size == 1 else 's'}"
        if self.kind == "null":
            return "nothing"
        if self.kind == "bool":
            return str(self.value).lower()
        text = repr(self.value)
        return text if len(text) <= 80 else text[:76] + " ..."

    def _say(self, place: Place, key: str | None, message: str) -> None:
        """Write down *message* at *place*, with the path of what it is about."""
        path = ".".join(part for part in (self.path, key) if part)
        self.faults.add(place, f"{path}: {message}" if path else message)

    def _stand_in(self, key: str, kind: str, value: Any) -> Node:
        """Return an empty Node that takes no faults, to read on with."""
        return Node(
            kind=kind,
            value=value,
            place=self.place,
            path=f"{self.path}.{key}",
            faults=Faults(),
            key_places={},
        )


def meant(seen: str, allowed: Sequence[str]) -> str:
    """Return ``, did you mean 'x'?`` for the nearest of *allowed*, else what is allowed.

    >>> meant("uplnk", ("uplink", "latency"))
    ", did you mean 'uplink'?"
    >>> meant("gb200", ("gb200-nvl72", "hgx-b200"))
    ", did you mean 'gb200-nvl72'?"
    >>> meant("colour", ("uplink", "latency"))
    '; known are uplink, latency'
    """
    near = near_names(seen, allowed, least_share=0.6)
    if near:
        return f", did you mean {near[0]!r}?"
    return f"; known are {', '.join(allowed)}" if allowed else ""
