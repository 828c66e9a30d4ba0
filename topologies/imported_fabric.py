"""What a foreign file says of a cluster, before rates are borrowed: the one interface of importers.

Every importer of a fabric is a function from a file's text and name to an ``ImportedFabric``. It
says what the file says and lists what is odd in it; ``fabric_from_import`` makes a Fabric of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from planner.errors import SpecError
from planner.fabric import Accelerator, Nic

SEVERITIES = ("fault", "warning", "note")
MOST_VERTICES = 2**18


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFinding:
    """Something odd in the file.

    Args:
        severity: ``fault`` (no cluster can be made of it as it is), ``warning`` or ``note``.
        where: ``file:line``.
        message: what was seen and what it means.
    """

    severity: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedHost:
    """One machine.

    Args:
        name: as in the file.
        gpus: GPUs in it, none where the file does not say [1].
        supernode: name of the scale-up domain it is part of; its own name where it is one alone.
    """

    name: str
    gpus: int | None
    supernode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLink:
    """Parallel links between two switches, or a host and a switch.

    Args:
        a, b: names of hosts or switches.
        links: how many [1].
        bytes_per_s: all of them together, one direction; none where the file does not say
            [bytes/s].
    """

    a: str
    b: str
    links: int = 1
    bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFabric:
    """One file of a cluster, read.

    Args:
        name: of the cluster.
        kind: the format, e.g. ``slurm-tree``.
        provenance: the kind of file and its name.
        hosts: the machines, in the file's order.
        switches: names of the scale-out switches.
        links: between hosts and switches.
        scale_up_bytes_per_s: of one GPU, one direction, none where unknown [bytes/s].
        nic_bytes_per_s: of one GPU, one direction, none where unknown [bytes/s].
        scale_up_latency_s, scale_out_latency_s: start-up, none where unknown [s].
        endpoint_latency_s: start-up in both ends of a scale-out message, without its hops, none
            where unknown [s].
        hop_latency_s: what one scale-out link adds to it, none where unknown [s].
        nic: of one GPU, where the file says more of it than its rate.
        in_network_reduction: scale-up switches can reduce, none where unknown.
        no_scale_up: why no cluster's scale-up rate may be borrowed, empty where one may.
        own_bytes_per_s: where each GPU has a link of its own for every level of switches, innermost
            first, what it carries: no GPU uses another's [bytes/s].
        adapters_per_gpu: adapters that one GPU shares with others, 1 where each has its own [1].
        accelerator: what every GPU is as the catalogue calls it, empty where unknown.
        block_sizes: GPU machines of a block and of its unions, where the scheduler has them [1].
        assumed: what was taken to be so, name to reason.
        findings: what is odd in the file.
    """

    name: str
    kind: str
    provenance: str
    hosts: tuple[ImportedHost, ...]
    switches: tuple[str, ...] = ()
    links: tuple[ImportedLink, ...] = ()
    scale_up_bytes_per_s: float | None = None
    nic_bytes_per_s: float | None = None
    scale_up_latency_s: float | None = None
    scale_out_latency_s: float | None = None
    endpoint_latency_s: float | None = None
    hop_latency_s: float | None = None
    nic: Nic | None = None
    in_network_reduction: bool | None = None
    no_scale_up: str = ""
    own_bytes_per_s: tuple[float, ...] = ()
    adapters_per_gpu: float = 1.0
    accelerator: str = ""
    block_sizes: tuple[int, ...] = ()
    assumed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    findings: tuple[ImportFinding, ...] = ()

    def __post_init__(self) -> None:
        faults = []
        if not self.hosts:
            faults.append(f"{self.provenance}: names no machine with GPUs")
        if len(self.hosts) + len(self.switches) > MOST_VERTICES:
            faults.append(f"{self.provenance}: more than {MOST_VERTICES:,} machines and switches")
        known = {host.name for host in self.hosts}
        if len(known) != len(self.hosts):
            faults.append(f"{self.provenance}: a machine is named twice")
        if both := sorted(known & set(self.switches)):
            faults.append(f"{self.provenance}: {both[0]!r} is both a machine and a switch")
        known |= set(self.switches)
        faults += [
            f"{self.provenance}: link {link.a} - {link.b}: {end!r} is neither machine nor switch"
            for link in self.links
            for end in (link.a, link.b)
            if end not in known
        ][:20]
        if faults:
            raise SpecError(*faults)

    @property
    def faults(self) -> tuple[str, ...]:
        """Return the findings that keep a cluster from being made, as text."""
        return tuple(str(f) for f in self.findings if f.severity == "fault")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lender:
    """What one cluster lends.

    Args:
        words: whose it is, behind *not in the file:*.
        accelerator: what every GPU is.
        nic: of one GPU.
        board_gpus: GPUs of a machine [1].
        scale_up_bytes_per_s: of one GPU [bytes/s].
        scale_up_latency_s: start-up of a message in a supernode [s].
        endpoint_latency_s: start-up of a message on the network, but for its hops [s].
        hop_latency_s: of one hop [s].
        leaf_uplink_share: capacity of a leaf up over that down.
        in_network_reduction: scale-up switches can reduce.
        assumed: names of its own figures that are assumed, and said to be where they are lent.
    """

    words: str
    accelerator: Accelerator
    nic: Nic
    board_gpus: int
    scale_up_bytes_per_s: float
    scale_up_latency_s: float
    endpoint_latency_s: float
    hop_latency_s: float
    leaf_uplink_share: float
    in_network_reduction: bool
    assumed: Collection[str] = ()

    def says(self, name: str) -> str:
        """Return whose the figure *name* is, and whether it is assumed there too."""
        return f"{self.words}, assumed there too" if name in self.assumed else self.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Borrowed:
    """What a file may lack.

    Args:
        like: the cluster that the rest is taken from.
        accelerator: what every GPU is.
        gpus_per_host: GPUs of a machine, none for what the file says [1].
        nic_bytes_per_s: of one GPU, none for the file's or the catalogue's [bytes/s].
        scale_up_bytes_per_s: of one GPU, likewise [bytes/s].
        uplinks_bytes_per_s: of one leaf, one spine …, all its links up together [bytes/s].
        join: switches without a common root are joined by one that does not block.
    """

    like: Lender
    accelerator: Accelerator
    gpus_per_host: int | None = None
    nic_bytes_per_s: float | None = None
    scale_up_bytes_per_s: float | None = None
    uplinks_bytes_per_s: tuple[float, ...] = ()
    join: bool = False
