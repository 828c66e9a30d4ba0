"""The texts of ``planner net walks · sharing · blast``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cli.net_text import Row, net_text, table_text, with_table
from planner.network import walks
from planner.network.blast import SOURCE as BLAST_SOURCE
from planner.network.blast import Blast
from planner.network.incast import IncastGate
from planner.network.sharing import Sharing
from planner.units import (
    format_binary_bytes,
    format_bytes,
    format_rate,
    format_share,
    format_time,
)

if TYPE_CHECKING:
    from cli.net_seats import SeatedJob
    from planner.network.worst_parts import PartOfKind

_MOST_FAMILIES = 20
_MOST_LINKS = 8
_SHORT = {
    "interleaved_ring": "interleaved ring",
    "contiguous_ring": "contiguous ring",
    "hierarchical": "hierarchical",
}


def walks_text(inputs: Mapping[str, Any], seen: walks.WalkTable) -> str:
    """Return the text of ``planner net walks``."""
    limit = "no in-flight limit"
    if inputs["in_flight"]:
        limit = (
            f"{inputs['in_flight']} transactions of "
            f"{format_binary_bytes(inputs['payload_bytes'])} in flight per NIC"
        )
    case = (
        f"{inputs['ranks']} ranks on {inputs['nodes']} nodes reduce "
        f"{format_binary_bytes(inputs['size_bytes'])}; "
        f"{format_rate(inputs['scale_up_bytes_per_s'])} inside, NIC "
        f"{format_rate(inputs['nic_bytes_per_s'])}, {limit}; compute "
        f"{format_time(inputs['compute_s'])}, update {format_time(inputs['update_s'])}"
    )
    table = table_text(
        ("walk", "inside", "across", "communication", "step", "comm.", "step", "S"),
        [
            (
                _SHORT[row.walk],
                format_time(row.inside_s),
                format_time(row.across_s),
                format_time(row.communication_s),
                format_time(row.step_s, digits=4),
                f"{-100 * row.saved_communication_share + 0.0:+.0f} %",
                f"{-100 * row.saved_step_share + 0.0:+.0f} %",
                f"{row.speedup:.2f}",
            )
            for row in seen.walks
        ],
    )
    rows = [
        Row("a NIC keeps up", format_rate(seen.nic_bytes_per_s)),
        Row("in flight for line rate", str(seen.required_in_flight)),
    ]
    best = min(seen.walks, key=lambda walk: walk.communication_s)
    says = [
        (
            f"Communication changes by {-100 * best.saved_communication_share:.0f} %, the step by "
            f"{-100 * best.saved_step_share:.0f} %: a better walk saves no more than "
            "communication's share of the step."
        ),
        (
            "What a larger supernode changes is which communication falls on the cut: recompute "
            "all walks at every expansion."
        ),
    ]
    text = net_text("Three walks of one reduction", case, rows, says, seen.premises, walks.SOURCE)
    return with_table(text, table)


def _hashed_rows(seen: Sharing, hashed: bool) -> list[Row]:
    """Return what a hash is expected to do to the busiest of equal links, if there are such."""
    odds = seen.collisions
    if odds is None:
        return []
    return [
        Row(
            "hashed, expected" if hashed else "if hashed",
            f"{odds.fullest_ratio:.3g} x",
            f"the even load on the fullest of {odds.paths} equal links of {odds.where}, over "
            f"which {odds.flows} flows are hashed",
        )
    ]


def sharing_text(inputs: Mapping[str, Any], seen: Sharing, gates: Sequence[IncastGate]) -> str:
    """Return the text of ``planner net sharing``."""
    families = table_text(
        ("family", "alone", "shared", "slower", "fullest link on its way"),
        [
            (
                row.name,
                format_rate(row.alone_bytes_per_s),
                format_rate(row.shared_bytes_per_s),
                f"{row.contention:.3g} x",
                row.bottleneck,
            )
            for row in seen.families[:_MOST_FAMILIES]
        ],
    )
    links = table_text(
        ("busiest links", "load", "capacity", "busy"),
        [
            (
                row.link,
                format_bytes(row.load_bytes),
                format_rate(row.capacity_bytes_per_s),
                format_time(row.busy_s),
            )
            for row in seen.links[:_MOST_LINKS]
        ],
    )
    rows = [
        Row("bottleneck", seen.bottleneck),
        Row("no shorter than", format_time(seen.bound_s), "that link's busy time"),
        Row("no longer than", format_time(seen.shared_s), "at the fair rates of the start"),
        *_hashed_rows(seen, inputs["hashed"]),
        *(
            Row(
                f"incast, {gate.tier}",
                "pass" if gate.passes else "FAIL",
                f"{gate.degree} senders at once: {gate.why}"
                + (
                    ""
                    if gate.margin_share is None
                    else f", margin {format_share(gate.margin_share)}"
                ),
            )
            for gate in gates
        ),
    ]
    says = [
        (
            "All families of the phase run at once, one execution each: the worst moment, not the "
            "step. `planner place` and `planner step` weigh it by how long each is active. "
            "Oversubscription is no factor here: it is what an uplink's fair share comes to."
        ),
    ]
    text = net_text(
        "Link sharing", job_case(inputs), rows, says, seen.premises, "max-min fair sharing"
    )
    return with_table(text, families + "\n\n" + links)


def blast_text(
    inputs: Mapping[str, Any], job: SeatedJob, kinds: Sequence[PartOfKind], seen: Sequence[Blast]
) -> str:
    """Return the text of ``planner net blast``; *kinds* is empty where parts were named."""
    of = [str(kind.parts) for kind in kinds] or ["-"] * len(seen)
    table = table_text(
        ("fails", "of", "loses", "slowed", "uplinks", "stall", "end"),
        [
            (
                " + ".join(row.failed),
                parts,
                _losses(row),
                f"{len(row.slowed_ranks)}"
                + (f" to {row.least_links_share:.0%}" if row.slowed_ranks else ""),
                format_share(row.least_uplinks_share),
                str(len(row.stalled_ranks)),
                str(row.in_the_end_ranks),
            )
            for row, parts in zip(seen, of, strict=True)
        ],
    )
    rows = [
        Row(
            row.failed[0],
            f"{sum(f.groups for f in row.families)} groups",
            ", ".join(f"{f.name} {f.groups} of {f.all_groups}" for f in row.families[:4]),
        )
        for row in seen
        if row.families
    ]
    says = [
        (
            f"Of {len(job.rank_to_gpu)} ranks. Stall: at once, as a group stalls as a whole; end: "
            "with all that wait for these in their other groups. Relayed: reach the others only "
            "through a neighbour. Slowed: ranks that lost some of their links, and what the worst "
            "keeps of them. Uplinks: what the worst switch that is left keeps towards other "
            "switches."
        ),
    ]
    text = net_text("Blast radius", job_case(inputs), rows, says, seen[0].premises, BLAST_SOURCE)
    return with_table(text, table)


def _losses(row: Blast) -> str:
    """Return the ranks that a failure takes from the job, in words."""
    found = (
        (len(row.dead_ranks), "dead"),
        (len(row.cut_off_ranks), "cut off"),
        (len(row.relayed_ranks), "relayed"),
    )
    return ", ".join(f"{ranks} {how}" for ranks, how in found if ranks) or "none"


def job_case(inputs: Mapping[str, Any]) -> str:
    """Return what a job is, in words."""
    layout = inputs["layout"]
    degrees = " ".join(f"{k}={layout[k]}" for k in ("tp", "cp", "ep", "dp", "pp"))
    return (
        f"{inputs['model']} on {inputs['gpus']} GPUs of {inputs['cluster']}, supernodes of "
        f"{inputs['supernode']}; {degrees}; seats: {inputs['placement']}"
    )
