from __future__ import annotations

from dataclasses import replace

import pytest

from planner.collectives.broadcasts import broadcast_tree
from planner.collectives.exchanges import direct_all_to_all, hierarchical_all_to_all
from planner.collectives.reductions import contiguous_ring, halving_doubling, hierarchical
from planner.collectives.schedule import Move, Schedule, Seating
from planner.collectives.trees import double_tree
from planner.collectives.verify import faults_of
from planner.errors import InputError

UNEVEN = Seating.of_counts([3, 2])

SCHEDULES = [
    contiguous_ring("all_reduce", UNEVEN),
    hierarchical("reduce_scatter", UNEVEN),
    hierarchical("all_gather", UNEVEN),
    halving_doubling("all_reduce", UNEVEN),
    double_tree(UNEVEN),
    broadcast_tree(UNEVEN),
    direct_all_to_all(UNEVEN),
    hierarchical_all_to_all(UNEVEN),
]


def _name(schedule: Schedule) -> str:
    return f"{schedule.collective} {schedule.algorithm}"


@pytest.mark.parametrize("schedule", SCHEDULES, ids=_name)
def test_a_schedule_with_any_one_move_missing_is_refused(schedule: Schedule) -> None:
    assert faults_of(schedule) == ()

    for lost in range(len(schedule.moves)):
        moves = schedule.moves[:lost] + schedule.moves[lost + 1 :]
        assert faults_of(replace(schedule, moves=moves)), schedule.moves[lost]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=_name)
def test_a_sum_sent_twice_is_refused(schedule: Schedule) -> None:
    for move in schedule.moves:
        if move.reduces:
            again = replace(schedule, moves=(*schedule.moves, move))
            assert any("twice" in fault for fault in faults_of(again))


def test_a_reduction_that_overwrites_is_refused() -> None:
    ring = contiguous_ring("reduce_scatter", UNEVEN)
    first = replace(ring.moves[0], reduces=False)

    faults = faults_of(replace(ring, moves=(first, *ring.moves[1:])))

    assert any("should hold the sum of ranks 0+1+2+3+4" in fault for fault in faults)


def test_a_result_on_the_wrong_rank_is_refused() -> None:
    swap = direct_all_to_all(Seating.of_counts([2, 1]))
    wrong = replace(swap.moves[0], target=(swap.moves[0].target + 1) % 3)

    assert faults_of(replace(swap, moves=(wrong, *swap.moves[1:])))


def test_a_buffer_overwritten_while_another_move_writes_it_is_refused() -> None:
    seating = Seating.of_counts([3])
    race = Schedule(
        collective="broadcast",
        algorithm="race",
        seating=seating,
        units=1,
        moves=(
            Move(step=0, source=0, target=1, units=frozenset({0}), reduces=False),
            Move(step=0, source=0, target=2, units=frozenset({0}), reduces=False),
            Move(step=1, source=0, target=2, units=frozenset({0}), reduces=False),
            Move(step=1, source=1, target=2, units=frozenset({0}), reduces=False),
        ),
    )

    assert any("overwritten while another move" in fault for fault in faults_of(race))


def test_data_sent_before_it_arrives_is_refused() -> None:
    seating = Seating.of_counts([3])
    early = Schedule(
        collective="broadcast",
        algorithm="early",
        seating=seating,
        units=1,
        moves=(
            Move(step=0, source=0, target=1, units=frozenset({0}), reduces=False),
            Move(step=0, source=1, target=2, units=frozenset({0}), reduces=False),
        ),
    )

    assert any("sends unit 0 it does not hold" in fault for fault in faults_of(early))


def test_moves_of_nobody_to_nowhere_are_all_named() -> None:
    broken = Schedule(
        collective="all_reduce",
        algorithm="broken",
        seating=Seating.of_counts([2]),
        units=1,
        moves=(
            Move(step=0, source=0, target=9, units=frozenset({0}), reduces=True),
            Move(step=0, source=1, target=1, units=frozenset({7}), reduces=True),
        ),
    )

    faults = faults_of(broken)

    assert len(faults) == 3
    assert "target 9 is not 0…1" in faults[0]


def test_an_unknown_collective_and_an_empty_group_are_refused() -> None:
    with pytest.raises(InputError, match="unknown collective 'gossip'"):
        faults_of(replace(SCHEDULES[0], collective="gossip"))
    with pytest.raises(InputError, match="no ranks"):
        Seating.of_counts([])


@pytest.mark.parametrize("copies_first", [True, False])
def test_a_copy_and_a_sum_into_one_place_in_one_step_are_refused(copies_first: bool) -> None:
    """What is left there depends on which of the two comes last."""
    three = Seating.of_counts([3])
    moves = tuple(
        Move(step=0, source=source, target=1, units=frozenset({0}), reduces=reduces)
        for source, reduces in ((0, not copies_first), (2, copies_first))
    )
    schedule = Schedule(
        collective="all_reduce", algorithm="both", seating=three, units=1, moves=moves
    )

    assert any("while another move writes it" in fault for fault in faults_of(schedule))
