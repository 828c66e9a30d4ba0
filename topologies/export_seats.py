"""A plan as launchers see it: which rank runs on which machine, and on which GPU of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from planner.errors import InputError
from planner.fabric import Fabric
from planner.layout import Layout
from topologies.host_slots import slots_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where one rank runs.

    Args:
        rank: global rank [1].
        host: name of the machine.
        slot: number of the GPU in the machine, from 0 [1].
        gpu: name of the GPU in the cluster's graph.
        supernode: name of its scale-up domain.
    """

    rank: int
    host: str
    slot: int
    gpu: str
    supernode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatedPlan:
    """A plan to export.

    Args:
        layout: parallel degrees and rank order.
        fabric: the cluster; none where only the plan is at hand.
        seats: by rank.
        host_names: of every machine of the cluster, in the order of ``fabric.hosts``.
        source: where it comes from, for the first line of what is written.
    """

    layout: Layout
    fabric: Fabric | None
    seats: tuple[Seat, ...]
    host_names: tuple[str, ...]
    source: str

    @property
    def cluster(self) -> Fabric:
        """Return the cluster.

        Raises:
            InputError: only the plan is at hand.
        """
        if self.fabric is None:
            raise InputError(
                "this kind needs the cluster, whose file is not where the plan has it: name it "
                "with --cluster"
            )
        return self.fabric

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the machines that run a rank, in the order of their least rank."""
        return tuple(dict.fromkeys(seat.host for seat in self.seats))

    def ranks_of(self) -> dict[str, list[Seat]]:
        """Return the seats of each machine, ranks ascending."""
        ranks: dict[str, list[Seat]] = {}
        for seat in self.seats:
            ranks.setdefault(seat.host, []).append(seat)
        return ranks


def seated_plan(
    layout: Layout,
    fabric: Fabric,
    rank_to_gpu: Sequence[int],
    *,
    host_names: Sequence[str] = (),
    source: str = "",
) -> SeatedPlan:
    """Return the plan with every rank's machine and GPU number.

    Args:
        layout: the plan's.
        fabric: the plan's cluster; its machines are ``fabric.hosts``.
        rank_to_gpu: index of each rank's GPU.
        host_names: the machines' real names, in the order of ``fabric.hosts``; empty for the
            names of the cluster file.
        source: for the first line of what is written.

    Raises:
        InputError: the cluster knows no machines, or the names do not match their number.
    """
    hosts = fabric.hosts
    if not hosts:
        raise InputError(f"{fabric.name} says nothing of machines: an export needs them")
    names = tuple(host_names) or tuple(host.name for host in hosts)
    if len(names) != len(hosts):
        raise InputError(
            f"{len(names)} names for the {len(hosts)} machines of {fabric.name}: expected as many"
        )
    if len(set(names)) != len(names):
        counts = Counter(names)
        twice = next(name for name in names if counts[name] > 1)
        raise InputError(f"machine {twice!r} is named twice")
    name_of = {g: name for name, host in zip(names, hosts, strict=True) for g in host.gpus}
    slots = slots_of(fabric)
    supernode = {g: d.name for d in fabric.tier("supernode").domains for g in d.gpus}
    seats = tuple(
        Seat(
            rank=rank, host=name_of[g], slot=slots[g], gpu=fabric.gpus[g],
            supernode=supernode[g],
        )
        for rank, g in enumerate(rank_to_gpu)
    )  # fmt: skip
    return SeatedPlan(layout=layout, fabric=fabric, seats=seats, host_names=names, source=source)
