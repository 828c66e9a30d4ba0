"""What the page of ``planner step`` says before its numbers, and in which order it lists them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

Planner = Callable[..., Any]

# 128 GPUs fill one supernode of 72 and 56 seats of another; 72 is nine groups of 8.
UNEVEN = ("--cluster", "gb200-nvl72", "--gpus", "128", "--model", "mixtral-8x7b", "--tp", "1",
          "--cp", "1", "--pp", "1", "--ep", "8", "--seq", "4096", "--global-batch", "128",
          "--precision", "fp8")  # fmt: skip
DENSE = ("--gpus", "64", "--supernode", "8", "--model", "llama-3.1-8b", "--tp", "8", "--dp", "8",
         "--global-batch", "64", "--seq", "8192", "--micro-batch", "1")  # fmt: skip
NO_ROOM = ("--gpus", "8", "--supernode", "8", "--model", "llama-3.1-70b", "--tp", "8", "--pp", "1",
           "--dp", "1", "--cp", "1", "--global-batch", "8", "--seq", "8192")  # fmt: skip


def words_of(page: str) -> str:
    return " ".join(page.split())


def test_a_page_says_what_was_taken_and_of_which_peak_the_share_is(planner: Planner) -> None:
    page = words_of(planner("step", *UNEVEN).out)

    assert re.search(r"MFU [\d.]+ % of the 16-bit peak, ", page)
    assert re.search(r" taken dp 128, micro-batch \d+, ZeRO \d, \w+ recomputation chosen ", page)
    assert "chosen --tp, --cp, --ep, --pp, --global-batch, --seq, --precision given; of " in page
    assert "straddling" not in page


def test_a_part_of_each_supernode_is_told_as_place_tells_it(planner: Planner) -> None:
    given = ("--cluster", "gb200-nvl72", "--gpus", "512", "--model", "deepseek-v3", "--tp", "1",
             "--pp", "16", "--dp", "32", "--ep", "32", "--precision", "fp8")  # fmt: skip
    ran = planner("step", *given, "--json")
    part = json.loads(ran.out)["part_used"]
    page = words_of(planner("step", *given).out)

    assert (part["gpus_of_each"], part["supernodes"]) == (64, 8)
    assert (
        "With 64 of the 72 GPUs of each supernode used, of 8 supernodes (576 GPUs), a step takes"
        in page
    )
    assert "6 of 16 EP groups over up to 2 supernodes" in page  # 72 k is in 6 of 16 runs of 32


def test_what_would_change_it_begins_with_what_saves_or_costs_most(planner: Planner) -> None:
    document = json.loads(planner("step", *DENSE, "--json").out)
    step_s, rows = document["step"]["total_s"], document["sensitivity"]
    weights = [max(row["gain_s"], abs(row["doubled_s"] - step_s)) for row in rows]
    saving = [row["gain_s"] > 0 for row in rows]
    many = sum(saving)

    assert saving == sorted(saving, reverse=True)
    assert weights[:many] == sorted(weights[:many], reverse=True)
    assert weights[many:] == sorted(weights[many:], reverse=True)


def test_a_layout_without_room_is_said_first_of_all(planner: Planner) -> None:
    ran = planner("step", *NO_ROOM)

    assert ran.code == 0
    assert ran.out.startswith("It does not fit: ")
    assert "Were there room: " in ran.out


@pytest.mark.parametrize(
    ("seq", "said"),
    [("100000000", "Sequences of 100,000,000 tokens: llama-3.1-8b is made for 131,072."),
     ("8192", "")],
)  # fmt: skip
def test_sequences_beyond_the_models_are_told(planner: Planner, seq: str, said: str) -> None:
    given = ("--gpus", "8", "--supernode", "8", "--model", "llama-3.1-8b", "--tp", "8", "--cp",
             "1", "--dp", "1", "--pp", "1", "--global-batch", "1")  # fmt: skip
    page = words_of(planner("step", *given, "--seq", seq).out)

    assert said in page
    assert ("Sequences of" in page) == bool(said)
    assert ("a run has thousands of steps" in page) == bool(said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("step", "--gpus", "-512"), "expected a whole number from 1 to 1000000, got '-512'"),
        (("step", "--precision", "fp4"), "expected one of bf16, fp16, fp8, got 'fp4'"),
        (("place", "--alternatives", "-3"), "expected at least 0, got '-3'"),
        (("place", "--alternatives", "21"), "expected at most 20, got '21'"),
        (("place", "--alternatives", "x"), "expected a whole number, got 'x'"),
        (("step", "--cluster", "gb200"), "did you mean 'gb200-nvl72'?"),
        (("step", "--model", "70b"), "did you mean llama-2-70b or llama-3.1-70b?"),
    ],
)
def test_refused_values_are_told_in_our_words(
    planner: Planner, arguments: tuple[str, ...], said: str
) -> None:
    ran = planner(*arguments)

    assert ran.code == 2
    assert said in ran.err
    assert "Input should be" not in ran.err
    assert "Value error" not in ran.err
