"""Layouts from our own YAML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from planner.errors import LayoutError, SpecError
from planner.layout import Layout
from tests.launch_texts import read_layout
from topologies.imported_run import layout_of
from topologies.layout_reader import read_layout_run

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writes(text: str, name: str = "layout.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return writes


def refusal(path: Path) -> tuple[str, ...]:
    with pytest.raises(SpecError) as caught:
        read_layout(path)
    return caught.value.faults


def test_every_field_of_a_layout_can_be_written(write: Write) -> None:
    layout = Layout(
        tp=2, cp=2, ep=4, etp=1, dp=4, pp=2, vpp=2, zero_stage=2, micro_batch=2, global_batch=32,
        seq=8192, recompute="full", precision="fp8", sequence_parallel=False, cp_kind="ulysses",
        schedule="zb-h1", order="tp-cp-ep-pp-dp", overlap_gradients=False,
        overlap_parameters=False, ep_copies="domain",
    )  # fmt: skip
    lines = []
    for field in fields(Layout):
        value = getattr(layout, field.name)
        lines.append(f"{field.name}: {str(value).lower() if isinstance(value, bool) else value}")

    assert layout_of(read_layout_run(write("\n".join(lines)))) == layout
    assert read_layout(write("\n".join(lines))) == asdict(layout)


def test_zero_may_be_written_as_on_the_command_line(write: Write) -> None:
    assert read_layout(write("dp: 4\nzero: 3\n")) == {"dp": 4, "zero_stage": 3}
    assert "zero_stage" in refusal(write("dp: 4\nglobal_batch: 4\nzero: 3\nzero_stage: 3\n"))[0]


def test_the_data_parallel_degree_is_what_the_gpus_leave_over(write: Write) -> None:
    layout = layout_of(read_layout_run(write("tp: 8\npp: 4\nmicro_batch: 2\n")), gpus=128)

    assert (layout.dp, layout.global_batch) == (4, 8)


def test_gpus_that_the_degrees_do_not_divide_are_refused(write: Write) -> None:
    run = read_layout_run(write("tp: 8\npp: 4\n"))

    with pytest.raises(LayoutError, match="tp x cp x pp = 32 does not divide 100 GPUs"):
        layout_of(run, gpus=100)
    with pytest.raises(LayoutError, match="a multiple of tp x cp x pp = 32"):
        layout_of(run)


def test_only_what_is_stated_is_reported(write: Write) -> None:
    run = read_layout_run(write("tp: 8\nrecompute: full\n"))

    assert dict(run.layout) == {"tp": 8, "recompute": "full"}
    assert run.gpus is None


def test_every_fault_is_named_with_its_line(write: Write) -> None:
    path = write("tp: eight\ndq: 4\nsequence_parallel: yes\npp: 0\nprecision: 8\n")

    text = "\n".join(refusal(path))

    for place in (":1:", ":2:", ":3:", ":4:", ":5:"):
        assert f"{path}{place}" in text


def test_degrees_that_clash_are_named_at_the_line_of_one_of_them(write: Write) -> None:
    path = write("tp: 4\ncp: 1\nep: 3\ndp: 2\nglobal_batch: 8\nvpp: 2\n")

    text = "\n".join(refusal(path))

    assert f"{path}:3:" in text
    assert "does not divide" in text
    assert f"{path}:6:" in text
    assert "vpp=2 needs pp > 1" in text


@pytest.mark.parametrize(
    "text",
    ["", "[]", "tp", "tp: 1\ntp: 2\n", "tp: [8]\n", "tp: 1e3\n", "tp: .inf\n", "{", "tp: 8.5\n"],
)
def test_what_is_no_layout_is_refused(write: Write, text: str) -> None:
    assert refusal(write(text))


def test_a_launch_script_is_a_layout_too(write: Write) -> None:
    path = write(
        "torchrun --nnodes 2 --nproc_per_node 8 train.py --tensor-model-parallel-size 4 "
        "--micro-batch-size 1 --global-batch-size 16 --bf16\n",
        "run.sh",
    )

    layout = layout_of(read_layout_run(path))

    assert (layout.tp, layout.dp, layout.global_batch) == (4, 4, 16)
