"""What the search over tiers may still do: counted, so that a loaded machine finds the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.place.answer import Proof
from planner.place.clock import end_s
from planner.place.solve import Work, solve_within

if TYPE_CHECKING:
    from planner.place.answer import Answer
    from planner.place.question import Question

_QUESTIONS = 24  # each takes up to a second or two of one core
_MULTIPLICATIONS = 3 * 10**9  # of all exchanges together: some two seconds of one core


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """What is known of the least.

    Args:
        bound_bytes: no less than that crosses [bytes].
        proof: whose word that is: our own arithmetic's, ``BOUND``, or a ``SOLVER``'s.
    """

    bound_bytes: float = 0.0
    proof: Proof = Proof.BOUND


def least_of(answer: Answer) -> Least:
    """Return what *answer* says of the least; a bound that is not ours alone is a solver's."""
    return Least(
        bound_bytes=answer.lower_bound_bytes,
        proof=Proof.BOUND if answer.proof is Proof.BOUND else Proof.SOLVER,
    )


@dataclass(slots=True, kw_only=True)
class Labour:
    """The search's own account. The clock only stops what exceeds it by far.

    Args:
        questions: that may still be asked [1].
        multiplications: that exchanges may still take [1].
        ends_s: begin nothing new when ``time.monotonic()`` is past this [s].
        answers: to what was asked before.
        narrowed: those of them that a solver was asked about, too.
    """

    questions: int = _QUESTIONS
    multiplications: int = _MULTIPLICATIONS
    ends_s: float = inf
    answers: dict[Question, Answer] = field(default_factory=dict)
    narrowed: set[Question] = field(default_factory=set)

    @property
    def over(self) -> bool:
        """Whether nothing new may begin."""
        return monotonic() > min(self.ends_s, end_s())

    def quick(self, question: Question) -> Answer | None:
        """Return what is found and proved of *question* without a solver.

        None if no more questions may be asked.
        """
        if question not in self.answers:
            if self.over or self.questions <= 0:
                return None
            self.questions -= 1
            self.answers[question] = solve_within(question, time_limit_s=0.0)
        return self.answers[question]

    def answer(self, question: Question) -> Answer | None:
        """Return the same with few nodes of a solver."""
        answer = self.quick(question)
        if answer is None or answer.proof is not Proof.INCUMBENT or question in self.narrowed:
            return answer
        if not self.over:
            self.narrowed.add(question)
            self.answers[question] = _narrowed(question, answer, self.ends_s)
        return self.answers[question]


def _narrowed(question: Question, answer: Answer, ends_s: float) -> Answer:
    """Return *answer* after a choice among few parts of sheets and few patterns of stages."""
    from planner.place.by_stages import by_few_patterns, by_sweep  # noqa: PLC0415 - a solver
    from planner.place.finish import by_few_parts  # noqa: PLC0415 - as above

    work = Work(question=question, seed=0)
    work.offer(np.array(answer.home), answer.method)
    work.raise_bound(answer.lower_bound_bytes)
    if not (by_sweep(work, ends_s) or by_few_parts(work, ends_s)):
        by_few_patterns(work, ends_s)
    return work.answer()
