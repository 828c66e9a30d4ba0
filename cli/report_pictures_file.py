"""A plan as one SVG file: who sits where, and what crosses against what it must beat."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.planner_output import write_file
from cli.report_html_plan import cut_bars
from cli.report_html_read import PlanFile, checked_plan
from cli.report_html_seats import seat_map
from cli.report_html_style import PICTURE_STYLE
from cli.report_html_traffic import crossings
from cli.report_html_words import layout_words
from cli.report_pictures import WIDTH, number, safe, word
from planner.errors import InputError


def write_plan_picture(document: Mapping[str, Any], path: Path) -> None:
    """Write the picture of a plan.

    Args:
        document: of ``planner place --json``.
        path: where to; its name ends in ``.svg``.

    Raises:
        InputError: *path* is no SVG by its name, or cannot be written to.
    """
    if path.suffix.lower() != ".svg":
        raise InputError(f"{path}: pictures are SVG: expected a name that ends in .svg")
    write_file(path, plan_picture(checked_plan(document, path)))


def plan_picture(plan: PlanFile) -> str:
    """Return a plan as an SVG file of its own."""
    inputs = plan.document["inputs"]
    title = (
        f"{inputs['model']} on {inputs['gpus']:,} GPUs of {inputs['cluster']}, "
        f"{layout_words(plan.document)}"
    )
    parts, y = [word(4, 24, title, style="strong", most=110)], 40.0
    for framed in (seat_map(plan, crossings(plan)), cut_bars(plan)):
        picture = framed[framed.index("<svg ") : framed.index("</svg>") + len("</svg>")]
        height = float(picture.split('"', 2)[1].split()[3])
        placed = f'<svg y="{number(y)}" width="{WIDTH}" height="{number(height)}" '
        parts.append(picture.replace("<svg ", placed, 1))
        y += height + 24
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {number(y)}" role="img" '
        f'aria-label="{safe(title)}"><title>{safe(title)}</title><style>svg{{background:var(--page);'
        f'font:12.5px system-ui,"DejaVu Sans",sans-serif}}{PICTURE_STYLE}</style>'
        f"{''.join(parts)}</svg>\n"
    )
