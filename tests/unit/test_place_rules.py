"""Hard rules: what they say, what they cost, and when no placement can keep them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import pytest

from planner.errors import InfeasibleError, InputError
from planner.fabric import Fabric
from planner.layout import Layout, groups_along
from planner.place import Placement, Proof, place, solve_question
from planner.place.fill import fill
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.rules import Form, parse_rules
from planner.traffic import Family
from topologies.fabric_catalogue import generic_cluster, load_cluster
from topologies.free_list import only_gpus


def gathers(layout: Layout, **payload_bytes: float) -> tuple[Family, ...]:
    """One all-gather a step for each degree named."""
    families = []
    for digit, payload in payload_bytes.items():
        axes = layout.axes_of(digit)
        size = prod(layout.axes[i].size for i in axes)
        families.append(
            Family(
                name=digit, digit=digit, axes=axes, group_size=size, groups=layout.gpus // size,
                collective="all_gather", payload_bytes=payload, times_per_step=1.0, phase="end",
            )
        )  # fmt: skip
    return tuple(families)


LAYOUT = Layout(tp=2, dp=4, global_batch=4)
FAMILIES = gathers(LAYOUT, tp=1.0, dp=3.0)
# Two supernodes of 4 for 2 x 4 ranks. DP whole: 4 TP groups cross, 1 byte each. TP whole: the 2 DP
# groups cross, 3 bytes each.
DP_WHOLE, TP_WHOLE = 4.0, 6.0


def ruled(*rules: str, fabric: Fabric | None = None) -> Placement:
    return place(LAYOUT, FAMILIES, fabric or generic_cluster(4, 8), rules=rules)


def homes(placement: Placement, index: np.ndarray, groups: np.ndarray) -> np.ndarray:
    found: np.ndarray = index[np.array(placement.rank_to_gpu)][groups]
    return found


def test_a_rule_costs_the_cut_with_it_less_the_least_without() -> None:
    placement = ruled("tp within supernode")

    assert placement.objective_bytes == TP_WHOLE
    assert placement.proof is Proof.BOUND
    assert placement.rule_price is not None
    assert placement.rule_price.free_bytes == DP_WHOLE
    assert placement.rule_price.most_bytes == TP_WHOLE - DP_WHOLE
    assert placement.rule_price.is_exact


def test_a_rule_that_the_best_placement_keeps_costs_nothing() -> None:
    placement = ruled("dp within supernode")

    assert placement.rule_price is not None
    assert placement.objective_bytes == DP_WHOLE
    assert placement.rule_price.most_bytes == 0


def test_without_rules_there_is_no_price() -> None:
    assert ruled().rule_price is None


def test_rules_that_leave_too_large_a_box_are_proved_impossible_and_say_by_how_much() -> None:
    with pytest.raises(InfeasibleError) as refused:
        ruled("tp within supernode", "dp within supernode")

    assert "'tp within supernode' and 'dp within supernode'" in str(refused.value)
    assert "8 ranks, 4 more than the 4 usable GPUs" in str(refused.value)


def test_groups_that_do_not_divide_the_capacities_are_counted() -> None:
    layout = Layout(tp=4, dp=3, global_batch=3)

    with pytest.raises(InfeasibleError, match=r"take 2 such groups whole and the layout has 3"):
        place(
            layout, gathers(layout, tp=1.0), generic_cluster(6, 12), rules=["tp within supernode"]
        )


def test_the_ranks_of_a_stage_sit_on_the_domains_named() -> None:
    layout = Layout(tp=2, dp=2, pp=4, global_batch=8)
    fabric = generic_cluster(4, 16)

    placement = place(
        layout, gathers(layout, tp=4.0, dp=1.0, pp=0.5), fabric, rules=["stage 2 on sn03"]
    )

    stage_two = [rank for rank in range(16) if rank // 4 == 2]
    assert set(homes(placement, fabric.domain_index("supernode"), np.array(stage_two))) == {3}


def test_more_ranks_than_the_named_domains_seat_are_refused_with_the_number() -> None:
    layout = Layout(tp=2, dp=4, pp=2, global_batch=8)

    with pytest.raises(InfeasibleError, match=r"8 ranks may sit on 1 domain only.*4 too many"):
        place(layout, gathers(layout, tp=1.0), generic_cluster(4, 16), rules=["stage 0 on sn00"])


def test_rules_on_names_are_refused_together_when_they_leave_a_rank_no_home() -> None:
    with pytest.raises(InfeasibleError, match="no domain is left for 8 ranks"):
        ruled("dp on sn00", "dp on sn01")


def test_a_whole_job_is_kept_on_the_domains_named() -> None:
    fabric = generic_cluster(4, 16)

    placement = ruled("tp on sn01,sn03", fabric=fabric)

    assert set(fabric.domain_index("supernode")[list(placement.rank_to_gpu)]) == {1, 3}
    assert placement.objective_bytes == DP_WHOLE


def test_groups_touch_no_more_domains_than_a_rule_allows() -> None:
    layout = Layout(tp=2, dp=8, global_batch=8)
    fabric = generic_cluster(4, 16)
    families = gathers(layout, tp=8.0, dp=1.0)

    free = place(layout, families, fabric)
    placement = place(layout, families, fabric, rules=["dp at most 2 supernodes"])

    groups = groups_along([2, 8], layout.axes_of("dp"))
    index = fabric.domain_index("supernode")
    # TP whole: both DP groups lie in 4 supernodes, 2 x 3 bytes. In 2 supernodes each, 2 x 1 byte
    # cross and all 8 TP groups with 8 bytes.
    assert free.objective_bytes == 6.0
    assert max(len(set(g)) for g in homes(placement, index, groups).tolist()) == 2
    assert placement.objective_bytes == 66.0
    assert placement.proof is not Proof.INCUMBENT


def test_a_group_too_large_for_so_many_domains_is_refused_by_arithmetic() -> None:
    with pytest.raises(InfeasibleError, match=r"16 ranks and the 3 largest supernodes 12.*4 too"):
        place(
            Layout(tp=1, dp=16, global_batch=16),
            gathers(Layout(tp=1, dp=16, global_batch=16), dp=1.0),
            generic_cluster(4, 16),
            rules=["dp at most 3 supernodes"],
        )


@pytest.mark.parametrize("seed", range(12))
def test_groups_kept_on_boards_sit_there_whatever_gpus_are_missing(seed: int) -> None:
    random = np.random.default_rng(seed)
    whole = generic_cluster(16, 48)
    fabric = only_gpus(whole, np.sort(random.permutation(48)[:40]).tolist())
    host_of = np.empty(40, np.int64)
    for number, host in enumerate(fabric.hosts):
        host_of[list(host.gpus)] = number
    layout = Layout(tp=2, dp=2, pp=int(random.integers(2, 6)), global_batch=8)
    families = gathers(layout, tp=1.0, dp=2.0, pp=3.0)
    rules = ["tp within board", "dp within supernode"]
    held = np.bincount(host_of) // 2

    placement = place(layout, families, fabric, rules=rules)

    sizes = [axis.size for axis in layout.axes]
    on_boards = homes(placement, host_of, groups_along(sizes, layout.axes_of("tp")))
    index = fabric.domain_index("supernode")
    inside = homes(placement, index, groups_along(sizes, layout.axes_of("dp")))
    assert (on_boards == on_boards[:, :1]).all()
    assert (inside == inside[:, :1]).all()
    assert held.sum() >= layout.gpus // 2


def test_a_board_rule_counts_whole_groups_board_by_board() -> None:
    # Two boards of 7 free GPUs hold one group of 4 each, not three in all.
    whole = generic_cluster(16, 16)
    fabric = only_gpus(whole, [g for g in range(16) if g not in (3, 12)])
    layout = Layout(tp=4, dp=3, global_batch=3)

    with pytest.raises(InfeasibleError, match="take 2 such groups whole and the layout has 3"):
        place(layout, gathers(layout, tp=1.0), fabric, rules=["tp within board"])


def test_every_fault_of_every_rule_is_named_with_what_would_be_right() -> None:
    layout = Layout(tp=2, dp=2, pp=2, global_batch=4)
    texts = (
        "ep inside supernode", "xp within supernode", "tp within rack", "stage 2 on sn00",
        "dp on sn0", "pp at most 0 supernodes", "tp group 3 within supernode",
        "dp at most 2 clusters", "tp within cluster",
    )  # fmt: skip

    with pytest.raises(InputError) as refused:
        place(layout, gathers(layout, tp=1.0), generic_cluster(4, 8), rules=texts)

    for text in texts:
        assert any(f"rule {text!r}" in fault for fault in refused.value.faults), text
    assert any("has 2 stages: expected 0 to 1" in fault for fault in refused.value.faults)
    assert any("did you mean" in fault for fault in refused.value.faults)


@pytest.mark.parametrize(
    ("text", "form", "digit"),
    [
        ("ep within supernode", Form.WITHIN, "ep"),
        ("EP  Within Supernodes", Form.WITHIN, "ep"),
        ("pp at most 2 supernodes", Form.AT_MOST, "pp"),
        ("stage 0 on sn00, sn01", Form.ON, "pp"),
        ("dp group 3 on pod-A", Form.ON, "dp"),
    ],
)
def test_rules_are_read_whatever_their_case_and_blanks(text: str, form: Form, digit: str) -> None:
    (rule,) = parse_rules([text])

    assert (rule.form, rule.digit) == (form, digit)


def test_rules_with_another_objective_are_refused() -> None:
    with pytest.raises(InputError, match="objective 'total'"):
        place(LAYOUT, FAMILIES, generic_cluster(4, 8), objective="bottleneck",
              rules=["tp within supernode"])  # fmt: skip


@pytest.mark.parametrize("rules", [["tp within board"], ["pp within supernode"]])
def test_a_real_cluster_with_spare_seats_is_seated_under_rules(rules: Sequence[str]) -> None:
    layout = Layout(tp=8, dp=8, pp=16, global_batch=64)
    fabric = load_cluster("cloudmatrix384-3x384")
    families = gathers(layout, tp=100.0, dp=10.0, pp=1.0)

    placement = place(layout, families, fabric, rules=rules, time_limit_s=2.0)

    tier = rules[0].split()[-1]
    groups = groups_along([8, 8, 16], layout.axes_of(rules[0][:2]))
    found = homes(placement, fabric.domain_index(tier), groups)
    assert (found == found[:, :1]).all()


# 32 cells in two domains of 18: four of eight values each, or full and a rest.
HALVES = Question(
    sizes=(4, 8),
    charges=(
        Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=5.0),
        Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=1.0),
    ),
    capacities=(18, 18),
)


def test_sixteen_and_sixteen_beat_eighteen_and_fourteen() -> None:
    answer = solve_question(HALVES)
    greedy = cut_bytes(HALVES, fill(HALVES, (18, 14), (0, 1)))
    full_first = solve_question(
        Question(sizes=HALVES.sizes, charges=HALVES.charges, capacities=(18, 14))
    )

    assert sorted(np.bincount(answer.home).tolist()) == [16, 16]
    assert answer.objective_bytes == 4.0  # each of the 4 lines of 8 is halved
    assert answer.proof is not Proof.INCUMBENT
    assert greedy > answer.objective_bytes
    assert full_first.lower_bound_bytes > answer.objective_bytes


@pytest.mark.parametrize("tail", [" b c", ",", ",,a", " ,"])
def test_long_lists_of_names_that_end_wrong_are_refused_at_once(tail: str) -> None:
    with pytest.raises(InputError, match="is not understood"):
        parse_rules(["dp on " + "a," * 400 + "a" + tail])
