"""The space of layouts: what is in it, what is not, and that nothing is lost on the way."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from planner.errors import LayoutError
from planner.layout import Layout, check_layout
from planner.model import Attention, ModelSpec
from planner.search.rules import parse_rules
from planner.search.space import WIDE_DENSE, Choices, layout_space, on_request, wide_choices

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


HYBRID = parse_rules(["dp_shard >= 1"])


def test_shard_groups_of_every_size_are_tried_once_when_a_rule_speaks_of_them() -> None:
    few = Choices(vpp=(1,), micro_batch=(1,), recompute=("full",), zero_stage=(1, 3))
    choices = on_request(few, DENSE, HYBRID)

    space = layout_space(DENSE, 24, SHARED, choices, rules=HYBRID)

    expected = set()
    divisors = (1, 2, 3, 4, 6, 8, 12, 24)
    for tp, cp, pp, zero, shard in product(divisors, divisors, divisors, (1, 3), divisors):
        dp = 24 // (tp * cp * pp)
        none_to_shard = zero == 3 and cp * dp == tp * cp * dp == 1
        if 24 % (tp * cp * pp) or none_to_shard or (shard == 1 and dp > 1):
            continue
        degrees = {"tp": tp, "cp": cp, "pp": pp, "dp": dp, "zero_stage": zero, "dp_shard": shard}
        if can_run(**degrees, recompute="full", **SHARED):
            expected.add((tp, cp, pp, dp, zero, shard))
    found = [space.layout(row, SHARED) for row in range(space.size)]
    listed = [(x.tp, x.cp, x.pp, x.dp, x.zero_stage, x.dp_shard or x.dp) for x in found]
    assert len(listed) == len(set(listed)) > 100
    assert set(listed) == expected
    assert space.considered == space.size + sum(space.rejected.values())
    columns = space.columns(SHARED)
    assert [float(shard) for shard in columns.shard_gpus] == [x.cp * x.dp_shard for x in found]


def test_no_expert_group_spans_two_replicas() -> None:
    model = replace(DENSE, experts=8, top_k=2, expert_ffn=2048, moe_layers=(True,) * 6)
    choices = on_request(Choices(vpp=(1,), micro_batch=(1,)), model, HYBRID)

    space = layout_space(model, 24, SHARED, choices, rules=HYBRID)

    found = [space.layout(row, SHARED) for row in range(space.size)]
    for layout in found:
        check_layout(layout, model, 24)
    assert any(layout.dp_shard and layout.ep > 1 for layout in found)
    assert space.rejected["an expert group spans replicas of dp_shard"] > 0


def test_without_a_word_of_them_all_of_dp_is_one_shard_group() -> None:
    space = layout_space(DENSE, 24, SHARED, wide_choices(DENSE, parse_rules(["tp <= 4"])))

    assert set(space.table["dp_shard"].tolist()) == {0}
    assert "dp_shard" in space.alike


def test_a_shard_group_that_is_given_is_kept_and_named_all_where_it_is_all() -> None:
    space = layout_space(DENSE, 24, {**SHARED, "dp_shard": 4}, FEW)

    groups = {(layout.dp, layout.dp_shard) for layout in
              (space.layout(row, SHARED) for row in range(space.size))}  # fmt: skip
    assert groups == {(4, 0), (8, 4), (12, 4), (24, 4)}


def test_rules_of_degrees_strike_all_their_runs_at_once() -> None:
    rules = parse_rules(["dp_replicate == 2 and tp <= 2", "micro_batch == 1", "zero == 1"])

    space = layout_space(DENSE, 24, SHARED, on_request(FEW, DENSE, rules), rules=rules)
    every = layout_space(DENSE, 24, SHARED, on_request(FEW, DENSE, rules))

    kept = [space.layout(row, SHARED) for row in range(space.size)]
    wanted = [one for one in (every.layout(row, SHARED) for row in range(every.size))
              if all(rule.allows(one) for rule in rules)]  # fmt: skip
    assert kept == wanted != []
    assert space.considered == every.considered == space.size + sum(space.rejected.values())
