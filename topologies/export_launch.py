"""A plan as the files of launchers: rank map, Slurm, Open MPI, torchrun, Kueue, NCCL."""

from __future__ import annotations

import json
from collections import Counter
from math import ceil

from planner.documents import yaml_text
from planner.errors import InputError
from topologies.export_seats import SeatedPlan
from topologies.host_lists import fold_hosts

_PORT = 29500


def rank_map_text(plan: SeatedPlan) -> str:
    """Return a CSV with one line for each rank: rank, host, slot, gpu, supernode."""
    rows = [f"{s.rank},{s.host},{s.slot},{s.gpu},{s.supernode}" for s in plan.seats]
    return "\n".join(["rank,host,slot,gpu,supernode", *rows, ""])


def rank_map_json_text(plan: SeatedPlan) -> str:
    """Return the rank map as JSON: ``ranks`` lists rank, host, slot, gpu and supernode by rank."""
    rows = [
        {"rank": s.rank, "host": s.host, "slot": s.slot, "gpu": s.gpu, "supernode": s.supernode}
        for s in plan.seats
    ]
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    return f'{{"source": {json.dumps(plan.source)}, "ranks": [\n{lines}\n]}}\n'


def node_order_text(plan: SeatedPlan) -> str:
    """Return the machines in the order of their node ranks, one a line: a host file.

    Raises:
        InputError: a machine's ranks are not one run of consecutive numbers.
    """
    return "\n".join([f"# {plan.source}", *_node_order(plan, _largest(plan)), ""])


def slurm_text(plan: SeatedPlan) -> str:
    """Return a SLURM_HOSTFILE: line r is the machine of rank r; flags stand in its comments.

    Slurm skips lines that begin with ``#``. srun itself gets no ``--nodelist``: it would be taken
    for the tasks' machines instead of this file. Tasks of one machine get local numbers in rank
    order, so that a script that binds by SLURM_LOCALID needs the rank map where a machine's slots
    are in another order.
    """
    hosts, per_host = plan.hosts, _largest(plan)
    flags = f"--distribution=arbitrary --nodes={len(hosts)} --ntasks={len(plan.seats)}"
    flags += f" --ntasks-per-node={per_host}"
    lines = [
        f"# {plan.source}",
        f"# SLURM_HOSTFILE=this-file srun {flags}",
        f"# machines, for salloc or sbatch --nodelist: {fold_hosts(hosts)}",
    ]
    segment = _segment(plan)
    if segment > 1:
        lines.append(
            f"# salloc --nodes={len(hosts)} --segment={segment} --exclusive  "
            f"(topology/block: {segment} machines of one supernode together)"
        )
    if not _slots_in_order(plan):
        lines.append("# GPUs of a machine are not in rank order: bind by the rank map's slot")
    return "\n".join([*lines, *(seat.host for seat in plan.seats), ""])


def mpi_rankfile_text(plan: SeatedPlan) -> str:
    """Return an Open MPI rankfile; ``slot`` is the GPU's number, as one core for each GPU."""
    lines = [f"# {plan.source}", "# mpirun --map-by rankfile:file=this-file (5.x), -rf (4.x)"]
    lines += [f"rank {s.rank}={s.host} slot={s.slot}" for s in plan.seats]
    return "\n".join([*lines, ""])


def torchrun_text(plan: SeatedPlan, *, arguments: str = '"$@"') -> str:
    """Return a shell script that starts torchrun on the machine it runs on.

    torchrun numbers ranks node_rank x nproc_per_node + local_rank, so that the order of machines
    is all that it can be told.

    Raises:
        InputError: a machine's ranks are not one run of consecutive numbers.
    """
    per_host = _largest(plan)
    order = _node_order(plan, per_host)
    visible = _visible_devices(plan, order)
    lines = [
        "#!/bin/bash",
        f"# {plan.source}",
        "# Run this on every machine; a machine's place in the list is its node rank.",
        "nodes=(",
        *(f"  {host}" for host in order),
        ")",
        "node=${NODE_NAME:-$(hostname)}",
        "node_rank=-1",
        'for i in "${!nodes[@]}"; do',
        '  case "${nodes[$i]}" in "$node"|"${node%%.*}") node_rank=$i;; esac',
        "done",
        'if [ "$node_rank" -lt 0 ]; then echo "$node is not in the plan" >&2; exit 2; fi',
    ]
    if visible:
        lines += [
            "visible=(",
            *(f"  {one}" for one in visible),
            ")",
            "export CUDA_VISIBLE_DEVICES=${visible[$node_rank]}",
        ]
    start = f"exec torchrun --nnodes={len(order)} --nproc-per-node={per_host}"
    start += f' --node-rank="$node_rank" --master-addr={order[0]} --master-port={_PORT}'
    return "\n".join([*lines, f"{start} {arguments}", ""])


