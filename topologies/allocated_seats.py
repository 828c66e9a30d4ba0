"""An allocation to seats on a cluster, and the part of the cluster that was allocated."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.errors import InputError
from planner.fabric import Domain, Fabric, Tier
from topologies.host_slots import slots_of
from topologies.import_allocation import Allocation


def allocated_gpus(
    allocation: Allocation, fabric: Fabric, ranks: int, host_names: Sequence[str] = ()
) -> tuple[int, ...]:
    """Return the GPU of each rank.

    Where the file gives no slot, a machine's ranks take its GPUs in order; where it gives each
    machine once, ranks fill the machines one after another, as launchers do by default.

    Raises:
        InputError: an unknown machine, two ranks on one GPU, too few or too many ranks.
    """
    names = tuple(host_names) or tuple(host.name for host in fabric.hosts)
    if len(names) != len(fabric.hosts):
        raise InputError(
            f"{len(names)} names for the {len(fabric.hosts)} machines of {fabric.name}: "
            "expected as many"
        )
    gpus_of = {name: host.gpus for name, host in zip(names, fabric.hosts, strict=True)}
    allocation = called_as_in(allocation, names)
    unknown = [h for h in dict.fromkeys(allocation.hosts) if h not in gpus_of]
    if unknown:
        shown = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        raise InputError(
            f"{len(unknown)} machines of the allocation are not in {fabric.name} ({shown}): it has "
            f"{names[0]} to {names[-1]}; give their names with --hosts, or the real cluster "
            "with --topology"
        )
    if not allocation.by_rank:
        seats = [g for host in dict.fromkeys(allocation.hosts) for g in gpus_of[host]]
        if len(seats) < ranks:
            raise InputError(
                f"the allocation has {len(seats)} GPUs on {len(set(allocation.hosts))} machines, "
                f"the plan {ranks} ranks: {ranks - len(seats)} too few"
            )
        return tuple(seats[:ranks])
    if len(allocation.hosts) != ranks:
        raise InputError(
            f"the allocation seats {len(allocation.hosts)} ranks, the plan has {ranks}: "
            "expected as many"
        )
    slots = slots_of(fabric)
    seat_of = {name: {slots[g]: g for g in gpus} for name, gpus in gpus_of.items()}
    return _seated(allocation, seat_of)


def called_as_in(allocation: Allocation, names: Sequence[str]) -> Allocation:
    """Return *allocation* with its machines called by *names*, a cluster's, where they are they."""
    return replace(allocation, hosts=_as_the_cluster_calls_them(allocation.hosts, names))


def _as_the_cluster_calls_them(given: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return *given* by the cluster's *names*, where only the domain behind the first dot differs.

    >>> _as_the_cluster_calls_them(["n1.site", "n2.site"], ["n1", "n2.old", "n3.a", "n3.b"])
    ('n1', 'n2.old')
    """
    shorts = Counter(name.partition(".")[0] for name in names)
    known = {short: name for name in names if shorts[short := name.partition(".")[0]] == 1}
    known |= {name: name for name in names}
    called = {one: known.get(one, known.get(one.partition(".")[0], one)) for one in given}
    if len({*called.values()}) < len(called):  # two that are given would be one machine
        return tuple(given)
    return tuple(called[one] for one in given)


def _seated(allocation: Allocation, seat_of: Mapping[str, Mapping[int, int]]) -> tuple[int, ...]:
    """Return the GPU of each rank.

    Args:
        allocation: by rank.
        seat_of: for each machine, the GPU with each number that it may use.
    """
    used: dict[str, set[int]] = defaultdict(set)
    seats, faults = [], []
    for rank, (host, slot) in enumerate(zip(allocation.hosts, allocation.slots, strict=True)):
        usable = seat_of[host]
        if len(used[host]) >= len(usable):
            faults.append(
                f"rank {rank}: {host} has {len(usable)} GPUs, and {len(usable)} ranks before it"
            )
            continue
        one = slot if slot >= 0 else next(s for s in usable if s not in used[host])
        if one not in usable:
            faults.append(
                f"rank {rank}: {host} has no usable GPU {one}: it has {', '.join(map(str, usable))}"
            )
        elif one in used[host]:
            faults.append(f"rank {rank}: GPU {one} of {host} is taken by another rank")
        else:
            seats.append(usable[one])
            used[host].add(one)
    if faults:
        raise InputError(*faults[:20])
    return tuple(seats)


def part_of(fabric: Fabric, gpus: Sequence[int]) -> Fabric:
    """Return *fabric* with only *gpus* usable, numbered in the cluster's order."""
    kept, slots = sorted(gpus), slots_of(fabric)
    number = {g: i for i, g in enumerate(kept)}
    tiers: list[Tier] = []
    for tier in fabric.tiers:
        domains = _part(tier.domains, number)
        if tiers and len(domains) == len(tiers[-1].domains):
            continue
        tiers.append(replace(tier, domains=domains))
    outermost = tiers[-1]
    if len(outermost.domains) == 1:
        alone = replace(outermost.domains[0], uplink_bytes_per_s=0.0)
        tiers[-1] = replace(outermost, domains=(alone,))
    return replace(
        fabric,
        gpus=tuple(fabric.gpus[g] for g in kept),
        tiers=tuple(tiers),
        job_gpus=len(kept),
        hosts=_part(fabric.hosts, number),
        host_slots=tuple(slots[g] for g in kept),
    )


def _part(domains: Sequence[Domain], number: dict[int, int]) -> tuple[Domain, ...]:
    return tuple(
        replace(domain, gpus=inside)
        for domain in domains
        if (inside := tuple(number[g] for g in domain.gpus if g in number))
    )
