"""Figures of a cluster file: each number with its source, or with the reason it is assumed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from planner.nodes import Node
from topologies.plausible import PLAUSIBLE

Number = TypeVar("Number", int, float)

ABOUT_FIGURES = ("source", "assumed")


@dataclass(kw_only=True)
class Figures:
    """Where the figures of one document come from, gathered while it is read.

    Args:
        references: short keys (``ML``) to what they stand for; none for a user's own file.
        sources: figure, by its path in the document, to source.
        assumed: figure to reason.
    """

    references: Mapping[str, str]
    sources: dict[str, str] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)

    def note(
        self, node: Node, path: str, figures: tuple[str, ...], whole: str | None
    ) -> str | None:
        """Note the source of each of *figures* that *node* has; return what covers maps inside.

        ``source:`` is one text for all, or a mapping from figure to text; ``assumed:`` maps figures
        to reasons. A figure with neither takes *whole*, the source of the map around it; failing
        that it is noted as given without source.
        """
        stated, own = self._texts(node, "source", figures)
        reasons, _ = self._texts(node, "assumed", figures)
        covering = whole if own is None else self._spelled_out(own)
        for key in figures:
            value = node.optional(key)
            if value is None:
                continue
            name = f"{path}.{key}" if path else key
            if key in reasons:
                self.assumed[name] = self._spelled_out(reasons[key])
            if key in stated:
                self.sources[name] = self._spelled_out(stated[key])
            elif key not in reasons:
                self.sources[name] = covering or f"{value.where}, no source given"
        return covering

    def _texts(
        self, node: Node, key: str, figures: tuple[str, ...]
    ) -> tuple[dict[str, str], str | None]:
        """Return texts by figure, or one text for all."""
        value = node.optional(key)
        if value is None:
            return {}, None
        if value.kind == "text" and key == "source":
            return {}, value.as_text()
        value.only(*figures)
        return {name: value.text(name) for name in value.keys() if name in figures}, None  # noqa: SIM118

    def _spelled_out(self, words: str) -> str:
        """Return *words* with the short keys in it spelled out."""
        return re.sub(r"\w+", lambda word: self.references.get(word.group(), word.group()), words)


def figure(node: Node, key: str, read: Callable[[str], Number], kind: str = "") -> Number:
    """Return ``read(key)``, and write down a fault where it is there but cannot be.

    Args:
        node: the mapping.
        key: in it.
        read: what *key* is read with.
        kind: what of ``PLAUSIBLE`` it is; empty where that is called *key* as well.

    >>> from planner.documents import document_from_text
    >>> doc = document_from_text("rate: 50 GB/s")
    >>> figure(doc.root, "rate", doc.root.rate)
    50000000000.0
    """
    before = len(node.faults)
    value = read(key)
    if not node.has(key) or len(node.faults) > before:
        return value
    possible = PLAUSIBLE[kind or key]
    if value <= 0 < possible.least:
        node.fault("expected more than 0", key=key)
    elif fault := possible.fault(value):
        node.fault(fault, key=key)
    return value


def figure_if_there(node: Node, key: str, read: Callable[[str], float], kind: str = "") -> float:
    """Return the same, or 0 where *key* is left out."""
    return figure(node, key, read, kind) if node.has(key) else 0.0
