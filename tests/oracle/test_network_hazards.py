"""Buffers against every possible assignment, incast and peers against plain loops."""

from __future__ import annotations

import random
from itertools import product

from planner.network.endpoints import peers_of
from planner.network.hazards import (
    Content,
    Use,
    assign_buffers,
    buffer_check,
    least_buffers,
    overwrites,
    pipeline_buffers,
    unordered_overwrites,
)
from planner.network.incast import incast_degree


def random_contents(draw: random.Random, most: int) -> list[Content]:
    contents = []
    for i in range(draw.randint(1, most)):
        start = draw.randint(0, 12)
        contents.append(Content(name=str(i), write_s=start, read_end_s=start + draw.randint(1, 6)))
    return contents


def clashes(contents: list[Content], seats: tuple[int, ...]) -> bool:
    return any(
        seats[i] == seats[j] and a.write_s < b.read_end_s and b.write_s < a.read_end_s
        for i, a in enumerate(contents)
        for j, b in enumerate(contents)
        if i < j
    )


def test_no_assignment_of_fewer_buffers_keeps_contents_apart() -> None:
    draw = random.Random(5)
    for _ in range(120):
        contents = random_contents(draw, 6)
        fewest = next(
            k
            for k in range(1, 7)
            if any(not clashes(contents, s) for s in product(range(k), repeat=len(contents)))
        )

        assert least_buffers(contents) == fewest
        seats = assign_buffers(contents)
        assert not clashes(contents, tuple(seats[c.name] for c in contents))


def test_an_overwrite_is_found_exactly_where_two_contents_of_a_buffer_overlap() -> None:
    draw = random.Random(6)
    for _ in range(200):
        contents = [
            Content(
                name=c.name, write_s=c.write_s, read_end_s=c.read_end_s, buffer=draw.choice("xy")
            )
            for c in random_contents(draw, 7)
        ]
        expected = {
            frozenset((a.name, b.name))
            for a in contents
            for b in contents
            if a.name < b.name
            and a.buffer == b.buffer
            and a.write_s < b.read_end_s
            and b.write_s < a.read_end_s
        }

        found = overwrites(contents)

        assert {frozenset((hit.written, hit.lost)) for hit in found} == expected
        assert all(hit.early_s > 0 for hit in found)


def test_a_pipeline_needs_as_many_buffers_as_its_unrolled_schedule() -> None:
    draw = random.Random(7)
    for _ in range(100):
        interval, hold = draw.randint(1, 9), draw.randint(1, 40)
        contents = [
            Content(name=str(i), write_s=i * interval, read_end_s=i * interval + hold)
            for i in range(60)
        ]

        assert pipeline_buffers(interval, hold) == least_buffers(contents)
        n = draw.randint(1, 8)
        in_turn = [
            Content(name=c.name, write_s=c.write_s, read_end_s=c.read_end_s, buffer=str(i % n))
            for i, c in enumerate(contents)
        ]
        check = buffer_check(interval, hold, n)
        early = [hit.early_s for hit in overwrites(in_turn)]
        assert check.safe == (not early)
        assert check.early_s == max(early, default=0.0)


def test_a_racing_write_is_one_that_some_legal_order_puts_before_the_read() -> None:
    draw = random.Random(8)
    for _ in range(60):
        uses = [
            Use(name="w0", buffer="x", content="0", writes=True),
            Use(name="r0", buffer="x", content="0", writes=False, after=("w0",)),
        ]
        if draw.random() < 0.5:
            uses.append(Use(name="r0b", buffer="x", content="0", writes=False, after=("w0",)))
        earlier = [use.name for use in uses]
        after = tuple(name for name in earlier if draw.random() < 0.6)
        first = draw.choice([("w0",), ()])
        uses.append(Use(name="w1", buffer="x", content="1", writes=True, after=(*first, *after)))
        uses.append(Use(name="r1", buffer="x", content="1", writes=False, after=("w1",)))
        written = {"0": "w0", "1": "w1"}

        racing = set()
        for order in permutations_of(uses):
            for read in (use for use in uses if not use.writes):
                own, other = written[read.content], written["1" if read.content == "0" else "0"]
                if order.index(own) < order.index(other) < order.index(read.name):
                    racing.add((other, read.name))

        assert set(unordered_overwrites(uses)) == racing


def permutations_of(uses: list[Use]) -> list[list[str]]:
    """Return every order that respects ``after``."""
    orders: list[list[str]] = [[]]
    for _ in uses:
        orders = [
            [*order, use.name]
            for order in orders
            for use in uses
            if use.name not in order and set(use.after) <= set(order)
        ]
    return orders


def test_incast_and_peers_are_what_plain_loops_count() -> None:
    draw = random.Random(9)
    for _ in range(60):
        ranks = draw.choice([8, 12, 16])
        size = draw.choice([d for d in (2, 4, 8, 6) if ranks % d == 0])
        order = draw.sample(range(ranks), ranks)
        groups = [order[i : i + size] for i in range(0, ranks, size)]
        homes = [draw.randrange(3) for _ in range(ranks)]
        collective = draw.choice(["all_to_all", "domain_all_to_all", "all_reduce", "chain"])

        senders = 0
        pairs = set()
        for group in groups:
            for i, member in enumerate(group):
                if collective.endswith("all_to_all"):
                    heard = [other for other in group if homes[other] != homes[member]]
                    senders = max(senders, len(heard))
                    pairs |= {(member, other) for other in group if other != member}
                else:
                    far = any(homes[other] != homes[member] for other in group)
                    senders = max(senders, int(far))
                    closes = collective == "all_reduce" or i + 1 < len(group)
                    onward = group[(i + 1) % len(group)]
                    if closes and onward != member:
                        pairs |= {(member, onward), (onward, member)}

        assert incast_degree(collective, groups, homes) == senders
        a, b = peers_of([(collective, groups)], ranks)
        assert set(zip(a.tolist(), b.tolist(), strict=True)) == pairs
