"""What no step of a space is shorter than, on a given network, without timing the rows.

Two bounds, the second closer and dearer than the first. A micro-batch's compute alone, whatever
the network. And compute with what TP, CP and EP show of their traffic on it: pipeline hops and
gradients are left out. Both hold for a *kind* of row at once: rows alike in what the layers'
seconds depend on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.collectives.links import Spread
from planner.search.evaluate import CHUNK_ROWS, Machine, taken
from planner.search.kinds import kinds_by
from planner.search.seats import rows_of
from planner.search.space import DEGREES
from planner.search.together import grouped, shape_of, stacked_links, stacked_spreads
from planner.steptime.columns import RECOMPUTE, SCHEDULES, LayoutColumns
from planner.steptime.communication import gradient_s
from planner.steptime.compute import layer_time
from planner.steptime.memory import step_memory
from planner.steptime.operators import dense_layer, embedding, logits, moe_layer
from planner.steptime.parameters import stage_layers, stage_parameters
from planner.steptime.rates import rates_of
from planner.steptime.stages import Cost, layer_costs
from planner.steptime.step import STRAGGLING_SHARE
from planner.steptime.wires import wires_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.model import ModelSpec
    from planner.search.seats import RankOrderSeats
    from planner.search.space import Space
    from planner.steptime.spread import Spreads

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_ROUNDING = 1e-9  # relative; sums of a step in another order
_DECIDE_LAYERS = (
    "tp", "cp", "ep", "etp", "micro_batch", "zero_stage", "sequence_parallel", "recompute",
    "cp_kind", "ep_copies",
)  # fmt: skip
"""The columns of a space that the seconds of a layer depend on."""
_DECIDE_COMPUTE = _DECIDE_LAYERS[: _DECIDE_LAYERS.index("recompute")]
"""Those that its compute depends on but for recomputation; the rest decide what it sends."""
_DECIDE_GRADIENTS = (*DEGREES, "zero_stage")
"""Those that the seconds of gradients and of gathered parameters depend on."""
_SHARDED = 3  # the ZeRO stage that sends all for each micro-batch
_WITH_BUBBLES = ("1f1b", "gpipe")
_FILL_SHARE = 0.5  # of what even stages wait for each other, the part that uneven ones do, too


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
        """Return the space with its rows' kinds.

        With S the seconds of one micro-batch on all p stages, the busiest stage has at least S / p.
        So m micro-batches take m S / p. Before stage s begins and after it ends, one chunk of v
        passes all stages before it: over all s on average half of (1 - 1 / p) S / v at least,
        however uneven the stages; a schedule without bubbles is counted without any.
        """
        kinds = kinds_by(space.table, _DECIDE_LAYERS)
        of_kinds = {name: column[kinds.first] for name, column in space.table.items()}
        computed = kinds_by(of_kinds, _DECIDE_COMPUTE)
        pp, vpp = space.table["pp"], space.table["vpp"]
        fills = np.isin(space.table["schedule"], [SCHEDULES.index(one) for one in _WITH_BUBBLES])
        gpus = np.prod([space.table[name][0] for name in ("tp", "cp", "dp", "pp")])
        micro_batches = fixed["global_batch"] / (space.table["dp"] * space.table["micro_batch"])
        slower = 1.0 + STRAGGLING_SHARE * np.log2(gpus)
        rounds = slower * micro_batches / pp + fills * _FILL_SHARE * (1.0 - 1.0 / pp) / vpp
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
        kinds = self._alone(seq) * self.least_rounds_ratio <= limit_s * (1.0 + _ROUNDING)
        rows = np.flatnonzero(kinds[self.kind] & (self.fails_from_ratio > seq))
        return rows[self.compute_s(seq, rows) <= limit_s * (1.0 + _ROUNDING)]

    def _alone(self, seq: float) -> Floats:
        if seq not in self.alone_s:
            self.alone_s[seq] = self._compute_of_kinds_s(seq)
        return self.alone_s[seq]

    def _compute_of_kinds_s(self, seq: float) -> Floats:
        """Operators that some stacks repeat under selective recomputation are left out."""
        model, columns = self.model, _longer(self.computing, seq)
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
        total_s: Floats = (_all_layers(model, once) * each)[self.computed]
        again_s: Floats = (_all_layers(model, again) * each)[self.computed]
        return np.asarray(total_s + repeats * again_s)

    def least_s(self, machines: Sequence[Machine], seq: float, rows: Ints) -> Floats:
        """Return what the steps of *rows* take at least, shape [machines, rows] [s].

        Args:
            machines: they differ in their network alone.
            seq: how many times as long the sequences are [1].
            rows: of the space.
        """
        asked = np.zeros(len(self.columns.tp), dtype=bool)
        asked[self.kind[rows]] = True
        few = np.flatnonzero(asked)
        place = np.cumsum(asked) - 1
        columns = _longer(taken(self.columns, few), seq)
        spreads = [rows_of(self._spreads(one), few) for one in machines]
        rates = rates_of(machines[0].accelerator, columns, machines[0].efficiency)
        least = np.empty((len(machines), few.size))
        for some in grouped(range(len(machines)), key=lambda at: shape_of(machines[at].links)):
            links = stacked_links([machines[at].links for at in some])
            seats = stacked_spreads([spreads[at] for at in some])
            wires = wires_of(seats, links, rates.inner_share, rates.outer_share)
            costs = layer_costs(self.model, columns, rates, wires)
            total = np.asarray(_all_layers(self.model, {n: _shown_s(c) for n, c in costs.items()}))
            shape = np.broadcast_shapes(total.shape, (len(some), 1, few.size))
            least[list(some)] = np.broadcast_to(total, shape).min(axis=1)
        return least[:, place[self.kind[rows]]] * self.rounds_ratio[rows]

    def with_gradients_s(
        self, machines: Sequence[Machine], seq: float, rows: Ints, least_s: Floats
    ) -> Floats:
        """Return *least_s* of some *rows*, raised by the gradients and parameters that show.

        With t the busiest stage's seconds of one micro-batch, m t pass in the pipeline, and what
        is sent hides under c t at most: the last backward passes of v chunks and one forward pass.
        So a step takes (m - c) t and all that is sent, where m is at least c; ZeRO-3 sends all for
        each micro-batch, under no more than itself.
        """
        table = {name: column[rows] for name, column in self.space.table.items()}
        kinds = kinds_by(table, _DECIDE_GRADIENTS)
        columns = self.longer(rows[kinds.first], seq)
        rates = rates_of(self.machine.accelerator, columns, self.machine.efficiency)
        held = stage_parameters(self.model, columns, stage_layers(self.model, columns), "first")
        v = table["vpp"]
        m = self.fixed["global_batch"] / (table["dp"] * table["micro_batch"])
        hidden = (1.0 + (v - 1.0) * table["pp"]) / v + 1.0
        found = least_s.copy()
        for at, machine in enumerate(machines):
            wires = wires_of(machine.seats.spreads(columns), machine.links, rates.inner_share,
                             rates.outer_share)  # fmt: skip
            each = gradient_s(columns, held, wires)
            sent = each.reduce_s + each.gather_s + each.expert_reduce_s + each.expert_gather_s
            sent_s = np.atleast_2d(sent * np.ones(kinds.first.size)).min(axis=0)[kinds.of_row]
            busy_s = least_s[at] / self.rounds_ratio[rows] / table["pp"]
            once_s = np.where(m >= hidden, sent_s + (m - hidden) * busy_s, 0.0)
            shown_s = np.where(table["zero_stage"] == _SHARDED, m * sent_s, once_s)
            found[at] = np.maximum(found[at], shown_s)
        return found

    def _spreads(self, machine: Machine) -> Spreads:
        """Return how the groups of TP, CP, EP and ETP sit, alike in all rows of a kind."""
        seats = machine.seats
        if seats not in self.seated:
            found = seats.spreads(self.columns)
            tiers = len(found.tp.members)
            alone = Spread(group_size=1.0, members=(1.0,) * tiers, domains=(1.0,) * tiers,
                           least_members=1.0)  # fmt: skip
            self.seated[seats] = replace(found, dp=alone, edp=alone, pp=alone)
        return self.seated[seats]

    def that_can(self, seq: float, rows: Ints) -> Ints:
        """Return those of *rows* that run and fit when sequences are *seq* times as long.

        More tokens never need less memory: what one length tells holds for shorter or longer ones.
        """
        rows = rows[self._divides(seq, rows) & (self.fails_from_ratio[rows] > seq)]
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
        return _longer(self.space.columns(self.fixed, rows), seq)

    def _divides(self, seq: float, rows: Ints) -> NDArray[np.bool_]:
        """Return whose ranks get whole and equal parts of a sequence."""
        tokens = round(self.fixed["seq"] * seq)
        if abs(tokens - self.fixed["seq"] * seq) > _ROUNDING * tokens:
            return np.zeros(len(rows), dtype=bool)
        table = self.space.table
        cp, tp = table["cp"][rows], table["tp"][rows]
        split = np.where(table["sequence_parallel"][rows] == 1, tp * cp, cp)
        whole: NDArray[np.bool_] = tokens % split == 0
        return whole

    def below(self, machines: Sequence[Machine], below_s: Sequence[float]) -> Ints:
        """Return the rows that fit and whose step may be at most *below_s* on any machine.

        Args:
            machines: they differ in their network alone.
            below_s: what is of interest, for each machine [s].
        """
        rows = self.near(1.0, max(below_s))
        limit_s = np.asarray(below_s)[:, None] * (1.0 + _ROUNDING)
        wanted = (self.least_s(machines, 1.0, rows) <= limit_s).any(axis=0)
        return self.that_can(1.0, rows[wanted])


def _longer(columns: LayoutColumns, seq: float) -> LayoutColumns:
    return columns if seq == 1.0 else replace(columns, seq=columns.seq * seq)


def _shown_s(cost: Cost) -> Any:
    """Return both passes of a layer with what its communication shows [s]."""
    return cost.forward_s + cost.backward_s + sum(f + b for f, b in cost.exposed.values())


def _all_layers(model: ModelSpec, each: Mapping[str, Any]) -> Any:
    """Return the least sum over a model's layers, embedding and logits.

    Two stages whose first cannot hold all leading dense layers count others in their place: the
    cheaper of both kinds is then taken for every layer.
    """
    layers = model.dense_layer_count + model.moe_layer_count
    head = each["embedding"] + (1 + model.mtp_layers) * each["logits"]
    body = "moe" if model.experts else "dense"
    head = head + model.mtp_layers * each[body]
    if not model.experts or not model.dense_layer_count:
        return head + layers * each[body]
    if 2 * model.dense_layer_count > layers:
        return head + layers * np.minimum(each["dense"], each["moe"])
    return head + model.dense_layer_count * each["dense"] + model.moe_layer_count * each["moe"]
