"""Megatron's arguments to the layout they ask for, with Megatron's own defaults.

Source of names and defaults: megatron/training/arguments.py of Megatron-LM (core 0.14).
"""

from __future__ import annotations

import re

from planner.errors import SpecError
from topologies.imported_run import Field
from topologies.megatron_args import MegatronArguments
from topologies.pattern_text import parse_pattern

_SHARDING = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
_CP_KINDS = {"p2p": "ring", "all_gather": "all_gather", "a2a": "ulysses"}
_WIDTHS = {"fp32": 4, "float32": 4, "bf16": 2, "bfloat16": 2, "fp16": 2, "float16": 2, "fp8": 1,
           "uint8": 1}  # fmt: skip


def megatron_layout(args: MegatronArguments, *, layers: int, experts: int) -> dict[str, Field]:
    """Return the fields of ``Layout`` that the arguments fix.

    Args:
        args: the arguments; faults and assumptions are recorded there.
        layers: transformer layers, 0 where unknown [1].
        experts: experts of a layer, 0 for a dense model or where unknown [1].
    """
    tp = args.count("tensor_model_parallel_size", 1, minimum=1)
    pp = args.count("pipeline_model_parallel_size", 1, minimum=1)
    ep = args.count("expert_model_parallel_size", 1, minimum=1)
    fields: dict[str, Field] = {
        "tp": tp, "pp": pp,
        "cp": args.count("context_parallel_size", 1, minimum=1),
        "ep": ep, "etp": _expert_tensor(args, tp) if experts or ep > 1 else 1,
        "vpp": _virtual_stages(args, pp, layers),
        **_sharding(args),
        "sequence_parallel": tp > 1 and args.flag("sequence_parallel"),
        "recompute": _recompute(args),
        "precision": _precision(args),
        "order": "tp-cp-ep-pp-dp" if args.flag("use_tp_pp_dp_mapping") else "tp-cp-ep-dp-pp",
        "overlap_gradients": args.flag("overlap_grad_reduce"),
        "overlap_parameters": args.flag("overlap_param_gather"),
        "gradient_bytes": 2 if args.flag("grad_reduce_in_bf16") else 4,
        "optimizer_bytes": _optimizer_bytes(args),
        "cp_kind": _cp_kind(args),
    }  # fmt: skip
    for ours, theirs in (("micro_batch", "micro_batch_size"), ("seq", "seq_length")):
        if args.has(theirs):
            fields[ours] = args.count(theirs, 1, minimum=1)
    if args.has("moe_enable_deepep") or args.text("moe_flex_dispatcher_backend"):
        fields["ep_copies"] = "domain"
    batch = _global_batch(args)
    if batch:
        fields["global_batch"] = batch
    return fields


def _expert_tensor(args: MegatronArguments, tp: int) -> int:
    if args.has("expert_tensor_parallel_size"):
        return args.count("expert_tensor_parallel_size", 1, minimum=1)
    if tp > 1:
        args.assumed["etp"] = f"not stated: tp = {tp}, Megatron's default"
    return tp


