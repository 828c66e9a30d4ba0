"""A launch script's text cut into commands of words, as the shell would, nothing expanded."""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.errors import SpecError

_PLAIN = re.compile(r"[A-Za-z0-9_./:,%@+*\[\]{}=?!~-]*[A-Za-z0-9_./:,%@+*\[\]{}?!~-]")
_HEREDOC = re.compile(r"<<-?\s*['\"]?([A-Za-z_][A-Za-z0-9_]*)['\"]?")

_REDIRECT = re.compile(r"(?:&>>?|>>?|<(?!<(?!<))<{0,2})[ \t]*&?[ \t]*(?:<(?=\())?")
"""``>``, ``>>``, ``2>&1``, ``&>``, ``<``, ``<<<``, ``< <(…)``: all but a here-document."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command as written, and the line it begins on."""

    raw: str
    line: int


def split_commands(text: str, line: int = 1) -> list[list[Word]]:
    """Split *text* into commands of raw words; comments, here-documents, redirections left out.

    A command that hangs on the one before begins with ``&&`` or ``||``.

    >>> [[word.raw for word in one] for one in split_commands("a 1 2>&1 | tee x && b > log; c")]
    [['a', '1'], ['tee', 'x'], ['&&', 'b'], ['c']]
    """
    commands: list[list[Word]] = [[]]
    word: list[str] = []
    start, at = line, 0

    def end_word() -> None:
        if word:
            commands[-1].append(Word("".join(word), start))
            word.clear()

    while at < len(text):
        character = text[at]
        if text.startswith("\\\n", at) or text.startswith("\\\r\n", at):
            at = text.index("\n", at) + 1
            line += 1
            end_word()
            continue
        if character == "#" and not word:
            stop = text.find("\n", at)
            at = len(text) if stop < 0 else stop
            continue
        if character in " \t\r":
            end_word()
            at += 1
            continue
        redirect = _REDIRECT.match(text, at) if character in "<>&" else None
        if redirect and (not word or "".join(word).isdigit()):
            word.clear()
            at = _target_end(text, redirect.end())
            continue
        heredoc = _HEREDOC.match(text, at) if character == "<" else None
        if character in "\n;&|" or heredoc:
            end_word()
            commands.append([])
            if text.startswith(("&&", "||"), at):
                commands[-1].append(Word(text[at : at + 2], line))
                at += 2
                continue
            stop = _heredoc_end(text, heredoc) if heredoc else at + 1
            line += text.count("\n", at, stop)
            at = stop
            continue
        if not word:
            start = line
        stop = _piece_end(text, at, after_equals=bool(word) and text[at - 1] == "=")
        word.append(text[at:stop])
        line += text.count("\n", at, stop)
        at = stop
    end_word()
    return [command for command in commands if command]


def _heredoc_end(text: str, begins: re.Match[str]) -> int:
    """Return where a here-document ends: behind its word alone on a line."""
    finish = re.compile(rf"^\s*{re.escape(begins.group(1))}\s*$", re.MULTILINE)
    found = finish.search(text, begins.end())
    return found.end() if found else len(text)


def _target_end(text: str, at: int) -> int:
    """Return where the file or descriptor that begins at *at* ends."""
    if text.startswith("(", at):
        return closing(text, at, "(", ")") + 1
    while at < len(text) and text[at] not in " \t\r\n;&|<>":
        at = _piece_end(text, at, after_equals=False)
    return at


def _piece_end(text: str, at: int, *, after_equals: bool) -> int:
    """Return where the quote, bracket or character that begins at *at* ends."""
    plain = _PLAIN.match(text, at)
    if plain:
        return plain.end()
    character = text[at]
    if character == "\\":
        return min(at + 2, len(text))
    if character in "'\"`":
        end = at + 1
        while end < len(text) and text[end] != character:
            end += 2 if text[end] == "\\" and character != "'" else 1
        if end >= len(text):
            raise SpecError(f"the quote that begins {text[at : at + 40]!a} never ends")
        return end + 1
    if text.startswith("${", at):
        return closing(text, at + 1, "{", "}") + 1
    if text.startswith("$(", at):
        return closing(text, at + 1, "(", ")") + 1
    if character == "(" and after_equals:
        return _array_end(text, at)
    return at + 1


def _array_end(text: str, at: int) -> int:
    end, depth = at, 0
    while end < len(text):
        character = text[end]
        if character == "#" and text[end - 1] in " \t\n(":
            stop = text.find("\n", end)
            end = len(text) if stop < 0 else stop
            continue
        if character in "'\"":
            end = _piece_end(text, end, after_equals=False)
            continue
        depth += (character == "(") - (character == ")")
        end += 1
        if not depth:
            return end
    raise SpecError(f"the array that begins {text[at : at + 40]!a} never ends")


def closing(raw: str, start: int, opener: str, closer: str) -> int:
    """Return where the bracket that begins at *start* closes."""
    depth = 0
    for at in range(start, len(raw)):
        depth += (raw[at] == opener) - (raw[at] == closer)
        if not depth:
            return at
    raise SpecError(f"{raw[:60]!a}: no {closer!r} closes the {opener!r}")
