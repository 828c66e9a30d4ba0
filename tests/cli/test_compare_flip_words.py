"""What is said of the layouts that flips start from, and of where nothing fits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from cli.compare_flips import fastest_lines, flip_questions, now_sentence
from cli.report_html_origin import clusters_command
from planner.layout import Layout
from planner.procure.prices import PriceList
from planner.search.flips import Flip

FASTER = Layout(tp=8, dp=4, global_batch=8)


def comparison(taken_s: float, *flips: Flip) -> Any:
    """Return one cluster whose fastest layout takes 0.968 s, the ranked one *taken_s*."""
    one = SimpleNamespace(
        candidate=SimpleNamespace(name="sea", model="m"),
        finalist=SimpleNamespace(layout=Layout(tp=8, dp=2, pp=2, global_batch=8)),
    )
    return SimpleNamespace(
        flips=flips, unseated=(), unanswered=(), first=one, prices=None,
        asked=SimpleNamespace(sizes=SimpleNamespace(goal=SimpleNamespace(equal="gpus"))),
        compared=SimpleNamespace(
            ranked=[one], fastest={"sea": SimpleNamespace(layout=FASTER, step_s=0.968)},
            seats={"sea": SimpleNamespace(quick_s=lambda _model, _layout: taken_s)},
        ),
    )  # fmt: skip


def flip(kind: str, after: str) -> Flip:
    return Flip(name="seq", kind=kind, factor=8.0, before="sea", after=after, held_factor=7.9)


def test_a_faster_layout_that_is_not_usual_is_told_as_place_tells_it() -> None:
    said = " ".join(fastest_lines(comparison(1.0)))

    # 1 s against 0.968 s: 3.2 % less, though one is 3.3 % behind the other.
    assert "A faster layout was passed over on sea: tp 8, dp 4, micro-batch 1" in said
    assert "968 ms, 3.2 % less. It is not run in one of the usual ways" in said
    assert "hardly tell" not in said


def test_of_several_the_reason_is_told_once() -> None:
    found = comparison(1.0)
    found.compared.ranked.append(found.compared.ranked[0])

    said = fastest_lines(found)

    assert len(said) == 2
    assert "usual ways" not in said[0]
    assert "None of these is run in one of the usual ways" in said[1]


def test_a_layout_as_good_is_not_called_passed_over() -> None:
    said = " ".join(fastest_lines(comparison(0.968 * 1.01)))

    assert "passed over" not in said
    assert "hardly tell them from the fastest" in said
    assert "0.990 % on sea" in said


def test_the_fastest_itself_needs_no_excuse() -> None:
    found = comparison(0.968)

    assert fastest_lines(found) == []
    assert now_sentence(found).endswith("sea is first, with a step of 968 ms.")


def test_where_nothing_fits_no_other_cluster_is_called_the_fastest(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr("cli.compare_flips._table", lambda flips, _found: len(flips))
    found = comparison(1.0, flip("winner", "nothing fits"), flip("winner", "sky"))

    words = [one.words for one in flip_questions(found)]

    assert words == [
        "The fastest cluster is no longer sea",
        "No layout fits any longer on any cluster; the fastest until then: sea",
    ]


def test_the_command_that_looks_for_flips_by_price_names_a_price_list() -> None:
    inputs = {"cluster_asked": "hgx-h100", "gpus": 64, "model": "m", "assumed": {}, "supernode": 8}

    assert "--prices prices.yaml" in clusters_command([inputs], PriceList(currency="EUR", items={}))
    assert "--prices" not in clusters_command([inputs], None)
