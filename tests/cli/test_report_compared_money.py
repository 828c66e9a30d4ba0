"""Money on the page of a comparison: what is recommended, left out, listed, and fits the screen."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.browser import Browser, opened
from tests.conftest import Ran, run_here

Planner = Callable[..., Ran]
FLAT = ("--tp", "1", "--pp", "1", "--cp", "1", "--zero", "1", "--micro-batch", "1", "--recompute",
        "full", "--seq", "512")  # fmt: skip

PRICES = """\
currency: EUR
gpu_hour:
  H100-SXM: {price: 2, source: quote, date: 2026-05-01}
  GB200: {price: 4, source: quote, date: 2026-05-01}
"""


@pytest.mark.parametrize("budget", ["1M", "40M"])
def test_the_page_of_a_run_says_its_budget_and_who_keeps_to_it(
    planner: Planner, tmp_path: Path, budget: str
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(PRICES)
    out = tmp_path / "days.json"
    asked = ["compare", "--cluster", "hgx-h100", "--cluster", "gb200-nvl72", "--model",
             "llama-3.1-8b", *FLAT, "--prices", str(prices), "--tokens", "10T",
             "--days", "60"]  # fmt: skip
    ran = planner(*asked, "--budget", budget, "--json", "--out", str(out))
    assert ran.code == 0, ran.err
    costs = {one["cluster"]: one["run"]["cost"] for one in json.loads(out.read_text())["ranked"]}
    amount = float(budget.removesuffix("M")) * 1e6
    keep = [name for name, cost in costs.items() if cost <= amount]

    page = planner("report", str(out)).out

    lead = " ".join(re.findall(r'<p class="lead">(.*?)</p>', page))
    assert "10 trillion tokens in 60 days" in lead
    said = lead.partition(f"Done for at most {budget.removesuffix('M')} million EUR by ")[2]
    yes, _, no = said.partition("; not by ")
    assert [name in yes for name in costs] == [name in keep for name in costs]
    assert [name in no for name in costs] == [name not in keep for name in costs]
    if keep:
        assert lead.startswith(tuple(f"Take {name}" for name in keep))
    else:
        assert yes.startswith("none of them")
    assert f"--budget {amount:.0f}" in page


RENTS = """\
currency: EUR
gpu_hour:
  H100-SXM: {{price: 2, source: quote, date: 2026-05-01}}
  B200-SXM: {{price: {dear}, source: quote, date: 2026-05-01}}
"""


@pytest.mark.parametrize(
    ("dear", "more", "said"),
    [
        (2, (), "Take hgx-b200: "),
        (50, (), "Take hgx-b200 if time decides, hgx-h100 if money does: hgx-b200 is the fastest"),
        (50, ("--tokens", "1T", "--days", "20"), "Take hgx-h100, which does the run for the least"),
        (
            None,
            ("--tokens", "1T", "--days", "20"),
            "Take hgx-b200, which does the run with the few",
        ),
    ],
)
def test_the_page_and_the_terminal_recommend_the_same_in_the_same_words(
    planner: Planner, tmp_path: Path, dear: int | None, more: tuple[str, ...], said: str
) -> None:
    prices, out = tmp_path / "prices.yaml", tmp_path / "compared.json"
    prices.write_text(RENTS.format(dear=dear))
    asked = ["compare", "--cluster", "hgx-h100", "--cluster", "hgx-b200", "--model",
             "llama-3.1-8b", *FLAT, "--out", str(out), *more]  # fmt: skip
    asked += [] if "--days" in more else ["--gpus", "64"]
    asked += [] if dear is None else ["--prices", str(prices)]

    ran = planner(*asked)
    page = planner("report", str(out)).out

    assert ran.code == 0, ran.err
    lead = html.unescape(re.findall(r'<p class="lead">(.*?)</p>', page)[0])
    assert lead.startswith(said)
    assert " ".join(ran.out.split()).startswith(lead)
    figures = re.findall(r"<dl class=.figures.>", page)
    assert len(figures) == (2 if "if money does" in lead else 1)


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a comparison of two clusters with prices, of which one is cheaper, one faster."""
    folder = tmp_path_factory.mktemp("priced")
    prices, out = folder / "prices.yaml", folder / "compared.json"
    prices.write_text(RENTS.format(dear=50))
    asked = ("compare", "--cluster", "hgx-h100", "--cluster", "hgx-b200", "--model", "llama-3.1-8b",
             *FLAT, "--gpus", 64, "--prices", prices, "--tokens", "1T")  # fmt: skip
    ran = run_here(*asked, "--out", out)
    assert ran.code == 0, ran.err
    return out


