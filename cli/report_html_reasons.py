"""Why groups cross, what else was possible, and whether the ports stand what the seating starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.report_html_parts import Num, table
from cli.report_html_words import DIGITS, PARTS
from cli.report_pictures import safe
from cli.report_words import part_words, price_in_time
from planner.units import format_bytes, format_share, format_time

_TIMES = 9.0  # from ten times as much on, a percentage says less than how many times


def reasons_section(document: Mapping[str, Any]) -> str:
    """Return what a plan says of its rules, its reasons and its second answers; often nothing."""
    return _rules(document) + _reasons(document) + _alternatives(document)


def _rules(document: Mapping[str, Any]) -> str:
    if "rules" not in document:
        return ""
    rules = document["rules"]
    least, most = rules["price_least_bytes"], rules["price_most_bytes"]
    price = (
        "They cost no bytes: the best placement without them is no better."
        if most == 0
        else f"They cost {_between(least, most)} a step: {format_bytes(rules['cut_bytes'])} cross "
        f"with them, {format_bytes(rules['free_cut_bytes'])} without."
    )
    if rules.get("free_step_s"):
        price += f" In time: {price_in_time(rules['step_s'], rules['free_step_s'])}."
    return f"<p>Rules that were kept: {safe('; '.join(rules['rules']))}. {safe(price)}</p>"


def _between(least: float, most: float) -> str:
    if least == most:
        return f"exactly {format_bytes(most)}"
    return f"{format_bytes(least)} to {format_bytes(most)}"


def _reasons(document: Mapping[str, Any]) -> str:
    if "explain" not in document:
        return ""
    rows: list[list[str | Num]] = [
        [f"{one['digit'].upper()} ({(DIGITS | PARTS)[one['digit']]})",
         Num(one["split_groups"], f"{one['split_groups']:,} of {one['groups']:,}"),
         Num(one["cut_bytes"], _bytes(one["cut_bytes"])), _why(one)]
        for one in document["explain"]["reasons"]
    ]  # fmt: skip
    return table("Why groups cross", ["Family", "Groups split", "Crosses", "Why"], rows)


def _why(one: Mapping[str, Any]) -> str:
    if one["split_groups"] == 0:
        return "it stays inside"
    if one["impossible"]:
        return str(one["impossible"])
    kept = one["kept_whole"]
    if kept is None:
        return ""
    more = [
        f"{digit.upper()} {format_bytes(size)} more"
        for digit, size in sorted(kept["more_by_digit_bytes"].items())
        if size > 0
    ]
    dearer = f", for {' and '.join(more)} would cross" if more else ""
    if kept["price_most_bytes"] == 0:
        return f"it could stay inside for nothing more{dearer}"
    price = _between(kept["price_least_bytes"], kept["price_most_bytes"])
    return f"keeping it whole costs {price} more{dearer}"


def _alternatives(document: Mapping[str, Any]) -> str:
    cut, step_s = document["cut"]["objective_bytes"], document["step"]["total_s"]
    rows: list[list[str | Num]] = [
        [one["method"], Num(one["cut_bytes"], _bytes(one["cut_bytes"])),
         Num(one["cut_bytes"] - cut, f"{_signed(one['cut_bytes'], cut)}"),
         Num(one["step_s"], format_time(one["step_s"])),
         Num(one["step_s"] / step_s - 1, _signed(one["step_s"], step_s))]
        for one in document.get("alternatives", ())
    ]  # fmt: skip
    heads = ["Placement", "Crosses", "Against this plan", "Step", "Against this plan"]
    return table("Second answers", heads, rows) if rows else ""


def _signed(value: float, reference: float) -> str:
    """Return how far a value is from another, with its sign.

    >>> _signed(2.0, 1.0), _signed(0.97, 1.0), _signed(1.0, 1.0), _signed(59.4, 1.0)
    ('+100 %', '-3 %', 'as much', '59 times')
    """
    if not reference:
        return "as much" if value == reference else "more"
    apart = value / reference - 1
    if apart >= _TIMES:
        return f"{value / reference:,.0f} times"
    if abs(apart) < 5e-4:
        return "as much"
    return f"{'+' if apart > 0 else '-'}{format_share(abs(apart))}"


def ports_table(document: Mapping[str, Any]) -> str:
    """Return whether the ports into each tier stand the senders that may start together."""
    gates = document.get("incast", ())
    rows: list[list[str | Num]] = [
        [gate["tier"], gate["family"] if gate["degree"] else "nothing from outside",
         Num(gate["degree"], f"{gate['degree']:,}"),
         Num(gate["peak_bytes"], _bytes(gate["peak_bytes"])),
         Num(gate["room_bytes"], format_bytes(gate["room_bytes"])),
         "yes" if gate["passes"] else f"no: at most {gate['safe_degree']:,} together"]
        for gate in gates
    ]  # fmt: skip
    if not rows:
        return ""
    heads = ["Into a", "Family", "Senders at once", "Can pile up", "Room", "Stands it"]
    return table("Senders that may start together to one port", heads, rows)


def port_premises(document: Mapping[str, Any]) -> dict[str, str]:
    """Return what must hold for that, and what follows where it does not."""
    return {
        f"ports: {premise['states']}": _holds(premise)
        for gate in document.get("incast", ())
        for premise in gate["premises"]
    }


def _holds(premise: Mapping[str, Any]) -> str:
    word = {True: "holds", False: "does not hold"}.get(premise["holds"], "assumed")
    return f"{word}; otherwise {premise['otherwise']}"


def _bytes(value: float) -> str:
    return "none" if value == 0 else format_bytes(value)


def premises_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Return every premise of a plan: of the parts of its step, and of its ports."""
    entries: Sequence[Mapping[str, Any]] = document["step"]["critical_path"]
    parts = {part_words(e["kind"], e["name"]): str(e["premise"]) for e in entries}
    return parts | port_premises(document)
