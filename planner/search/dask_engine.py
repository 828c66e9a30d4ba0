"""A sweep's combinations on a Dask cluster: local processes, or a scheduler that is running.

Dask is optional (``pip install 'cluster-topology-planner[dask]'``) and imported here only. A
worker that dies is replaced and its combination done again; one that kills four workers is given
up, after all others are finished. Whoever reaches a scheduler's port can run code on its workers,
so local ones listen on the loopback alone and have no dashboard.
"""

# ruff: noqa: PLC0415 - dask is optional, and slow to import

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from planner.errors import InputError, PlannerError, SolverError
from planner.search.store import Engine

Answer = Mapping[str, Any]
Solve = Callable[[Mapping[str, Any]], Answer]

_LIBRARIES = ("cloudpickle", "dask", "distributed", "highspy", "networkx", "numpy", "pulp", "scipy")
_AHEAD = 2
_CONNECT_S = 30
_LOUD = ("distributed.nanny", "distributed.scheduler", "distributed.core", "distributed.comm",
         "distributed.worker", "distributed.deploy")  # fmt: skip


def versions_here(own: str) -> dict[str, str]:
    """Return the versions that answers depend on: ours, Python's, and the libraries'."""
    found = {"planner": own, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


@contextmanager
def dask_engine(
    solve: Solve, *, own_version: str, workers: int = 0, scheduler: str | None = None
) -> Iterator[Engine]:
    """Give an engine that solves combinations on workers, in any order.

    Args:
        solve: from a combination to its answer; a function of a module, or a partial of one.
        own_version: the planner's.
        workers: processes to start on this machine, one thread each, where there is no scheduler.
        scheduler: address of a running one, e.g. ``tcp://10.0.0.1:8786`` or ``tls://…``.

    Raises:
        InputError: Dask is not installed, nobody answers at *scheduler*, or its workers run other
            versions.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(
            "--workers and --scheduler need dask.distributed: pip install "
            "'cluster-topology-planner[dask]'"
        ) from None
    for name in _LOUD:  # what they say of a lost worker, the notes say too
        logging.getLogger(name).setLevel(logging.CRITICAL)
    cluster = None
    with dask.config.set({"distributed.comm.timeouts.connect": f"{_CONNECT_S}s"}):
        if scheduler is None:
            cluster = LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
                memory_limit=0, silence_logs=logging.CRITICAL,
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            )  # fmt: skip
        try:
            try:
                client = Client(cluster or scheduler, timeout=f"{_CONNECT_S}s")
            except (OSError, ValueError) as error:
                raise InputError(
                    f"--scheduler {scheduler}: nobody answers within {_CONNECT_S} s ({error})"
                ) from None
            with client:
                yield _engine(client, _Checked(solve, versions_here(own_version)))
        finally:
            if cluster is not None:
                cluster.close(timeout=10)


class _Checked:
    """A solve that first makes sure that the worker would answer as the client does."""

    def __init__(self, solve: Solve, versions: Mapping[str, str]) -> None:
        self._solve, self._versions = solve, dict(versions)

    def __call__(self, combination: Mapping[str, Any]) -> Answer:
        here = versions_here(self._versions["planner"])
        other = {n: v for n, v in here.items() if v != self._versions[n]}
        if other:
            raise InputError(
                "a worker runs other versions: "
                + ", ".join(f"{n} {v} for {self._versions[n]} here" for n, v in other.items())
                + "; results would not be the same"
            )
        return self._solve(combination)


def _engine(client: Any, solve: Solve) -> Engine:
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    def answers(
        wanted: Sequence[tuple[int, Mapping[str, Any]]],
    ) -> Iterator[tuple[int, Answer]]:
        waiting = iter(wanted)
        running: dict[str, tuple[int, Mapping[str, Any]]] = {}
        finished = as_completed(raise_errors=False)
        given_up: list[str] = []

        def feed() -> None:
            threads = max(1, sum(client.nthreads().values()))
            while len(running) < _AHEAD * threads:
                one = next(waiting, None)
                if one is None:
                    return
                future = client.submit(solve, dict(one[1]), pure=False)
                running[future.key] = one
                finished.add(future)

        feed()
        for future in finished:
            position, combination = running.pop(future.key)
            if future.status == "error":
                error = future.exception()
                if isinstance(error, PlannerError):
                    raise error
                if not isinstance(error, KilledWorker):
                    raise SolverError(f"a worker failed: {type(error).__name__}: {error}")
                given_up.append(", ".join(f"{k} {v}" for k, v in combination.items() if v))
            else:
                yield position, future.result()
            future.release()
            feed()
        if given_up:
            raise SolverError(
                *(f"given up after it ended its worker again and again: {one}" for one in given_up)
            )

    return answers
