"""A torchtitan TOML file to an ``ImportedRun``.

torchtitan shards everything over the ranks of ``data_parallel_shard_degree`` x context (FSDP), sums
gradients over ``data_parallel_replicate_degree`` such groups, numbers ranks tensor, context, shard,
replica, pipeline from the inside out, and never states how many GPUs there are: a shard degree of
-1 is *the rest*. The number in a comment (``preset for 128 H100 GPUs``) is taken and said so.

Source of names and defaults: torchtitan/config/job_config.py and
torchtitan/distributed/parallel_dims.py at version 0.2.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from types import MappingProxyType

from planner.errors import SpecError
from planner.model import ModelSpec
from topologies.imported_run import Field, ImportedRun
from topologies.model_yaml import read_catalogue_model

MOST_CHARACTERS = 2**18
MOST_PARTS = 32
_DOTTED = re.compile(r"[\w\"'-]+(?:[ \t]*\.[ \t]*[\w\"'-]+)*")

FLAVORS = {
    ("llama3", "8b"): "llama-3.1-8b", ("llama3", "70b"): "llama-3.1-70b",
    ("llama3", "405b"): "llama-3.1-405b", ("deepseek_v3", "671b"): "deepseek-v3",
    ("qwen3", "32b"): "qwen3-32b", ("qwen3", "30b-a3b"): "qwen3-30b-a3b",
    ("qwen3", "235b-a22b"): "qwen3-235b-a22b", ("llama4", "17bx128e"): "llama-4-maverick",
    ("gpt_oss", "120b"): "gpt-oss-120b",
}  # fmt: skip
_SCHEDULES = {
    "1f1b": "1f1b", "interleaved1f1b": "1f1b", "gpipe": "gpipe", "loopedbfs": "gpipe",
    "zbvzerobubble": "zb-h1", "interleavedzerobubble": "zb-h1", "dualpipev": "dualpipe",
}  # fmt: skip
_TWO_STAGES = frozenset({"interleaved1f1b", "loopedbfs", "interleavedzerobubble",
                         "zbvzerobubble", "dualpipev"})  # fmt: skip
_PARALLELISM = frozenset({
    "data_parallel_shard_degree", "data_parallel_replicate_degree", "tensor_parallel_degree",
    "pipeline_parallel_degree", "context_parallel_degree",
})  # fmt: skip


def looks_like_torchtitan(values: Mapping[str, object]) -> bool:
    """Return whether parsed TOML is a torchtitan file."""
    parallelism = values.get("parallelism")
    return isinstance(parallelism, dict) and bool(_PARALLELISM & {*parallelism})


def import_torchtitan(text: str, *, name: str) -> ImportedRun:
    """Return the run that a torchtitan file describes.

    Args:
        text: the file's content.
        name: what faults call the file.

    Raises:
        SpecError: text that is no TOML, or every value that cannot be, with its line.
    """
    values = _renewed(parse_toml(text, name=name))
    if not looks_like_torchtitan(values):
        raise SpecError(
            f"{name}: no torchtitan file: expected a table [parallelism] with keys such as "
            f"tensor_parallel_degree"
        )
    reader = _Toml(values, text, name)
    fields, gpus = _layout(reader, _gpus_in_comment(reader, text))
    model = _model(reader)
    if model is not None and not model.experts:
        fields["ep"] = fields["etp"] = 1
    if reader.faults:
        raise SpecError(*reader.faults)
    return ImportedRun(
        model=model, layout=MappingProxyType(fields), gpus=gpus,
        assumed=MappingProxyType(dict(sorted(reader.assumed.items()))),
        provenance=f"torchtitan {name}",
        unread_model=reader.assumed["model"] if model is None and "model" in values else "",
    )  # fmt: skip


def _renewed(values: dict[str, object]) -> dict[str, object]:
    """Return *values* with the degrees of files before 2025 in the table they stand in now."""
    old = {
        "data_parallel_shard_degree" if key == "data_parallel_degree" else key: value
        for table in ("training", "experimental")
        for key, value in _table(values, table).items()
        if key in _PARALLELISM | {"data_parallel_degree"}
    }
    if "parallelism" in values or not old:
        return values
    return {**values, "parallelism": old}


def _table(values: Mapping[str, object], name: str) -> Mapping[str, object]:
    table = values.get(name)
    return table if isinstance(table, dict) else {}


def parse_toml(text: str, *, name: str) -> dict[str, object]:
    """Return the tables of TOML *text*; whatever is wrong with it is a ``SpecError``."""
    if len(text) > MOST_CHARACTERS:
        raise SpecError(f"{name}: {len(text):,} characters, at most {MOST_CHARACTERS:,}")
    for dotted in _DOTTED.finditer(text):
        if dotted.group().count(".") > MOST_PARTS:
            raise SpecError(f"{name}: a name of more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise SpecError(f"{name}: nested too deeply") from None
    except (ValueError, TypeError, OverflowError) as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        where = f"{name}:{place.group(1)}:{place.group(2)}" if place else name
        raise SpecError(f"{where}: no valid TOML: {str(error)[:200]}") from None


class _Toml:
    def __init__(self, values: Mapping[str, object], text: str, name: str) -> None:
        self.values, self.text, self.name = values, text, name
        self.faults: list[str] = []
        self.assumed: dict[str, str] = {}

    def value(self, table: str, key: str) -> object:
        inner = self.values.get(table)
        return inner.get(key) if isinstance(inner, dict) else None

    def fault(self, table: str, key: str, message: str) -> None:
        found = re.search(rf"^\s*{re.escape(key)}\s*=", self.text, re.MULTILINE)
        line = self.text.count("\n", 0, found.start()) + 1 if found else 1
        self.faults.append(f"{self.name}:{line}: {table}.{key}: {message}")

    def count(self, table: str, key: str, default: int, minimum: int = 1) -> int:
        value = self.value(table, key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= 10**9:
            self.fault(table, key, f"expected a whole number from {minimum}, got {value!r:.40}")
            return default
        return value

    def word(self, table: str, key: str, default: str) -> str:
        value = self.value(table, key)
        if value is None:
            return default
        if not isinstance(value, str):
            self.fault(table, key, f"expected a text, got {value!r:.40}")
            return default
        return value


def _layout(reader: _Toml, commented: int | None) -> tuple[dict[str, Field], int | None]:
    part = "parallelism"
    tp, cp = (reader.count(part, f"{kind}_parallel_degree", 1) for kind in ("tensor", "context"))
    pp = reader.count(part, "pipeline_parallel_degree", 1)
    shard = reader.count(part, "data_parallel_shard_degree", -1, minimum=-1)
    replicas = reader.count(part, "data_parallel_replicate_degree", 1)
    if not shard:
        reader.fault(part, "data_parallel_shard_degree", "expected -1 (the rest) or at least 1")
    gpus = replicas * shard * tp * cp * pp if shard > 0 else commented
    fields: dict[str, Field] = {
        "tp": tp, "cp": cp, "pp": pp,
        "ep": reader.count(part, "expert_parallel_degree", 1),
        "etp": reader.count(part, "expert_tensor_parallel_degree", 1),
        "zero_stage": _zero_stage(reader, pp, shard * cp), "sequence_parallel": tp > 1,
        "order": "tp-cp-ep-dp-pp", "recompute": _recompute(reader),
        "precision": _precision(reader), "overlap_gradients": True, "overlap_parameters": True,
        "seq": reader.count("training", "seq_len", 2048),
    }  # fmt: skip
    if shard > 0:
        fields["dp"] = replicas * shard
    if replicas > 1 and fields["zero_stage"]:
        fields |= {"dp_shard": shard} if shard > 0 else {"dp_replicate": replicas}
    local = reader.count("training", "local_batch_size", 8)
    fields |= _pipeline(reader, pp, local)
    batch = reader.count("training", "global_batch_size", -1, minimum=-1)
    dp = int(fields.get("dp", 0)) or (gpus // (tp * cp * pp) if gpus else 0)
    if batch > 0:
        fields["global_batch"] = batch
    elif dp:
        fields["global_batch"] = dp * local
        reader.assumed["global_batch"] = (
            f"not stated: local_batch_size x data-parallel ranks = {local} x {dp}"
        )
    return fields, gpus


def _pipeline(reader: _Toml, pp: int, local: int) -> dict[str, Field]:
    """Return micro-batch, schedule and virtual stages; without a pipeline, the local batch."""
    if pp == 1:
        return {"micro_batch": local, "vpp": 1}
    micro = reader.count("parallelism", "pipeline_parallel_microbatch_size", 1)
    given = reader.word("parallelism", "pipeline_parallel_schedule", "1F1B")
    ours = _SCHEDULES.get(given.lower())
    if ours is None:
        reader.fault(
            "parallelism", "pipeline_parallel_schedule",
            f"{given[:40]!r} is not modelled: one of {', '.join(sorted(_SCHEDULES))}",
        )  # fmt: skip
    elif ours != given.lower():
        reader.assumed["schedule"] = f"{given} is taken as {ours}"
    vpp = 1
    if given.lower() in _TWO_STAGES:
        vpp = 2
        reader.assumed["vpp"] = "2 stages a rank, torchtitan's default for this schedule"
    return {"micro_batch": micro, "vpp": vpp, "schedule": ours or "1f1b"}


def _zero_stage(reader: _Toml, pp: int, shards: int) -> int:
    if shards == 1:
        return 0
    policy = reader.word("parallelism", "fsdp_reshard_after_forward", "default")
    if policy not in {"default", "never", "always"}:
        reader.fault("parallelism", "fsdp_reshard_after_forward", "default, never or always")
    kept = policy == "never" or (policy == "default" and pp > 1)
    return 2 if kept else 3


def _recompute(reader: _Toml) -> str:
    mode = reader.word("activation_checkpoint", "mode", "selective")
    if mode in {"none", "selective", "full"}:
        return mode
    if mode == "memory_budget":
        reader.assumed["recompute"] = "memory_budget is taken as selective"
    else:
        reader.fault("activation_checkpoint", "mode", f"none, selective or full, got {mode[:40]!r}")
    return "selective"


def _precision(reader: _Toml) -> str:
    converters = reader.value("model", "converters")
    listed = converters if isinstance(converters, list) else []
    if any(isinstance(entry, str) and "float8" in entry for entry in listed):
        return "fp8"
    dtype = reader.word("training", "mixed_precision_param", "bfloat16")
    if dtype == "float16":
        return "fp16"
    if dtype != "bfloat16":
        reader.assumed["precision"] = f"{dtype[:40]} is not modelled: bf16"
    return "bf16"


def _model(reader: _Toml) -> ModelSpec | None:
    name = reader.word("model", "name", "").lower()
    flavor = reader.word("model", "flavor", "").lower()
    known = FLAVORS.get((name, flavor))
    if known is None:
        named = f"{name[:40]} {flavor[:40]}".strip()
        what = f"{named} is not in the catalogue" if named else "neither name nor flavor is stated"
        reader.assumed["model"] = f"not read: {what}"
        return None
    reader.assumed["model"] = f"{name} {flavor} is {known} of the catalogue"
    return read_catalogue_model(known).model


def _gpus_in_comment(reader: _Toml, text: str) -> int | None:
    found = re.search(r"^#[^\n]{0,200}?\b([0-9]{1,7}) (?:[A-Za-z0-9]+ )?GPUs", text, re.MULTILINE)
    if found is None:
        return None
    reader.assumed["gpus"] = f"{found.group(1)}, from the comment {found.group()[:80]!a}"
    return int(found.group(1))
