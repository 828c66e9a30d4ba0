"""Quantities: expected values are the SI definitions and the figures sources print."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import units
from planner.errors import SpecError


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0 B", 0),
        ("8 KiB", 8192),
        ("8KiB", 8192),
        ("1 kB", 1000),
        ("1 KB", 1000),
        ("192 MiB", 201_326_592),
        ("80 GB", 80_000_000_000),
        ("80 GiB", 85_899_345_920),
        ("1.5e3 MB", 1_500_000_000),
    ],
)
def test_a_size_in_powers_of_1000_is_not_one_in_powers_of_1024(
    text: str, size_bytes: float
) -> None:
    assert units.parse_bytes(text) == size_bytes


@pytest.mark.parametrize(
    "text", ["50 GB/s", "400 Gb/s", "400 Gbit/s", "400Gbps", "0.05 TB/s", "400000 Mb/s"]
)
def test_eight_bits_per_second_are_one_byte_per_second(text: str) -> None:
    assert units.parse_rate(text) == 50_000_000_000


@pytest.mark.parametrize(
    ("text", "time_s"),
    [("20us", 20e-6), ("20 µs", 20e-6), ("20 μs", 20e-6), ("350 ns", 350e-9), ("1.3 ms", 1.3e-3),
     ("2 min", 120), ("1 h", 3600)],
)  # fmt: skip
def test_a_time_is_the_nearest_float_to_what_is_written(text: str, time_s: float) -> None:
    assert units.parse_time(text) == time_s


def test_operations_per_second_and_watts_have_their_prefixes() -> None:
    assert units.parse_flops("989 TFLOP/s") == units.parse_flops("0.989 PFLOPS") == 989e12
    assert units.parse_power("10.2 kW") == 10_200


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (units.parse_rate, "50 GBps", "'Gbps'"),
        (units.parse_rate, "50 GBps", "'GB/s'"),
        (units.parse_rate, "400 gb/s", "'GB/s' or 'Gb/s'"),
        (units.parse_rate, "50 GB", "'GB/s'"),
        (units.parse_rate, "400 GT/s", "unknown unit 'GT/s'"),
        (units.parse_bytes, "8 Gb", "unknown unit 'Gb'"),
        (units.parse_bytes, "8 K", "unknown unit 'K'"),
        (units.parse_bytes, "8 kb", "'kB' or 'KB'"),
        (units.parse_time, "3 m", "'ms' or 'min'"),
        (units.parse_flops, "989 TFLOPs", "'TFLOPS'"),
        (units.parse_bytes, "8192", "without a unit"),
        (units.parse_power, "700", "without a unit"),
    ],
)
def test_an_ambiguous_or_missing_unit_is_refused_with_what_may_be_meant(
    parse: Callable[[str], float], text: str, says: str
) -> None:
    with pytest.raises(SpecError) as refusal:
        parse(text)

    assert says in str(refusal.value)
    assert repr(text) in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    ["", " ", "GB", "-1 GB", "+1 GB", "nan GB", "inf GB", "1e999 GB", "1,5 GB", "1_000 GB", "١ GB",
     "0x10 GB", "1 GB 2", "1 000 GB", ".5 GB", "1\x00GB", "9" * 200 + " GB"],
)  # fmt: skip
def test_what_is_no_finite_number_from_0_with_a_unit_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="expected a size such as"):
        units.parse_bytes(text)


def test_a_number_in_place_of_text_is_refused() -> None:
    with pytest.raises(SpecError, match="8192 without a unit"):
        units.parse_bytes(8192)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shown", "written"),
    [
        (units.format_rate(128 * 256 / 2e-6), "16.4 GB/s"),
        (units.format_time(0.0296), "29.6 ms"),
        (units.format_time(80e-6), "80 us"),
        (units.format_time(0.9996), "1.00 s"),
        (units.format_time(7200), "7200 s"),
        (units.format_time(0), "0 s"),
        (units.format_bytes(999_999), "1.00 MB"),
        (units.format_bytes(0), "0 B"),
        (units.format_bytes(-1.5e9), "-1.5 GB"),
        (units.format_binary_bytes(80 * 2**30), "80 GiB"),
        (units.format_binary_bytes(1023.9), "1.00 KiB"),
        (units.format_binary_bytes(1000 * 2**20), "1000 MiB"),
        (units.format_flops(989e12), "989 TFLOP/s"),
        (units.format_power(10_200), "10.2 kW"),
        (units.format_share(1 / 3), "33.3 %"),
        (units.format_bytes(float("inf")), "inf B"),
    ],
)
def test_a_quantity_is_written_with_three_digits_and_its_largest_prefix(
    shown: str, written: str
) -> None:
    assert shown == written


@given(st.floats(min_value=1e-3, max_value=1e20), st.sampled_from(["bytes", "rate", "flops"]))
def test_what_is_written_reads_back_to_three_digits(value: float, kind: str) -> None:
    text = getattr(units, f"format_{kind}")(value)

    assert getattr(units, f"parse_{kind}")(text) == pytest.approx(value, rel=5.1e-3)


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_and_nothing_else_happens(text: str) -> None:
    for parse in (units.parse_bytes, units.parse_rate, units.parse_time, units.parse_flops):
        try:
            assert parse(text) >= 0
        except SpecError as refusal:
            assert str(refusal).isprintable()  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize(
    ("share", "shown"), [(-0.998, "-100 %"), (0.999, "100 %"), (9.0, "900 %"), (0.0994, "9.9 %")]
)
def test_a_share_is_never_shown_with_an_exponent(share: float, shown: str) -> None:
    assert units.format_share(share, digits=2) == shown


def test_rounded_figures_have_as_many_digits_side_by_side_and_exact_ones_no_zeros() -> None:
    steps = [units.format_time(step_s) for step_s in (76.91, 76.96, 99.96, 77.0)]
    shares = [units.format_share(share) for share in (0.0599999, 0.06, 0.32996, 1.0, 0.99996)]

    assert steps == ["76.9 s", "77.0 s", "100 s", "77 s"]
    assert shares == ["6.00 %", "6 %", "33.0 %", "100 %", "100 %"]
    assert units.format_rate(units.parse_rate("400 Gb/s")) == "50 GB/s"
    assert units.format_time(units.parse_time("1.3 ms")) == "1.3 ms"
    assert units.format_binary_bytes(units.parse_bytes("8 KiB")) == "8 KiB"


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.0, "0"), (999.96, "1,000"), (9999.7, "10,000"), (-0.07598, "-0.0760"), (12.0, "12"),
     (float("inf"), "inf")],
)  # fmt: skip
def test_a_number_without_a_unit_is_written_by_the_same_rule(value: float, written: str) -> None:
    assert units.format_number(value) == written


def test_two_sizes_have_as_many_digits_as_tell_them_apart() -> None:
    assert units.format_bytes_apart(23.786e12, 23.78e12) == ("23.79 TB", "23.78 TB")
    assert units.format_bytes_apart(10e12, 9e12) == ("10 TB", "9 TB")
    assert units.format_bytes_apart(1e12, 1e12) == ("1 TB", "1 TB")
    assert units.format_bytes_apart(999_999_999, 1e9) == ("999.999999 MB", "1 GB")
