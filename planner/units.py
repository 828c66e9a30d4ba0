"""SI constants, and text to SI and back.

The core knows seconds, bytes, bytes/s, FLOP/s and watts only. These constants turn literals into
SI; ``parse_*`` turns a user's text into SI and refuses what is ambiguous: KB is 1000 bytes and
KiB is 1024, ``Gb`` is bits and ``GB`` is bytes, and neither is ever guessed. ``format_*`` goes the
other way for people to read; programs get the SI number.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from types import MappingProxyType

from planner.errors import SpecError

NS = 1e-9
US = 1e-6
MS = 1e-3

KB, MB, GB, TB = 1e3, 1e6, 1e9, 1e12
KIB, MIB, GIB, TIB = 1024.0, 1024.0**2, 1024.0**3, 1024.0**4


_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": KIB, "Mi": MIB, "Gi": GIB, "Ti": TIB, "Pi": 1024.0**5, "Ei": 1024.0**6}

_BYTES: Mapping[str, float] = MappingProxyType(
    {f"{prefix}B": scale for prefix, scale in (_DECIMAL | {"K": 1e3} | _BINARY).items()}
)
_BITS_PER_S = {
    f"{prefix}{bit}": scale / 8
    for prefix, scale in (_DECIMAL | {"K": 1e3}).items()
    for bit in ("b/s", "bit/s", "bps")
}
_RATES: Mapping[str, float] = MappingProxyType(
    {f"{unit}/s": scale for unit, scale in _BYTES.items()} | _BITS_PER_S
)
_TIMES: Mapping[str, float] = MappingProxyType(
    {
        "ns": NS,
        "us": US,
        "µs": US,  # micro sign
        "μs": US,  # Greek mu
        "ms": MS,
        "s": 1.0,
        "min": 60.0,
        "h": 3600.0,
    }
)
_FLOPS: Mapping[str, float] = MappingProxyType(
    {f"{prefix}{flop}": scale for prefix, scale in _DECIMAL.items() for flop in ("FLOP/s", "FLOPS")}
)
_POWERS: Mapping[str, float] = MappingProxyType({"W": 1.0, "kW": 1e3, "MW": 1e6})

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*([^\s0-9.+-][^\s]*)?")
_LONGEST_TEXT = 100
_EXACT_SHARE = 1e-9  # of a value: less is the float's own error, not a digit that was cut


def parse_bytes(text: str) -> float:
    """Return the size that *text* names [bytes].

    Args:
        text: a number and ``B``, ``kB``/``KB``, ``MB`` … (powers of 1000) or ``KiB``, ``MiB`` …
            (powers of 1024).

    Raises:
        SpecError: no unit, a unit that is not a size in bytes, a negative or infinite number.

    >>> parse_bytes("8 KiB"), parse_bytes("192MiB"), parse_bytes("80 GB")
    (8192.0, 201326592.0, 80000000000.0)
    """
    return _parse(text, _BYTES, "a size such as '8 KiB' or '80 GB'")


def parse_rate(text: str) -> float:
    """Return the rate that *text* names [bytes/s].

    Args:
        text: a number and bytes per second (``GB/s``, ``GiB/s``) or bits per second (``Gb/s``,
            ``Gbit/s``, ``Gbps``).

    Raises:
        SpecError: no unit, a unit that is not a rate, a negative or infinite number.

    >>> parse_rate("50 GB/s") == parse_rate("400 Gb/s") == 50 * GB
    True
    """
    return _parse(text, _RATES, "a rate such as '50 GB/s' or '400 Gb/s'")


def parse_time(text: str) -> float:
    """Return the time that *text* names [s].

    Args:
        text: a number and ``ns``, ``us``, ``ms``, ``s``, ``min`` or ``h``.

    Raises:
        SpecError: no unit, a unit that is not a time, a negative or infinite number.

    >>> parse_time("20us"), parse_time("1.3 ms")
    (2e-05, 0.0013)
    """
    return _parse(text, _TIMES, "a time such as '20 us' or '1.3 ms'")


def parse_flops(text: str) -> float:
    """Return the arithmetic rate that *text* names [FLOP/s].

    Args:
        text: a number and ``FLOP/s`` or ``FLOPS`` with a prefix; ``TFLOPs`` is refused, for it
            may be a count of operations.

    Raises:
        SpecError: no unit, a unit that is not a rate of operations, a negative or infinite number.

    >>> parse_flops("989 TFLOP/s")
    989000000000000.0
    """
    return _parse(text, _FLOPS, "a rate of operations such as '989 TFLOP/s'")


def parse_power(text: str) -> float:
    """Return the power that *text* names [W].

    >>> parse_power("10.2 kW")
    10200.0
    """
    return _parse(text, _POWERS, "a power such as '700 W' or '10.2 kW'")


def format_bytes(size_bytes: float, *, digits: int = 3) -> str:
    """Return *size_bytes* in powers of 1000, with *digits* significant digits where rounded.

    >>> format_bytes(738e3), format_bytes(1.64e9), format_bytes(999_999)
    ('738 kB', '1.64 GB', '1.00 MB')
    """
    return _format(size_bytes, _DECIMAL, "B", 1000.0, digits)


def format_bytes_apart(size_bytes: float, other_bytes: float) -> tuple[str, str]:
    """Return both, with more digits where three do not tell them apart; nine at most.

    >>> format_bytes_apart(23.786e12, 23.78e12), format_bytes_apart(10e12, 9e12)
    (('23.79 TB', '23.78 TB'), ('10 TB', '9 TB'))
    """
    for digits in range(3, 10):
        found = tuple(format_bytes(one, digits=digits) for one in (size_bytes, other_bytes))
        if found[0] != found[1]:
            break
    return found[0], found[1]


def format_binary_bytes(size_bytes: float, *, digits: int = 3) -> str:
    """Return *size_bytes* in powers of 1024, as memory and buffers are sold.

    >>> format_binary_bytes(8192), format_binary_bytes(80 * GIB)
    ('8 KiB', '80 GiB')
    """
    return _format(size_bytes, {"": 1.0} | _BINARY, "B", 1024.0, digits)


def format_rate(rate_bytes_per_s: float, *, digits: int = 3) -> str:
    """Return a rate in bytes per second, in powers of 1000.

    >>> format_rate(128 * 256 / (2 * US))
    '16.4 GB/s'
    """
    return _format(rate_bytes_per_s, _DECIMAL, "B/s", 1000.0, digits)


def format_time(time_s: float, *, digits: int = 3) -> str:
    """Return a time between nanoseconds and seconds; longer ones stay seconds.

    >>> format_time(0.0296), format_time(5.24288e-06), format_time(0)
    ('29.6 ms', '5.24 us', '0 s')
    """
    if time_s == 0:
        return "0 s"
    return _format(time_s / NS, {"n": 1.0, "u": 1e3, "m": 1e6, "": 1e9}, "s", 1000.0, digits)


def format_flops(rate_flops_per_s: float, *, digits: int = 3) -> str:
    """Return a rate of operations with a decimal prefix.

    >>> format_flops(989e12)
    '989 TFLOP/s'
    """
    return _format(rate_flops_per_s, _DECIMAL, "FLOP/s", 1000.0, digits)


def format_power(power_w: float, *, digits: int = 3) -> str:
    """Return a power with a decimal prefix.

    >>> format_power(10_200)
    '10.2 kW'
    """
    return _format(power_w, _DECIMAL, "W", 1000.0, digits)


def format_share(share: float, *, digits: int = 3) -> str:
    """Return a share (0 to 1) as a percentage.

    >>> format_share(0.4123), format_share(1), format_share(-0.998, digits=2)
    ('41.2 %', '100 %', '-100 %')
    """
    return f"{_significant(100.0 * share, digits)} %"


def format_number(value: float, *, digits: int = 3) -> str:
    """Return a number without a unit: *digits* significant digits, or its whole part if longer.

    >>> format_number(348.31), format_number(12345.6), format_number(0.07598), format_number(8.0)
    ('348', '12,346', '0.0760', '8')
    """
    text = _significant(value, digits)
    return f"{value:,.0f}" if text.lstrip("-").isdigit() else text


def _parse(text: str, units: Mapping[str, float], wanted: str) -> float:
    """Return the SI value of *text*, whose unit must be one of *units*."""
    if not isinstance(text, str):
        raise SpecError(f"expected {wanted}, got {text!r} without a unit")
    shown = ascii(text[:_LONGEST_TEXT])
    match = None if len(text) > _LONGEST_TEXT else _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise SpecError(f"expected {wanted}, got {shown}")
    number, unit = match.groups()
    if unit is None:
        raise SpecError(f"expected {wanted}, got {shown} without a unit")
    if unit not in units:
        raise SpecError(f"expected {wanted}, got {shown}{_unit_hint(unit, units)}")
    scale = units[unit]
    # 20 / 1e6 is the float nearest to 20 us, 20 * 1e-6 is not.
    value = float(number) * scale if scale >= 1 else float(number) / round(1 / scale)
    if not math.isfinite(value):
        raise SpecError(f"expected {wanted}, got {shown}, which is beyond any number")
    return value


def _unit_hint(unit: str, units: Mapping[str, float]) -> str:
    """Return what the writer of *unit* may have meant, or nothing: never a silent choice."""
    spellings = {unit.lower()}
    if unit.lower().endswith("ps"):  # GBps, spelt like Gbps
        spellings.add(unit.lower()[:-2] + "/s")
    folded = [known for known in units if known.lower() in spellings]
    if not folded:
        folded = difflib.get_close_matches(unit, list(units), n=2, cutoff=0.5)
    if not folded:
        return f": unknown unit {unit!a}"
    return f": unknown unit {unit!a}, did you mean {' or '.join(map(repr, folded))}?"


def _format(value: float, scales: Mapping[str, float], unit: str, base: float, digits: int) -> str:
    """Return *value* under the largest prefix that leaves at least 1 before the point."""
    if not math.isfinite(value):
        return f"{value} {unit}"
    prefixes = list(scales)
    chosen = 0
    while chosen + 1 < len(prefixes):
        rounded = abs(float(_significant(value / scales[prefixes[chosen]], digits)))
        if rounded < base:
            break
        chosen += 1
    prefix = prefixes[chosen]
    return f"{_significant(value / scales[prefix], digits)} {prefix}{unit}"


def _significant(value: float, digits: int) -> str:
    """Return *value* to *digits* significant digits, in plain notation while that is short.

    A rounded value keeps its zeros, so that 76.96 s and 76.91 s read 77.0 s and 76.9 s side by
    side; one that has no more digits, as 50 GB/s or 8 KiB, shows none that nobody stated.
    """
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.{digits}g}"
    if abs(float(text) - value) > _EXACT_SHARE * abs(value):
        text = f"{value:#.{digits}g}".removesuffix(".")
    return f"{value:.0f}" if "e+" in text else text
