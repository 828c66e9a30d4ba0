"""Slurm's host lists: ``gpu[001-016,020]`` to names and back, order and padding kept.

Commas inside brackets part ranges, commas outside part hosts; a name may carry several brackets.
The width of a range is that of its lower end, as ``scontrol show hostnames`` has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, product
from math import prod

from planner.errors import SpecError

MOST_HOSTS = 2**17
"""Hosts of one list; a system with 131,072 machines has more than a million GPUs."""
_LONGEST_NUMBER = 15
_PLAIN = re.compile(r"[A-Za-z0-9_.:+-]+")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_MARKS = re.compile(r"[\[\]{}]")
_MARKS_AND_COMMAS = re.compile(r"[\[\]{},]")
_BRACKETS = re.compile(r"(\[[^\]]*\])")
_FUNCTION = re.compile(r"(block|switch|blockwith|switchwith)\{([^{}]{1,4096})\}", re.IGNORECASE)
_LONGEST_NAME = 128
_LONGEST_LIST = 2**22


class HostListError(SpecError):
    """A text that is no host list, or one of more hosts than any cluster has."""


def expand_hosts(
    text: str,
    *,
    most: int = MOST_HOSTS,
    named: Callable[[str, str], Sequence[str]] | None = None,
) -> tuple[str, ...]:
    """Return the names in the host list *text*, in its order; a name may come twice.

    Args:
        text: e.g. ``circe-n[040,060,062-077],login``.
        most: names that are one too many for any list [1].
        named: from a host list function and its argument, ``switch{s1}``, to names; none where
            there is no cluster to ask.

    Raises:
        HostListError: an open bracket, a range that runs backwards, a function, too many names.

    >>> expand_hosts("n[08-11],im0,r[1-2]u[7,9]")
    ('n08', 'n09', 'n10', 'n11', 'im0', 'r1u7', 'r1u9', 'r2u7', 'r2u9')
    """
    if len(text) > _LONGEST_LIST:
        raise HostListError(f"a host list of {len(text):,} characters: expected fewer")
    names: list[str] = []
    if len(text) <= _LONGEST_NAME and _PLAIN.fullmatch(text):
        return (text,)
    for term in _terms(text, most):
        if len(names) < most and _PLAIN.fullmatch(term):
            names.append(term)
            continue
        function = _FUNCTION.fullmatch(term)
        if function is not None and named is not None:
            names += named(function.group(1).lower(), function.group(2))
            if len(names) > most:
                raise HostListError(f"{term[:60]!r} brings the list to more than {most:,} hosts")
            continue
        parts = _parts(term, most)
        count = prod(len(part) for part in parts)
        if len(names) + count > most:
            raise HostListError(
                f"{term[:60]!r} brings the list to more than {most:,} hosts: expected fewer"
            )
        names += ("".join(choice) for choice in product(*parts))
    if max(map(len, names), default=0) > _LONGEST_NAME:
        wrong = next(name for name in names if len(name) > _LONGEST_NAME)
        raise HostListError(f"host name {wrong[:60]!r}... is longer than {_LONGEST_NAME}")
    return tuple(names)


def fold_hosts(names: Iterable[str]) -> str:
    """Return the host list that expands to *names* in this very order.

    >>> fold_hosts(["n08", "n09", "n10", "login", "n7"])
    'n[08-10],login,n7'
    """
    split = [_split(name) for name in names]
    terms: list[str] = []
    for prefix, group in groupby(split, key=lambda part: part[0] if part[1] else None):
        members = list(group)
        if prefix is None:
            terms += [whole for whole, _ in members]
            continue
        numbers = [digits for _, digits in members]
        ranges = _ranges(numbers)
        alone = len(numbers) == 1
        terms.append(prefix + (ranges[0] if alone else f"[{','.join(ranges)}]"))
    return ",".join(terms)


def _split(name: str) -> tuple[str, str]:
    """Return what stands before the digits at the end of *name*, and these."""
    prefix = name.rstrip("0123456789")
    digits = name[len(prefix) :]
    return (prefix, digits) if 0 < len(digits) <= _LONGEST_NUMBER else (name, "")


def _ranges(numbers: Sequence[str]) -> list[str]:
    """Return runs of consecutive *numbers* of the same width as ranges."""
    runs: list[tuple[str, str]] = []
    for digits in numbers:
        if runs:
            first, last = runs[-1]
            if len(last) == len(digits) and int(digits) == int(last) + 1:
                runs[-1] = (first, digits)
                continue
        runs.append((digits, digits))
    return [first if first == last else f"{first}-{last}" for first, last in runs]


def _terms(text: str, most: int) -> list[str]:
    """Return *text* cut at the commas outside brackets, refused where it has more than *most*."""
    if _MARKS.search(text) is None:
        if text.count(",") >= most:
            raise HostListError(f"{text[:60]!r} lists more than {most:,} hosts: expected fewer")
        terms = [term.strip() for term in text.split(",")]
    else:
        terms = [term.strip() for term in _bracketed_terms(text, most)]
    if not all(terms):
        raise HostListError(f"{text[:60]!r}: an empty name; expected e.g. 'n[01-16],n20'")
    return terms


def _bracketed_terms(text: str, most: int) -> list[str]:
    """Return the terms of *text*, which has brackets or braces."""
    terms, start, open_at, braces = [], 0, -1, 0
    for found in _MARKS_AND_COMMAS.finditer(text):
        mark, at = found.group(), found.start()
        if mark in "{}":
            braces += 1 if mark == "{" else -1
        elif mark == "[":
            if open_at >= 0:
                raise HostListError(f"{text[:60]!r}: a bracket inside a bracket")
            open_at = at
        elif mark == "]":
            if open_at < 0:
                raise HostListError(f"{text[:60]!r}: ']' without '['")
            open_at = -1
        elif open_at < 0 and braces < 1:
            terms.append(text[start:at])
            start = at + 1
            if len(terms) >= most:
                raise HostListError(f"{text[:60]!r} lists more than {most:,} hosts: expected fewer")
    if open_at >= 0:
        raise HostListError(f"{text[open_at : open_at + 60]!r}: '[' is never closed")
    return [*terms, text[start:]]


def _parts(term: str, most: int) -> list[Sequence[str]]:
    """Return the literal and bracketed parts of one term, each as its choices."""
    if "{" in term:
        raise HostListError(
            f"{term[:60]!r}: host list functions need a cluster that has such switches or blocks, "
            "and are block, switch, blockwith and switchwith: write the hosts instead"
        )
    parts: list[Sequence[str]] = []
    room = most
    for piece in _BRACKETS.split(term):
        if piece.startswith("["):
            parts.append(_choices(piece, term, room))
            room //= len(parts[-1])
        elif piece:
            if _PLAIN.fullmatch(piece) is None:
                raise HostListError(
                    f"host name {term[:60]!r}: expected letters, digits and _ . : + - only"
                )
            parts.append((piece,))
    return parts


def _choices(piece: str, term: str, most: int) -> list[str]:
    """Return the numbers in the brackets *piece*, as text of their own width."""
    numbers: list[str] = []
    for one in piece[1:-1].split(","):
        match = _RANGE.fullmatch(one.strip())
        if match is None or max(len(n or "") for n in match.groups()) > _LONGEST_NUMBER:
            raise HostListError(
                f"{term[:60]!r}: {one[:30]!r} in brackets: expected a number or a range like 01-16"
            )
        low, high = match.group(1), match.group(2) or match.group(1)
        count = int(high) - int(low) + 1
        if count < 1:
            raise HostListError(f"{term[:60]!r}: the range {one[:40]} runs backwards")
        if len(numbers) + count > most:
            raise HostListError(f"{term[:60]!r} names more than {most:,} hosts: expected fewer")
        numbers += (str(n).zfill(len(low)) for n in range(int(low), int(high) + 1))
    return numbers
