"""The report's colours: words on every ground can be read, in light, in dark and on paper."""

from __future__ import annotations

import re

import pytest

from cli.report_html_style import SCRIPT, STYLE, policy
from cli.topology_picture import _STYLE as DRAWING_STYLE

LEAST = 4.5  # WCAG 2.2, 1.4.3, level AA
PARTS = ("supernode", "leaf", "spine", "core")


def light(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG has it."""
    digits = colour.lstrip("#")
    digits = "".join(2 * d for d in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def themes() -> dict[str, dict[str, str]]:
    """Return the variables of each theme."""
    found = [
        dict(re.findall(r"--(\w+):(#[0-9a-f]+)", block))
        for block in re.findall(r":root\{([^}]*)\}", STYLE)
    ]
    return dict(zip(("light", "dark", "paper"), found, strict=True))


def test_black_on_white_is_21_to_1() -> None:
    assert contrast("#000", "#fff") == pytest.approx(21)


@pytest.mark.parametrize("theme", ["light", "dark", "paper"])
def test_words_on_the_page_can_be_read(theme: str) -> None:
    colours = themes()[theme]

    for word in ("ink", "soft", "link", "dead"):
        for ground in ("page", "panel"):
            assert contrast(colours[word], colours[ground]) >= LEAST, (word, ground)
    assert contrast(colours["ink"], colours["warn"]) >= LEAST
    assert contrast(colours["ink"], colours["inside"]) >= LEAST


def test_words_on_every_colour_can_be_read() -> None:
    grounds = dict(re.findall(r"\.(c\d)\{fill:(#\w+)\}", STYLE))
    words = dict(re.findall(r"svg \.on-(c\d)\{fill:(#\w+)\}", STYLE))

    assert len(grounds) == len(words) == 8
    for name, ground in grounds.items():
        assert contrast(words[name], ground) >= LEAST, name


@pytest.mark.parametrize(("theme", "nth"), [("light", 0), ("dark", 1)])
def test_names_in_the_boxes_of_a_cluster_can_be_read(theme: str, nth: int) -> None:
    soft = themes()[theme]["soft"]

    for part in PARTS:
        ground = re.findall(rf"\.{part}\{{fill:(#\w+)", STYLE)[nth]
        assert contrast(soft, ground) >= LEAST, part
        alone = re.findall(rf"\.{part}\{{fill:(#\w+)", DRAWING_STYLE)[nth]
        word = re.findall(r"\.small\{[^}]*fill:(#\w+)", DRAWING_STYLE)[nth]
        assert contrast(word, alone) >= LEAST, part


def test_nothing_moves_for_those_who_asked_for_less_motion() -> None:
    moving = re.findall(r"(?:animation|transition|scroll-behavior)[^;}]*", STYLE)

    assert moving == ["scroll-behavior:smooth"]
    before = STYLE.partition("scroll-behavior")[0]
    assert before.rstrip().endswith("@media (prefers-reduced-motion:no-preference){html{")


def test_the_policy_lets_in_this_style_and_this_script_only() -> None:
    assert policy().startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy()
    assert "eval" not in SCRIPT
    assert "innerHTML" not in SCRIPT
