"""Fit a library's few physical numbers on measured collectives, and say how far they are off.

The unknowns are logarithms: the library's protocols (shared by all machines), launch, hop latency,
efficiency and switch reduction of each scale-up class, latency and efficiency of each network
class. The residual of a row is log(predicted/measured); each table weighs the same however many
rows it has, and a soft-L1 loss keeps outliers from steering. A weak prior draws each class to the
mean of its kind, so a class without rows gets that mean instead of nonsense.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from planner.collectives.library import Calibration, LibraryNumbers, NetworkClass, ScaleUpClass
from planner.collectives.links import Protocol
from planner.collectives.measured import MeasuredCollective
from planner.collectives.predict import MeasuredTable, Vector, predict
from planner.errors import InputError

_LIBRARY_START: Mapping[str, float] = {
    "ll_rate": 0.035, "ll_exchange_rate": 0.03,
    "ll128_base_s": 0.6e-6, "ll128_inside": 1.1, "ll128_across_extra_s": 3.5e-6,
    "ll128_rate": 0.43, "simple_base_s": 9e-6, "simple_across_extra_s": 9e-6,
    "simple_exchange_rate": 0.83, "simple_exchange_base_s": 3e-6,
    "own_step": 0.6, "issue_s": 0.3e-6,
    "ll128_fill_bytes": 30e3, "simple_fill_bytes": 300e3,
}  # fmt: skip
_SCALE_UP_START: Mapping[str, float] = {
    "launch_s": 7e-6, "latency_s": 1e-6, "efficiency": 0.8,
    "reduction": 0.55, "reduction_chunk_bytes": 2**21, "whole_chunk_factor": 4.3,
}  # fmt: skip
_NETWORK_START: Mapping[str, float] = {"latency_s": 15e-6, "efficiency": 0.85}
_NETWORK_LATENCY_S: Mapping[str, float] = {"infiniband": 5e-6, "efa_100": 28e-6, "efa_400": 28e-6}
"""Where a network's latency starts and is drawn to. NCCL's tuner has 5 µs a tree hop on
InfiniBand and adds the latency that a network's plugin names; of EFA that is 20 µs and 3 µs to
learn of completion in the tuner that comes with aws-ofi-nccl."""
_LL128_WIRE_SHARE = 120 / 128
"""Of each 128-byte line 120 bytes are data: what LL128 leaves of a NIC's rate. Inside a supernode
it is the GPU's threads that limit it, to the lesser share that is fitted."""
_TREE_CHUNK_FACTORS: Mapping[str, float] = {"efa_400": 4.0}
"""aws-ofi-nccl sets NCCL_NVLSTREE_MAX_CHUNKSIZE to 512 KiB where GPUs have such switches; NCCL's
own chunk is 128 KiB. Assumed: that the version measured raises NCCL_NVLS_CHUNKSIZE, which this
only caps, as well; later release notes say that the plugin may set both."""
_UNORDERED = ("efa_100",)
"""Networks that may deliver stores out of order, where the plugin permits only Simple: aws-ofi-nccl
sets NCCL_PROTO=simple on p4d and p4de, not on p5 (its pull request 280)."""
_SHARED_BY = {"infiniband_hdr": "infiniband", "infiniband_ndr": "infiniband"}
_SHARES = ("rate", "efficiency", "reduction", "own_step")
_PRIOR_WEIGHT = 0.1
_OUTLIER_SHARE = 0.1
_DIFFERENCE_STEPS = (1e-2, 1e-3, 1e-4, 1e-6)
"""Of the logarithms, relative: a logarithm is about 10, so the first is a hundredth of a number."""
_RAILS: Mapping[str, float] = {"blackwell": 8.0}
"""NICs of a supernode that one collective is seen to use, where it has more: 72 GPUs and NICs
reach the rate of 8 in both tables of several GB200 racks. Fitted freely it would trade against the
network's efficiency, which only these tables and one of 96 H100 know."""


class _Unknowns:
    """Names, starts and bounds of the fitted logarithms."""

    def __init__(self, scale_up: Sequence[str], networks: Sequence[str]) -> None:
        self.scale_up = tuple(scale_up)
        self.networks = tuple(networks)
        start = {("library", "", name): value for name, value in _LIBRARY_START.items()}
        for owner in self.scale_up:
            start |= {("scale_up", owner, name): v for name, v in _SCALE_UP_START.items()}
        for owner in self.networks:
            shared = _SHARED_BY.get(owner, owner)
            latency_s = _NETWORK_LATENCY_S.get(shared, _NETWORK_START["latency_s"])
            start["network", shared, "latency_s"] = latency_s
            start["network", owner, "efficiency"] = _NETWORK_START["efficiency"]
        self.keys = tuple(start)
        self.start = np.log(np.array(list(start.values())))
        self.upper = np.array([0.0 if key[2].endswith(_SHARES) else np.inf for key in self.keys])

        def pooled(kind: tuple[str, str]) -> bool:
            return kind != ("network", "latency_s")

        kinds = [(kind, name) for kind, _, name in self.keys]
        self.kin = [
            np.array([i for i, other in enumerate(kinds) if other == kind and pooled(kind)], int)
            for kind in kinds
        ]

    def prior(self, x: Vector) -> Vector:
        """Return the distance of a class from the mean of its kind, of others from their start."""
        pairs = zip(self.kin, self.start, strict=True)
        means = np.array([x[kin].mean() if kin.size > 1 else start for kin, start in pairs], float)
        away: Vector = _PRIOR_WEIGHT * (x - means)
        return away

    def calibration(self, x: Vector) -> Calibration:
        """Return the numbers that the logarithms *x* stand for."""
        value = dict(zip(self.keys, np.exp(x).tolist(), strict=True))
        lib = {name: value["library", "", name] for name in _LIBRARY_START}
        scale_up = {owner: _scale_up(value, owner) for owner in self.scale_up}
        networks = {
            owner: NetworkClass(
                latency_s=value["network", _SHARED_BY.get(owner, owner), "latency_s"],
                efficiency_share=value["network", owner, "efficiency"],
                ordered=owner not in _UNORDERED,
                tree_chunk_factor=_TREE_CHUNK_FACTORS.get(owner, 1.0),
            )
            for owner in self.networks
        }
        return Calibration(
            library=_library(lib),
            scale_up=scale_up | {"generic": _generic_scale_up(scale_up)},
            network=networks | {"generic": _generic_network(networks)},
            errors={},
        )


