"""``planner report`` as a user runs it, and its page as a browser shows it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.browser import Browser, opened
from tests.conftest import Ran


def test_a_plan_becomes_one_page(
    planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "report.html"

    ran = planner("report", str(plan_file), "--out", str(out))

    assert (ran.code, ran.out) == (0, "")
    assert ran.err.strip() == f"wrote {out}"
    page = out.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    document = json.loads(plan_file.read_text())
    assert document["inputs"]["sha256"] in page
    for text in document["inputs"]["assumed"].values():
        assert text.split(":")[0] in page
    assert "count different" not in page
    assert "one of the two is wrong" not in page
    assert "counted again it is not" not in page


def test_racks_that_the_gpus_do_not_fill_are_told_in_the_terminal_and_on_every_page(
    planner: Callable[..., Ran], tmp_path: Path
) -> None:
    plan, compared = tmp_path / "plan.json", tmp_path / "compared.json"
    where = ("--cluster", "gb200-nvl72", "--gpus", "80", "--model", "llama-3.1-8b", "--zero", "1",
             "--cp", "1", "--tp", "1", "--pp", "1", "--micro-batch", "1")  # fmt: skip

    placed = planner("place", *where, "--out", str(plan))
    ranked = planner("compare", *where, "--out", str(compared))
    pages = [planner("report", str(one)).out for one in (plan, compared)]

    said = "80 GPUs do not fill supernodes of 72: 1 is full, {} holds 8, 64 short of it."
    assert said.format("sn01") in " ".join(placed.out.split())
    assert f"gb200-nvl72: {said.format('sn01')}" in " ".join(ranked.out.split())
    assert said.format("sn01") in pages[0]
    assert f"gb200-nvl72: {said.format('one')}" in pages[1]


def test_the_page_goes_to_stdout_where_no_file_is_named(
    planner: Callable[..., Ran], plan_file: Path
) -> None:
    first, again = planner("report", str(plan_file)), planner("report", str(plan_file))

    assert first.code == 0
    assert first.out.endswith("</html>\n")
    assert first.out == again.out


def test_every_bad_file_is_named_and_nothing_is_written(
    planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    cut, other, out = tmp_path / "cut.json", tmp_path / "other.json", tmp_path / "report.html"
    cut.write_bytes(plan_file.read_bytes()[:5000])
    other.write_text("{}")

    ran = planner("report", str(plan_file), str(cut), str(other), str(tmp_path / "none.json"),
                  "--out", str(out))  # fmt: skip

    assert ran.code == 2
    assert "is cut off here" in ran.err
    assert "other.json: is no plan" in ran.err
    assert "none.json: cannot be read" in ran.err
    assert not out.exists()


@pytest.mark.nightly
def test_1024_gpus_in_three_seconds_and_six_megabytes(
    planner: Callable[..., Ran], tmp_path: Path
) -> None:
    plan, out = tmp_path / "plan.json", tmp_path / "report.html"
    assert (
        planner("place", "--supernode", "64", "--json", "--with-groups", "--out", str(plan)).code
        == 0
    )

    start = time.perf_counter()
    assert planner("report", str(plan), "--out", str(out)).code == 0

    assert time.perf_counter() - start <= 3
    assert out.stat().st_size <= 6e6


def test_a_browser_shows_it_without_an_error_or_a_request(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(plan_file.read_bytes())

    page = opened(browser, planner, tmp_path / "report.html", plan_file, other)

    assert browser.troubles() == []
    assert browser.addresses() == [page.as_uri()]
    assert browser.value("document.querySelectorAll('.cells').length") == 2
    assert (
        browser.value("document.querySelectorAll('.cells')[0].querySelectorAll('.k').length") == 64
    )
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")
    empty = (
        "[...document.querySelectorAll('svg')].filter(s => !s.querySelector('rect,circle')).length"
    )
    assert browser.value(empty) == 0


def test_lighting_a_family_changes_the_picture_even_without_script(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    opened(browser, planner, tmp_path / "report.html", plan_file)
    browser.send("Emulation.setScriptExecutionDisabled", value=False)
    colours = "[...document.querySelectorAll('.k')].map(k => getComputedStyle(k).fill).join()"

    before = browser.value(colours)
    browser.value("document.querySelector('.lit-g').checked = true")
    pipelines = browser.value(colours)
    browser.value("document.querySelector('.lit-a').checked = true")

    assert not browser.value("document.documentElement.classList.contains('scripted')")
    assert len({before, pipelines, browser.value(colours)}) == 3
    grey = "new Set([...document.querySelectorAll('.k')].map(k => getComputedStyle(k).fill)).size"
    assert browser.value(grey) == 1  # no TP group crosses


def test_a_click_shows_the_group_of_a_rank(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    opened(browser, planner, tmp_path / "report.html", plan_file)
    browser.value("document.querySelector('.lit-a').click()")
    click = "new MouseEvent('click', {bubbles: true})"
    browser.value(f"document.querySelector('[data-r=\"4\"]').dispatchEvent({click})")

    assert browser.value("document.querySelectorAll('.pick').length") == 2
    assert browser.value("document.querySelector('.said').textContent") == (
        "Rank 4 is in the group of ranks 4, 5."
    )


def test_a_hostile_name_runs_nothing(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    document = json.loads(plan_file.read_text())
    name = (
        "</title></style></script><script>document.title='owned'</script>"
        "<img src=x onerror=alert(1)>"
    )
    document["inputs"]["model"] = document["inputs"]["cluster"] = name
    document["placement"]["domains"][0]["name"] = '"><script>document.title="owned"</script>'
    hostile = tmp_path / "hostile.json"
    hostile.write_text(json.dumps(document))

    page = opened(browser, planner, tmp_path / "report.html", hostile)

    assert browser.value("document.title").startswith(f"{name} on 64 GPUs")
    assert browser.value("document.querySelectorAll('script').length") == 1
    assert browser.value("document.querySelectorAll('img').length") == 0
    assert browser.troubles() == []
    assert browser.addresses() == [page.as_uri()]


@pytest.mark.parametrize(("stages", "said"), [("2", True), ("1", False)])
def test_the_page_says_whose_times_the_stages_have(
    stages: str, said: bool, planner: Callable[..., Ran], tmp_path: Path
) -> None:
    plan, out = tmp_path / "plan.json", tmp_path / "page.html"
    placed = planner(
        "place", "--supernode", "8", "--gpus", "16", "--model", "llama-3.1-8b", "--tp", "8", "--pp",
        stages, "--global-batch", "16", "--seq", "8192", "--ignore-memory", "--out", str(plan),
    )  # fmt: skip

    reported = planner("report", str(plan), "--out", str(out))

    assert (placed.code, reported.code) == (0, 0), placed.err + reported.err
    whose = "Of the stages each is timed with the slowest group of every degree"
    assert (whose in out.read_text(encoding="utf-8")) is said


def test_the_step_in_time_can_be_pointed_at(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    opened(browser, planner, tmp_path / "report.html", plan_file)
    passes = (
        "[...document.querySelectorAll('rect>title')].filter(t => /^stage \\d/.test(t.textContent))"
    )

    shown = browser.value(f"{passes}.length")
    document = json.loads(plan_file.read_text())

    told = document["stages"]
    assert shown == 2 * 2 * told["chunks"] * told["micro_batches"]  # two stages, two ways
    assert browser.value(f"/: .* to .* s/.test({passes}[0].textContent)")
    wide = f"{passes}.map(t => t.parentNode.getBoundingClientRect().width)"
    assert browser.value(f"Math.min(...{wide})") > 1
    assert browser.value("document.querySelectorAll('.critical').length") == 1
    corners = "document.querySelector('.critical').getBoundingClientRect().width"
    assert browser.value(corners) > 600


def test_long_tables_can_be_filtered(
    browser: Browser, planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    opened(browser, planner, tmp_path / "report.html", plan_file)
    browser.value(
        "(() => { const input = document.querySelector('.filter input'); input.value = 'EP_';"
        "input.dispatchEvent(new Event('input')); })()"
    )
    rows = "[...document.querySelector('.filter').nextElementSibling.querySelectorAll('tbody tr')]"

    left = browser.value(f"{rows}.filter(r => !r.hidden).map(r => r.textContent.toLowerCase())")

    assert 0 < len(left) < browser.value(f"{rows}.length")
    assert all("ep_" in text for text in left)
    assert browser.value("document.querySelector('.filter span').textContent").startswith(
        f"{len(left)} of "
    )


def test_prices_and_tokens_fill_the_columns_of_money(
    planner: Callable[..., Ran], plan_file: Path, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(
        "currency: EUR\ngpu_hour: {price: 2, source: a quote, date: 2026-01-01}\n", encoding="utf-8"
    )
    rate = json.loads(plan_file.read_text())["step"]["tokens_per_s"]

    page = planner("report", str(plan_file), "--prices", str(prices), "--tokens", "1T").out

    cost = 64 * 2 / 3600 / rate * 1e12
    assert f"{cost:,.0f} EUR" in page
    assert f"{1e12 / rate / 86_400:,.3g}" in page
    assert "--prices prices.yaml --tokens 1e+12" in page


def test_a_bad_price_list_and_a_bad_plan_are_told_together(
    planner: Callable[..., Ran], tmp_path: Path
) -> None:
    prices, plan = tmp_path / "prices.yaml", tmp_path / "plan.json"
    prices.write_text("years: -1\n", encoding="utf-8")
    plan.write_text("{}", encoding="utf-8")

    ran = planner("report", str(plan), "--prices", str(prices))

    assert ran.code == 2
    assert "prices.yaml:1:" in ran.err
    assert "plan.json: is no plan" in ran.err


@pytest.mark.nightly
def test_16384_gpus_in_fifteen_seconds_and_six_megabytes(
    browser: Browser, planner: Callable[..., Ran], tmp_path: Path
) -> None:
    plan, out = tmp_path / "plan.json", tmp_path / "report.html"
    sizes = ["--supernode", "8", "--gpus", "16384"]
    assert planner("place", *sizes, "--json", "--out", str(plan)).code == 0

    start = time.perf_counter()
    opened(browser, planner, out, plan)

    assert time.perf_counter() - start <= 15
    assert out.stat().st_size <= 6e6
    assert browser.troubles() == []
    assert 1000 < browser.value("document.querySelectorAll('.k').length") <= 4096


def test_shards_and_replicas_of_hybrid_sharding_are_lit_up_each_by_itself(
    browser: Browser, planner: Callable[..., Ran], tmp_path: Path
) -> None:
    plan = tmp_path / "hybrid.json"
    asked = ("place", "--supernode", "8", "--gpus", "32", "--model", "llama-3.1-8b", "--tp", "1",
             "--cp", "1", "--pp", "1", "--dp", "32", "--zero", "3", "--dp-shard", "16",
             "--global-batch", "32", "--seq", "4096")  # fmt: skip
    assert planner(*asked, "--out", str(plan)).code == 0
    opened(browser, planner, tmp_path / "report.html", plan)
    colours = "[...document.querySelectorAll('.k')].map(k => getComputedStyle(k).fill)"

    seen = {}
    for radio in range(
        browser.value("document.querySelectorAll('.seats input[type=radio]').length")
    ):
        picked = f"document.querySelectorAll('.seats input[type=radio]')[{radio}]"
        browser.value(f"{picked}.click()")
        label = browser.value(f"{picked}.parentNode.textContent").partition(",")[0]
        seen[label] = set(browser.value(colours))

    # 2 groups of 16 shards, 16 groups of 2 replicas in 7 colours in turn
    assert {"DP SHARD", "DP REPLICATE"} <= set(seen)
    assert len(seen["DP SHARD"]) == 2
    assert len(seen["DP REPLICATE"]) == 7
