"""A collective as explicit moves: who sends which units to whom, step by step.

The payload is cut into equal *units*; a move carries a set of them. All moves of a step read what
was there when the step began. Participants are the ranks 0…n-1 and, after them, switches that
reduce or copy. What must be true before and after is the collective's *contract*, which
``verify.py`` proves; ``count.py`` adds up what crosses a cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One message.

    Args:
        step: moves of the same step happen together [1].
        source: participant that sends.
        target: participant that receives.
        units: which units of the payload it carries.
        reduces: the target adds them to what it holds; otherwise it overwrites.
    """

    step: int
    source: int
    target: int
    units: frozenset[int]
    reduces: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Seating:
    """Where the ranks of one group sit.

    Args:
        domain_of: domain of each rank; any spread, even or not.
    """

    domain_of: tuple[int, ...]

    @classmethod
    def of_counts(cls, counts: Sequence[int]) -> Seating:
        """Return the group whose ranks fill domains one after another, *counts* in each.

        >>> Seating.of_counts([2, 1]).domain_of
        (0, 0, 1)
        """
        return cls(domain_of=tuple(d for d, count in enumerate(counts) for _ in range(count)))

    def __post_init__(self) -> None:
        if not self.domain_of:
            raise InputError("a group has no ranks; give the domain of at least one")

    @property
    def ranks(self) -> int:
        """Ranks in the group, n."""
        return len(self.domain_of)

    @property
    def domains(self) -> tuple[tuple[int, ...], ...]:
        """Ranks of each domain that the group touches, in the order of the domains' numbers."""
        found: dict[int, list[int]] = {}
        for rank, domain in enumerate(self.domain_of):
            found.setdefault(domain, []).append(rank)
        return tuple(tuple(found[domain]) for domain in sorted(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A collective as moves.

    Args:
        collective: ``all_reduce``, ``reduce_scatter``, ``all_gather``, ``all_to_all``,
            ``domain_gather``, ``broadcast``, ``ring`` or ``chain``: names its contract.
        algorithm: how it is done.
        seating: where the ranks sit.
        units: units that the payload is cut into [1].
        moves: in order of their steps.
        switch_of: for each switch after the ranks, the domain it stands in, -1 outside all.
    """

    collective: str
    algorithm: str
    seating: Seating
    units: int
    moves: tuple[Move, ...]
    switch_of: tuple[int, ...] = ()

    @property
    def steps(self) -> int:
        """Steps from the first move to the last."""
        return 1 + max((move.step for move in self.moves), default=-1)

    @property
    def participants(self) -> int:
        """Ranks and switches."""
        return self.seating.ranks + len(self.switch_of)

    def place(self, participant: int) -> int:
        """Return the domain of a rank or switch, -1 for a switch outside all domains."""
        ranks = self.seating.ranks
        if participant < ranks:
            return self.seating.domain_of[participant]
        return self.switch_of[participant - ranks]

    def shard(self, rank: int) -> frozenset[int]:
        """Return the units that belong to *rank*: the rank-th of n equal parts."""
        size = self.units // self.seating.ranks
        return frozenset(range(rank * size, (rank + 1) * size))


def after(moves: Sequence[Move], later: Iterable[Move]) -> tuple[Move, ...]:
    """Return *moves*, then *later* with its steps counted from where *moves* end."""
    start = 1 + max((move.step for move in moves), default=-1)
    return (
        *moves,
        *(
            Move(
                step=move.step + start,
                source=move.source,
                target=move.target,
                units=move.units,
                reduces=move.reduces,
            )
            for move in later
        ),
    )


def mirrored(moves: Sequence[Move]) -> tuple[Move, ...]:
    """Return *moves* backwards as copies: the gather that undoes a scatter.

    The reduction of each unit is a tree of moves towards its owner; walked backwards it is the
    tree that spreads the owner's value.
    """
    last = max((move.step for move in moves), default=0)
    backwards = [
        Move(
            step=last - move.step,
            source=move.target,
            target=move.source,
            units=move.units,
            reduces=False,
        )
        for move in moves
    ]
    return tuple(sorted(backwards, key=_order))


def _order(move: Move) -> tuple[int, int, int]:
    return move.step, move.source, move.target


def in_order(moves: Iterable[Move]) -> tuple[Move, ...]:
    """Return *moves* sorted by step, source and target; empty ones are dropped."""
    return tuple(sorted((move for move in moves if move.units), key=_order))
