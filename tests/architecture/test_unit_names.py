"""A quantity ends in its unit, so that no reader has to ask which one it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.conftest import ROOT

UNIT = re.compile(
    r"(?:^|_)(?:s|seconds|bytes|bytes_per_s|flops|flops_per_s|per_s|share|w|wh|m|s_per_m|money"
    r"|money_per_\w+|factor|speedup|gain|ratio|pct)$"
)
UNITLESS = {
    "amplification": "packets sent over packets delivered",
    "contention": "load of a link over its capacity, against being alone on it",
    # Counts that a model lets be fractional, and numbers without a dimension.
    "by_entry": "one number for each entry of traffic, in the unit its owner says",
    "grid": "factors of a property, asked one after the other",
    "by_family": "one number for each family, in the unit its owner says",
    "constant": "in the unit of the question's weights",
    "default": "of whatever the reader of a document asks for",
    "at_least": "coefficients of rules, pieces of a group by shape",
    "at_most": "coefficients of rules, full pieces of a group by shape",
    "bound_of": "a function to bytes, of a grid or of cells held",
    "inside": "a function of further families of a sheet to bytes, by the cells of a part",
    "entries": "rule, unknown and factor of a sparse array, in the unit of its model",
    "list_of": "a function of a share to what there is to choose from",
    "box": "logarithms of a box's sides in cells",
    "highest": "of an unknown of a choice: how many at most",
    "least": "sides of rules, and a cost in the unit that its owner is given",
    "times": "how many of each a choice takes, as a solver writes it",
    "domains": "domains a group touches, a mean",
    "free_speedup": "step with communication over step without",
    "in_flight": "transactions outstanding, a mean",
    "maximum": "of whatever the reader of a document asks for",
    "minimum": "of whatever the reader of a document asks for",
    "most": "of whatever the option is; sides of rules",
    "needs": "pieces that a rule asks for",
    "flows": "flows on a link, shared out where several links cost the same",
    "of_flow": "of each flow, in the unit of its owner",
    "of_others": "coefficients of rules, by unknown",
    "of_patterns": "coefficients of rules, cells or domains by pattern",
    "room": "full pieces that a rule leaves room for",
    "speedup_limit": "step over step without one entry",
    "sums": "coefficients of equations, cells or domains by shape",
    "totals": "cells or domains that an equation asks for",
    "counts": "parts of a group by size",
    "parts": "parts that a domain holds by size",
    "partitions": "parts of a group by size",
    "rows": "coefficients of rules, cells or domains by column",
    "sides": "cells or domains that a rule asks for or leaves room for",
    "resent_packets": "packets, a mean",
    "round_trip_packets": "packets in one round trip, a mean",
    "spread": "relative width of a fit",
    "spreads": "relative widths of fits",
    "first_spread": "relative width of a fit",
    "second_spread": "relative width of a fit",
    "routed": "bytes and flows on each link for a payload of one byte",
    "machine_spread": "relative width of machines about a fit",
    "squares": "of log ratios, a sum",
    "table": "a table's column",
    "told": "numbers of a fit that its rows tell, a sum of shares",
    "times_per_step": "executions in one step, a mean over stages",
    "repeats_per_step": "executions that recomputation repeats in one step",
    "after": "a figure of a plan, in the unit its name says",
    "before": "a figure of a plan, in the unit its name says",
    "cost": "in the currency of the price list",
    "cost_per_token": "in the currency of the price list",
    "crowding": "times as many flows on a link as now",
    "crossed": "bytes by digit, in the unit its owner says",
    "days": "days",
    "energy_j": "joules",
    "hulls": "touches, and bytes at these",
    "lambdas": "exponents of touches in an inequality",
    "rhs": "natural logarithms of counts",
    "log_held": "natural logarithm of a count",
    "logs": "natural logarithms of counts",
    "nic_latency": "times what it is now",
    "nic_rate": "times what it is now",
    "price": "in the currency of the price list",
    "prices": "of the families, in one unit of the owner's choice",
    "scale_up_rate": "times what it is now",
    "seq": "times what it is now",
    "shares": "of whatever the owner says, 0 to 1",
    "tokens": "tokens",
    "tokens_per_day": "tokens a day",
    "tokens_per_j": "tokens a joule",
    "years": "years a part is written off over",
    "units": "of a charge, each of its weight",
    "amount": "in the currency of the price list, or watts",
    "cost_of": "in the unit of the limit",
    "limit": "in the unit of what it limits",
    "nics_per_gpu": "NICs of a GPU, where several share one a mean",
    "rate_of": "tokens a second, by size",
    "value": "of whatever the option is",
    "hops": "neighbours along a chain, and bytes when apart",
    "nets": "groups, and bytes of one more domain touched",
    "pairs": "groups, and bytes of a pair apart",
    "tier_weights": "seconds for each byte across a tier",
    "weights": "of the families, in one unit of the owner's choice",
}


def quantities() -> Iterator[tuple[str, str]]:
    """Yield every public float parameter and field of the core, and where it is."""
    for path in sorted((ROOT / "planner").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        where = path.relative_to(ROOT).as_posix()
        for owner in tree.body:
            if isinstance(owner, ast.FunctionDef):
                yield from _parameters(owner, where)
            if isinstance(owner, ast.ClassDef) and not owner.name.startswith("_"):
                for part in owner.body:
                    if isinstance(part, ast.FunctionDef):
                        yield from _parameters(part, where)
                    if isinstance(part, ast.AnnAssign) and _is_float(part.annotation):
                        yield ast.unparse(part.target), f"{where}:{part.lineno} {owner.name}"


def _parameters(function: ast.FunctionDef, where: str) -> Iterator[tuple[str, str]]:
    if function.name.startswith("_"):
        return
    every = function.args
    for argument in (*every.posonlyargs, *every.args, *every.kwonlyargs):
        if argument.annotation is not None and _is_float(argument.annotation):
            yield argument.arg, f"{where}:{argument.lineno} {function.name}()"


def _is_float(annotation: ast.expr) -> bool:
    return re.search(r"\bfloat\b|\bfloat64\b|\bFloats\b", ast.unparse(annotation)) is not None


def test_every_quantity_of_the_core_ends_in_its_unit() -> None:
    unclear = sorted(
        f"{where}: {name}"
        for name, where in quantities()
        if UNIT.search(name) is None and name not in UNITLESS
    )

    assert unclear == [], (
        "end the name in its unit; if it has none, add it to UNITLESS with what it means"
    )


def test_the_list_of_names_without_a_unit_names_nothing_that_is_gone() -> None:
    assert set(UNITLESS) - {name for name, _ in quantities()} == set()
