"""A comparison's page shows the prices that its money is counted with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.conftest import Ran

PRICES = """\
currency: EUR
gpu_hour: {price: 2.25, source: "quote <17>", date: 2026-01-05}
kwh: {price: 0.12, source: contract, date: 2026-02-01}
"""


def test_every_price_stands_with_its_source_and_date(
    planner: Callable[..., Ran], tmp_path: Path
) -> None:
    prices, sizes, page = (tmp_path / name for name in ("p.yaml", "sizes.json", "sizes.html"))
    prices.write_text(PRICES, encoding="utf-8")

    compared = planner(
        "compare", "--supernode", "8,64", "--gpus", "64", "--model", "llama-3.1-8b",
        "--prices", str(prices), "--out", str(sizes),
    )  # fmt: skip
    reported = planner("report", str(sizes), "--out", str(page))

    assert (compared.code, reported.code) == (0, 0), compared.err + reported.err
    html = page.read_text(encoding="utf-8")
    listed = html[html.index("Price list</caption>") :].split("</table>")[0]
    for said in ("2.25 EUR", "quote &lt;17&gt;", "2026-01-05", "0.12 EUR", "contract"):
        assert said in listed