def _virtual_stages(args: MegatronArguments, pp: int, layers: int) -> int:
    if pp == 1:
        return 1
    for name in ("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"):
        if args.has(name):
            args.assumed[name] = f"{args.text(name)}: stages are taken as even"
    stages = args.text("pipeline_model_parallel_layout")
    if stages:
        return _stages_in(args, stages, pp)
    for name in ("num_virtual_stages_per_pipeline_rank", "virtual_pipeline_model_parallel_size"):
        if args.has(name):
            return args.count(name, 1, minimum=1)
    each = args.count("num_layers_per_virtual_pipeline_stage")
    if not each:
        return 1
    if not layers:
        args.fault("num_layers_per_virtual_pipeline_stage", "needs num_layers, which is not stated")
        return 1
    if layers % (pp * each):
        args.fault(
            "num_layers_per_virtual_pipeline_stage",
            f"pp x {each} = {pp * each} does not divide num_layers = {layers}",
        )
    return max(layers // (pp * each), 1)


def _stages_in(args: MegatronArguments, text: str, pp: int) -> int:
    """Return virtual stages of a layout such as ``Et*3|(tt|)*29,m|L``."""
    name = "pipeline_model_parallel_layout"
    args.assumed[name] = "stages are taken as even, whatever layers it gives each"
    if len(text) > 10_000:
        args.fault(name, "longer than 10,000 characters")
        return 1
    bars = 0
    for group, repeat in re.findall(r"\(([^()]*)\)(?:\*([0-9]{1,4}))?", text):
        bars += group.count("|") * int(repeat or 1)
    outside = re.sub(r"\([^()]*\)", "", text).count("|")
    ends_in_bar = re.search(r"\|\)?(?:\*[0-9]+)?$", text.rstrip()) is not None
    stages = bars + outside + (not ends_in_bar)
    if stages % pp:
        args.fault(name, f"{stages} stages are no multiple of pp = {pp}")
    return max(stages // pp, 1)


def _sharding(args: MegatronArguments) -> dict[str, Field]:
    """Return the ZeRO stage, and the replicas of what it shards where there are several."""
    stage, name = _zero_stage(args), "num_distributed_optimizer_instances"
    replicas = args.count(name, 1, minimum=1)
    if replicas == 1:
        return {"zero_stage": stage}
    if not stage:
        args.fault(name, f"{replicas} replicas of what nothing shards: needs a sharded optimizer")
    outer = args.text("outer_dp_sharding_strategy", "no_shard")
    if outer != "no_shard":
        args.assumed["outer_dp_sharding_strategy"] = f"{outer}: not modelled, taken as no_shard"
    return {"zero_stage": stage, "dp_replicate": replicas}


def _zero_stage(args: MegatronArguments) -> int:
    if args.flag("use_torch_fsdp2"):
        return 3
    if args.flag("use_megatron_fsdp") or args.flag("use_custom_fsdp"):
        sharding = args.text("data_parallel_sharding_strategy", "no_shard")
        if sharding not in _SHARDING:
            args.fault("data_parallel_sharding_strategy", f"expected one of {', '.join(_SHARDING)}")
        return _SHARDING.get(sharding, 0)
    return 1 if args.flag("use_distributed_optimizer") else 0


def _recompute(args: MegatronArguments) -> str:
    if args.flag("recompute_activations"):
        return "selective"
    granularity = args.text("recompute_granularity", "none").lower()
    if granularity not in {"none", "full", "selective"}:
        args.fault("recompute_granularity", "expected full or selective")
        return "none"
    if granularity == "full" and args.has("recompute_num_layers"):
        args.assumed["recompute"] = (
            f"full, though {args.text('recompute_method', 'uniform')} with recompute_num_layers = "
            f"{args.text('recompute_num_layers')} may leave layers out"
        )
    return granularity


def _precision(args: MegatronArguments) -> str:
    if args.has("fp8_format") or args.has("fp8"):
        return "fp8"
    if args.flag("fp16"):
        return "fp16"
    if not args.flag("bf16"):
        args.assumed["precision"] = "neither bf16, fp16 nor fp8 stated: bf16"
    return "bf16"


def _optimizer_bytes(args: MegatronArguments) -> int:
    """Return bytes of master weight and both moments: 12, unless the optimizer says otherwise."""
    if not args.flag("use_precision_aware_optimizer"):
        return 12
    total = 0
    for name in ("main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype"):
        dtype = args.text(name, "fp32").removeprefix("torch.")
        if dtype not in _WIDTHS:
            args.fault(name, f"expected one of {', '.join(_WIDTHS)}")
        total += _WIDTHS.get(dtype, 4)
    return total


def _cp_kind(args: MegatronArguments) -> str:
    kind = args.text("cp_comm_type", "p2p").split()[:1]
    if not kind or kind[0] not in _CP_KINDS:
        args.assumed["cp_kind"] = "a mix of exchanges is taken as ring"
        return "ring"
    return _CP_KINDS[kind[0]]


def _global_batch(args: MegatronArguments) -> int:
    if args.has("global_batch_size"):
        return args.count("global_batch_size", 1, minimum=1)
    schedule = args.text("step_batch_size_schedule")
    if not schedule:
        return 0
    last = schedule.split()[-1].rpartition(":")[2]
    try:
        batch = parse_pattern(last)
    except SpecError:
        batch = ()
    if not isinstance(batch, int) or batch < 1:
        args.fault("step_batch_size_schedule", "expected entries such as '0:384 200B:768'")
        return 0
    args.assumed["global_batch"] = f"{batch}, the last of the schedule {schedule[:60]!a}"
    return batch
