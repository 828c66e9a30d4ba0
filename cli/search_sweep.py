"""``planner search --sweep``: many models, clusters and sizes, into a file that can be resumed."""

from __future__ import annotations

import hashlib
import itertools
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.planner_inputs import Asked
from cli.planner_output import document, note, plain
from cli.planner_version import __version__
from cli.price_notes import swept_price_notes, unused_prices
from cli.search_inputs import read_searched
from cli.search_report import finalist_document, make_search
from planner.documents import read_bytes, read_document
from planner.errors import InfeasibleError, InputError
from planner.search.dask_engine import dask_engine
from planner.search.rules import parse_rules
from planner.search.store import Engine, one_by_one, run_sweep
from planner.units import format_time
from topologies.own_efficiency import OwnFits, efficiency_file
from topologies.price_list import read_price_list

if TYPE_CHECKING:
    from planner.nodes import Node

Solve = Callable[[Mapping[str, Any]], Mapping[str, Any]]
SEATING_LIMIT_S = 20.0
_EVERY_S = 1.0  # between two words of progress; a sweep of small searches has thousands
_WIDTH = 79  # of a terminal's line that is written over


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What is swept: every combination of these; None is the default of ``planner search``."""

    models: tuple[str | None, ...]
    clusters: tuple[str | None, ...]
    supernodes: tuple[int | None, ...]
    gpus: tuple[int | None, ...]
    seqs: tuple[int | None, ...] = (None,)
    prices: tuple[str | None, ...] = (None,)

    def combinations(self) -> list[dict[str, Any]]:
        """Return them in the order of the file, models outermost."""
        names = ("model", "cluster", "supernode", "gpus", "seq", "prices")
        every = itertools.product(
            self.models, self.clusters, self.supernodes, self.gpus, self.seqs, self.prices
        )
        return [dict(zip(names, one, strict=True)) for one in every]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a sweep is run; nothing of it changes an answer.

    Args:
        resume: go on with results that are there.
        workers: processes on this machine, 0 for none but this one.
        scheduler: address of a Dask scheduler that is running.
    """

    resume: bool = False
    workers: int = 0
    scheduler: str | None = None


_LISTS = ("models", "clusters", "supernodes", "gpus", "seqs", "prices")


def read_sweep(path: Path) -> Sweep:
    """Return the sweep in a YAML file: lists of models, clusters, supernodes, gpus, seqs, prices.

    Raises:
        SpecError: every fault, with its line.
    """
    read = read_document(path)
    root = read.root
    if root.kind != "map":
        root.fault(f"expected a sweep: lists of {', '.join(_LISTS)}")
        read.finish()
    root.only(*_LISTS)

    def some(key: str) -> tuple[Node, ...]:
        return root.list(key, default=())

    found = Sweep(
        models=tuple(node.as_text() for node in some("models")) or (None,),
        clusters=tuple(node.as_text() for node in some("clusters")) or (None,),
        supernodes=tuple(node.as_count(1, 1_000_000) for node in some("supernodes")) or (None,),
        gpus=tuple(node.as_count(1, 1_000_000) for node in some("gpus")) or (None,),
        seqs=tuple(node.as_count(1, 100_000_000) for node in some("seqs")) or (None,),
        prices=tuple(node.as_text() for node in some("prices")) or (None,),
    )
    for key in _LISTS:
        values = [node.value for node in some(key)]
        if len(set(map(str, values))) < len(values):
            root.fault("names the same twice", key=key)
    read.finish()
    return found


def refuse_beside_sweep(options: Mapping[str, object]) -> None:
    """Refuse what *options*, option to value, ask for that a sweep does not take.

    Raises:
        InputError: those that have a value.
    """
    if idle := [option for option, value in options.items() if value]:
        listed = [option for option in idle if f"{option[2:].removesuffix('s')}s" in _LISTS]
        raise InputError(
            f"{', '.join(idle)}: not beside --sweep"
            + (f", whose file lists {', '.join(_LISTS)}" if listed else "")
            + "; beside it stand --into, --resume, --workers, --scheduler, --parquet, --out, "
            "--json, --seed, --time-limit, --efficiency, --where and the layout's own "
            "options, such as --tp"
        )


