"""The few figures that a board looks for first, each with what it must be held against."""

from __future__ import annotations

from cli.report_html_candidates import Candidate
from cli.report_html_cut import cut_note
from cli.report_html_memory import used_bytes
from cli.report_html_words import peak_words
from cli.report_pictures import safe
from planner.units import format_bytes, format_power, format_share, format_time
from planner.words import plural


def figures(one: Candidate) -> str:
    """Return the figures of a candidate as a list of names, values and what they mean."""
    low_s, high_s = one.step["interval_s"]
    used, capacity = used_bytes(one.memory), one.memory["capacity_bytes"]
    told = [
        (f"Across {plural(one.tier)}",
         format_bytes(one.cut_bytes) if one.cut_bytes else "none",
         cut_note(one)),
        ("Time of a step", format_time(one.step["total_s"]),
         f"{format_time(low_s)} to {format_time(high_s)}, set for nine of ten"),
        ("Tokens a second", f"{one.tokens_per_s:,.0f}",
         f"{format_share(one.step['mfu'])} of {peak_words(one.layout)}"),
        ("Fullest GPU's memory", format_bytes(used),
         f"of {format_bytes(capacity)}: {'fits' if one.fits else 'does not fit'}"),
    ]  # fmt: skip
    if one.power_w > 0:
        told.append((one.power_name.capitalize(), format_power(one.power_w),
                     "of parts whose power is known"))  # fmt: skip
    if one.cost is not None:
        told.append(("A million tokens", one.cost.text, "by the price list below"))
    return (
        '<dl class="figures">'
        + "".join(
            f'<div><dt>{safe(name)}</dt><dd class="value">{safe(value)}</dd>'
            f"<dd>{safe(meaning)}</dd></div>"
            for name, value, meaning in told
        )
        + "</dl>"
    )
