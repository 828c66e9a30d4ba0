"""Layout x model to the families of collectives of one step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """All groups that run one kind of collective, and how much each moves.

    Args:
        name: ``tp_forward_gather``, ``dp_reduce``, ``ep_dispatch``, ``pp_forward`` …
        digit: the parallel degree the family belongs to: ``tp``, ``cp``, ``ep``, ``etp``,
            ``dp`` (dense gradients, spans cp x dp), ``edp``, ``pp``.
        axes: indices into ``layout.axes`` along which a group's members vary.
        group_size: members of one group [1].
        groups: groups of the family [1].
        collective: ``all_reduce``, ``reduce_scatter``, ``all_gather``, ``all_to_all``, ``ring``,
            ``chain``.
        payload_bytes: V of all_reduce/reduce_scatter/all_gather (the full vector), v per ordered
            pair of all_to_all, bytes of one hop of ring and chain, both directions summed.
        times_per_step: executions by one group in one step, mean over pipeline stages [1].
        phase: ``forward``, ``backward`` or ``end``.
    """

    name: str
    digit: str
    axes: tuple[int, ...]
    group_size: int
    groups: int
    collective: str
    payload_bytes: float
    times_per_step: float
    phase: str
