"""A fit of a user's own runs in place of the shipped one: the file of ``planner calibrate --out``.

A plan keeps the numbers it was timed with, so that whoever reads it later times it with the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from planner.documents import document_from_text, read_bytes
from planner.errors import InputError, SpecError
from planner.fabric import Accelerator
from planner.steptime.covered import Covered, Kind, beyond, widened
from planner.steptime.own_fit import LOGITS, with_own_pace
from planner.steptime.rates import SIXTEEN_BITS, Efficiency
from planner.steptime.uncertainty import FEW_ROWS, LAYOUT_SPREAD, few_rows_spread
from topologies.efficiency_catalogue import assumed_in, efficiency_of, fits_in, fitted_as
from topologies.efficiency_covered import covered_document, covered_from, covered_in
from topologies.file_kinds import handed_as
from topologies.plausible import PLAUSIBLE

_SHOWN_HASH = 12  # digits of a hash that tell files apart for a reader
_LARGEST = 1e9  # beyond every share, ratio, count and duration [s] of a fit
_LATER = frozenset({"clock_ratio"})  # a plan of before it was there has none
_LONGEST = 4096  # characters; no path is longer on Linux


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFits:
    """Fits that take the place of the shipped ones.

    Args:
        name: the file they are from.
        sha256: of its bytes.
        by_chip: accelerator to what it reaches; a plain dict, for it goes to other processes.
        elsewhere: what is done for an accelerator that it has not: ``refused``, or timed with the
            shipped numbers, which is said.
        untold: accelerator to the numbers that its rows tell little of.
        covered: accelerator to the kinds of steps that its rows were; none of one in a plan of
            before that was kept, whose numbers stand as they are.
    """

    name: str
    sha256: str
    by_chip: Mapping[str, Efficiency]
    elsewhere: Literal["refused", "shipped"]
    untold: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    covered: Mapping[str, Covered] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What an accelerator is timed with.

    Args:
        efficiency: the numbers, None where nothing was measured.
        why: where they are from; empty for what ships when nothing else was asked for.
        own: whose fit it is, None where it ships.
        beyond: in what the step is unlike the rows of the fit; empty where in nothing.
    """

    efficiency: Efficiency | None
    why: str = ""
    own: OwnFits | None = None
    beyond: tuple[str, ...] = ()


def read_own_fits(
    path: Path | None, *, elsewhere: Literal["refused", "shipped"] = "refused"
) -> OwnFits | None:
    """Return the fits in the file at *path*, or None where no file is named.

    Raises:
        SpecError: no such file, no fit in it, half of one, or a number that cannot be.
    """
    if path is None:
        return None
    with handed_as("efficiency", path):
        content = read_bytes(path)
        document = document_from_text(content, name=str(path))
        fits = fits_in(document)
    return OwnFits(
        name=str(path),
        sha256=hashlib.sha256(content).hexdigest(),
        by_chip={chip: _own(one) for chip, one in fits.items()},
        elsewhere=elsewhere,
        untold=dict(assumed_in(document)),
        covered=covered_in(document),
    )


def _own(fitted: Efficiency) -> Efficiency:
    """Return a file's fit as a machine's own, no surer than its number of rows allows."""
    own = with_own_pace(fitted)
    return replace(own, spread=max(own.spread, few_rows_spread(0.0, own.rows, told=0.0)))


def few_rows(efficiency: Efficiency | None) -> str:
    """Return what to say of a fit of so few rows that they tell little of their own spread.

    Empty where there are enough, and where nothing was fitted.
    """
    if efficiency is None or not 0 < efficiency.rows < FEW_ROWS:
        return ""
    usual = few_rows_spread(efficiency.rows * LAYOUT_SPREAD**2, efficiency.rows, told=0.0)
    whose = "other machines' more than theirs"
    if efficiency.spread > usual:
        whose = "their own scatter's as much as other machines'"
    return f"few rows ({efficiency.rows}; {FEW_ROWS} would do): the spread is {whose}"


def suspect_rows(covered: Covered) -> str:
    """Return how many rows of a fit's table were suspect, empty where none was."""
    if not covered.suspect:
        return ""
    were = "was" if covered.suspect == 1 else "were"
    of_table = f"{covered.suspect} of {covered.rows + covered.left_out} rows {were} suspect"
    return f"{of_table}, {covered.left_out or 'none'} left out"


def beyond_words(reached: Reached) -> str:
    """Return what the interval of a step unlike a fit's rows is, empty where it is like them."""
    if not reached.beyond:
        return ""
    return f"{'; '.join(reached.beyond)}: its interval is that of a machine not fitted on"


