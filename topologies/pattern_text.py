"""``[0]*3+[1]*58`` and the like: a list of numbers written as repeats and sums.

Megatron's ``--moe-layer-freq`` and our own model files say which layers are MoE this way. Megatron
evaluates the text as Python; here it is parsed, by four rules and nothing else::

    sum   := term ('+' term)*        lists are joined, numbers added
    term  := value ('*' value)*      a list times a number is repeated
    value := number | '[' number (',' number)* ']' | '(' sum ')'
"""

from __future__ import annotations

import re

from planner.errors import SpecError

MOST_ENTRIES = 10_000
MOST_NESTED = 16
MOST_CHARACTERS = 100_000

_TOKEN = re.compile(r"[ \t]*(?:([0-9]{1,9})(?![0-9])|([\[\](),+*]))")

Value = int | tuple[int, ...]


def parse_pattern(text: str) -> Value:
    """Return the number or the list of numbers that *text* stands for.

    Raises:
        SpecError: anything but these rules, or a list of more than 10,000 numbers.

    >>> parse_pattern("([0]*2+[1,0]*2)")
    (0, 0, 1, 0, 1, 0)
    >>> parse_pattern("1")
    1
    """
    if len(text) > MOST_CHARACTERS:
        raise SpecError(f"a pattern of {len(text):,} characters: at most {MOST_CHARACTERS:,}")
    parser = _Parser(text)
    value = parser.sum(0)
    if parser.peek():
        raise parser.unexpected()
    return value


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        end = 0
        stripped = text.rstrip()
        while end < len(stripped):
            match = _TOKEN.match(stripped, end)
            if match is None:
                raise SpecError(
                    f"{shown(text)}: {stripped[end : end + 12].strip()!r} is no part of a pattern "
                    f"such as '[0]*3+[1]*58'"
                )
            self.tokens.append(match.group(1) or match.group(2))
            end = match.end()
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if not token or (wanted and token != wanted):
            raise self.unexpected()
        self.at += 1
        return token

    def unexpected(self) -> SpecError:
        found = repr(self.peek()) if self.peek() else "the end"
        return SpecError(f"{shown(self.text)}: {found} where a pattern like '[0]*3+[1]*58' goes on")

    def sum(self, depth: int) -> Value:
        total = self.term(depth)
        while self.peek() == "+":
            self.take()
            total = self.joined(total, self.term(depth))
        return total

    def term(self, depth: int) -> Value:
        product = self.value(depth)
        while self.peek() == "*":
            self.take()
            product = self.repeated(product, self.value(depth))
        return product

    def value(self, depth: int) -> Value:
        if depth > MOST_NESTED:
            raise SpecError(f"{shown(self.text)}: brackets nested deeper than {MOST_NESTED}")
        if self.peek() == "(":
            self.take()
            inner = self.sum(depth + 1)
            self.take(")")
            return inner
        if self.peek() != "[":
            return self.number()
        self.take()
        entries = [self.number()]
        while self.peek() == ",":
            self.take()
            entries.append(self.number())
        self.take("]")
        return tuple(entries)

    def number(self) -> int:
        if not self.peek().isdigit():
            raise self.unexpected()
        return int(self.take())

    def joined(self, left: Value, right: Value) -> Value:
        if isinstance(left, int) and isinstance(right, int):
            return self.bounded(left + right)
        if isinstance(left, int) or isinstance(right, int):
            raise SpecError(f"{shown(self.text)}: a list and a number cannot be added")
        self.bounded_length(len(left) + len(right))
        return left + right

    def repeated(self, left: Value, right: Value) -> Value:
        if isinstance(left, int) and isinstance(right, int):
            return self.bounded(left * right)
        if isinstance(left, int):
            left, right = right, left
        if isinstance(left, int) or isinstance(right, tuple):
            raise SpecError(f"{shown(self.text)}: two lists cannot be multiplied")
        self.bounded_length(len(left) * right)
        return left * right

    def bounded(self, number: int) -> int:
        if number > 10**9:
            raise SpecError(f"{shown(self.text)}: a number above 1,000,000,000")
        return number

    def bounded_length(self, entries: int) -> None:
        if entries > MOST_ENTRIES:
            raise SpecError(f"{shown(self.text)}: {entries:,} entries, at most {MOST_ENTRIES:,}")


def shown(text: str) -> str:
    """Return *text* as a message may show it: printable, quoted, at most 60 characters."""
    return ascii(text if len(text) <= 60 else text[:57] + "...")
