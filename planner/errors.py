"""The one tree of errors.

Every error that can reach a user is a ``PlannerError``; the command turns its class into an exit
code (2 input refused, 3 proved impossible, 4 solver or worker trouble) and prints its message.
A message says what is wrong, the value seen, and what would be right.
"""

from __future__ import annotations

from collections.abc import Sequence


class PlannerError(Exception):
    """Whatever the planner refuses to do, with the reason.

    Args:
        faults: one message, or all of them: a reader names every fault, not only the first.
    """

    exit_code = 4

    def __init__(self, *faults: str) -> None:
        self.faults: tuple[str, ...] = faults
        super().__init__("\n".join(faults))

    @classmethod
    def of(cls, faults: Sequence[str]) -> PlannerError:
        """Return one error that carries all *faults*."""
        return cls(*faults)


class InputError(PlannerError):
    """What was given cannot be used: exit code 2."""

    exit_code = 2


class SpecError(InputError):
    """A cluster, model or price file says something that cannot be."""


class LayoutError(InputError):
    """Parallel degrees that do not fit each other, the model, or the cluster."""


class InfeasibleError(PlannerError):
    """Proved impossible: the message names the constraint and by how much it fails (exit 3)."""

    exit_code = 3


class SolverError(PlannerError):
    """A solver or a worker failed without an answer (exit 4)."""

    exit_code = 4
