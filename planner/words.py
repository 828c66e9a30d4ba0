"""Words that depend on a number: one leaf, two leaves, 59 times."""

from __future__ import annotations

_PLURALS = {"leaf": "leaves", "chassis": "chassis", "shelf": "shelves"}


def plural(noun: str) -> str:
    """Return what several of *noun* are called.

    >>> plural("supernode"), plural("leaf"), plural("switch"), plural("spine-leaf")
    ('supernodes', 'leaves', 'switches', 'spine-leaves')
    """
    for one, many in _PLURALS.items():
        if noun.endswith(one):
            return noun.removesuffix(one) + many
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def counted(number: int, noun: str) -> str:
    """Return how many there are of *noun*.

    >>> counted(1, "supernode"), counted(3, "leaf"), counted(1024, "pod")
    ('1 supernode', '3 leaves', '1,024 pods')
    """
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def format_times(ratio: float) -> str:
    """Return how many times as much, as people read it.

    >>> format_times(60.02), format_times(2.34), format_times(12345.0)
    ('60 times', '2.3 times', '12,345 times')
    """
    return f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.2g} times"
