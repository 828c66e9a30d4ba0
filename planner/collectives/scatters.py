"""Three ways to reduce-scatter among a list of ranks: ring, halving, direct.

Each takes the *members* and, for each, the *targets*: the units whose sum it shall end with. The
sets may differ in size and need not be contiguous, so that the same three ways serve a flat group,
the members of one domain, and the domains among themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.collectives.schedule import Move, in_order

Scatter = Callable[[Sequence[int], Sequence[frozenset[int]]], tuple[Move, ...]]


def ring_scatter(members: Sequence[int], targets: Sequence[frozenset[int]]) -> tuple[Move, ...]:
    """Return the ring in the order of *members*: size - 1 steps, one set of units a step.

    In step s member i hands on the sum meant for member i - s - 1, which reaches its owner in the
    last step.
    """
    size = len(members)
    return in_order(
        Move(
            step=step,
            source=members[i],
            target=members[(i + 1) % size],
            units=targets[(i - step - 1) % size],
            reduces=True,
        )
        for step in range(size - 1)
        for i in range(size)
    )


def direct_scatter(members: Sequence[int], targets: Sequence[frozenset[int]]) -> tuple[Move, ...]:
    """Return one step in which everyone sends each other member what that one shall sum."""
    return in_order(
        Move(step=0, source=source, target=target, units=units, reduces=True)
        for target, units in zip(members, targets, strict=True)
        for source in members
        if source != target
    )


def halving_scatter(members: Sequence[int], targets: Sequence[frozenset[int]]) -> tuple[Move, ...]:
    """Return recursive halving, neighbours first: log2 steps, half the units less in each.

    Where the count is no power of two, each excess member first folds its whole vector into a
    partner and gets its own units back in the last step.
    """
    core = 1 << (len(members).bit_length() - 1)
    extra = len(members) - core
    folded = [targets[i] | (targets[core + i] if i < extra else frozenset()) for i in range(core)]
    everything = frozenset().union(*targets)
    moves = [
        Move(step=0, source=members[core + i], target=members[i], units=everything, reduces=True)
        for i in range(extra)
    ]
    step = 1 if extra else 0
    distance = 1
    while distance < core:
        for i in range(core):
            partner = i ^ distance
            handed = [j for j in range(core) if j % distance == i % distance
                      and (j ^ partner) & distance == 0]  # fmt: skip
            units = frozenset().union(*(folded[j] for j in handed))
            moves.append(
                Move(
                    step=step,
                    source=members[i],
                    target=members[partner],
                    units=units,
                    reduces=True,
                )
            )
        step, distance = step + 1, distance * 2
    moves += [
        Move(
            step=step,
            source=members[i],
            target=members[core + i],
            units=targets[core + i],
            reduces=False,
        )
        for i in range(extra)
    ]
    return in_order(moves)
