"""What the page of ``planner compare`` writes in numbers has its unit and tells them apart."""

from __future__ import annotations

import pytest

from cli.property_words import factor_words, property_value, property_values
from planner.procure.budget import format_money


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("price scale_up_switch", 5.653e4, "56,530 EUR each"),
        ("price kwh", 0.12, "0.12 EUR a kWh"),
        ("price gpu_hour H100-SXM", 2.5, "2.5 EUR an hour"),
        ("seq", 8220.0, "8,220 tokens"),
        ("oversubscription", 1.4, "1.4 : 1"),
        ("in_flight", 1.37, "1.37 in flight"),
        ("experts", 512.0, "512"),
    ],
)
def test_a_flip_is_written_with_its_unit(name: str, value: float, text: str) -> None:
    assert property_value(name, value, "EUR") == text


def test_a_factor_that_is_not_one_is_not_written_as_one() -> None:
    assert [factor_words(f) for f in (7.07, 1.0034, 0.9996)] == ["7.07", "1.0034", "0.9996"]


def test_large_amounts_are_in_words_and_not_in_powers() -> None:
    assert format_money(3.92185e7, "EUR") == "39.22 million EUR"
    assert format_money(1.5e9, "EUR") == "1.5 billion EUR"


@pytest.mark.parametrize(
    ("name", "held", "value"),
    [("nic_rate", 3.8041e9, 3.8003e9), ("nic_latency", 1.90012e-6, 1.90034e-6),
     ("oversubscription", 1.4001, 1.4002), ("in_flight", 1.37004, 1.37009),
     ("seq", 8220.1, 8220.3)],
)  # fmt: skip
def test_where_a_flip_holds_and_where_it_changes_are_told_apart(
    name: str, held: float, value: float
) -> None:
    before, after = property_values(name, held, value, "")

    assert before != after
    assert len(before) <= len(f"{held:,}") + 10
    assert property_values(name, held, held, "")[0] == property_value(name, held, "")
