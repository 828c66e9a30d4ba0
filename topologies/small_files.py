"""Files that people write by hand: read whole, refused where they are too large to be one."""

from __future__ import annotations

from pathlib import Path

from planner.documents import read_bytes
from planner.errors import SpecError

LARGEST_BYTES = 2**18
"""The largest config.json seen, with a shape of its own for each of 162 layers, has 80 KB."""


def read_small_bytes(path: Path | str) -> bytes:
    """Return the bytes of the file at *path*.

    Raises:
        SpecError: it cannot be read, or holds more than 256 KiB.
    """
    content = read_bytes(path)
    if len(content) > LARGEST_BYTES:
        raise SpecError(
            f"{path}: has {len(content):,} bytes, more than the {LARGEST_BYTES:,} of any model, "
            f"layout or launch file"
        )
    return content
