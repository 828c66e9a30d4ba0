"""What the tests of ``planner net`` with files share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.conftest import Ran


def faults_of_a_file(
    planner: Callable[..., Ran], file: Path, command: str, option: str, text: str
) -> str:
    """Return what ``planner net COMMAND OPTION FILE`` says to a *file* of *text* it refuses."""
    file.write_text(text)

    ran = planner("net", command, option, str(file))

    assert ran.code == 2
    return ran.err
