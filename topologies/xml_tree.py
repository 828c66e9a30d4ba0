"""XML to a tree, without entities or document types, of limited depth and size."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from planner.errors import SpecError

MOST_ELEMENTS = 100_000
DEEPEST = 64


class _Careful(ET.TreeBuilder):
    """Refuses a document type, and more elements or levels than there may be."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = self._count = 0

    def doctype(self, name: str, _pubid: str | None, system: str | None) -> None:
        """Let pass the one that names hwloc's own rules, which are never fetched."""
        if name != "topology" or system not in {"hwloc.dtd", "hwloc2.dtd"}:
            raise SpecError(f"a document type ({name[:40]}): expected none")

    def start(self, tag: Any, attrs: Any) -> Any:
        """Count an element in."""
        self._depth += 1
        self._count += 1
        if self._depth > DEEPEST:
            raise SpecError(f"elements more than {DEEPEST} deep")
        if self._count > MOST_ELEMENTS:
            raise SpecError(f"more than {MOST_ELEMENTS:,} elements")
        return super().start(tag, attrs)

    def end(self, tag: Any) -> Any:
        """Count an element out."""
        self._depth -= 1
        return super().end(tag)


def xml_root(text: str, name: str) -> Any:
    """Return the root element of *text*.

    Raises:
        SpecError: it is no XML, declares entities, or is too deep or too large.
    """
    at = text.find("<!ENTITY")
    if at >= 0:
        raise SpecError(f"{name}:{text[:at].count(chr(10)) + 1}: declares an entity: expected none")
    parser = ET.XMLParser(target=_Careful())  # noqa: S314 - hardened above
    try:
        for start in range(0, len(text), 65536):
            parser.feed(text[start : start + 65536])
        return parser.close()
    except ET.ParseError as error:
        raise SpecError(f"{name}:{error.position[0]}: is no XML: {error}") from None
    except SpecError as error:
        raise SpecError(*(f"{name}: {fault}" for fault in error.faults)) from None
    except (ValueError, LookupError) as error:
        raise SpecError(f"{name}: is no XML: {str(error)[:120]}") from None
