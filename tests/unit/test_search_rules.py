"""The user's rules: what they mean, one layout and columns alike, and what is no rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.errors import InputError
from planner.layout import Layout, check_layout
from planner.model import Attention, ModelSpec
from planner.search.rules import parse_rule, parse_rules
from planner.search.space import WIDE_DENSE, layout_space, wide_choices
from planner.steptime.columns import columns_of

DENSE = ModelSpec(
    name="dense", hidden=2048, vocab=32000, layers=12, ffn=8192,
    attention=Attention(heads=16, kv_heads=4, head_dim=128, v_head_dim=128),
)  # fmt: skip
FIXED = {"seq": 4096, "global_batch": 64}
LAYOUT = Layout(tp=4, cp=2, dp=4, pp=2, vpp=3, zero_stage=1, micro_batch=2, global_batch=64)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("tp <= 8", True),
        ("tp<4", False),
        ("2 < tp <= 4", True),
        ("2 < tp < 4", False),
        ("tp * cp == 8 and dp >= 4", True),
        ("not (pp > 1 and vpp == 1)", True),
        ("pp == 1 or vpp == 2 or zero == 3", False),
        ("gpus / pp % 8 == 0", True),
        ("global_batch // dp - micro_batches * micro_batch == 0", True),
        ("recompute == 'selective'", True),
        ("'full' == recompute", False),
        ("cp_kind != 'ulysses' and sequence_parallel", True),
        ("-tp < +0.5", True),
        ("tp / (cp - 2) > 1", False),
        ("dp_shard == 4 and dp_replicate == 1", True),
    ],
)
def test_a_rule_means_what_arithmetic_says(text: str, holds: bool) -> None:
    assert parse_rule(text).allows(LAYOUT) is holds


def test_a_rule_of_shard_groups_means_the_ranks_that_share_a_copy() -> None:
    hybrid = replace(LAYOUT, dp_shard=2)

    assert parse_rule("dp_shard == 2 and dp_replicate == dp / dp_shard").allows(hybrid)
    assert not parse_rule("dp_shard == dp").allows(hybrid)


def test_columns_are_sifted_as_single_layouts_are() -> None:
    rules = parse_rules(["tp * cp <= 8 or recompute == 'full'", "micro_batches % pp == 0",
                         "not (cp_kind == 'ulysses' and zero == 3)"])  # fmt: skip

    every = layout_space(DENSE, 32, FIXED, WIDE_DENSE)
    some = layout_space(DENSE, 32, FIXED, WIDE_DENSE, rules=rules)

    rows = np.random.default_rng(0).choice(every.size, 400, replace=False)
    kept = {some.layout(row, FIXED) for row in range(some.size)}
    for row in rows:
        layout = every.layout(int(row), FIXED)
        assert (layout in kept) == all(rule.allows(layout) for rule in rules)
    assert some.considered == some.size + sum(some.rejected.values())
    assert set(some.rejected) >= {f"the rule {rule.text}" for rule in rules}


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [("schedule == 'zb-h1'", "schedule", "zb-h1"),
     ("not overlap_gradients", "overlap_gradients", False),
     ("schedule == 'dualpipe' and pp > 2", "schedule", "dualpipe"),
     ("dp_shard == 4 and dp_replicate > 1", "dp_shard", 4)],
)  # fmt: skip
def test_what_is_tried_on_request_alone_is_tried_when_a_rule_speaks_of_it(
    text: str, field: str, value: object
) -> None:
    rules = parse_rules([text])

    usual = layout_space(DENSE, 32, FIXED, wide_choices(DENSE), rules=rules)
    asked = layout_space(DENSE, 32, FIXED, wide_choices(DENSE, rules), rules=rules)

    assert usual.size == 0
    assert asked.size > 0
    for row in range(0, asked.size, 97):
        layout = asked.layout(row, FIXED)
        assert getattr(layout, field) == value
        check_layout(layout, DENSE, 32)
        for name in ("schedule", "shard_gpus"):
            columns = np.broadcast_to(getattr(asked.columns(FIXED), name), asked.size)
            assert float(getattr(columns_of(layout), name)) == columns[row]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no condition"),
        ("tp", "is a number"),
        ("tp +", "is no condition"),
        ("tq <= 8", "'tq' is no field of a layout"),
        ("__import__('os').system('true')", "Call has no place in a rule"),
        ("tp.__class__ == 1", "Attribute has no place"),
        ("(lambda: 1)() == 1", "no place"),
        ("[tp for tp in dp] == 1", "ListComp has no place"),
        ("tp ** 9 ** 9 > 1", "BinOp has no place"),
        ("tp << 99999 > 1", "BinOp has no place"),
        ("tp in (1, 2)", "Compare has no place"),
        ("recompute < 'full'", "only be compared with its field"),
        ("tp == 'full'", "only be compared with its field"),
        ("recompute == 'some'", "'some' is none of"),
        ("tp == 10000000000", "too large"),
        ("(" * 300 + "tp" + ")" * 300 + "==1", "longer than 400"),
        ("not " * 60 + "tp == 1", "nested too deeply"),
        ("tp == 1 if dp else 2", "IfExp has no place"),
        ("(tp := 3) == 3", "NamedExpr has no place"),
        ("f'{tp}' == 'full'", "JoinedStr has no place"),
    ],
)
def test_what_is_no_rule_is_refused_and_never_run(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_rule(text)

    assert said in "\n".join(refused.value.faults)


def test_every_fault_of_every_rule_is_said() -> None:
    with pytest.raises(InputError) as refused:
        parse_rules(["tq == 1", "tp <= 8", "dq == pq"])

    said = "\n".join(refused.value.faults)
    assert all(f"'{name}' is no field" in said for name in ("tq", "dq", "pq"))


@pytest.mark.parametrize("text", ["tp / 0 > 1", "tp % 0 == 0", "pp // 0 < 3"])
def test_a_rule_that_divides_by_zero_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="divides by 0"):
        parse_rule(text)


@pytest.mark.parametrize(
    "text", ["vpp / (pp - 1) > 0", "vpp // (pp - 1) >= 0", "vpp % (pp - 1) < 9"]
)
def test_no_comparison_holds_of_what_is_divided_by_zero(text: str) -> None:
    rule = parse_rule(text)

    assert not rule.allows(Layout(pp=1))
    assert rule.allows(Layout(pp=2, vpp=2, global_batch=2))
