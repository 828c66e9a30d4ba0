"""What a step spends on its wires is what ``planner.traffic`` says it sends, family by family.

Two implementations of the same payloads: ``traffic`` prices what crosses a cut, ``steptime`` turns
it into seconds. With links of one byte a second and no latency inside one supernode, seconds are
the bytes one member sends.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.collectives.links import two_tiers
from planner.errors import LayoutError
from planner.fabric import Accelerator
from planner.layout import Layout
from planner.model import Attention, ModelSpec
from planner.steptime.columns import columns_of
from planner.steptime.rates import Efficiency
from planner.steptime.spread import contiguous_spread
from planner.steptime.step import Step, step_columns
from planner.traffic import Family, step_families
from topologies.fabric_accelerators import load_accelerator

EVEN = Efficiency(
    gemm_share={"bf16": 1.0}, attention_share={"fused": 1.0}, memory_share={"fused": 1.0},
    inner_share=1.0, outer_share=1.0,
)  # fmt: skip
LINKS = two_tiers(inside_bytes_per_s=1.0, nic_bytes_per_s=1.0)


def spec(kind: str) -> ModelSpec:
    moe = kind != "dense"
    attention = (
        Attention(kind="mla", heads=16, kv_heads=16, head_dim=192, v_head_dim=128,
                  q_lora_rank=384, kv_lora_rank=128, rope_head_dim=64)
        if kind == "mla"
        else Attention(heads=16, kv_heads=4, head_dim=128, v_head_dim=128)
    )  # fmt: skip
    return ModelSpec(
        name=kind, hidden=2048, vocab=32000, layers=4, attention=attention, ffn=8192,
        gated_mlp=True, experts=16 if moe else 0, top_k=4 if moe else 0,
        expert_ffn=1024 if moe else 0, shared_expert_ffn=1024 if kind == "mla" else 0,
        moe_layers=(kind == "moe", True, True, True) if moe else (),
        mtp_layers=1 if kind == "mla" else 0, tied_embeddings=kind == "dense",
    )  # fmt: skip


@pytest.fixture(scope="module")
def accelerator() -> Accelerator:
    return load_accelerator("H100-SXM")


def sent_bytes(family: Family) -> float:
    """Bytes one member sends in a step, by the textbook of each collective."""
    n, v = family.group_size, family.payload_bytes
    each = {
        "all_reduce": 2.0 * (n - 1) / n * v,
        "all_gather": (n - 1) / n * v,
        "reduce_scatter": (n - 1) / n * v,
        "all_to_all": (n - 1) * v,
        "ring": v,
        "chain": v,
    }[family.collective]
    return each * family.times_per_step


def wired(model: ModelSpec, layout: Layout, accelerator: Accelerator) -> Step:
    columns = columns_of(layout)
    return step_columns(
        model, columns, accelerator=accelerator, links=LINKS, efficiency=EVEN,
        spreads=contiguous_spread(columns, [float(layout.gpus)]),
    )  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> tuple[ModelSpec, Layout]:
    model = spec(draw(st.sampled_from(["dense", "moe", "mla"])))
    power = st.sampled_from([1, 2, 4])
    tp, cp, dp, pp = draw(st.sampled_from([1, 2, 4, 8])), draw(power), draw(power), draw(power)
    ep, etp = (draw(st.sampled_from([1, 2, 4, 8])), draw(power)) if model.experts else (1, 1)
    micro_batch = draw(st.sampled_from([1, 2]))
    try:
        layout = Layout(
            tp=tp, cp=cp, dp=dp, pp=pp, ep=ep, etp=etp,
            zero_stage=draw(st.sampled_from([0, 1, 2, 3])),
            micro_batch=micro_batch, global_batch=micro_batch * dp * draw(st.sampled_from([4, 8])),
            seq=4096, recompute=draw(st.sampled_from(["none", "selective", "full"])),
            sequence_parallel=draw(st.booleans()) and tp > 1,
            cp_kind=draw(st.sampled_from(["ring", "all_gather", "ulysses"])),
            dispatch_bytes=draw(st.sampled_from([1, 2])),
        )  # fmt: skip
    except LayoutError:
        assume(False)
        raise
    return model, layout


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_steps_and_cuts_agree_on_what_every_family_sends(
    accelerator: Accelerator, case: tuple[ModelSpec, Layout]
) -> None:
    model, layout = case
    assume(layout.pp == 1)
    own = wired(model, layout, accelerator).communication_s

    wanted: dict[str, float] = dict.fromkeys(("tp", "cp", "ep", "etp", "dp"), 0.0)
    for family in step_families(model, layout):
        if family.name != "tp_cross_entropy":  # three numbers a token: left out of step times
            digit = "dp" if family.digit == "edp" else family.digit
            wanted[digit] += sent_bytes(family)

    assert {digit: float(own[digit]) for digit in wanted} == pytest.approx(wanted, rel=2e-3)


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_steps_and_cuts_agree_on_a_pipelines_hops(
    accelerator: Accelerator, case: tuple[ModelSpec, Layout]
) -> None:
    model, layout = case
    assume(layout.pp > 1)

    own = wired(model, layout, accelerator).communication_s["pp"]

    hops = [f for f in step_families(model, layout) if f.name in ("pp_forward", "pp_backward")]
    assert float(own) == pytest.approx(sum(sent_bytes(family) for family in hops))


def test_ulysses_copies_keys_and_values_to_whole_heads(accelerator: Accelerator) -> None:
    """16 query heads and 4 of keys on tp 4 x cp 4: a rank has 1 kv head, Ulysses sends 4 of each.

    1024 tokens x (4 + 4) heads x 256 elements x 2 bytes, of which 3/4 leave; 4 layers, 2 passes:
    4,194,304 x 3/4 x 8 = 25,165,824 bytes.
    """
    layout = Layout(tp=4, cp=4, cp_kind="ulysses", seq=4096, recompute="none")

    own = wired(spec("dense"), layout, accelerator).communication_s["cp"]

    assert float(own) == pytest.approx(25_165_824.0)
