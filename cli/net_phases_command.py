"""``planner net phases``: one network judged for training, prefill and decode."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.net_inputs import Given, number_option, put_out, text_option
from cli.planner_options import Cluster, Json, Model, Out
from planner.units import parse_rate, parse_time

if TYPE_CHECKING:
    from planner.collectives.links import LinkNumbers, Spread
    from planner.model import ModelSpec
    from planner.network.phases import PhaseLoad

_COUNTS = {
    "--tp": ("tp", 1, 10**6),
    "--ep": ("ep", 1, 10**6),
    "--gradient-ranks": ("gradient_ranks", 2, 10**6),
    "--prefill-tokens": ("prefill_tokens", 1, 10**9),
    "--decode-tokens": ("decode_tokens", 1, 10**9),
}
"""Options that are whole numbers: what the model calls them, least, most."""
_GROUPS = ("--tp", "--ep", "--gradient-ranks")
"""Those that are GPUs of one group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _WireOption:
    """An option that a cluster can say instead.

    Args:
        field: what the model calls it.
        usual: its text where neither says it.
        parse: its text to SI.
        least: answered; what collectives make of less or more leaves floating point.
        most: answered.
    """

    field: str
    usual: str
    parse: Callable[[str], float]
    least: float
    most: float


_WIRES = {
    "--scale-up": _WireOption(
        field="scale_up_bytes_per_s", usual="450GB/s", parse=parse_rate, least=1.0, most=1e20
    ),
    "--nic": _WireOption(
        field="nic_bytes_per_s", usual="50GB/s", parse=parse_rate, least=1.0, most=1e20
    ),
    "--scale-up-latency": _WireOption(
        field="scale_up_latency_s", usual="3.33us", parse=parse_time, least=-inf, most=1e30
    ),
    "--nic-latency": _WireOption(
        field="nic_latency_s", usual="3.7us", parse=parse_time, least=-inf, most=1e30
    ),
}


def add_to(app: typer.Typer) -> None:
    """Add the command of this module to *app*."""
    app.command("phases")(phases)


def _of_cluster(name: str, left_out: str, meaning: str) -> Any:
    return typer.Option(
        name, metavar="QUANTITY", show_default=f"the cluster's, or {left_out}", help=meaning
    )


def phases(
    cluster: Cluster = None,
    model: Model = None,
    tp: Annotated[str, number_option("--tp", "Tensor-parallel degree.")] = "8",
    ep: Annotated[str, number_option("--ep", "GPUs that share a layer's experts.")] = "1",
    supernode: Annotated[
        int | None,
        typer.Option(
            "--supernode", metavar="NUMBER", min=1, max=10**6, show_default="the cluster's, or 8",
            help="GPUs of a scale-up domain.",
        ),
    ] = None,
    scale_up: Annotated[
        str | None, _of_cluster("--scale-up", "450GB/s", "Rate inside it, per GPU.")
    ] = None,
    nic: Annotated[
        str | None, _of_cluster("--nic", "50GB/s", "Rate of the network, per GPU.")
    ] = None,
    scale_up_latency: Annotated[
        str | None, _of_cluster("--scale-up-latency", "3.33us", "Start-up inside it.")
    ] = None,
    nic_latency: Annotated[
        str | None, _of_cluster("--nic-latency", "3.7us", "Start-up over the network.")
    ] = None,
    gradient: Annotated[
        str, text_option("--gradient", "Gradients one group reduces in a step.")
    ] = "192MiB",
    gradient_ranks: Annotated[
        str, number_option("--gradient-ranks", "Members of a gradient group.")
    ] = "16",
    budget: Annotated[str, text_option("--budget", "What they may take.")] = "3ms",
    prefill_tokens: Annotated[
        str, number_option("--prefill-tokens", "Tokens of a prefill, m.")
    ] = "4096",
    decode_tokens: Annotated[
        str, number_option("--decode-tokens", "Sequences decoded together.")
    ] = "1",
    as_json: Json = False,
    out: Out = None,
) -> None:  # fmt: skip
    """Judge one network for training, prefill and decode.

    Left out, the model is one whose token has 10 KiB (qwen3-32b). Of a cluster, the times of a
    stock library on its GPUs stand beside those of bare wires.
    """
    from cli.net_phases_report import phases_text
    from planner.network import phases as table
    from topologies.model_reader import read_model

    given = _given(
        cluster, model,
        counts={
            "--tp": tp, "--ep": ep, "--gradient-ranks": gradient_ranks,
            "--prefill-tokens": prefill_tokens, "--decode-tokens": decode_tokens,
        },
        job={"--gradient": gradient, "--budget": budget},
        wires={
            "--scale-up": scale_up, "--nic": nic, "--scale-up-latency": scale_up_latency,
            "--nic-latency": nic_latency,
        },
    )  # fmt: skip
    inputs = given.values
    with given.finish():
        shape = read_model(inputs["model"])
        ground = _ground(inputs, supernode)
        seen, library = _judged(inputs, shape, ground)
    body = {
        "phases": seen,
        "library": library,
        "assumed": ground.assumed,
        "premises": table.phase_premises(),
        "source": table.SOURCE,
    }
    text = phases_text(inputs, seen, library, ground.assumed)
    put_out("phases", inputs, body, text, as_json=as_json, out=out)


