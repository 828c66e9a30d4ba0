"""Pictures as files of their own: SVG as it is, PNG by resvg where it is installed.

resvg was chosen for PNG: one wheel of 1.4 MB without a system library, 0.6 s a picture. CairoSVG
needs cairo, Pillow and five packages more (35 MB) and takes twice as long; Matplotlib, 186 MB,
would be a second drawing of everything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cli.planner_output import write_file
from cli.report_html_plan import cut_bars
from cli.report_html_read import PlanFile, checked_plan
from cli.report_html_seats import box_words, seat_map, stages_of
from cli.report_html_style import PICTURE_STYLE
from cli.report_html_traffic import crossings, total_between
from cli.report_html_words import layout_words
from cli.report_pictures import WIDTH, Piece, number, patterned, safe, word
from cli.report_pictures_seats import key_of_stages, seats
from planner.errors import InputError
from planner.units import format_bytes

PNG_PIXELS = 1600  # wide: sharp on a slide
_LIBRARY = "resvg_py"
_LETTER = 7.4  # pixels of one letter of a key, on average, with room to spare
_FONT = 'font:12.5px system-ui,"DejaVu Sans",sans-serif'


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Pictures below each other on one sheet.

    Args:
        title: the line on top.
        pictures: what is drawn, each with its heading; an empty heading has no line.
    """

    title: str
    pictures: Sequence[tuple[str, str]]


def refuse_other_formats(path: Path) -> None:
    """Refuse a picture's name before anything is computed for it.

    Raises:
        InputError: *path* ends in neither ``.svg`` nor ``.png``, or PNG cannot be made here.
    """
    suffix = path.suffix.lower()
    if suffix not in {".svg", ".png"}:
        raise InputError(f"{path}: pictures are SVG or PNG: expected a name in .svg or .png")
    if suffix == ".png" and find_spec(_LIBRARY) is None:
        raise InputError(
            f"{path}: PNG needs the package resvg_py: pip install "
            "'cluster-topology-planner[report]', or name an .svg file, which needs nothing"
        )


def write_sheet(sheet: Sheet, path: Path) -> None:
    """Write *sheet* to *path*, as its name says: SVG or PNG.

    Raises:
        InputError: the name is of neither, PNG cannot be made here, or *path* cannot be written.
    """
    refuse_other_formats(path)
    if path.suffix.lower() == ".svg":
        write_file(path, svg_text(sheet, PICTURE_STYLE))
        return
    write_file(path, png_bytes(svg_text(sheet, flat(PICTURE_STYLE))))


def svg_text(sheet: Sheet, style: str) -> str:
    """Return *sheet* as an SVG file of its own."""
    parts, y = [word(4, 24, sheet.title, style="strong", most=110)], 40.0
    for heading, drawn in sheet.pictures:
        if heading:
            parts.append(word(4, y + 14, heading, style="strong", most=120))
            y += 24
        picture = drawn[drawn.index("<svg ") : drawn.index("</svg>") + len("</svg>")]
        width, height = map(float, picture.split('"', 2)[1].split()[2:])  # of its viewBox
        placed = f'<svg y="{number(y)}" width="{number(width)}" height="{number(height)}" '
        parts.append(picture.replace("<svg ", placed, 1))
        y += height + 24
    title = safe(sheet.title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {number(y)}" role="img" '
        f'aria-label="{title}"><title>{title}</title><style>svg{{background:var(--page);{_FONT}}}'
        f"{style}</style>{''.join(parts)}</svg>\n"
    )


def flat(style: str) -> str:
    """Return a stylesheet without variables and media rules, as paper has it: for renderers.

    >>> flat(":root{--ink:#000}@media (x){:root{--ink:#fff}}text{fill:var(--ink)}").strip()
    ':root{--ink:#000}text{fill:#000}'
    """
    plain = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", style)
    for name, value in re.findall(r"--(\w+):([^;}]+)", plain):
        plain = plain.replace(f"var(--{name})", value)
    return "\n".join(rule for rule in plain.split("\n") if ":has(" not in rule)


def png_bytes(svg: str) -> bytes:
    """Return an SVG picture as PNG, on white.

    Raises:
        InputError: the machine has no font, and every word would be missing.
    """
    letter = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20">{}</svg>'
    if _rendered(letter.format('<text y="15">M</text>')) == _rendered(letter.format("")):
        raise InputError(
            "PNG needs a font, and this machine has none: install one, e.g. fonts-dejavu-core, or "
            "name an .svg file"
        )
    return _rendered(svg.replace("var(--page)", "#fff"), width=PNG_PIXELS, background="#ffffff")


def _rendered(svg: str, **more: Any) -> bytes:
    import resvg_py  # noqa: PLC0415 - optional, and only PNG pays for it

    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg, sans_serif_family="DejaVu Sans", font_family="DejaVu Sans", **more
        )
    )


def key(pieces: Sequence[Piece]) -> str:
    """Return the key of a picture as a picture of its own."""
    parts, x, y = [], 4.0, 4.0
    for piece in pieces:
        label = f"{piece.label} {piece.text}".strip()
        width = 30 + _LETTER * len(label)
        if x + width > WIDTH:
            x, y = 4.0, y + 20
        parts.append(patterned(x, y, 12, 12, piece, ""))
        parts.append(word(x + 18, y + 10.5, label))
        x += width
    return f'<svg viewBox="0 0 {WIDTH} {number(y + 20)}">{"".join(parts)}</svg>'


def write_plan_picture(document: Mapping[str, Any], path: Path) -> None:
    """Write the picture of a plan: who sits where, and what crosses against what it must beat.

    Args:
        document: of ``planner place --json``.
        path: where to; its name ends in ``.svg`` or ``.png``.
    """
    write_sheet(plan_sheet(checked_plan(document, path)), path)


def plan_sheet(plan: PlanFile) -> Sheet:
    """Return the sheet of a plan."""
    inputs = plan.document["inputs"]
    title = (
        f"{inputs['model']} on {inputs['gpus']:,} GPUs of {inputs['cluster']}, "
        f"{layout_words(inputs['layout'])}"
    )
    tier = plan.document["cut"]["tier"]
    leaving = total_between(plan).sum(axis=1)
    under = (
        f"; the bar under it, what goes to and from others: {format_bytes(leaving.max())} at most"
    )
    stages = stages_of(plan.document)
    return Sheet(
        title=title,
        pictures=[
            (
                f"{box_words(plan)}{under if leaving.any() else ''}",
                seats(seat_map(plan, crossings(plan), leaving)),
            ),
            *([("", key_of_stages(stages))] if stages > 1 else []),
            (f"Bytes of a step that cross the border of a {tier}", cut_bars(plan)),
        ],
    )
