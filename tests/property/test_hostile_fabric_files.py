"""Whatever is done to a cluster's file, it is read or refused by name, soon."""

from __future__ import annotations

import random
import time

import pytest

from planner.errors import InputError
from planner.fabric_walks import islands
from tests.hostile import encoded, restructured
from topologies.fabric_import import (
    ImportAsked,
    fabric_of,
    import_fabric_text,
    resolved_import,
)
from topologies.imported_resolved import cluster_file_text

IB = """switchguid=0x1(1)
Switch  41 "S-1"         # "MF0;leaf 1:MQM9700/U1" enhanced port 0 lid 1 lmc 0
[1]     "H-1"[1](1)      # "a HCA-1" lid 2 4xNDR s=4 w=2 v=4 e=4
[2]     "H-2"[1](2)      # "b mlx5_5" lid 3 2xNDR
[4]     "R-1"[1]         # "router" lid 7 4xNDR
[3]     "H-3"[1]         # "Mellanox Technologies Aggregation Node" lid 9 4xNDR

Ca      1 "H-1"          # "a HCA-1"
[1](1)  "S-1"[1]         # lid 2 lmc 0 "leaf" lid 1 4xNDR
Ca      1 "H-2"          # "b mlx5_5"
[1](2)  "S-1"[2]         # lid 3 lmc 0 "leaf" lid 1 2xNDR
Rt      1 "R-1"          # "router"
[1](4)  "S-1"[4]         # lid 7 4xNDR
Ca      1 "H-3"          # "Mellanox Technologies Aggregation Node"
[1](3)  "S-1"[3]         # lid 9 4xNDR
"""
NCCL = """<system version="1"><cpu numaid="-1"><!-- own -->
<pci busid="ffff:ff:01.0" class="0x060400" link_speed="" link_width="0">1
<pci busid="0000:07:00.0" class="0x030200" device="0x2330"><gpu dev="0" sm="90">
<nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/></gpu></pci>
<pci busid="0000:08:00.0" class="0x020700"><nic><net name="m0" speed="400000"/></nic></pci>
</pci></cpu></system>
"""
HWLOC = """<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0">
<object type="Machine"><object type="PCIDev" pci_type="0302 [10de:2330]"/></object></topology>
"""
SMI = (
    "\x1b[4m\tGPU0\tGPU1\tNIC0\tCPU Affinity\x1b[0m\n"
    "GPU0\t X \tNV12\tPIX\t0-3\nGPU1\tNV12\t X \tSYS\t\n"
)
TOPOGRAPH = """switches:
  core: {switches: [s1, s2, gone]}
blocks:
- {switch: s1, nodes: ["[1101-1102]"], annotations: {x.test/domain: nvl1}}
- {switch: s2, nodes: [n3]}
"""
TOPOGRAPH_OLDER = """topology: topology/tree
switches:
- {name: top, switches: [left, right]}
- {name: left, capacity_blocks: [cb1]}
- {name: right, capacity_blocks: [cb2]}
capacity_blocks:
- {name: cb1, nvlink: nv1, type: H100, nodes: [n1, "n[2-3]"]}
- {name: cb2, nodes: [n4]}
"""
NCCL_RACK = "".join(
    f"""<cpu host_hash="0x{host}" numaid="0"><pci class="0x030200" device="0x2941">
<gpu dev="0" sm="100"><nvlink target="fffffff:ffff:ff" count="18"/><c2c bw="43" count="10"/></gpu>
</pci><nic><net name="mlx5_0" port="1" speed="400000"/><net name="eth0" port="0" speed="10"/></nic>
</cpu>"""
    for host in (1, 2)
)
INFRA = """infrastructure:
  links: [{name: e, bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 50}}]
  instances: [{name: leafsw, device: sw}, {name: server, device: box}]
  connections: [server.0.nic.0.e.leafsw.0.port.0, server.1.nic.0.e.leafsw.0.port.1]
"""
ASTRA = """topology: [ Switch, Ring ]
npus_count: [ 8, 4 ]
bandwidth: [ 400, 50 ]
latency: [ 900, 1e3 ]
"""
CALCULON = """{"matrix": {}, "networks": [
{"bandwidth": 450, "size": 8, "latency": 0.00001},
{"bandwidth": 50, "size": 64, "latency": 0.00002}]}
"""
GRAPH = """{"nodes": [{"id": "g0", "kind": "gpu", "host": "a", "supernode": 0},
{"id": "g1", "kind": "gpu", "host": "b", "supernode": 1}, {"id": "s", "kind": "leaf"}],
"links": [{"source": "g0", "target": "s", "capacity_bytes_per_s": 5e10},
{"source": "g1", "target": "s", "capacity_bytes_per_s": 5e10}]}
"""
TREE = (
    "SwitchName=r Switches=s[1-2]\nSwitchName = s1 Nodes = n[01-02] # rack\n"
    'SwitchName="s2" \\\n Nodes="n[03-04]"\n'
)
BLOCK = "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n"
YAML = "- topology: t\n  tree:\n    switches:\n    - {switch: s1, nodes: 'n[1-4]'}\n"
NS3 = """4 1 3
3
0 3 100Gbps 1000ns 0
1 3 100Gbps 1000ns 0
2 3 0.4Tbps 0.001ms 0
"""
SIMAI = """7 2 2 1 8 H100
4 5 6
0 4 2880Gbps 0.000025ms 0
1 4 2880Gbps 0.000025ms 0
2 5 2880Gbps 0.000025ms 0
3 5 2880Gbps 0.000025ms 0
0 6 400Gbps 500ns 0
1 6 400Gbps 500ns 0
2 6 400Gbps 500ns 0
3 6 400Gbps 500ns 0
"""
EDGES = """devices:
- name: box
  components: [{name: xpu, choice: xpu, count: 2}, {name: nic, choice: nic, count: 2}]
instances: [{name: host, device: box, count: 2}, {name: leaf, device: sw, count: 1}]
links: [{name: e, physical: {bandwidth: {gigabits_per_second: 400}}}]
edges:
- {ep1: {instance: "host[0:2]", component: nic}, ep2: {instance: leaf, component: "port[0:4]"},
   link: e, scheme: one2one}
"""
ASTRA_1 = """{"topology-name": "Hierarchical", "topologies-per-dim": ["FullyConnected", "Switch"],
"units-count": [4, 2], "links-count": [3, 1], "link-latency": [500, 1000],
"link-bandwidth": [20, 25]}
"""
AIC = """gpu: {sm_version: 100}
node:
  num_gpus_per_node: 4
  num_gpus_per_rack: 8
  inter_rack_bw: 100000000000
  inter_node_bw: 900000000000
  intra_node_bw: 900000000000
"""
CLUSTER = """imported: a file
kind: slurm-tree
name: c
accelerator: H100-SXM
scale_up: {rate: 450 GB/s, latency: 3 us, in_network_reduction: true}
nic: {rate: 50 GB/s, startup: 2 us, in_flight: 8, transaction: 524288 B, turnaround: 20 us}
hop_latency: 0.2 us
machines:
- {hosts: "n[01-04]", gpus: 2, links: [{to: s1}]}
- {hosts: m1, gpus: 4, supernode: x, links: [{to: s2, links: 2, rate: 100 GB/s}]}
switches: s[1-3]
links:
- {from: "s[1-2]", links: [{to: s3, rate: 400 GB/s}]}
assumed: {nic.rate: as generic}
"""
NETQ = """[{"links": [{"src": "l", "target": "h1", "size": 4, "compounded_links": []},
{"src": "h2", "target": "l", "size": 4}],
"nodes": [{"node_type": "tier", "compounded_nodes": [
{"id": "h1", "name": "a", "tier": -1}, {"id": "h2", "name": "b", "tier": -1},
{"id": "l", "name": "leaf", "tier": 1, "device_type": "switch"}]}]}]
"""
ANSWER = """{"switches": {"S1": {"switches": ["S2"]},
"S2": {"nodes": [{"node_id": "I1", "accelerated_network_id": "c"}, {"node_id": "I2"}]}}}
"""
OURS = {
    "netq": NETQ, "topograph:answer": ANSWER, "ns3": NS3, "ns3:simai": SIMAI,
    "infragraph:edges": EDGES, "astra-sim:1": ASTRA_1,
    "aiconfigurator": AIC, "cluster": CLUSTER, "topograph:older": TOPOGRAPH_OLDER,
    "nccl-xml:rack": f'<system version="2">{NCCL_RACK}</system>',
    "ibnetdiscover": IB, "nccl-xml": NCCL, "hwloc": HWLOC, "nvidia-smi": SMI,
    "topograph": TOPOGRAPH, "infragraph": INFRA, "astra-sim": ASTRA, "calculon": CALCULON,
    "node-link": GRAPH, "slurm-conf": TREE, "slurm-yaml": YAML,
}  # fmt: skip
SAID = ("9" * 30, "-1", "\x00", "\ufeff", "&x;",
         "<!ENTITY a 'b'>", "[" * 200, "{" * 200, "*a", "&a",
        "\x1b[31m", "n[1-99999999]", "\r\n", "\u202e", "nan",
        "1e999", "\xff", "#", "=", ",")  # fmt: skip


