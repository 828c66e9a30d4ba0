"""What is no launch script, unfinished shell, and the layer patterns of arguments."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from tests.launch_texts import faults
from topologies.pattern_text import parse_pattern


@pytest.mark.parametrize("text", ["", "echo hello\n", "ls --all\n", "# --num-layers 4\n"])
def test_a_script_without_arguments_of_megatron_is_refused(text: str) -> None:
    assert "no Megatron arguments" in faults(text)


@pytest.mark.parametrize("text", ["A=(1 2", "x 'abc", "x ${A", "x $((1+2", 'A="b', "x $(ls"])
def test_an_unfinished_quote_or_bracket_is_refused(text: str) -> None:
    assert "run.sh" in faults(text)


def test_a_bomb_of_variables_is_refused_at_once() -> None:
    lines = ["A0=" + "x" * 100] + [f"A{i + 1}=$A{i}$A{i}$A{i}$A{i}" for i in range(30)]

    assert "expands to more than" in faults("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("[0]*3+[1]*2", (0, 0, 0, 1, 1)),
        ("([0,1]*2)", (0, 1, 0, 1)),
        ("2*[1]", (1, 1)),
        ("[1]*(1+2)", (1, 1, 1)),
    ],
)
def test_a_pattern_is_parsed_by_its_four_rules(text: str, value: object) -> None:
    assert parse_pattern(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "[", "[1", "[]", "[1]*", "[1]+1", "[1]*[1]", "__import__('os')", "[1]**9", "[1]*10**9",
        "[1]*100000", "1e9", "[x for x in y]", "(" * 100 + "1" + ")" * 100, "9" * 5000,
        "[1]*9*9*9*9*9*9*9*9*9*9", "[-1]", "[1]; 2",
    ],
)  # fmt: skip
def test_anything_else_is_no_pattern(text: str) -> None:
    with pytest.raises(SpecError):
        parse_pattern(text)
