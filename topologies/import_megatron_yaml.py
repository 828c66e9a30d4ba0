"""YAML of Megatron's arguments to an ``ImportedRun``, in three dialects.

* a functional test's file: arguments under ``MODEL_ARGS``, written ``--name: value``;
* Primus: ``modules``, each with ``overrides`` and a ``model`` file, which ``extends`` others;
* plain arguments: ``num_layers: 61``.

A file named by ``extends`` is read only from the folder of the file that names it. Where it is not
there, the model is taken from our catalogue if the file names one that we have.
"""

from __future__ import annotations

from pathlib import Path

from planner.documents import Document, Node, document_from_text
from planner.errors import SpecError
from planner.model import ModelSpec
from topologies.import_megatron import FLAGS, SHAPE, resolved, run_from_arguments
from topologies.imported_run import ImportedRun
from topologies.megatron_args import Argument, MegatronArguments, normal_name
from topologies.model_yaml import catalogue_like, read_catalogue_model
from topologies.pattern_text import MOST_ENTRIES
from topologies.small_files import read_small_bytes

MOST_FILES = 8


def looks_like_megatron_yaml(root: Node) -> bool:
    """Return whether *root* is one of the three dialects."""
    if root.kind != "map":
        return False
    arguments = root.optional("MODEL_ARGS")
    if arguments is not None and arguments.kind == "map":
        return True
    modules = root.optional("modules")
    if modules is not None and modules.kind == "map":
        return any(_has_map(module, "overrides") for _, module in modules.items())
    named = {normal_name(key) for key, _ in root.items()}
    return len(FLAGS & named) > 1


def import_megatron_yaml(document: Document, *, folder: Path | None) -> ImportedRun:
    """Return the run that a YAML of Megatron's arguments describes.

    Args:
        document: the parsed YAML.
        folder: where files named by ``extends`` may be, none to read no other file.

    Raises:
        SpecError: every argument that cannot be read, with file and line.
    """
    gathering = _Gathering(folder)
    root = document.root
    modules = root.optional("modules")
    arguments = root.optional("MODEL_ARGS")
    if arguments is not None and arguments.kind == "map":
        found = gathering.flat(arguments)
    elif modules is not None and modules.kind == "map":
        found = gathering.primus(modules)
    else:
        found = gathering.extended(root, 0)
    document.finish()
    args = MegatronArguments(found, document.name)
    args.assumed.update(gathering.assumed)
    model = None
    if gathering.missing:
        model = _catalogue_model(args, gathering)
        if model is None:
            args.arguments = {name: given for name, given in found.items() if name != "num_layers"}
    run = run_from_arguments(args, gpus=None, kind="Megatron YAML", model=model)
    if gathering.missing and model is None:
        return _without_model(run, gathering)
    return run


def _without_model(run: ImportedRun, gathering: _Gathering) -> ImportedRun:
    unknown = f"not read: what {', '.join(gathering.missing[:3])} says is unknown"
    reason = gathering.assumed.get("model", unknown)
    return ImportedRun(
        model=None, layout=run.layout, gpus=run.gpus, assumed={**run.assumed, "model": reason},
        provenance=run.provenance, unread_model=reason,
    )  # fmt: skip


def _catalogue_model(args: MegatronArguments, gathering: _Gathering) -> ModelSpec | None:
    for label in gathering.labels:
        known = catalogue_like(label)
        if known is None:
            continue
        changed = sorted(SHAPE & gathering.overridden)
        if changed:
            gathering.assumed["model"] = (
                f"not read: overrides of {', '.join(changed)} change {known}"
            )
            return None
        args.assumed["model"] = f"{label[:60]} is {known} of the catalogue"
        return read_catalogue_model(known).model
    return None


class _Gathering:
    """Arguments gathered over files, and what was not there."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.assumed: dict[str, str] = {}
        self.missing: list[str] = []
        self.labels: list[str] = []
        self.overridden: set[str] = set()
        self.files = 0

    def flat(self, node: Node) -> dict[str, Argument]:
        """Return the arguments of one mapping."""
        found: dict[str, Argument] = {}
        for key, value in node.items():
            if value.kind == "map":
                continue
            found[normal_name(key)] = Argument(resolved(text_of(value)), str(value.where))
        return found

    def primus(self, modules: Node) -> dict[str, Argument]:
        """Return the arguments of the first module with overrides."""
        module = next(inner for _, inner in modules.items() if _has_map(inner, "overrides"))
        found: dict[str, Argument] = {}
        model = module.optional("model")
        if model is not None and model.kind == "text":
            found |= self.file(resolved(model.as_text()), 0)
        defaults = module.optional("config")
        if defaults is not None and defaults.kind == "text":
            self.assumed["config"] = (
                f"defaults of {defaults.as_text()[:60]!a} are taken to be Megatron's own"
            )
        overrides = self.flat(module.map("overrides"))
        self.overridden |= {*overrides}
        return found | overrides

    def extended(self, root: Node, depth: int) -> dict[str, Argument]:
        """Return the arguments of a file and of those it extends."""
        found: dict[str, Argument] = {}
        for key in ("extends", "bases"):
            given = root.optional(key)
            if given is None or given.kind == "null":
                continue
            names = root.list(key) if given.kind == "list" else (given,)
            for name in names:
                found |= self.file(resolved(name.as_text()), depth + 1)
        own = self.flat(root)
        label = own.get("tokenizer_model")
        if label is not None:
            self.labels.append(label.text)
        return found | own

    def file(self, name: str, depth: int) -> dict[str, Argument]:
        """Return the arguments of the file *name* beside the first one, if it is there."""
        self.labels.append(name)
        self.files += 1
        if depth > MOST_FILES or self.files > MOST_FILES:
            raise SpecError(f"{name[:60]!a}: more than {MOST_FILES} files extend each other")
        plain = Path(name).name == name and "\0" not in name and len(name) < 200
        path = self.folder / name if self.folder is not None and plain else None
        if path is None or path.is_symlink() or not path.is_file():
            self.missing.append(f"{name[:60]!a}")
            self.assumed["extends"] = f"not beside this file: {', '.join(self.missing[:5])}"
            return {}
        document = document_from_text(read_small_bytes(path), name=str(path))
        if document.root.kind != "map":
            document.root.fault("expected a mapping of arguments")
        document.finish()
        return self.extended(document.root, depth)


def text_of(node: Node) -> str:
    """Return a scalar as a command line has it, words with blanks between, numbers as a list."""
    value = node.plain()
    if isinstance(value, list) and value and all(type(item) is int for item in value):
        return f"[{','.join(map(str, value[:MOST_ENTRIES]))}]"
    if isinstance(value, list):
        return " ".join(str(item) for item in value[:1000] if not isinstance(item, dict | list))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _has_map(node: Node, key: str) -> bool:
    inner: Node | None = node.optional(key) if node.kind == "map" else None
    return inner is not None and inner.kind == "map"
