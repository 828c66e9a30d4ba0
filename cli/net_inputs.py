"""Options of ``planner net`` from text to SI, with every fault of all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from math import inf
from pathlib import Path
from typing import Any

import typer

from planner.errors import InputError

_LONGEST = 40


def text_option(name: str, meaning: str) -> Any:
    """Return an option that is read as text and parsed with the others."""
    return typer.Option(name, metavar="QUANTITY", help=meaning)


def number_option(name: str, meaning: str) -> Any:
    """Return an option for a count or a plain number, read as text."""
    return typer.Option(name, metavar="NUMBER", help=meaning)


class Given:
    """What the options say; faults are kept, so that all of them are named.

    A text that cannot be parsed stands as its default until ``finish`` raises.
    """

    def __init__(self) -> None:
        self._faults: list[str] = []

    def quantity(
        self, option: str, text: str, parse: Callable[[str], float], stand_in: float = 1.0
    ) -> float:
        """Return the value that *text* names, by one of ``planner.units.parse_*``."""
        try:
            return parse(text)
        except InputError as error:
            self._faults += [f"{option}: {fault}" for fault in error.faults]
            return stand_in

    def count(self, option: str, text: str, *, least: int = 1, most: int = 10**15) -> int:
        """Return the whole number that *text* names."""
        cleaned = text.strip()
        if cleaned.isascii() and cleaned.isdigit() and len(cleaned) <= _LONGEST:
            value = int(cleaned)
            if least <= value <= most:
                return value
        self._faults.append(
            f"{option}: {text[:_LONGEST]!r}: expected a whole number from {least} to {most}"
        )
        return max(least, 1)

    def number(
        self, option: str, text: str, *, least: float = 0.0, most: float = inf, below: float = inf
    ) -> float:
        """Return the plain number that *text* names: from *least* to *most*, below *below*."""
        try:
            value = float(text) if len(text) <= _LONGEST and text.isascii() else inf
        except ValueError:
            value = inf
        if least <= value <= most and value < below and "_" not in text:
            return value
        limit = f"{most:g}" if below == inf else f"below {below:g}"
        self._faults.append(
            f"{option}: {text[:_LONGEST]!r}: expected a number from {least:g}"
            + (f" to {limit}" if limit != "inf" else " up")
        )
        return least or 0.5 * min(most, below, 1.0)

    def times(self, option: str, text: str) -> list[float]:
        """Return the times of a list such as ``4us,6us``."""
        from planner.units import parse_time  # noqa: PLC0415 - a command imports what it needs

        return [self.quantity(option, part.strip(), parse_time) for part in text.split(",")]

    def fault(self, message: str) -> None:
        """Note a fault."""
        self._faults.append(message)

    @contextmanager
    def finish(self) -> Iterator[None]:
        """Run the model; raise its faults together with those of the texts."""
        try:
            yield
        except InputError as error:
            raise InputError(*self._faults, *error.faults) from None
        if self._faults:
            raise InputError(*self._faults)


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
