"""What is no launch script, unfinished shell, and the layer patterns of arguments."""

from __future__ import annotations

import subprocess

import pytest

from planner.errors import SpecError
from tests.launch_texts import faults
from topologies.pattern_text import parse_pattern
from topologies.shell_text import UNKNOWN, read_script


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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("T=1; [ 1 = 2 ] && T=2", "1"),
        ("T=1; [ 1 = 1 ] && T=2", "2"),
        ("T=1; [ 1 = 2 ] || T=2", "2"),
        ("[ 1 = 2 ] && T=1 || T=8", "8"),
        ("cd x && T=4", "4"),
        ("if [ 1 = 2 ] || [ 3 = 3 ]; then T=1; else T=2; fi", "1"),
        ("if [ 1 = 1 ] && [ 3 = 4 ]; then T=1; else T=2; fi", "2"),
        ("if [ 1 = 1 ]; then T=1; elif [ 2 = 2 ]; then T=2; else T=3; fi", "1"),
        ("if [ 1 = 2 ]; then T=1; elif [ 1 = 1 ] && [ 2 = 3 ]; then T=2; else T=3; fi", "3"),
        ("T=1; [[ $NOT_SET == 1 ]] && T=2", UNKNOWN),
        ('T=1; [ "$NOT_SET" = 1 ] && T="$T 2"', "1 " + UNKNOWN),
        ('T=1; if [ "$NOT_SET" = 1 ]; then T+=" 2"; fi', "1 " + UNKNOWN),
        ("T=$((${N:-4} * ${G:-$((2 + 2))} / 2))", "8"),
        ("N=3; T=$((N * $N + ${N}))", "12"),
        ("T=$(( $(nproc) * 2 ))", UNKNOWN),
        ("[[ $NOT_SET == 1 ]] && T=1 || T=8", UNKNOWN),
        ("if [ 1 = 1 ] && [ $NOT_SET = 4 ]; then T=1; else T=2; fi", UNKNOWN),
    ],
)
def test_what_hangs_on_a_test_is_what_bash_would_have_or_unknown(text: str, value: str) -> None:
    assert read_script(text).variables["T"] == value
    if UNKNOWN not in value:
        told = subprocess.run(
            ["/bin/bash", "-c", f"cd() {{ :; }}\n{text}\necho $T"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert told.stdout.strip() == value


def test_redirections_are_no_words_of_a_command() -> None:
    script = read_script("run --n 8 2>&1 | tee log; run --n 9 &> out.txt; run --n 7 > a 2>> b < c")

    found = [[word.raw for word in command] for command in script.commands]

    assert found == [["run", "--n", "8"], ["tee", "log"], ["run", "--n", "9"], ["run", "--n", "7"]]
