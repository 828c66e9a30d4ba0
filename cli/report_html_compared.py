"""A comparison in a report: its candidates, where the winner flips, where to spend, the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.planner_options import DEFAULT_TIME_LIMIT_S
from cli.property_words import (
    PROPERTIES,
    factor_words,
    grid_words,
    property_value,
    property_values,
    property_words,
    span_words,
)
from cli.report_choice import Choice, Cost, best_step, chosen_by_need, chosen_by_speed, entry_name
from cli.report_html_candidates import Candidate
from cli.report_html_compare import flips_of_speed, side_by_side
from cli.report_html_compared_bill import compared_bill, overhead_ratio
from cli.report_html_compared_read import ComparisonFile
from cli.report_html_origin import seat_commands
from cli.report_html_part_used import part_sentence
from cli.report_html_parts import Num, Part, filled_table, table
from cli.report_html_tiers import TIER_HEADS, tier_rows
from cli.report_html_verdict import offers_of, taken
from cli.report_html_words import DIGITS, layout_words, small_share
from cli.report_pictures import safe
from cli.report_words import power_words
from cli.unfilled_words import unfilled_words
from planner.place.answer import Proof
from planner.procure.budget import format_money
from planner.search.standings import NO_FIT
from planner.units import format_bytes, format_power, format_time

_FLIPS = {
    "winner": "another cluster is the fastest", "tie": "the first two become a tie, or cease to be",
    "layout": "another layout is best on {}", "cheapest": "another cluster is the cheapest",
}  # fmt: skip
_NOTHING_SHARE = 1e-3  # of tokens a second: nobody buys a part for less


def compared_candidates(file: ComparisonFile) -> list[Candidate]:
    """Return the candidates of a comparison, in its order."""
    return [_candidate(one, file) for one in file.document["ranked"]]


def _candidate(one: Mapping[str, Any], file: ComparisonFile) -> Candidate:
    document, cut, run = file.document, one["cut"], one["run"]
    cost, whole = run["cost_per_token"], run["cost"]
    currency = document["bills"].get(one["cluster"], {}).get("currency", "")
    # A run's clusters are ranked by what they need, as large as their own layouts ask for.
    by_need = document["inputs"]["sizes"]["equal"] == "run"
    best = best_step({**one, "fastest": None} if by_need else one)
    return Candidate(
        name=entry_name(one, document["ranked"]), model=file.clusters[one["cluster"]]["model"],
        cluster=one["cluster"], gpus=one["gpus"], layout=one["layout"], step=one["step"],
        memory=one["memory"], tier=cut["tier"], cut_bytes=one["seated_bytes"],
        least_bytes=cut["objective_bytes"], open_share=cut["gap"], proved_of="",
        crossed=one["crossed_bytes"], ties=one["tie_with_first"], power_w=run["power_w"] or 0.0,
        power_name=power_words(overhead_ratio(document)),
        cost=None if cost is None else Cost(cost * 1e6, format_money(cost * 1e6, currency)),
        run=None if whole is None else Cost(whole, format_money(whole, currency)),
        best_step_s=min(best.step_s, one["step"]["total_s"]),
        best_tokens_per_s=best.tokens / best.step_s,
    )  # fmt: skip


def choice_of(file: ComparisonFile, found: Sequence[Candidate]) -> Choice | None:
    """Return which candidate to take of a comparison: as ``planner compare`` says it, too."""
    sizes = file.document["inputs"]["sizes"]
    if sizes["equal"] == "run":
        return chosen_by_need(offers_of(found), sizes["budget"])
    return chosen_by_speed(offers_of(found))


def compared_parts(file: ComparisonFile, name: str, suffix: str) -> list[Part]:
    """Return the parts of a comparison but for the recommendation, the premises and the origin.

    Args:
        file: the comparison.
        name: what it is called where there are several, else empty.
        suffix: makes its anchors its own, empty where it is the only one.
    """
    found = compared_candidates(file)
    pick = next(iter(taken(choice_of(file, found), found)), None)
    body = side_by_side(found, "Candidate", pick)
    body += _seats(file.document) + _parts_used(file.document) + _elsewhere(file.document)
    flips = flips_of_speed(found) + _flips(file.document) + _gains(file.document)
    made = [
        ("compared", "Candidates side by side", body),
        ("flips", "Where the winner flips, and where to spend", flips + _front(file.document)),
        ("clusters", "Clusters", _clusters(file)),
        ("parts", "Parts, power and money", compared_bill(file.document)),
    ]
    return [
        Part(anchor=f"{key}{suffix}", title=title, body=text, plan=name)
        for key, title, text in made
    ]


def _seats(document: Mapping[str, Any]) -> str:
    rank_order = [
        entry_name(one, document["ranked"])
        for one in document["ranked"] if one["seating"] == "rank-order"
    ]  # fmt: skip
    said = "Each step is timed in the seats with the least cut."
    if rank_order:
        said = (
            f"The step of {', '.join(rank_order)} is timed in rank order, which is faster though "
            "more crosses; the others in the seats with the least cut."
        )
    open_cuts = [
        entry_name(one, document["ranked"])
        for one in document["ranked"] if one["cut"]["proof"] == Proof.INCUMBENT.value
    ]  # fmt: skip
    if open_cuts:
        limit = format_time(document["inputs"]["time_limit_s"])
        said += (
            f" Seats were searched for {limit} a layout; planner place searches for "
            f"{DEFAULT_TIME_LIMIT_S:g} s, and may so show less of {', '.join(open_cuts)}."
        )
    return f"<p>{safe(said)}</p>"


def _parts_used(document: Mapping[str, Any]) -> str:
    """Return of which candidates a part of each supernode would train faster than all of it."""
    ranked = document["ranked"]
    said = [
        f"{entry_name(one, ranked)}: {part_sentence(one['part_used'], one['step']['total_s'])}"
        for one in ranked
        if "part_used" in one
    ]
    return "".join(f"<p>{safe(line)}</p>" for line in said)


def _elsewhere(document: Mapping[str, Any]) -> str:
    """Return the winner's layout on the other clusters."""
    rows: list[list[str | Num]] = [
        [one["cluster"], layout_words(one["layout"]),
         Num(one["step"]["total_s"], format_time(one["step"]["total_s"])),
         Num(one["seated_bytes"], _bytes(one["seated_bytes"])), _families(one)]
        for one in document["moved"]
    ]  # fmt: skip
    heads = ["Cluster", "Layout", "Step", "Crosses", "Of it"]
    return table("The first one's layout on the others", heads, rows) if rows else ""


