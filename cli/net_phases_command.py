"""``planner net phases``: one network judged for training, prefill and decode."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.net_inputs import Given, number_option, put_out, text_option
from cli.planner_options import Cluster, Json, Model, Out

if TYPE_CHECKING:
    from planner.collectives.links import LinkNumbers, Spread

_RATES = {"least": 1.0, "most": 1e20}
"""Rates that are answered: what collectives make of them stays within floating point."""
_LONGEST_S = 1e30


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
    from planner.collectives.cost import LIBRARY
    from planner.errors import InputError
    from planner.network import phases as table
    from planner.units import parse_bytes, parse_rate, parse_time
    from topologies.model_reader import read_model

    given = Given()
    given.values["model"] = model or "qwen3-32b"
    given.values["cluster"] = cluster
    given.count("tp", "--tp", tp, most=10**6)
    given.count("ep", "--ep", ep, most=10**6)
    given.quantity("gradient_bytes", "--gradient", gradient, parse_bytes)
    given.count("gradient_ranks", "--gradient-ranks", gradient_ranks, least=2, most=10**6)
    given.quantity("budget_s", "--budget", budget, parse_time)
    given.count("prefill_tokens", "--prefill-tokens", prefill_tokens, most=10**9)
    given.count("decode_tokens", "--decode-tokens", decode_tokens, most=10**9)
    of_wires = {
        "--scale-up": scale_up, "--nic": nic, "--scale-up-latency": scale_up_latency,
        "--nic-latency": nic_latency,
    }  # fmt: skip
    if cluster is not None and (both := [k for k, v in of_wires.items() if v is not None]):
        raise InputError(f"{', '.join(both)}: --cluster {cluster} says that: give one of the two")
    given.quantity(
        "scale_up_bytes_per_s", "--scale-up", scale_up or "450GB/s", parse_rate, **_RATES
    )
    given.quantity("nic_bytes_per_s", "--nic", nic or "50GB/s", parse_rate, **_RATES)
    given.quantity(
        "scale_up_latency_s", "--scale-up-latency", scale_up_latency or "3.33us", parse_time,
        most=_LONGEST_S,
    )  # fmt: skip
    given.quantity(
        "nic_latency_s", "--nic-latency", nic_latency or "3.7us", parse_time, most=_LONGEST_S
    )
    inputs = given.values
    with given.finish():
        shape = read_model(inputs["model"])
        ground = _ground(inputs, supernode)
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
        library = (
            ()
            if ground.library is None
            else table.model_phases(shape, spreads, ground.library, available=LIBRARY, **asked)
        )
    body = {
        "phases": seen,
        "library": library,
        "assumed": ground.assumed,
        "premises": table.phase_premises(),
        "source": table.SOURCE,
    }
    text = phases_text(inputs, seen, library, ground.assumed)
    put_out("phases", inputs, body, text, as_json=as_json, out=out)


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
    from topologies.collective_catalogue import measured_links_of

    fabric = read_fabric(Asked(cluster=inputs["cluster"], supernode=supernode))
    wires, told = links_of(fabric), measured_links_of(fabric)
    inputs["supernode"] = max(fabric.capacities("supernode"))
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
