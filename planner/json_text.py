"""JSON text to events with their places, strictly by RFC 8259.

The standard library accepts NaN, 1e999 and duplicate keys, exhausts the stack on deep nesting and
does not say where a value stands. This scanner keeps its own stack and yields one event at a time,
so that whoever builds the values can stop early.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_SPACES = frozenset(" \t\n\r")
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SIMPLE = re.compile(r'"([^"\\\x00-\x1f]*)"')
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_WORD = re.compile(r"[A-Za-z0-9_.+-]+")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES = dict(zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True))
_CLOSES = {"map": "}", "list": "]"}


class JsonSyntaxError(ValueError):
    """The text is no JSON; *offset* says where."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class JsonEvent(NamedTuple):
    """One step through the text.

    Args:
        kind: ``map`` or ``list`` where one begins, ``end``, ``key``, ``text``, or ``plain`` for a
            number, true, false and null, whose literal is the text.
        text: the key, the text, or the literal.
        offset: where it stands [characters].
    """

    kind: str
    text: str
    offset: int


def json_events(text: str) -> Iterator[JsonEvent]:
    """Yield the events of the one value in *text*.

    Raises:
        JsonSyntaxError: at the first character that is not JSON, or where the text is cut off.

    >>> [(event.kind, event.text) for event in json_events('{"gpus": [8]}')]
    [('map', ''), ('key', 'gpus'), ('list', ''), ('plain', '8'), ('end', ''), ('end', '')]
    """
    stack: list[str] = []
    at = _skip(text, 0)
    just_opened = False
    while True:
        if not (just_opened and text[at : at + 1] == _CLOSES[stack[-1]]):
            if stack and stack[-1] == "map":
                key, after = _string(text, at, "a key in double quotes")
                yield JsonEvent("key", key, at)
                at = _skip(text, _after(text, after, ":"))
            kind = {"{": "map", "[": "list"}.get(text[at : at + 1])
            if kind is not None:
                yield JsonEvent(kind, "", at)
                stack.append(kind)
                at, just_opened = _skip(text, at + 1), True
                continue
            event, at = _scalar(text, at)
            yield event
            at = _skip(text, at)
        while stack and text[at : at + 1] == _CLOSES[stack[-1]]:
            yield JsonEvent("end", "", at)
            stack.pop()
            at = _skip(text, at + 1)
        if not stack:
            break
        at = _skip(text, _after(text, at, ",", f" or {_CLOSES[stack[-1]]!r}"))
        just_opened = False
    if at != len(text):
        raise JsonSyntaxError("there is more text after the end of the value", at)


def _skip(text: str, at: int) -> int:
    """Return the offset of the next character that is no white space."""
    if text[at : at + 1] not in _SPACES:
        return at
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _after(text: str, at: int, mark: str, otherwise: str = "") -> int:
    """Return the offset after *mark*, which must be next."""
    at = _skip(text, at)
    if text[at : at + 1] != mark:
        raise _wrong(text, at, f"{mark!r}{otherwise}")
    return at + 1


def _scalar(text: str, at: int) -> tuple[JsonEvent, int]:
    """Return the text, number, true, false or null that begins at *at*, and where it ends."""
    if text[at : at + 1] == '"':
        value, end = _string(text, at, "a value")
        return JsonEvent("text", value, at), end
    word = _WORD.match(text, at)
    if word is None:
        raise _wrong(text, at, "a value")
    literal = word.group()
    if literal not in {"true", "false", "null"} and _NUMBER.fullmatch(literal) is None:
        raise JsonSyntaxError(f"expected a value, got {literal[:40]!r}, which is no JSON", at)
    return JsonEvent("plain", literal, at), word.end()


def _string(text: str, at: int, wanted: str) -> tuple[str, int]:
    """Return the string that begins at *at*, escapes resolved, and where it ends."""
    simple = _SIMPLE.match(text, at)
    if simple is not None:
        return simple.group(1), simple.end()
    if text[at : at + 1] != '"':
        raise _wrong(text, at, wanted)
    start, at, parts = at, at + 1, []
    while True:
        plain = _PLAIN.match(text, at)
        if plain is not None:
            parts.append(plain.group())
            at = plain.end()
        mark = text[at : at + 1]
        if mark == '"':
            # A pair of escaped surrogates is one character; a lone one stays and is refused later.
            joined = "".join(parts)
            if "\\u" in text[start:at]:
                joined = joined.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            return joined, at + 1
        if mark != "\\":
            problem = "a line break or control character" if mark else "the end of the text"
            raise JsonSyntaxError(f"{problem} inside a string", at if mark else start)
        escape = text[at + 1 : at + 2]
        digits = _HEX.match(text, at + 2) if escape == "u" else None
        if digits is not None:
            parts.append(chr(int(digits.group(), 16)))
            at += 6
        elif escape in _ESCAPES:
            parts.append(_ESCAPES[escape])
            at += 2
        else:
            raise JsonSyntaxError(f"unknown escape {text[at : at + 2]!r} in a string", at)


def _wrong(text: str, at: int, wanted: str) -> JsonSyntaxError:
    """Return the error that *wanted* was due at *at*."""
    seen = repr(text[at]) if at < len(text) else "the end of the text"
    return JsonSyntaxError(f"expected {wanted}, got {seen}", at)
