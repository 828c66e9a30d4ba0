"""The report's page: what it says, what it refuses to become, and what it counts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.report_html import report
from cli.report_html_traffic import (
    crossings,
    rank_order_by_tier,
    rank_order_bytes,
    total_between,
)
from cli.report_html_words import proof_words
from cli.report_pictures import safe
from cli.report_pictures_bars import Bar, bars, rival_bars
from tests.report_plans import (
    HOSTILE,
    Tags,
    crossing_bytes,
    family,
    saved,
    small_plan,
    taking,
)


def test_the_recommendation_says_what_crosses_how_long_and_what_is_in_doubt(tmp_path: Path) -> None:
    page = report([saved(tmp_path, small_plan())])

    lead = re.findall(r'<p class="lead">(.*?)</p>', page)
    assert len(lead) == 3
    assert "tiny on 8 GPUs" in lead[0]
    assert "120 B a step" in lead[0]
    assert "no seating whatever can do better" in lead[0]
    assert "2 s" in lead[1]
    assert "512 tokens/s" in lead[1]
    assert lead[2].startswith("In doubt: of such estimates 90 % fall between 1.5 s and 2.5 s")


def test_the_same_plans_give_the_same_bytes_wherever_they_lie(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()

    first = report([saved(tmp_path / "a", small_plan())])
    second = report([saved(tmp_path / "b", small_plan())])

    assert first == second
    assert str(tmp_path) not in first


def test_what_crosses_is_counted_as_by_hand(tmp_path: Path) -> None:
    plan = saved(tmp_path, small_plan())

    found = crossings(plan)

    assert [crossing.cut_bytes for crossing in found] == [0, 0, 120]
    assert [crossing.crossing for crossing in found] == [0, 0, 4]
    assert total_between(plan).tolist() == [[0, 120], [120, 0]]
    assert rank_order_bytes(plan) == (0, 0, 120)


@pytest.mark.parametrize(
    ("collective", "homes", "bytes_cut"),
    [  # payload 10, 3 times; 4 members in the domains given
        ("all_reduce", [0, 0, 1, 2], 2 * 30 * 2),
        ("all_gather", [0, 0, 1, 2], 30 * 2),
        ("all_to_all", [0, 0, 1, 2], 30 * (2 * 2 + 1 * 3 + 1 * 3)),
        ("ring", [0, 1, 1, 2], 30 * 3),
        ("ring", [1, 1, 1, 1], 0),
        ("chain", [0, 1, 0, 0], 30 * 2),
    ],
)
def test_each_collective_costs_what_the_table_of_cut_bytes_says(
    tmp_path: Path, collective: str, homes: list[int], bytes_cut: float
) -> None:
    document = small_plan()
    document["axes"] = [{"name": "tp", "size": 4, "stride": 1}]
    document["inputs"]["gpus"] = 4
    document["inputs"]["layout"] |= {"tp": 4, "dp": 1, "pp": 1}
    document["inputs"]["fabric"]["tiers"][0]["capacities"] = [4, 4, 4]
    document["traffic"] = [family("one", "tp", ["tp"], collective, group_size=4, groups=1)]
    document["placement"]["rank_to_gpu"] = [4 * home + rank for rank, home in enumerate(homes)]
    document["placement"]["gpus"] = list("wxyz")
    document["placement"]["domains"] = [
        {"name": str(d), "tier": "supernode", "capacity": 4,
         "ranks": [r for r in range(4) if homes[r] == d]} for d in range(3)
    ]  # fmt: skip

    plan = saved(tmp_path, crossing_bytes(document, one=float(bytes_cut)))
    (crossing,) = crossings(plan)

    assert crossing.cut_bytes == bytes_cut
    assert np.isclose(np.triu(total_between(plan), 1).sum(), bytes_cut)


def test_a_baseline_that_counts_otherwise_is_not_split_by_family(tmp_path: Path) -> None:
    document = small_plan()
    document["baselines"][0]["cut_bytes"] = 130.0

    plan = saved(tmp_path, document)

    assert rank_order_bytes(plan) is None
    assert "counted again it is not the file" in report([plan])


def test_changed_inputs_are_said_aloud(tmp_path: Path) -> None:
    document = small_plan()
    document["inputs"]["model"] = "another"

    page = report([saved(tmp_path, document)])

    assert "the file was changed after it was made" in page
    assert "changed after" not in report([saved(tmp_path, small_plan())])


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_becomes_markup_or_script(tmp_path: Path, name: str) -> None:
    def replaced(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: replaced(v) for k, v in value.items()}
        if isinstance(value, list):
            return [replaced(v) for v in value]
        names = {"tiny", "two-boxes", "a", "b", "gpu3", "chip", "by hand", "as it was measured",
                 "a table", "128: as in the test", "tp_reduce", "middle"}  # fmt: skip
        return name if isinstance(value, str) and value in names else value

    clean, dirty = small_plan(), replaced(small_plan())
    dirty["inputs"]["assumed"][name] = name
    clean["inputs"]["assumed"]["x"] = "y"
    dirty["memory"]["parts"][name] = dirty["memory"]["parts"].pop("weights")

    safe_page, page = (report([saved(tmp_path, d)]) for d in (clean, dirty))

    seen = Tags(page)
    assert sorted(set(seen.tags)) == sorted(set(Tags(safe_page).tags))
    assert seen.tags.count("script") == 1
    assert not [k for k, _ in seen.attributes if k.startswith("on") or k in {"src", "style"}]
    assert all(v is not None and v.startswith("#") for k, v in seen.attributes if k == "href")
    assert page.count("<script>") == page.count("</script>") == 1


def test_unseen_characters_are_shown_as_unknown() -> None:
    assert safe("a\u202eb\x1b[31m") == "a\ufffdb\ufffd[31m"


def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    page = report([saved(tmp_path, small_plan())])

    assert "default-src 'none'" in page
    assert "unsafe" not in page
    without_hashes = re.sub(r"'sha256-[\w+/=]+'", "", page)  # Base64 has slashes, too
    assert not re.search(r"https?:|//[a-z]|@import|url\(", without_hashes)


def test_every_picture_has_words_and_every_anchor_a_target(tmp_path: Path) -> None:
    page = report([saved(tmp_path, small_plan()), saved(tmp_path, small_plan(), "other.json")])

    assert all('aria-label="' in svg or 'aria-hidden="true"' in svg
               for svg in re.findall(r"<svg[^>]*>", page))  # fmt: skip
    anchors = re.findall(r'href="#([^"]+)"', page)
    ids = re.findall(r' id="([^"]+)"', page)
    assert set(anchors) <= set(ids)
    assert len(ids) == len(set(ids))


def test_a_comparison_names_the_fastest_and_what_would_flip_it(tmp_path: Path) -> None:
    slow, fast = taking(small_plan(), 2.0, 1.9, 2.1), taking(small_plan(), 1.6, 1.52, 1.68)
    full = taking(small_plan(), 1.0, 0.95, 1.05)
    full["memory"] |= {"fits": False, "capacity_bytes": 5e9}

    page = report([saved(tmp_path, d, f"{n}.json")
                   for d, n in ((slow, "slow"), (fast, "fast"), (full, "full"))])  # fmt: skip

    lead = re.findall(r'<p class="lead">(.*?)</p>', page)
    assert lead[0].startswith("Take fast: 640 tokens/s")
    assert "20 % fewer tokens" in lead[1]
    assert "25 % faster" in lead[1]
    assert lead[2].startswith("In doubt: little of the order by speed, for fast is the faster")
    assert ">640</dd>" in page.partition('class="figures"')[2].partition("</dl>")[0]
    blue = re.findall(r'class="c0 edge"><title>(\w+): [^<]*tokens/s', page)
    assert set(blue) == {"fast"}
    flips = page.partition("Where the winner flips")[2].partition("</table>")[0]
    assert "25 %" in flips  # 640 / 512 - 1
    assert "80 %" in flips  # 512 / 640: at that price both cost the same a token


def test_plans_closer_than_the_model_can_tell_are_called_a_tie(tmp_path: Path) -> None:
    one, two, slow = (taking(small_plan(), 1024 / rate) for rate in (512.0, 510.0, 100.0))
    two["traffic"][2]["payload_bytes"] = 5.0
    crossing_bytes(two, pp_forward=60.0)

    page = report([saved(tmp_path, d, f"{n}.json")
                   for d, n in ((one, "one"), (two, "two"), (slow, "slow"))])  # fmt: skip

    lead = re.findall(r'<p class="lead">(.*?)</p>', page)
    assert lead[0].startswith("Take two, the one that asks least of the network")
    assert lead[1] == (
        "On speed one and two cannot be told apart: two trains 0.39 % fewer tokens a second than "
        "one, closer than the model can tell; slow is surely slower."
    )
    assert "no prices were given" in lead[2]


def test_a_bar_far_beyond_the_rest_is_broken_and_says_so() -> None:
    rows = [Bar(label="ours", value=1, text="1 B"), Bar(label="bound", value=1, text="1 B"),
            Bar(label="random", value=100, text="100 B")]  # fmt: skip

    assert "100 B (off the scale)" in rival_bars("cut", rows)
    assert "off the scale" not in bars("cut", rows)


def test_every_tier_shows_rank_order_beside_the_plan(tmp_path: Path) -> None:
    # The two pipeline stages change places with the two replicas: pp stays inside, dp crosses.
    document = small_plan()
    order = [0, 1, 4, 5, 2, 3, 6, 7]  # ranks on GPUs 0 to 7
    document["placement"]["rank_to_gpu"] = [order.index(rank) for rank in range(8)]
    document["placement"]["domains"][0]["ranks"] = [0, 1, 4, 5]
    document["placement"]["domains"][1]["ranks"] = [2, 3, 6, 7]
    # dp: 4 groups of 2, reduce-scatter of 10 B, 3 times
    plan = saved(tmp_path, crossing_bytes(document, dp_reduce=120.0))

    assert rank_order_by_tier(plan) == {"supernode": 120.0}  # 4 chains of one hop of 10 B, 3 times
    assert "Megatron&#x27;s rank order 120 B" in report([plan])


@pytest.mark.parametrize(
    ("cut", "ruled", "said"),
    [
        ({"proof": "bound"}, False,
         "no seating whatever can do better: the lower bound is as high"),
        ({"proof": "bound"}, True,
         "no seating that keeps the rules can do better: the lower bound is as high"),
        ({"proof": "solver"}, True,
         "the solver proved that no seating of its model that keeps the rules does better"),
        ({"proof": "time_limit"}, False,
         ("not proved best: the search ended with the bound below it, and up to 25 % could still "
         "be saved")),
        ({"proof": "time_limit", "interrupted": True}, True,
         ("not proved best: the search was interrupted, and up to 25 % could still be saved by a "
         "seating that keeps the rules")),
    ],
)  # fmt: skip
def test_what_is_proved_is_said_of_the_seatings_that_it_holds_for(
    cut: dict[str, Any], ruled: bool, said: str
) -> None:
    kept = {"rules": {"rules": ["ep within supernode"]}} if ruled else {}

    assert proof_words({"cut": {"objective": "total", "gap": 0.25, **cut}, **kept}) == said


def test_a_plan_that_is_named_twice_is_said_to_be_one(tmp_path: Path) -> None:
    other = small_plan()
    taking(other, 1.0)
    twice = [saved(tmp_path, small_plan(), f"{name}.json") for name in "ab"]

    page = report([*twice, saved(tmp_path, other, "c.json")])

    assert "a and b hold the same." in page


def test_a_peak_is_that_of_16_bits_where_products_have_8(tmp_path: Path) -> None:
    eighth = small_plan()
    eighth["inputs"]["layout"]["precision"] = "fp8"

    assert "of the 16-bit peak;" in report([saved(tmp_path, eighth)])
    assert "16-bit peak" not in report([saved(tmp_path, small_plan())])


@pytest.mark.parametrize(
    ("step_s", "in_lead", "below"), [(1.0, True, True), (1.99, False, True), (2.0, False, False)]
)
def test_a_seating_with_a_shorter_step_is_named(
    tmp_path: Path, step_s: float, in_lead: bool, below: bool
) -> None:
    document = small_plan()
    document["step"]["total_s"] = 2.0
    document["baselines"] = [{"name": "megatron-order", "cut_bytes": 120.0, "step_s": step_s}]

    page = report([saved(tmp_path, document)])

    said = "Fewest bytes is not the shortest step here: Megatron&#x27;s rank order takes"
    lead, _, rest = page.partition("Who sits where</h2>")
    assert (said in lead) == in_lead
    assert (said in rest) == below


def test_a_seating_that_keeps_no_rule_is_no_shorter_one(tmp_path: Path) -> None:
    document = small_plan()
    document["baselines"] = [{"name": "megatron-order", "cut_bytes": 120.0, "step_s": 0.5}]
    document["rules"] = {
        "rules": ["dp within supernode"], "cut_bytes": 120.0, "free_cut_bytes": 120.0,
        "free_lower_bound_bytes": 120.0, "free_proof": "bound", "price_least_bytes": 0.0,
        "price_most_bytes": 0.0,
    }  # fmt: skip

    assert "not the shortest step" not in report([saved(tmp_path, document)])
