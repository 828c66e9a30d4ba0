"""A step pass by pass: against a schedule worked by hand, and shortened where it repeats."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from cli.report_pictures import Piece
from cli.report_pictures_timeline import step_picture
from cli.report_timeline import passes_drawn, step_line


def stages(count: int, micro_batches: int, **more: Any) -> dict[str, Any]:
    """Return equal stages: 1 s forward, 2 s backward, hops for nothing."""
    return {
        "schedule": "1f1b", "chunks": 1, "micro_batches": micro_batches, "hop_s": 0.0,
        "pipeline_s": 0.0, "forward_s": [1.0] * count, "backward_s": [2.0] * count,
        "weights_s": [1.0] * count, "traffic_s": {}, "exposed_s": {}, **more,
    }  # fmt: skip


def test_three_micro_batches_through_two_stages_take_twelve_seconds() -> None:
    # Stage 0: F0 F1 . B0 F2 B1 . B2; stage 1: . F0 B0 F1 B1 F2 B2, each F 1 s, each B 2 s.
    line = step_line(stages(2, 3))

    assert (line.end_s, line.pipeline_s, line.left_out) == (12.0, 12.0, 0)
    assert line.busy_share == 9 / 12
    first = [(s.kind, s.micro_batch, s.start_s, s.end_s) for s in line.spans if s.stage == 0]
    assert first == [("F", 0, 0, 1), ("F", 1, 1, 2), ("B", 0, 4, 6), ("F", 2, 6, 7), ("B", 1, 7, 9),
                     ("B", 2, 10, 12)]  # fmt: skip
    assert (line.path[0].kind, line.path[0].start_s) == ("F", 0)
    assert (line.path[-1].stage, line.path[-1].end_s) == (0, 12)
    assert all(a.end_s == b.start_s for a, b in zip(line.path, line.path[1:], strict=False))


@pytest.mark.parametrize(("count", "total"), [(2, 1000), (4, 516), (16, 160), (1, 50)])
def test_what_is_left_out_is_counted(count: int, total: int) -> None:
    line = step_line(stages(count, total))

    assert line.left_out > 0
    assert line.pipeline_s == pytest.approx(3.0 * (total + count - 1))
    assert max(span.micro_batch for span in line.spans) == total - 1
    assert line.when_s(line.end_s) == pytest.approx(line.pipeline_s)


@pytest.mark.parametrize(("count", "chunks", "total"), [(2, 2, 400), (4, 8, 128), (16, 2, 512)])
def test_interleaved_stages_fill_and_drain_in_a_chunks_time(
    count: int, chunks: int, total: int
) -> None:
    # Bubble (p - 1)(f + b) / v: arXiv 2104.04473.
    line = step_line(stages(count, total, chunks=chunks))

    assert line.left_out > 0
    assert line.pipeline_s == pytest.approx(3.0 * total + 3.0 * (count - 1) / chunks)


def test_traffic_that_shows_and_that_is_hidden_keeps_its_share_of_a_pass() -> None:
    line = step_line(stages(1, 2, traffic_s={"tp": [0.6]}, exposed_s={"tp": [0.3]}))

    forward = next(span for span in line.spans if span.kind == "F")
    assert forward.shown_s == pytest.approx(0.1)
    assert forward.hidden_s == pytest.approx(0.1)
    assert sum(span.shown_s for span in line.spans) == pytest.approx(2 * 0.3)


def test_of_many_stages_some_rows_are_drawn_and_the_last() -> None:
    line = step_line(stages(40, 40))

    assert line.rows == (*range(0, 40, 3),)
    assert line.rows[-1] == 39
    assert {span.stage for span in line.spans} == set(line.rows)
    assert step_line(stages(39, 39)).rows[-1] == 38


def test_as_many_passes_as_are_said_are_drawn() -> None:
    told = stages(4, 128, chunks=8)

    assert passes_drawn(told) == len(step_line(told).spans)


def test_the_picture_has_every_pass_in_its_place_and_the_chain_above_them() -> None:
    tail = [Piece(label="gradients", value=2.0, text="2 s", colour="c5"),
            Piece(label="nothing", value=0.0, text="0 s", colour="c6")]  # fmt: skip
    drawn = step_picture(step_line(stages(2, 3)), tail)

    root = ET.fromstring(drawn)[0]
    told = {t.text: r for r in root.iter("rect") if (t := r.find("title")) is not None}
    assert len([text for text in told if text and text.startswith("stage ")]) == 12
    second = told["stage 0, backward 0: 4 s to 6 s"]
    per_s = (960 - 74 - 8) / 14.0
    assert float(second.get("x", "")) == pytest.approx(74 + 4 * per_s, abs=0.1)
    assert float(second.get("width", "")) == pytest.approx(2 * per_s, abs=0.6)
    assert len(re.findall("gradients: 2 s", drawn)) == 2
    assert "nothing" not in drawn
    assert len(root.findall("polyline[@class='critical']")) == 1
    assert "idle on stage 1: 3 s of the 12 s of the passes" in told  # works 3 x 3 s
    assert "the passes end after 12 s, the stages work 75%" in root.get("aria-label", "")


def test_a_long_piece_after_the_passes_is_broken_and_leaves_them_their_room() -> None:
    gather = Piece(label="gather", value=500, text="500 s", colour="c5")

    drawn = step_picture(step_line(stages(2, 3)), [gather])

    widest = max(
        float(w) for w, text in re.findall(r'width="([\d.]+)"[^>]*><title>([^<]*)', drawn)
        if text.startswith("gather")
    )  # fmt: skip
    assert widest == 130  # not 42 times as wide as the passes
    assert 'class="gap"' in drawn


def test_thousands_of_passes_become_a_few_shapes() -> None:
    line = step_line(stages(16, 512, chunks=8))

    drawn = step_picture(line, [])

    assert len(line.spans) > 4096
    assert drawn.count("<title>") == 16  # the idle time of each row
    assert len(drawn) < 300_000
    assert f"{line.left_out:,} more" in drawn


def test_a_pass_in_which_something_is_left_out_goes_on_behind_the_gap() -> None:
    for count in (1, 2, 4):
        line = step_line(stages(count, 500))
        drawn = step_picture(line, [])
        per_s = (960 - 74 - 8 - 88) / line.end_s
        shown = [(float(x), float(w)) for x, w in re.findall(
            r'<rect x="([\d.]+)" y="16" width="([\d.]+)"[^>]*><title>stage 0', drawn)]  # fmt: skip
        busy = sum(w for _, w in shown)
        worked = sum(s.end_s - s.start_s for s in line.spans if s.stage == 0)
        assert busy == pytest.approx(worked * per_s, abs=0.6 * len(shown))
        cut = 74 + line.cut_s * per_s
        assert not [x for x, w in shown if cut + 0.2 < x < cut + 87.8]
        assert not [x for x, w in shown if cut + 0.2 < x + w < cut + 87.8]
