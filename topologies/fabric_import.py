"""A foreign file of a cluster, its kind recognised by content, to an ImportedFabric."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from planner.documents import document_from_text, no_collection, read_bytes
from planner.errors import SpecError
from planner.fabric import Fabric
from planner.nodes import Node
from topologies.fabric_accelerators import load_accelerator
from topologies.fabric_figures import figure
from topologies.fabric_from_import import fabric_from_import
from topologies.import_slurm_rows import as_supernodes
from topologies.imported_fabric import Borrowed, ImportedFabric
from topologies.imported_lender import lender
from topologies.imported_links import safe_name
from topologies.imported_machines import repeated, with_gpus
from topologies.imported_resolved import resolved
from topologies.plausible import PLAUSIBLE

DEFAULT_LIKE = "generic"

FORMATS: Mapping[str, tuple[str, str]] = {
    "slurm-conf": ("import_slurm_conf", "Slurm topology.conf"),
    "slurm-yaml": ("import_slurm_yaml", "Slurm topology.yaml"),
    "topograph": ("import_topograph", "topograph model"),
    "netq": ("import_netq", "NetQ topology graph"),
    "ibnetdiscover": ("import_ibnetdiscover", "ibnetdiscover or ibsim dump"),
    "nccl-xml": ("import_nccl_xml", "NCCL or RCCL topology XML"),
    "nvidia-smi": ("import_nvidia_smi", "nvidia-smi topo -m"),
    "infragraph": ("import_infragraph", "InfraGraph YAML"),
    "ns3": ("import_ns3", "ns-3 or SimAI topology"),
    "astra-sim": ("import_astra_sim", "ASTRA-sim network file"),
    "calculon": ("import_calculon", "Calculon system JSON"),
    "aiconfigurator": ("import_aiconfigurator", "aiconfigurator system YAML"),
    "hwloc": ("import_hwloc", "hwloc XML"),
    "cluster": ("import_cluster", "cluster that was imported before"),
    "node-link": ("import_graph", "NetworkX node-link JSON"),
    "graphml": ("import_graph", "GraphML"),
}
LARGEST_BYTES: Mapping[str, int] = {
    **dict.fromkeys(
        ("slurm-yaml", "topograph", "infragraph", "astra-sim", "calculon", "aiconfigurator"), 2**19
    ),
    "node-link": 2**23,
    "netq": 2**23,
    "cluster": 2**20,
}
"""Files whose every value keeps its place: 10,000 machines in ranges are 30 KB of YAML."""
_NAMED = frozenset({"cluster", "node-link", "graphml"})
"""Formats that say what the cluster is called; of the others the file's name does."""
_LOOKED_AT = 2**20
"""Characters in which a file shows its kind."""
_XML_ROOTS = {"system": "nccl-xml", "topology": "hwloc", "graphml": "graphml"}
_LINES = (
    ("cluster", re.compile(r'^imported[ \t]*:|"planner\.topology-import/1"', re.MULTILINE)),
    (
        "slurm-conf",
        re.compile(
            r"^[ \t]*(?:SwitchName|BlockName|BlockSizes)[ \t]*=", re.IGNORECASE | re.MULTILINE
        ),
    ),
    (
        "ibnetdiscover",
        re.compile(r'^(?:Switch|Ca|Hca|Rt)[ \t]+\d+[ \t]+"', re.IGNORECASE | re.MULTILINE),
    ),
    ("nvidia-smi", re.compile(r"^(?:\x1b\[[0-9;]*m|[ \t])*GPU0(?:\x1b|[ \t])", re.MULTILINE)),
    (
        "astra-sim",
        re.compile(
            r'^[ \t{]*"?(?:npus_count|npus-count|topologies-per-dim)"?[ \t]*:', re.MULTILINE
        ),
    ),
    ("astra-sim", re.compile(r'"(?:npus[_-]count|topologies-per-dim)"[ \t]*:')),
    ("infragraph", re.compile(r'^[ \t{-]*"?(?:infrastructure|ep1)"?[ \t]*:', re.MULTILINE)),
    ("infragraph", re.compile(r'^[ \t{]*"?instances"?[ \t]*:', re.MULTILINE)),
    ("ns3", re.compile(r"\A\d+(?:\s+\d+){2}(?:\s+\d+\s+\d+\s+\w+[^\n]*)?[ \t]*\n")),
    ("calculon", re.compile(r'"networks"[ \t]*:', re.MULTILINE)),
    ("aiconfigurator", re.compile(r"^[ \t]+num_gpus_per_node[ \t]*:", re.MULTILINE)),
    ("topograph", re.compile(r"^capacity_blocks[ \t]*:", re.MULTILINE)),
    ("slurm-yaml", re.compile(r"^(?:-[ \t]+)?topology[ \t]*:[ \t]*\S", re.MULTILINE)),
    ("topograph", re.compile(r"^(?:blocks|switches)[ \t]*:", re.MULTILINE)),
    ("topograph", re.compile(r'"accelerated_network_id"[ \t]*:|"node_id"[ \t]*:')),
    ("netq", re.compile(r'"compounded_(?:links|nodes)"[ \t]*:')),
    ("node-link", re.compile(r'"(?:links|edges|nodes)"[ \t]*:', re.MULTILINE)),
)
_NO_CLUSTERS = (
    (
        "a request to topograph: name the model or the answer that it is about",
        re.compile(r'"provider"[ \t]*:[\s\S]*"engine"[ \t]*:'),
    ),
    (
        "a profile of Galvatron's: measured rates of groups, without machines or links",
        re.compile(r'"(?:pp_size|allreduce_size|allgather_size)_\d+'),
    ),
    (
        "a Kubernetes manifest: it names levels of a topology, the nodes' labels hold the machines",
        re.compile(r"^apiVersion[ \t]*:", re.MULTILINE),
    ),
    (
        "a slurm.conf: the switches or blocks stand in topology.conf or topology.yaml",
        re.compile(r"^[ \t]*(?:NodeName|ClusterName)[ \t]*=", re.IGNORECASE | re.MULTILINE),
    ),
    (
        "a model's configuration, not a cluster: give it to --model",
        re.compile(r'"(?:model_type|architectures)"[ \t]*:'),
    ),
    (
        "a graph of communication channels (NCCL_GRAPH_DUMP_FILE), not a topology",
        re.compile(r"<graphs\b"),
    ),
)
"""Files that are often taken for a cluster's, and what they are instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportAsked:
    """How a file is to be read, and what it may lack.

    Args:
        format: one of ``FORMATS``, empty to recognise it.
        topology: which of several in the file.
        like: the cluster that lends what the file does not say, a name or a file.
        links: a YAML file of rates: ``nic``, ``scale_up``, ``uplinks``.
        accelerator: of the catalogue; empty for the file's, or that of *like*.
        gpus_per_host: GPUs of a machine [1].
        machines: how many machines there are like the one of the file [1].
        blocks_scale_up: the scheduler's blocks are scale-up domains.
        join: parts without a common switch are joined.
    """

    format: str = ""
    topology: str = ""
    like: str = DEFAULT_LIKE
    links: Path | None = None
    accelerator: str = ""
    gpus_per_host: int | None = None
    machines: int | None = None
    blocks_scale_up: bool = False
    join: bool = False


def recognised(content: bytes, name: str) -> str:
    r"""Return the format of a file's *content*.

    Raises:
        SpecError: it is no text, or none of the formats.

    >>> recognised(b"# mine\nswitchname=s0 nodes=n[0-3]", "topology.conf")
    'slurm-conf'
    """
    text = decoded(content, name)
    head = text.lstrip("\ufeff \t\r\n")
    if head.startswith("<"):
        for tag in re.finditer(r"<([A-Za-z][\w.:-]*)", head[:65536]):
            if tag.group(1) in _XML_ROOTS:
                return _XML_ROOTS[tag.group(1)]
            raise SpecError(
                f"{name}: XML whose root is <{tag.group(1)[:40]}>: expected one of "
                f"{', '.join(f'<{root}>' for root in _XML_ROOTS)}"
            )
    begin = head[:_LOOKED_AT]
    for found, pattern in _LINES:
        if pattern.search(begin):
            return found
    for what, pattern in _NO_CLUSTERS:
        if pattern.search(begin):
            raise SpecError(f"{name}: is {what}")
    raise SpecError(
        f"{name}: is of no kind that can be imported: expected one of "
        f"{'; '.join(title for _, title in FORMATS.values())}"
    )


def decoded(content: bytes, name: str) -> str:
    """Return *content* as text.

    Raises:
        SpecError: it is not UTF-8, or holds NUL characters.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise SpecError(f"{name}:{line}: is not UTF-8 text: byte {error.start}") from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise SpecError(f"{name}:{line}: has NUL characters: expected text")
    if not text.strip():
        raise SpecError(f"{name}:1: is empty")
    return text


