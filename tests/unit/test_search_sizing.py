"""Sizes within a budget, against every count; prices that flip the cheapest, against algebra."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf
from random import Random

import pytest

from planner.errors import InputError
from planner.procure.bill import Bill, BillLine, bill_of_materials
from planner.procure.budget import BOUGHT, OWNED, RENT, money_of, parse_amount, power_of
from planner.procure.prices import Price, PriceList
from planner.search.price_flips import Bid, cheapest, price_flips
from planner.search.sizing import (
    best_within,
    least_between,
    least_for,
    most_within,
    supernode_counts,
)
from topologies.fabric_catalogue import generic_cluster


def price(amount: float, power_w: float = 0.0) -> Price:
    return Price(price=amount, source="s", date="2026-01-01", power_w=power_w)


@pytest.mark.parametrize("limit", [0.0, 9.9, 10.0, 95.0, 5119.0, 5120.0, 1e9])
def test_the_most_within_a_budget_is_the_last_that_it_pays(limit: float) -> None:
    paid = [count for count in range(1, 513) if 10.0 * count <= limit]

    assert most_within(lambda count: 10.0 * count, limit, 512) == max(paid, default=0)


def test_counts_are_never_an_eighth_apart_and_have_small_odd_parts() -> None:
    counts = supernode_counts(5000)

    assert counts[:16] == list(range(1, 17))
    for low, high in pairwise(counts[8:]):
        assert high / low <= 1.125
    assert all(count // (count & -count) <= 15 for count in counts)


@pytest.mark.parametrize("wanted", [1.0, 3.0, 47.9, 48.0, 100.0, 3000.0, 3001.0])
def test_the_fewest_for_a_rate_are_the_first_that_reach_it(wanted: float) -> None:
    counts = supernode_counts(1000)
    enough = [count for count in counts if 3.0 * count >= wanted]

    for start in (1, 20, 900):
        found = least_for(lambda count: 3.0 * count, wanted, 1000, start)
        assert found == (enough[0] if enough else 0)


def test_a_count_that_no_layout_divides_is_passed_over() -> None:
    assert best_within(lambda count: 0.0 if count in {15, 14} else float(count), 15) == 13
    assert best_within(lambda count: 0.0 * count, 15) == 0


def test_money_is_rent_or_purchase_or_purchase_and_energy() -> None:
    fabric = generic_cluster(8, 64)
    parts = {
        name: price(100.0, 1000.0)
        for name in ("H100-SXM", "nic", "scale_up_switch", "leaf", "nic-leaf")
    }
    bought = PriceList(currency="USD", items=parts)
    owned = PriceList(currency="USD", items=parts, kwh=price(0.1), years=2.0, overhead_ratio=1.5)
    rented = PriceList(currency="USD", items={}, gpu_hours={"H100-SXM": price(3.0)})

    count = 64 + 64 + 32 + 1 + 64
    watts = 1000.0 * count * 1.5
    bills = [bill_of_materials(fabric, one) for one in (bought, owned, rented)]
    assert money_of(64, bills[0], bought).amount == pytest.approx(100.0 * count)
    assert power_of(bills[1], owned).amount == pytest.approx(watts)
    energy = watts / 1000.0 * 2 * 365 * 24 * 0.1
    assert money_of(64, bills[1], owned).amount == pytest.approx(100.0 * count + energy)
    assert money_of(64, bills[2], rented).amount == pytest.approx(192.0)
    lists = (bought, owned, rented)
    bases = [money_of(64, bill, one).basis for bill, one in zip(bills, lists, strict=True)]
    assert bases == [BOUGHT, OWNED, RENT]


def test_what_has_no_price_or_power_is_named() -> None:
    fabric = generic_cluster(8, 64)
    prices = PriceList(currency="USD", items={"H100-SXM": price(1.0)})

    with pytest.raises(InputError, match=r"no price for nic, .*leaf.* and no gpu_hour of H100-SXM"):
        money_of(64, bill_of_materials(fabric, prices), prices)
    with pytest.raises(InputError, match="nobody said what these draw: nic, scale_up_switch, leaf"):
        power_of(bill_of_materials(fabric, prices), prices)


@pytest.mark.parametrize(("text", "amount"), [("120M", 120e6), ("3.5e6", 3.5e6), ("2 B", 2e9)])
def test_an_amount_has_the_suffixes_people_write(text: str, amount: float) -> None:
    assert parse_amount(text) == pytest.approx(amount)


def bid(name: str, rate: float, **items: int) -> Bid:
    lines = tuple(
        BillLine(item=item, count=count, link_bytes_per_s=0.0, power_w=1.0, price=10.0, source="s")
        for item, count in items.items()
    )
    bill = Bill(lines=lines, currency="USD", unpriced=(), without_power=(), accelerator="gpu")
    return Bid(name=name, bill=bill, gpus=1, tokens_per_s=rate)


def test_the_price_at_which_another_is_cheapest_solves_the_balance() -> None:
    prices = PriceList(
        currency="USD", items={"gpu": price(10.0, 1.0), "nic": price(10.0, 1.0)},
        kwh=price(0.0), years=1.0,
    )  # fmt: skip
    few, many = bid("few", 10.0, gpu=10, nic=1), bid("many", 11.0, gpu=10, nic=4)

    found = {one.name: one for one in price_flips([few, many], prices)}

    # (100 + 10 f) / 10 = (100 + 40 f) / 11 where one NIC costs 10 f
    assert cheapest([few, many], prices) == "few"
    balance = (1100 - 1000) / (400 - 110)
    assert found["price nic"].factor == pytest.approx(balance, rel=2e-6)
    assert (found["price nic"].before, found["price nic"].after) == ("few", "many")
    assert found["price nic"].kind == "cheapest"


def test_where_two_cost_the_same_now_a_hair_decides_and_twins_never_flip() -> None:
    prices = PriceList(
        currency="USD", items={"gpu": price(10.0, 1.0), "nic": price(10.0, 1.0)},
        kwh=price(0.0), years=1.0,
    )  # fmt: skip
    even, more = bid("even", 10.0, gpu=10, nic=10), bid("more", 10.0, gpu=5, nic=15)

    found = price_flips([even, more], prices)
    twins = price_flips([even, replace(even, name="twin")], prices)

    assert twins == []
    told = {(one.name, one.before, one.after, round(one.factor, 5)) for one in found}
    # 100 + 100 and 50 + 150: a dearer GPU or a cheaper NIC, by nothing, makes "more" the cheapest
    assert told == {("price gpu", "even", "more", 1.0), ("price nic", "even", "more", 1.0)}


def test_of_three_the_nearest_price_names_who_is_cheapest_just_beyond_it() -> None:
    prices = PriceList(currency="USD", items={"gpu": price(10.0, 1.0), "nic": price(10.0, 1.0)},
                       kwh=price(0.0), years=1.0)  # fmt: skip
    bids = [bid("few", 10.0, gpu=10, nic=1), bid("some", 10.5, gpu=10, nic=2),
            bid("many", 11.0, gpu=10, nic=4)]  # fmt: skip

    (nic,) = (one for one in price_flips(bids, prices) if one.name == "price nic")

    # (100 + 10 f) / 10 = (100 + 20 f) / 10.5, before (100 + 40 f) / 11 comes in at 100 / 290
    assert cheapest(bids, prices) == "few"
    assert (nic.before, nic.after) == ("few", "some")
    assert nic.factor == pytest.approx((1050 - 1000) / (200 - 105), rel=2e-6)


def test_without_money_there_are_no_prices_to_flip() -> None:
    both = [bid("a", 1.0, gpu=1), bid("b", 2.0, gpu=3)]

    assert price_flips(both, None) == []
    assert price_flips(both, PriceList(currency="USD", items={})) == []


@pytest.mark.parametrize("seed", range(20))
def test_no_fewer_supernodes_would_do_whatever_degrees_divide(seed: int) -> None:
    random = Random(seed)
    counts = supernode_counts(300)
    rates = {one: one * random.choice([0.72, 0.85, 1.0]) * one**-0.02 for one in counts}
    wanted = rates[random.choice(counts)]
    start = random.choice(counts)

    found = least_for(lambda count: rates[count], wanted, 300, start)

    assert found == next(one for one in counts if rates[one] >= wanted)


def test_a_run_that_nothing_is_fast_enough_for_asks_few_sizes() -> None:
    asked: list[int] = []

    def rate(count: int) -> float:
        asked.append(count)
        return float(count)

    assert least_for(rate, 1e9, 1000, 16) == 0
    assert min(asked) >= 16


def test_what_cannot_be_built_larger_is_bought_as_large_as_it_can_be() -> None:
    def cost(count: int) -> float:
        return 10.0 * count if count <= 20 else inf

    assert most_within(cost, 1e9, 1000) == 20


@pytest.mark.parametrize("seed", range(20))
def test_between_two_sizes_the_fewest_that_do_are_found(seed: int) -> None:
    random = Random(seed)
    rates = {one: 3.0 * one * random.choice([0.72, 0.97, 1.0]) for one in range(1, 161)}
    wanted = 3.0 * random.randint(141, 158)
    first = next((one for one in range(1, 160) if rates[one] >= wanted), 160)

    assert least_between(lambda count: rates[count] >= wanted, 160, wanted, 3.0) == first


def test_between_far_sizes_few_are_tried() -> None:
    asked: list[int] = []

    def does(count: int) -> bool:
        asked.append(count)
        return count >= 15_301

    assert least_between(does, 16_384, 42_000.0, 3.0) == 15_301
    assert len(asked) <= 40
