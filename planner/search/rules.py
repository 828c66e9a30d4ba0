"""The user's rules: conditions on a layout's fields, such as ``tp <= 8 and pp % 2 == 0``.

The text is parsed, never run: numbers, words, fields, arithmetic, comparisons, ``and``, ``or``,
``not`` and brackets, nothing else. A rule is asked of one layout or of columns of them alike.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.errors import InputError
from planner.layout import CP_KINDS, EP_COPIES, RECOMPUTES, SCHEDULES, Layout

COUNTS = ("tp", "cp", "ep", "etp", "dp", "edp", "dp_shard", "dp_replicate", "pp", "vpp",
          "micro_batch", "micro_batches", "global_batch", "seq", "gpus", "zero")  # fmt: skip
WORDS = {"recompute": RECOMPUTES, "cp_kind": CP_KINDS, "ep_copies": EP_COPIES,
         "schedule": SCHEDULES}  # fmt: skip
FLAGS = ("sequence_parallel", "overlap_gradients", "overlap_parameters")
_LONGEST, _DEEPEST, _LARGEST = 400, 40, 10**9
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A condition that every layout must meet.

    Args:
        text: as the user wrote it.
        tree: what it says.
    """

    text: str
    tree: ast.expr

    @property
    def names(self) -> frozenset[str]:
        """The fields that the rule speaks of."""
        return frozenset(one.id for one in ast.walk(self.tree) if isinstance(one, ast.Name))

    def holds(self, values: Mapping[str, Any]) -> Any:
        """Return whether the rule holds, for one layout's values or element by element.

        Args:
            values: field to number or array of numbers; words as the position in their list.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return _value(self.tree, values)

    def allows(self, layout: Layout) -> bool:
        """Return whether *layout* meets the rule; all of dp is a shard group, too.

        >>> parse_rule("tp * cp <= 8 and recompute != 'full'").allows(Layout(tp=4, cp=2))
        True
        """
        values: dict[str, Any] = {
            name: getattr(layout, {"zero": "zero_stage"}.get(name, name))
            for name in (*COUNTS, *FLAGS)
        }
        values["dp_shard"] = layout.dp_shard or layout.dp
        for name, words in WORDS.items():
            values[name] = words.index(getattr(layout, name))
        return bool(self.holds(values))


def parse_rule(text: str) -> Rule:
    """Return the rule that *text* states.

    Raises:
        InputError: it is no rule; says what is wrong and what would be right.

    >>> parse_rule("pp == 1 or vpp >= 2").text
    'pp == 1 or vpp >= 2'
    """
    said = text.strip()
    shown = said[:60]
    if len(said) > _LONGEST:
        raise InputError(f"--where {shown!r}…: longer than {_LONGEST} characters")
    try:
        tree = ast.parse(said, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"--where {shown!r}: is no condition; {_right()}") from None
    faults = list(dict.fromkeys(_faults(tree, 0)))
    if not faults and not _is_claim(tree):
        faults = ["is a number, not a condition"]
    if faults:
        raise InputError(*(f"--where {shown!r}: {fault}; {_right()}" for fault in faults))
    return Rule(text=said, tree=tree)


def parse_rules(texts: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules that *texts* state.

    Raises:
        InputError: every fault of every text.
    """
    rules: list[Rule] = []
    faults: list[str] = []
    for text in texts:
        try:
            rules.append(parse_rule(text))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return tuple(rules)


def _right() -> str:
    return (
        "expected a condition such as 'tp <= 8 and pp % 2 == 0' on "
        f"{', '.join((*COUNTS, *WORDS, *FLAGS))}"
    )


def _faults(node: ast.AST, depth: int) -> list[str]:
    if depth > _DEEPEST:
        return ["is nested too deeply"]
    inner = [fault for one in _inside(node) for fault in _faults(one, depth + 1)]
    match node:
        case ast.Name(id=name):
            known = name in COUNTS or name in WORDS or name in FLAGS
            return [] if known else [f"{name[:30]!r} is no field of a layout"]
        case ast.Constant(value=bool()):
            return []
        case ast.Constant(value=int() | float() as number):
            return [] if abs(number) <= _LARGEST else [f"{number!r:.30} is too large"]
        case ast.Constant(value=str() as word):
            every = sorted({w for words in WORDS.values() for w in words})
            return [] if word in every else [f"{word[:30]!r} is none of {', '.join(every)}"]
        case ast.BinOp(op=op, right=ast.Constant(value=0)) if type(op) in _DIVISIONS:
            return [*inner, "divides by 0"]
        case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
            return inner
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not()):
            return inner
        case ast.BoolOp():
            return inner
        case ast.Compare(ops=ops) if all(type(op) in _COMPARISONS for op in ops):
            return inner or _word_faults(node)
        case _:
            return [f"{type(node).__name__} has no place in a rule"]


def _inside(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.BoolOp(values=values):
            return values
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
    return []


def _word_faults(node: ast.Compare) -> list[str]:
    """Return what is wrong where a word stands: beside it only its own field, by == or !=."""
    sides = [node.left, *node.comparators]
    faults = []
    for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
        for one, other in ((left, right), (right, left)):
            if not (isinstance(one, ast.Constant) and isinstance(one.value, str)):
                continue
            owner = other.id if isinstance(other, ast.Name) else ""
            if one.value not in WORDS.get(owner, ()) or not isinstance(op, ast.Eq | ast.NotEq):
                faults.append(f"{one.value!r} can only be compared with its field, by == or !=")
    return faults


def _is_claim(node: ast.AST) -> bool:
    match node:
        case ast.BoolOp(values=values):
            return all(map(_is_claim, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_claim(operand)
        case ast.Name(id=name):
            return name in FLAGS
        case ast.Constant(value=bool()):
            return True
        case _:
            return isinstance(node, ast.Compare)


def _value(node: ast.AST, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=value):
            if isinstance(value, str):
                return next(words.index(value) for words in WORDS.values() if value in words)
            return value
        case ast.BinOp(left=left, op=op, right=right):
            by = np.asarray(_value(right, values), float)
            if type(op) in _DIVISIONS:  # what is divided by 0 is nothing: no comparison holds of it
                by = np.where(by == 0, np.nan, by)
            return _ARITHMETIC[type(op)](np.asarray(_value(left, values), float), by)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return np.logical_not(_value(operand, values))
        case ast.UnaryOp(op=op, operand=operand):
            return -_value(operand, values) if isinstance(op, ast.USub) else _value(operand, values)
        case ast.BoolOp(op=op, values=parts):
            join = np.logical_and if isinstance(op, ast.And) else np.logical_or
            found = _value(parts[0], values)
            for part in parts[1:]:
                found = join(found, _value(part, values))
            return found
        case ast.Compare(left=left, ops=comparisons, comparators=others):
            met, before = np.bool_(True), _value(left, values)
            for comparison, other in zip(comparisons, others, strict=True):
                after = _value(other, values)
                met = np.logical_and(met, _COMPARISONS[type(comparison)](before, after))
                before = after
            return met
    raise InputError(f"{type(node).__name__} has no place in a rule")
