"""What a network model takes for granted, checked where it can be, and never left unsaid."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Premise:
    """One premise of a model.

    Args:
        states: the premise, as a sentence.
        holds: whether the inputs satisfy it; None where the inputs cannot tell.
        otherwise: what changes when it does not hold.
    """

    states: str
    holds: bool | None
    otherwise: str
