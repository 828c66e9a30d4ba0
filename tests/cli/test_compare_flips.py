"""A flip that is printed holds where a comparison is made on either side of it."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.compare_inputs import Wanted, read_candidates
from cli.planner_app import main
from planner.errors import InfeasibleError
from planner.search.compare import Compared, Entry, compare
from planner.search.ties import told_apart

CATALOGUE = Path(__file__).parents[2] / "topologies" / "catalogue"
FEW = {"cp": 1, "zero_stage": 1, "micro_batch": 1, "recompute": "selective"}
"""Held fast in every run, so that little is searched."""
CLOSE = 2e-3
"""What is first or best stays so until another is 0.1 % faster; near it, seats may differ [1]."""
NETWORK = ("nic_rate", "nic_latency", "in_flight", "oversubscription")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is compared: some supernodes of the generic family, with small leaves."""

    model: str
    sizes: tuple[int, ...]
    gpus: int
    batch: int
    seq: int = 4096
    fixed: tuple[tuple[str, Any], ...] = tuple(FEW.items())


SMALL = Job(model="mixtral-8x7b", sizes=(8, 32), gpus=32, batch=256)
CROWDED = replace(SMALL, sizes=(4, 16), batch=64)  # its experts feel the network
WIDE = (CROWDED, *(replace(SMALL, model=one, fixed=()) for one in ("llama-3.1-8b", SMALL.model)))
LATE = Job(model="llama-3.1-8b", sizes=(4, 8), gpus=16, batch=16, seq=256,
           fixed=(*FEW.items(), ("tp", 8)))  # fmt: skip
"""Short sequences whose tensor groups cross supernodes of 4: every start-up is felt."""
ACROSS = Job(model="llama-3.1-8b", sizes=(4, 12), gpus=32, batch=64)
"""Supernodes of 12 that share leaves of 8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A comparison as the command tells it: its page, its words run together, its document."""

    page: str
    document: dict[str, Any]

    @property
    def words(self) -> str:
        return " ".join(self.page.split())


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Job], Told]:
    """Return what runs ``planner compare`` on the own cluster, once for each job."""
    folder = tmp_path_factory.mktemp("flips")
    cluster = folder / "own.yaml"
    cluster.write_text(yaml.safe_dump(own_cluster()))

    @cache
    def run(job: Job) -> Told:
        out, page = folder / "out.json", io.StringIO()
        options = {"zero_stage": "zero"}
        fixed = [
            word
            for name, value in job.fixed
            for word in (f"--{options.get(name, name).replace('_', '-')}", str(value))
        ]
        with contextlib.redirect_stdout(page), contextlib.redirect_stderr(io.StringIO()):
            code = main([
                "compare", "--cluster", str(cluster), "--supernode", ",".join(map(str, job.sizes)),
                "--gpus", str(job.gpus), "--model", job.model, "--seq", str(job.seq),
                "--global-batch", str(job.batch), *fixed, "--out", str(out),
            ])  # fmt: skip
        assert code == 0
        return Told(page=page.getvalue(), document=json.loads(out.read_text()))

    return run


def own_cluster() -> dict[str, Any]:
    """Return the generic cluster with eight GPUs on a leaf, so that leaves have uplinks."""
    cluster: dict[str, Any] = yaml.safe_load((CATALOGUE / "generic.yaml").read_text())
    cluster["name"] = "own"
    cluster["network"]["leaf"] |= {"gpus": 8, "uplinks": 8}
    return cluster


