"""What kinds of steps a fit has seen, and what it promises of a kind that it has not.

A fit of one machine promises a narrow interval, because the machine is the very one. Of dense
models alone, or of one node, it has seen nothing of a router or of the network: of such a step the
interval is no narrower than that of a machine that no fit has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from planner.model import ModelSpec
from planner.steptime.rates import SIXTEEN_BITS, Efficiency
from planner.steptime.uncertainty import LAYOUT_SPREAD, MACHINE_SPREAD

REACH_RATIO = 2.0
"""How far beyond its rows' GPUs and tokens a fit holds: one doubling [1].

Apertus at 8k tokens is predicted as well as at 4k, at 32k and 64k it took up to 2.2 times as long
(``docs/steps.md``).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What sort of step one is.

    Args:
        accelerator: what it runs on.
        precision: of its products.
        moe: whether it has routed experts.
        gpus: how many [1].
        crosses: whether they fill more than one scale-up domain.
        seq: tokens of a sequence [1].
    """

    accelerator: str
    precision: str
    moe: bool
    gpus: int
    crosses: bool
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """The kinds of a fit's rows.

    Args:
        accelerators, precisions: each with its rows [1].
        moe, crosses: rows of mixtures of experts, and of more than one scale-up domain [1].
        rows: all of them; 0 where a file does not say what they were [1].
        gpus, seq: the least and the most; empty where nothing is known [1].
        suspect: rows of the table that are more than two times off what the others give [1].
        left_out: of those, how many the fit has left out [1].
    """

    accelerators: Mapping[str, int] = field(default_factory=dict)
    precisions: Mapping[str, int] = field(default_factory=dict)
    moe: int = 0
    crosses: int = 0
    rows: int = 0
    gpus: tuple[int, ...] = ()
    seq: tuple[int, ...] = ()
    suspect: int = 0
    left_out: int = 0


def kind_of(
    model: ModelSpec, accelerator: str, precision: str, *, gpus: int, domain: int, seq: int
) -> Kind:
    """Return the kind of a step of *model*; *domain* is the GPUs of a scale-up domain [1]."""
    return Kind(
        accelerator=accelerator, precision=precision, moe=model.experts > 0, gpus=gpus,
        crosses=gpus > domain, seq=seq,
    )  # fmt: skip


def covered_by(kinds: Iterable[Kind]) -> Covered:
    """Return what rows of *kinds*, one at least, cover."""
    rows = list(kinds)
    return Covered(
        accelerators=_counts(one.accelerator for one in rows),
        precisions=_counts(one.precision for one in rows),
        moe=sum(one.moe for one in rows),
        crosses=sum(one.crosses for one in rows),
        rows=len(rows),
        gpus=(min(one.gpus for one in rows), max(one.gpus for one in rows)),
        seq=(min(one.seq for one in rows), max(one.seq for one in rows)),
    )


def _counts(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))


def beyond(covered: Covered, kind: Kind) -> tuple[str, ...]:
    """Return in what a step of *kind* is unlike all rows that are *covered*; empty where in none.

    >>> dense = Kind(accelerator="H100", precision="bf16", moe=False, gpus=8, crosses=False, seq=4)
    >>> beyond(covered_by([dense]), replace(dense, moe=True, gpus=64, crosses=True, seq=8))
    ('no row is a MoE', 'none leaves its scale-up domain', 'rows have 8 GPUs, this 64')
    """
    if not covered.rows:
        return ("the file does not say what its rows were",)
    found = []
    if kind.accelerator not in covered.accelerators:
        found.append(f"rows are of {', '.join(covered.accelerators)}, none of {kind.accelerator}")
    alike = SIXTEEN_BITS if kind.precision in SIXTEEN_BITS else {kind.precision}
    if not alike & set(covered.precisions):
        found.append(f"no row is in {kind.precision}")
    if kind.moe and not covered.moe:
        found.append("no row is a MoE")
    if not kind.moe and covered.moe == covered.rows:
        found.append("every row is a MoE")
    if kind.crosses and not covered.crosses:
        found.append("none leaves its scale-up domain")
    for name, value, seen in (("GPUs", kind.gpus, covered.gpus), ("tokens", kind.seq, covered.seq)):
        if not min(seen) / REACH_RATIO <= value <= max(seen) * REACH_RATIO:
            ends = " to ".join(f"{one:,}" for one in dict.fromkeys(seen))
            found.append(f"rows have {ends} {name}, this {value:,}")
    return tuple(found)


def widened(fitted: Efficiency, shipped: Efficiency | None) -> Efficiency:
    """Return *fitted* with an interval no narrower than that of a machine that no fit has seen.

    Args:
        fitted: a fit of one's own.
        shipped: what ships for the accelerator, None where nothing was measured.
    """
    return replace(
        fitted,
        spread=max(fitted.spread, shipped.spread if shipped else LAYOUT_SPREAD),
        machine_spread=max(fitted.machine_spread, MACHINE_SPREAD),
    )