def reached_by(accelerator: Accelerator, kind: Kind, own: OwnFits | None) -> Reached:
    """Return what *accelerator* is timed with in a step of *kind*.

    Raises:
        InputError: *own* has no fit of it where it must, or none in that precision.
    """
    shipped, precision = efficiency_of(accelerator.name), kind.precision
    if own is None:
        return Reached(efficiency=shipped)
    named = accelerator.name in own.by_chip
    chip = accelerator.name if named else fitted_as(accelerator.name)
    found = own.by_chip.get(chip)
    if found is None:
        has = f"{own.name} has a fit of {', '.join(own.by_chip)}, none of {accelerator.name}"
        if own.elsewhere == "refused":
            raise InputError(
                f"{has}: expected one from runs on {accelerator.name}, or no --efficiency"
            )
        numbers = "the shipped numbers" if shipped else "what is assumed of any accelerator"
        return Reached(efficiency=shipped, why=f"{numbers}: {has}")
    untold = own.untold.get(chip, ())
    guessed = SIXTEEN_BITS if LOGITS in untold else frozenset()
    fitted = [one for one in found.gemm_share if one not in guessed]
    if not (SIXTEEN_BITS if precision in SIXTEEN_BITS else {precision}) & set(fitted):
        raise InputError(
            f"{own.name} has {accelerator.name} in {', '.join(fitted)}, not in {precision}: "
            f"calibrate on runs in {precision} too, or ask for --precision {next(iter(fitted))}"
        )
    rows = f"{found.rows} measured steps of {found.fitted_on}"
    if chip != accelerator.name:
        rows += f", as {chip}, the same chip"
    if few := few_rows(found):
        rows += f", {few}"
    if untold:
        rows += f", which tell little of {', '.join(untold)}: there as usual"
    covered = own.covered.get(fitted_as(chip) if chip not in own.covered else chip)
    if covered is not None and (odd := suspect_rows(covered)):
        rows += f"; {odd}"
    unlike = beyond(covered, kind) if covered is not None else ()
    reached = Reached(
        efficiency=widened(found, shipped) if unlike else found,
        why=f"{own.name} (sha256 {own.sha256[:_SHOWN_HASH]}): fitted on {rows}",
        own=own,
        beyond=unlike,
    )
    return replace(reached, why=f"{reached.why}; {beyond_words(reached)}") if unlike else reached


def efficiency_file(own: OwnFits) -> dict[str, Any]:
    """Return what a document keeps of where its numbers are from."""
    covered = {chip: covered_document(one) for chip, one in own.covered.items() if one.rows}
    return {"file": own.name, "sha256": own.sha256, **({"covered": covered} if covered else {})}


def planned_fits(told: Mapping[str, Any], plan: str) -> OwnFits | None:
    """Return the fit that a plan was timed with, or None where that was a shipped one.

    Args:
        told: the plan's ``inputs``.
        plan: what faults call it.

    Raises:
        SpecError: numbers that are missing or cannot be.
    """
    if told.get("efficiency_file") is None:
        return None
    name = f"{plan}: inputs"
    file, fabric = told["efficiency_file"], told.get("fabric")
    chip = fabric.get("accelerator") if isinstance(fabric, Mapping) else None
    texts = {
        f"{name}.efficiency_file.{key}": file.get(key) if isinstance(file, Mapping) else None
        for key in ("file", "sha256")
    }
    texts[f"{name}.fabric.accelerator.name"] = chip.get("name") if isinstance(chip, Mapping) else ""
    faults = [f"{key}: expected text" for key, text in texts.items() if not _is_text(text)]
    faults += _number_faults(told.get("efficiency"), f"{name}.efficiency")
    if faults:
        raise SpecError(*faults)
    where, sha256, accelerator = (str(text) for text in texts.values())
    try:
        efficiency = Efficiency(**told["efficiency"])
    except SpecError as error:
        raise SpecError(*(f"{name}.efficiency.{fault}" for fault in error.faults)) from None
    if faults := _implausible(efficiency):
        raise SpecError(*(f"{name}.efficiency.{fault}" for fault in faults))
    return OwnFits(
        name=where, sha256=sha256, by_chip={accelerator: efficiency}, elsewhere="shipped",
        covered=covered_from(file.get("covered", {}), f"{name}.efficiency_file.covered"),
    )  # fmt: skip


def _implausible(one: Efficiency) -> list[str]:
    """Return what no fit can have of *one*, behind the name of its field."""
    shares = {**one.gemm_share, **one.attention_share, **one.memory_share}
    seen = [("share", value) for value in (*shares.values(), one.inner_share, one.outer_share)]
    seen += [("host", value) for value in one.host_s.values()]
    seen += [("step", one.step_s), ("spread", one.spread)]
    return [f"{kind}: {fault}" for kind, value in seen if (fault := PLAUSIBLE[kind].fault(value))]


def _number_faults(filed: Any, name: str) -> list[str]:
    """Return what is wrong with the fields of ``Efficiency`` as ``asdict`` wrote them."""
    if not isinstance(filed, Mapping):
        return [f"{name}: expected the numbers of {name.partition('.')[2]}_file"]
    usual = asdict(Efficiency(gemm_share={"bf16": 1.0}, attention_share={}, memory_share={}))
    faults = [f"{name}: unknown key {str(key)[:40]!r}" for key in filed if key not in usual]
    for key, value in usual.items():
        seen = filed.get(key, value if key in _LATER else None)
        if isinstance(value, dict):
            good = isinstance(seen, Mapping) and all(_is_amount(one) for one in seen.values())
        elif isinstance(value, str):
            good = _is_text(seen)
        else:
            good = _is_amount(seen)
        if not good:
            faults.append(f"{name}.{key}={str(seen)[:40]}: expected what planner place --out wrote")
    return faults


def _is_amount(value: Any) -> bool:
    return type(value) in {int, float} and 0 <= value < _LARGEST


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST
