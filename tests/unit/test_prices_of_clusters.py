"""A part may cost something else in one cluster: its price there goes before that for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.price_notes import price_notes
from planner.errors import SpecError
from planner.procure.bill import bill_of_materials
from planner.procure.price_file import read_prices
from planner.procure.prices import Price, PriceList
from planner.search.price_flips import Bid, price_flips, price_now
from topologies.fabric_catalogue import generic_cluster

PARTS = ("H100-SXM", "server", "supernode", "nic", "scale_up_switch", "leaf", "nic-leaf")


def one(price: float, power_w: float | None = 0.0) -> Price:
    return Price(price=price, source="quote", date="2026-01-01", power_w=power_w)


def listed(**own: dict[str, Price]) -> PriceList:
    items = {name: one(100.0, 10.0) for name in PARTS}
    return PriceList(
        currency="EUR", items=items, years=1.0, kwh=one(0.0),
        clusters={name.replace("_", "-"): prices for name, prices in own.items()},
    )  # fmt: skip


def test_a_price_for_one_cluster_is_that_of_no_other_and_power_is_kept_where_it_says_none() -> None:
    prices = listed(generic_sn16={"supernode": one(5000.0, None), "leaf": one(7.0, 3.0)})

    lines = {
        size: {
            line.item: line for line in bill_of_materials(generic_cluster(size, 32), prices).lines
        }
        for size in (8, 16)
    }

    assert (lines[16]["supernode"].price, lines[16]["supernode"].power_w) == (5000.0, 10.0)
    assert (lines[16]["leaf"].price, lines[16]["leaf"].power_w) == (7.0, 3.0)
    assert lines[8]["leaf"].price == 100.0
    assert lines[16]["nic"].priced_as == "nic"
    assert lines[16]["leaf"].priced_as == "leaf of generic-sn16"


def test_the_price_of_one_cluster_at_which_it_wins_is_found_apart() -> None:
    prices = listed(generic_sn16={"supernode": one(5000.0)})
    fabrics = {size: generic_cluster(size, 32) for size in (8, 16)}
    bids = [
        Bid(name=f"generic-sn{size}", bill=bill_of_materials(fabric, prices), gpus=32,
            tokens_per_s=1.0)
        for size, fabric in fabrics.items()
    ]  # fmt: skip
    totals = {bid.name: bid.bill.total for bid in bids}

    flips = {flip.name: flip for flip in price_flips(bids, prices)}

    # Two supernodes of 5,000 are all that sets the second apart from the first.
    assert totals["generic-sn8"] is not None
    assert totals["generic-sn16"] == totals["generic-sn8"] + 2 * 5000.0
    assert "price supernode" not in flips
    assert "price supernode of generic-sn16" not in flips  # at a 32nd it still costs something
    cheap = listed(generic_sn16={"supernode": one(5000.0), "nic": one(1.0)})
    bids = [
        Bid(name=bid.name, bill=bill_of_materials(fabric, cheap), gpus=32, tokens_per_s=1.0)
        for bid, fabric in zip(bids, fabrics.values(), strict=True)
    ]
    found = {flip.name: flip for flip in price_flips(bids, cheap)}
    # 32 NICs cost 3,168 less: the second wins where a supernode costs less than 1,584.
    flip = found["price supernode of generic-sn16"]
    assert (flip.before, flip.after) == ("generic-sn8", "generic-sn16")
    assert flip.held_factor * 5000.0 == pytest.approx(1584.0)
    assert price_now("supernode of generic-sn16", cheap) == 5000.0
    assert price_now("supernode", cheap) == 100.0


def test_a_cluster_that_is_not_there_is_told() -> None:
    prices = listed(generic_sn16={"supernode": one(5000.0)}, generic_sn61={"nic": one(1.0)})
    bills = [bill_of_materials(generic_cluster(size, 32), prices) for size in (8, 16)]

    (said,) = price_notes(prices, bills)

    assert said.startswith("--prices: 'nic' of 'generic-sn61' under clusters is not used")


def test_faults_under_clusters_are_named_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(
        "currency: USD\nclusters:\n  a: 3\n  b:\n    nic: {price: 1, source: s, date: yesterday}\n"
    )

    with pytest.raises(SpecError) as caught:
        read_prices(file)

    assert [fault.split(":")[1] for fault in caught.value.faults] == ["3", "5"]
    assert "expected parts, each with its price" in caught.value.faults[0]
