"""JSON of large graphs at the standard library's speed, without what it lets through."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from planner.errors import SpecError


def json_value(text: str, name: str) -> Any:
    """Return the JSON value in *text*.

    Args:
        text: the file's.
        name: what faults call the file.

    Raises:
        SpecError: no JSON, NaN or infinity, a key given twice, or nesting without end.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            twice = next(key for key, times in counts.items() if times > 1)
            raise SpecError(f"{name}: key {twice[:60]!r} is given twice in one mapping")
        return made

    def refused(word: str) -> Any:
        raise SpecError(f"{name}: {word}: expected a finite number")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=refused)
    except json.JSONDecodeError as error:
        raise SpecError(f"{name}:{error.lineno}:{error.colno}: is no JSON: {error.msg}") from None
    except RecursionError:
        raise SpecError(f"{name}: is nested too deep") from None
    except ValueError as error:
        raise SpecError(f"{name}: is no JSON: {str(error)[:120]}") from None