def import_fabric(path: Path | str, asked: ImportAsked | None = None) -> ImportedFabric:
    """Return what the file at *path* says.

    Raises:
        SpecError: every fault, with its line.
    """
    asked = asked or ImportAsked()
    content = read_bytes(path)
    return import_fabric_text(content, Path(path).name, asked)


def import_fabric_text(content: bytes, name: str, asked: ImportAsked) -> ImportedFabric:
    """Return what the bytes *content* of the file called *name* say."""
    if asked.format and asked.format not in FORMATS:
        raise SpecError(f"format {asked.format!r} is unknown: one of {', '.join(FORMATS)}")
    kind = asked.format or recognised(content, name)
    module = FORMATS[kind][0]
    read: Callable[..., ImportedFabric] = getattr(import_module(f"topologies.{module}"), module)
    if len(content) > LARGEST_BYTES.get(kind, len(content)):
        raise SpecError(
            f"{name}: has {len(content):,} bytes: expected at most {LARGEST_BYTES[kind]:,} "
            f"of a {FORMATS[kind][1]}"
        )
    text = decoded(content, name)
    if asked.topology and kind != "slurm-yaml":
        raise SpecError(f"{name}: --topology names one of several in a Slurm topology.yaml only")
    options = {"topology": asked.topology} if kind == "slurm-yaml" else {}
    with no_collection():
        found = read(text, name, **options)
    if asked.blocks_scale_up:
        if found.kind != "slurm-block":
            raise SpecError(f"{name}: is {found.kind}; only Slurm's blocks can be scale-up domains")
        found = as_supernodes(found)
    if kind not in _NAMED:
        found = replace(found, name=safe_name(Path(name).stem) or found.name)
    return found if asked.machines is None else repeated(found, asked.machines)


