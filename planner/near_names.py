"""The names that a misspelt or shortened one may stand for."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_LONGEST_NAME = 128
_LEAST_PART = 3
"""Characters of a word that is looked for within names [1]: two are in most of them."""


def near_names(seen: str, allowed: Sequence[str], *, least_share: float) -> list[str]:
    """Return up to three of *allowed* that *seen* may stand for, the nearest first.

    What is a part of a name was meant for that name; only else are letters compared.

    Args:
        seen: what was written.
        allowed: the names there are.
        least_share: of the letters that must agree, as ``difflib`` counts them [1].

    >>> near_names("b200", ("gb200-nvl72", "hgx-b200", "hgx-h200"), least_share=0.6)
    ['hgx-b200', 'gb200-nvl72']
    """
    word = seen[:_LONGEST_NAME].lower()
    parts = [name for name in allowed if len(word) >= _LEAST_PART and word in name.lower()]
    return difflib.get_close_matches(word, parts, n=3, cutoff=0.0) or difflib.get_close_matches(
        seen[:_LONGEST_NAME], list(allowed), n=3, cutoff=least_share
    )
