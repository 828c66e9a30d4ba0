"""A training launch file of any kind to an ``ImportedRun``; the kind shows in the content."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from planner.documents import Document, document_from_text
from planner.errors import SpecError
from topologies.import_deepspeed import import_deepspeed, looks_like_deepspeed
from topologies.import_hf_config import looks_like_hf_config
from topologies.import_megatron import FLAGS, import_megatron_script
from topologies.import_megatron_yaml import import_megatron_yaml, looks_like_megatron_yaml
from topologies.import_mlperf import import_mlperf_script, looks_like_mlperf
from topologies.import_nemo import import_nemo, looks_like_nemo
from topologies.import_torchtitan import import_torchtitan
from topologies.imported_run import ImportedRun
from topologies.model_yaml import looks_like_own_model
from topologies.small_files import read_small_bytes

_FLAG = re.compile(
    rf"--(?:{'|'.join(sorted(flag.replace('_', '[-_]') for flag in FLAGS))})(?![\w-])(?!\s*:)"
)
_TABLE = re.compile(r"^\[[A-Za-z_][\w.]*\][ \t]*(?:#.*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFile:
    """A file's content and what kind it is.

    Args:
        name: what faults call it.
        path: where it is.
        kind: ``script``, ``mlperf``, ``toml`` or ``document``.
        text: its content, for scripts and TOML.
        document: its content, for YAML and JSON.
    """

    name: str
    path: Path
    kind: str
    text: str = ""
    document: Document | None = None

    @property
    def is_launch_file(self) -> bool:
        """Whether it starts training, rather than describing only a model or a layout."""
        if self.document is None:
            return True
        root = self.document.root
        return not (looks_like_hf_config(root) or looks_like_own_model(root)) and (
            looks_like_megatron_yaml(root) or looks_like_nemo(root) or looks_like_deepspeed(root)
        )


def open_launch_file(path: Path | str) -> LaunchFile:
    """Return the file at *path*, its kind told by its content.

    Raises:
        SpecError: it cannot be read, or is neither script, TOML, YAML nor JSON.
    """
    path = Path(path)
    name = str(path)
    content = read_small_bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{name}: is not UTF-8 text (byte {error.start})") from None
    if looks_like_mlperf(text):
        return LaunchFile(name=name, path=path, kind="mlperf", text=text)
    if _FLAG.search(text):
        return LaunchFile(name=name, path=path, kind="script", text=text)
    tables = _TABLE.search(text) is not None and not text.lstrip().startswith("{")
    if path.suffix.lower() == ".toml" or tables:
        return LaunchFile(name=name, path=path, kind="toml", text=text)
    kind = "json" if path.suffix.lower() == ".json" else "yaml"
    return LaunchFile(
        name=name, path=path, kind="document",
        document=document_from_text(content, name=name, kind=kind),
    )  # fmt: skip


def run_from(opened: LaunchFile) -> ImportedRun:
    """Return the run that an opened launch file describes."""
    if opened.kind == "mlperf":
        return import_mlperf_script(opened.text, name=opened.path.name)
    if opened.kind == "script":
        return import_megatron_script(opened.text, name=opened.name)
    if opened.document is None:
        return import_torchtitan(opened.text, name=opened.name)
    root = opened.document.root
    if looks_like_deepspeed(root):  # before Megatron's: GPT-NeoX shares words with it
        return import_deepspeed(opened.document)
    if looks_like_megatron_yaml(root):
        return import_megatron_yaml(opened.document, folder=opened.path.parent)
    if looks_like_nemo(root):
        return import_nemo(opened.document)
    raise SpecError(
        f"{opened.name}: no launch file of a kind we know: a script or YAML of Megatron's "
        f"arguments, Primus, NeMo, GPT-NeoX, DeepSpeed, torchtitan, MLPerf"
    )