@pytest.mark.parametrize("width", [390, 720, 820, 1024, 1280])
def test_no_table_of_a_comparison_with_prices_is_wider_than_its_screen(
    browser: Browser, planner: Planner, tmp_path: Path, priced: Path, width: int
) -> None:
    browser.send("Emulation.setDeviceMetricsOverride", width=width, height=900,
                 deviceScaleFactor=1, mobile=width < 900)  # fmt: skip

    opened(browser, planner, tmp_path / "report.html", priced)

    wide = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth)"
    assert browser.value(f"{wide}.map(e => e.querySelector('caption').textContent)") == []
    cards = browser.value("getComputedStyle(document.querySelector('.broad tr')).display")
    assert (cards == "block") == (width <= 840)


PARTS = ("H100-SXM", "nic", "scale_up_switch", "leaf", "spine", "nic-leaf", "leaf-spine")


@pytest.mark.parametrize("rented", [False, True])
def test_the_page_of_a_comparison_says_which_boxes_its_purchase_leaves_out(
    planner: Planner, tmp_path: Path, rented: bool
) -> None:
    line = "{price: 100, power: 1 W, source: quote, date: 2026-05-01}"
    prices, out = tmp_path / "prices.yaml", tmp_path / "compared.json"
    prices.write_text(
        f"currency: EUR\nyears: 4\nkwh: {line.replace(', power: 1 W', '')}\nitems:\n"
        + "".join(f"  {one}: {line}\n" for one in PARTS)
        + ("gpu_hour: {price: 2, source: s, date: 2026-05-01}\n" if rented else "")
    )
    where = ("--supernode", "8,16", "--gpus", "32", "--model", "llama-3.1-8b", *FLAT,
             "--prices", str(prices))  # fmt: skip

    ran = planner("compare", *where, "--out", str(out))
    page = planner("report", str(out)).out

    assert ran.code == 0, ran.err
    said = "Not in the purchase, for want of a price in the list: server, supernode."
    assert (said in page) is not rented
    assert (said in " ".join(ran.out.split())) is not rented
    assert ("32 x 100 = 3,200" in page) is not rented
    assert ("What it costs to buy" in ran.out) is not rented


SOURCED = """\
currency: EUR
gpu_hour: {price: 2.25, source: "quote <17>", date: 2026-01-05}
kwh: {price: 0.12, source: contract, date: 2026-02-01}
items:
  leaf: {price: 7, source: list, date: 2026-03-01}
  GB200: {price: 9999, source: list, date: 2026-03-01}
"""


def test_every_price_stands_with_its_source_and_date(planner: Planner, tmp_path: Path) -> None:
    prices, sizes, page = (tmp_path / name for name in ("p.yaml", "sizes.json", "sizes.html"))
    prices.write_text(SOURCED, encoding="utf-8")

    compared = planner(
        "compare", "--supernode", "8,64", "--gpus", "64", "--model", "llama-3.1-8b", *FLAT,
        "--prices", str(prices), "--out", str(sizes),
    )  # fmt: skip
    reported = planner("report", str(sizes), "--out", str(page))

    assert (compared.code, reported.code) == (0, 0), compared.err + reported.err
    html = page.read_text(encoding="utf-8")
    listed = html[html.index("Price list</caption>") :].split("</table>")[0]
    for said in ("2.25 EUR", "quote &lt;17&gt;", "2026-01-05", "0.12 EUR", "contract"):
        assert said in listed
    assert ">leaf</td>" in listed
    assert "9,999 EUR" not in listed
    assert "1 more price: of parts that no cluster here has." in html
    front = html.partition("Not beaten in everything at once")[2].partition("</table>")[0]
    assert ">A million tokens</th>" in front
    title = "(tokens a second, memory to spare, switches, money a token)"
    assert title in " ".join(compared.out.split())