def _families(one: Mapping[str, Any]) -> str:
    crossed = {d: v for d, v in one["crossed_bytes"].items() if v > 0}
    parts = [f"{d.upper()} {format_bytes(crossed[d])}" for d in DIGITS if d in crossed]
    return ", ".join(parts) or "nothing"


def _flips(document: Mapping[str, Any]) -> str:
    """Return at which rates, limits, lengths and prices something changes, all else equal."""
    if document["inputs"]["layouts"]:
        return "<p>Given layouts were compared: where the winner flips was not looked for.</p>"
    if document.get("interrupted"):
        return "<p>Cut short: neither flips nor where to spend were looked for to the end.</p>"
    currency = next((bill["currency"] for bill in document["bills"].values()), "")
    first = _flips_from(document)
    rows: list[list[str | Num]] = [
        [property_words(one["property"]),
         *property_values(one["property"], one["held_value"], one["value"], currency),
         Num(one["factor"], f"x {factor_words(one['factor'])}"), _changes(one, first),
         one["before"], one["after"], _with_seats(one)]
        for one in document["flips"]
    ]  # fmt: skip
    heads = ["Property", "Holds to", "Changes at", "Of today's", "What changes", "From", "To",
             "With seats"]  # fmt: skip
    left_out = [one for one in document.get("flips_looked", ()) if "seated" in one]
    flipped = {
        one["property"] for one in (*document["flips"], *left_out) if one["kind"] == "winner"
    }
    experts = any(
        one["model_shape"].get("experts", 0) for one in document["inputs"]["clusters"]
        if isinstance(one.get("model_shape"), dict)
    )  # fmt: skip
    varied = [key for key in PROPERTIES if key != "experts" or experts]
    still = [PROPERTIES[key] for key in varied if key not in flipped]
    by_speed = [one["seated"] for one in document["flips"] if one["kind"] != "cheapest"]
    unseated, seated = None in by_speed, any(by_speed)
    how = (
        "with every rank in a seat but where the last column says otherwise"
        if left_out or (unseated and seated)
        else "by the closed form: seats are not chosen anew" if unseated
        else "with every rank in a seat; what is first or best now stays so until another is 0.1 % "
        "faster"
    )  # fmt: skip
    said = (
        f"They start from the fastest layout of each cluster, by which {first} is first. "
        f"Looked at from 1/32 to 32 times what it is ({span_words(varied)}), on all clusters "
        f"alike, each with its best layout there, {how}. {grid_words(_proved(document))}"
    )
    if document["inputs"]["sizes"]["equal"] == "run":
        said += " All do the run in time: only the winner's layout and prices are looked at."
    elif len(document["inputs"]["clusters"]) > 1 and still:
        said += f" No other cluster wins by 0.1 % or more by: {', '.join(still)}."
    for one in document.get("contradicted_flips", ()):
        value = property_value(one["property"], one["value"], currency)
        said += (
            f" Not with seats: {property_words(one['property'])} {value}, where in rank order "
            f"{one['before']} becomes {one['after']}."
        )
    flips = filled_table("Where the winner flips, all else equal", heads, rows)
    return f"{flips}<p>{safe(said)}</p>"