MOST_BUILT = 5000
MOST_AGAIN = 100


def tried(content: bytes, kind: str = "") -> None:
    """Read the file and make a cluster of it; only a named refusal may come of it."""
    started = time.process_time()
    asked = ImportAsked(format=kind, gpus_per_host=2, join=True)
    try:
        found = import_fabric_text(content, "f", asked)
        if len(found.hosts) <= MOST_BUILT:  # n[1-99999] is a large cluster, not a hostile file
            fabric = fabric_of(found, asked)
        if len(found.hosts) <= MOST_AGAIN:
            text = cluster_file_text(resolved_import(found, asked))
            plain = ImportAsked()
            again = fabric_of(import_fabric_text(text.encode(), "again.yaml", plain), plain)
            assert again.tiers == fabric.tiers
    except InputError as error:
        faults = error.faults
    else:
        faults = ("none",)
    assert faults
    assert all(len(fault) < 2000 for fault in faults)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("kind", OURS)
def test_every_kind_is_recognised_by_content_and_makes_a_cluster(kind: str) -> None:
    found = import_fabric_text(OURS[kind].encode(), "f", ImportAsked())
    fabric = fabric_of(found, ImportAsked(gpus_per_host=2))
    assert len(islands(fabric.graph, fabric.gpus)) == 1
    assert found.provenance.endswith("f") or "topology" in found.provenance