def kueue_text(plan: SeatedPlan) -> str:
    """Return a Kueue Topology and a JobSet whose pods, one a machine, ask for it.

    Pods with consecutive completion indices that share a supernode form a slice, which must sit
    in one domain of the supernode's level. The scheduler chooses which domains.

    Raises:
        InputError: machines out of order, or supernodes that are no equal slices of them.
    """
    per_host = _largest(plan)
    order = _node_order(plan, per_host)
    segment = _segment(plan)
    _refuse_slices_that_are_none(plan, order, segment, per_host)
    level = "fabric.planner/supernode"
    if segment > 1:
        annotations = {
            "kueue.x-k8s.io/podset-slice-required-topology": level,
            "kueue.x-k8s.io/podset-slice-size": str(segment),
        }
        levels = [{"nodeLabel": level}, {"nodeLabel": "kubernetes.io/hostname"}]
    else:
        annotations = {"kueue.x-k8s.io/podset-required-topology": "kubernetes.io/hostname"}
        annotations = {} if len(order) > 1 else annotations
        annotations = annotations or {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}
        levels = [{"nodeLabel": "kubernetes.io/hostname"}]
    topology = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Topology",
        "metadata": {"name": "planned"},
        "spec": {"levels": levels},
    }
    container = {
        "name": "train",
        "image": "REPLACE-ME",
        "resources": {"limits": {"nvidia.com/gpu": per_host}},
    }
    job = {
        "parallelism": len(order),
        "completions": len(order),
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": {
            "metadata": {"annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        },
    }
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": "planned",
            "labels": {"kueue.x-k8s.io/queue-name": "REPLACE-ME"},
        },
        "spec": {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}]},
    }
    return f"# {plan.source}\n{yaml_text(topology)}---\n{yaml_text(jobset)}"


def _refuse_slices_that_are_none(
    plan: SeatedPlan, order: tuple[str, ...], segment: int, per_host: int
) -> None:
    """Refuse supernodes that are no equal slices of machines in a row."""
    homes = [seat.supernode for seat in plan.seats[::per_host]]
    if not segment:
        sizes = Counter(homes)
        shown = ", ".join(f"{name} {count}" for name, count in list(sizes.items())[:4])
        raise InputError(
            f"the plan uses different numbers of machines of supernodes ({shown}): Kueue's slices "
            "have one size; use rank-map or slurm"
        )
    for pod in range(0, len(homes), segment):
        if len(inside := {*homes[pod : pod + segment]}) > 1:
            raise InputError(
                f"machines {order[pod]} to {order[pod + segment - 1]} follow each other in rank "
                f"order and are in supernodes {', '.join(sorted(inside)[:4])}: Kueue's slices are "
                f"of {segment} pods in a row, each of one supernode; use rank-map or slurm"
            )


def nccl_env_text(plan: SeatedPlan) -> str:
    """Return NCCL's variables for in-flight limits, as comments with their reason.

    A channel keeps in_flight x transaction bytes on the way, so that by Little's law
    channels = line rate x turnaround / (in_flight x transaction) keep the line full.
    """
    nic = plan.cluster.nic
    buffer_bytes = nic.in_flight * nic.transaction_bytes
    one = min(nic.line_bytes_per_s, buffer_bytes / nic.turnaround_s)
    channels = max(1, ceil(nic.line_bytes_per_s * nic.turnaround_s / buffer_bytes))
    told = f"# A NIC of {nic.line_bytes_per_s / 1e9:g} GB/s, {nic.in_flight} slots of "
    told += f"{nic.transaction_bytes:g} bytes, turnaround {nic.turnaround_s * 1e6:g} us:"
    return "\n".join(
        [
            f"# {plan.source}",
            told,
            f"# one channel sustains {one / 1e9:.4g} GB/s, {channels} fill the line.",
            "# These are what the plan reckons with; set them only where the defaults differ.",
            f"# NCCL_BUFFSIZE={int(buffer_bytes)}",
            f"# NCCL_MIN_NCHANNELS={channels}",
            "",
        ]
    )


def _largest(plan: SeatedPlan) -> int:
    return max(len(seats) for seats in plan.ranks_of().values())


def _segment(plan: SeatedPlan) -> int:
    """Return the machines of a supernode in the plan, 0 where supernodes have different numbers."""
    inside: dict[str, set[str]] = {}
    for seat in plan.seats:
        inside.setdefault(seat.supernode, set()).add(seat.host)
    sizes = {len(hosts) for hosts in inside.values()}
    return sizes.pop() if len(sizes) == 1 else 0


def _slots_in_order(plan: SeatedPlan) -> bool:
    return all([s.slot for s in seats] == list(range(len(seats)))
               for seats in plan.ranks_of().values())  # fmt: skip


def _node_order(plan: SeatedPlan, per_host: int) -> tuple[str, ...]:
    """Return the machines by their first rank, where each holds consecutive ranks."""
    order = plan.hosts
    for node, (host, seats) in enumerate(plan.ranks_of().items()):
        ranks = [seat.rank for seat in seats]
        wanted = list(range(node * per_host, node * per_host + per_host))
        if ranks != wanted:
            shown = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
            raise InputError(
                f"machine {host} holds ranks {shown}: this launcher numbers ranks machine by "
                f"machine, {per_host} each (here {wanted[0]} to {wanted[-1]}): use slurm, "
                "mpi-rankfile or rank-map, which place ranks freely"
            )
    return order


def _visible_devices(plan: SeatedPlan, order: tuple[str, ...]) -> list[str]:
    """Return each machine's GPU order, or nothing where all are in order."""
    if _slots_in_order(plan):
        return []
    ranks = plan.ranks_of()
    return [",".join(str(seat.slot) for seat in ranks[host]) for host in order]
