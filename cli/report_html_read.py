"""Plan files as a report reads them: strictly, whole, and with every fault named."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cli.planner_output import inputs_sha256
from planner.errors import InputError
from planner.layout import groups_along

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCHEMA = Path(__file__).parent / "schemas" / "place.json"
MOST_BYTES = 256 * 2**20
_MOST_FAULTS = 20
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,),
    "number": (int, float), "boolean": (bool,), "null": (type(None),),
}  # fmt: skip


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
    document = _loaded(path)
    if not isinstance(document, dict) or document.get("schema") != "planner.place/1":
        seen = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise InputError(
            f"{path}: is no plan: expected an object with schema 'planner.place/1', the output of "
            f"planner place --json; got {seen!r:.60}"
        )
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    faults = list(schema_faults(document, schema, schema["$defs"])) or list(_contradictions(document))
    if faults:
        shown = [f"{path}: {fault}" for fault in faults[:_MOST_FAULTS]]
        if len(faults) > _MOST_FAULTS:
            shown.append(f"{path}: and {len(faults) - _MOST_FAULTS} faults more")
        raise InputError(*shown)
    home = np.empty(len(document["placement"]["rank_to_gpu"]), np.int64)
    for index, domain in enumerate(document["placement"]["domains"]):
        home[domain["ranks"]] = index
    plan = PlanFile(name=path.name, document=document, home=home, untouched=_untouched(document))
    wrong = [
        f"{path}: traffic[{i}].members: are not the groups along {family['axes']}"
        for i, family in enumerate(document["traffic"])
        if "members" in family and not _same_members(plan, family)
    ]
    if wrong:
        raise InputError(*wrong)
    return plan


def _loaded(path: Path) -> Any:
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
        cut_off = error.pos >= len(error.doc.rstrip())
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


def schema_faults(
    value: Any, schema: Mapping[str, Any], defs: Mapping[str, Any], at: str = ""
) -> Iterator[str]:
    """Yield what in *value* is not as *schema* says: the part of JSON Schema that ours use.

    >>> list(schema_faults({"gpus": 0}, {"properties": {"gpus": {"minimum": 1}}}, {}))
    ['gpus: expected at least 1, got 0']
    """
    if "$ref" in schema:
        schema = defs[schema["$ref"].rsplit("/", 1)[1]]
    here = at or "the document"
    wanted = schema.get("type", [])
    kinds = [wanted] if isinstance(wanted, str) else wanted
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield f"{here}: expected {' or '.join(kinds)}, got {json.dumps(value)[:40]}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{here}: expected {schema['const']!r}, got {value!r:.40}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{here}: expected one of {schema['enum']}, got {value!r:.40}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{here}: expected text like {schema['pattern']}, got {value!r:.40}"
    if isinstance(value, int | float):
        yield from _number_faults(value, schema, here)
    elif isinstance(value, list):
        yield from _list_faults(value, schema, defs, at)
    elif isinstance(value, dict):
        dot = f"{at}." if at else ""
        for key in schema.get("required", []):
            if key not in value:
                yield f"{dot}{key}: is missing"
        for key, item in value.items():
            rule = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if isinstance(rule, Mapping):
                yield from schema_faults(item, rule, defs, f"{dot}{key[:60]}")


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _number_faults(value: float, schema: Mapping[str, Any], here: str) -> Iterator[str]:
    if value < schema.get("minimum", -math.inf):
        yield f"{here}: expected at least {schema['minimum']}, got {value}"
    if value <= schema.get("exclusiveMinimum", -math.inf):
        yield f"{here}: expected more than {schema['exclusiveMinimum']}, got {value}"
    if value > schema.get("maximum", math.inf):
        yield f"{here}: expected at most {schema['maximum']}, got {value}"


def _list_faults(
    value: list[Any], schema: Mapping[str, Any], defs: Mapping[str, Any], at: str
) -> Iterator[str]:
    if len(value) < schema.get("minItems", 0):
        yield f"{at}: expected at least {schema['minItems']} items, got {len(value)}"
    if len(value) > schema.get("maxItems", math.inf):
        yield f"{at}: expected at most {schema['maxItems']} items, got {len(value)}"
    rule = schema.get("items")
    if rule is None:
        return
    if rule.get("type") == "integer":  # long lists of ranks: one pass in C
        least = rule.get("minimum", -math.inf)
        if all(type(item) is int and item >= least for item in value):
            return
    for i, item in enumerate(value):
        yield from schema_faults(item, rule, defs, f"{at}[{i}]")


def _contradictions(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the parts of a plan do not agree with each other."""
    axes, placement = document["axes"], document["placement"]
    ranks = len(placement["rank_to_gpu"])
    stride = 1
    for i, axis in enumerate(axes):
        if axis["stride"] != stride:
            yield f"axes[{i}].stride: expected {stride}, got {axis['stride']}"
            return
        stride *= axis["size"]
    if stride != ranks:
        yield f"axes: have {stride} ranks in all, placement.rank_to_gpu has {ranks}"
    if len(set(placement["rank_to_gpu"])) != ranks:
        yield "placement.rank_to_gpu: two ranks on one GPU"
    if len(placement["gpus"]) != ranks:
        yield f"placement.gpus: expected {ranks} names, got {len(placement['gpus'])}"
    held = [rank for domain in placement["domains"] for rank in domain["ranks"]]
    if sorted(held) != list(range(ranks)):
        yield f"placement.domains: must hold each rank from 0 to {ranks - 1} exactly once"
    for i, domain in enumerate(placement["domains"]):
        if len(domain["ranks"]) > domain["capacity"]:
            yield (
                f"placement.domains[{i}]: {len(domain['ranks'])} ranks on {domain['capacity']} GPUs"
            )
    names = {axis["name"] for axis in axes}
    for i, family in enumerate(document["traffic"]):
        unknown = [name for name in family["axes"] if name not in names]
        if unknown or not family["axes"]:
            yield f"traffic[{i}].axes: expected some of {sorted(names)}, got {family['axes']}"
    yield from _step_faults(document["step"])


def _step_faults(step: Mapping[str, Any]) -> Iterator[str]:
    for i, entry in enumerate(step["critical_path"]):
        for key in ("seconds", "share", "gain_if_free_s", "own_s"):
            if not _is(entry[key], "number") or entry[key] < 0:
                yield f"step.critical_path[{i}].{key}: expected 0 or more, got {entry[key]!r:.40}"
        for key in ("name", "kind", "premise"):
            if not isinstance(entry[key], str):
                yield f"step.critical_path[{i}].{key}: expected text, got {entry[key]!r:.40}"
    if step["total_s"] == 0:
        yield "step.total_s: expected more than 0, got 0"


def _same_members(plan: PlanFile, family: Mapping[str, Any]) -> bool:
    wanted = plan.members(family)
    groups: Sequence[Sequence[int]] = family["members"]
    if len(groups) != len(wanted) or any(len(group) != wanted.shape[1] for group in groups):
        return False
    return bool(np.array_equal(np.array(groups), wanted))


def _untouched(document: Mapping[str, Any]) -> bool:
    inputs = {key: value for key, value in document["inputs"].items() if key != "sha256"}
    return inputs_sha256(inputs) == str(document["inputs"]["sha256"])