def fabric_of(found: ImportedFabric, asked: ImportAsked) -> Fabric:
    """Return the Fabric of *found*, what it lacks taken as *asked* says."""
    found, borrowed = _lent(found, asked)
    with no_collection():
        return fabric_from_import(found, borrowed)


def resolved_import(found: ImportedFabric, asked: ImportAsked) -> ImportedFabric:
    """Return *found* with what it lacks taken as *asked* says."""
    return resolved(*_lent(found, asked))


def _lent(found: ImportedFabric, asked: ImportAsked) -> tuple[ImportedFabric, Borrowed]:
    like = lender(asked.like)
    if asked.gpus_per_host is None and asked.like != DEFAULT_LIKE:
        found = with_gpus(found, like.board_gpus, like.words)
    rates = _rates(asked.links) if asked.links is not None else {}
    name = asked.accelerator or found.accelerator
    return found, Borrowed(
        like=like,
        accelerator=load_accelerator(name) if name else like.accelerator,
        gpus_per_host=asked.gpus_per_host,
        nic_bytes_per_s=next(iter(rates.get("nic", ())), None),
        scale_up_bytes_per_s=next(iter(rates.get("scale_up", ())), None),
        uplinks_bytes_per_s=rates.get("uplinks", ()),
        join=asked.join,
    )


def _uplink(node: Node) -> float:
    """Return the rate that *node* of a list is, and write down a fault where it cannot be."""
    before = len(node.faults)
    value = node.as_rate()
    if len(node.faults) == before and (fault := PLAUSIBLE["uplink_rate"].fault(value)):
        node.fault(fault)
    return value


def _rates(path: Path) -> dict[str, tuple[float, ...]]:
    """Return the rates of a --links file: ``nic``, ``scale_up``, and ``uplinks`` leaf first."""
    document = document_from_text(read_bytes(path), name=str(path))
    root = document.root
    if root.kind != "map":
        root.fault("expected a mapping with some of nic, scale_up, uplinks")
        document.finish()
    root.only("nic", "scale_up", "uplinks")
    rates: dict[str, tuple[float, ...]] = {
        key: (figure(root, key, root.rate),) for key in ("nic", "scale_up") if root.has(key)
    }
    if root.has("uplinks"):
        rates["uplinks"] = tuple(_uplink(item) for item in root.list("uplinks"))
    document.finish()
    return rates
