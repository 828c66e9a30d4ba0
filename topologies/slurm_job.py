"""A Slurm job's environment, or what ``scontrol show job`` prints: its machines, its ranks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from planner.errors import SpecError

_ASSIGNED = re.compile(r"(?:export\s+|declare -x\s+)?([A-Za-z_][A-Za-z0-9_:]*)\s*=\s*(.*)")
_NODE_LISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST", "NodeList")
_TASKS = re.compile(r"([0-9]{1,5})(?:\(x([0-9]{1,6})\))?")
_PLANE = re.compile(r"plane=([0-9]{1,5})")
_PER_NODE = "NtasksPerN:B:S:C"
Lines = Sequence[tuple[int, str]]
Variables = Mapping[str, tuple[int, str]]


def job_variables(lines: Lines) -> Variables:
    """Return each variable's line and value, the first that says something.

    >>> job_variables([(1, "export SLURM_NTASKS=8"), (2, "NodeList=n[1-2] BatchHost=n1")])
    {'SLURM_NTASKS': (1, '8'), 'NodeList': (2, 'n[1-2]'), 'BatchHost': (2, 'n1')}
    """
    found: dict[str, tuple[int, str]] = {}
    for number, line in lines:
        words = [line] if line.startswith(("SLURM_", "export ", "declare ")) else line.split()
        for word in words:
            match = _ASSIGNED.fullmatch(word)
            if match and match.group(2) and "(null)" not in match.group(2):
                found.setdefault(match.group(1), (number, match.group(2).strip("\"' ")))
    return found


def job_node_list(job: Variables) -> tuple[int, str] | None:
    """Return the line and the text of the job's node list, none where there is no job."""
    return next((job[key] for key in _NODE_LISTS if key in job), None)


def ranks_of_job(job: Variables, hosts: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the machine of each rank, or nothing where the job does not say more than machines.

    ``SLURM_TASKS_PER_NODE`` counts only beside ``SLURM_NTASKS``: without it Slurm puts a machine's
    processors there. One task on each machine is a launcher's, such as torchrun's, which starts
    the ranks.

    Args:
        job: its variables.
        hosts: its machines in order.
        name: what faults call the file.

    Raises:
        SpecError: ranks lie where another file says.

    >>> told = {"SLURM_NTASKS": (1, "4"), "SLURM_TASKS_PER_NODE": (2, "2(x2)")}
    >>> ranks_of_job(told, ["a", "b"], "env")
    ('a', 'a', 'b', 'b')
    >>> ranks_of_job({**told, "SLURM_DISTRIBUTION": (3, "cyclic")}, ["a", "b"], "env")
    ('a', 'b', 'a', 'b')
    """
    tasks = _tasks(job, len(hosts))
    if not tasks or max(tasks) == 1:
        return ()
    number, told = job.get("SLURM_DISTRIBUTION", (1, "block"))
    way = told.split(":")[0].split(",")[0].lower()
    if way in {"", "block", "*", "pack", "nopack"}:
        return _dealt(hosts, tasks, max(tasks))
    if way == "cyclic":
        return _dealt(hosts, tasks, 1)
    if (plane := _PLANE.fullmatch(way)) and int(plane.group(1)):
        return _dealt(hosts, tasks, int(plane.group(1)))
    raise SpecError(
        f"{name}:{number}: SLURM_DISTRIBUTION={told[:40]}: expected block, cyclic or plane=N; of "
        "arbitrary, give the file that SLURM_HOSTFILE names"
    )


def _tasks(job: Variables, hosts: int) -> tuple[int, ...]:
    """Return the tasks of each machine, nothing where the job does not say them."""
    total = job.get("SLURM_NTASKS", job.get("NumTasks", (0, "")))[1]
    each = job.get(_PER_NODE, (0, ""))[1].split(":")[0]
    text = job.get("SLURM_TASKS_PER_NODE", (0, f"{each}(x{hosts})"))[1]
    counts: list[int] = []
    for word in text.split(","):
        match = _TASKS.fullmatch(word.strip())
        if match is None:
            return ()
        counts += [int(match.group(1))] * min(int(match.group(2) or 1), hosts + 1)
    good = len(counts) == hosts and total == str(sum(counts))
    return tuple(counts) if good else ()


def _dealt(hosts: Sequence[str], tasks: Sequence[int], at_once: int) -> tuple[str, ...]:
    """Return the machine of each rank: round after round, *at_once* ranks to each with room."""
    left = list(tasks)
    dealt: list[str] = []
    while any(left):
        for i, host in enumerate(hosts):
            taken = min(at_once, left[i])
            dealt += [host] * taken
            left[i] -= taken
    return tuple(dealt)
