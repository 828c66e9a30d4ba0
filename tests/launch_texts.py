"""How the tests read launch files, and the least of Megatron's arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import SpecError
from topologies.import_megatron import import_megatron_script
from topologies.imported_run import Field, ImportedRun
from topologies.launch_reader import open_launch_file, run_from
from topologies.layout_reader import read_layout_run

MINIMAL = "--tensor-model-parallel-size 2 --num-layers 4 --hidden-size 64 --num-attention-heads 8 "


def read_run(path: Path) -> ImportedRun:
    return run_from(open_launch_file(path))


def read_layout(path: Path) -> dict[str, Field]:
    return dict(read_layout_run(path).layout)


def script(text: str) -> ImportedRun:
    return import_megatron_script(text, name="run.sh")


def megatron(flags: str) -> ImportedRun:
    return script(f"python pretrain_gpt.py {MINIMAL} --vocab-size 256 {flags}\n")


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def faults(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        script(text)
    return str(caught.value)
