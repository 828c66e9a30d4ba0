"""Measured collectives: what one row of a published table says, in SI, and what it ran on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.errors import InputError

COLLECTIVES: Mapping[str, str] = {
    "all_reduce": "all_reduce",
    "allreduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "all_to_all": "all_to_all",
}
"""Names that tables use, to ours."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A GPU as the measurements know it.

    Args:
        word: what its name contains.
        scale_up: class of ``library.ScaleUpClass``.
        bytes_per_s: nominal scale-up rate per GPU, one direction [bytes/s].
        reduces: its scale-up switch can reduce.
    """

    word: str
    scale_up: str
    bytes_per_s: float
    reduces: bool


_MACHINES: Sequence[Machine] = (
    # nominal rates from the vendors' data sheets: NVLink 3, 4, 5 and the export versions
    Machine("A100", "ampere", 300e9, False),
    Machine("A800", "ampere", 200e9, False),
    Machine("H800", "hopper", 200e9, True),
    Machine("H100", "hopper", 450e9, True),
    Machine("H200", "hopper", 450e9, True),
    Machine("H20", "hopper", 450e9, True),
    Machine("GB200", "blackwell", 900e9, True),
    Machine("GB300", "blackwell", 900e9, True),
    Machine("B200", "blackwell", 900e9, True),
    Machine("B300", "blackwell", 900e9, True),
)
_NO_SWITCH = ("PCIe", "V100", "L40S", "L4", "A10G", "T4", "RTX")


def machine_named(name: str) -> Machine | None:
    """Return the machine that *name* speaks of, None where no switch joins its GPUs or it is new.

    >>> machine_named("GB200-NVL72").scale_up, machine_named("MI300X"), machine_named("A100 PCIe")
    ('blackwell', None, None)
    """
    if any(word in name for word in _NO_SWITCH):
        return None
    return next((machine for machine in _MACHINES if machine.word in name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCollective:
    """One measured collective.

    Args:
        identity: the row's name.
        table: the table it belongs to.
        collective: as in ``cost.cheapest``.
        gpus: ranks in the group [1].
        supernode: GPUs in one scale-up domain [1].
        payload_bytes: V, or v per ordered pair of an all_to_all [bytes].
        time_s: measured; 0 where it is only to be predicted [s].
        scale_up: class of the machine, "" where no class fits.
        network: class of the network, "" inside one supernode.
        inside_bytes_per_s: nominal scale-up rate per GPU [bytes/s].
        nic_bytes_per_s: nominal NIC rate per GPU, 0 where the table has none [bytes/s].
        switch_reduction: the scale-up switch can reduce.
        skipped_because: why the row cannot be predicted, "" where it can.
    """

    identity: str
    table: str
    collective: str
    gpus: int
    supernode: int
    payload_bytes: float
    time_s: float
    scale_up: str
    network: str
    inside_bytes_per_s: float
    nic_bytes_per_s: float
    switch_reduction: bool
    skipped_because: str = ""


def network_class(machine: str, nic_bytes_per_s: float) -> str:
    """Return the class of network that a machine's name and NIC rate speak of.

    >>> network_class("A100 x8, InfiniBand HDR", 25e9), network_class("H100 p5, EFA", 50e9)
    ('infiniband_hdr', 'efa_400')
    """
    fast = nic_bytes_per_s > 25e9
    if "EFA" in machine:
        return "efa_400" if fast else "efa_100"
    return "infiniband_ndr" if fast else "infiniband_hdr"


def measured_collective(row: Mapping[str, str]) -> MeasuredCollective:
    """Return one row of a table with the columns of a collectives table, in SI.

    Sizes are those of nccl-tests: the full vector for all-reduce, all-gather and reduce-scatter,
    one rank's whole send buffer for all-to-all. A row that no class covers says why.

    >>> row = dict(id="r1", table="t", hw="H100-SXM", n_gpus="8", scaleup_domain="8",
    ...            collective="alltoall", size_bytes="8192", time_us="7.5", nic_GBps_per_gpu="")
    >>> one = measured_collective(row)
    >>> one.payload_bytes, one.scale_up, one.skipped_because
    (1024.0, 'hopper', '')
    """
    machine = row["hw"]
    gpus, supernode = int(row["n_gpus"]), int(float(row["scaleup_domain"] or 0))
    nic = float(row["nic_GBps_per_gpu"] or 0) * 1e9
    collective = COLLECTIVES.get(row["collective"], "")
    if not collective:
        known = sorted(COLLECTIVES)
        raise InputError(f"{row['id']}: collective {row['collective']!r}: expected one of {known}")
    known_machine = machine_named(machine)
    why = ""
    if known_machine is None:
        why = "a machine not measured, or no switch joins its GPUs and rates depend on the pair"
        known_machine = Machine("", "", 0.0, False)
    elif gpus > supernode and nic == 0:
        why = "the group leaves its supernode and the NIC's rate is missing"
    elif supernode < 1:
        why = "the size of the scale-up domain is missing"
    size = float(row["size_bytes"])
    return MeasuredCollective(
        identity=row["id"],
        table=row["table"],
        collective=collective,
        gpus=gpus,
        supernode=max(supernode, 1),
        payload_bytes=size / gpus if collective == "all_to_all" else size,
        time_s=float(row.get("time_us") or 0) * 1e-6,
        scale_up=known_machine.scale_up,
        network=network_class(machine, nic) if gpus > supernode else "",
        inside_bytes_per_s=known_machine.bytes_per_s,
        nic_bytes_per_s=nic,
        switch_reduction=known_machine.reduces,
        skipped_because=why,
    )
