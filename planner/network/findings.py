"""What a check of a cluster's graph has found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a reviewer should know.

    Args:
        severity: ``fault`` (it cannot work so), ``warning`` (it costs something) or ``note``.
        check: which check found it.
        where: the parts concerned, the first few of them.
        message: what is wrong, with the figure.
    """

    severity: str
    check: str
    where: tuple[str, ...]
    message: str
