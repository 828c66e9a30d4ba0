"""A cluster's wiring as a picture: a row for each kind of part, the GPUs at the bottom."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cli.report_pictures import WIDTH, box, number, safe, word
from planner.units import format_rate
from topologies.fabric_graph import build_graph
from topologies.fabric_spec import FabricSpec

_NETWORK = ("leaf", "spine", "core")
_WORDS = {
    "supernode": ("supernode", "supernodes"),
    "leaf": ("leaf switch", "leaf switches"),
    "spine": ("spine switch", "spine switches"),
    "core": ("core switch", "core switches"),
}
_MOST_SHOWN = 12
_LEFT, _ROW, _BOX = 220.0, 118.0, 44.0
_STYLE = """
svg{color-scheme:light dark;font:13px system-ui,"DejaVu Sans",sans-serif;background:#fff}
text{fill:#1a1a1a}.small{font-size:10.5px;fill:#595959}.strong{font-weight:600}
.supernode{fill:#cfe3f3;stroke:#0072b2}.leaf{fill:#d2ece3;stroke:#009e73}
.spine{fill:#fae7c2;stroke:#b87a00}.core{fill:#f3ddea;stroke:#a8568a}
.wire{stroke:#7a828c;fill:none}.dead{fill:#d55e00;font-weight:600}
@media (prefers-color-scheme:dark){svg{background:#15171a}text{fill:#ececec}.small{fill:#b3b3b3}
.supernode{fill:#0c3a56}.leaf{fill:#0a4434}.spine{fill:#4d3803}.core{fill:#4a2940}
.wire{stroke:#8b939e}.dead{fill:#ff9a5c}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """A cluster's graph with every supernode taken as one part.

    Args:
        rows: parts by kind, the innermost kind first.
        units: switches that a part stands for, or GPUs of a supernode [1].
        rates: what runs between two parts, one direction [bytes/s].
        links: physical links between two parts [1].
    """

    rows: Mapping[str, Sequence[str]]
    units: Mapping[str, int]
    rates: Mapping[tuple[str, str], float]
    links: Mapping[tuple[str, str], int]


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


def wiring_of(graph: Any) -> Wiring:
    """Return the wiring of *graph* between supernodes and switches.

    NICs and the switches inside count as their supernode.
    """
    kinds = dict(graph.nodes(data="kind"))
    part: dict[str, str] = {}
    units: Counter[str] = Counter()
    rows: dict[str, list[str]] = {"supernode": [], **{kind: [] for kind in _NETWORK}}
    for name, vertex in graph.nodes(data=True):
        if vertex["kind"] == "gpu":
            owner = name.split(".")[0]
            if owner not in units:
                rows["supernode"].append(owner)
            part[name] = owner
            units[owner] += 1
        elif vertex["kind"] in _NETWORK:
            part[name] = name
            units[name] = vertex.get("units", 1)
            rows[vertex["kind"]].append(name)
    for name, kind in kinds.items():
        if kind not in {"gpu", *_NETWORK}:
            inside = name.split(".")[0]
            part[name] = inside if inside in units else name
    rates: defaultdict[tuple[str, str], float] = defaultdict(float)
    links: Counter[tuple[str, str]] = Counter()
    for a, b, link in graph.edges(data=True):
        ends = (part[a], part[b])
        if ends[0] != ends[1]:
            pair = (min(ends), max(ends))
            rates[pair] += link["capacity_bytes_per_s"]
            links[pair] += link.get("links", 1)
    return Wiring(
        rows={kind: names for kind, names in rows.items() if names},
        units=units, rates=dict(rates), links=links,
    )  # fmt: skip


def cluster_picture(spec: FabricSpec) -> str:
    """Return the cluster that *spec* describes as an SVG file of its own."""
    drawn = cluster_drawing(spec)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {number(drawn.height)}" '
        f'role="img" aria-label="{safe(drawn.title)}"><title>{safe(drawn.title)}</title>'
        f"<style>{_STYLE}</style>{drawn.body}</svg>\n"
    )


def cluster_drawing(spec: FabricSpec) -> Drawing:
    """Return the drawing of the cluster that *spec* describes."""
    wiring = wiring_of(build_graph(spec))
    kinds = list(wiring.rows)
    level = {name: i for i, kind in enumerate(kinds) for name in wiring.rows[kind]}
    bottom = set(wiring.rows[kinds[0]])
    arcs = any(a in bottom and b in bottom for a, b in wiring.rates)
    dead = _dead(spec)
    height = 56 + _ROW * (len(kinds) - 1) + _BOX + (60 if arcs else 12) + (28 if dead else 0)
    places: dict[str, tuple[float, float]] = {}
    boxes: list[str] = []
    for i, kind in enumerate(kinds):
        y = 56 + _ROW * (len(kinds) - 1 - i)
        boxes.append(_label(kind, wiring, level, i, y))
        boxes += _row(kind, wiring, y, places)
    wires = [
        _wire(pair, wiring, places, same=level[pair[0]] == level[pair[1]])
        for pair in sorted(wiring.rates)
        if pair[0] in places and pair[1] in places
    ]
    title = f"{spec.name}: {_told(wiring)}"
    foot = f"dead, not drawn: {', '.join(dead[:12])}" + (
        f" and {len(dead) - 12} more" if len(dead) > 12 else ""
    )
    parts = [word(12, 28, title, style="strong", most=110), *wires, *boxes]
    if dead:
        parts.append(word(12, height - 14, foot, style="dead", most=130))
    return Drawing(title=title, height=height, body="".join(parts))


def _dead(spec: FabricSpec) -> list[str]:
    """Return what the file says is dead; the graph no longer has it."""
    gpus = [f"GPU {gpu}" for gpu in spec.dead.gpus]
    nics = [f"NIC {nic}" for nic in spec.dead.nics]
    return [*gpus, *nics, *spec.dead.switches, *(" to ".join(link) for link in spec.dead.links)]


def _told(wiring: Wiring) -> str:
    gpus = sum(wiring.units[name] for name in wiring.rows["supernode"])
    parts = [f"{gpus:,} GPUs"]
    for kind, names in wiring.rows.items():
        count = len(names) if kind == "supernode" else sum(wiring.units[name] for name in names)
        parts.append(f"{count:,} {_WORDS[kind][count != 1]}")
    return ", ".join(parts)


def _label(kind: str, wiring: Wiring, level: Mapping[str, int], row: int, y: float) -> str:
    """Return what stands beside a row: how many, and what goes down and up from one of them."""
    names = wiring.rows[kind]
    down: Counter[str] = Counter()
    up: Counter[str] = Counter()
    for (a, b), rate in wiring.rates.items():
        for name, other in ((a, b), (b, a)):
            if level[name] == row and level[other] != row:
                (up if level[other] > row else down)[name] += rate  # type: ignore[assignment]
    count = len(names) if kind == "supernode" else sum(wiring.units[name] for name in names)
    lines = [word(12, y + 12, f"{count:,} {_WORDS[kind][count != 1]}", style="strong")]
    first = names[0]
    told = []
    if down[first]:
        told.append(f"{format_rate(down[first])} down")
    if up[first]:
        told.append(f"{format_rate(up[first])} up")
    if told:
        lines.append(word(12, y + 28, ", ".join(told), style="small"))
    if down[first] and up[first]:
        over = down[first] / up[first]
        lines.append(word(12, y + 42, f"{over:.3g} : 1 oversubscribed" if over > 1.0005 else
                          "not oversubscribed", style="small"))  # fmt: skip
    return "".join(lines)


def _row(kind: str, wiring: Wiring, y: float, places: dict[str, tuple[float, float]]) -> list[str]:
    """Return the boxes of one row; of many the first ones and the last."""
    names = wiring.rows[kind]
    many = len(names) > _MOST_SHOWN
    shown = [*names[: _MOST_SHOWN - 2], names[-1]] if many else list(names)
    slots = len(shown) + many
    step = (WIDTH - _LEFT - 10) / max(slots, 1)
    width = min(step - 8, 110.0)
    parts = []
    for i, name in enumerate(shown):
        slot = i + (many and i == len(shown) - 1)
        x = _LEFT + step * slot + (step - width) / 2
        places[name] = (x + width / 2, y)
        inside = f"{wiring.units[name]:,} GPUs" if kind == "supernode" else (
            f"{wiring.units[name]:,} alike" if wiring.units[name] > 1 else ""
        )  # fmt: skip
        parts.append(box(x, y, width, _BOX, kind, f"{name} {inside}"))
        most = max(3, int(width / 6))
        tail = name if len(name) <= most else "…" + name[1 - most :].lstrip(".")
        parts.append(word(x + width / 2, y + 19, tail, anchor="middle", style="small", most=most))
        parts.append(word(x + width / 2, y + 34, inside, anchor="middle", style="small", most=most))
    if many:
        x = _LEFT + step * (slots - 2) + step / 2
        parts.append(word(x, y + 18, "and", anchor="middle", style="small"))
        more = f"{len(names) - len(shown):,} more"
        parts.append(word(x, y + 32, more, anchor="middle", style="small"))
    return parts


def _wire(
    pair: tuple[str, str], wiring: Wiring, places: Mapping[str, tuple[float, float]], *, same: bool
) -> str:
    """Return one line between two parts, thicker for more; an arc between parts of one row."""
    (xa, ya), (xb, yb) = sorted((places[pair[0]], places[pair[1]]), key=lambda p: (-p[1], p[0]))
    share = wiring.rates[pair] / max(wiring.rates.values())
    links = wiring.links[pair]
    title = (
        f"{pair[0]} to {pair[1]}: {links:,} link{'s' if links > 1 else ''}, "
        f"{format_rate(wiring.rates[pair])}"
    )
    if same:
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
