"""How a plan's step answers to the network: seats and layout kept, rates and limits varied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.collectives.links import LinkNumbers, in_flight_bytes_per_s, links_of
from planner.steptime.columns import columns_of
from planner.steptime.step import step_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cli.planner_inputs import Inputs
    from planner.fabric import Fabric
    from planner.steptime.spread import Spreads
    from planner.steptime.step import Step

FACTORS = tuple(2.0 ** (quarter / 4) for quarter in range(-20, 21))
"""Of what a property is: 1/32 to 32, as ``planner compare`` looks, four to an octave [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Varied:
    """Factors of the network outside the supernode, arrays [factors] or 1 [1].

    Args:
        nic_rate: of the NICs' line rate, and of all that their bytes pass outside the supernode.
        nic_latency: of every start-up outside the supernode.
        in_flight: of the transactions a NIC may have outstanding.
        crowding: of the oversubscription outside the supernode.
    """

    nic_rate: NDArray[np.float64] | float = 1.0
    nic_latency: NDArray[np.float64] | float = 1.0
    in_flight: NDArray[np.float64] | float = 1.0
    crowding: NDArray[np.float64] | float = 1.0


def answers_document(inputs: Inputs, spreads: Spreads, step: Step) -> Mapping[str, Any]:
    """Return the step of a seated layout at factors of each property of the network.

    Args:
        inputs: what the plan was made from.
        spreads: how its groups sit on the tiers.
        step: what was predicted of it; what sharing links costs stays as it is there.

    Returns:
        ``factors`` [1], and by property ``step_s``, one step for each factor [s].
    """
    factors = np.array(FACTORS)
    varied = {
        "nic_rate": Varied(nic_rate=factors),
        "nic_latency": Varied(nic_latency=factors),
        "in_flight": Varied(in_flight=factors),
        "oversubscription": Varied(crowding=factors),
    }
    columns = columns_of(inputs.layout)

    def steps_s(change: Varied) -> list[float]:
        total = step_columns(
            inputs.model, columns, accelerator=inputs.fabric.accelerator,
            links=changed_links(inputs.fabric, change), spreads=spreads,
            efficiency=inputs.efficiency, slowdown=step.slowdown,
        ).total_s  # fmt: skip
        return [float(one) for one in np.broadcast_to(total, factors.shape)]

    return {"factors": FACTORS, "step_s": {name: steps_s(one) for name, one in varied.items()}}


def changed_links(fabric: Fabric, change: Varied) -> LinkNumbers:
    """Return the links of *fabric* under *change*, as ``planner compare`` varies them.

    A NIC sends min(line, in flight x transaction / turnaround) [bytes/s]; a tier that nothing
    crowds takes all that its GPUs send, however much that becomes.
    """
    links, nic = links_of(fabric), fabric.nic
    limit = in_flight_bytes_per_s(
        np.multiply(nic.line_bytes_per_s, change.nic_rate),
        np.multiply(nic.in_flight, change.in_flight),
        nic.transaction_bytes,
        nic.turnaround_s,
    )
    outer = []
    raw_tiers = fabric.tiers[len(fabric.tiers) - len(links.outer) :]
    for raw, tier in zip(raw_tiers, links.outer, strict=True):
        alone = np.minimum(np.multiply(raw.bytes_per_s, change.nic_rate), limit)
        crowded = np.multiply(tier.shared_bytes_per_s, change.nic_rate)
        free = bool(np.all(np.greater_equal(tier.shared_bytes_per_s, tier.bytes_per_s)))
        shared = np.divide(alone if free else np.minimum(crowded, alone), change.crowding)
        outer.append(
            replace(
                tier, bytes_per_s=alone, shared_bytes_per_s=np.minimum(shared, alone),
                latency_s=np.multiply(tier.latency_s, change.nic_latency),
                pair_bytes_per_s=np.multiply(tier.pair_bytes_per_s, change.nic_rate),
            )
        )  # fmt: skip
    return replace(links, tiers=(links.inside, *outer))
