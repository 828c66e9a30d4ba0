"""YAML and JSON files to values with their places; the only module that knows YAML.

``read_document`` yields a ``Document`` whose root is a ``Node``; see ``planner.nodes`` for how a
reader asks it for rates, sizes and counts. Nothing in a file is executed, guessed or silently
overwritten, and a hostile file costs no more than an honest one of 16 MiB.
"""

from __future__ import annotations

import gc
import hashlib
import re
import stat
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from planner.document_tree import (
    MOST_JSON_NODES,
    MOST_YAML_NODES,
    UNSEEN,
    DocumentTree,
    reads_as_text,
    unseen_message,
)
from planner.errors import SpecError
from planner.json_text import JsonSyntaxError, json_events
from planner.nodes import MOST_FAULTS_SHOWN, Faults, Node, Place

__all__ = [
    "LARGEST_FILE_BYTES",
    "Document",
    "Node",
    "Place",
    "content_of",
    "document_from_text",
    "no_collection",
    "read_bytes",
    "read_document",
    "read_documents",
    "yaml_text",
]

LARGEST_FILE_BYTES = 16 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One YAML or JSON document.

    Args:
        name: what faults call it.
        sha256: of the bytes it was read from, in hexadecimal.
        root: the outermost value.
        faults: what is wrong with it, as far as it has been read.
    """

    name: str
    sha256: str
    root: Node
    faults: Faults

    def finish(self) -> None:
        """Raise one SpecError with every fault found so far; return if there is none."""
        self.faults.refuse()


def read_document(path: Path | str, *, name: str | None = None) -> Document:
    """Return the one document in the file at *path*; ``.json`` is JSON, anything else YAML.

    Raises:
        SpecError: no such file, a directory, over 16 MiB, not UTF-8, cut off, or bad syntax.
    """
    shown = str(path) if name is None else name
    return document_from_text(read_bytes(path), name=shown, kind=_kind(path))


def read_documents(path: Path | str, *, name: str | None = None) -> tuple[Document, ...]:
    """Return every document of a YAML file whose documents are parted by ``---``."""
    shown = str(path) if name is None else name
    return _documents(read_bytes(path), shown, _kind(path))


def document_from_text(text: str | bytes, *, name: str = "<text>", kind: str = "yaml") -> Document:
    """Return the one document in *text*.

    Args:
        text: the text, or its UTF-8 bytes.
        name: what faults call it.
        kind: ``yaml`` or ``json``.

    >>> document = document_from_text("uplink: 400 Gb/s")
    >>> document.root.rate("uplink")
    50000000000.0
    >>> document.root.count("gpus")
    1
    >>> document.finish()
    Traceback (most recent call last):
    planner.errors.SpecError: <text>:1:1: missing key 'gpus'
    """
    documents = _documents(text, name, kind)
    if len(documents) > 1:
        second = documents[1].root.place
        raise SpecError(f"{second}: a second document begins here; one is expected")
    return documents[0]


def read_bytes(path: Path | str) -> bytes:
    """Return the bytes of the file at *path*.

    Raises:
        SpecError: it cannot be read, or holds more than 16 MiB.
    """
    try:
        content = content_of(path, LARGEST_FILE_BYTES)
    except FileNotFoundError:
        raise SpecError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise SpecError(f"{path}: is a directory; name a file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SpecError(f"{str(path)!r}: cannot be read: {reason}") from None
    if len(content) > LARGEST_FILE_BYTES:
        raise SpecError(f"{path}: is larger than 16 MiB, which no file of this kind is")
    return content


def content_of(path: Path | str, most: int) -> bytes:
    """Return the bytes at *path*, one more than *most* where there are more.

    A pipe can be read once only, and a command may ask twice, for what is in it and for its hash:
    what one held is kept.

    Raises:
        OSError: it cannot be read.
    """
    told = Path(path).stat()
    pipe = (told.st_dev, told.st_ino)
    if stat.S_ISFIFO(told.st_mode) and pipe in _PIPES:
        return _PIPES[pipe]
    with Path(path).open("rb") as file:
        content = file.read(most + 1)
    if stat.S_ISFIFO(told.st_mode) and len(content) <= most:
        _PIPES[pipe] = content
    return content


_PIPES: dict[tuple[int, int], bytes] = {}
"""What pipes held, by device and inode."""


def yaml_text(value: Any) -> str:
    """Return *value* (dicts, lists, text, numbers) as YAML, keys in their order.

    >>> print(yaml_text({"name": "sn64", "on": ["1e3", 8]}), end="")
    name: sn64
    'on':
    - '1e3'
    - 8
    """
    import yaml  # noqa: PLC0415 - 15 ms that `planner --help` need not pay

    class Dumper(yaml.SafeDumper):
        """Quotes what some reader, of YAML 1.1 or 1.2, would not take for text."""

        def ignore_aliases(self, data: Any) -> bool:
            return data is not None

        def represent_text(self, text: str) -> yaml.Node:
            style = None if reads_as_text(text) else "'"
            return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, Dumper.represent_text)
    return str(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100))


def _kind(path: Path | str) -> str:
    return "json" if Path(path).suffix.lower() == ".json" else "yaml"


def _documents(content: str | bytes, name: str, kind: str) -> tuple[Document, ...]:
    """Return the documents of *content*, of which there is at least one."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    text = _decoded(data, name)
    sha256 = hashlib.sha256(data).hexdigest()
    faults = Faults()
    _refuse_unseen(text, name, faults)
    roots = _json_root(text, name, faults) if kind == "json" else _yaml_roots(text, name, faults)
    with no_collection():
        documents = tuple(
            Document(name=name, sha256=sha256, root=root, faults=root.faults) for root in roots
        )
    if not documents:
        raise SpecError(f"{name}:1:1: the file holds nothing")
    return documents


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the collector of cycles from walking what only grows: a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _decoded(data: bytes, name: str) -> str:
    """Return the text of *data*, without a byte-order mark and with plain line ends."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        raise SpecError(
            f"{name}:{line}:{column}: byte 0x{data[error.start]:02x} is not UTF-8; "
            "save the file as UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _refuse_unseen(text: str, name: str, faults: Faults) -> None:
    """Refuse the text at once if a character in it, even in a comment, hides what it says."""
    if UNSEEN.search(text) is None:
        return
    lines = _Lines(text, name)
    for found in islice(UNSEEN.finditer(text), MOST_FAULTS_SHOWN):
        faults.add(lines.place(found.start()), unseen_message(found.group()))
    faults.refuse()


class _Lines:
    """Offsets of a text to lines and columns."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def place(self, offset: int) -> Place:
        line = bisect_right(self._starts, offset)
        return Place(self._name, line, offset - self._starts[line - 1] + 1)


