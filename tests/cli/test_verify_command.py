"""``planner export`` and ``planner verify`` as a user runs them, on one plan."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import run_here as run


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("plan") / "plan.json"
    words = ("--supernode", 8, "--gpus", 32, "--model", "llama-3.1-8b", "--tp", 8, "--dp", 4)
    made = run("place", *words, "--out", file)
    assert made.code == 0, made.err
    return file


def test_the_plan_itself_verifies_without_a_difference(plan: Path, tmp_path: Path) -> None:
    seats = tmp_path / "hosts"
    assert run("export", plan, "--to", "slurm", "--out", seats).code == 0
    told = json.loads(run("verify", plan, "--allocation", seats, "--json").out)
    assert told["planned"] == told["allocated"]
    planned = json.loads(plan.read_text())["cut"]["objective_bytes"]
    assert told["planned"]["cut_bytes"] == pytest.approx(planned)
    assert told["reordering"]["moved_ranks"] >= 0


def test_a_scattered_allocation_crosses_more_and_the_best_order_mends_it(
    plan: Path, tmp_path: Path
) -> None:
    scattered, best = tmp_path / "map.csv", tmp_path / "best.csv"
    rows = [f"{r},sn{r % 4:02d}.board00,{r // 4}" for r in range(32)]
    scattered.write_text("\n".join(["rank,host,slot", *rows]))
    words = ("verify", plan, "--allocation", scattered, "--rank-map", best, "--json")
    told = json.loads(run(*words).out)
    assert told["allocated"]["cut_bytes"] > told["planned"]["cut_bytes"]
    assert told["allocated"]["step_s"] > told["planned"]["step_s"]
    assert told["best"]["cut_bytes"] == pytest.approx(told["planned"]["cut_bytes"])
    tp = next(g for g in told["groups"] if g["family"].startswith("tp_"))
    assert (tp["crossing_planned"], tp["crossing_allocated"]) == (0, 4)  # 32 / 8 groups of TP
    mended = json.loads(run("verify", plan, "--allocation", best, "--json").out)
    assert mended["allocated"]["cut_bytes"] == told["best"]["cut_bytes"]


def test_an_allocation_is_held_against_the_real_cluster(plan: Path, tmp_path: Path) -> None:
    topology, nodes = tmp_path / "topology.conf", tmp_path / "nodes"
    topology.write_text("SwitchName=r Switches=s[1-2]\nSwitchName=s1 Nodes=n[01-04]\n"
                        "SwitchName=s2 Nodes=n[05-08]\n")  # fmt: skip
    nodes.write_text("SLURM_JOB_NODELIST=n[02,04-06]\n")
    told = json.loads(
        run("verify", plan, "--allocation", nodes, "--topology", topology, "--json").out
    )
    assert told["allocation"] == {"gpus": 32, "kind": "nodelist", "machines": 4}
    assert told["best"]["cut_bytes"] <= told["allocated"]["cut_bytes"]
    assert told["reordering"]["gpus"][0].startswith("n0")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n[1-4]", "not in generic"),
        ("", "empty"),
        ("sn00.board00", "24 too few"),
        ("n[1", "closed"),
    ],
)
def test_an_allocation_that_cannot_be_is_refused(
    plan: Path, tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "a"
    file.write_text(text)
    refused = run("verify", plan, "--allocation", file)
    assert refused.code == 2
    assert said in refused.err


def test_an_unknown_kind_of_export_names_those_there_are(plan: Path) -> None:
    refused = run("export", plan, "--to", "pbs")
    assert refused.code == 2
    assert "mpi-rankfile" in refused.err


def test_topology_import_reports_what_is_odd_and_assumed(tmp_path: Path) -> None:
    file, graph = tmp_path / "topology.conf", tmp_path / "graph.json"
    file.write_text("SwitchName=r Switches=a,b\nSwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n2\n")
    words = ("topology", "import", file, "--gpus-per-node", 8, "--graph", graph)
    told = json.loads(run(*words, "--json").out)
    assert told["gpus"] == 16
    assert "'n2' is on 2 switches" in told["findings"][0]["message"]
    assert "nic.rate" in told["assumed"]
    again = json.loads(run("topology", "import", graph, "--json").out)
    assert [t["capacities"] for t in again["tiers"]] == [t["capacities"] for t in told["tiers"]]
    assert run("topology", "import", file).code == 2  # GPUs of a machine unknown


CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
    "intermediate_size": 8192, "num_attention_heads": 16, "num_key_value_heads": 8,
    "num_hidden_layers": 16, "vocab_size": 32000, "tie_word_embeddings": False,
    "max_position_embeddings": 8192,
}  # fmt: skip


def test_a_plan_of_a_users_own_config_is_read_without_that_file(tmp_path: Path) -> None:
    config, file, seats = tmp_path / "mine.json", tmp_path / "plan.json", tmp_path / "hosts"
    config.write_text(json.dumps(CONFIG))
    words = ("--supernode", 8, "--gpus", 16, "--model", config, "--tp", 8, "--dp", 2)
    assert run("place", *words, "--out", file).code == 0
    config.unlink()

    assert run("export", file, "--to", "slurm", "--out", seats).code == 0
    found = run("verify", file, "--allocation", seats, "--json")

    assert found.code == 0, found.err
    told = json.loads(found.out)
    assert told["planned"] == told["allocated"]
    assert "model" not in told["inputs"]["assumed"]


def test_each_family_says_its_bytes_before_and_after(plan: Path, tmp_path: Path) -> None:
    scattered = tmp_path / "map.csv"
    rows = [f"{r},sn{r % 4:02d}.board00,{r // 4}" for r in range(32)]
    scattered.write_text("\n".join(["rank,host,slot", *rows]))

    told = json.loads(run("verify", plan, "--allocation", scattered, "--json").out)

    for kind, column in (("planned", "planned"), ("allocated", "allocated"), ("best", "best")):
        total = sum(row[f"cut_{column}_bytes"] for row in told["groups"])
        assert total == pytest.approx(told[kind]["cut_bytes"])
    # Ranks 0, 4, 8 ... of a DP group of four sat in four machines; now 8 apart, all in one.
    dp = [row for row in told["groups"] if row["degree"] == "dp"]
    assert {(row["crossing_planned"], row["crossing_allocated"]) for row in dp} == {(8, 0)}
    assert told["fastest"]["step_s"] <= told["allocated"]["step_s"]


def test_an_uneven_allocation_with_machines_to_spare_is_seated_anew(
    plan: Path, tmp_path: Path
) -> None:
    """The plan's four machines of eight, on a cluster of six with 4, 8, 8, 8, 4 and 8 GPUs."""
    topology, given = tmp_path / "cluster.yaml", tmp_path / "hosts"
    conf = tmp_path / "topology.conf"
    conf.write_text("SwitchName=s Nodes=n[1-6]\n")
    wrote = run("topology", "import", conf, "--gpus-per-node", 8, "--out", topology)
    assert wrote.code == 0, wrote.err
    text = topology.read_text()
    head, _, tail = text.partition("machines:\n- hosts: n[1-6]\n  gpus: 8\n")
    sizes = (4, 8, 8, 8, 4, 8)
    links = tail.partition("switches:")[0]
    rows = "".join(f"- hosts: n{i}\n  gpus: {g}\n{links}" for i, g in enumerate(sizes, 1))
    topology.write_text(f"{head}machines:\n{rows}switches:{tail.partition('switches:')[2]}")
    given.write_text("n[1-5]\n")

    found = run("verify", plan, "--allocation", given, "--topology", topology, "--json")

    assert found.code == 0, found.err
    told = json.loads(found.out)
    assert told["allocation"] == {"kind": "nodelist", "machines": 5, "gpus": 32}
    # 4 + 8 + 8 + 8 + 4: TP of eight fits whole in three machines, and one group must be split.
    tp = [row for row in told["groups"] if row["degree"] == "tp"]
    assert {row["crossing_allocated"] for row in tp} == {4}  # in the given order all are
    assert {row["crossing_best"] for row in tp} == {1}


