"""All layouts of a space: by kind, which run and fit at a length, and what they compute at least.

Rows of a *kind* are alike in what the layers' seconds depend on. A micro-batch's compute alone
bounds a step from below, whatever the network; ``least_steps.py`` has closer bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.collectives.links import Spread
from planner.search.evaluate import CHUNK_ROWS, Machine
from planner.search.kinds import kinds_by
from planner.search.rounds import least_rounds
from planner.steptime.columns import RECOMPUTE, LayoutColumns
from planner.steptime.compute import layer_time
from planner.steptime.memory import step_memory
from planner.steptime.operators import dense_layer, embedding, logits, moe_layer
from planner.steptime.rates import rates_of
from planner.steptime.step import STRAGGLING_SHARE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.model import ModelSpec
    from planner.search.seats import RankOrderSeats
    from planner.search.space import Space
    from planner.steptime.spread import Spreads

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

ROUNDING = 1e-9
"""Relative: sums of a step in another order."""
_DECIDE_LAYERS = (
    "tp", "cp", "ep", "etp", "micro_batch", "zero_stage", "sequence_parallel", "recompute",
    "cp_kind", "ep_copies",
)  # fmt: skip
"""The columns of a space that the seconds of a layer depend on."""
_DECIDE_COMPUTE = _DECIDE_LAYERS[: _DECIDE_LAYERS.index("recompute")]
"""Those that its compute depends on but for recomputation; the rest decide what it sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """All layouts of a space, and what bounds their steps from below.

    Args:
        model, space, fixed: whose layouts.
        machine: any that the layouts are asked about; they differ in their network alone.
        kind: of each row of the space, what its layers' seconds depend on [1].
        columns: one row of each kind.
        computed: of each kind, what its compute depends on but for recomputation [1].
        computing: one row of each of these.
        rounds_ratio: how often a step takes one micro-batch's seconds on all stages, by row [1].
        least_rounds_ratio: the least of them, by kind [1].
        fits_to_ratio, fails_from_ratio: sequence lengths, as factors, up to which a row is known to
            fit and from which it is known not to, or is of no interest [1]; filled when asked.
        alone_s: length, as a factor, to what a micro-batch of each kind computes [s]; likewise.
        seated: seats to how the groups of each kind sit on them; likewise.
    """

    model: ModelSpec
    space: Space
    fixed: Mapping[str, Any]
    machine: Machine
    kind: Ints
    columns: LayoutColumns
    computed: Ints
    computing: LayoutColumns
    rounds_ratio: Floats
    least_rounds_ratio: Floats
    fits_to_ratio: Floats = field(compare=False)
    fails_from_ratio: Floats = field(compare=False)
    alone_s: dict[float, Floats] = field(default_factory=dict, compare=False)
    seated: dict[RankOrderSeats, Spreads] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls, model: ModelSpec, space: Space, fixed: Mapping[str, Any], machine: Machine
    ) -> Whole:
        """Return the space with its rows' kinds; how often they pass all stages: ``rounds.py``."""
        kinds = kinds_by(space.table, _DECIDE_LAYERS)
        of_kinds = {name: column[kinds.first] for name, column in space.table.items()}
        computed = kinds_by(of_kinds, _DECIDE_COMPUTE)
        pp, table = space.table["pp"], space.table
        gpus = np.prod([table[name][0] for name in ("tp", "cp", "dp", "pp")])
        micro_batches = fixed["global_batch"] // (table["dp"] * table["micro_batch"])
        straggling = STRAGGLING_SHARE * np.log2(gpus) * micro_batches / pp
        rounds = straggling + least_rounds(pp, table["vpp"], micro_batches, table["schedule"])
        least = np.full(kinds.first.size, np.inf)
        np.minimum.at(least, kinds.of_row, rounds)
        return cls(
            model=model, space=space, fixed=fixed, machine=machine, kind=kinds.of_row,
            columns=space.columns(fixed, kinds.first), computed=computed.of_row,
            computing=space.columns(fixed, kinds.first[computed.first]),
            rounds_ratio=rounds, least_rounds_ratio=least,
            fits_to_ratio=np.zeros(space.size), fails_from_ratio=np.full(space.size, np.inf),
        )  # fmt: skip

    def of_another(self, model: ModelSpec, rows: NDArray[np.bool_]) -> Whole:
        """Return the same space for a *model* with other experts, of which only *rows* can run."""
        return replace(
            self, model=model, fits_to_ratio=np.zeros(self.space.size),
            fails_from_ratio=np.where(rows, np.inf, 0.0), alone_s={},
        )  # fmt: skip

    def compute_s(self, seq: float, rows: Ints) -> Floats:
        """Return the compute of *rows* without any communication [s].

        Args:
            seq: how many times as long the sequences are [1].
            rows: of the space.
        """
        found: Floats = self._alone(seq)[self.kind[rows]] * self.rounds_ratio[rows]
        return found

    def near(self, seq: float, limit_s: float) -> Ints:
        """Return the rows whose compute alone is at most *limit_s*, but those known not to fit."""
        kinds = self._alone(seq) * self.least_rounds_ratio <= limit_s * (1.0 + ROUNDING)
        rows = np.flatnonzero(kinds[self.kind] & (self.fails_from_ratio > seq))
        return rows[self.compute_s(seq, rows) <= limit_s * (1.0 + ROUNDING)]

    def _alone(self, seq: float) -> Floats:
        if seq not in self.alone_s:
            self.alone_s[seq] = self._compute_of_kinds_s(seq)
        return self.alone_s[seq]

    def _compute_of_kinds_s(self, seq: float) -> Floats:
        """Operators that some stacks repeat under selective recomputation are left out."""
        model, columns = self.model, longer_columns(self.computing, seq)
        rates = rates_of(self.machine.accelerator, columns, self.machine.efficiency)
        works = {"embedding": embedding(model, columns), "logits": logits(model, columns)}
        if model.dense_layer_count or not model.experts:
            works["dense"] = dense_layer(model, columns, rates.operand_bytes)
        if model.experts:
            works["moe"] = moe_layer(model, columns, rates.operand_bytes)
        once, again = {}, {}
        for name, work in works.items():
            time = layer_time(work, rates)
            once[name] = time.forward.total_s + time.backward.total_s + time.weights.total_s
            again[name] = time.forward.total_s if name in {"dense", "moe"} else 0.0
        repeats = self.columns.recompute == RECOMPUTE.index("full")
        each = np.ones(len(columns.tp))
        total_s: Floats = (all_layers(model, once) * each)[self.computed]
        again_s: Floats = (all_layers(model, again) * each)[self.computed]
        return np.asarray(total_s + repeats * again_s)

    def spreads_on(self, machine: Machine) -> Spreads:
        """Return how the groups of TP, CP, EP and ETP sit, alike in all rows of a kind."""
        seats = machine.seats
        if seats not in self.seated:
            found = seats.spreads(self.columns)
            alone = Spread.of_one(len(found.tp.members))
            self.seated[seats] = replace(found, dp=alone, edp=alone, pp=alone, dp_shard=None,
                                         edp_shard=None, dp_replicate=None)  # fmt: skip
        return self.seated[seats]

    def that_can(self, seq: float, rows: Ints) -> Ints:
        """Return those of *rows* that run and fit when sequences are *seq* times as long.

        More tokens never need less memory: what one length tells holds for shorter or longer ones.
        """
        rows = rows[self.runs(seq, rows) & (self.fails_from_ratio[rows] > seq)]
        unknown = rows[self.fits_to_ratio[rows] < seq]
        capacity = self.machine.accelerator.memory_bytes
        for start in range(0, unknown.size, CHUNK_ROWS):
            few = unknown[start : start + CHUNK_ROWS]
            columns = self.longer(few, seq)
            fits = np.broadcast_to(step_memory(self.model, columns, capacity).fits, few.shape)
            self.fits_to_ratio[few[fits]] = np.maximum(self.fits_to_ratio[few[fits]], seq)
            self.fails_from_ratio[few[~fits]] = np.minimum(self.fails_from_ratio[few[~fits]], seq)
        return rows[self.fits_to_ratio[rows] >= seq]

    def longer(self, rows: Ints, seq: float) -> LayoutColumns:
        """Return *rows* with sequences *seq* times as long."""
        return longer_columns(self.space.columns(self.fixed, rows), seq)

    def runs(self, seq: float, rows: Ints) -> NDArray[np.bool_]:
        """Return whether the ranks of *rows* get whole and equal parts of a sequence."""
        tokens = round(self.fixed["seq"] * seq)
        if abs(tokens - self.fixed["seq"] * seq) > ROUNDING * tokens:
            return np.zeros(len(rows), dtype=bool)
        table = self.space.table
        cp, tp = table["cp"][rows], table["tp"][rows]
        split = np.where(table["sequence_parallel"][rows] == 1, tp * cp, cp)
        whole: NDArray[np.bool_] = tokens % split == 0
        return whole


def longer_columns(columns: LayoutColumns, seq: float) -> LayoutColumns:
    """Return *columns* with sequences *seq* times as long."""
    return columns if seq == 1.0 else replace(columns, seq=columns.seq * seq)


def all_layers(model: ModelSpec, each: Mapping[str, Any]) -> Any:
    """Return the least sum over a model's layers, embedding and logits.

    A leading dense layer is counted as the cheaper kind: beyond the first stage it may stand in a
    stage whose fullest neighbour is taken to have none, or be counted as one of the others.
    """
    head = each["embedding"] + (1 + model.mtp_layers) * each["logits"]
    body = "moe" if model.experts else "dense"
    head = head + model.mtp_layers * each[body]
    if not model.experts or not model.dense_layer_count:
        return head + (model.dense_layer_count + model.moe_layer_count) * each[body]
    leading = np.minimum(each["dense"], each["moe"])
    return head + model.dense_layer_count * leading + model.moe_layer_count * each["moe"]
