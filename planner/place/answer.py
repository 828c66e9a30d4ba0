"""What ``place()`` returns: a seating, what it cuts, and how far that is proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

_ROUNDING = 1e-9  # relative; two orders of the same floating-point sum


class Proof(Enum):
    """How the answer is known to be no worse than its gap says."""

    BOUND = "bound"  # the cut meets the lower bound of every seating
    SOLVER = "solver"  # a solver closed the gap on the merged grid, and the bound on the rest
    INCUMBENT = "time_limit"  # a limit came first: the gap stands


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a search is.

    Args:
        cut_bytes: of the best seating so far [bytes].
        lower_bound_bytes: what every seating cuts at least, as far as proved [bytes].
        method: how the best seating was found, in words.
    """

    cut_bytes: float
    lower_bound_bytes: float
    method: str

    @property
    def gap(self) -> float:
        """(cut - bound) / cut, 0 when both are 0 or rounding is all that parts them [share]."""
        apart_bytes = self.cut_bytes - self.lower_bound_bytes
        return apart_bytes / self.cut_bytes if apart_bytes > _ROUNDING * self.cut_bytes else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A seating of a question's cells.

    Args:
        home: domain of each cell.
        objective_bytes: bytes that cross between domains in one step [bytes].
        lower_bound_bytes: bytes that every seating crosses at least; equal to the objective where
            that is proved, which is within 1e-9 of it by the bound and 1e-6 by the solver [bytes].
        proof: how the bound was reached.
        method: how the seating was found, in words.
        interrupted: the user ended the search before its limit.
    """

    home: tuple[int, ...]
    objective_bytes: float
    lower_bound_bytes: float
    proof: Proof
    method: str
    interrupted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatedDomain:
    """One domain and the ranks in it.

    Args:
        name: the domain's name in the fabric.
        tier: its tier.
        capacity: usable GPUs in it [1].
        ranks: ranks seated there, ascending.
    """

    name: str
    tier: str
    capacity: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A seating that an answer must beat.

    Args:
        name: ``megatron-order``, ``greedy``, ``best-of-32-random`` …
        cut_bytes: bytes it crosses [bytes].
        rank_to_gpu: GPU index of each rank.
    """

    name: str
    cut_bytes: float
    rank_to_gpu: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TierCut:
    """What crosses between the domains of one tier.

    Args:
        tier: name of the tier.
        cut_bytes: bytes over all domains' borders in one step [bytes].
        cut_time_s: the longest that any one border takes for its bytes at line rate [s].
        bottleneck_link: the domain whose border takes that long.
        lower_bound_bytes: what crosses at least [bytes].
        proof: how the cut is known to be the least; ``INCUMBENT`` where that is open.
        among: what it is the least of: ``all`` placements; only those ``as good before``, at the
            tiers that come first; or only those ``keeping the rules``.
        checked_bytes: the cut by the independent checker [bytes].
    """

    tier: str
    cut_bytes: float
    cut_time_s: float
    bottleneck_link: str
    lower_bound_bytes: float = 0.0
    proof: Proof = Proof.INCUMBENT
    among: str = "all"
    checked_bytes: float = 0.0

    @property
    def gap(self) -> float:
        """(cut - bound) / cut, 0 when both are 0, never less by rounding [share]."""
        return max(0.0, 1 - self.lower_bound_bytes / self.cut_bytes) if self.cut_bytes else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePrice:
    """What rules cost against the free optimum.

    Args:
        rules: as the user wrote them.
        free_bytes: the cut without rules [bytes].
        free_bound_bytes: what every placement crosses at least [bytes].
        free_proof: how that was reached.
        least_bytes, most_bytes: the cut with the rules less the free optimum is between them
            [bytes]; equal where both are proved.
        free_rank_to_gpu: seats of the placement without rules, to time it.
    """

    rules: tuple[str, ...]
    free_bytes: float
    free_bound_bytes: float
    free_proof: Proof
    least_bytes: float
    most_bytes: float
    free_rank_to_gpu: tuple[int, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Both cuts are proved, so the price is."""
        return self.least_bytes == self.most_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Every rank's seat, the cut, its bound and proof, and what it is better than.

    Args:
        rank_to_gpu: index into ``Fabric.gpus`` of each rank; one to one.
        tier: the tier whose cut was minimised.
        objective: ``total``, ``bottleneck`` or ``time``.
        objective_bytes: bytes that cross that tier in one step [bytes].
        lower_bound_bytes: bytes that every placement crosses at least [bytes].
        proof: how the bound was reached.
        method: how the seating was found, in words.
        checked_bytes: the same cut by the independent checker [bytes].
        by_family: bytes that cross by family [bytes].
        domains: the tier's domains and their ranks.
        tiers: cuts of every tier, innermost first.
        baselines: what the answer is held against.
        seed: of everything random in it.
        ways: how the tiers were ranked: ``lexicographic`` or ``weighted``.
        tier_order: the tiers by importance, the asked one first.
        weighted_s: sum over tiers of cut / rate of all the tier's borders; 0 unless weighted [s].
        weighted_bound_s: what that sum is at least for every placement [s].
        rule_price: what hard rules cost, where there are any; the cut and its bound are then
            those of the placements that keep them.
        objective_s: how long the busiest border takes (``bottleneck``) or the step (``time``); 0
            of ``total`` [s].
        lower_bound_s: what the busiest border takes at least; 0 where nothing is known [s].
        exposed_bytes: of ``time``: bytes that cross times the share of them that the step does not
            hide [bytes].
        exposed_bound_bytes: what every placement crosses at least of them, at the same shares
            [bytes].
        interrupted: the user ended the search; the seating is the best until then.
    """

    rank_to_gpu: tuple[int, ...]
    tier: str
    objective: str
    objective_bytes: float
    lower_bound_bytes: float
    proof: Proof
    method: str
    checked_bytes: float
    by_family: Mapping[str, float]
    domains: tuple[SeatedDomain, ...]
    tiers: tuple[TierCut, ...]
    baselines: tuple[Baseline, ...]
    seed: int
    ways: str = "lexicographic"
    tier_order: tuple[str, ...] = ()
    weighted_s: float = 0.0
    weighted_bound_s: float = 0.0
    rule_price: RulePrice | None = None
    objective_s: float = 0.0
    lower_bound_s: float = 0.0
    exposed_bytes: float = 0.0
    exposed_bound_bytes: float = 0.0
    interrupted: bool = False

    @property
    def tiers_proved(self) -> int:
        """Tiers, from the first of ``tier_order``, of which no placement cuts less in that order.

        1 says that the asked tier's cut is the least; 2 that the next one's is the least of all
        placements that are as good at the first; and so on. Where there are rules, of the
        placements that keep them.
        """
        proof_of = {cut.tier: cut.proof for cut in self.tiers}
        proved = [proof_of[tier] is not Proof.INCUMBENT for tier in self.tier_order]
        return proved.index(False) if False in proved else len(proved)

    @property
    def gap(self) -> float:
        """(objective - bound) / objective, 0 when both are 0 [share].

        Of ``bottleneck`` in seconds, of ``time`` in exposed bytes, of ``total`` in bytes.
        """
        found, least = {
            "bottleneck": (self.objective_s, self.lower_bound_s),
            "time": (self.exposed_bytes, self.exposed_bound_bytes),
        }.get(self.objective, (self.objective_bytes, self.lower_bound_bytes))
        return max(0.0, (found - least) / found) if found else 0.0
