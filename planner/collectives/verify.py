"""Prove a schedule: every rank ends with exactly the right sum of shards, once each.

Each participant's copy of each unit is the *set of ranks whose contribution it sums*, written as
a bit mask. A reduction joins two sets and is refused when they share a rank (it would count
twice); a copy takes the sender's set. In the end the sets must be what the collective promises.
Nothing is assumed about how the schedule was made.
"""

from __future__ import annotations

from planner.collectives.schedule import Move, Schedule
from planner.errors import InputError

State = list[list[int]]
"""State[participant][unit]: the mask; 0 is nothing."""


def faults_of(schedule: Schedule) -> tuple[str, ...]:
    """Return every fault of *schedule*, none where it is proved correct.

    >>> from planner.collectives.reductions import hierarchical
    >>> from planner.collectives.schedule import Seating
    >>> faults_of(hierarchical("all_reduce", Seating.of_counts([5, 5, 2])))
    ()
    """
    if schedule.collective not in _CONTRACTS:
        raise InputError(
            f"unknown collective {schedule.collective!r}; there are {sorted(_CONTRACTS)}"
        )
    state = _before(schedule)
    faults: list[str] = []
    by_step: dict[int, list[Move]] = {}
    for move in schedule.moves:
        faults += _malformed(schedule, move)
        by_step.setdefault(move.step, []).append(move)
    if faults:
        return tuple(faults)
    for step in sorted(by_step):
        state = _advance(state, by_step[step], faults)
    for rank in range(schedule.seating.ranks):
        for unit, wanted in sorted(_after(schedule, rank).items()):
            if state[rank][unit] != wanted:
                faults.append(
                    f"rank {rank}, unit {unit}: ends with {_ranks(state[rank][unit])}, "
                    f"should hold {_ranks(wanted)}"
                )
    return tuple(faults)


def _malformed(schedule: Schedule, move: Move) -> list[str]:
    faults = []
    for role, who in (("source", move.source), ("target", move.target)):
        if not 0 <= who < schedule.participants:
            faults.append(f"step {move.step}: {role} {who} is not 0…{schedule.participants - 1}")
    if move.source == move.target:
        faults.append(f"step {move.step}: {move.source} sends to itself")
    if not all(0 <= unit < schedule.units for unit in move.units):
        faults.append(f"step {move.step}: units {sorted(move.units)} exceed {schedule.units}")
    return faults


def _advance(state: State, moves: list[Move], faults: list[str]) -> State:
    """Return the state after one step whose moves all read *state*."""
    new = [row.copy() for row in state]
    copied: dict[tuple[int, int], int] = {}
    touched: set[tuple[int, int]] = set()
    for move in moves:
        for unit in sorted(move.units):
            sent = state[move.source][unit]
            place = (move.target, unit)
            if not sent:
                faults.append(f"step {move.step}: {move.source} sends unit {unit} it does not hold")
            if move.reduces:
                if new[move.target][unit] & sent:
                    twice = _ranks(new[move.target][unit] & sent)
                    faults.append(
                        f"step {move.step}: {move.source} to {move.target}, unit {unit}: "
                        f"{twice} would count twice"
                    )
                new[move.target][unit] |= sent
            else:
                if place in touched:
                    faults.append(
                        f"step {move.step}: unit {unit} of {move.target} is overwritten while "
                        "another move writes it"
                    )
                new[move.target][unit] = sent
                copied[place] = move.source
            if move.reduces and place in copied:
                faults.append(
                    f"step {move.step}: unit {unit} of {move.target} is overwritten while "
                    "another move writes it"
                )
            touched.add(place)
    return new


def _ranks(mask: int) -> str:
    held = [str(i) for i in range(mask.bit_length()) if mask >> i & 1]
    return "the sum of ranks " + "+".join(held) if held else "nothing"


def _before(schedule: Schedule) -> State:
    """Return what every participant holds at the start."""
    n = schedule.seating.ranks
    state = [[0] * schedule.units for _ in range(schedule.participants)]
    for rank in range(n):
        for unit in _owned(schedule, rank):
            state[rank][unit] = 1 << rank
    return state


def _owned(schedule: Schedule, rank: int) -> list[int]:
    """Return the units that *rank* holds before the first step."""
    n, units = schedule.seating.ranks, schedule.units
    contract = _CONTRACTS[schedule.collective]
    if contract == "sum":
        return list(range(units))
    if contract == "root":
        first = schedule.seating.domains[0][0]
        return list(range(units)) if rank == first else []
    per_rank = units // n
    return list(range(rank * per_rank, (rank + 1) * per_rank))


def _after(schedule: Schedule, rank: int) -> dict[int, int]:
    """Return the mask that *rank* must hold in the end, for each unit that matters to it."""
    seating, units = schedule.seating, schedule.units
    n = seating.ranks
    everyone = (1 << n) - 1
    wanted: dict[int, int]
    match schedule.collective:
        case "all_reduce":
            wanted = dict.fromkeys(range(units), everyone)
        case "reduce_scatter":
            wanted = dict.fromkeys(schedule.shard(rank), everyone)
        case "all_gather" | "ring":
            wanted = {unit: 1 << (unit // (units // n)) for unit in range(units)}
        case "all_to_all":
            wanted = {source * n + rank: 1 << source for source in range(n)}
        case "domain_gather":
            k = len(seating.domains)
            home = next(d for d, members in enumerate(seating.domains) if rank in members)
            wanted = {source * k + home: 1 << source for source in range(n)}
        case "broadcast":
            wanted = dict.fromkeys(range(units), 1 << seating.domains[0][0])
        case _:
            wanted = {rank - 1: 1 << (rank - 1)} if rank else {}
    return wanted


_CONTRACTS = {
    "all_reduce": "sum",
    "reduce_scatter": "sum",
    "all_gather": "own",
    "all_to_all": "own",
    "domain_gather": "own",
    "broadcast": "root",
    "ring": "own",
    "chain": "own",
}
"""What a rank holds at the start: all units of its own vector, its own part, or the root all."""
