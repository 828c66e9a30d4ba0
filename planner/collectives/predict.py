"""Predict measured rows with a calibration: one call of the cost model for each collective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.collectives.cost import LIBRARY, cheapest
from planner.collectives.library import Calibration, NetworkClass, ScaleUpClass, measured_links
from planner.collectives.links import LinkNumbers, Spread, TierNumbers
from planner.collectives.measured import MeasuredCollective

Vector = NDArray[np.float64]


class MeasuredTable:
    """The rows that can be predicted, as arrays."""

    def __init__(self, rows: Sequence[MeasuredCollective]) -> None:
        self.rows = [row for row in rows if not row.skipped_because]
        self.collective = np.array([row.collective for row in self.rows], str)
        self.scale_up = np.array([row.scale_up for row in self.rows], str)
        self.network = np.array([row.network for row in self.rows], str)
        self.table = np.array([row.table for row in self.rows], str)
        self.gpus = np.array([row.gpus for row in self.rows], float)
        self.supernode = np.array([row.supernode for row in self.rows], float)
        self.payload = np.array([row.payload_bytes for row in self.rows], float)
        self.inside = np.array([row.inside_bytes_per_s for row in self.rows], float)
        self.nic = np.array([row.nic_bytes_per_s or 1.0 for row in self.rows], float)
        self.reduces = np.array([row.switch_reduction for row in self.rows], bool)
        self.measured = np.array([row.time_s for row in self.rows], float)


def predicted_s(rows: Sequence[MeasuredCollective], calibration: Calibration) -> Vector:
    """Return the predicted time of each row, NaN where the row says why it is skipped [s]."""
    table = MeasuredTable(rows)
    out = np.full(len(rows), np.nan)
    can = [index for index, row in enumerate(rows) if not row.skipped_because]
    out[can] = predict(table, calibration)
    return out


def _column(
    classes: NDArray[np.str_], values: Mapping[str, Any], name: str, spare: float
) -> Vector:
    """Return field *name* of each element's class, *spare* where the element has no class."""
    out = np.full(len(classes), spare)
    for key in np.unique(classes):
        if key:
            numbers = values.get(str(key), values["generic"])
            out[classes == key] = getattr(numbers, name)
    return out


def predict(table: MeasuredTable, calibration: Calibration) -> Vector:
    """Return the predicted time of each row of *table* [s]."""
    out = np.zeros(len(table.rows))
    for collective in np.unique(table.collective):
        at = table.collective == collective
        scale_up = ScaleUpClass(
            **{
                name: _column(table.scale_up[at], calibration.scale_up, name, 0.0)
                for name in ScaleUpClass.__dataclass_fields__
            }
        )
        network = NetworkClass(
            latency_s=_column(table.network[at], calibration.network, "latency_s", 0.0),
            efficiency_share=_column(
                table.network[at], calibration.network, "efficiency_share", 1.0
            ),
            ordered=_column(table.network[at], calibration.network, "ordered", 1.0) > 0,
            tree_chunk_factor=_column(
                table.network[at], calibration.network, "tree_chunk_factor", 1.0
            ),
        )
        inside = TierNumbers(
            name="supernode",
            bytes_per_s=table.inside[at],
            shared_bytes_per_s=table.inside[at],
            latency_s=0.0,
            in_network_reduction=table.reduces[at],
        )
        across = TierNumbers(
            name="cluster",
            bytes_per_s=table.nic[at],
            shared_bytes_per_s=table.nic[at],
            latency_s=0.0,
        )
        links = measured_links(
            LinkNumbers(tiers=(inside, across)), calibration.library, scale_up, network
        )
        out[at] = cheapest(
            str(collective),
            table.payload[at],
            Spread.of(table.gpus[at], table.supernode[at]),
            links,
            available=LIBRARY[str(collective)],
        ).time_s
    return out
