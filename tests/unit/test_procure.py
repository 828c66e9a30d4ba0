"""Bills, power and money, recomputed by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cli.unfilled_words import unused_ports_words
from planner.errors import InputError, SpecError
from planner.fabric import Fabric
from planner.fabric_parts import SwitchPorts
from planner.procure.bill import bill_of_materials
from planner.procure.price_file import read_prices
from planner.procure.prices import Price, PriceList
from planner.procure.run import parse_tokens, run_of
from planner.search.price_flips import Bid, cheapest, price_flips
from topologies.fabric_catalogue import generic_cluster, load_cluster

GPU, NIC = "H100-SXM", "nic"
RENT = PriceList(currency="USD", items={},
                 gpu_hour=Price(price=2.0, source="s", date="2026-01-01"))  # fmt: skip


def bought(**more: float) -> PriceList:
    """A list with a price of 100 for every part of the 64-GPU cluster, and 1 kW for switches."""
    items = {
        name: Price(price=100.0, source="s", date="2026-01-01", power_w=power)
        for name, power in {GPU: None, NIC: 25.0, "scale_up_switch": 1000.0, "leaf": 1000.0,
                            "nic-leaf": None}.items()
    }  # fmt: skip
    kwh = Price(price=0.1, source="s", date="2026-01-01")
    return PriceList(currency="EUR", items=items, kwh=kwh, years=4.0,
                     overhead_ratio=more.get("overhead", 1.25))  # fmt: skip


def test_a_cluster_of_eight_hosts_has_four_nvswitches_a_host_and_one_nic_a_gpu() -> None:
    bill = bill_of_materials(generic_cluster(8, 64), None)

    counts = {line.item: line.count for line in bill.lines}
    assert counts == {GPU: 64, "server": 8, NIC: 64, "scale_up_switch": 8 * 4, "leaf": 1,
                      "nic-leaf": 64}  # fmt: skip
    assert bill.total is None
    assert set(bill.unpriced) == set(counts) - {"server"}
    assert bill.known_power_w == 64 * 700.0


def test_a_small_cluster_counts_the_leaves_of_all_rails_and_their_unused_ports() -> None:
    # A scalable unit of H100s has 8 leaves, one a rail, each for 32 machines: DGX SuperPOD.
    small = bill_of_materials(load_cluster("hgx-h100", gpus=16), None)
    whole = bill_of_materials(load_cluster("hgx-h100", gpus=256), None)

    assert small.ports[0] == SwitchPorts(item="leaf", ports=256, used=16)
    assert "of the leaves (94 %) are unused" in unused_ports_words(small.ports)
    assert whole.ports[0] == SwitchPorts(item="leaf", ports=256, used=256)
    assert unused_ports_words(whole.ports) == ""


def test_a_mesh_and_a_cluster_of_which_nobody_told_ports_say_nothing_of_them() -> None:
    assert bill_of_materials(load_cluster("ub-mesh-64", gpus=128), None).ports == ()
    assert bill_of_materials(load_cluster("tpu-torus"), None).ports == ()


def test_one_supernode_that_holds_all_still_needs_its_cables() -> None:
    counts = {line.item: line.count for line in bill_of_materials(generic_cluster(384, 384),
                                                                  None).lines}  # fmt: skip

    # Six leaves of 64 ports down hold 384 NICs; each port down has one up, to three spines.
    assert (counts["nic"], counts["leaf"], counts["spine"]) == (384, 6, 3)
    assert (counts["nic-leaf"], counts["leaf-spine"]) == (384, 384)
    assert not [item for item in counts if "gpu" in item or "scale_up_switch-" in item]


def test_what_costs_nobody_knows_how_much_is_not_the_cheapest() -> None:
    bill = bill_of_materials(generic_cluster(8, 64), None)
    known = Bid(name="known", bill=replace(bill, accelerator="A"), gpus=64, tokens_per_s=1e6)
    unknown = replace(known, name="unknown", bill=replace(bill, accelerator="B"))
    rent = Price(price=2.0, source="s", date="2026-01-01")
    prices = PriceList(currency="USD", items={}, gpu_hours={"A": rent})

    with pytest.raises(InputError, match="unknown: no money a token"):
        cheapest([known, unknown], prices)


def test_without_a_price_list_there_is_no_money_and_the_reason_is_said() -> None:
    run = run_of(1e6, 64, bill_of_materials(generic_cluster(8, 64), None), None, 1e12)

    assert run.cost is None
    assert run.cost_per_token is None
    assert run.why_no_cost == "no price list was given (--prices)"
    assert run.days == pytest.approx(1e12 / 1e6 / 86_400)


def test_rent_is_gpus_times_hours_times_price() -> None:
    run = run_of(1e6, 64, bill_of_materials(generic_cluster(8, 64), RENT), RENT, 3.6e12)

    assert run.cost == pytest.approx(64 * 1000 * 2.0)
    assert run.tokens_per_day == pytest.approx(8.64e10)


def test_a_purchase_is_written_off_over_its_life_and_pays_for_its_power() -> None:
    prices = bought()
    bill = bill_of_materials(generic_cluster(8, 64), prices)

    run = run_of(1e6, 64, bill, prices, 1e6 * 365 * 86_400)

    parts = 64 + 64 + 32 + 1 + 64
    power_w = (64 * 700 + 64 * 25 + 33 * 1000) * 1.25
    assert bill.total == pytest.approx(100 * parts)
    assert run.power_w == pytest.approx(power_w)
    assert run.energy_j == pytest.approx(power_w * 365 * 86_400)
    assert run.tokens_per_j == pytest.approx(1e6 / power_w)
    assert run.cost == pytest.approx(100 * parts / 4 + power_w / 1000 * 24 * 365 * 0.1)


def test_a_part_that_the_list_says_draws_nothing_is_not_one_of_which_nobody_said() -> None:
    prices = bought()
    passive = replace(prices.items["leaf"], power_w=0.0)
    stated = replace(prices, items={**prices.items, "leaf": passive, GPU: passive})

    bill = bill_of_materials(generic_cluster(8, 64), stated)

    # Also a GPU of which its maker says more: the list goes first.
    assert bill.without_power == ()
    assert bill.known_power_w == 64 * 25 + 32 * 1000


def test_a_list_that_lacks_a_part_gives_no_total_and_names_the_part() -> None:
    whole = bought()
    prices = PriceList(currency="EUR", items={k: v for k, v in whole.items.items() if k != "leaf"},
                       kwh=whole.kwh, years=4.0)  # fmt: skip
    bill = bill_of_materials(generic_cluster(8, 64), prices)

    run = run_of(1e6, 64, bill, prices, None)

    assert bill.total is None
    assert bill.unpriced == ("leaf",)
    assert "a price for leaf" in run.why_no_cost
    assert "the power of leaf" in run.why_no_cost
    assert run.tokens_per_j is None  # of the leaf nobody knows what it draws


def test_racks_of_72_hold_trays_of_four_and_the_last_rack_counts_whole() -> None:
    counts = {line.item: line.count for line in bill_of_materials(load_cluster("gb200-nvl72"),
                                                                  None).lines}  # fmt: skip

    # 1,024 = 14 x 72 + 16; 1,024 / 4 trays.
    assert (counts["server"], counts["supernode"]) == (256, 15)
    eight = bill_of_materials(load_cluster("hgx-h100"), None)
    assert "supernode" not in {line.item for line in eight.lines}  # it is the server


def test_a_server_is_in_the_purchase_and_the_power_where_the_list_has_it() -> None:
    old = bought()
    server = Price(price=5000.0, source="s", date="2026-01-01", power_w=2000.0)
    fabric = generic_cluster(8, 64)
    before = bill_of_materials(fabric, old)
    after = bill_of_materials(fabric, replace(old, items={**old.items, "server": server}))

    # Eight servers: 40,000 EUR more over four years, 16 kW more at 1.25 and 0.1 EUR a kWh.
    assert before.total is not None
    assert after.total == before.total + 40_000
    assert after.known_power_w == before.known_power_w + 16_000
    costs = [run_of(1e6, 64, bill, old, 1e6 * 365 * 86_400).cost for bill in (before, after)]
    assert costs[0] is not None
    assert costs[1] == pytest.approx(costs[0] + 40_000 / 4 + 16 * 1.25 * 24 * 365 * 0.1)


def test_a_list_of_before_without_servers_prices_a_cluster_and_they_are_named() -> None:
    bill = bill_of_materials(generic_cluster(64, 1024), bought())

    assert bill.boxes_without_price == ("server", "supernode")
    assert bill.boxes_without_power == ("server", "supernode")
    assert not {"server", "supernode"} & {*bill.unpriced, *bill.without_power}


def test_the_price_of_a_server_at_which_another_cluster_is_the_cheapest_is_found() -> None:
    one = Price(price=1.0, source="s", date="2026-01-01", power_w=0.0)
    rest = (GPU, "GB200", NIC, "scale_up_switch", "supernode", "leaf", "spine", "nic-leaf",
            "leaf-spine")  # fmt: skip
    prices = PriceList(currency="USD", years=1.0, kwh=replace(one, price=0.0), items={
        **dict.fromkeys(rest, one), "server": replace(one, price=1000.0)})  # fmt: skip
    fabrics = {
        "few": load_cluster("hgx-h100", gpus=64),
        "many": load_cluster("gb200-nvl72", gpus=64),
    }
    bids = [
        Bid(name=name, bill=bill_of_materials(fabrics[name], prices), gpus=64, tokens_per_s=rate)
        for name, rate in (("few", 1.0), ("many", 1.9))
    ]

    flips = [one for one in price_flips(bids, prices) if one.name == "price server"]

    # 8 servers and 492 other parts; 16 servers and 289: 1.9 (8 s + 492) = 16 s + 289.
    assert [(one.before, one.after) for one in flips] == [("few", "many")]
    assert flips[0].factor * 1000 == pytest.approx((1.9 * 492 - 289) / (16 - 1.9 * 8), rel=2e-3)


def test_a_price_list_is_read_with_its_sources(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(
        "currency: USD\nyears: 4\noverhead: 1.2\n"
        "kwh: {price: 0.09, source: contract, date: 2026-01-01}\n"
        "items:\n  leaf: {price: 40000, power: 1.5 kW, source: list, date: 2026-03-01}\n"
    )

    prices = read_prices(file)

    assert prices.items["leaf"] == Price(price=40000.0, source="list", date="2026-03-01",
                                         power_w=1500.0)  # fmt: skip
    assert prices.gpu_hour is None
    assert (prices.years, prices.overhead_ratio, prices.currency) == (4.0, 1.2, "USD")


def test_the_price_list_in_the_documents_is_accepted_and_prices_every_part(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "prices.md").read_text(encoding="utf-8")
    text = page.split("```yaml\n")[1].split("```")[0]
    path = tmp_path / "prices.yaml"
    path.write_text(text, encoding="utf-8")

    prices = read_prices(path)

    for fabric in (generic_cluster(8, 64), generic_cluster(8, 32_768), *shipped_clusters()):
        bill = bill_of_materials(fabric, prices)
        assert bill.unpriced == (), fabric.name
        assert bill.without_power == (), fabric.name
        assert run_of(1e6, len(fabric.gpus), bill, prices, 1e12).cost is not None

    rent = text.replace("# gpu_hour: {", "gpu_hour: {")  # what stands there as a comment
    path.write_text(rent, encoding="utf-8")
    assert read_prices(path).gpu_hour is not None
    before, comment, own = text.partition("# clusters:")
    path.write_text(before + (comment + own).replace("\n# ", "\n")[2:], encoding="utf-8")
    assert read_prices(path).clusters["generic-sn384"]["supernode"].price == 900_000


def shipped_clusters() -> list[Fabric]:
    return [load_cluster(name) for name in ("hgx-a100", "dragonfly-plus", "ub-mesh-64",
                                                 "tpu-torus", "mi300x")]  # fmt: skip


def test_a_file_that_is_no_price_list_is_told_where_one_stands(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text("- 2.5\n")

    with pytest.raises(SpecError, match=r"docs/prices\.md"):
        read_prices(path)


def test_every_fault_of_a_price_list_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("gpu_hour: {price: -1, source: s}\nitems:\n  leaf: 3\nyear: 4\n")

    with pytest.raises(SpecError) as refused:
        read_prices(file)

    faults = "\n".join(refused.value.faults)
    for part in ("currency", "at least 0, got -1", ":1:11: gpu_hour: missing key 'date'",
                 ":3:9: items.leaf: expected price", "unknown key 'year'"):  # fmt: skip
        assert part in faults, faults


@pytest.mark.parametrize(
    ("text", "tokens"), [("15T", 15e12), ("300B", 300e9), ("1e12", 1e12), ("2.5M", 2.5e6)]
)
def test_tokens_have_the_suffixes_people_write(text: str, tokens: float) -> None:
    assert parse_tokens(text) == pytest.approx(tokens)


@pytest.mark.parametrize("text", ["", "0", "-1T", "15 tera", "nan", "1e99", "९T"])
def test_other_tokens_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--tokens: expected a number such as 15T"):
        parse_tokens(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('currency: ""\nitems: {}\n', "currency"),
        ("currency: USD\ngpu_hour: {price: 1, source: s, date: 2026-13-45}\n",
         "gpu_hour.date: expected a day such as 2026-05-01, got '2026-13-45'"),
        ("currency: USD\ngpu_hour: {price: 1e300, source: s, date: 2026-01-01}\n",
         "gpu_hour.price: expected at most 1e+15, got 1e+300"),
    ],
)  # fmt: skip
def test_a_price_list_that_cannot_be_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)

    with pytest.raises(SpecError) as refused:
        read_prices(file)

    assert said in str(refused.value)
