"""Parts, power and money in the report: nothing is guessed, and what is missing is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cli.plan_stages import bill_document
from cli.report_html import report
from cli.report_html_bill import accounts, amount, bill_of_file, costs_of
from planner.errors import InputError
from planner.fabric import Fabric
from planner.procure.bill import bill_of_materials
from planner.procure.prices import Price, PriceList
from tests.report_plans import HOSTILE, saved, small_plan, taking

LINES = [
    {"item": "chip", "count": 8, "link_bytes_per_s": 0.0, "power_w": 500.0},
    {"item": "leaf", "count": 2, "link_bytes_per_s": 0.0, "power_w": None},
    {"item": "nic-leaf", "count": 8, "link_bytes_per_s": 5e10, "power_w": None},
]


def price(amount_of_one: float, power_w: float | None = None) -> Price:
    return Price(price=amount_of_one, source="a quote", date="2026-01-01", power_w=power_w)


def listed(**more: Any) -> PriceList:
    items = {"chip": price(1000.0), "leaf": price(500.0, 1000.0), "nic-leaf": price(10.0)}
    return PriceList(**{"currency": "EUR", "items": items, "years": 1.0, "kwh": price(0.1),
                        "overhead_ratio": 1.5, **more})  # fmt: skip


def with_bill() -> dict[str, Any]:
    return {**small_plan(), "bill": {"lines": LINES}}


def test_money_and_power_by_hand(tmp_path: Path) -> None:
    # Parts: 8 x 1000 + 2 x 500 + 8 x 10 = 9080 EUR over 31,536,000 s; (8 x 500 + 2 x 1000) x 1.5
    # = 9 kW at 0.1 EUR/kWh = 0.9 EUR/h; 512 tokens/s.
    found = accounts([saved(tmp_path, with_bill())], listed(), 512 * 3600.0)[0]

    assert found is not None
    assert found.bill.total == 9080
    assert found.run.power_w == 9000
    assert found.run.cost == pytest.approx(9080 * 3600 / 31_536_000 + 0.9)
    assert found.run.days == pytest.approx(1 / 24)
    assert costs_of([found])[0].amount == pytest.approx((9080 / 31_536_000 + 0.9 / 3600) / 512e-6)


def test_money_of_one_plan_stands_in_its_recommendation_and_among_its_figures(
    tmp_path: Path,
) -> None:
    plan = saved(tmp_path, with_bill())

    page = report([plan], listed())

    million = (9080 / 31_536_000 + 0.9 / 3600) / 512e-6  # as by hand above
    assert f"; a million tokens cost {million:.4g} EUR.</p>" in page
    figures = page.partition('<dl class="figures">')[2].partition("</dl>")[0]
    assert re.findall(r"<dt>(.*?)</dt>", figures) == [
        "Across supernodes", "Time of a step", "Tokens a second", "Fullest GPU&#x27;s memory",
        "Power at the meter", "A million tokens",
    ]  # fmt: skip
    assert re.findall(r'"value">(.*?)</dd>', figures) == [
        "120 B", "2 s", "512", "6 GB", "9 kW", f"{million:.4g} EUR",
    ]  # fmt: skip
    assert "a million tokens cost" not in report([plan])


def test_without_prices_there_are_no_columns_of_money_and_the_page_says_why(tmp_path: Path) -> None:
    page = report([saved(tmp_path, with_bill())])

    assert "no price list was given" in page
    assert "Purchase" not in page
    assert "4 kW" in page
    assert "EUR" not in page
    assert "The power lacks leaf switch: nobody said what they draw." in page


def test_a_part_without_a_price_leaves_the_sum_empty(tmp_path: Path) -> None:
    page = report([saved(tmp_path, with_bill())], listed(items={"chip": price(1000.0)}))

    assert "the list has no price for leaf, nic-leaf" in page
    assert "8,000 EUR" in page
    assert "9,080 EUR" not in page


def test_a_server_without_a_price_is_named_and_one_with_a_price_is_paid_for(tmp_path: Path) -> None:
    document = with_bill()
    server = {"item": "server", "count": 2, "link_bytes_per_s": 0.0, "power_w": None}
    document["bill"] = {"lines": [LINES[0], server, *LINES[1:]]}
    plan = saved(tmp_path, document)
    dearer = listed(items={**listed().items, "server": price(2500.0, 100.0)})

    without, whole = report([plan], listed()), report([plan], dearer)

    assert "Not in the purchase, for want of a price in the list: server." in without
    assert "The power lacks server or tray: nobody said what they draw." in without
    assert "9,080 EUR" in without
    assert "14,080 EUR" in whole  # two servers of 2,500 EUR more
    assert "server or tray" in whole
    assert "Not in the purchase" not in whole
    assert "Not in the purchase" not in report([plan], listed(gpu_hour=price(2.0)))


def test_a_plan_of_before_counts_no_servers_and_the_page_says_that_their_price_is_not_used(
    tmp_path: Path,
) -> None:
    prices = listed(items={**listed().items, "server": price(2500.0, 100.0)})

    page = report([saved(tmp_path, with_bill())], prices)

    assert "The price of a server is not used where a plan&#x27;s file counts none" in page


def test_prices_decide_between_plans_that_speed_cannot_tell_apart(tmp_path: Path) -> None:
    dear, cheap = with_bill(), with_bill()
    taking(dear, 1024 / 513)
    cheap["bill"] = {"lines": [{**LINES[0], "count": 4}, *LINES[1:]]}
    plans = [saved(tmp_path, dear, "dear.json"), saved(tmp_path, cheap, "cheap.json")]

    assert "Take cheap, the cheapest of the fastest, at " in report(plans, listed())
    assert "the cheapest" not in report(plans)


def test_the_bill_of_a_file_is_the_bill_of_its_graph(fabric_of_64: Fabric, tmp_path: Path) -> None:
    document = {**small_plan(), "bill": bill_document(fabric_of_64, range(64))}
    document["inputs"]["fabric"]["accelerator"]["name"] = "H100-SXM"
    prices = listed(items={"H100-SXM": price(30_000.0, 650.0), "leaf": price(7.0)})

    assert bill_of_file(document, prices) == bill_of_materials(fabric_of_64, prices)
    assert bill_of_file(document, None) == bill_of_materials(fabric_of_64, None)


@pytest.fixture(scope="module")
def fabric_of_64() -> Fabric:
    from topologies.fabric_catalogue import load_cluster

    return load_cluster("hgx-h100", gpus=64)


def test_a_plan_of_before_has_no_bill_and_the_page_says_how_to_get_one(tmp_path: Path) -> None:
    old = saved(tmp_path, small_plan(), "old.json")

    page = report([old, saved(tmp_path, with_bill(), "new.json")], listed())

    assert "old: its file lists no parts" in page
    assert costs_of(accounts([old], listed(), None)) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_a_currency_and_a_source_are_only_text(tmp_path: Path, name: str) -> None:
    prices = listed(currency=name, items={"chip": Price(price=1.0, source=name, date="x")})

    page = report([saved(tmp_path, with_bill())], prices)

    assert page.count("<script>") == 1
    assert "<img" not in page
    assert "<b>" not in page.replace("</b>", "") or "<title><b>" not in page


def test_lines_that_are_no_lines_are_refused(tmp_path: Path) -> None:
    document = {**small_plan(), "bill": {"lines": [{"item": "chip", "count": -1}]}}

    with pytest.raises(InputError) as caught:
        saved(tmp_path, document)

    assert any("bill.lines[0].count" in fault for fault in caught.value.faults)
    assert any("bill.lines[0].power_w: is missing" in fault for fault in caught.value.faults)


def test_amounts_are_read_at_a_glance() -> None:
    assert amount(37_926_400, "USD") == "37,926,400 USD"
    assert amount(1.7476, "USD") == "1.748 USD"


def test_power_stands_in_the_comparison_and_the_price_list_has_a_hash(tmp_path: Path) -> None:
    plans = [saved(tmp_path, with_bill(), "a.json"), saved(tmp_path, with_bill(), "b.json")]

    page = report(plans, listed())

    table = page.partition("The candidates")[2].partition("</table>")[0]
    assert table.count("9 kW") == 2
    assert "the price list" in page
    other = report(plans, listed(overhead_ratio=1.6))
    hashes = [set(re.findall(">([0-9a-f]{64})<", p)) for p in (page, other)]
    assert len(hashes[0] - hashes[1]) == 1


def test_a_part_that_is_said_to_draw_nothing_is_not_among_those_that_nobody_spoke_of(
    fabric_of_64: Fabric,
) -> None:
    document = {
        "bill": bill_document(fabric_of_64, range(64)),
        "inputs": {"cluster": "a", "fabric": {"accelerator": {"name": "H100-SXM"}}},
    }

    bill = bill_of_file(document, listed(items={"nic": price(1.0, 0.0)}))

    assert "nic" not in bill.without_power
    assert "leaf" in bill.without_power
