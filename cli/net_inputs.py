"""Options of ``planner net`` from text to SI, with every fault of all of them at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from math import inf
from pathlib import Path
from typing import Any

import typer

from planner.errors import InputError

_LONGEST = 40
_FIELD = re.compile(r"\b(?P<field>[a-z][a-z_]*)=(?:\[[^]]*\]|array\(.*?\)|[^\s,;:]+)")
"""A field as the models' faults name it: its name, and its value as Python writes it."""


def text_option(name: str, meaning: str) -> Any:
    """Return an option that is read as text and parsed with the others."""
    return typer.Option(name, metavar="QUANTITY", help=meaning)


def number_option(name: str, meaning: str) -> Any:
    """Return an option for a count or a plain number, read as text."""
    return typer.Option(name, metavar="NUMBER", help=meaning)


class Given:
    """What the options say, by the name that the model has for it.

    Faults are kept, so that all of them are named. Where a text cannot be used, a stand-in goes on
    to the model until ``finish`` raises, and what the model says of it is left out.

    >>> from planner.units import parse_time
    >>> given = Given()
    >>> given.quantity("poll_interval_s", "--poll-interval", "20us", parse_time)
    >>> given.values
    {'poll_interval_s': 2e-05}
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._typed: dict[str, str] = {}
        self._stand_ins: set[str] = set()
        self._faults: list[str] = []

    def quantity(
        self,
        field: str,
        option: str,
        text: str | None,
        parse: Callable[[str], float],
        stand_in: float = 1.0,
        *,
        least: float = -inf,
        most: float = inf,
    ) -> None:
        """Read the value that *text* names, by one of ``planner.units.parse_*``; None stays."""
        if text is None:
            self.values[field] = None
            return
        self._read(field, option, text)
        try:
            value = parse(text)
        except InputError as error:
            self._refuse(field, *(f"{option}: {fault}" for fault in error.faults))
            value = stand_in
        if not least <= value <= most:
            self._refuse(field, f"{option} {text[:_LONGEST]}: expected {least:g} to {most:g}")
            value = stand_in
        self.values[field] = value

    def count(
        self, field: str, option: str, text: str, *, least: int = 1, most: int = 10**15
    ) -> None:
        """Read the whole number that *text* names."""
        self._read(field, option, text)
        cleaned = text.strip()
        value = -1
        if cleaned.isascii() and cleaned.isdigit() and len(cleaned) <= _LONGEST:
            value = int(cleaned)
        if not least <= value <= most:
            expected = f"expected a whole number from {least} to {most}"
            self._refuse(field, f"{option}: {text[:_LONGEST]!r}: {expected}")
            value = max(least, 1)
        self.values[field] = value

    def number(
        self,
        field: str,
        option: str,
        text: str,
        *,
        least: float = 0.0,
        most: float = inf,
        below: float = inf,
    ) -> None:
        """Read the plain number that *text* names: from *least* to *most*, below *below*."""
        self._read(field, option, text)
        try:
            value = float(text) if len(text) <= _LONGEST and text.isascii() else inf
        except ValueError:
            value = inf
        if not least <= value <= most or not value < below or "_" in text:
            limit = f"{most:g}" if below == inf else f"below {below:g}"
            expected = f"expected a number from {least:g}" + (
                f" to {limit}" if limit != "inf" else " up"
            )
            self._refuse(field, f"{option}: {text[:_LONGEST]!r}: {expected}")
            value = least or 0.5 * min(most, below, 1.0)
        self.values[field] = value

    def times(self, field: str, option: str, text: str) -> None:
        """Read the times of a list such as ``4us,6us``."""
        from planner.units import parse_time  # noqa: PLC0415 - a command imports what it needs

        found = []
        for part in text.split(","):
            self.quantity(field, option, part.strip(), parse_time)
            found.append(self.values[field])
        self.values[field] = found
        self._read(field, option, text)

    def counts(self, field: str, option: str, text: str, *, most: int) -> None:
        """Read the whole numbers of a list such as ``8,8,4``."""
        found = []
        for part in text.split(","):
            self.count(field, option, part, most=most)
            found.append(self.values[field])
        self.values[field] = found
        self._read(field, option, text)

    def word(self, field: str, option: str, text: str) -> None:
        """Read a name, which the model knows or refuses."""
        self._read(field, option, text)
        self.values[field] = text

    def but(self, *fields: str) -> dict[str, Any]:
        """Return the values without those of *fields*."""
        return {field: value for field, value in self.values.items() if field not in fields}

    @contextmanager
    def finish(self) -> Iterator[None]:
        """Run the model; raise its faults together with those of the texts.

        The model names its own fields; the user is told the option and what was typed.
        """
        try:
            yield
        except InputError as error:
            told = [self._as_typed(fault) for fault in error.faults if self._is_of_texts(fault)]
            raise InputError(*self._faults, *told) from None
        if self._faults:
            raise InputError(*self._faults)

    def _refuse(self, field: str, *faults: str) -> None:
        self._stand_ins.add(field)
        self._faults += faults

    def _is_of_texts(self, fault: str) -> bool:
        """Return whether *fault* is about what was typed, not about a stand-in."""
        return self._stand_ins.isdisjoint(seen["field"] for seen in _FIELD.finditer(fault))

    def _read(self, field: str, option: str, text: str) -> None:
        self._typed[field] = f"{option} {text[:_LONGEST]}"

    def _as_typed(self, fault: str) -> str:
        """Return *fault* with options in place of fields: ``poll_interval_s=0.0`` is no name."""
        return _FIELD.sub(lambda seen: self._typed.get(seen["field"], seen[0]), fault)


def parts_of(result: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, as they are."""
    return {field.name: getattr(result, field.name) for field in fields(result)}


def put_out(
    command: str,
    inputs: dict[str, Any],
    body: dict[str, Any],
    text: str,
    *,
    as_json: bool,
    out: Path | None,
) -> None:
    """Print the text or the document, and write the document where ``--out`` says."""
    from cli.planner_output import (  # noqa: PLC0415 - a command imports what it needs
        document,
        emit,
        json_text,
        note,
        write_file,
    )

    if as_json or out is not None:
        told = json_text(document(f"net-{command}", inputs, body))
        if out is not None:
            write_file(out, told)
            note(f"wrote {out}")
        if as_json:
            emit(told)
            return
    emit(text)
