"""A Megatron launch file to an ``ImportedRun``: a shell script, or YAML of arguments.

The script is read, never run: see ``shell_text``. Of YAML there are three dialects: a test's
``MODEL_ARGS``, Primus' ``modules`` with ``overrides`` and ``extends``, and plain arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from planner.errors import SpecError
from planner.model import ModelSpec
from topologies.imported_run import ImportedRun
from topologies.megatron_args import Argument, MegatronArguments, normal_name
from topologies.megatron_layout import megatron_layout
from topologies.megatron_model import megatron_model
from topologies.shell_text import UNKNOWN, Script, read_script
from topologies.shell_words import Word

FLAGS = frozenset({
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "num_layers", "hidden_size",
    "num_attention_heads", "micro_batch_size", "global_batch_size", "seq_length",
    "expert_model_parallel_size", "context_parallel_size", "num_experts",
})  # fmt: skip
NODES = ("nnodes", "num_nodes", "nodes", "SLURM_NNODES", "SLURM_JOB_NUM_NODES", "NNODES",
         "NUM_NODES", "NODES")  # fmt: skip
PER_NODE = ("nproc_per_node", "nproc-per-node", "gpus_per_node", "GPUS_PER_NODE",
            "NPROC_PER_NODE", "ntasks_per_node", "GPUS_PER_HOST")  # fmt: skip
_SBATCH = re.compile(r"^#SBATCH\s+--([a-z-]{1,40})[= ]+([0-9]{1,9})\s*$", re.MULTILINE)
_WORLD = ("WORLD_SIZE", "NUM_GPUS", "N_GPUS")


def import_megatron_script(
    text: str, *, name: str, preset: Mapping[str, str] | None = None
) -> ImportedRun:
    """Return the run that a shell script (or a bare list of arguments) starts.

    Args:
        text: the script.
        name: what faults call the file.
        preset: variables set from outside.

    Raises:
        SpecError: every argument that cannot be read, with file and line.
    """
    try:
        script = read_script(text, preset=preset)
    except SpecError as error:
        raise SpecError(*(f"{name}: {fault}" for fault in error.faults)) from None
    words = _argument_words(script)
    arguments = arguments_from_words(words, name)
    if not FLAGS & {*arguments}:
        raise SpecError(
            f"{name}: no Megatron arguments found, such as --tensor-model-parallel-size 8"
        )
    gpus = _gpus(script, arguments, text)
    return run_from_arguments(MegatronArguments(arguments, name), gpus=gpus, kind="Megatron script")


def run_from_arguments(
    args: MegatronArguments, *, gpus: int | None, kind: str, model: ModelSpec | None = None
) -> ImportedRun:
    """Return the run that *args* describe.

    Args:
        args: arguments by name.
        gpus: GPUs of the run, none where unknown [1].
        kind: the kind of file, for the provenance.
        model: the model where it is known from elsewhere.
    """
    tp = args.count("tensor_model_parallel_size", 1, minimum=1)
    described = model or megatron_model(args, tp=tp)
    layers = described.layers if described else args.count("num_layers")
    experts = described.experts if described else args.count("num_experts")
    fields = megatron_layout(args, layers=layers, experts=experts)
    args.finish()
    return ImportedRun(
        model=described, layout=MappingProxyType(fields), gpus=gpus,
        assumed=MappingProxyType(dict(sorted(args.assumed.items()))),
        provenance=f"{kind} {args.name}",
    )  # fmt: skip


def arguments_from_words(words: Iterable[Word], name: str) -> dict[str, Argument]:
    """Return arguments by name from ``--name value …`` and ``--name=value`` words."""
    found: dict[str, Argument] = {}
    current, place, values = "", "", list[str]()

    def keep() -> None:
        if current:
            found[current] = Argument(" ".join(values), place, bare=not values)

    for word in words:
        match = re.match(r"--([A-Za-z][A-Za-z0-9_.-]*)(?:=(.*))?$", word.raw, re.DOTALL)
        if match is None:
            values.append(word.raw)
            continue
        keep()
        current, place = normal_name(match.group(1)), f"{name}:{word.line}"
        values = [match.group(2)] if match.group(2) is not None else []
    keep()
    return found


def _argument_words(script: Script) -> list[Word]:
    """Return the words of the command with the most Megatron arguments, else of all variables."""

    def known(words: Iterable[Word]) -> int:
        return sum(normal_name(word.raw.split("=")[0]) in FLAGS for word in words)

    best = max(script.commands, key=known, default=())
    if known(best):
        return list(best)
    loose = [word for words in script.arrays.values() for word in words]
    for text in script.variables.values():
        loose += [Word(piece, 1) for piece in text.split()] if "--" in text else []
    return loose


def _gpus(script: Script, arguments: Mapping[str, Argument], text: str) -> int | None:
    directives = {normal_name(match.group(1)): match.group(2) for match in _SBATCH.finditer(text)}

    def number(names: tuple[str, ...]) -> int | None:
        for key in names:
            given = arguments.get(key.replace("-", "_"))
            first = given.text.partition(" ")[0] if given else None
            for value in (first, directives.get(key), script.variables.get(key)):
                if value is not None and re.fullmatch(r"[0-9]{1,9}", value) and int(value):
                    return int(value)
        return None

    nodes, each = number(NODES), number(PER_NODE)
    if nodes and each:
        return nodes * each
    return number(_WORLD)


def resolved(text: str) -> str:
    """Return *text* with ``${NAME:default}`` and ``${NAME:-default}`` replaced by the default.

    >>> resolved("${PRIMUS_TP:1}"), resolved("${DATA_PATH}/x") == UNKNOWN + "/x"
    ('1', True)
    """
    with_default = re.sub(r"\$\{[A-Za-z_][A-Za-z0-9_]*:-?([^${}]*)\}", r"\1", text)
    return re.sub(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Za-z_][A-Za-z0-9_]*", UNKNOWN, with_default)