def test_machines_shuffled_over_the_leaves_show_in_the_leaf_tier_and_can_be_put_back(
    tmp_path: Path,
) -> None:
    """Whole machines moved: no supernode's border sees it, the leaves' do."""
    file, given, best = tmp_path / "plan.json", tmp_path / "hosts", tmp_path / "best.csv"
    words = ("--tp", 8, "--pp", 4, "--dp", 16, "--gpus", 512)
    made = run("place", "--cluster", "hgx-h100", "--model", "llama-3.1-8b", *words, "--out", file)
    assert made.code == 0, made.err
    # every other machine first: each pipeline stage and replica now has half of it in each leaf
    machines = [f"sn{i:02d}.board00" for i in (*range(0, 64, 2), *range(1, 64, 2))]
    given.write_text("".join(f"{name} slots=8\n" for name in machines))

    seen = run("verify", file, "--allocation", given, "--rank-map", best, "--out", tmp_path / "v")

    told = json.loads((tmp_path / "v").read_text())
    tiers = {row["tier"]: row for row in told["tiers"]}
    assert list(tiers) == ["supernode", "leaf"]
    of_plan = {row["tier"]: row for row in json.loads(file.read_text())["tiers"]}
    for name, row in tiers.items():
        assert row["cut_planned_bytes"] == pytest.approx(of_plan[name]["cut_bytes"])
        assert row["cut_best_bytes"] == pytest.approx(row["cut_planned_bytes"])
    assert tiers["supernode"]["cut_allocated_bytes"] == told["planned"]["cut_bytes"]
    assert tiers["leaf"]["cut_allocated_bytes"] > 2 * tiers["leaf"]["cut_planned_bytes"]
    text = " ".join(seen.out.split())
    assert "But more crosses the borders of the leaves than planned" in text
    assert "less cross the borders of the leaves: --rank-map FILE" in text

    mended = json.loads(run("verify", file, "--allocation", best, "--json").out)
    leaf = next(row for row in mended["tiers"] if row["tier"] == "leaf")
    assert leaf["cut_allocated_bytes"] == tiers["leaf"]["cut_best_bytes"]


