"""Pictures as SVG text: shapes, words, keys, and their names for those who cannot see.

Colours are classes (``c0`` to ``c7``): one stylesheet serves light, dark and paper. All text goes
through ``safe``: a name from a file can never become markup. A picture whose words would be too
small on a telephone is drawn twice, and the page shows the one that fits.

No plotting library: a page with a map of 128 nodes, a heat map of 128 x 128 and 500 points has
0.1 MB this way. Plotly's has 5.2 MB and wants what the page's policy forbids (eval); that of Vega,
1.7 MB, lets ``</script>`` in a title break out; Matplotlib's, 0.43 MB, answers to no pointer.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 960
NARROW = 380  # of a telephone's page: at 390 pixels its words are as large as the page's
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_STRIPE = 6.0  # pixels from stripe to stripe


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One piece of a stacked bar.

    Args:
        label: what it is.
        value: how long it is, at least 0.
        text: the value as people read it.
        colour: class of its colour.
        pattern: ``stripes`` over the colour, or nothing: there are more kinds than colours that
            everybody can tell apart.
    """

    label: str
    value: float
    text: str
    colour: str
    pattern: str = ""


def safe(text: object) -> str:
    r"""Return *text* for HTML and SVG: nothing in it is markup, nothing in it is unseen.

    >>> safe('<b onclick="x">\u202e')
    '&lt;b onclick=&quot;x&quot;&gt;\ufffd'
    """
    return html.escape(_UNSEEN.sub("\ufffd", str(text)), quote=True)


def number(value: float) -> str:
    """Return a coordinate with at most one decimal, the same on every machine.

    >>> number(3.0), number(2.26), number(-0.01)
    ('3', '2.3', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def picture(title: str, height: float, body: str, *, width: float = WIDTH) -> str:
    """Return an SVG with its name for screen readers, in a frame that scrolls on narrow pages."""
    return (
        f'<div class="frame"><svg viewBox="0 0 {number(width)} {number(height)}" role="img" '
        f'aria-label="{safe(title)}">{body}</svg></div>'
    )


def twice(wide: str, narrow: str) -> str:
    """Return a picture and its form for narrow screens; a page shows the one that fits."""
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def word(
    x: float, y: float, text: str, *, anchor: str = "start", style: str = "", most: int = 60
) -> str:
    """Return one line of text, cut at *most* characters."""
    shown = text if len(text) <= most else text[: most - 1] + "…"
    placed = "" if anchor == "start" else f' text-anchor="{anchor}"'
    classed = f' class="{style}"' if style else ""
    return f'<text x="{number(x)}" y="{number(y)}"{placed}{classed}>{safe(shown)}</text>'


def box(
    x: float, y: float, width: float, height: float, style: str, title: str = "", more: str = ""
) -> str:
    """Return one rectangle, with what it says when pointed at."""
    start = (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}" '
        f'height="{number(height)}" class="{style}"{more}'
    )
    return f"{start}><title>{safe(title)}</title></rect>" if title else f"{start}/>"


def patterned(x: float, y: float, width: float, height: float, piece: Piece, title: str) -> str:
    """Return the rectangle of a piece, and its stripes if it has them."""
    drawn = box(x, y, width, height, f"{piece.colour} edge", title)
    return drawn + (_stripes(x, y, width, height) if piece.pattern else "")


def _stripes(x: float, y: float, width: float, height: float) -> str:
    """Return slanting lines inside a rectangle, cut at its sides."""
    lines, start = "", _STRIPE / 2
    while start < width + height:
        left, right = max(start - height, 0.0), min(start, width)
        lines += (
            f"M{number(x + left)} {number(y + start - left)}"
            f"L{number(x + right)} {number(y + start - right)}"
        )
        start += _STRIPE
    return f'<path class="stripes" d="{lines}"/>' if lines else ""


def legend(pieces: Sequence[Piece]) -> str:
    """Return the key of a picture as a list in the page."""
    items = "".join(
        '<li><svg class="key" viewBox="0 0 12 12" aria-hidden="true">'
        f"{patterned(0, 0, 12, 12, p, '')}</svg> {safe(p.label)}"
        f"{f' <b>{safe(p.text)}</b>' if p.text else ''}</li>"
        for p in pieces
    )
    return f'<ul class="legend">{items}</ul>'
