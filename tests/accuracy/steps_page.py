"""The page of step times, and what ``planner validate`` says of the table it is about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.steptime.runs import Run

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "steps.md").read_text(encoding="utf-8")
PROSE = " ".join(PAGE.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """What the command says of the full table: its document, and each row's predicted step."""

    document: dict[str, Any]
    step_s: dict[str, float]
    rows: dict[str, dict[str, str]]
    runs: tuple[Run, ...]
