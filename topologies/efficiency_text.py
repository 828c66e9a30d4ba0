"""The files of fitted numbers as text: what ``efficiency_catalogue`` reads, and what it ships.

The shipped three are written by ``catalogue_texts`` alone, from a table of published steps
(``planner calibrate TABLE --catalogue FOLDER``); names of accelerators and comments stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

from planner.documents import read_document, yaml_text
from planner.steptime.covered import Covered
from planner.steptime.rates import Efficiency
from planner.steptime.refit import Refit
from planner.units import US
from topologies.efficiency_catalogue import CATALOGUE, HALVES, LEFT_OUT
from topologies.efficiency_covered import covered_document


def efficiencies_text(
    fitted: Mapping[str, Efficiency],
    assumed: Mapping[str, Mapping[str, str]],
    covered: Mapping[str, Covered],
) -> str:
    """Return the YAML of *fitted*, as ``read_efficiencies`` reads it.

    Args:
        fitted: by accelerator.
        assumed: of accelerators, what their rows do not tell, number to reason.
        covered: of accelerators, what kinds of steps their rows were.
    """
    # the source stays the last line: a file that is cut off lacks it
    untold = {name: {"assumed": dict(reasons)} for name, reasons in assumed.items() if reasons}
    kinds = {name: {"covered": covered_document(one)} for name, one in covered.items()}
    return yaml_text(
        {
            name: untold.get(name, {}) | kinds.get(name, {}) | one
            for name, one in _chips(fitted).items()
        }
    )


def catalogue_texts(fits: Refit) -> Mapping[str, str]:
    """Return the shipped files' names and texts with the numbers of *fits* in them.

    What the shipped file says of an accelerator besides its fit (what tables call it, its usual
    NIC) is kept; a fitted accelerator that it has not is added at the end.
    """
    document = read_document(CATALOGUE)
    shipped = {name: node.plain() for name, node in document.root.items()}
    for name, numbers in _chips(fits.whole).items():
        known = shipped.get(name, {})
        shipped[name] = {key: known[key] for key in known if key not in numbers} | numbers
    sources = {source: _chips(chips) for source, chips in sorted(fits.left_out.items())}
    return {
        CATALOGUE.name: _comment(CATALOGUE) + yaml_text(shipped),
        HALVES.name: _comment(HALVES)
        + yaml_text({"first": _chips(fits.first), "second": _chips(fits.second)}),
        LEFT_OUT.name: _comment(LEFT_OUT) + yaml_text(sources),
    }


def _comment(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(takewhile(lambda line: line.startswith("#"), lines))


def _chips(fitted: Mapping[str, Efficiency]) -> dict[str, dict[str, object]]:
    return {name: _plain(one) for name, one in sorted(fitted.items())}


def _plain(one: Efficiency) -> dict[str, object]:
    def rounded(shares: Mapping[str, float]) -> dict[str, float]:
        return {name: float(f"{share:.4g}") for name, share in shares.items()}

    return {
        "gemm": rounded(one.gemm_share),
        "attention": rounded(one.attention_share),
        "memory": rounded(one.memory_share),
        "inner": float(f"{one.inner_share:.4g}"),
        "outer": float(f"{one.outer_share:.4g}"),
        "host": {name: f"{value / US:.4g}us" for name, value in one.host_s.items()},
        "step": f"{one.step_s * 1e3:.4g}ms",
        "spread": float(f"{one.spread:.3g}"),
        "rows": one.rows,
        "pace": rounded(one.pace_ratio),
        **({"clock": rounded(one.clock_ratio)} if one.clock_ratio else {}),
        "source": one.fitted_on,
    }
