"""What the page says of the tiers: proved, proved in part, open, weighted."""

from __future__ import annotations

import pytest
from rich.console import Console

from cli.report_text_tiers import tier_table, tiers_sentence
from planner.place.answer import Placement, Proof, TierCut


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
