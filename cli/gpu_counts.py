"""How many GPUs a job has where options, degrees, a launch file or the cluster say it."""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm, prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cli.given_layout import GivenLayout, LaunchFileRead
    from cli.planner_inputs import Asked
    from planner.fabric import Fabric

_DEGREES = ("tp", "cp", "dp", "pp")
_EVEN_GPUS = 16  # a number of GPUs that degrees divide is a multiple of this
_IDLE_SHARE = 1 / 16  # of the GPUs, that may stay idle so that the given degrees divide the rest
DEFAULT_GPUS = 1024


def filed_gpus(asked: Asked, given: GivenLayout) -> int:
    """Return the GPUs that a launch file runs on, 0 where it does not say or ``--gpus`` does [1].

    With a free list of a cluster that no file names ``--gpus`` is the whole cluster's.
    """
    of_cluster = asked.free is not None and asked.cluster is None
    if given.launch is None or (asked.gpus is not None and not of_cluster):
        return 0
    return given.launch.gpus or 0


def whose_gpus(asked: Asked, fabric: Fabric | None, given: GivenLayout) -> str:
    """Return where the number of GPUs comes from, to be read after "the 1,056 GPUs".

    And how another is asked for, with the most that the cluster has and the given degrees divide.
    """
    width = _width(given.fields)
    most = 0 if fabric is None or width < 2 else len(fabric.gpus) // width * width
    other = "--gpus N takes another number" + (f", such as {most}" if most else "")
    if given.launch is not None and filed_gpus(asked, given):
        return f"that {given.launch.provenance} runs on; {other}"
    if asked.free is not None and asked.cluster is None and asked.gpus is not None:
        return f"that {asked.free} leaves free"  # --gpus is then the whole cluster's
    if asked.gpus is not None or fabric is None:
        return "asked for"
    if asked.free is not None:
        return f"that {asked.free} leaves free; {other}"
    if asked.cluster is not None:
        return f"of {fabric.name}; {other}"
    return f"taken where --gpus does not say; {other}"


def contradicted(asked: Asked, given: GivenLayout, ranks: int) -> list[str]:
    """Return a fault where degrees that are all given do not divide the GPUs of a launch file.

    Args:
        asked: what the user gave.
        given: what file and options give of the layout.
        ranks: the product of the degrees, 0 where one is open [1].
    """
    filed = filed_gpus(asked, given)
    if not ranks or not filed or filed % ranks == 0 or given.launch is None:
        return []
    fault = (
        f"the degrees' product of {ranks} does not divide the {filed} GPUs that "
        f"{given.launch.provenance} runs on; --gpus {ranks} takes the product"
    )
    return [fault]


def too_few(asked: Asked, fabric: Fabric | None, stated: GivenLayout, gpus: int) -> list[str]:
    """Return a fault where the cluster has fewer GPUs than ranks."""
    if fabric is None or gpus <= len(fabric.gpus):
        return []
    which = f"GPUs that {asked.free} leaves free" if asked.free else "usable GPUs"
    whose = ""
    if stated.launch is not None and gpus == filed_gpus(asked, stated):
        whose = f"; {stated.launch.provenance} runs on {gpus}: --gpus N takes another number"
    fault = (
        f"{gpus} ranks do not fit on the {len(fabric.gpus)} {which} of {fabric.name}: "
        f"{gpus - len(fabric.gpus)} too few{whose or _that_would_do(asked, fabric, stated)}"
    )
    return [fault]


def _that_would_do(asked: Asked, fabric: Fabric, stated: GivenLayout) -> str:
    """Return the number of GPUs to ask for instead, where the given degrees divide one."""
    usable, width = len(fabric.gpus), _width(stated.fields)
    even = _divided(usable, width)
    fits = usable // width * width if even % width else even
    if product(stated.fields) or not fits:
        return f"; degrees with a product of at most {usable} would do" if width > 1 else ""
    unasked = ", and is taken without --gpus" if asked.cluster and width == 1 else ""
    return f"; --gpus {fits} would do{unasked}"


