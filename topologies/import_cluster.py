"""A cluster that was imported before, as ``imported_resolved`` writes it, to an ImportedFabric."""

from __future__ import annotations

from planner.documents import document_from_text
from planner.errors import SpecError
from planner.fabric import Nic
from planner.nodes import Node
from topologies.host_lists import HostListError, expand_hosts
from topologies.imported_fabric import MOST_VERTICES, ImportedFabric, ImportedHost, ImportedLink

_KEYS = (
    "imported", "kind", "name", "accelerator", "scale_up", "nic", "hop_latency", "machines",
    "switches", "links", "assumed",
)  # fmt: skip
_MOST_LINKS = 2**20
_LONGEST_WORDS = 2000


def import_cluster(text: str | bytes, name: str) -> ImportedFabric:
    """Return the cluster; machines that one line names together have the same links.

    The text is such a file, or the document of ``planner topology import --json`` around it.

    Raises:
        SpecError: every fault, with its line.
    """
    plain = text if isinstance(text, str) else text.decode()
    if plain.lstrip().startswith("{") and '"schema"' in plain:
        plain = _inside(plain, name)
    document = document_from_text(plain, name=name)
    root = document.root
    if root.kind != "map":
        root.fault("expected a mapping")
        document.finish()
    root.only(*_KEYS)
    reader = _Reader(root)
    provenance = _words(root, "imported")
    scale_up, nic = root.map("scale_up"), root.map("nic")
    scale_up.only("rate", "latency", "in_network_reduction")
    nic.only("rate", "startup", "in_flight", "transaction", "turnaround")
    up_rate, line_rate = scale_up.rate("rate"), nic.rate("rate")
    waits = (scale_up.time("latency"), nic.time("startup"), root.time("hop_latency"))
    slots = (nic.count("in_flight"), nic.bytes("transaction"), nic.time("turnaround"))
    reduces = scale_up.flag("in_network_reduction")
    hosts = reader.machines()
    switches = reader.switches()
    reader.links()
    label, kind, chip = root.name("name"), root.name("kind"), root.name("accelerator")
    assumed = {}
    for key, value in root.map("assumed").items() if root.has("assumed") else ():
        words = value.as_text()
        assumed[key] = words[:_LONGEST_WORDS]
    document.finish()
    return ImportedFabric(
        name=label,
        kind=kind,
        provenance=f"{provenance}, by way of {name}",
        hosts=tuple(hosts),
        switches=switches,
        links=tuple(reader.found),
        scale_up_bytes_per_s=up_rate,
        scale_up_latency_s=waits[0],
        nic_bytes_per_s=line_rate,
        endpoint_latency_s=waits[1],
        hop_latency_s=waits[2],
        nic=Nic(
            line_bytes_per_s=line_rate,
            in_flight=slots[0],
            transaction_bytes=slots[1],
            turnaround_s=slots[2],
        ),
        in_network_reduction=reduces,
        accelerator=chip,
        assumed=assumed,
    )


def _inside(text: str, name: str) -> str:
    """Return the cluster file in the document of ``planner topology import --json``."""
    document = document_from_text(text, name=name, kind="json")
    if document.root.kind != "map":
        document.root.fault("expected the document of planner topology import")
        document.finish()
    inside = document.root.text("cluster_file")
    document.finish()
    return inside


def _words(node: Node, key: str) -> str:
    words = node.text(key)
    if len(words) > _LONGEST_WORDS:
        node.fault(f"expected at most {_LONGEST_WORDS} characters", key=key)
    return words


class _Reader:
    """Rows of machines and switches to hosts and links."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.found: list[ImportedLink] = []
        self._seen: set[tuple[str, str]] = set()

    def machines(self) -> list[ImportedHost]:
        """Return the machines, their links kept."""
        hosts: list[ImportedHost] = []
        for row in self.root.list("machines"):
            if row.kind != "map":
                row.fault("expected a mapping with hosts and gpus")
                continue
            row.only("hosts", "gpus", "supernode", "links")
            names = self._names(row, "hosts")
            gpus = row.count("gpus", minimum=0, maximum=1024)
            supernode = row.name("supernode") if row.has("supernode") else ""
            hosts += (ImportedHost(name=n, gpus=gpus, supernode=supernode or n) for n in names)
            self._links_of(row, names)
            self._refuse_many(len(hosts), MOST_VERTICES, row)
        return hosts

    def switches(self) -> tuple[str, ...]:
        """Return the names of the switches."""
        node = self.root.optional("switches")
        if node is None or (node.kind == "list" and not node.value):
            return ()
        return self._names(self.root, "switches")

    def links(self) -> None:
        """Keep the links between switches."""
        for row in self.root.list("links") if self.root.has("links") else ():
            if row.kind != "map":
                row.fault("expected a mapping with from and links")
                continue
            row.only("from", "links")
            self._links_of(row, self._names(row, "from"))

    def _links_of(self, row: Node, names: tuple[str, ...]) -> None:
        for target in row.list("links") if row.has("links") else ():
            if target.kind != "map":
                target.fault("expected a mapping with to, and links and rate where they are known")
                continue
            target.only("to", "links", "rate")
            others = self._names(target, "to")
            links = target.count("links", default=1, maximum=100_000)
            rate = target.rate("rate") if target.has("rate") else None
            if rate is not None and not rate > 0:
                target.fault("expected a rate above 0", key="rate")
            self._refuse_many(len(self.found) + len(names) * len(others), _MOST_LINKS, target)
            for a in names:
                for b in others:
                    if (b, a) in self._seen and "hosts" in row.value:
                        continue  # a link of two machines stands at both
                    self._seen.add((a, b))
                    self.found.append(ImportedLink(a=a, b=b, links=links, bytes_per_s=rate))

    def _names(self, row: Node, key: str) -> tuple[str, ...]:
        text = row.text(key)
        try:
            return expand_hosts(text) if text else ()
        except HostListError as error:
            for fault in error.faults:
                row.fault(fault, key=key)
            return ()

    def _refuse_many(self, count: int, most: int, row: Node) -> None:
        if count > most:
            raise SpecError(f"{row.where}: more than {most:,} machines or links")