def sweep_document(
    sweep: Sweep,
    into: Path,
    given: Mapping[str, Any],
    *,
    where: tuple[str, ...] = (),
    way: Way,
    own_fits: OwnFits | None = None,
    seed: int,
    time_limit_s: float,
) -> dict[str, Any]:
    """Return the document of a sweep, solved as far as *into* does not have it already.

    Args:
        sweep: what is swept.
        into: the SQLite file.
        given: fields of ``Layout`` that every search shares.
        where: conditions that every layout must meet, as the user wrote them.
        way: how it is run.
        own_fits: what accelerators reach, where that is not what ships.
        seed: of everything random in a seating.
        time_limit_s: seconds a solver may take for one seating; long, for answers must not depend
            on how busy a machine is [s].
    """
    files = _files(sweep)
    asked = {"sweep": sweep, "layout": dict(given), "where": where, "seed": seed,
             "time_limit_s": time_limit_s, "files_sha256": files}  # fmt: skip
    if own_fits is not None:
        asked |= {"efficiency_file": efficiency_file(own_fits), "efficiency": own_fits.by_chip}
    fingerprint = hashlib.sha256(f"{__version__} {plain(asked)}".encode()).hexdigest()
    if given.get("seq") is not None and sweep.seqs != (None,):
        raise InputError("seq is given twice: as --seq and as seqs of the sweep; give it once")
    solve = partial(
        _solved, given=dict(given), where=where, own_fits=own_fits, seed=seed,
        time_limit_s=time_limit_s, files=files,
    )  # fmt: skip
    answers = run_sweep(
        sweep.combinations(), _engine(solve, way), into, fingerprint=fingerprint,
        resume=way.resume, progress=_Progress(),
    )  # fmt: skip
    for line in swept_price_notes(answers):
        note(line)
    return document("search-sweep", asked, {"results": answers})


class _Progress:
    """Says how many combinations are done, how fast, and how long the others take.

    After the first and the last, and between them at most once a second: a terminal's line is
    written over, a log gets a line each time.
    """

    def __init__(self) -> None:
        self._started = self._told = time.monotonic()
        self._before: int | None = None
        self._live = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        if self._before is None:
            self._before = done
            if done:
                note(f"{done:,} of {total:,} were there already")
            return
        now, fresh = time.monotonic(), done - self._before
        if fresh > 1 and done < total and now - self._told < _EVERY_S:
            return
        self._told, each_s = now, (now - self._started) / max(fresh, 1)
        rate = f", {60.0 / each_s:.3g} a minute" if each_s > 0 else ""
        left = f", {format_time(each_s * (total - done))} left" if done < total else ""
        said = f"{done:,} of {total:,}{rate}{left}"
        if self._live and done < total:
            sys.stderr.write(f"\r{said:<{_WIDTH}}")
            sys.stderr.flush()
        else:
            note(f"\r{said:<{_WIDTH}}" if self._live else said)


def _engine(solve: Solve, way: Way) -> Engine:
    """Return what solves: this process, or Dask, which starts when there is something to do."""
    if not way.workers and way.scheduler is None:
        return one_by_one(solve)

    def answers(
        wanted: Sequence[tuple[int, Mapping[str, Any]]],
    ) -> Iterator[tuple[int, Mapping[str, Any]]]:
        workers = min(way.workers, len(wanted))
        with dask_engine(
            solve, own_version=__version__, workers=workers, scheduler=way.scheduler
        ) as engine:
            yield from engine(wanted)

    return answers


def _files(sweep: Sweep) -> dict[str, str]:
    """Return the hash of each file among the names; the answers depend on them."""
    named = (*sweep.models, *sweep.clusters, *sweep.prices)
    return {name: _sha256(name) for name in named if name and Path(name).is_file()}


def _sha256(name: str) -> str:
    return hashlib.sha256(read_bytes(name)).hexdigest()


def _solved(
    one: Mapping[str, Any],
    *,
    given: Mapping[str, Any],
    where: tuple[str, ...],
    own_fits: OwnFits | None,
    seed: int,
    time_limit_s: float,
    files: Mapping[str, str],
) -> dict[str, Any]:
    """Return the best layout of one combination, or why there is none.

    Raises:
        InputError: a file is not what it was where the sweep was started, as on another machine.
    """
    names = [one[key] for key in ("model", "cluster", "prices") if one[key] in files]
    changed = [n for n in names if not Path(n).is_file() or _sha256(n) != files[n]]
    if changed:
        raise InputError(
            *(f"{n}: is not here as it was where the sweep began ({platform.node()})"
              for n in changed)
        )  # fmt: skip
    base = {**one, "refused": [], "best": None, "run": None, "unused_prices": {}}
    asked = {name: one[name] for name in ("model", "cluster", "supernode", "gpus")}
    try:
        prices = None if one["prices"] is None else read_price_list(one["prices"])
        layout = {**given, **({} if one["seq"] is None else {"seq": one["seq"]})}
        rules = parse_rules(where)
        inputs = read_searched(Asked(**asked, layout=layout, where=rules, own_fits=own_fits))
        found = make_search(
            inputs, best=1, seed=seed, time_limit_s=time_limit_s, prices=prices, rules=rules
        )
    except (InputError, InfeasibleError) as error:
        return {**base, "refused": list(error.faults)}
    best = plain(finalist_document(found.best[0], found.best[0]))
    return {
        **base, "model": inputs.model.name, "cluster": inputs.fabric.name, "gpus": inputs.gpus,
        "supernode": inputs.fabric.full_supernode_gpus, "seq": inputs.layout.seq,
        "best": best, "run": plain(found.runs[0]),
        "unused_prices": unused_prices(prices, [found.bill]),
    }  # fmt: skip
