"""What a refusal or a page says to type next is an option that there is, and does what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
GENERIC = Path(__file__).parents[2] / "topologies" / "catalogue" / "generic.yaml"
WHOLE = ("--tp", "4", "--cp", "1", "--dp", "2", "--pp", "1", "--vpp", "1", "--zero", "1",
         "--micro-batch", "1", "--recompute", "full")  # fmt: skip
TYPED = "--tp, --cp, --dp, --pp, --vpp, --zero, --micro-batch, --recompute"


def words_of(page: str) -> str:
    return " ".join(page.split())


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Return a cluster of 256 GPUs, three of them dead."""
    text = GENERIC.read_text(encoding="utf-8").replace("gpus: 1024", "gpus: 256", 1)
    path = tmp_path / "cl.yaml"
    path.write_text(f"{text.rstrip()}\ndead: {{gpus: [3, 17, 30]}}\n", encoding="utf-8")
    return path


def test_a_layout_that_is_given_whole_is_not_called_chosen(
    planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("--supernode", "8", "--gpus", "8", "--model", "llama-3.1-8b")
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text("tp: 4\ncp: 1\n", encoding="utf-8")

    step = words_of(planner("step", *asked, *WHOLE).out)
    place = words_of(planner("place", *asked, *WHOLE).out)
    filed = words_of(planner("step", *asked, "--layout", "run.yaml", *WHOLE[4:]).out)

    assert f"layout given by {TYPED} Critical path" in step
    assert f"ranks tp-cp-ep-dp-pp; given by {TYPED}" in place
    given = "given by run.yaml, --dp, --pp, --vpp, --zero, --micro-batch, --recompute Critical"
    assert given in filed
    assert "chosen" not in step + place + filed


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        # 240 is the largest multiple of 16 in 253
        (("256",), "3 too few; --gpus 240 would do, and is taken without --gpus"),
        (("256", "--dp", "32"), "3 too few; --gpus 224 would do"),
        (("256", "--tp", "8", "--cp", "1", "--dp", "32", "--pp", "1"),
         "3 too few; degrees with a product of at most 253 would do"),
    ],
)  # fmt: skip
def test_too_many_gpus_are_refused_with_a_number_that_would_do(
    planner: Planner, damaged: Path, asked: tuple[str, ...], says: str
) -> None:
    ran = planner("step", "--cluster", str(damaged), "--gpus", *asked, "--model", "llama-3.1-8b")

    assert ran.code == 3
    assert ran.err.rstrip().endswith(says)


def test_the_number_that_would_do_does(planner: Planner, damaged: Path) -> None:
    job = ("step", "--cluster", str(damaged), "--model", "llama-3.1-8b")

    asked, unasked = planner(*job, "--gpus", "240"), planner(*job)

    assert (asked.code, unasked.code) == (0, 0), asked.err + unasked.err
    assert "llama-3.1-8b on 240 " in words_of(asked.out)
    assert "llama-3.1-8b on 240 " in words_of(unasked.out)


@pytest.mark.parametrize(
    ("command", "then"),
    [
        ("step", "then planner step --placement plan.json"),
        ("compare", "then planner compare plan.json OTHER.json"),
        ("search", "chooses the layout for what is free"),
    ],
)
def test_commands_without_a_free_list_say_how_they_get_one(
    planner: Planner, command: str, then: str
) -> None:
    ran = planner(command, "--free", "free.txt")

    assert ran.code == 2
    assert "planner place --free FILE" in ran.err
    assert then in ran.err
    assert "did you mean" not in ran.err


def test_a_plan_of_a_free_list_is_stepped_as_the_hint_says(
    planner: Planner, tmp_path: Path
) -> None:
    free, plan = tmp_path / "free.txt", tmp_path / "plan.json"
    free.write_text("sn[00-01]*4\n", encoding="utf-8")

    placed = planner("place", "--supernode", "8", "--gpus", "32", "--free", str(free), "--model",
                     "llama-3.1-8b", "--time-limit", "5", "--out", str(plan))  # fmt: skip
    stepped = planner("step", "--placement", str(plan))

    assert (placed.code, stepped.code) == (0, 0), placed.err + stepped.err
    assert "llama-3.1-8b on 8 " in words_of(stepped.out)


def test_a_sweep_names_the_options_that_it_does_not_take(planner: Planner, tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text("models: [llama-3.1-8b]\n", encoding="utf-8")
    job = ("search", "--sweep", str(sweep), "--into", str(tmp_path / "x.db"))

    tokens = planner(*job, "--tokens", "15T")
    listed = planner(*job, "--model", "llama-3.1-8b", "--gpus", "8")

    assert tokens.code == listed.code == 2
    assert "error: --tokens: not beside --sweep; beside it stand --into, " in tokens.err
    assert "error: --gpus, --model: not beside --sweep, whose file lists models, " in listed.err


def test_a_chosen_layout_typed_back_as_its_page_says_has_the_same_numbers(
    planner: Planner, damaged: Path
) -> None:
    job = ("step", "--cluster", str(damaged), "--gpus", "224", "--model", "llama-3.1-70b")

    chosen = words_of(planner(*job).out)

    told = re.search(r"To type it back add --global-batch (\d+), .* rounded to ([\d,]+)", chosen)
    assert told, chosen
    # 16 million tokens in sequences of 8,192, 2,048, are 9.14 times 224 and 2,016 nine times
    assert told[1] == "2016"
    taken = re.search(
        r", tp (\d+), dp (\d+), pp (\d+) x (\d+) virtual, micro-batch (\d+), ZeRO (\d), (\w+) ",
        chosen,
    )
    assert taken, chosen
    names = ("--tp", "--dp", "--pp", "--vpp", "--micro-batch", "--zero", "--recompute")
    degrees = [word for pair in zip(names, taken.groups(), strict=True) for word in pair]
    back = planner(*job, "--cp", "1", *degrees, "--global-batch", told[1])
    other = planner(*job, "--cp", "1", *degrees)
    verdict = chosen.split(" The interval")[0]
    assert words_of(back.out).startswith(verdict)
    assert not words_of(other.out).startswith(verdict)
    assert "To type it back" not in back.out


def test_replicas_that_are_left_to_the_rest_are_typed_back_with_their_batch(
    planner: Planner, damaged: Path
) -> None:
    job = ("step", "--cluster", str(damaged), "--gpus", "224", "--model", "llama-3.1-70b", "--tp",
           "8", "--cp", "1", "--pp", "2", "--vpp", "8", "--zero", "1", "--micro-batch", "2",
           "--recompute", "selective")  # fmt: skip

    page = words_of(planner(*job).out)
    back = words_of(planner(*job, "--dp", "14", "--global-batch", "2240").out)

    # 2,048 to whole micro-batches of all 224 GPUs, 448; of 14 replicas in turns of 2 stages, 56
    assert "To type it back add --global-batch 2240" in page
    assert "rounded to 2,072" in page
    assert back.startswith(page.split(" The interval")[0])