def _given(
    cluster: str | None,
    model: str | None,
    *,
    counts: Mapping[str, str],
    job: Mapping[str, str],
    wires: Mapping[str, str | None],
) -> Given:
    """Return what the options say, each text by the option it was typed for."""
    from planner.errors import InputError
    from planner.units import parse_bytes, parse_time

    given = Given()
    given.values |= {"model": model or "qwen3-32b", "cluster": cluster}
    for option, (field, least, most) in _COUNTS.items():
        given.count(field, option, counts[option], least=least, most=most)
    given.quantity("gradient_bytes", "--gradient", job["--gradient"], parse_bytes)
    given.quantity("budget_s", "--budget", job["--budget"], parse_time)
    if cluster is not None and (both := [k for k, v in wires.items() if v is not None]):
        raise InputError(f"{', '.join(both)}: --cluster {cluster} says that: give one of the two")
    for option, wire in _WIRES.items():
        text = wires[option] or wire.usual
        given.quantity(wire.field, option, text, wire.parse, least=wire.least, most=wire.most)
    return given


def _judged(
    inputs: dict[str, Any], shape: ModelSpec, ground: _Ground
) -> tuple[tuple[PhaseLoad, ...], tuple[PhaseLoad, ...]]:
    """Return the phases on bare wires, and as a stock library takes them."""
    from planner.collectives.cost import LIBRARY
    from planner.network import phases as table

    asked = {
        key: inputs[key]
        for key in ("gradient_bytes", "prefill_tokens", "decode_tokens", "budget_s")
    }
    spreads = table.PhaseSpreads(
        tensor=ground.spread(inputs["tp"]),
        gradients=ground.spread(inputs["gradient_ranks"]),
        experts=ground.spread(inputs["ep"]),
    )
    seen = table.model_phases(shape, spreads, ground.wires, **asked)
    if ground.library is None:
        return seen, ()
    return seen, table.model_phases(shape, spreads, ground.library, available=LIBRARY, **asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What the phases stand on.

    Args:
        wires: rates and latencies of the links alone.
        library: the same as a stock library reaches them; None where no GPU is named.
        assumed: what was assumed of the library; "" if nothing.
        sizes: GPUs in a domain of each tier but the last, supernode first.
    """

    wires: LinkNumbers
    library: LinkNumbers | None
    assumed: str
    sizes: tuple[int, ...]

    def spread(self, ranks: int) -> Spread:
        """Return *ranks* side by side, from the first GPU on."""
        from planner.collectives.links import Spread

        return Spread.of(ranks, *self.sizes)


def _ground(inputs: dict[str, Any], supernode: int | None) -> _Ground:
    """Return the links that the options or the cluster say; note in *inputs* what they are."""
    from planner.collectives.links import links_of, two_tiers

    if inputs["cluster"] is None:
        inputs["supernode"] = supernode or 8
        wires = two_tiers(
            inside_bytes_per_s=inputs["scale_up_bytes_per_s"],
            nic_bytes_per_s=inputs["nic_bytes_per_s"],
            inside_latency_s=inputs["scale_up_latency_s"],
            nic_latency_s=inputs["nic_latency_s"],
        )
        return _Ground(wires=wires, library=None, assumed="", sizes=(inputs["supernode"],))
    from cli.planner_inputs import Asked, read_fabric
    from planner.errors import InputError
    from topologies.collective_catalogue import measured_links_of

    fabric = read_fabric(Asked(cluster=inputs["cluster"], supernode=supernode))
    too_many = [
        f"{option} {inputs[field]}: expected at most the {len(fabric.gpus)} GPUs of {fabric.name}"
        for option in _GROUPS
        for field in [_COUNTS[option][0]]
        if inputs[field] > len(fabric.gpus)
    ]
    if too_many:
        raise InputError(*too_many)
    wires, told = links_of(fabric), measured_links_of(fabric)
    inputs["supernode"] = fabric.full_supernode_gpus
    inside, outer = wires.inside, wires.tiers[min(1, len(wires.tiers) - 1)]
    inputs["scale_up_bytes_per_s"] = inside.bytes_per_s
    inputs["scale_up_latency_s"] = inside.latency_s
    inputs["nic_bytes_per_s"] = outer.bytes_per_s
    inputs["nic_latency_s"] = outer.latency_s
    names = [tier.name for tier in wires.tiers[:-1]]
    return _Ground(
        wires=wires,
        library=told.links,
        assumed=told.assumed,
        sizes=tuple(max(fabric.capacities(name)) for name in names),
    )
