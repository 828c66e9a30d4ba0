"""What a job's environment, scontrol's page of it and counted host files say of its ranks."""

from __future__ import annotations

import tracemalloc

import pytest

from planner.errors import SpecError
from topologies.import_allocation import read_allocation

JOB = "SLURM_JOB_NODELIST=n[0-1]\nSLURM_NTASKS=6\nSLURM_TASKS_PER_NODE=4,2\n"


def hosts(text: str) -> str:
    return " ".join(read_allocation(text, "f").hosts)


@pytest.mark.parametrize(
    ("more", "seated"),
    [
        ("", "n0 n0 n0 n0 n1 n1"),
        ("SLURM_DISTRIBUTION=block:cyclic\n", "n0 n0 n0 n0 n1 n1"),
        ("SLURM_DISTRIBUTION=cyclic\n", "n0 n1 n0 n1 n0 n0"),
        ("SLURM_DISTRIBUTION=plane=2\n", "n0 n0 n1 n1 n0 n0"),
    ],
)
def test_tasks_are_dealt_over_a_jobs_machines_as_slurm_deals_them(more: str, seated: str) -> None:
    assert hosts(JOB + more) == seated
    assert read_allocation(JOB + more, "f").by_rank


@pytest.mark.parametrize(
    "text",
    [
        "SLURM_JOB_NODELIST=n[0-1]\nSLURM_TASKS_PER_NODE=96(x2)\n",  # processors
        "SLURM_JOB_NODELIST=n[0-1]\nSLURM_NTASKS=2\nSLURM_TASKS_PER_NODE=1(x2)\n",  # torchrun
        "SLURM_JOB_NODELIST=n[0-1]\nSLURM_NTASKS=1\nSLURM_TASKS_PER_NODE=1\n",  # of a step
    ],
)
def test_without_ranks_of_its_own_a_job_gives_its_machines_in_order(text: str) -> None:
    read = read_allocation(text, "f")
    assert (read.hosts, read.by_rank, read.kind) == (("n0", "n1"), False, "nodelist")


def test_ranks_that_lie_as_another_file_says_are_not_guessed() -> None:
    with pytest.raises(SpecError, match=r"f:4: SLURM_DISTRIBUTION=arbitrary.*SLURM_HOSTFILE"):
        read_allocation(JOB + "SLURM_DISTRIBUTION=arbitrary\n", "f")


def test_scontrols_page_says_the_tasks_of_a_machine() -> None:
    page = (
        "JobId=1 JobName=x\n NumNodes=2 NumTasks=4\n NodeList=n[0-1]\n NtasksPerN:B:S:C=2:0:*:*\n"
    )
    assert hosts(page) == "n0 n0 n1 n1"


@pytest.mark.parametrize(
    "text",
    [
        "n0 slots=2 max_slots=4\nn1 slots=2 max-slots=4\n",
        "n[0-1]:2\n",
        "n[0-1] slots=2\n",
        "n0:2,n1:2\n",
        "n[0-1]*2\n",
    ],
)
def test_counts_of_a_host_file_stand_behind_names_and_lists(text: str) -> None:
    assert hosts(text) == "n0 n0 n1 n1"


@pytest.mark.parametrize("line", ["a" * 5_000_000 + ":8", "n0" + " " * 3_000_000 + "x", "[" * 99])
def test_a_line_without_end_is_refused_in_little_memory(line: str) -> None:
    tracemalloc.start()
    with pytest.raises(SpecError):
        read_allocation(f"n1\n{line}\n", "f")
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (
        peak_bytes < 50 * len(line) + 2**20
    )  # several copies of the line, no mark for each letter
