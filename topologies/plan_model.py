"""The model of a plan, from the shape that the plan's document keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from planner.errors import SpecError
from planner.model import Attention, ModelSpec

_MOST_LAYERS = 100_000
_LARGEST = 10**12
_LEFT_OUT = ("assumed",)


def model_of_shape(shape: object, *, name: str) -> ModelSpec:
    """Return the model whose fields are *shape*, as ``inputs.model_shape`` of a plan has them.

    Args:
        shape: field to value, ``attention`` being a mapping itself.
        name: what faults call the document.

    Raises:
        SpecError: fields that are missing, unknown, or of another type.

    >>> model_of_shape({"name": "m"}, name="plan.json")
    Traceback (most recent call last):
    planner.errors.SpecError: plan.json: inputs.model_shape.attention: expected a mapping
    """
    where = f"{name}: inputs.model_shape"
    if not isinstance(shape, Mapping):
        raise SpecError(f"{where}: expected a mapping")
    inner = shape.get("attention")
    if not isinstance(inner, Mapping):
        raise SpecError(f"{where}.attention: expected a mapping")
    attention = Attention(**_checked(inner, Attention, f"{where}.attention"))
    rest = {key: value for key, value in shape.items() if key not in {"attention", *_LEFT_OUT}}
    return ModelSpec(**{**_checked(rest, ModelSpec, where), "attention": attention})


def _checked(given: Mapping[str, Any], kind: type, where: str) -> dict[str, Any]:
    """Return the fields in *given*, lists as tuples, each of the type that *kind* declares."""
    declared = {f.name: str(f.type) for f in fields(kind)}
    faults = [f"{where}: unknown field {str(key)[:40]!r}" for key in given if key not in declared]
    found: dict[str, Any] = {}
    for key, value in given.items():
        if key not in declared:
            continue
        if declared[key].startswith("tuple["):
            item = declared[key][len("tuple[") :].partition(",")[0]
            good = isinstance(value, list | tuple) and len(value) <= _MOST_LAYERS
            good = good and all(_is(one, item) for one in value)
            found[key] = tuple(value) if good else ()
        else:
            good = _is(value, declared[key])
            found[key] = value
        if not good:
            faults.append(f"{where}.{key}: {str(value)[:40]!r}: expected {declared[key]}")
    needed = [
        f.name for f in fields(kind)
        if f.name not in given and f.name != "attention" and not _has_default(f)
    ]  # fmt: skip
    faults += [f"{where}: missing field {key!r}" for key in needed]
    if faults:
        raise SpecError(*faults[:20])
    return found


def _is(value: Any, declared: str) -> bool:
    kinds = {"int": int, "bool": bool, "str": str}
    return type(value) is kinds.get(declared, object) and (
        type(value) is not int or abs(value) <= _LARGEST
    )


def _has_default(field: Any) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING
