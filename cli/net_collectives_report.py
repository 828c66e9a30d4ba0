"""The documents and texts of ``planner net collectives``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from cli.net_text import Row, net_text, table_text
from planner.collectives.cost import LIBRARY, cheapest
from planner.collectives.fit_report import error_of, report
from planner.collectives.library import FitError
from planner.collectives.links import LinkNumbers, Spread
from planner.collectives.predict import predicted_s
from planner.network.premises import Premise
from planner.units import format_bytes, format_rate, format_share, format_time
from topologies.collective_catalogue import measured_links_named, shipped_calibration
from topologies.collective_table import TableRow

_EXPECTED = MappingProxyType({"infiniband_hdr": 0.96})
"""What a NIC of a class reaches elsewhere, where its measurements are one odd site's: 24 of 25 GB/s
(NVIDIA/nccl issue 412); see the catalogue's collectives.yaml."""
Interval: TypeAlias = tuple[float, float | None]
"""Least and most [s]; None for no upper end."""
SOURCE = "public NCCL tables, named in the catalogue's collectives.yaml"
_FACTORS = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}


def question_body(
    *,
    collective: str,
    size_bytes: float,
    ranks: int,
    supernode: int,
    gpu: str,
    nic_bytes_per_s: float,
    scale_up_bytes_per_s: float | None,
) -> dict[str, Any]:
    """Return one collective's time, its parts, and how far such answers were off."""
    told = measured_links_named(gpu, nic_bytes_per_s, scale_up_bytes_per_s)
    payload = size_bytes / ranks if collective == "all_to_all" else size_bytes
    once = cheapest(
        collective, payload, Spread.of(ranks, supernode), told.links,
        available=LIBRARY[collective],
    )  # fmt: skip
    time_s = float(once.time_s)
    crosses = ranks > supernode
    expected = _EXPECTED.get(told.network) if crosses else None
    elsewhere_s = None
    if expected is not None:
        links = _at_share(told.links, expected)
        spread = Spread.of(ranks, supernode)
        elsewhere_s = float(
            cheapest(collective, payload, spread, links, available=LIBRARY[collective]).time_s
        )
    where = f"{told.scale_up}.{told.network}" if crosses else told.scale_up
    errors = shipped_calibration().errors
    own = errors.get(f"{where}.{collective}")
    error = own or errors.get("generic" if told.assumed else "all")
    return {
        "time": {
            "time_s": time_s,
            "interval_s": _interval_s(time_s, error),
            "elsewhere_s": elsewhere_s,
            "startup_s": float(once.startup_s),
            "inside_s": float(once.inside_s),
            "across_s": float(once.across_s),
            "hidden_s": float(once.hidden_s),
            "algorithm": once.name,
            "bus_bytes_per_s": _FACTORS[collective] * (ranks - 1) / ranks * size_bytes / time_s,
            "class": where,
            "assumed": told.assumed,
        },
        "unseen_error": error,
        "unseen_error_is_of": (
            f"{where}.{collective}" if own else "generic" if told.assumed else "all"
        ),
        "overall": None,
        "systems": [],
        "skipped": [],
        "premises": _premises(told.assumed),
        "source": SOURCE,
    }


def _at_share(links: LinkNumbers, share: float) -> LinkNumbers:
    """Return *links* with *share* of the NIC's rate reached."""
    outer = (replace(tier, efficiency_share=share) for tier in links.outer)
    return replace(links, tiers=(links.inside, *outer))


def _interval_s(time_s: float, error: FitError | None) -> Interval | None:
    """Return what nine of ten measured times lie between, where unseen tables had *error* [s].

    |predicted / measured - 1| <= p90 is predicted / (1 + p90) <= measured <= predicted / (1 - p90);
    None for no upper end where p90 is 1 or more.
    """
    if error is None:
        return None
    p90 = error.p90_share
    return time_s / (1 + p90), time_s / (1 - p90) if p90 < 1 else None


def table_body(rows: Sequence[TableRow]) -> tuple[dict[str, Any], list[float]]:
    """Return the errors over a table by system, and the predicted times of its usable rows."""
    usable = [row.measured for row in rows if row.measured is not None]
    seconds = predicted_s(usable, shipped_calibration()) if usable else np.zeros(0)
    timed = [i for i, row in enumerate(usable) if row.time_s > 0]
    measured = np.array([usable[i].time_s for i in timed])
    errors = shipped_calibration().errors
    systems = [
        {
            "system": line.system,
            "collective": line.collective,
            "error": line.error,
            "unseen_error": errors.get(f"{line.system.replace(' ', '.')}.{line.collective}"),
        }
        for line in report([usable[i] for i in timed], seconds[timed])
    ]
    because = Counter(row.because for row in rows if row.measured is None)
    body = {
        "time": None,
        "unseen_error": errors.get("all"),
        "unseen_error_is_of": "all",
        "overall": error_of(seconds[timed], measured) if timed else None,
        "systems": systems,
        "skipped": [
            {"because": why, "rows": count}
            for why, count in sorted(because.items(), key=lambda item: (-item[1], item[0]))
        ],
        "premises": _premises(""),
        "source": SOURCE,
    }
    return body, [float(value) for value in seconds]


