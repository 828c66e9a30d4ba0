"""A cluster, and a plan on it, as graphs and as other tools' topology files."""

from __future__ import annotations

import json
from typing import Any

from planner.documents import yaml_text
from planner.errors import InputError
from planner.fabric import Fabric
from topologies.export_seats import SeatedPlan
from topologies.host_lists import fold_hosts

_COLOURS = {"gpu": "palegreen", "scale_up_switch": "gold", "nic": "lightgrey"}


def node_link_text(fabric: Fabric) -> str:
    """Return the cluster as NetworkX node-link JSON, machines and rates included."""
    hosts = {g: host.name for host in fabric.hosts for g in host.gpus}
    host_of = {fabric.gpus[g]: name for g, name in hosts.items()}
    usable = set(fabric.gpus)
    nodes = [
        {
            "id": name,
            **_plain(data),
            **({"host": host_of[name]} if name in host_of else {}),
            **({"usable": False} if data.get("kind") == "gpu" and name not in usable else {}),
        }
        for name, data in fabric.graph.nodes(data=True)
    ]
    links = [
        {"source": a, "target": b, **_plain(data)} for a, b, data in fabric.graph.edges(data=True)
    ]
    graph = {"name": fabric.name, "accelerator": fabric.accelerator.name}
    document = {
        "directed": False, "multigraph": False, "graph": graph, "nodes": nodes, "links": links,
    }  # fmt: skip
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def graphml_text(plan: SeatedPlan) -> str:
    """Return the cluster as GraphML, with each GPU's rank."""
    import networkx as nx  # noqa: PLC0415 - few exports need it

    return "\n".join(nx.generate_graphml(_marked(plan))) + "\n"


def dot_text(plan: SeatedPlan) -> str:
    """Return the cluster as DOT for Graphviz, with each GPU's rank."""
    graph = _marked(plan)
    lines = [f"// {plan.source}", "graph cluster {", "  node [style=filled];"]
    for name, data in graph.nodes(data=True):
        colour = _COLOURS.get(data.get("kind", ""), "lightblue")
        label = f"{name}\\nrank {data['rank']}" if "rank" in data else name
        lines.append(f'  "{name}" [label="{label}", fillcolor={colour}];')
    for a, b, data in graph.edges(data=True):
        rate = data["capacity_bytes_per_s"] / 1e9
        lines.append(f'  "{a}" -- "{b}" [label="{data.get("links", 1)} x, {rate:g} GB/s"];')
    return "\n".join([*lines, "}", ""])


def slurm_topology_text(plan: SeatedPlan) -> str:
    """Return a Slurm topology.yaml of the planned cluster: a tree of its tiers, and its blocks.

    A level whose domains are single machines is left out: Slurm's machines are below it.
    """
    inside = _machines_of(plan)["supernode"]
    topologies: list[dict[str, Any]] = [
        {"topology": "tree", "cluster_default": True, "tree": {"switches": _switches(plan)}}
    ]
    sizes = [len(hosts) for hosts in inside.values()]
    if max(sizes) > 1:
        blocks = [{"block": name, "nodes": fold_hosts(hosts)} for name, hosts in inside.items()]
        body = {"block_sizes": [min(sizes)], "blocks": blocks}
        topologies.append({"topology": "supernodes", "cluster_default": False, "block": body})
    return f"# {plan.source}\n---\n{yaml_text(topologies)}"


def slurm_topology_conf_text(plan: SeatedPlan) -> str:
    """Return a Slurm topology.conf of the planned cluster's tree, for ``topology/tree``."""
    lines = [f"# {plan.source}", "# slurm.conf: TopologyPlugin=topology/tree"]
    for row in _switches(plan):
        below = f"Switches={row['children']}" if "children" in row else f"Nodes={row['nodes']}"
        lines.append(f"SwitchName={row['switch']} {below}")
    return "\n".join([*lines, ""])


def _machines_of(plan: SeatedPlan) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the machines of each domain of each tier."""
    hosts = enumerate(plan.cluster.hosts)
    host_of = {g: plan.host_names[b] for b, host in hosts for g in host.gpus}
    return {
        tier.name: {
            domain.name: tuple(dict.fromkeys(host_of[g] for g in domain.gpus))
            for domain in tier.domains
        }
        for tier in plan.cluster.tiers
    }


def _switches(plan: SeatedPlan) -> list[dict[str, str]]:
    """Return the tree of domains, innermost first, each with its machines or the domains below."""
    rows: list[dict[str, str]] = []
    below: dict[str, str] = {}
    tiers = list(_machines_of(plan).values())
    for members in tiers:
        if members is not tiers[-1] and all(len(hosts) == 1 for hosts in members.values()):
            continue
        for name, hosts in members.items():
            children = tuple(dict.fromkeys(below[h] for h in hosts if h in below))
            row = {"switch": name}
            row |= {"children": fold_hosts(children)} if children else {"nodes": fold_hosts(hosts)}
            rows.append(row)
            below |= dict.fromkeys(hosts, name)
    return rows


def astra_sim_text(plan: SeatedPlan) -> str:
    """Return ASTRA-sim's analytical network file: a dimension for each tier, innermost first.

    Its Switch counts a message's start-up twice, once for each link, so that half is written.

    Raises:
        InputError: a tier whose domains have different sizes, or a cluster of one GPU.
    """
    counts, rates, halves, inner = [], [], [], 1
    for tier in plan.cluster.tiers:
        sizes = set(plan.cluster.capacities(tier.name))
        size = sizes.pop()
        if sizes or size % inner:
            raise InputError(
                f"tier {tier.name} has domains of different sizes: ASTRA-sim has equal ones only"
            )
        if size == inner:
            continue
        counts.append(size // inner)
        rates.append(tier.bytes_per_s / 1e9)
        halves.append(tier.latency_s * 1e9 / 2)
        inner = size
    if not counts:
        raise InputError(f"{plan.cluster.name} has one GPU: ASTRA-sim has no network of none")
    return "\n".join(
        [
            f"# {plan.source}",
            f"topology: [ {', '.join(['Switch'] * len(counts))} ]",
            f"npus_count: [ {', '.join(map(str, counts))} ]",
            f"bandwidth: [ {', '.join(f'{rate:.10g}' for rate in rates)} ]  # GB/s",
            f"latency: [ {', '.join(f'{half:.10g}' for half in halves)} ]  # ns, half a start-up",
            "",
        ]
    )


def _marked(plan: SeatedPlan) -> Any:
    """Return a copy of the graph with plain attributes and ranks."""
    graph, usable = plan.cluster.graph.copy(), set(plan.cluster.gpus)
    for name, data in graph.nodes(data=True):
        data.update(_plain(data))
        if data.get("kind") == "gpu" and name not in usable:
            data["usable"] = False
    for _, _, data in graph.edges(data=True):
        data.update(_plain(data))
    for seat in plan.seats:
        graph.nodes[seat.gpu].update(rank=seat.rank, host=seat.host)
    return graph


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """Return attributes without NumPy's types."""
    return {k: v.item() if hasattr(v, "item") else v for k, v in data.items()}