def _scale_up(value: Mapping[tuple[str, str, str], float], owner: str) -> ScaleUpClass:
    number = {name: value["scale_up", owner, name] for name in _SCALE_UP_START}
    reduces = owner != "ampere"
    return ScaleUpClass(
        launch_s=number["launch_s"],
        latency_s=number["latency_s"],
        efficiency_share=number["efficiency"],
        reduction_share=number["reduction"] if reduces else 0.0,
        reduction_chunk_bytes=number["reduction_chunk_bytes"] if reduces else 0.0,
        whole_chunk_factor=number["whole_chunk_factor"],
        max_rails=_RAILS.get(owner, float("inf")),
    )


def _library(number: Mapping[str, float]) -> LibraryNumbers:
    return LibraryNumbers(
        protocols=(
            Protocol(
                name="ll",
                rate_share=number["ll_rate"],
                exchange_share=number["ll_exchange_rate"],
                across_rate_share=number["ll_rate"],
                whole_chunks=False,
            ),
            Protocol(
                name="ll128",
                base_s=number["ll128_base_s"],
                inside_latency_factor=number["ll128_inside"],
                across_extra_s=number["ll128_across_extra_s"],
                rate_share=number["ll128_rate"],
                across_rate_share=_LL128_WIRE_SHARE,
                exchange_share=0.0,
                whole_chunks=False,
                fill_bytes=number["ll128_fill_bytes"],
            ),
            Protocol(
                name="simple",
                base_s=number["simple_base_s"],
                across_extra_s=number["simple_across_extra_s"],
                exchange_share=number["simple_exchange_rate"],
                exchange_base_s=number["simple_exchange_base_s"],
                fill_bytes=number["simple_fill_bytes"],
            ),
        ),
        own_step_share=number["own_step"],
        issue_s=number["issue_s"],
    )


def _middle(values: Sequence[Any]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(np.array(values, float)))))


def _generic_scale_up(classes: Mapping[str, ScaleUpClass]) -> ScaleUpClass:
    """Return the mean class, without switch reduction: for machines nobody has measured."""
    return ScaleUpClass(
        launch_s=_middle([c.launch_s for c in classes.values()]),
        latency_s=_middle([c.latency_s for c in classes.values()]),
        efficiency_share=_middle([c.efficiency_share for c in classes.values()]),
        reduction_share=_middle(
            [c.reduction_share for c in classes.values() if np.any(c.reduction_share)] or [0.5]
        ),
        reduction_chunk_bytes=_middle(
            [c.reduction_chunk_bytes for c in classes.values() if np.any(c.reduction_share)]
            or [_SCALE_UP_START["reduction_chunk_bytes"]]
        ),
        whole_chunk_factor=_middle([c.whole_chunk_factor for c in classes.values()]),
    )


def _generic_network(classes: Mapping[str, NetworkClass]) -> NetworkClass:
    return NetworkClass(
        latency_s=_middle([c.latency_s for c in classes.values()]),
        efficiency_share=_middle([c.efficiency_share for c in classes.values()]),
    )


def fit(rows: Sequence[MeasuredCollective]) -> Calibration:
    """Return the numbers that make the predicted times of *rows* least wrong.

    Rows without a time or a class are passed over; leave out tables that are known to be flawed.
    Limits: trust a class only where it has rows; ``left_out_predictions`` says how far.
    """
    return fit_classes(rows)


def fit_classes(
    rows: Sequence[MeasuredCollective],
    names: tuple[str, ...] | None = None,
    networks: tuple[str, ...] | None = None,
) -> Calibration:
    """Return the fit of *rows* for the classes *names* and *networks*, or those of the rows.

    The search always begins at the printed starts, never at an earlier answer: what no row tells
    stays at its prior. Wide difference steps come first, because the cheapest protocol changes
    from size to size and every change is a kink.
    """
    used = [row for row in rows if not row.skipped_because and row.time_s > 0]
    if not used:
        raise InputError("no row to fit: every row is skipped or has no measured time")
    table = MeasuredTable(used)
    unknowns = _Unknowns(
        names or sorted({row.scale_up for row in used}),
        networks or sorted({row.network for row in used if row.network}) or ("generic",),
    )
    counts = dict(zip(*np.unique(table.table, return_counts=True), strict=True))
    weight = 1 / np.sqrt(np.array([counts[name] for name in table.table], float))
    weight /= weight.mean()

    def residuals(x: Vector) -> Vector:
        off = np.log(predict(table, unknowns.calibration(x)) / table.measured)
        return np.concatenate([off * weight, unknowns.prior(x)])

    x = np.minimum(unknowns.start, unknowns.upper - 1e-6)
    for step in _DIFFERENCE_STEPS:
        x = least_squares(
            residuals,
            x,
            bounds=(-np.inf, unknowns.upper),
            loss="soft_l1",
            f_scale=_OUTLIER_SHARE,
            diff_step=step,
            max_nfev=60,
        ).x
    return unknowns.calibration(x)
