"""What a page says where a part of every supernode would train faster than all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.report_html_words import layout_words
from planner.units import format_share, format_time


def part_sentence(part: Mapping[str, Any], step_s: float) -> str:
    """Return what using a part of each supernode would bring.

    Args:
        part: ``part_used`` of a document.
        step_s: the step that it is held against [s].

    >>> one = dict.fromkeys(("tp", "cp", "ep", "etp", "dp", "pp", "vpp"), 1)
    >>> part = {"gpus_of_each": 64, "supernodes": 16, "cluster_gpus": 1152, "step_s": 49.3}
    >>> print(part_sentence({**part, "layout": {**one, "tp": 8, "dp": 128}}, 71.2))
    With 64 of the 72 GPUs of each supernode used, of 16 supernodes, a step takes about 49.3 s \
instead of 71.2 s, 30.8 % less, with tp 8, dp 128. These supernodes have 1,152 GPUs.
    """
    size = part["cluster_gpus"] // part["supernodes"]
    return (
        f"With {part['gpus_of_each']:,} of the {size:,} GPUs of each supernode used, of "
        f"{part['supernodes']:,} supernodes, a step takes about {format_time(part['step_s'])} "
        f"instead of {format_time(step_s)}, {format_share(1.0 - part['step_s'] / step_s)} less, "
        f"with {layout_words(part['layout'])}. These supernodes have {part['cluster_gpus']:,} GPUs."
    )