def _changes(flip: Mapping[str, Any], first: str) -> str:
    """Return what changes at a flip of the *first* cluster or of all."""
    if flip["after"] == NO_FIT:
        on = f"on {first}" if flip["kind"] == "layout" else "on any cluster"
        return f"no layout fits any longer {on}"
    return _FLIPS[flip["kind"]].format(first)


def _flips_from(document: Mapping[str, Any]) -> str:
    """Return the cluster whose fastest layout is first; of a run the one that is ranked first."""
    ranked = document["ranked"]
    if document["inputs"]["sizes"]["equal"] == "run":
        return str(ranked[0]["cluster"])

    def token_s(one: Mapping[str, Any]) -> float:
        best = best_step(one)
        return best.step_s / best.tokens

    return str(min(ranked, key=token_s)["cluster"])


def _proved(document: Mapping[str, Any]) -> dict[str, bool]:
    """Return of each property whether no change was missed; empty of a file that does not say."""
    looked = document.get("flips_looked", ())
    names = dict.fromkeys(one["property"] for one in looked)
    return {name: all(one["proved"] for one in looked if one["property"] == name) for name in names}


def _with_seats(flip: Mapping[str, Any]) -> str:
    """Return what is left of a flip with every rank in a seat, or how it is known without."""
    seated = flip["seated"]
    if seated is None:
        return "worked out" if flip["kind"] == "cheapest" else "in rank order"
    return "holds" if seated["holds"] else f"does not hold: {seated['before']}, {seated['after']}"


def _gains(document: Mapping[str, Any]) -> str:
    """Return what better parts bring on each cluster, layouts chosen anew."""
    gains = document["gains"]
    if not gains:
        return ""
    names = list(dict.fromkeys(one["cluster"] for one in document["ranked"]))
    shares = {
        (name, one["name"]): one["gain_share"] for name in names for one in gains.get(name, ())
    }
    what = dict.fromkeys(part for _, part in shares)
    rows: list[list[str | Num]] = [
        [part, *(_gain(shares.get((name, part))) for name in names)] for part in what
    ]
    return table("Where to spend: tokens a second won with", ["With", *names], rows)


def _gain(share: float | None) -> Num:
    if share is None:
        return Num(0.0, "")
    return Num(share, f"+{small_share(share)}" if share >= _NOTHING_SHARE else "nothing")


def _front(document: Mapping[str, Any]) -> str:
    points = document["pareto_points"]
    powered = all(one["power_w"] is not None for one in points)
    priced = all(one["cost_per_million_tokens"] is not None for one in points)
    currency = next((bill["currency"] for bill in document["bills"].values()), "")
    rows: list[list[str | Num]] = [
        [entry_name(one, points), Num(one["tokens_per_s"], f"{one['tokens_per_s']:,.0f}"),
         Num(one["head_room_bytes"], _room(one["head_room_bytes"])),
         *([Num(one["power_w"], format_power(one["power_w"]))] if powered else []),
         Num(one["switches"], f"{one['switches']:,}"),
         *([_money(one["cost_per_million_tokens"], currency)] if priced else []),
         "yes" if one["on_front"] else "no"]
        for one in points
    ]  # fmt: skip
    heads = ["Candidate", "Tokens/s", "Memory to spare", *(["Power"] if powered else []),
             "Switches", *(["A million tokens"] if priced else []), "Not beaten"]  # fmt: skip
    return table("Not beaten in everything at once", heads, rows)


def _money(amount: float, currency: str) -> Num:
    return Num(amount, format_money(amount, currency))


def _room(value: float) -> str:
    return format_bytes(value) if value >= 0 else f"{format_bytes(-value)} too little"


def _clusters(file: ComparisonFile) -> str:
    rows = [
        [name, *row]
        for name, asked in file.clusters.items()
        for row in tier_rows(asked["fabric"]["tiers"])
    ]
    short = [
        f"{name}: {words}"
        for name, asked in file.clusters.items()
        for tier in asked["fabric"]["tiers"]
        if tier["tier"] == "supernode"
        and (words := unfilled_words("supernode", tier["capacities"], full=asked["supernode"]))
    ]
    short += [
        f"{name}: rebuilt with {asked['assumed']['supernode.count']}."
        for name, asked in file.clusters.items()
        if "supernode.count" in asked["assumed"]
    ]
    return (
        "".join(f"<p>{safe(line)}</p>" for line in short)
        + table(
            "Tiers, the innermost first; rates are of one GPU, one direction",
            ["Cluster", *TIER_HEADS],
            rows,
        )
        + "<p>The wiring, the seats and the step pass by pass are drawn for plans. This makes one "
        "of each candidate, and a page with all of them:</p><pre><code>"
        + safe(seat_commands(file))
        + "</code></pre>"
    )


def _bytes(value: float) -> str:
    return "none" if value == 0 else format_bytes(value)
