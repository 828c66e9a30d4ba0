"""An MLPerf training configuration to an ``ImportedRun``: its name, or the script of that name.

NVIDIA's files are called after nodes x GPUs per node x sequences per replica x degrees, such as
``config_DGXGB200_256x4x48xtp4pp8cp2.sh``, and export the same as variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from planner.errors import SpecError
from topologies.imported_run import Field, ImportedRun
from topologies.pattern_text import shown
from topologies.shell_text import read_script

_NAME = re.compile(
    r"(?<![0-9])([0-9]{1,6})x([0-9]{1,3})x([0-9]{1,6})x((?:(?:tp|pp|cp|ep|vp|etp)[0-9]{1,5})+)"
)
_EXPORT = re.compile(r"^[ \t]*export[ \t]+(?:TENSOR_MODEL_PARALLEL|DGXNNODES)=", re.MULTILINE)
_VARIABLES = {
    "TENSOR_MODEL_PARALLEL": "tp", "PIPELINE_MODEL_PARALLEL": "pp", "CONTEXT_PARALLEL": "cp",
    "EXPERT_MODEL_PARALLEL": "ep", "EXPERT_TENSOR_PARALLEL": "etp", "INTERLEAVED_PIPELINE": "vpp",
    "MICRO_BATCH_SIZE": "micro_batch", "MAX_SEQLEN": "seq", "ENCODER_SEQ_LENGTH": "seq",
}  # fmt: skip
_LETTERS = {"tp": "tp", "pp": "pp", "cp": "cp", "ep": "ep", "etp": "etp", "vp": "vpp"}


def looks_like_mlperf(text: str) -> bool:
    """Return whether a script exports MLPerf's variables."""
    return _EXPORT.search(text) is not None


def import_mlperf_name(name: str) -> ImportedRun:
    """Return the run that a configuration's name encodes.

    Raises:
        SpecError: a name that encodes none.

    >>> run = import_mlperf_name("256x4x48xtp4pp8cp2")
    >>> run.gpus, run.layout["tp"], run.layout["dp"], run.layout["global_batch"]
    (1024, 4, 16, 768)
    """
    match = _NAME.search(name[:300])
    if match is None:
        raise SpecError(f"{shown(name)}: expected a name such as 256x4x48xtp4pp8cp2")
    nodes, each, sequences = (int(match.group(index)) for index in (1, 2, 3))
    fields: dict[str, Field] = {}
    for letters, degree in re.findall(r"(etp|tp|pp|cp|ep|vp)([0-9]+)", match.group(4)):
        fields[_LETTERS[letters]] = int(degree)
    return _finished(fields, nodes * each, sequences, f"MLPerf name {match.group()}", {})


def import_mlperf_script(text: str, *, name: str) -> ImportedRun:
    """Return the run whose variables a script exports; its name fills in what is missing.

    Args:
        text: the script.
        name: the file's name.
    """
    try:
        variables = read_script(text).variables
    except SpecError as error:
        raise SpecError(*(f"{name}: {fault}" for fault in error.faults)) from None
    named = _NAME.search(name)
    fields: dict[str, Field] = dict(import_mlperf_name(name).layout) if named else {}
    for derived in ("dp", "global_batch"):
        fields.pop(derived, None)
    faults: list[str] = []
    assumed: dict[str, str] = {}

    def number(variable: str) -> int | None:
        value = variables.get(variable, "").strip()
        if value.lower() in {"", "null", "none"}:
            return None
        if not re.fullmatch(r"[0-9]{1,9}", value):
            faults.append(f"{name}: {variable}: expected a whole number, got {shown(value)}")
            return None
        return int(value)

    for variable, field in _VARIABLES.items():
        value = number(variable)
        if value:
            fields[field] = value
    nodes, each, sequences = number("DGXNNODES"), number("DGXNGPU"), number("MINIBS")
    if named:
        nodes, each, sequences = (
            given or int(named.group(index))
            for index, given in ((1, nodes), (2, each), (3, sequences))
        )
    fields |= _switches(variables, assumed)
    if faults:
        raise SpecError(*faults)
    gpus = nodes * each if nodes and each else None
    return _finished(fields, gpus, sequences, f"MLPerf script {name}", assumed)


def _switches(variables: Mapping[str, str], assumed: dict[str, str]) -> dict[str, Field]:
    def on(variable: str) -> bool:
        return variables.get(variable, "").lower() in {"true", "1"}

    for uneven in ("ASYM_PP_EMBED", "ASYM_PP_LOSS"):
        if on(uneven):
            assumed[uneven] = "stages are taken as even"
    fields: dict[str, Field] = {}
    if on("TP_PP_DP_MAPPING"):
        fields["order"] = "tp-cp-ep-pp-dp"
    if variables.get("SEQ_PARALLEL"):
        fields["sequence_parallel"] = on("SEQ_PARALLEL")
    if on("FP8"):
        fields["precision"] = "fp8"
    return fields


def _finished(
    fields: dict[str, Field], gpus: int | None, sequences: int | None, provenance: str,
    assumed: dict[str, str],
) -> ImportedRun:  # fmt: skip
    """Return the run, its global batch being *sequences* a replica x replicas."""
    width = 1
    for name in ("tp", "cp", "pp"):
        width *= max(int(fields.get(name, 1)), 1)
    if gpus is not None and gpus % width:
        raise SpecError(f"{provenance}: tp x cp x pp = {width} does not divide {gpus} GPUs")
    if gpus:
        fields["dp"] = gpus // width
        if sequences:
            fields["global_batch"] = int(fields["dp"]) * sequences
    assumed["model"] = "not read: an MLPerf configuration does not describe it"
    return ImportedRun(
        model=None, layout=MappingProxyType(fields), gpus=gpus,
        assumed=MappingProxyType(dict(sorted(assumed.items()))), provenance=provenance,
    )  # fmt: skip
