"""A Megatron launch file to an ``ImportedRun``: a shell script, or YAML of arguments.

The script is read, never run: see ``shell_text``. Of YAML there are three dialects: a test's
``MODEL_ARGS``, Primus' ``modules`` with ``overrides`` and ``extends``, and plain arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType

from planner.errors import SpecError
from planner.model import ModelSpec
from topologies.imported_run import ImportedRun
from topologies.megatron_args import Argument, MegatronArguments, normal_name
from topologies.megatron_layout import megatron_layout
from topologies.megatron_model import NOT_MODELLED, megatron_model
from topologies.shell_text import UNKNOWN, Script, read_script
from topologies.shell_words import Word, split_commands

FLAGS = frozenset({
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "num_layers", "hidden_size",
    "num_attention_heads", "micro_batch_size", "global_batch_size", "seq_length",
    "expert_model_parallel_size", "context_parallel_size", "num_experts",
})  # fmt: skip
NODES = ("nnodes", "num_nodes", "nodes", "SLURM_NNODES", "SLURM_JOB_NUM_NODES", "NNODES",
         "NUM_NODES", "NODES")  # fmt: skip
PER_NODE = ("nproc_per_node", "nproc-per-node", "gpus_per_node", "GPUS_PER_NODE",
            "NPROC_PER_NODE", "ntasks_per_node", "GPUS_PER_HOST", "gres",
            "num_gpus")  # fmt: skip
_OPTION = re.compile(r"--([A-Za-z][A-Za-z0-9_.-]*)(?:=(.*))?$", re.DOTALL)
_INSIDE = re.compile(r"\s--[a-z]")
_SBATCH = re.compile(
    r"^#SBATCH[ \t]+(?:--([a-z-]{1,40})[= ]+|-(N|n)[ \t]*)"
    r"(?:gpu:(?:[\w.-]{1,40}:)?|[a-z][\w.]{1,40}:)?([0-9]{1,9})(?:[ \t].*)?$",
    re.MULTILINE,
)
"""A count that a job's header asks for; of GPUs also with what they are, ``gpu:h100:8``."""
SHAPE = frozenset({
    "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups",
    "kv_channels", "num_experts", "moe_ffn_hidden_size", "moe_router_topk", "moe_layer_freq",
    "multi_latent_attention", "mtp_num_layers", "moe_shared_expert_intermediate_size",
})  # fmt: skip
"""Arguments of a model's shape: any one of them describes it in part."""
_STARTERS = {
    "mpirun": ("-np", "-n", "--np"), "mpiexec": ("-np", "-n", "--np"), "srun": ("-n", "--ntasks"),
}  # fmt: skip
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
        words = _argument_words(script)
    except SpecError as error:
        raise SpecError(*(f"{name}: {fault}" for fault in error.faults)) from None
    arguments = arguments_from_words(words, name)
    if not FLAGS & {*arguments}:
        hidden = "; a here-document is not read" if "<<" in text else ""
        raise SpecError(
            f"{name}: no Megatron arguments found, such as --tensor-model-parallel-size 8{hidden}"
        )
    gpus = _gpus(script, arguments, text)
    args = MegatronArguments(arguments, name)
    for before, word in pairwise(words):
        if word.raw == UNKNOWN and not before.raw.startswith("--"):
            args.note_unknown(f"{name}:{word.line}")
    if "arguments" in args.assumed:
        args.faults += [f"{name}:{fault}" for fault in _chosen_by_the_shell(script)]
    return run_from_arguments(args, gpus=gpus, kind="Megatron script")


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
    in_part = described is None and any(args.has(name) for name in (*SHAPE, *NOT_MODELLED))
    return ImportedRun(
        model=described, layout=MappingProxyType(fields), gpus=gpus,
        assumed=MappingProxyType(dict(sorted(args.assumed.items()))),
        provenance=f"{kind} {args.name}",
        unread_model=args.assumed.get("model", "") if in_part else "",
    )  # fmt: skip


