"""A cluster's wiring as a picture: a row for each kind of part, the GPUs at the bottom."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cli.report_pictures import WIDTH, box, number, safe, word
from cli.topology_wiring import Shown, ShownLink, ShownRow, dead_parts, shown_of, wiring_of
from planner.units import format_rate
from topologies.fabric_graph import build_graph
from topologies.fabric_spec import FabricSpec

_WORDS = {
    "supernode": ("supernode", "supernodes"),
    "leaf": ("leaf switch", "leaf switches"),
    "spine": ("spine switch", "spine switches"),
    "core": ("core switch", "core switches"),
}
_BREAKS = (re.compile(r"(.*\.)([^.]+)"), re.compile(r"(.*\D)(\d+)"))  # where a name may break
_MOST_DEAD = 12
_MOST_GHOSTS = 3  # dead switches that a row shows, crossed out
_LEFT, _ROW, _BOX = 220.0, 118.0, 44.0
_TOP, _TITLE = 24.0, 32  # above the first row; and above that, in a file of its own
_STYLE = """
svg{color-scheme:light dark;font:13px system-ui,"DejaVu Sans",sans-serif;background:#fff}
text{fill:#1a1a1a}.small{font-size:10.5px;fill:#595959}.strong{font-weight:600}
.supernode{fill:#cfe3f3;stroke:#0072b2}.leaf{fill:#d2ece3;stroke:#009e73}
.spine{fill:#fae7c2;stroke:#b87a00}.core{fill:#f3ddea;stroke:#a8568a}
.halo{paint-order:stroke;stroke:#fff;stroke-width:4px}
.wire{stroke:#7a828c;fill:none}.dead{fill:#b34700;font-weight:600}
.gone{stroke:#b34700;stroke-width:1.5;stroke-dasharray:4 3;fill:none}
@media (prefers-color-scheme:dark){svg{background:#15171a}.halo{stroke:#15171a}
text{fill:#ececec}.small{fill:#b3b3b3}
.supernode{fill:#0c3a56}.leaf{fill:#0a4434}.spine{fill:#4d3803}.core{fill:#4a2940}
.wire{stroke:#8b939e}.dead{fill:#ff9a5c}.gone{stroke:#ff9a5c}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A drawing before it is a file: its classes still want a stylesheet.

    Args:
        title: what it shows, in words.
        height: of the picture; it is as wide as every picture.
        body: its SVG elements.
    """

    title: str
    height: float
    body: str


def cluster_picture(spec: FabricSpec) -> str:
    """Return the cluster that *spec* describes as an SVG file of its own."""
    return picture_of(shown_of(wiring_of(build_graph(spec)), spec.name, dead_parts(spec)))


def picture_of(shown: Shown) -> str:
    """Return what is shown of a cluster as an SVG file of its own."""
    drawn = drawing_of(shown)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-_TITLE} {WIDTH} '
        f'{number(drawn.height + _TITLE)}" role="img" aria-label="{safe(drawn.title)}">'
        f"<title>{safe(drawn.title)}</title><style>{_STYLE}</style>"
        f"{word(12, 0, drawn.title, style='strong', most=110)}{drawn.body}</svg>\n"
    )


def drawing_of(shown: Shown) -> Drawing:
    """Return the drawing of a cluster, without its title: a page has it beside the picture."""
    rows = shown.rows
    bottom = {part.name for part in rows[0].parts}
    arcs = any(wire.a in bottom and wire.b in bottom for wire in shown.wires)
    height = _TOP + _ROW * (len(rows) - 1) + _BOX + (60 if arcs else 12) + (28 if shown.dead else 0)
    places: dict[str, tuple[float, float]] = {}
    boxes: list[str] = []
    gone: list[str] = []
    for i, row in enumerate(rows):
        y = _TOP + _ROW * (len(rows) - 1 - i)
        ghosts = [name for name in shown.dead if _is_of(name, row.kind)][:_MOST_GHOSTS]
        gone += ghosts
        boxes.append(_label(row, y))
        boxes += _row(row, ghosts, y, places)
    wires = [
        _wire(wire, shown.most_bytes_per_s, places)
        for wire in shown.wires
        if wire.a in places and wire.b in places
    ]
    title = f"{shown.name}: {_told(rows)}"
    parts = [*wires, *boxes]
    if shown.dead:
        for name in shown.dead:
            ends = name.split(" to ")
            if len(ends) == 2 and all(end in places for end in ends):
                parts.append(_broken(ends[0], ends[1], places))
                gone.append(name)
        parts.append(word(12, height - 14, _dead_words(shown.dead, gone), style="dead", most=130))
    return Drawing(title=title, height=height, body="".join(parts))


def _is_of(name: str, kind: str) -> bool:
    """Return whether a dead part is a switch of that kind, by what switches are called.

    >>> _is_of("leaf0.rail3", "leaf"), _is_of("pod1.spine0", "spine"), _is_of("GPU 17", "supernode")
    (True, True, False)
    """
    return kind != "supernode" and " " not in name and any(
        piece.startswith(kind) for piece in name.split(".")
    )  # fmt: skip


def _dead_words(dead: Sequence[str], drawn: Sequence[str]) -> str:
    """Return what is dead: first what the picture does not show."""
    rest = [name for name in dead if name not in drawn]
    listed = ", ".join(rest[:_MOST_DEAD]) + (
        f" and {len(rest) - _MOST_DEAD} more" if len(rest) > _MOST_DEAD else ""
    )
    if not drawn:
        return f"dead, not drawn: {listed}"
    return "dead: crossed out or dashed" + (f"; not drawn: {listed}" if rest else "")


def _told(rows: tuple[ShownRow, ...]) -> str:
    gpus = sum(row.all_units for row in rows if row.kind == "supernode")
    counted = [f"{row.count:,} {_WORDS[row.kind][row.count != 1]}" for row in rows]
    return ", ".join([f"{gpus:,} GPU{'s' if gpus != 1 else ''}", *counted])


def _label(row: ShownRow, y: float) -> str:
    """Return what stands beside a row: how many, and what goes down and up from one of them."""
    down, up = row.down_bytes_per_s, row.up_bytes_per_s
    lines = [word(12, y + 12, f"{row.count:,} {_WORDS[row.kind][row.count != 1]}", style="strong")]
    told = [f"{format_rate(rate)} {side}" for rate, side in ((down, "down"), (up, "up")) if rate]
    if told:
        lines.append(word(12, y + 28, ", ".join(told), style="small"))
    if down and up:
        over = down / up
        lines.append(word(12, y + 42, f"{over:.3g} : 1 oversubscribed" if over > 1.0005 else
                          "not oversubscribed", style="small"))  # fmt: skip
    return "".join(lines)


def _row(
    row: ShownRow, ghosts: Sequence[str], y: float, places: dict[str, tuple[float, float]]
) -> list[str]:
    """Return the boxes of one row, dead ones first; of many the first ones and the last."""
    left_out = row.all_parts - len(row.parts)
    slots = len(ghosts) + len(row.parts) + (left_out > 0)
    step = (WIDTH - _LEFT - 10) / max(slots, 1)
    width = min(step - 8, 110.0)
    parts = [
        _ghost(name, _LEFT + step * i + (step - width) / 2, y, width)
        for i, name in enumerate(ghosts)
    ]
    for i, part in enumerate(row.parts, start=len(ghosts)):
        slot = i + (left_out > 0 and i == len(ghosts) + len(row.parts) - 1)
        x = _LEFT + step * slot + (step - width) / 2
        places[part.name] = (x + width / 2, y)
        inside = _inside(row.kind, part.units)
        parts.append(box(x, y, width, _BOX, row.kind, f"{part.name} {inside}"))
        most = max(3, int(width / 6.8))  # a digit's width
        lines = _lines(part.name, inside, most)
        for line, text in enumerate(lines):
            middle = y + 19 + 15 * line if len(lines) < 3 else y + 13 + 13 * line  # 44 high
            parts.append(word(x + width / 2, middle, text, anchor="middle", style="small",
                              most=most))  # fmt: skip
    if left_out > 0:
        x = _LEFT + step * (slots - 2) + step / 2
        parts.append(word(x, y + 18, "and", anchor="middle", style="small halo"))
        parts.append(word(x, y + 32, f"{left_out:,} more", anchor="middle", style="small halo"))
    return parts


def _ghost(name: str, x: float, y: float, width: float) -> str:
    """Return the box of a dead switch, crossed out."""
    cross = (
        f"M{number(x)} {number(y)}l{number(width)} {number(_BOX)}"
        f"M{number(x)} {number(y + _BOX)}l{number(width)} {number(-_BOX)}"
    )
    most = max(3, int(width / 6.8))
    lines = [
        word(x + width / 2, y + 19 + 15 * i, text, anchor="middle", style="small halo", most=most)
        for i, text in enumerate(_lines(name, "", most))
    ]
    return (
        f'{box(x, y, width, _BOX, "gone", f"{name}: dead")}<path class="gone" d="{cross}"/>'
        + "".join(lines)
    )


def _broken(a: str, b: str, places: Mapping[str, tuple[float, float]]) -> str:
    """Return the dashed line of a dead link."""
    (xa, ya), (xb, yb) = sorted((places[a], places[b]), key=lambda p: -p[1])
    path = f"M{number(xa)} {number(ya)}L{number(xb)} {number(yb + _BOX)}"
    return f'<path class="gone" d="{path}"><title>{safe(f"{a} to {b}: dead")}</title></path>'


def _lines(name: str, inside: str, most: int) -> list[str]:
    """Return what stands in a box: its name, in two lines where one is too short, and its units.

    >>> _lines("sn00.rail7", "", 8), _lines("leaf01", "x 2", 8), _lines("sn00.mesh", "x 16", 7)
    (['sn00.', 'rail7'], ['leaf01', 'x 2'], ['sn00.', 'mesh', 'x 16'])
    >>> _lines("leaf0000", "", 7), _lines("123456789", "", 7)
    (['leaf', '0000'], ['…456789'])
    """
    units = [inside] if inside else []
    if len(name) > most:
        for found in (pattern.fullmatch(name) for pattern in _BREAKS):
            if found is not None:
                return [_ending(found[1], most), _ending(found[2], most), *units]
    return [_ending(name, most), *units]


def _ending(name: str, most: int) -> str:
    """Return a name's end where the whole is too long: names differ there."""
    return name if len(name) <= most else "…" + name[1 - most :].lstrip(".")


def _inside(kind: str, units: int) -> str:
    if kind == "supernode":
        return f"{units:,} GPU{'s' if units > 1 else ''}"
    return f"x {units:,}" if units > 1 else ""


def _wire(
    wire: ShownLink, most_bytes_per_s: float, places: Mapping[str, tuple[float, float]]
) -> str:
    """Return one line between two parts, thicker for more; an arc between parts of one row."""
    (xa, ya), (xb, yb) = sorted((places[wire.a], places[wire.b]), key=lambda p: (-p[1], p[0]))
    share = min(wire.bytes_per_s / most_bytes_per_s, 1.0) if most_bytes_per_s else 0.0
    title = (
        f"{wire.a} to {wire.b}: {wire.links:,} link{'s' if wire.links > 1 else ''}, "
        f"{format_rate(wire.bytes_per_s)}"
    )
    if ya == yb:
        foot = ya + _BOX
        sag = min(50.0, 10 + abs(xb - xa) / 14)
        low, end = f"{number((xa + xb) / 2)} {number(foot + sag)}", f"{number(xb)} {number(foot)}"
        path = f"M{number(xa)} {number(foot)}Q{low} {end}"
    else:
        path = f"M{number(xa)} {number(ya)}L{number(xb)} {number(yb + _BOX)}"
    return (
        f'<path class="wire" stroke-width="{number(0.5 + 1.3 * share)}" d="{path}">'
        f"<title>{safe(title)}</title></path>"
    )
