"""A model by catalogue name or file, whatever kind of file it is.

What kind shows in its content, never in its name: a Hugging Face config.json, our own YAML, or a
training launch file that describes its model (Megatron's arguments, torchtitan, GPT-NeoX, NeMo).
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from planner.documents import Document
from planner.errors import SpecError
from planner.model import ModelSpec
from planner.near_names import near_names
from topologies.file_kinds import handed_as
from topologies.import_hf_config import import_hf_config, looks_like_hf_config
from topologies.launch_reader import LaunchFile, open_launch_file, run_from
from topologies.model_yaml import (
    import_own_model,
    looks_like_own_model,
    model_names,
    read_catalogue_model,
)

__all__ = ["model_from_document", "model_names", "read_catalogue_model", "read_model"]


def read_model(path_or_name: str | Path) -> ModelSpec:
    """Return the model of that catalogue name, or in that file.

    Raises:
        SpecError: no such model or file, or every fault in the file with its line.
    """
    text = str(path_or_name)
    if text.lower() in model_names():
        return read_catalogue_model(text.lower()).model
    path = Path(text)
    if len(text) > 4096 or "\0" in text or not path.exists():
        raise SpecError(_no_such_model(text))
    if path.is_dir():
        inside = path / "config.json"
        hint = f"give the file, {inside}" if inside.is_file() else "give a config.json or a YAML"
        raise SpecError(f"{path}: is a folder: {hint}")
    with handed_as("model", path):
        return _model_in(path)


def _model_in(path: Path) -> ModelSpec:
    opened = open_launch_file(path)
    if opened.document is not None and not opened.is_launch_file:
        return model_from_document(opened.document, name=_name_from(path))
    return _model_of_run(opened)


def model_from_document(document: Document, *, name: str) -> ModelSpec:
    """Return the model that *document* describes, in a Hugging Face config or our own YAML.

    Args:
        document: a parsed file.
        name: what the model is called where the file does not say.
    """
    root = document.root
    if looks_like_own_model(root):
        return import_own_model(document, name=name)
    if looks_like_hf_config(root):
        return import_hf_config(document, name=name)
    keys = ", ".join(repr(key[:40]) for key in root.keys()[:5]) if root.kind == "map" else ""
    root.fault(
        f"no model: found {keys or 'no keys'}; expected a Hugging Face config.json (model_type, "
        f"hidden_size, num_hidden_layers …) or our own YAML (hidden, layers, attention …)"
    )
    document.finish()
    raise SpecError(f"{document.name}: no model")


def _model_of_run(opened: LaunchFile) -> ModelSpec:
    run = run_from(opened)
    if run.model is None:
        reason = run.assumed.get("model", "it does not say")
        raise SpecError(f"{run.provenance}: the model is {reason}; give --model as well")
    stated = {"layout_of_file": f"{opened.path.name} states one too: --layout takes it"}
    shell = {key: why for key, why in run.assumed.items() if key == "arguments"}
    return replace(run.model, assumed=MappingProxyType({**run.model.assumed, **shell, **stated}))


def _name_from(path: Path) -> str:
    stem = path.parent.name if path.name == "config.json" and path.parent.name else path.stem
    return re.sub(r"[^A-Za-z0-9_.:+-]+", "-", stem)[:128].strip("-") or "model"


def _no_such_model(text: str) -> str:
    shown = text if len(text) <= 80 and text.isprintable() else ascii(text)[:80] + "…"
    near = near_names(text.lower(), model_names(), least_share=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(model_names())}"
    return f"{shown}: no such file, nor a model of the catalogue; {hint}"