def product(given: Mapping[str, Any]) -> int:
    """Return the ranks of degrees that are all given, else 0 [1]."""
    degrees = [d for name in _DEGREES if isinstance(d := given.get(name), int) and d > 0]
    return prod(degrees) if len(degrees) == len(_DEGREES) else 0


def ranks_of(stated: GivenLayout) -> int:
    """Return the ranks of degrees that are all given, else those of a launch file, else 0 [1]."""
    filed = None if stated.launch is None else stated.launch.gpus
    return product(stated.fields) or filed or 0


def ranks_left(given: Mapping[str, Any], gpus: int) -> int:
    """Return the data-parallel ranks that *given* leaves, 0 where a degree is open [1]."""
    if "dp" in given:
        return int(given["dp"])
    width = product({**given, "dp": 1})
    return gpus // width if width else 0


def gpus_of(asked: Asked, fabric: Fabric | None, stated: GivenLayout) -> tuple[int, str]:
    """Return how many GPUs to seat, and why where that is neither asked nor the default.

    Degrees that are all given say it, else the launch file that stands as the layout. A cluster
    that lost GPUs, or never had a round number, is left with an awkward one, of which the largest
    multiple of 16 is taken: the rest would buy a pipeline of prime length. Unless the degrees that
    are given divide another number better.
    """
    of_cluster = asked.free is not None and asked.cluster is None
    given, filed = stated.fields, filed_gpus(asked, stated)
    if (asked.gpus is not None and not of_cluster) or fabric is None:
        return filed or asked.gpus or DEFAULT_GPUS, ""
    ranks = product({"cp": 1, **given} if asked.free is not None else given)
    if stated.launch is not None and filed and ranks in {0, filed}:
        return filed, f"{filed}: {launch_words(stated.launch, 'gpus')}"
    why = f"{ranks}: the product of the degrees that were given"
    if stated.launch is not None and filed:
        return ranks, f"{why}, not the {filed} that {stated.launch.provenance} runs on"
    if asked.free is not None and ranks > 0:
        return ranks, why
    if 0 < ranks <= len(fabric.gpus):
        return ranks, why if ranks != fabric.job_gpus or not asked.cluster else ""
    usable = min(fabric.job_gpus, len(fabric.gpus))
    if (asked.cluster or asked.free) and usable % _EVEN_GPUS and usable > 4 * _EVEN_GPUS:
        even = _divided(usable, _width(given))
        if even < usable:
            return even, (
                f"{even}: of {usable} usable GPUs, {usable - even} idle, so that degrees divide; "
                "--gpus says otherwise"
            )
    return usable, ""


def _width(given: Mapping[str, Any]) -> int:
    """Return the product of the degrees that are given [1]."""
    return prod(d for name in _DEGREES if isinstance(d := given.get(name), int) and d > 0)


def _divided(usable: int, width: int) -> int:
    """Return how many of *usable* GPUs are taken where the given degrees' product is *width* [1].

    Multiples of 16 first, and all before a part that leaves more than a sixteenth idle.

    >>> [_divided(1001, width) for width in (1, 8, 3, 11, 1001, 9, 700)]
    [992, 992, 960, 1001, 1001, 999, 992]
    """
    even = usable // _EVEN_GPUS * _EVEN_GPUS
    both = lcm(_EVEN_GPUS, width)
    least = (1 - _IDLE_SHARE) * usable
    for gpus in (even, usable, usable // both * both, usable // width * width):
        if gpus % width == 0 and gpus >= least:
            return gpus
    return even


def launch_words(launch: LaunchFileRead, option: str) -> str:
    """Return that something is of a launch file, and what the file leaves in doubt about it."""
    doubt = launch.assumed.get(option)
    return f"of {launch.provenance}{f' ({doubt})' if doubt else ''}, for --{option} was not given"
