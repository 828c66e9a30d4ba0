"""What is said of supernodes that are not full, and of a network larger than its GPUs need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from planner.units import format_share
from planner.words import counted, plural

if TYPE_CHECKING:
    from planner.fabric import Fabric
    from planner.fabric_parts import SwitchPorts

_SHORT_SHOWN = 4  # domains that are not full; more are told by their number
_UNUSED_SHOWN_SHARE = 0.1  # of the ports; fewer are left over by any number of GPUs


def unfilled_words(
    tier: str, sizes: Sequence[int], names: Sequence[str] = (), full: int = 0
) -> str:
    """Return what to say where GPUs do not fill all domains of a tier, else nothing.

    Args:
        tier: e.g. ``supernode``.
        sizes: GPUs in each domain [1].
        names: of the domains, where they are known.
        full: GPUs of a full one; 0 for the largest of *sizes* [1].

    >>> unfilled_words("supernode", [72] * 14 + [16], [f"sn{i:02}" for i in range(15)])
    '1,024 GPUs do not fill supernodes of 72: 14 are full, sn14 holds 16, 56 short of it.'
    >>> unfilled_words("supernode", [64] * 16), unfilled_words("supernode", [5, 3, 4])[:59]
    ('', '12 GPUs do not fill supernodes of 5: 1 is full, one holds 3')
    >>> unfilled_words("supernode", [4], full=8)
    'The 4 GPUs are part of one supernode of 8: its box and switches count, the other 4 GPUs not.'
    """
    full = max(full, *sizes, 0)
    if len(sizes) == 1 and sizes[0] < full:
        return (
            f"The {counted(sizes[0], 'GPU')} {'is' if sizes[0] == 1 else 'are'} part of one {tier} "
            f"of {full:,}: its box and switches count, the other {counted(full - sizes[0], 'GPU')} "
            "not."
        )
    short = [i for i, size in enumerate(sizes) if size < full]
    if not short:
        return ""
    each = [
        f"{names[i] if names else 'one'} holds {sizes[i]:,}, {full - sizes[i]:,} short of it"
        for i in short[:_SHORT_SHOWN]
    ]
    more = len(short) - len(each)
    whole = len(sizes) - len(short)
    return (
        f"{sum(sizes):,} GPUs do not fill {plural(tier)} of {full:,}: {whole:,} "
        f"{'is' if whole == 1 else 'are'} full, {', '.join(each)}"
        f"{f', and {more:,} more are short' if more else ''}."
    )


def part_of_one_words(fabric: Fabric) -> str:
    """Return that a job smaller than a supernode has a part of one; nothing where it is larger.

    >>> from topologies.fabric_catalogue import generic_cluster
    >>> part_of_one_words(generic_cluster(8, 4))[:51]
    'The 4 GPUs are part of one supernode of 8: its box '
    >>> part_of_one_words(generic_cluster(8, 12))
    ''
    """
    sizes, full = fabric.capacities("supernode"), fabric.supernode_gpus
    return unfilled_words("supernode", sizes, full=full) if full else ""


def unused_ports_words(ports: Iterable[SwitchPorts]) -> str:
    """Return of which switches a good part counts that the cluster has no use for; or nothing.

    Args:
        ports: of the switches outside supernodes.

    >>> from planner.fabric_parts import SwitchPorts
    >>> unused_ports_words([SwitchPorts(item="leaf", ports=256, used=16)])[:77]
    'More network counts than these GPUs need, for it comes in whole switches: of '
    >>> unused_ports_words([SwitchPorts(item="leaf", ports=256, used=250)])
    ''
    """
    said = [
        f"{one.ports - one.used:,} of {one.ports:,} of the {plural(one.item)} "
        f"({format_share(one.unused_share, digits=2)})"
        for one in ports
        if one.unused_share >= _UNUSED_SHOWN_SHARE
    ]
    if not said:
        return ""
    return (
        "More network counts than these GPUs need, for it comes in whole switches: of their ports "
        f"towards the GPUs {' and '.join(said)} are unused, and what joins them to the switches "
        "above counts in full."
    )
