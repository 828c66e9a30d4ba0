"""``planner place`` as a user runs it: the document, the page, the refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]

SCHEMA = Path(__file__).parents[2] / "cli" / "schemas" / "place.json"
DENSE = ("--supernode", "8", "--gpus", "64", "--model", "llama-3.1-8b", "--tp", "4",
         "--cp", "2", "--dp", "2", "--pp", "4", "--vpp", "2", "--global-batch", "64",
         "--seq", "8192")  # fmt: skip
MOE = ("--supernode", "4", "--gpus", "16", "--model", "mixtral-8x7b", "--tp", "2", "--cp", "1",
       "--ep", "8", "--dp", "8", "--pp", "1", "--global-batch", "64")  # fmt: skip
UNEVEN = ("--supernode", "5", "--gpus", "12", "--model", "llama-3.1-8b", "--tp", "2", "--dp", "3",
          "--pp", "2", "--vpp", "1", "--cp", "1", "--zero", "1", "--micro-batch", "1",
          "--global-batch", "12")  # fmt: skip


_SEEN: dict[tuple[str, ...], dict[str, Any]] = {}


def documented(planner: Planner, *arguments: str) -> dict[str, Any]:
    """The document, made once: tests only read it."""
    if arguments not in _SEEN:
        ran = planner("place", *arguments, "--json")
        assert ran.code == 0, ran.err
        _SEEN[arguments] = json.loads(ran.out)
    return _SEEN[arguments]


def cost(collective: str, payload_bytes: float, homes: list[str]) -> float:
    """The published table: what a group whose members sit in *homes* sends over the cut."""
    members, k = len(homes), len(set(homes))
    match collective:
        case "all_reduce":
            return 2 * payload_bytes * (k - 1)
        case "reduce_scatter" | "all_gather":
            return payload_bytes * (k - 1)
        case "all_to_all":
            return payload_bytes * sum(n * (members - n) for n in Counter(homes).values())
        case "ring":
            return payload_bytes * k if k > 1 else 0.0
        case "chain":
            return payload_bytes * sum(a != b for a, b in pairwise(homes))
    raise AssertionError(collective)


@pytest.mark.parametrize("arguments", [DENSE, MOE, UNEVEN], ids=["dense", "moe", "uneven"])
def test_anyone_can_recompute_the_cut_from_the_document_alone(
    planner: Planner, arguments: tuple[str, ...]
) -> None:
    document = documented(planner, *arguments, "--with-groups")

    home = {
        rank: domain["name"]
        for domain in document["placement"]["domains"]
        for rank in domain["ranks"]
    }
    recomputed = {
        entry["family"]: entry["times_per_step"]
        * sum(
            cost(entry["collective"], entry["payload_bytes"], [home[rank] for rank in group])
            for group in entry["members"]
        )
        for entry in document["traffic"]
    }

    cut = document["cut"]
    assert sum(recomputed.values()) == pytest.approx(cut["objective_bytes"], rel=1e-12)
    assert cut["by_family"] == pytest.approx(recomputed, rel=1e-12)
    assert cut["checked_bytes"] == pytest.approx(cut["objective_bytes"], rel=1e-12)
    assert cut["objective_bytes"] > 0
    gap = 1 - cut["lower_bound_bytes"] / cut["objective_bytes"]
    assert cut["gap"] == pytest.approx(gap, abs=1e-12)
    assert all(b["cut_bytes"] >= cut["objective_bytes"] for b in document["baselines"])


@pytest.mark.parametrize("arguments", [DENSE, MOE, UNEVEN], ids=["dense", "moe", "uneven"])
def test_groups_follow_from_the_axes(planner: Planner, arguments: tuple[str, ...]) -> None:
    document = documented(planner, *arguments, "--with-groups")

    axes = {axis["name"]: axis for axis in document["axes"]}
    ranks = range(len(document["placement"]["rank_to_gpu"]))
    for entry in document["traffic"]:
        others = [axis for name, axis in axes.items() if name not in entry["axes"]]
        groups: dict[tuple[int, ...], list[int]] = {}
        for rank in ranks:
            key = tuple(rank // axis["stride"] % axis["size"] for axis in others)
            groups.setdefault(key, []).append(rank)
        expected = [
            [group[0], group[-1]] if entry["ends_only"] else group for group in groups.values()
        ]
        assert sorted(map(sorted, entry["members"])) == sorted(expected)
        assert entry["groups"] == len(expected)
        assert entry["group_size"] == len(expected[0])


@pytest.mark.parametrize("arguments", [DENSE, MOE, UNEVEN], ids=["dense", "moe", "uneven"])
def test_the_document_is_as_its_published_schema_says(
    planner: Planner, arguments: tuple[str, ...]
) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)

    document = documented(planner, *arguments, "--with-groups")

    jsonschema.Draft202012Validator(schema).validate(document)


def test_every_rank_has_one_gpu_and_every_domain_room(planner: Planner) -> None:
    document = documented(planner, *UNEVEN, "--with-groups")

    placement = document["placement"]
    assert sorted(placement["rank_to_gpu"]) == list(range(12))
    assert [d["capacity"] for d in placement["domains"]] == [5, 5, 2]
    assert all(len(d["ranks"]) <= d["capacity"] for d in placement["domains"])
    assert sorted(r for d in placement["domains"] for r in d["ranks"]) == list(range(12))


def test_same_inputs_give_the_same_bytes_and_another_seed_another_hash(planner: Planner) -> None:
    first = planner("place", *DENSE, "--json").out
    second = planner("place", *DENSE, "--json").out
    other = json.loads(planner("place", *DENSE, "--json", "--seed", "1").out)

    assert first == second
    assert json.loads(first)["inputs"]["sha256"] != other["inputs"]["sha256"]


def test_out_writes_the_same_document_and_the_page_still_comes(
    planner: Planner, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"

    page = planner("place", *DENSE, "--out", str(plan))
    printed = planner("place", *DENSE, "--json")

    assert plan.read_text(encoding="utf-8") == printed.out
    assert page.code == 0
    assert "leave the supernodes" in page.out
    assert json.loads(printed.out)["inputs"]["sha256"] in page.out


def test_parts_of_the_step_and_of_the_memory_add_up(planner: Planner) -> None:
    document = documented(planner, *DENSE, "--with-groups")

    step, memory = document["step"], document["memory"]
    path = sum(entry["seconds"] for entry in step["critical_path"])
    assert path == pytest.approx(step["total_s"], rel=0.02)
    assert sum(memory["parts"].values()) == pytest.approx(memory["worst_stage_bytes"])
    assert step["interval_s"][0] < step["total_s"] < step["interval_s"][1]
    assert step["total_s"] <= step["serial_s"]


def test_what_is_left_out_is_chosen_and_said(planner: Planner) -> None:
    document = documented(planner, "--supernode", "8", "--gpus", "16", "--tp", "2")

    layout, assumed = document["inputs"]["layout"], document["inputs"]["assumed"]
    assert layout["tp"] == 2
    assert layout["tp"] * layout["cp"] * layout["dp"] * layout["pp"] == 16
    assert document["inputs"]["layout_given"] == ["tp"]
    assert "default" in assumed["model"]
    assert "arXiv" in assumed["global_batch"]
    choice = document["choice"]
    out = sum(choice["rejected"].values())
    assert choice["layouts_considered"] == choice["layouts_feasible"] + out


def test_a_layout_file_is_worth_the_same_options(planner: Planner, tmp_path: Path) -> None:
    file = tmp_path / "layout.yaml"
    file.write_text("tp: 4\ncp: 2\ndp: 2\npp: 4\nvpp: 2\nglobal_batch: 64\nseq: 8192\n")

    filed = documented(planner, *DENSE[:6], "--layout", str(file))
    optional = documented(planner, *DENSE)

    assert filed["inputs"]["sha256"] == optional["inputs"]["sha256"]


@pytest.mark.parametrize("width", ["80", "120", "160"])
def test_the_page_fits_its_width_and_has_no_colour(
    planner: Planner, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)

    page = planner("place", *DENSE).out

    assert max(map(len, page.splitlines())) <= int(width)
    assert "\x1b" not in page
    assert "…" not in page.split("Where the ranks sit")[0]
    for wanted in ("Asked", "What crosses", "rank order", "Proved", "Memory", "GB/s", "MFU"):
        assert wanted in page


REFUSED = {
    "an unknown key": (["--layout", "{layout}"], "tp: 4\nbogus: 3\n", "bogus", 2),
    "tp that does not divide the heads": (["--tp", "3"], "", "tp=3 does not divide", 2),
    "ep that does not divide the experts": (
        ["--model", "mixtral-8x7b", "--ep", "3"], "", "ep=3 does not divide the 8 experts", 2,
    ),
    "degrees that do not multiply to the GPUs": (
        ["--tp", "2", "--cp", "1", "--dp", "7", "--pp", "2"], "", "= 28 does not equal the 16", 2,
    ),
    "a degree that does not divide the GPUs": (["--dp", "7"], "", "dp = 7 does not divide", 2),
    "a layout that fits on no GPU": (
        ["--model", "llama-3.1-405b", "--tp", "8"], "", "too much", 3,
    ),
    "an empty file": (["--model", "{layout}"], "", "holds nothing", 2),
    "a cut-off file": (["--model", "{layout}"], '{{"hidden_size": 4096, "num', "layout", 2),
    "a folder": (["--model", "{folder}"], "", "folder", 2),
    "a folder for a layout": (["--layout", "{folder}"], "", "directory", 2),
    "a folder for a cluster": (["--cluster", "{folder}"], "", "", 2),
    "an unknown cluster": (["--cluster", "nope"], "", "unknown cluster 'nope'", 2),
    "an unknown model": (["--model", "llama-3.1-405"], "", "llama-3.1-405b", 2),
    "an unknown tier": (["--tier", "rack"], "", "rack", 2),
    "an unknown order": (["--order", "tp-dp"], "", "order='tp-dp'", 2),
    "a key given twice": (["--layout", "{layout}", "--tp", "2"], "tp: 4\n", "given twice", 2),
    "a precision the GPU does not have": (
        ["--cluster", "hgx-a100", "--precision", "fp8"], "", "precision=fp8", 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_is_refused_with_the_reason_and_nothing_written(
    planner: Planner, tmp_path: Path, case: str
) -> None:
    arguments, text, reason, code = REFUSED[case]
    layout, folder, out = tmp_path / "layout.yaml", tmp_path / "folder", tmp_path / "plan.json"
    layout.write_text(text.format())
    folder.mkdir()
    given = [a.format(layout=layout, folder=folder) for a in arguments]
    sized = [] if "--cluster" in given else ["--gpus", "16"]

    ran = planner("place", *sized, *given, "--json", "--out", str(out))

    assert ran.code == code
    assert ran.out == ""
    assert reason in ran.err
    assert "Traceback" not in ran.err
    assert "fault of the planner" not in ran.err
    assert not out.exists()


def test_a_cluster_without_a_rate_or_with_nan_is_refused_with_its_line(
    planner: Planner, tmp_path: Path
) -> None:
    shipped = Path(__file__).parents[2] / "topologies" / "catalogue" / "hgx-h100.yaml"
    text = shipped.read_text(encoding="utf-8")
    without, nan = tmp_path / "without.yaml", tmp_path / "nan.yaml"
    without.write_text(text.replace("  rate: 450 GB/s\n", ""))
    nan.write_text(text.replace("rate: 450 GB/s", "rate: .nan"))

    missing = planner("place", "--cluster", str(without))
    no_number = planner("place", "--cluster", str(nan))

    assert (missing.code, no_number.code) == (2, 2)
    assert "without.yaml:" in missing.err
    assert "rate" in missing.err
    assert "nan.yaml:8:" in no_number.err


def test_an_alias_bomb_is_refused(planner: Planner, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.yaml"
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    bomb.write_text("\n".join(lines))

    for option in ("--cluster", "--model", "--layout"):
        ran = planner("place", option, str(bomb))

        assert ran.code == 2
        assert "bomb.yaml:" in ran.err


def test_faults_of_cluster_model_and_layout_are_told_at_once(
    planner: Planner, tmp_path: Path
) -> None:
    layout = tmp_path / "layout.yaml"
    layout.write_text("tpp: 3\n")

    ran = planner("place", "--cluster", "nope", "--model", "nix", "--layout", str(layout))

    assert ran.code == 2
    assert all(word in ran.err for word in ("nope", "nix", "layout.yaml:1:1"))


def test_a_layout_that_does_not_fit_can_be_seated_anyway(planner: Planner) -> None:
    arguments = ("--gpus", "16", "--supernode", "8", "--model", "llama-3.1-405b", "--tp", "8",
                 "--ignore-memory")  # fmt: skip
    document = documented(planner, *arguments)

    page = planner("place", *arguments).out

    assert document["memory"]["fits"] is False
    assert "It does not fit" in page


def test_one_gpu_is_a_placement_that_cuts_nothing(planner: Planner) -> None:
    document = documented(
        planner, "--gpus", "1", "--supernode", "1", "--model", "llama-3.1-8b", "--ignore-memory"
    )

    assert document["cut"]["objective_bytes"] == 0
    assert document["cut"]["proof"] == "bound"
    assert document["placement"]["rank_to_gpu"] == [0]


def test_a_closed_output_is_no_traceback() -> None:
    ran = subprocess.run(
        f"{sys.executable} -m cli.planner_app topology list >&-",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "Traceback" not in ran.stderr
    assert ran.returncode in (0, 4)


def test_plot_draws_the_seats(planner: Planner, tmp_path: Path) -> None:
    picture = tmp_path / "seats.svg"

    ran = planner("place", *DENSE, "--plot", str(picture))

    assert ran.code == 0
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    assert planner("place", *DENSE, "--plot", str(tmp_path / "seats.gif")).code == 2


def test_each_collective_names_its_cheapest_walk(planner: Planner) -> None:
    document = documented(planner, *DENSE, "--with-groups")

    walks = {entry["family"]: entry["walk"] for entry in document["traffic"]}
    assert walks["pp_forward"] == "neighbour"
    assert all(walks.values())