def arguments_from_words(words: Iterable[Word], name: str) -> dict[str, Argument]:
    """Return arguments by name from ``--name value …`` and ``--name=value`` words.

    A word that only the shell knows is a value where none is there yet, and else left out.
    """
    found: dict[str, Argument] = {}
    current, place, values, apart = "", "", list[str](), True

    def keep() -> None:
        if current:
            found[current] = Argument(" ".join(values), place, bare=not values, apart=apart)

    for word in words:
        match = _OPTION.match(word.raw)
        if match is None:
            if word.raw != UNKNOWN or not values:
                values.append(word.raw)
            continue
        keep()
        current, place = normal_name(match.group(1)), f"{name}:{word.line}"
        apart = match.group(2) is None
        values = [] if apart else [match.group(2)]
    keep()
    return found


def _chosen_by_the_shell(script: Script) -> list[str]:
    """Return a fault for each variable that holds other arguments in each of several branches."""
    faults = []
    for name, values in script.choices.items():
        found = [
            (value.line, option)
            for value in values
            for option in re.findall(r"--[a-z][a-z-]*", value.raw)
            if normal_name(option) in FLAGS
        ]
        if len({line for line, _ in found}) > 1:
            line, option = found[0]
            faults.append(
                f"{line}: {name} holds {option} in one of {len(values)} branches, and only the "
                "shell knows which one runs: keep that one alone"
            )
    return faults


def _launched(script: Script) -> int | None:
    """Return the processes that ``mpirun`` or ``srun`` starts, one for each GPU, where it says."""
    for command in script.commands:
        raws = [word.raw for word in command]
        starter = raws[0].rpartition("/")[2] if raws else ""
        if starter not in _STARTERS or any("torchrun" in r or "torch.dist" in r for r in raws):
            continue
        for option, value in pairwise(raws):
            if option in _STARTERS[starter] and re.fullmatch(r"[1-9][0-9]{0,8}", value):
                return int(value)
    return None


def _argument_words(script: Script) -> list[Word]:
    """Return the words of the command with the most Megatron arguments, else of all variables.

    Raises:
        SpecError: these arguments are a command of their own, behind one that lost them.
    """
    commands = [_unpacked(command) for command in script.commands]
    best = max(commands, key=_known, default=[])
    if _known(best):
        lost = [one for one in commands if one is not best and _known(one)]
        if lost and best[0].raw.startswith("--"):
            raise SpecError(
                f"line {best[0].line}: {best[0].raw[:60]!a} begins a command of its own: the one "
                f"of line {lost[0][0].line} ends before it, at a comment or without a backslash"
            )
        return best
    loose = [word for words in script.arrays.values() for word in words]
    for text in script.variables.values():
        loose += [Word(piece, 1) for piece in text.split()] if "--" in text else []
    return loose


def _known(words: Iterable[Word]) -> int:
    """Return how many of *words* are Megatron's arguments that every run has."""
    return sum(normal_name(word.raw.partition("=")[0]) in FLAGS for word in words)


def _unpacked(words: Iterable[Word]) -> list[Word]:
    """Return *words* with those that hold a command of their own (``bash -c "…"``) split."""
    unpacked: list[Word] = []
    for word in words:
        if _INSIDE.search(word.raw) is None:
            unpacked.append(word)
            continue
        unpacked += max(split_commands(word.raw, word.line), key=_known, default=[])
    return unpacked


def _gpus(script: Script, arguments: Mapping[str, Argument], text: str) -> int | None:
    directives = {
        normal_name(found[1] or {"N": "nodes", "n": "ntasks"}[found[2]]): found[3]
        for found in _SBATCH.finditer(text)
    }

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
    return number(_WORLD) or _launched(script)


def resolved(text: str) -> str:
    """Return *text* with ``${NAME:default}`` and ``${NAME:-default}`` replaced by the default.

    >>> resolved("${PRIMUS_TP:1}"), resolved("${DATA_PATH}/x") == UNKNOWN + "/x"
    ('1', True)
    """
    with_default = re.sub(r"\$\{[A-Za-z_][A-Za-z0-9_]*:-?([^${}]*)\}", r"\1", text)
    return re.sub(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Za-z_][A-Za-z0-9_]*", UNKNOWN, with_default)