def test_a_busy_machines_gpus_keep_their_numbers_with_and_without_the_clusters_file(
    tmp_path: Path,
) -> None:
    cluster, free, made = tmp_path / "t.conf", tmp_path / "free", tmp_path / "plan.json"
    cluster.write_text("SwitchName=s0 Nodes=n[0-2]\n", encoding="utf-8")
    free.write_text("n0:4-7\nn2:0,2,4,6\n", encoding="utf-8")
    ran = run(
        "place", "--cluster", f"{cluster},gpus-per-node=8", "--gpus", 8, "--free", free,
        "--model", "llama-3.1-8b", "--tp", 4, "--dp", 2, "--out", made, "--ignore-memory",
    )  # fmt: skip
    assert ran.code == 0, ran.err

    with_it = run("export", made, "--to", "rank-map")
    cluster.rename(tmp_path / "moved.conf")
    without = run("export", made, "--to", "rank-map")

    assert sorted(line.split(",", 1)[1] for line in with_it.out.splitlines()[1:]) == [
        f"n0,{slot},n0.gpu0{slot},n0" for slot in (4, 5, 6, 7)
    ] + [f"n2,{slot},n2.gpu0{slot},n2" for slot in (0, 2, 4, 6)]
    assert without.out == with_it.out


def test_a_machine_in_place_of_another_is_named_and_no_order_is_advised_that_gains_nothing(
    tmp_path: Path,
) -> None:
    tree, plan, hosts = tmp_path / "topology.conf", tmp_path / "plan.json", tmp_path / "hosts"
    tree.write_text("SwitchName=s0 Nodes=n[1-3]\nSwitchName=s1 Nodes=n[4-6]\n"
                    "SwitchName=top Switches=s[0-1]\n")  # fmt: skip
    words = ("--cluster", f"{tree},gpus-per-node=8,rates-from=hgx-h100", "--gpus", 32, "--model",
             "llama-3.1-8b", "--tp", 8, "--dp", 4)  # fmt: skip
    assert run("place", *words, "--out", plan).code == 0
    assert run("export", plan, "--to", "slurm", "--out", hosts).code == 0
    machines = list(dict.fromkeys(re.findall(r"^\w\S*", hosts.read_text(), re.MULTILINE)))
    spare = next(f"n{i}" for i in range(1, 7) if f"n{i}" not in machines)
    hosts.write_text("\n".join([machines[0], spare, *machines[2:]]))

    found = run("verify", plan, "--allocation", hosts)

    assert found.code == 0, found.err
    told = " ".join(found.out.split())
    assert f"Not as planned: {spare} in place of {machines[1]}." in told
    assert "Seated anew" not in told
    assert "faster than the one given by 0.1 % or more" in told
