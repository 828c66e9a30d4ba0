"""Landing slots against a graph of events, and against counts worked out by hand."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.collectives.landing import landing
from planner.collectives.reductions import contiguous_ring, halving_doubling
from planner.collectives.schedule import Move, Schedule, Seating
from planner.collectives.schedules import SCHEDULES, schedule_of
from planner.collectives.verify import faults_of
from planner.errors import InputError

EVERY = [(collective, name) for collective, by_name in SCHEDULES.items() for name in by_name]
SPREADS = [[2], [3, 2], [4, 4], [2, 2, 2], [1, 1, 1, 1], [5]]


def _events(schedule: Schedule) -> nx.DiGraph:
    """Return what is before what: a step's begin, its end, and messages between the two."""
    graph = nx.DiGraph()
    for who in range(schedule.participants):
        for step in range(schedule.steps):
            graph.add_edge(("begin", who, step), ("end", who, step))
            graph.add_edge(("end", who, step), ("begin", who, step + 1))
    for move in schedule.moves:
        graph.add_edge(("begin", move.source, move.step), ("end", move.target, move.step))
    return graph


def _races(schedule: Schedule, slots: int) -> int:
    """Return how many messages some order of events lets land in a slot not read yet."""
    graph = _events(schedule)
    channels: dict[tuple[int, int], set[int]] = {}
    for move in schedule.moves:
        channels.setdefault((move.source, move.target), set()).add(move.step)
    found = 0
    for (source, target), steps in channels.items():
        sent = sorted(steps)
        for old, new in zip(sent, sent[slots:], strict=False):
            found += not nx.has_path(graph, ("end", target, old), ("begin", source, new))
    return found


def _lands_too_early(schedule: Schedule) -> int:
    """Return how many copies some order of events lets overwrite a unit still to be used."""
    graph = _events(schedule)
    early = 0
    for write in schedule.moves:
        if write.reduces:
            continue
        start = ("begin", write.source, write.step)
        over = True
        for use in schedule.moves:
            if use.step > write.step or not use.units & write.units:
                continue
            if use.source == write.target:
                ways = [("end", use.target, use.step), ("end", write.target, use.step)]
            elif use.target == write.target and use.reduces:
                ways = [("end", write.target, use.step)]
            else:
                continue
            over &= any(nx.has_path(graph, way, start) for way in ways)
        early += not over
    return early


@pytest.mark.parametrize(("collective", "name"), EVERY)
@pytest.mark.parametrize("counts", SPREADS)
def test_slots_are_the_fewest_that_no_order_of_events_races_with(
    collective: str, name: str, counts: list[int]
) -> None:
    schedule = schedule_of(collective, name, Seating.of_counts(counts))

    seen = landing(schedule, 1)

    assert len(seen.races) == _races(schedule, 1)
    assert _races(schedule, max(1, seen.least_slots)) == 0
    assert seen.least_slots < 2 or _races(schedule, seen.least_slots - 1) > 0
    assert len(seen.in_place_races) == _lands_too_early(schedule)


moves = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(1, 3), st.booleans()), max_size=12
)


@given(drawn=moves)
@settings(max_examples=80, deadline=None)
def test_any_moves_race_where_the_graph_of_events_says_so(
    drawn: list[tuple[int, int, int, bool]],
) -> None:
    """Moves that are no collective at all: copies land early here, which no proved one does."""
    schedule = Schedule(
        collective="all_reduce",
        algorithm="drawn",
        seating=Seating.of_counts([4]),
        units=2,
        moves=tuple(
            Move(
                step=step,
                source=source,
                target=(source + away) % 4,
                units=frozenset({0} if away == 1 else {0, 1}),
                reduces=adds,
            )
            for step, source, away, adds in sorted(drawn)
        ),
    )

    for slots in (1, 2):
        assert len(landing(schedule, slots).races) == _races(schedule, slots)
    assert len(landing(schedule, 1).in_place_races) == _lands_too_early(schedule)


@pytest.mark.parametrize("ranks", [2, 3, 8, 16])
def test_news_of_a_read_goes_round_the_ring_before_its_slot_is_free(ranks: int) -> None:
    """n-1 hops: as many messages as a rank sends in one pass, so each has a slot of its own."""
    ring = contiguous_ring("reduce_scatter", Seating.of_counts([ranks]))

    assert landing(ring, 1).least_slots == ranks - 1


def test_partners_that_halve_and_double_meet_twice_and_hear_nothing_in_between() -> None:
    assert landing(halving_doubling("all_reduce", Seating.of_counts([8])), 1).least_slots == 2


def test_a_copy_over_what_is_still_being_sent_races() -> None:
    """0 overwrites unit 0 of 1 in the step in which 1 sends it to 2."""
    early = Schedule(
        collective="all_reduce",
        algorithm="early",
        seating=Seating.of_counts([3]),
        units=1,
        moves=(
            Move(step=0, source=0, target=1, units=frozenset({0}), reduces=False),
            Move(step=0, source=1, target=2, units=frozenset({0}), reduces=True),
        ),
    )

    (race,) = landing(early, 1).in_place_races

    assert (race.source, race.target, race.step, race.read_step) == (0, 1, 0, 0)


def test_unknown_names_too_many_ranks_and_no_slots_are_refused() -> None:
    with pytest.raises(InputError, match="all_reduce has contiguous_ring"):
        schedule_of("all_reduce", "none", Seating.of_counts([2]))
    with pytest.raises(InputError, match="collective='none'"):
        schedule_of("none", "ring", Seating.of_counts([2]))
    with pytest.raises(InputError, match="129 ranks: expected at most 128"):
        schedule_of("chain", "send", Seating.of_counts([129]))
    with pytest.raises(InputError, match="slots=0"):
        landing(schedule_of("chain", "send", Seating.of_counts([2])), 0)


@pytest.mark.parametrize(("collective", "name"), EVERY)
def test_every_schedule_that_can_be_asked_for_is_proved(collective: str, name: str) -> None:
    for counts in ([1], [5, 5, 2], [4, 4]):
        schedule = schedule_of(collective, name, Seating.of_counts(counts))

        assert faults_of(schedule) == ()
