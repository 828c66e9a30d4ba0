"""What no step of a space is shorter than, on a given network, without timing the rows.

Compute with what TP, CP and EP show of their traffic; and closer, with what gradients and gathered
parameters show beside it. Pipeline hops and the update are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.search.evaluate import Machine, taken
from planner.search.kinds import kinds_by
from planner.search.seats import rows_of
from planner.search.space import DEGREES
from planner.search.together import grouped, shape_of, stacked_links, stacked_spreads
from planner.search.whole import ROUNDING, Whole, all_layers, longer_columns
from planner.steptime.communication import gradient_s
from planner.steptime.parameters import stage_layers, stage_parameters
from planner.steptime.rates import rates_of
from planner.steptime.stages import Cost, layer_costs
from planner.steptime.wires import wires_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_DECIDE_GRADIENTS = (*DEGREES, "zero_stage", "dp_shard")
"""The columns that the seconds of gradients and of gathered parameters depend on."""
_SHARDED = 3  # the ZeRO stage that sends all for each micro-batch


def least_steps_s(whole: Whole, machines: Sequence[Machine], seq: float, rows: Ints) -> Floats:
    """Return what the steps of *rows* take at least, shape [machines, rows] [s].

    Args:
        whole: the space.
        machines: they differ in their network alone.
        seq: how many times as long the sequences are [1].
        rows: of the space.
    """
    asked = np.zeros(len(whole.columns.tp), dtype=bool)
    asked[whole.kind[rows]] = True
    few = np.flatnonzero(asked)
    place = np.cumsum(asked) - 1
    columns = longer_columns(taken(whole.columns, few), seq)
    spreads = [rows_of(whole.spreads_on(one), few) for one in machines]
    rates = rates_of(machines[0].accelerator, columns, machines[0].efficiency)
    least = np.empty((len(machines), few.size))
    for some in grouped(range(len(machines)), key=lambda at: shape_of(machines[at].links)):
        links = stacked_links([machines[at].links for at in some])
        seats = stacked_spreads([spreads[at] for at in some])
        wires = wires_of(seats, links, rates.inner_share, rates.outer_share)
        costs = layer_costs(whole.model, columns, rates, wires)
        total = np.asarray(all_layers(whole.model, {n: _shown_s(c) for n, c in costs.items()}))
        shape = np.broadcast_shapes(total.shape, (len(some), 1, few.size))
        least[list(some)] = np.broadcast_to(total, shape).min(axis=1)
    return least[:, place[whole.kind[rows]]] * whole.rounds_ratio[rows]


def with_gradients_s(
    whole: Whole, machines: Sequence[Machine], seq: float, rows: Ints, least_s: Floats
) -> Floats:
    """Return *least_s* of some *rows*, raised by the gradients and parameters that show.

    With t the busiest stage's seconds of one micro-batch, the pipeline takes m t at least. Data
    parallelism lengthens it by no less than it does on the first stage: there, what is sent hides
    under the longest backward's last v chunks and one forward pass, each of which t holds, so under
    c t. A step takes (m - c) t and all that is sent, where m is at least c. ZeRO-3 sends all for
    each micro-batch and hides its reductions and gathers together under one backward, t at most.

    Args:
        whole: the space.
        machines: they differ in their network alone.
        seq: how many times as long the sequences are [1].
        rows: of the space.
        least_s: of them, as of ``least_steps_s`` [s].
    """
    table = {name: column[rows] for name, column in whole.space.table.items()}
    kinds = kinds_by(table, _DECIDE_GRADIENTS)
    columns = whole.longer(rows[kinds.first], seq)
    rates = rates_of(whole.machine.accelerator, columns, whole.machine.efficiency)
    held = stage_parameters(whole.model, columns, stage_layers(whole.model, columns), "first")
    v = table["vpp"]
    m = whole.fixed["global_batch"] / (table["dp"] * table["micro_batch"])
    hidden = (1.0 + (v - 1.0) * table["pp"]) / v + 1.0
    found = least_s.copy()
    for at, machine in enumerate(machines):
        wires = wires_of(machine.seats.spreads(columns), machine.links, rates.inner_share,
                         rates.outer_share)  # fmt: skip
        each = gradient_s(columns, held, wires)
        sent = each.reduce_s + each.gather_s + each.expert_reduce_s + each.expert_gather_s
        sent_s = np.atleast_2d(sent * np.ones(kinds.first.size)).min(axis=0)[kinds.of_row]
        busy_s = least_s[at] / whole.rounds_ratio[rows] / table["pp"]
        once_s = np.where(m >= hidden, sent_s + (m - hidden) * busy_s, 0.0)
        shown_s = np.where(table["zero_stage"] == _SHARDED, m * sent_s, once_s)
        found[at] = np.maximum(found[at], shown_s)
    return found


def rows_below(
    whole: Whole, machines: Sequence[Machine], below_s: Sequence[float], seq: float = 1.0
) -> Ints:
    """Return the rows that fit and whose step may be at most *below_s* on any machine.

    Args:
        whole: the space.
        machines: they differ in their network alone.
        below_s: what is of interest, for each machine [s].
        seq: how many times as long the sequences are [1].
    """
    rows = whole.near(seq, max(below_s))
    limit_s = np.asarray(below_s)[:, None] * (1.0 + ROUNDING)
    wanted = (least_steps_s(whole, machines, seq, rows) <= limit_s).any(axis=0)
    return whole.that_can(seq, rows[wanted])


def _shown_s(cost: Cost) -> Any:
    """Return both passes of a layer with what its communication shows [s]."""
    return cost.forward_s + cost.backward_s + sum(f + b for f, b in cost.exposed.values())
