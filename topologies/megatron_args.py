"""Megatron's arguments, by name, from wherever they were written.

A shell script, a test's YAML, a Primus or a NeMo file all end as the same few hundred names.
``MegatronArguments`` holds their texts and places and reads them as numbers, flags and words,
recording every fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.errors import SpecError
from topologies.pattern_text import shown
from topologies.shell_text import UNKNOWN

_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})
_ABSENT = frozenset({"", "null", "none"})


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument's text, empty for a bare flag, and where it stands.

    ``apart`` says that the text is words behind the name, which a flag does not take for its own.
    """

    text: str
    where: str
    bare: bool = False
    apart: bool = False


@dataclass(slots=True)
class MegatronArguments:
    """Arguments by name (``tensor_model_parallel_size``), and what is wrong with them.

    Args:
        arguments: name to argument; of a repeated one the last, as argparse has it.
        name: what faults call the file.
        faults: every fault so far.
        assumed: what was not stated, name to reason.
    """

    arguments: Mapping[str, Argument]
    name: str
    faults: list[str] = field(default_factory=list)
    assumed: dict[str, str] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Return whether *name* is given a value other than null."""
        given = self.arguments.get(name)
        return given is not None and (given.bare or given.text.strip().lower() not in _ABSENT)

    def fault(self, name: str, message: str) -> None:
        """Record that something is wrong with *name*."""
        given = self.arguments.get(name)
        where = given.where if given else self.name
        self.faults.append(f"{where}: {name}: {message}")

    def text(self, name: str, default: str = "") -> str:
        """Return the text of *name*; a text only a shell would know is a fault."""
        if not self.has(name):
            return default
        text = self.arguments[name].text.strip()
        if UNKNOWN in text:
            self.fault(name, "its value is only known to the shell: write the value itself")
            return default
        return text

    def hint(self, name: str) -> str:
        """Return what is known of a text that need not be known in full."""
        given = self.arguments.get(name)
        return given.text.replace(UNKNOWN, "").strip() if given is not None else ""

    def count(self, name: str, default: int = 0, *, minimum: int = 0, maximum: int = 10**9) -> int:
        """Return a whole number."""
        text = self.text(name)
        if not text:
            if self.has(name) and self.arguments[name].bare:
                self.fault(name, "expected a whole number after it")
            return default
        if not re.fullmatch(r"\+?[0-9][0-9_]{0,11}", text) or not minimum <= int(text) <= maximum:
            self.fault(name, f"expected a whole number from {minimum}, got {shown(text)}")
            return default
        return int(text)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return whether the flag *name* is set; ``no_name`` unsets it."""
        if self.has(f"no_{name}"):
            return not self.flag(f"no_{name}")
        if not self.has(name):
            return default
        given = self.arguments[name]
        if given.apart and given.text == UNKNOWN:
            self.note_unknown(given.where)
            return True
        if given.bare:
            return True
        text = self.text(name).lower()
        if text in _TRUE:
            return True
        if text not in _FALSE:
            self.fault(name, f"expected true or false, got {shown(text)}")
        return False

    def note_unknown(self, where: str) -> None:
        """Record that a word at *where*, which may hold arguments, is known to the shell only."""
        self.assumed.setdefault(
            "arguments",
            f"{where}: words that only the shell knows, there or later: taken to hold none",
        )

    def finish(self) -> None:
        """Raise one error with every fault, if there is one."""
        if self.faults:
            raise SpecError(*self.faults)


def normal_name(text: str) -> str:
    """Return an argument's name as Python would have it.

    >>> normal_name("--tensor-model-parallel-size")
    'tensor_model_parallel_size'
    """
    return text.lstrip("-").replace("-", "_")