def _json_root(text: str, name: str, faults: Faults) -> Iterator[Node]:
    """Yield the one value of a JSON text."""
    lines = _Lines(text, name)
    if not text.strip():
        return
    tree = DocumentTree(faults, most_nodes=MOST_JSON_NODES)
    try:
        for kind, value, offset in json_events(text):
            if kind == "end":
                tree.end()
                continue
            place = lines.place(offset)
            match kind:
                case "key":
                    tree.key(value, place)
                case "text":
                    tree.text(value, place)
                case "plain":
                    tree.plain(value, place)
                case _:
                    tree.begin(kind, place)
    except JsonSyntaxError as error:
        faults.add(lines.place(error.offset), f"no valid JSON: {error}")
        faults.refuse()
    if tree.root is not None:
        yield tree.root


def _yaml_roots(text: str, name: str, faults: Faults) -> Iterator[Node]:
    """Yield the root of each document of a YAML text."""
    import yaml  # noqa: PLC0415 - 15 ms that `planner --help` need not pay

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    tree = DocumentTree(faults, most_nodes=MOST_YAML_NODES)
    try:
        for event in yaml.parse(text, Loader=loader):
            match event:
                case yaml.NodeEvent() | yaml.CollectionEndEvent():
                    _take(event, tree, name)
                case yaml.DocumentStartEvent():
                    tree = DocumentTree(faults, most_nodes=MOST_YAML_NODES)
                case yaml.DocumentEndEvent() if tree.root is not None:
                    yield tree.root
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(name, 1, 1) if mark is None else _place(name, mark)
        parts = (error.context, error.problem)
        faults.add(place, "no valid YAML: " + ", ".join(part for part in parts if part))
        faults.refuse()
    except yaml.YAMLError as error:
        faults.add(Place(name, 1, 1), f"no valid YAML: {error}")
        faults.refuse()


def _take(event: Any, tree: DocumentTree, name: str) -> None:
    """Hand one YAML event to the tree."""
    import yaml  # noqa: PLC0415 - loaded by the caller

    kind = type(event)
    if kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
        tree.end()
        return
    place = _place(name, event.start_mark)
    if getattr(event, "tag", None) not in {None, "!"}:
        tree.faults.add(place, f"tag {event.tag[:80]!r} is not read; write the plain value")
    match event:
        case yaml.ScalarEvent() if tree.wants_key():
            tree.key(event.value, place)
        case yaml.ScalarEvent() if event.implicit[0]:
            tree.plain(event.value, place, event.anchor)
        case yaml.ScalarEvent():
            tree.text(event.value, place, event.anchor)
        case yaml.MappingStartEvent():
            tree.begin("map", place, event.anchor)
        case yaml.SequenceStartEvent():
            tree.begin("list", place, event.anchor)
        case yaml.AliasEvent():
            tree.alias(event.anchor, place)


def _place(name: str, mark: Any) -> Place:
    return Place(name, mark.line + 1, mark.column + 1)
