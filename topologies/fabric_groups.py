"""Slurm's host list functions on a cluster: ``switch{s1}``, ``block{b1}``, ``switchwith{n1}``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from planner.fabric import Fabric
from planner.nodes import meant
from topologies.host_lists import HostListError, expand_hosts

_RANK = {"gpu": 0, "nic": 1, "leaf": 2, "spine": 3, "core": 4}


def machines_by_function(
    fabric: Fabric, names: Sequence[str] = ()
) -> Callable[[str, str], tuple[str, ...]]:
    """Return the function from a host list function and its argument to names of machines.

    ``switch`` and ``block`` take the name of a switch of the cluster's file or of a domain of a
    tier and give every machine below; the ``with`` forms take a machine, and give all machines
    that hang on the same first switches.

    Args:
        fabric: the cluster.
        names: of its machines, in their order, where they differ from the cluster's own.
    """
    known = tuple(names) or tuple(host.name for host in fabric.hosts)
    machine_of = {
        fabric.gpus[g]: name
        for name, host in zip(known, fabric.hosts, strict=True)
        for g in host.gpus
    }
    domains = {domain.name: domain.gpus for tier in fabric.tiers for domain in tier.domains}

    def below(top: str) -> tuple[str, ...]:
        graph = fabric.graph
        if top in graph and graph.nodes[top]["kind"] in _RANK:
            seen, ring = {top}, [top]
            while ring:
                lower = (w for v in ring for w in graph[v] if _rank(graph, w) < _rank(graph, v))
                ring = [w for w in dict.fromkeys(lower) if w not in seen]
                seen.update(ring)
            inside = {machine_of[v] for v in seen if v in machine_of}
        elif top in domains:
            inside = {machine_of[fabric.gpus[g]] for g in domains[top]}
        else:
            switches = [v for v, d in graph.nodes(data=True) if _RANK.get(d["kind"], 0) > 1]
            near = meant(top, [*domains, *switches][:2000]) if len(domains) < 200 else ""
            raise HostListError(f"{fabric.name} has no switch or domain {top[:60]!r}{near}")
        return tuple(name for name in known if name in inside)

    def beside(machine: str) -> tuple[str, ...]:
        graph = fabric.graph
        gpus = [gpu for gpu, name in machine_of.items() if name == machine]
        if not gpus:
            raise HostListError(f"{fabric.name} has no machine {machine[:60]!r}")
        nics = [v for gpu in gpus for v in graph[gpu] if graph.nodes[v]["kind"] == "nic"]
        tops = dict.fromkeys(
            v for nic in nics for v in graph[nic] if _RANK.get(graph.nodes[v]["kind"], 0) > 1
        )
        inside = {name for top in tops for name in below(top)} | {machine}
        return tuple(name for name in known if name in inside)

    def found(function: str, argument: str) -> tuple[str, ...]:
        one = beside if function.endswith("with") else below
        hosts = [host for name in expand_hosts(argument) for host in one(name)]
        return tuple(dict.fromkeys(hosts))

    return found


def _rank(graph: Any, vertex: str) -> int:
    """Return how far from a GPU a vertex's kind is; what is of no such kind is far."""
    return _RANK.get(graph.nodes[vertex]["kind"], len(_RANK))
