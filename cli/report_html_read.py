"""Plan files as a report reads them: strictly, whole, and with every fault named."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cli.planner_output import inputs_sha256
from cli.report_html_contradictions import contradictions, recounted
from cli.report_html_schema import SHOWN, published_schema, schema_faults
from planner.errors import InputError
from planner.layout import groups_along

if TYPE_CHECKING:
    from numpy.typing import NDArray

PLAN = "planner.place/1"
MOST_BYTES = 256 * 2**20
_MOST_FAULTS = 20
_LONGEST_TEXT = 400  # characters of a page: sources of ours have fewer
_LONG_WORD = re.compile(r"(\S{127})\S{2,}")  # names of ours have 128 characters at most


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan document that holds together.

    Args:
        name: the file's name without its folder.
        document: the document of ``planner place --json``.
        home: domain of each rank, array [ranks].
        untouched: the hash in the file is the hash of its inputs.
    """

    name: str
    document: Mapping[str, Any]
    home: NDArray[np.int64]
    untouched: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the sizes of the axes, innermost first."""
        return tuple(axis["size"] for axis in self.document["axes"])

    def axes_of(self, family: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the indices of the axes along which a family's members vary."""
        names = [axis["name"] for axis in self.document["axes"]]
        return tuple(names.index(name) for name in family["axes"])

    def members(self, family: Mapping[str, Any]) -> NDArray[np.int64]:
        """Return the ranks of every group of *family*, array [groups, members]."""
        ranks = groups_along(self.sizes, self.axes_of(family))
        return ranks[:, [0, -1]] if family["ends_only"] else ranks


def read_plan(path: Path) -> PlanFile:
    """Return the plan in *path*.

    Raises:
        InputError: no file, too large, cut off, no JSON, no plan, or a plan that contradicts
            itself; with every fault that was found.
    """
    return checked_plan(loaded(path), path)


def checked_plan(document: Any, path: Path) -> PlanFile:
    """Return the plan of *document*, checked as ``read_plan`` does; *path* names it in faults."""
    if not isinstance(document, dict) or document.get("schema") != PLAN:
        seen = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise InputError(
            f"{path}: is no plan: expected an object with schema {PLAN!r}, the output of "
            f"planner place --json; got {seen!r:.60}"
        )
    faults = [*schema_faults(document, published_schema("place")), *schema_faults(document, SHOWN)]
    faults = list(dict.fromkeys(faults)) or list(contradictions(document))
    if faults:
        raise _refused(path, faults)
    home = np.empty(len(document["placement"]["rank_to_gpu"]), np.int64)
    for index, domain in enumerate(document["placement"]["domains"]):
        home[domain["ranks"]] = index
    plan = PlanFile(name=path.name, document=document, home=home, untouched=untouched(document))
    wrong = [
        f"traffic[{i}].members: are not the groups along {family['axes']}"
        for i, family in enumerate(document["traffic"])
        if "members" in family and not _same_members(plan, family)
    ] or list(recounted(plan))
    if wrong:
        raise _refused(path, wrong)
    return replace(plan, document=shortened(document))


def shortened(value: Any) -> Any:
    """Return *value* with every text cut that is too long for a page, wherever it stands.

    >>> len(shortened({"a": ["x" * 9000]})["a"][0]), len(shortened("a word " * 900))
    (128, 400)
    """
    if isinstance(value, str):
        whole = _LONG_WORD.sub(r"\1…", value)
        return whole if len(whole) <= _LONGEST_TEXT else whole[: _LONGEST_TEXT - 1] + "…"
    if isinstance(value, dict):
        return {shortened(key): shortened(one) for key, one in value.items()}
    if isinstance(value, list):
        texts = not all(type(one) is int for one in value)  # long lists of ranks stay as they are
        return [shortened(one) for one in value] if texts else value
    return value


def _refused(path: Path, faults: Sequence[str]) -> InputError:
    """Return the error that names a plan's faults, the first ones where there are many."""
    shown = [f"{path}: {fault}" for fault in faults[:_MOST_FAULTS]]
    if len(faults) > _MOST_FAULTS:
        shown.append(f"{path}: and {len(faults) - _MOST_FAULTS} faults more")
    return InputError(*shown)


def loaded(path: Path) -> Any:
    """Return what a file of JSON holds.

    Raises:
        InputError: no file, too large, cut off, or no JSON.
    """
    try:
        with path.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; name a plan file") from None
    if len(raw) > MOST_BYTES:
        raise InputError(f"{path}: more than {MOST_BYTES >> 20} MiB: expected a plan")
    try:
        return json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text at byte {error.start}") from None
    except json.JSONDecodeError as error:
        end = error.pos >= len(error.doc.rstrip())
        cut_off = end or error.msg.startswith("Unterminated string")
        raise InputError(
            f"{path}:{error.lineno}:{error.colno}: {'is cut off here' if cut_off else 'is no JSON'}"
            f": {error.msg}; write it again with planner place --json --out"
        ) from None
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply to be a plan") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice[:60]!r} stands twice in one object")
    return found


def _refuse_constant(literal: str) -> float:
    raise ValueError(f"{literal} is no number of JSON")


def _finite(literal: str) -> float:
    value = float(literal)
    if not math.isfinite(value):
        raise ValueError(f"{literal[:40]} is beyond every number of ours")
    return value


def _same_members(plan: PlanFile, family: Mapping[str, Any]) -> bool:
    wanted = plan.members(family)
    groups: Sequence[Sequence[int]] = family["members"]
    if len(groups) != len(wanted) or any(len(group) != wanted.shape[1] for group in groups):
        return False
    return bool(np.array_equal(np.array(groups), wanted))


def untouched(document: Mapping[str, Any]) -> bool:
    """Return whether the hash in a document is the hash of its inputs."""
    inputs = {key: value for key, value in document["inputs"].items() if key != "sha256"}
    return inputs_sha256(inputs) == str(document["inputs"]["sha256"])