def changed_cluster(name: str, value: float, factor: float) -> dict[str, Any]:
    """Return the own cluster with a property of its network at *value*, *factor* times today's."""
    cluster = own_cluster()
    nic, network = cluster["nic"], cluster["network"]
    if name == "nic_rate":
        rate = f"{value * 8 / 1e9:.9f} Gb/s"
        nic["rate"] = network["leaf"]["uplink_rate"] = network["spine"]["uplink_rate"] = rate
        nic["pcie"] = f"{float(nic['pcie'].split()[0]) * factor:.9f} GB/s"
    elif name == "nic_latency":
        for part, key in ((nic, "startup"), *((network[t], "latency") for t in SWITCHES)):
            part[key] = f"{float(part[key].split()[0]) * factor:.9f} us"
    elif name == "in_flight":
        nic["in_flight"] = round(value)
    else:
        for tier in ("leaf", "spine"):
            network[tier]["uplink_rate"] = f"{400 / factor:.9f} Gb/s"
    return cluster


SWITCHES = ("leaf", "spine", "core")


def compared_at(
    job: Job, flip: dict[str, Any], value: float, folder: Path, **degrees: int
) -> Compared:
    """Return the comparison of *job* with a flip's property at *value*, made anew."""
    name, now = flip["property"], flip["value"] / flip["factor"]
    cluster, model = folder / "there.yaml", job.model
    cluster.write_text(yaml.safe_dump(
        changed_cluster(name, value, value / now) if name in NETWORK else own_cluster()
    ))  # fmt: skip
    if name == "experts":
        text = (CATALOGUE.parent / "models" / f"{job.model}.yaml").read_text()
        model = str(folder / "model.yaml")
        Path(model).write_text(text.replace(f"experts: {now:.0f}", f"experts: {value:.0f}"))
    fixed = {"seq": job.seq, "global_batch": job.batch, **dict(job.fixed), **degrees}
    if name == "seq":
        fixed["seq"] = round(value)
    asked = read_candidates(Wanted(
        clusters=(str(cluster),), supernodes=job.sizes, gpus=job.gpus, model=model,
        layout_files=(), order="tp-cp-ep-dp-pp", layout=fixed,
    ))  # fmt: skip
    return compare(asked.candidates)


def assert_there(
    job: Job, flip: dict[str, Any], value: float, said: str, winner: str, folder: Path
) -> None:
    """Hold what a flip says of one of its sides against the comparison made there."""
    if said == "nothing fits":
        with pytest.raises(InfeasibleError):
            compared_at(job, flip, value, folder)
        return
    found = compared_at(job, flip, value, folder)
    first, second, *_ = sorted(found.ranked, key=lambda one: found.fastest[name_of(one)].token_s)
    token_s = {name: one.token_s for name, one in found.fastest.items()}
    if flip["kind"] == "winner":
        assert token_s[said] <= token_s[name_of(first)] * (1 + CLOSE), flip
    elif flip["kind"] == "tie":
        sure = told_apart(
            token_s[name_of(first)], token_s[name_of(second)], first.finalist.step.spread,
            second.finalist.step.spread,
        )  # fmt: skip
        assert said == (f"{name_of(first)} surely first" if sure else "a tie at the top"), flip
    else:
        degrees = {name: int(n) for name, n in re.findall(r"([a-z]+)([0-9]+)", said)}
        kept = compared_at(job, flip, value, folder, **degrees)
        assert kept.fastest[winner].token_s <= token_s[winner] * (1 + CLOSE), flip


def name_of(one: Entry) -> str:
    return one.candidate.name


def winner_of(document: dict[str, Any]) -> str:
    """Return the cluster whose fastest layout is first: from it flips are looked for."""
    name: str = min(document["ranked"], key=lambda one: one["fastest"]["step_s"])["cluster"]
    return name


def assert_both_sides(job: Job, said: Told, name: str, folder: Path) -> None:
    flips = [one for one in said.document["flips"] if one["property"] == name]
    assert flips
    for flip in flips:
        for side, words in (("held_value", "before"), ("value", "after")):
            assert_there(job, flip, flip[side], flip[words], winner_of(said.document), folder)


def test_both_sides_of_a_flip_of_the_nic_are_what_a_comparison_of_such_clusters_finds(
    told: Callable[[Job], Told], tmp_path: Path
) -> None:
    assert_both_sides(SMALL, told(SMALL), "nic_rate", tmp_path)