def mutated(text: str, draw: random.Random) -> bytes:
    """Return *text* cut, doubled, reordered, in another encoding, or with something odd in it."""
    if not text:
        return b""
    lines = text.splitlines(keepends=True)
    at = draw.randrange(len(text))
    change = draw.randrange(9)
    if change == 0:
        text = text[:at]
    elif change == 1:
        text = "".join(lines + lines[draw.randrange(len(lines)) :])
    elif change == 2:
        draw.shuffle(lines)
        text = "".join(lines)
    elif change == 3:
        text = text[:at] + draw.choice(SAID) + text[at + draw.randrange(3) :]
    elif change == 4:
        digits = [i for i, c in enumerate(text) if c.isdigit()]
        i = draw.choice(digits or [0])
        text = text[:i] + draw.choice(["0", "99999", "8" * 25, "-3", "1.5"]) + text[i + 1 :]
    elif change > 6:
        return restructured(text, draw).encode()
    if change == 6:
        return encoded(text, draw)
    content = text.encode()
    if change == 5:
        content = content[:at] + bytes([draw.randrange(256)]) + content[at + 1 :]
    return content


@pytest.mark.parametrize("kind", OURS)
def test_changed_files_are_read_or_refused_by_name(kind: str) -> None:
    draw = random.Random(7)
    for _ in range(60):
        tried(mutated(OURS[kind], draw), kind.partition(":")[0] if draw.random() < 0.5 else "")


@pytest.mark.nightly
@pytest.mark.parametrize("kind", OURS)
def test_two_thousand_changed_files_are_read_or_refused_by_name(kind: str) -> None:
    draw = random.Random(11)
    for _ in range(2000):
        tried(
            mutated(mutated(OURS[kind], draw).decode(errors="replace"), draw),
            kind.partition(":")[0],
        )


BOMB = "<!DOCTYPE s [" + "".join(
    f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "x" * 10}">' for i in range(9)
) + "]><system>&e8;</system>"  # fmt: skip


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (BOMB.encode(), ""),
        (b"<!DOCTYPE system SYSTEM 'file:///etc/passwd'><system/>", ""),
        (b"<system>" * 100_000, ""),
        (b"<system>" + b"<pci/>" * 500_000 + b"</system>", ""),
        (b"[" * 100_000, "node-link"),
        (b'{"nodes":' * 50_000, "node-link"),
        (b"- topology: t\n  tree: " + b"[" * 5000, ""),
        (b"a: &a [x]\n" + b"b: [*a,*a]\n" * 50, "topograph"),
        (b"SwitchName=s Nodes=n[1-131072]\n" * 300, ""),
        (b"SwitchName=s Nodes=a[0-999]b[0-999]\n" * 300, ""),
        (b"SwitchName=s Switches=" + b"s," * 200_000, ""),
        (b"SwitchName=s " + b"a =\t" * 500_000, ""),
        (b"".join(b"k%d=1 " % n for n in range(300_000)) + b"SwitchName=s", "slurm-conf"),
        (b'Switch 4 "s"\n' + b'[1] "t"[1]\n' * 200_000, ""),
        (b"\tGPU0" + b"\tGPU1" * 100_000, ""),
        (b"x" * (17 * 2**20), ""),
        (b'{"nodes": [' + b'{"id": "a"},' * 500_000 + b'{"id": "a"}], "links": []}', ""),
        (b"blocks:\n" + b"- {switch: s}\n" * 100_000, ""),
        ("topology: [Ring]".encode("utf-16"), ""),
        (ASTRA.replace("8, 4", "8, 999999").encode(), ""),
        (b"", ""),
        (b"9999999 1 1\n", ""),
        (b"3 1 1\n" + b"0 " * 2_000_000, ""),
        (EDGES.replace("choice: nic, count: 2", "choice: nic, count: 9999999").encode(), ""),
        (EDGES.replace("host[0:2]", "host[0:9999999]").encode(), ""),
        (CLUSTER.replace("n[01-04]", "n[1-131072]").replace("to: s1", "to: n[1-131072]").encode(),
         ""),
        (b"imported: x\nmachines:\n" + b"- {hosts: n, gpus: 1}\n" * 60_000, ""),
    ],
)  # fmt: skip
def test_bombs_are_refused_soon(content: bytes, kind: str) -> None:
    started = time.process_time()
    asked = ImportAsked(format=kind, gpus_per_host=8)
    with pytest.raises(InputError):
        fabric_of(import_fabric_text(content, "f", asked), asked)
    assert time.process_time() - started < 2
