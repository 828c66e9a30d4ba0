"""What an answer says of itself."""

from __future__ import annotations

from planner.place.answer import Proof, TierCut


def cut(cut_bytes: float, lower_bound_bytes: float) -> TierCut:
    return TierCut(
        tier="supernode", cut_bytes=cut_bytes, cut_time_s=1.0, bottleneck_link="sn00",
        lower_bound_bytes=lower_bound_bytes, proof=Proof.BOUND,
    )  # fmt: skip


def test_a_gap_is_what_could_be_saved_at_most() -> None:
    assert cut(4.0, 3.0).gap == 0.25
    assert cut(0.0, 0.0).gap == 0.0


def test_a_bound_above_the_cut_by_rounding_leaves_no_gap() -> None:
    # Sums of floating-point bytes in another order: the plan of DeepSeek-V3 in 384 + 384 + 256.
    assert cut(13152325075967.988, 13152325075968.0).gap == 0.0
