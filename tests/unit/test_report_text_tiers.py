"""What the page says of the tiers: proved, proved in part, open, weighted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from cli.report_text_tiers import tier_table, tiers_sentence
from planner.place.answer import Placement, Proof, RulePrice, TierCut
from planner.place.rules_place import AMONG_RULED


def _placement(*proofs: Proof, ways: str = "lexicographic") -> Placement:
    names = ("supernode", "leaf", "pod")[: len(proofs)]
    return Placement(
        rank_to_gpu=(0,),
        tier="supernode",
        objective="total",
        objective_bytes=4e9,
        lower_bound_bytes=3e9,
        proof=proofs[0],
        method="",
        checked_bytes=4e9,
        by_family={},
        domains=(),
        tiers=tuple(
            TierCut(
                tier=name,
                cut_bytes=4e9,
                cut_time_s=0.1,
                bottleneck_link=name,
                lower_bound_bytes=3e9 if proof is Proof.INCUMBENT else 4e9,
                proof=proof,
                among="all" if name == "supernode" else "as good before",
            )
            for name, proof in zip(names, proofs, strict=True)
        ),
        baselines=(),
        seed=0,
        ways=ways,
        tier_order=names,
        weighted_s=0.5,
        weighted_bound_s=0.4,
    )


@pytest.mark.parametrize(
    ("proofs", "proved", "said"),
    [
        ((Proof.BOUND, Proof.SOLVER), 2, "Proved: no placement is better in that order."),
        (
            (Proof.BOUND, Proof.INCUMBENT, Proof.BOUND),
            1,
            "Proved for supernode; open from leaf on.",
        ),
        ((Proof.INCUMBENT, Proof.BOUND), 0, "Open from the first."),
    ],
)
def test_the_order_is_proved_up_to_the_first_open_tier(
    proofs: tuple[Proof, ...], proved: int, said: str
) -> None:
    placement = _placement(*proofs)

    assert placement.tiers_proved == proved
    assert tiers_sentence(placement).endswith(said)


def test_an_open_tier_shows_its_gap_and_what_its_bound_is_of() -> None:
    console = Console(width=100, record=True, file=None)

    with console.capture() as page:
        console.print(tier_table(_placement(Proof.BOUND, Proof.INCUMBENT, Proof.BOUND)))

    rows = [" ".join(line.split()) for line in page.get().splitlines()[2:]]
    assert rows == [
        "supernode 4 GB 4 GB 0 % met",
        "leaf 4 GB 3 GB 25 % open; the bound is of those as good before",
        "pod 4 GB 4 GB 0 % met by those as good before",
    ]


def test_weighted_tiers_show_their_sum_its_bound_and_the_gap() -> None:
    said = tiers_sentence(_placement(Proof.BOUND, Proof.BOUND, ways="weighted"))

    assert "500 ms in all" in said
    assert "at least 400 ms in every placement; gap 20 %" in said


def _ruled(*proofs: Proof) -> Placement:
    free = _placement(*proofs)
    price = RulePrice(
        rules=("ep within supernode",), free_bytes=3e9, free_bound_bytes=3e9,
        free_proof=Proof.BOUND, least_bytes=1e9, most_bytes=1e9,
    )  # fmt: skip
    first, *others = free.tiers
    return replace(
        free, rule_price=price, tiers=(replace(first, among=AMONG_RULED), *others)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("proofs", "said"),
    [
        (
            (Proof.BOUND, Proof.SOLVER),
            "Proved: no placement that keeps the rules is better in that order.",
        ),
        (
            (Proof.SOLVER, Proof.INCUMBENT),
            "Proved for supernode, of the placements that keep the rules; open from leaf on.",
        ),
    ],
)
def test_with_rules_the_order_is_proved_only_of_placements_that_keep_them(
    proofs: tuple[Proof, ...], said: str
) -> None:
    assert tiers_sentence(_ruled(*proofs)).endswith(said)


@pytest.mark.parametrize(
    ("proof", "said"),
    [
        (Proof.BOUND, "met by those that keep the rules"),
        (Proof.SOLVER, "solver by those that keep the rules"),
        (Proof.INCUMBENT, "open; the bound is of those that keep the rules"),
    ],
)
def test_the_asked_tier_of_a_ruled_plan_is_met_by_those_that_keep_the_rules(
    proof: Proof, said: str
) -> None:
    console = Console(width=100)

    with console.capture() as page:
        console.print(tier_table(_ruled(proof, Proof.BOUND)))

    rows = [" ".join(line.split()) for line in page.get().splitlines()[2:]]
    assert rows[0].endswith(said)
    assert rows[1].endswith("met by those as good before")