@pytest.mark.nightly  # the NIC's flips are held against comparisons in every run
@pytest.mark.parametrize(
    ("job", "name"),
    [
        pytest.param(job, name, id=f"{job.model}-{job.sizes[0]}-{job.batch}-{name}")
        for job in WIDE for name in (*NETWORK, "seq", "experts")
    ] + [
        pytest.param(LATE, "nic_latency", id="late"),
        pytest.param(ACROSS, "oversubscription", id="across-leaves"),
    ],
)  # fmt: skip
def test_both_sides_of_a_flip_of_anything_are_what_a_comparison_there_finds(
    told: Callable[[Job], Told], tmp_path: Path, job: Job, name: str
) -> None:
    found = told(job)
    if not any(one["property"] == name for one in found.document["flips"]):
        pytest.skip(f"{job.model}: nothing changes with {name}")
    assert_both_sides(job, found, name, tmp_path)


def test_every_flip_starts_from_the_table_and_none_is_shown_that_seats_contradict(
    told: Callable[[Job], Told],
) -> None:
    found = told(SMALL).document

    first, second, *_ = found["ranked"]
    sure = f"{first['cluster']} surely first"
    today = {
        "winner": first["cluster"], "layout": degrees_of(first),
        "tie": "a tie at the top" if second["tie_with_first"] else sure,
    }  # fmt: skip
    assert found["flips"]
    for flip in found["flips"]:
        assert flip["before"] == today[flip["kind"]] != flip["after"]
        assert flip["seated"] == {
            "holds": True, "before": flip["before"], "after": flip["after"],
        }  # fmt: skip
    for flip in found["contradicted_flips"]:
        assert not flip["seated"]["holds"]


def degrees_of(entry: dict[str, Any]) -> str:
    names = ("tp", "cp", "ep", "etp", "dp", "pp")
    degrees = [f"{name}{entry['layout'][name]}" for name in names if entry["layout"][name] > 1]
    return " ".join(degrees) or "dp1"


def test_the_page_says_that_its_flips_are_seated_and_which_of_rank_order_are_none(
    told: Callable[[Job], Told],
) -> None:
    found = told(SMALL)

    assert (
        "Each is of layouts with every rank in a seat, on both sides; what is first" in found.words
    )
    assert found.words.count("Not with seats:") == len(found.document["contradicted_flips"])
    assert "8 values on each side, x 1.54 apart" in found.words


@pytest.mark.nightly  # two comparisons more; a part that changes no link is looked at in every run
def test_what_twice_the_supernode_brings_is_what_a_comparison_of_both_finds(
    told: Callable[[Job], Told],
) -> None:
    found = told(CROWDED).document
    twice = told(replace(CROWDED, sizes=(8, 32))).document

    for size in CROWDED.sizes:
        gains = {one["name"]: one for one in found["gains"][f"own-sn{size}"]}
        bigger = next(one for one in twice["ranked"] if one["supernode"] == 2 * size)
        assert gains["supernodes of twice the size"]["step_s"] == pytest.approx(
            bigger["fastest"]["step_s"], rel=1e-3
        )
        assert gains["twice the in-flight limit"]["gain_share"] == 0  # 8 of 512 KiB do for 50 GB/s


def test_a_part_that_changes_no_link_wins_nothing_and_no_part_loses(
    told: Callable[[Job], Told],
) -> None:
    found = told(SMALL).document["gains"]

    for gains in found.values():
        shares = {one["name"]: one["gain_share"] for one in gains}
        # 8 transactions of 512 KiB in 20 us are 210 GB/s, four times the NIC's line rate
        assert shares["twice the in-flight limit"] == 0
        assert shares["half the oversubscription"] == 0
        assert min(shares.values()) >= 0
    in_32 = {one["name"]: one["gain_share"] for one in found["own-sn32"]}
    assert in_32["one more NIC a GPU"] == 0  # one supernode holds the job
    assert in_32["twice the scale-up rate"] > 0
