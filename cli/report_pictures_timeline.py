"""A step in time as a picture: a row for each stage, its passes, its traffic, its idle time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cli.report_pictures import WIDTH, Piece, box, number, patterned, picture, word
from cli.report_timeline import KINDS, Span, StepLine
from planner.units import format_time

_LEFT, _RIGHT, _BREAK = 74.0, 8.0, 88.0
_BROKEN_TAIL = 130.0
_LONG_SHARE = 0.6  # of the passes: a piece after them that is longer is broken
_MOST_TOLD = 4096  # above it passes are too narrow to be pointed at, and none says what it is
_LEAST = 0.25  # pixels below which nothing can be seen
_COLOURS = {"F": "c0", "B": "c4", "W": "c2"}
PASSES = (
    Piece(label="forward", value=0, text="", colour="c0"),
    Piece(label="backward", value=0, text="", colour="c4"),
    Piece(label="weight gradients apart", value=0, text="", colour="c2"),
    Piece(label="traffic that lengthens the step", value=0, text="", colour="c5"),
    Piece(label="traffic hidden under the passes", value=0, text="", colour="c1"),
    Piece(label="idle: the pipeline fills, drains or waits", value=0, text="", colour="room"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    per_s: float
    line: StepLine

    def start_x(self, time_s: float) -> float:
        """Return where something that starts at a time of the shortened step is drawn."""
        gap = _BREAK if self.line.left_out and time_s >= self.line.cut_s else 0.0
        return _LEFT + time_s * self.per_s + gap

    def end_x(self, time_s: float) -> float:
        """Return where something that ends at a time of the shortened step is drawn."""
        gap = _BREAK if self.line.left_out and time_s > self.line.cut_s else 0.0
        return _LEFT + time_s * self.per_s + gap


def step_picture(line: StepLine, tail: Sequence[Piece]) -> str:
    """Return the picture of a step.

    Args:
        line: the passes.
        tail: what follows them on every stage, in order, values in seconds; empty pieces are not
            drawn.
    """
    after = [piece for piece in tail if piece.value > 0]
    row = 30.0 if len(line.rows) <= 8 else 21.0
    scale, widths = _scaled(line, after)
    top, parts = 16.0, []
    places = {stage: top + i * row for i, stage in enumerate(line.rows)}
    end = scale.end_x(line.end_s)
    for (stage, y), idle_s in zip(places.items(), line.idle_s, strict=True):
        parts.append(word(_LEFT - 8, y + row * 0.55, f"stage {stage}", anchor="end", style="small"))
        told = (
            f"idle on stage {stage}: {format_time(idle_s)} of the {format_time(line.pipeline_s)} "
            "of the passes"
        )
        parts.append(box(_LEFT, y, end - _LEFT, row - 8, "room", told))
    if len(line.spans) <= _MOST_TOLD:
        parts += [_pass(s, line, scale, places[s.stage], row - 8) for s in line.spans]
    else:
        parts += _passes(line, scale, places, row - 8)
    parts.append(_lanes(line, scale, places, row - 8))
    parts += _tail(after, widths, end, places, row - 8)
    foot = top + row * len(places)
    parts.append(_critical(line, scale, places))
    if line.left_out:
        parts.append(_break(line, scale, top, foot))
    parts += _axis(line, scale, foot, end + sum(widths), sum(piece.value for piece in after))
    told = (
        f"The step in time, {line.stages} stages: the passes end after "
        f"{format_time(line.pipeline_s)}, the stages work {line.busy_share:.0%} of it"
    )
    return picture(told, foot + 24, "".join(parts))


def _scaled(line: StepLine, tail: Sequence[Piece]) -> tuple[_Scale, list[float]]:
    """Return the scale, and how wide each piece after the passes is."""
    room = WIDTH - _LEFT - _RIGHT - (_BREAK if line.left_out else 0.0)
    broken = [piece.value > _LONG_SHARE * line.end_s for piece in tail]
    rest = sum(p.value for p, is_long in zip(tail, broken, strict=True) if not is_long)
    per_s = (room - _BROKEN_TAIL * sum(broken)) / (line.end_s + rest)
    widths = [
        _BROKEN_TAIL if is_long else piece.value * per_s
        for piece, is_long in zip(tail, broken, strict=True)
    ]
    return _Scale(per_s=per_s, line=line), widths


def _sides(span: Span, scale: _Scale) -> list[tuple[float, float]]:
    """Return where a pass is drawn: left and right, twice where something is left out in it."""
    line = scale.line
    if not line.left_out or not span.start_s < line.cut_s < span.end_s:
        return [(scale.start_x(span.start_s), scale.end_x(span.end_s))]
    return [
        (scale.start_x(span.start_s), scale.end_x(line.cut_s)),
        (scale.start_x(line.cut_s), scale.end_x(span.end_s)),
    ]


def _pass(span: Span, line: StepLine, scale: _Scale, y: float, height: float) -> str:
    shown = f", {format_time(span.shown_s)} of it traffic that shows" if span.shown_s else ""
    title = (
        f"stage {span.stage}, {KINDS[span.kind]} {span.micro_batch}"
        f"{f'.{span.chunk}' if span.chunk else ''}: {format_time(line.when_s(span.start_s))} to "
        f"{format_time(line.when_s(span.end_s))}{shown}"
    )
    body, wide = "", span.shown_s * scale.per_s
    for left, right in _sides(span, scale):
        gap = 0.5 if right - left > 3 else 0.0
        body += box(left, y, right - left - gap, height, _COLOURS[span.kind], title)
    wide = min(wide, right - left)
    if wide >= _LEAST:
        body += _plain(right - gap - wide, y, wide, height, "c5")
    return body


def _passes(line: StepLine, scale: _Scale, places: dict[int, float], height: float) -> list[str]:
    """Return all passes as one path for each colour."""
    pieces: dict[str, list[str]] = {}
    for span in line.spans:
        y = number(places[span.stage])
        for left, right in _sides(span, scale):
            wide = right - left
            shape = f"M{left:.1f} {y}h{wide:.1f}v{number(height)}h{-wide:.1f}z"
            pieces.setdefault(_COLOURS[span.kind], []).append(shape)
        shown = min(span.shown_s * scale.per_s, wide)
        if shown >= _LEAST:
            shape = f"M{right - shown:.1f} {y}h{shown:.1f}v{number(height)}h{-shown:.1f}z"
            pieces.setdefault("c5", []).append(shape)
    order = sorted(pieces, key=lambda colour: (colour == "c5", colour))
    return [f'<path class="{colour}" d="{"".join(pieces[colour])}"/>' for colour in order]


def _plain(x: float, y: float, width: float, height: float, style: str) -> str:
    """Return a rectangle that nothing is said of, to a hundredth of a pixel: it may be thin."""
    return (
        f'<rect x="{x:.2f}" y="{number(y)}" width="{width:.2f}" height="{number(height)}" '
        f'class="{style}" pointer-events="none"/>'
    )


def _lanes(line: StepLine, scale: _Scale, places: dict[int, float], below: float) -> str:
    """Return the traffic that runs under the passes, one path for all of it."""
    pieces = []
    for span in line.spans:
        wide = span.hidden_s * scale.per_s
        if wide >= _LEAST and span.end_s > span.start_s:
            y = number(places[span.stage] + below + 1)
            pieces.append(f"M{scale.start_x(span.start_s):.1f} {y}h{wide:.1f}v3h{-wide:.1f}z")
    return f'<path class="c1" d="{"".join(pieces)}"/>' if pieces else ""


def _tail(
    tail: Sequence[Piece], widths: Sequence[float], x: float, places: dict[int, float],
    height: float,
) -> list[str]:  # fmt: skip
    parts = []
    for piece, width in zip(tail, widths, strict=True):
        for y in places.values():
            text = f"{piece.label}: {piece.text}"
            parts.append(patterned(x, y, max(width, 0.8), height, piece, text))
        if width == _BROKEN_TAIL:
            first, last = min(places.values()), max(places.values()) + height
            parts.append(_zigzag(x + width / 2, first, last))
        x += width
    return parts


def _zigzag(x: float, top: float, foot: float) -> str:
    return (
        f'<path class="gap" d="M{number(x)} {number(top - 2)}L{number(x - 8)} {number(foot + 2)}h9'
        f'L{number(x + 9)} {number(top - 2)}z"/>'
    )


def _break(line: StepLine, scale: _Scale, top: float, foot: float) -> str:
    """Return the band that stands for what is left out, and says how much it is."""
    left = _LEFT + line.cut_s * scale.per_s
    ends = f"V{number(foot)}M{number(left + _BREAK)} {number(top - 4)}V{number(foot)}"
    words = (f"{line.left_out:,} more", "micro-batches,", format_time(line.left_out_s))
    return (
        f'<path class="gap" d="M{number(left)} {number(top - 4)}h{number(_BREAK)}V{number(foot)}'
        f'h{number(-_BREAK)}z"/><path class="mark" d="M{number(left)} {number(top - 4)}{ends}"/>'
        + "".join(
            word(left + _BREAK / 2, (top + foot) / 2 - 14 + 13 * i, text, anchor="middle",
                 style="small")
            for i, text in enumerate(words)
        )
    )  # fmt: skip


def _critical(line: StepLine, scale: _Scale, places: dict[int, float]) -> str:
    """Return the longest chain of passes, drawn above the rows that it runs through."""
    corners: list[str] = []
    for span in line.path:
        y = places.get(span.stage)
        if y is None:
            continue
        left, right = scale.start_x(span.start_s), scale.end_x(span.end_s)
        corners += [f"{left:.1f},{number(y - 2)}", f"{right:.1f},{number(y - 2)}"]
    return f'<polyline class="critical" points="{" ".join(corners)}"/>'


def _axis(line: StepLine, scale: _Scale, foot: float, end: float, tail_s: float) -> list[str]:
    """Return the times at the foot: the starts, the ends, and both sides of what is left out."""
    marks = [(scale.start_x(0.0), 0.0)]
    if line.left_out:
        cut = line.cut_s
        marks += [(scale.end_x(cut), cut), (scale.start_x(cut), cut + line.left_out_s)]
    parts = [word(x, foot + 12, format_time(t), anchor="middle", style="small") for x, t in marks]
    last = scale.end_x(line.end_s)
    parts.append(word(last, foot + 12, format_time(line.pipeline_s), style="small",
                      anchor="middle" if last < WIDTH - 40 else "end"))  # fmt: skip
    if end - last > 60:
        parts.append(word(end, foot + 12, format_time(line.pipeline_s + tail_s), anchor="end",
                          style="small"))  # fmt: skip
    return parts
