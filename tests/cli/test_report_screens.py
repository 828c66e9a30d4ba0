"""The report on every screen and on paper: what is seen, how it is reached, and its contrast."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.browser import Browser, opened
from tests.conftest import Ran

PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}


def test_on_a_phone_the_page_keeps_its_width_and_every_number_is_on_it(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    browser.send("Emulation.setDeviceMetricsOverride", **PHONE)
    opened(browser, planner, tmp_path / "report.html", plan_file, plan_file)

    def rightmost(selector: str) -> float:
        seen = f"[...document.querySelectorAll('{selector}')]"
        sides = f"{seen}.map(e => e.getBoundingClientRect()).filter(r => r.width)"
        assert browser.value(f"{sides}.length") > 20, selector
        return float(browser.value(f"Math.max(...{sides}.map(r => r.right))"))

    assert browser.value("document.documentElement.scrollWidth") <= 390
    assert rightmost(".narrow text") <= 390  # bars, parts of the step, memory
    assert rightmost("td") <= 390
    wide = "[...document.querySelectorAll('.frame')].filter(f => f.clientWidth > 0)"
    assert browser.value(f"{wide}.every(f => f.clientWidth <= 390)")
    assert browser.value(f"{wide}.filter(f => f.scrollWidth >= 700).every(f => f.tabIndex === 0)")
    small = "[...document.querySelectorAll('.narrow text')].map(t => t.getBoundingClientRect())"
    assert browser.value(f"Math.min(...{small}.filter(r => r.width).map(r => r.height))") >= 11


def test_on_a_phone_the_whole_map_of_the_seats_is_seen_without_swiping(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    opened(browser, planner, tmp_path / "report.html", plan_file)
    boxes = "[...document.querySelectorAll('.cells .domain')].map(b => b.getBoundingClientRect())"
    wide = browser.value(f"new Set({boxes}.map(r => r.top)).size")
    browser.send("Emulation.setDeviceMetricsOverride", **PHONE)

    assert browser.value(f"{boxes}.length") == 8
    assert browser.value(f"Math.max(...{boxes}.map(r => r.right))") <= 390
    assert browser.value(f"new Set({boxes}.map(r => r.top)).size") > wide
    # a finger's tip lights up the group of a rank
    browser.value("document.querySelector('.lit-c').click()")
    browser.value("document.querySelector('[data-r=\"0\"]').dispatchEvent("
                  "new MouseEvent('click', {bubbles: true}))")  # fmt: skip
    assert browser.value("document.querySelectorAll('.pick').length") > 1
    assert "Rank 0 is in the group of ranks 0, " in browser.value(
        "document.querySelector('.said').textContent"
    )


def test_on_a_phone_each_cell_of_a_card_says_what_it_is(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    browser.send("Emulation.setDeviceMetricsOverride", **PHONE)
    opened(browser, planner, tmp_path / "report.html", plan_file)

    cells = "[...document.querySelectorAll('.cards td')].filter(c => c.clientWidth)"
    told = browser.value(f"{cells}.map(c => getComputedStyle(c, '::before').content)")
    assert len(told) > 100
    assert {'"Share"', '"Premise"', '"Crosses"', '"Power"'} <= set(told)
    heights = (
        "[...document.querySelectorAll('.cards tr')].filter(r => r.cells.length > 3 "
        "&& r.clientHeight).map(r => r.clientHeight / r.cells.length)"
    )
    assert browser.value(f"Math.max(...{heights})") < 60  # no card with blank space in it


def test_the_tab_key_reaches_everything_that_answers_and_only_what_is_seen(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    opened(browser, planner, tmp_path / "report.html", plan_file)
    seen, outlines = [], []
    for _ in range(40):
        for kind in ("keyDown", "keyUp"):
            browser.send("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab",
                         windowsVirtualKeyCode=9)  # fmt: skip
        seen.append(browser.value(
            "(e => [e.tagName, e.className, e.getBoundingClientRect().width > 0 && "
            "e.getBoundingClientRect().left >= 0].join())(document.activeElement)"
        ))  # fmt: skip
        outlines.append(browser.value("getComputedStyle(document.activeElement).outlineWidth"))

    assert seen[0] == "A,skip,true"
    assert all(one.endswith("true") for one in seen)
    assert {one.split(",")[0] for one in seen} >= {"A", "INPUT", "TH"}
    assert set(outlines) == {"3px"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_can_be_read_in_both_themes(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path, theme: str
) -> None:
    browser.send("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": theme}])  # fmt: skip
    opened(browser, planner, tmp_path / "report.html", plan_file)

    def colour(selector: str, name: str) -> list[float]:
        found = browser.value(f"getComputedStyle(document.querySelector('{selector}')).{name}")
        return [int(part) / 255 for part in re.findall(r"\d+", found)[:3]]

    def light(rgb: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    page = light(colour("body", "backgroundColor"))
    assert (page > 0.5) == (theme == "light")
    for selector, name in (("body", "color"), ("nav a", "color"), ("footer", "color"),
                           ("svg text", "fill"), ("svg .small", "fill")):  # fmt: skip
        word = light(colour(selector, name))
        contrast = (max(word, page) + 0.05) / (min(word, page) + 0.05)
        assert contrast >= 4.5, (selector, contrast)


def test_a_table_sorts_by_keyboard(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    opened(browser, planner, tmp_path / "report.html", plan_file)
    table = (
        "[...document.querySelectorAll('caption')]"
        ".find(c => c.textContent.startsWith('Every')).parentNode"
    )
    enter = "new KeyboardEvent('keydown', {key: 'Enter'})"
    for _ in range(2):
        browser.value(f"{table}.tHead.rows[0].cells[3].dispatchEvent({enter})")

    payloads = browser.value(f"[...{table}.tBodies[0].rows].map(r => Number(r.cells[3].dataset.v))")

    assert payloads == sorted(payloads, reverse=True)
    assert len(set(payloads)) > 1


def test_it_prints_on_whole_pages_and_nothing_is_wider(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    opened(browser, planner, tmp_path / "report.html", plan_file)

    paper = browser.paper()

    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 12
    browser.send("Emulation.setEmulatedMedia", media="print")
    browser.send("Emulation.setDeviceMetricsOverride", width=688, height=1000, deviceScaleFactor=1,
                 mobile=False)  # fmt: skip
    assert browser.value("document.documentElement.scrollWidth") <= 688


def test_printed_no_picture_is_taller_than_a_page(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    browser.send("Emulation.setEmulatedMedia", media="print")
    browser.send("Emulation.setDeviceMetricsOverride", width=688, height=1000, deviceScaleFactor=1,
                 mobile=False)  # fmt: skip
    opened(browser, planner, tmp_path / "report.html", plan_file)

    tallest = "Math.max(...[...document.querySelectorAll('svg')].map(s => s.clientHeight))"
    assert browser.value(tallest) <= 1016  # A4 less its margins
    assert browser.value("getComputedStyle(document.querySelector('.filter')).display") == "none"


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_names_of_ten_thousand_characters_keep_the_page_within_its_width(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path, width: int
) -> None:
    plan = json.loads(plan_file.read_text(encoding="utf-8"))
    for name in ("supernode", "sn00", plan["inputs"]["model"], plan["placement"]["gpus"][0]):
        plan = renamed(plan, name, name[:1] + "W" * 10_000)
    hostile = tmp_path / "hostile.json"
    hostile.write_text(json.dumps(plan), encoding="utf-8")
    browser.send("Emulation.setDeviceMetricsOverride", width=width, height=900,
                 deviceScaleFactor=1, mobile=False)  # fmt: skip

    opened(browser, planner, tmp_path / "report.html", hostile)

    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.troubles() == []


def renamed(value: Any, old: str, new: str) -> Any:
    """Return a document with every text *old* made *new*, but for the kinds of its wiring."""
    if isinstance(value, dict):
        return {k: v if k == "kind" else renamed(v, old, new) for k, v in value.items()}
    if isinstance(value, list):
        return [renamed(one, old, new) for one in value]
    return new if value == old else value