def _premises(assumed: str) -> tuple[Premise, ...]:
    return (
        Premise(
            states="The group has its links to itself",
            holds=None,
            otherwise="`planner net sharing` says what is left of them",
        ),
        Premise(
            states="The library chooses as a stock NCCL does, at its defaults",
            holds=None,
            otherwise="variables that force an algorithm, a protocol or fewer channels move it; "
            "one site's software has moved the same cluster from 45 to 160 GB/s",
        ),
        Premise(
            states="The GPU's generation was measured",
            holds=not assumed,
            otherwise="the mean of the measured generations stands in",
        ),
    )


def question_text(inputs: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """Return the text of one collective."""
    time = body["time"]
    case = (
        f"{inputs['collective'].replace('_', '-')} of {format_bytes(inputs['size_bytes'])} over "
        f"{inputs['ranks']} {inputs['gpu']}, {inputs['supernode']} to a supernode, "
        f"{format_rate(inputs['nic_bytes_per_s'])} a NIC"
    )
    rows = [
        Row("time", format_time(time["time_s"]), time["algorithm"].replace("_", " ")),
        *_interval_rows(time["interval_s"]),
        Row("bus bandwidth", format_rate(time["bus_bytes_per_s"])),
        Row("start-ups", format_time(time["startup_s"]), "launch, hops, and filling a tree"),
        Row("inside", format_time(time["inside_s"]), "the busiest scale-up port"),
        Row("across", format_time(time["across_s"]), "the busiest NIC"),
        Row("at once", format_time(time["hidden_s"]), "of these two"),
    ]
    says = [_error_sentence(body["unseen_error"], body["unseen_error_is_of"])]
    if time["elsewhere_s"] is not None:
        says.append(
            f"{format_time(time['elsewhere_s'])} where a NIC reaches 96 % of its rate, as NCCL's "
            "maintainers expect of it (NVIDIA/nccl issue 412); the one site measured reached less."
        )
    if time["assumed"]:
        says.append(f"Assumed: {time['assumed']}.")
    return net_text("A collective", case, rows, says, body["premises"], body["source"])


def _interval_rows(interval_s: Interval | None) -> list[Row]:
    if interval_s is None:
        return []
    least, most = interval_s
    if most is None:
        return [Row("nine in ten", f"{format_time(least)} up", "by the error on unseen tables")]
    span = f"{format_time(least)} to {format_time(most)}"
    return [Row("nine in ten", span, "measured, by the error on unseen tables")]


def _error_sentence(error: FitError | None, owner: str) -> str:
    if error is None:
        return "Nothing like it was measured."
    return (
        f"Predictions of {owner.replace('.', ' ').replace('_', ' ')} were "
        f"{format_share(error.median_share, digits=2)} off at the median and "
        f"{format_share(error.p90_share, digits=2)} in one case of ten, on {error.rows} rows of "
        "tables that the fit had not seen."
    )


def table_text_of(inputs: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """Return the text of a table's errors."""
    rows = [
        [
            f"{line['system']} {line['collective']}".replace("_", "-"),
            str(line["error"].rows),
            *(format_share(value, digits=2) for value in (
                line["error"].median_share, line["error"].p90_share, line["error"].bias_share)),
            _unseen(line["unseen_error"]),
        ]
        for line in body["systems"]
    ]  # fmt: skip
    overall: FitError | None = body["overall"]
    shown = table_text(["system", "rows", "median", "p90", "bias", "unseen"], rows)
    says = [
        (
            "The error of predicted over measured. 'unseen' is the median that the system had in "
            "the published tables while its own was left out of the fit; if these rows are among "
            "those tables, the other columns are in sample."
        ),
        *(f"Not predicted: {part['rows']} rows, {part['because']}." for part in body["skipped"]),
    ]
    figures = []
    if overall is not None:
        figures = [
            Row("all rows", str(overall.rows)),
            Row("median error", format_share(overall.median_share, digits=2)),
            Row("one in ten above", format_share(overall.p90_share, digits=2)),
            Row("bias", format_share(overall.bias_share, digits=2)),
        ]
    text = net_text(
        "Collectives of a table", str(inputs["table"]), figures, says, body["premises"],
        body["source"],
    )  # fmt: skip
    if not rows:
        return text
    head, rest = text.split("\n\n", 1)
    return f"{head}\n\n{shown}\n\n{rest}"


def _unseen(error: FitError | None) -> str:
    return "" if error is None else format_share(error.median_share, digits=2)
