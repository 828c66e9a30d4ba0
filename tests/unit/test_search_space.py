"""The space of layouts: what is in it, what is not, and that nothing is lost on the way."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from planner.errors import LayoutError
from planner.layout import Layout, check_layout
from planner.model import Attention, ModelSpec
from planner.search.space import WIDE_DENSE, Choices, layout_space, wide_choices

DENSE = ModelSpec(
    name="dense", hidden=512, vocab=1024, layers=6, ffn=2048,
    attention=Attention(heads=8, kv_heads=4, head_dim=64, v_head_dim=64),
)  # fmt: skip
SHARED = {"seq": 64, "global_batch": 24}
FEW = Choices(vpp=(1, 2, 3), micro_batch=(1, 2, 3), recompute=("selective", "full"),
              zero_stage=(1, 3), sequence_parallel=(True, False),
              cp_kind=("ring", "ulysses"))  # fmt: skip


def can_run(**fields: object) -> bool:
    try:
        check_layout(Layout(**fields), DENSE, 24)  # type: ignore[arg-type]
    except LayoutError:
        return False
    return True


def test_every_layout_that_can_run_is_in_the_space_once_and_no_other() -> None:
    divisors = (1, 2, 3, 4, 6, 8, 12, 24)

    space = layout_space(DENSE, 24, SHARED, FEW)

    expected = set()
    for tp, cp, pp, vpp, mb, rec, zero, sp, kind in product(
        divisors,
        divisors,
        divisors,
        FEW.vpp,
        FEW.micro_batch,
        FEW.recompute,
        FEW.zero_stage,
        FEW.sequence_parallel,
        FEW.cp_kind,
    ):
        if 24 % (tp * cp * pp) or (not sp and tp == 1) or (kind == "ulysses" and cp == 1):
            continue
        dp = 24 // (tp * cp * pp)
        edp = tp * cp * dp
        if zero == 3 and cp * dp * edp == 1:
            continue
        if can_run(
            tp=tp,
            cp=cp,
            dp=dp,
            pp=pp,
            vpp=vpp,
            micro_batch=mb,
            recompute=rec,
            zero_stage=zero,
            sequence_parallel=sp,
            cp_kind=kind,
            **SHARED,
        ):
            expected.add((tp, cp, dp, pp, vpp, mb, rec, zero, sp, kind))
    found = [space.layout(row, SHARED) for row in range(space.size)]
    listed = [(x.tp, x.cp, x.dp, x.pp, x.vpp, x.micro_batch, x.recompute, x.zero_stage,
               x.sequence_parallel, x.cp_kind) for x in found]  # fmt: skip
    assert len(listed) == len(set(listed)) > 300
    assert set(listed) == expected


def test_what_is_considered_is_in_the_space_or_thrown_out_for_one_reason() -> None:
    space = layout_space(DENSE, 24, SHARED, WIDE_DENSE)

    assert space.considered == space.size + sum(space.rejected.values())
    assert all(count > 0 for count in space.rejected.values())


def test_what_is_given_stays_as_it_is_given() -> None:
    space = layout_space(DENSE, 24, {**SHARED, "tp": 4, "zero_stage": 0}, wide_choices(DENSE))

    assert set(space.table["tp"].tolist()) == {4}
    assert set(space.table["zero_stage"].tolist()) == {0}


def test_columns_say_the_same_as_the_layouts_they_stand_for() -> None:
    from planner.steptime.columns import columns_of

    space = layout_space(DENSE, 24, SHARED, FEW)
    columns = space.columns(SHARED)

    for row in range(0, space.size, 37):
        one = columns_of(space.layout(row, SHARED))
        for name in (
            "tp",
            "cp",
            "dp",
            "pp",
            "vpp",
            "micro_batch",
            "recompute",
            "zero_stage",
            "sequence_parallel",
            "cp_kind",
            "overlap_tensor",
            "domain_copies",
            "schedule",
            "overlap_gradients",
            "overlap_parameters",
        ):
            every = np.broadcast_to(getattr(columns, name), space.size)
            assert every[row] == pytest.approx(getattr(one, name)), name
