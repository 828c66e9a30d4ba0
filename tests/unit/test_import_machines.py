"""Fabric dumps and machine files, each quirk with a small input of our own, rates by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planner.errors import SpecError
from topologies.fabric_import import ImportAsked, fabric_of, import_fabric_text
from topologies.imported_fabric import ImportedFabric


def read(text: str) -> ImportedFabric:
    return import_fabric_text(text.encode(), "f", ImportAsked())


LEAF = """Switch 8 "S-{0}" # "leaf {0}" base port 0 lid 1 lmc 0
[1](ab) "H-{0}0"[1](ab) # "host{0} HCA-1" lid 1 4xNDR s=4 w=2
[2]\t"H-{0}1"[1]\t\t# "host{0} mlx5_5" lid 1 4xNDR
[3] "S-spine"[{1}] # "spine" lid 1 {2}
[4] "S-spine"[{3}] # "spine" lid 1 4xNDR
Ca 1 "H-{0}0" # "host{0} HCA-1"
[1](ab) "S-{0}"[1] # lid 1 4xNDR
Ca 1 "H-{0}1" # "host{0} mlx5_5"
[1](ab) "S-{0}"[2] # lid 1 4xNDR
"""
SPINE = """Switch 8 "S-spine" # "spine" base port 0 lid 1 lmc 0
[1] "S-a"[3] # "a" lid 1 2xNDR
[2] "S-a"[4] # "a" lid 1 4xNDR
[3] "S-b"[3] # "b" lid 1 4xNDR
[4] "S-b"[4] # "b" lid 1 4xNDR
[5] "H-agg"[1] # "Mellanox Technologies Aggregation Node" lid 1 4xNDR
Ca 1 "H-agg" # "Mellanox Technologies Aggregation Node"
[1] "S-spine"[5] # lid 1 4xNDR
"""
DUMP = LEAF.format("a", 1, "2xNDR", 2) + LEAF.format("b", 3, "4xNDR", 4) + SPINE


def test_a_dump_keeps_parallel_and_half_width_links_and_leaves_aggregation_nodes_out() -> None:
    found = read(DUMP)
    fabric = fabric_of(found, ImportAsked())
    assert [(h.name, h.gpus) for h in found.hosts] == [("hosta", 2), ("hostb", 2)]
    # 4 lanes x 100 Gb/s = 50 GB/s; the half-width link carries 25
    assert fabric.nic.line_bytes_per_s == pytest.approx(50e9)
    assert fabric.graph["leaf-a"]["spine"]["capacity_bytes_per_s"] == pytest.approx(75e9)
    assert fabric.graph["leaf-b"]["spine"]["links"] == 2
    assert any("2xNDR, most are 4xNDR" in str(f) for f in found.findings)
    assert not any("agg" in str(v) for v in fabric.graph)


def test_an_adapter_without_a_machine_is_left_out_and_a_lost_port_is_reported() -> None:
    more = '[6] "H-x"[1] # "MT4129 ConnectX7   Mellanox Technologies" lid 1 4xNDR\n[7] "S-zz"[1]\n'
    text = DUMP.replace('[5] "H-agg"', f'{more}[5] "H-agg"')
    text += 'Ca 1 "H-x" # "MT4129 ConnectX7   Mellanox Technologies"\n[1] "S-spine"[6] # 4xNDR\n'
    said = [str(f) for f in read(text).findings]
    assert any("1 adapters do not say which machine" in s for s in said)
    assert any("'S-zz', which the dump does not describe" in s for s in said)


def test_switches_are_called_by_their_descriptions_where_these_tell_them_apart() -> None:
    about = {
        "S-1": "MF0;leaf01:MQM9700/U1",  # its system's name
        "S-2": "MF0;director:MCS8500/L01/U1",  # one chip of a chassis
        "S-3": "MF0;director:MCS8500/S01/U1",
        "S-4": "Quantum Mellanox Technologies",  # what it is, not which
        "S-5": "host1",  # a machine is called so
    }
    text = "".join(
        f'Switch 8 "{ident}" # "{words}" enhanced port 0 lid 9\n[1] "H-{ident}"[1] # 4xNDR\n'
        f'Ca 1 "H-{ident}" # "host{n} mlx5_0"\n[1] "{ident}"[1] # 4xNDR\n'
        for n, (ident, words) in enumerate(about.items(), 1)
    )
    text += 'Rt 2 "R-1" # "router1"\n[1] "S-1"[7] # 4xNDR\n'

    found = read(text)

    assert found.switches == ("leaf01", "director-L01-U1", "director-S01-U1", "sw-S-4", "sw-S-5")
    assert any("1 routers to other subnets: left out" in str(f) for f in found.findings)


def test_a_machines_name_may_have_spaces_before_the_device() -> None:
    about = ("gpu node 1 mlx5_0", "gpu node 1 mlx5_1", "gpu node 2 HCA-1", "n3 of rack 4")
    text = 'Switch 8 "S-1" # "leaf"\n'
    text += "".join(f'[{n}] "H-{n}"[1] # 4xNDR\n' for n in range(1, 5))
    for n, words in enumerate(about, 1):
        text += f'Ca 1 "H-{n}" # "{words}"\n[1] "S-1"[{n}] # 4xNDR\n'

    found = read(text)

    assert [(h.name, h.gpus) for h in found.hosts] == [
        ("gpu-node-1", 2), ("gpu-node-2", 1), ("n3", 1),
    ]  # fmt: skip


def test_machines_of_several_rates_have_that_of_most_and_it_is_said() -> None:
    rates = ("4xNDR", "4xHDR", "4xHDR", "4xXDR")  # 50, 25, 25 and 100 GB/s
    text = 'Switch 8 "S-1" # "leaf"\n'
    text += "".join(f'[{n}] "H-{n}"[1] # {rate}\n' for n, rate in enumerate(rates, 1))
    for n, rate in enumerate(rates, 1):
        text += f'Ca 1 "H-{n}" # "h{n} mlx5_0"\n[1] "S-1"[{n}] # {rate}\n'

    fabric = fabric_of(read(text), ImportAsked())

    assert fabric.nic.line_bytes_per_s == 25e9
    assert (
        "2 of 4 machines have another rate for a GPU (25 to 100 GB/s)"
        in (fabric.assumed["nic.rate"])
    )


def test_a_machine_with_more_adapters_than_any_has_is_asked_about() -> None:
    hosts = range(40)
    text = 'Switch 64 "S-1" # "leaf"\n'
    text += "".join(f'[{n + 1}] "H-{n}"[1] # 4xNDR\n' for n in hosts)
    text += "".join(f'Ca 1 "H-{n}" # "gpu {n}"\n[1] "S-1"[{n + 1}] # 4xNDR\n' for n in hosts)

    said = [str(f) for f in read(text).findings]

    assert any("'gpu' has 40 adapters: is it the first word of many names?" in s for s in said)


def test_a_dump_without_switches_is_refused() -> None:
    with pytest.raises(SpecError, match="has no switch"):
        read('Hca 1 "Hca1"\n')


def nccl(speed: str = "400000", second: str = "18") -> str:
    gpu = (
        '<pci busid="0000:0{0}:00.0" class="0x030200" device="0x2330"><gpu dev="{0}" sm="90">'
        '<nvlink target="fffffff:ff:ff.0" count="{1}" tclass="0x068000"/></gpu></pci>'
    )
    net = '<pci class="0x020700"><nic><net name="m{0}" speed="{1}"/></nic></pci>'
    inside = gpu.format(0, 18) + gpu.format(1, second) + net.format(0, speed) + net.format(1, speed)
    return f'<!-- own --><system version="1"><cpu numaid="-1">stray{inside}</cpu></system>'


def test_nvlinks_are_counted_and_priced_by_generation() -> None:
    found = read(nccl())
    assert found.scale_up_bytes_per_s == pytest.approx(450e9)  # 18 x 25 GB/s: NVLink 4
    assert found.nic_bytes_per_s == pytest.approx(50e9)  # 400,000 Mb/s
    assert found.accelerator == "H100-SXM"


@pytest.mark.parametrize("speed", ["200000000", "1000"])
def test_an_adapter_rate_that_cannot_be_is_not_used(speed: str) -> None:
    found = read(nccl(speed))
    assert found.nic_bytes_per_s is None
    assert "expected 10,000" in str(found.findings[0])


def test_a_gpu_with_fewer_links_than_the_others_is_reported() -> None:
    assert any("has 0 links" in str(f) for f in read(nccl(second="0")).findings)


def test_a_virtual_machines_file_has_gpus_by_class_only() -> None:
    pcis = '<pci busid="ffff:ff:01.0" class="0x030200" link_speed="" link_width="0"/>' * 8
    found = read(f"<system version='1'><cpu>{pcis}</cpu></system>")
    assert (found.hosts[0].gpus, found.scale_up_bytes_per_s) == (8, None)
    with pytest.raises(SpecError, match="0 GPUs"):
        read("<system version='1'/>")


def matrix(cell: str, size: int, gap: str) -> str:
    head = gap + gap.join(f"GPU{i}" for i in range(size)) + f"{gap}NIC0{gap}CPU Affinity"
    rows = [
        f"GPU{i}" + gap + gap.join(" X " if i == j else cell for j in range(size)) + gap + "PIX"
        for i in range(size)
    ]
    return "\x1b[4m" + head + "\x1b[0m\n" + "\n".join(rows) + "\n\nLegend:\n  X = Self\n"


@pytest.mark.parametrize("gap", ["\t", "   "])
def test_links_to_switches_are_not_counted_for_each_pair(gap: str) -> None:
    assert read(matrix("NV12", 8, gap)).scale_up_bytes_per_s == pytest.approx(300e9)  # A100
    assert read(matrix("NV2", 2, gap)).scale_up_bytes_per_s == pytest.approx(50e9)
    eighteen = read(matrix("NV18", 8, gap))
    assert eighteen.scale_up_bytes_per_s is None
    assert "NVLink 5" in str(eighteen.findings[0])
    assert "PCIe" in str(read(matrix("PHB", 2, gap)).findings[0])


def test_a_cut_matrix_is_refused_with_its_line() -> None:
    with pytest.raises(SpecError, match="f:3: expected GPU1 and 4 cells"):
        read("\n".join(matrix("NV2", 4, "\t").splitlines()[:2]) + "\nGPU1\tNV2")


def test_simulators_files_give_the_rates_they_state() -> None:
    text = "topology: [ Switch, Switch ]\nnpus_count: [ 8, 4 ]\nbandwidth: [ 400, 50 ]\n"
    fabric = fabric_of(read(text + "latency: [ 900, 1000 ]"), ImportAsked())
    assert fabric.capacities("supernode") == (8, 8, 8, 8)
    assert [t.bytes_per_s for t in fabric.tiers] == pytest.approx([400e9, 50e9])
    assert [t.latency_s for t in fabric.tiers] == pytest.approx([1.8e-6, 2e-6])
    with pytest.raises(SpecError, match=r"bandwidth.*'tbd'"):
        read(text.replace("400", "tbd") + "latency: [ 900, 1000 ]")


def test_the_pci_device_tells_the_accelerator_where_all_are_alike() -> None:
    lines = "".join(
        f'<object type="PCIDev" pci_type="0302 [10de:{device}] [10de:16c1] a1"/>'
        for device in ("2335", "2335")
    )
    text = f'<topology version="2.0"><object type="Machine">{lines}</object></topology>'

    alike = import_fabric_text(text.encode(), "f", ImportAsked())
    mixed = import_fabric_text(text.replace("2335", "2941", 1).encode(), "f", ImportAsked())

    assert alike.accelerator == "H200-SXM"  # 10de:2335 in the PCI ID repository
    assert mixed.accelerator == ""


def test_a_grace_machine_is_said_to_be_in_a_rack_that_its_file_does_not_show() -> None:
    gpu = '<pci busid="{0}" class="0x030200"><gpu sm="100"><nvlink target="f:ff.0" count="18"/>'
    gpu += '<c2c bw="450" count="1"/></gpu></pci>'
    text = f"<system><cpu>{gpu.format('8:1:0.0')}{gpu.format('9:1:0.0')}</cpu></system>"

    found = import_fabric_text(text.encode(), "gb200.xml", ImportAsked())

    assert found.scale_up_bytes_per_s == 18 * 50e9
    assert any("in racks whose NVLink joins machines" in str(f) for f in found.findings)


def test_two_leaves_joined_by_a_few_links_pass_only_what_these_carry() -> None:
    machines = [(f"node{n}", "sw1" if n < 3 else "sw2") for n in (1, 2, 3)]
    vertices = [
        {"id": f"{host}.{kind}{g}", "kind": kind, "host": host, "supernode": host}
        for host, _ in machines for g in (0, 1) for kind in ("gpu", "nic")
    ] + [{"id": name, "kind": "leaf"} for name in ("sw1", "sw2")]  # fmt: skip
    edges = [
        {"source": f"{host}.nic{g}", "target": to, "capacity_bytes_per_s": 25e9}
        for host, leaf in machines for g in (0, 1) for to in (f"{host}.gpu{g}", leaf)
    ]  # fmt: skip
    edges.append({"source": "sw1", "target": "sw2", "capacity_bytes_per_s": 31.25e9, "links": 2})

    fabric = fabric_of(read(json.dumps({"nodes": vertices, "links": edges})), ImportAsked())

    leaf, cluster = fabric.tier("leaf"), fabric.tier("cluster")
    assert [(d.name, len(d.gpus), d.uplink_bytes_per_s) for d in leaf.domains] == [
        ("sw1", 4, 31.25e9),
        ("sw2", 2, 31.25e9),
    ]
    assert cluster.bytes_per_s == 25e9
    assert cluster.shared_bytes_per_s == 31.25e9 / 4
    # three links, not two, at the 0.225 us that the catalogue's generic cluster has for one
    assert cluster.latency_s - leaf.latency_s == pytest.approx(0.225e-6)


def test_adapters_for_storage_are_no_part_of_what_a_gpu_gets() -> None:
    gpu = '<pci class="0x060400"><pci class="0x030200"><gpu dev="{0}" sm="80"/></pci></pci>'
    net = '<pci class="0x020700"><nic><net name="m{0}" speed="{1}"/></nic></pci>'
    beside = "".join(
        f'<pci class="0x060400">{gpu.format(g)}{net.format(g, 200_000)}</pci>' for g in range(2)
    )
    alone = net.format(2, 200_000) + net.format(3, 1_000)  # storage, and management

    found = read(f'<system version="1"><cpu numaid="0">{beside}{alone}</cpu></system>')

    assert found.nic_bytes_per_s == 25e9  # 200 Gb/s for each GPU
    assert any("2 of 4 adapters are on no PCIe switch with a GPU" in str(f) for f in found.findings)


def pairs_of_two() -> str:
    cells = [["X" if i == j else "NV12" if i // 2 == j // 2 else "SYS" for j in range(4)]
             for i in range(4)]  # fmt: skip
    rows = [f"GPU{i}\t" + "\t".join(row) for i, row in enumerate(cells)]
    return "\n".join(["\tGPU0\tGPU1\tGPU2\tGPU3", *rows, ""])


ONLY_PCIE = "".join(f'<pci class="0x030200"><gpu dev="{g}" sm="89"/></pci>' for g in range(4))


@pytest.mark.parametrize(
    "text",
    [
        matrix("PHB", 4, "\t"),
        pairs_of_two(),
        f'<system version="1"><cpu numaid="0">{ONLY_PCIE}</cpu></system>',
    ],
)
def test_gpus_that_only_pcie_joins_borrow_no_nvlink_rate(text: str, tmp_path: Path) -> None:
    asked = ImportAsked(machines=2)
    found = import_fabric_text(text.encode(), "f", asked)
    with pytest.raises(SpecError, match=r"no links to each other but PCIe.*give --links FILE"):
        fabric_of(found, asked)

    rates = tmp_path / "rates.yaml"
    rates.write_text("scale_up: 12 GB/s\n", encoding="utf-8")
    told = fabric_of(found, replace(asked, links=rates))

    assert told.tier("supernode").bytes_per_s == 12e9


def test_gpus_that_share_an_adapter_borrow_their_part_of_its_rate() -> None:
    text = matrix("NV12", 4, "\t") + "NIC0\tPHB\tPHB\tPHB\tPHB\n"
    asked = ImportAsked(machines=2, like="hgx-a100")
    whole = fabric_of(import_fabric_text(matrix("NV12", 4, "\t").encode(), "f", asked), asked)

    shared = fabric_of(import_fabric_text(text.encode(), "f", asked), asked)

    assert shared.nic.line_bytes_per_s == whole.nic.line_bytes_per_s / 4
    assert shared.assumed["nic.rate"].endswith(", and 0.25 adapters for a GPU")


def _tray(host: str, speed: str) -> str:
    """Return two processors of one machine with two GPUs and two adapters each."""
    gpu = (
        '<pci busid="000{0}:06:00.0" class="0x030200" device="0x2941"><gpu dev="{0}" sm="100">'
        '<nvlink target="fffffff:ffff:ff" count="18" tclass="0x068000"/>'
        '<c2c bw="43750" count="10"/></gpu></pci>'
    )
    net = '<pci class="0x020700"><nic><net name="mlx5_{0}" port="1" speed="{1}"/></nic></pci>'
    return "".join(
        f'<cpu host_hash="{host}" numaid="{socket}" arch="arm64">'
        + "".join(gpu.format(n) + net.format(n, speed) for n in (2 * socket, 2 * socket + 1))
        + "</cpu>"
        for socket in (0, 1)
    )


def test_machines_that_nccl_writes_as_one_are_told_apart_and_share_their_nvlink() -> None:
    trays = "".join(_tray(f"0x{host:016x}", "400000") for host in range(1, 4))

    found = read(f'<system version="2">{trays}</system>')
    fabric = fabric_of(found, ImportAsked())

    assert [(h.name, h.gpus) for h in found.hosts] == [
        ("machine1", 4), ("machine2", 4), ("machine3", 4),
    ]  # fmt: skip
    assert fabric.capacities("supernode") == (12,)
    assert [len(host.gpus) for host in fabric.hosts] == [4, 4, 4]
    # 18 x 50 GB/s of NVLink; mlx5_0 to mlx5_3 of every tray, 400 Gb/s for each GPU
    assert found.scale_up_bytes_per_s == pytest.approx(900e9)
    assert found.nic_bytes_per_s == pytest.approx(50e9)
    assert not any("racks whose NVLink" in str(f) for f in found.findings)


def test_what_nccl_reaches_over_tcp_is_no_adapter() -> None:
    """As dumped on a desktop machine: NCCL writes 10 Gb/s for what it does not know."""
    sockets = "".join(
        f'<nic><net name="{label}" dev="{n}" speed="10000" port="0" guid="0x{n}" gdr="0"/></nic>'
        for n, label in enumerate(("wlP9s9", "tailscale0"))
    )
    gpu = (
        '<pci class="0x030000" device="0x2e12"><gpu dev="0" sm="121">'
        '<c2c bw="43125" count="8"/></gpu></pci>'
    )

    found = read(
        f'<system version="1"><cpu host_hash="0x1" numaid="-1">{gpu}{sockets}</cpu></system>'
    )

    assert found.nic_bytes_per_s is None
    said = [str(f) for f in found.findings]
    assert any("2 interfaces are TCP sockets" in s for s in said)
    assert not any("racks" in s for s in said)


def test_several_adapters_beside_each_gpu_are_said_to_be_taken_as_one() -> None:
    head = "\tGPU0\tGPU1\tNIC0\tNIC1\tNIC2\tNIC3\tNIC4\tCPU Affinity\n"
    text = head + (
        "GPU0\t X \tNV18\tPIX\tPXB\tSYS\tSYS\tNODE\t0-55\n"
        "GPU1\tNV18\t X \tSYS\tSYS\tPIX\tPIX\tSYS\t56-111\n"
        "NIC0\tPIX\tSYS\t X \tPIX\tSYS\tSYS\tNODE\nNIC1\tPXB\tSYS\tPIX\t X \tSYS\tSYS\tNODE\n"
        "NIC2\tSYS\tPIX\tSYS\tSYS\t X \tPIX\tSYS\nNIC3\tSYS\tPIX\tSYS\tSYS\tPIX\t X \tSYS\n"
        "NIC4\tNODE\tSYS\tNODE\tNODE\tSYS\tSYS\t X \n"
    )

    said = [str(f) for f in read(text).findings]

    assert any("2 adapters are on the PCIe switch of each GPU: taken as one" in s for s in said)


def test_adapters_that_two_gpus_share_are_not_said_to_be_several() -> None:
    """A DGX A100: two adapters and two GPUs on a PCIe switch."""
    text = (
        "\tGPU0\tGPU1\tNIC0\tNIC1\nGPU0\t X \tNV12\tPXB\tPXB\nGPU1\tNV12\t X \tPXB\tPXB\n"
        "NIC0\tPXB\tPXB\t X \tPXB\nNIC1\tPXB\tPXB\tPXB\t X \n"
    )

    assert not any("adapters are on" in str(f) for f in read(text).findings)


def test_links_at_a_speed_that_no_one_knows_are_named() -> None:
    found = read(DUMP.replace("4xNDR", "4xZDR"))

    assert any("link at 4xZDR: not a speed we know" in str(f) for f in found.findings)
    assert {one.bytes_per_s for one in found.links} == {None, 25e9}


def test_nvlinks_that_are_all_down_leave_pcie_only() -> None:
    gpu = (
        '<pci class="0x030200" device="0x2901"><gpu dev="{0}" sm="100">'
        '<nvlink target="0000:05:00.0" count="0" tclass="0x068000"/></gpu></pci>'
    )
    found = read(f"<system><cpu>{gpu.format(0)}{gpu.format(1)}</cpu></system>")

    with pytest.raises(SpecError, match="some GPUs of the machine have no links"):
        fabric_of(found, ImportAsked())
