"""Pipeline stages: a question cut along its pipeline, and what patterns of a domain pay.

Only the hops of a pipeline run from stage to stage; all other families lie inside one. So what a
domain pays is told by its *pattern*, the cells that it holds of each stage, up to what a stage's
own bound leaves open. ``stage_prices.py`` bounds the cut by prices on the stages' parts,
``stage_choice.py`` chooses a pattern for every domain, ``stage_seats.py`` seats the choice. Proof:
``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bounds, rebate_bytes
from planner.place.question import Kind, Question

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHARP_MOST = 96  # cells of a domain up to which a stage's bound is worked out in full
_STAGES_MOST = 64
_HELD_MOST = 512  # cells of a domain of one stage
_CLOSED_MOST = (
    2_000_000  # first x last cells x seats x stages, past which closing links cost nothing
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A question cut along its pipeline.

    Args:
        question: the whole.
        axis: the axis that the pipeline runs along.
        sheet: one stage: the families inside it, one domain that holds it all.
        hop_bytes: what a pipeline pays for two neighbours in different domains [bytes].
        closing_bytes: the same for its last and first stage; 0 where that is left out [bytes].
        pays_bytes: what a domain pays at least inside a stage of which it holds 0, 1, … cells.
        inside_given_bytes: what all domains together pay less than that inside a stage [bytes].
    """

    question: Question
    axis: int
    sheet: Question
    hop_bytes: float
    closing_bytes: float
    pays_bytes: NDArray[np.float64]
    inside_given_bytes: float

    @property
    def stages(self) -> int:
        """Stages of the pipeline [1]."""
        return self.question.sizes[self.axis]

    @property
    def pieces(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return sizes m of pieces, and how many of them, ceil(V / m), every stage has at least.

        Of all m that give the same number the largest, which asks the most.
        """
        sizes = np.arange(2, len(self.pays_bytes))
        needs = -(-self.sheet.cells // sizes)
        last = np.append(needs[1:] != needs[:-1], True)[: len(sizes)]
        return sizes[last], needs[last]

    @property
    def largest(self) -> int:
        """Return the most cells that a domain can hold [1]."""
        return min(max(self.question.capacities), self.question.cells)

    @property
    def spare(self) -> bool:
        """Whether domains need not be full."""
        return sum(self.question.capacities) > self.question.cells

    @property
    def domains(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the sizes of domains, ascending, and how many there are of each."""
        return np.unique(np.array(self.question.capacities), return_counts=True)

    @property
    def given_bytes(self) -> float:
        """Return what patterns are charged too much by [bytes]."""
        return self.stages * self.inside_given_bytes + self.hop_bytes * self.sheet.cells


def staged(question: Question) -> Staged | None:
    """Return *question* cut along its pipeline; None where it has none, or too many cells."""
    chains = [c for c in question.charges if c.kind is Kind.CHAIN and len(c.axes) == 1]
    for chain in chains:
        axis = chain.axes[0]
        others = [c for c in question.charges if axis in c.axes and c.axes != (axis,)]
        kinds = {c.kind for c in question.charges if c.axes == (axis,)}
        cells = question.cells // question.sizes[axis]
        largest = min(max(question.capacities), cells)
        if others or kinds - {Kind.CHAIN, Kind.ENDS} or len(question.capacities) < 2:
            continue
        if question.sizes[axis] > _STAGES_MOST or largest > _HELD_MOST:
            continue
        sheet = Question(
            sizes=tuple(1 if i == axis else n for i, n in enumerate(question.sizes)),
            charges=tuple(c for c in question.charges if axis not in c.axes),
            capacities=(cells,),
        )
        closing = sum(
            c.weight_bytes for c in question.charges if c.axes == (axis,) and c.kind is Kind.ENDS
        )
        seats = min(max(question.capacities), question.cells) + 1
        tables = (largest + 1) ** 2 * seats * question.sizes[axis]
        sharp = largest <= _SHARP_MOST
        return Staged(
            question=question,
            axis=axis,
            sheet=sheet,
            hop_bytes=chain.weight_bytes,
            closing_bytes=closing if tables <= _CLOSED_MOST else 0.0,
            pays_bytes=np.array(domain_bounds(sheet, range(largest + 1), sharp=sharp)),
            inside_given_bytes=rebate_bytes(sheet),
        )
    return None


def pattern_bytes(of: Staged, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what a domain of each pattern pays at least, shape [patterns] [bytes]."""
    joined = np.minimum(rows[:, :-1], rows[:, 1:]).sum(axis=1)
    runs = of.hop_bytes * (rows.sum(axis=1) - joined)
    closed = of.closing_bytes * np.maximum(rows[:, -1] - rows[:, 0], 0)
    paid: NDArray[np.float64] = of.pays_bytes[rows].sum(axis=1) + runs + closed
    return paid


def patterns_of(of: Staged, home: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cells of every stage that each domain holds, shape [domains, stages]."""
    stage = np.arange(of.question.cells).reshape(tuple(reversed(of.question.sizes)))
    stage = np.indices(stage.shape)[len(of.question.sizes) - 1 - of.axis].ravel()
    held = np.zeros((len(of.question.capacities), of.stages), dtype=np.int64)
    np.add.at(held, (home, stage), 1)
    return held


def piece_rows(
    of: Staged, rows: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return pieces of every stage and size in each pattern, and how many there are at least.

    Returns:
        Arrays [stages x sizes, patterns] and [stages x sizes].
    """
    sizes, needs = of.pieces
    pieces = -(-rows.T[:, None, :] // sizes[None, :, None])
    return pieces.reshape(-1, len(rows)).astype(float), np.tile(needs, of.stages)
