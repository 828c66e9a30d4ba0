"""``planner report`` of a comparison, of folders, and of what is neither."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from cli.compare_models import models_document
from cli.planner_output import json_text
from planner.units import format_bytes
from tests.cli.browser import Browser, opened
from tests.conftest import Ran
from tests.report_plans import HOSTILE, small_plan

Planner = Callable[..., Ran]
SCHEMA = Path(__file__).parents[2] / "cli" / "schemas" / "compare-models.json"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a comparison of 32 GPUs in supernodes of 8 and of 16, of a model with experts.

    The layout is given: which one would be chosen is asked elsewhere, and takes long.
    """
    from cli.planner_app import main

    path = tmp_path_factory.mktemp("compared") / "sizes.json"
    sizes = ["--supernode", "8,16", "--gpus", "32", "--model", "mixtral-8x7b"]
    given = ["--tp", "1", "--cp", "1", "--ep", "8", "--pp", "4", "--vpp", "1", "--zero", "1"]
    assert main(["compare", *sizes, *given, "--json", "--out", str(path)]) == 0
    return path


def test_a_comparison_becomes_a_page_with_its_own_numbers(planner: Planner, compared: Path) -> None:
    page = planner("report", str(compared)).out

    document = json.loads(compared.read_text())
    lead = re.findall(r'<p class="lead">(.*?)</p>', page)
    assert len(lead) == 3
    assert lead[0].startswith("Take generic-sn")
    assert re.search(r"<p>In the next three pictures generic-sn\d+ is blue", page)
    for one in document["ranked"]:
        assert f"{one['step']['tokens_per_s']:,.0f}" in page
    for heading in ("Candidates side by side", "Where the winner flips, and where to spend",
                    "Parts, power and money", "Assumed numbers and premises"):  # fmt: skip
        assert f">{heading}</h2>" in page
    flips = page.partition("Where the winner flips, all else equal")[2].partition("</table>")[0]
    assert flips.count("<tr") == 1 + len(document["flips"])
    assert document["inputs"]["sha256"] in page
    for one in document["inputs"]["clusters"]:
        assert all(text.split(": ")[0] in page for text in one["assumed"].values())
    # nobody says what switches and NICs of the generic cluster draw
    assert "The power lacks leaf switch, NIC, scale-up switch" in page
    looked_at = (
        "from 1/32 to 32 times what it is (experts: a quarter to 8 times; in flight: 1 at least)"
    )
    assert looked_at in page


def test_the_flips_over_the_network_stand_with_their_units(
    planner: Planner, compared: Path, tmp_path: Path
) -> None:
    document = json.loads(compared.read_text())
    flip = {"kind": "winner", "before": "generic-sn8", "after": "generic-sn16", "factor": 0.5,
            "held_factor": 0.51, "held_value": 1.0, "seated": None}  # fmt: skip
    seated = {"holds": False, "before": "generic-sn8", "after": "a tie at the top"}
    document["flips"] = [
        {**flip, "property": "nic_rate", "value": 25e9},
        {**flip, "property": "nic_latency", "value": 4e-6},
        {**flip, "property": "in_flight", "value": 4.0},
        {**flip, "property": "oversubscription", "value": 2.0, "seated": seated},
        {**flip, "kind": "cheapest", "property": "price nic", "value": 800.0},
    ]
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(document))

    page = planner("report", str(changed)).out

    for text in ("25 GB/s", "4 us", "4 in flight", "2 : 1", "another cluster is the fastest"):
        assert f">{text}</td>" in page
    assert "by: sequence length, experts." in page  # all that did not turn it
    assert "does not hold: generic-sn8, a tie at the top" in page
    assert page.count(">in rank order</td>") == 3
    assert page.count(">worked out</td>") == 1


def test_the_command_on_the_page_asks_for_the_comparison_again(
    planner: Planner, compared: Path
) -> None:
    page = planner("report", str(compared)).out

    found = re.search(r"planner (compare .*) --out sizes\.json", page)
    assert found
    again = planner(*shlex.split(found[1]))

    assert json.loads(again.out)["inputs"] == json.loads(compared.read_text())["inputs"]


def test_the_commands_on_the_page_draw_every_candidate_beside_the_comparison(
    planner: Planner, compared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.json").write_bytes(compared.read_bytes())
    page = planner("report", "sizes.json").out
    told = html.unescape(page.partition("a page with all of them:</p><pre><code>")[2])
    *places, last = told.partition("</code>")[0].splitlines()

    ran = [planner(*shlex.split(line)[1:]) for line in [*places, last]]

    assert [one.code for one in ran] == [0, 0, 0], [one.err for one in ran]
    whole = (tmp_path / "report.html").read_text()
    document = json.loads(compared.read_text())
    for one in document["ranked"]:
        plan = json.loads((tmp_path / f"{one['cluster']}.json").read_text())
        assert plan["cut"]["objective_bytes"] == pytest.approx(one["cut"]["objective_bytes"])
        assert f">{one['cluster']}: who sits where</h2>" in whole


@pytest.mark.parametrize(
    ("where", "factor", "said"),
    [
        ("step.tokens_per_s", 10, "ranked[0].step.tokens_per_s: expected "),
        ("step.total_s", 2, "ranked[0].step.interval_s: "),
        ("memory.worst_stage_bytes", 2, "ranked[0].memory.worst_stage_bytes: "),
        ("seated_bytes", 2, "ranked[0].seated_bytes: "),
        ("cut.objective_bytes", 2, "ranked[0].cut.objective_bytes: "),
        ("cut.lower_bound_bytes", 3, "that cross: it is no bound"),
        ("gpus", 2, "ranked[0].gpus: expected "),
    ],
)
def test_a_comparison_edited_by_hand_is_refused_and_named(
    planner: Planner, compared: Path, tmp_path: Path, where: str, factor: int, said: str
) -> None:
    document = json.loads(compared.read_text(encoding="utf-8"))
    # The one in which something crosses: of nothing there is no double.
    document["ranked"].sort(key=lambda one: -one["seated_bytes"])
    *path, last = where.split(".")
    entry = document["ranked"][0]
    for step in path:
        entry = entry[step]
    entry[last] *= factor
    edited = tmp_path / "edited.json"
    edited.write_text(json.dumps(document), encoding="utf-8")

    ran = planner("report", str(edited))

    assert ran.code == 2
    assert "edited.json: " in ran.err
    assert said in ran.err


def test_a_folder_is_read_by_name_and_what_is_neither_is_skipped_and_said(
    planner: Planner, compared: Path, plan_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "b.json").write_bytes(plan_file.read_bytes())
    (tmp_path / "a.json").write_bytes(plan_file.read_bytes())
    (tmp_path / "c.json").write_bytes(compared.read_bytes())
    (tmp_path / "notes.json").write_text('{"schema": "mine"}')
    (tmp_path / "notes.txt").write_text("no JSON")

    ran = planner("report", str(tmp_path))

    assert ran.code == 0
    assert "notes.json: skipped" in ran.err
    assert "notes.txt" not in ran.err
    assert ran.out.index(">a: cluster</h2>") < ran.out.index(">b: cluster</h2>")
    assert ">Candidates side by side</h2>" in ran.out
    assert ran.out == planner("report", str(tmp_path)).out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"schema": "planner.search/1"}', "make a plan of a layout with planner place --json"),
        ('{"schema": "planner.compare-plans/1"}', "name the two plans themselves"),
        ('{"schema": "planner.compare/1"}', "ranked: is missing"),
        ("[]", "is no plan: expected an object with schema"),
        ('{"schema": ["a"]}', "is no plan"),
        ("{", "is cut off here"),
    ],
)
def test_what_is_neither_is_refused_with_what_to_do(
    planner: Planner, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)

    ran = planner("report", str(path))

    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_an_empty_folder_and_prices_without_a_plan_are_refused_and_a_file_named_twice_is_said(
    planner: Planner, compared: Path, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("currency: EUR\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()

    twice = planner("report", str(compared), str(compared))
    nothing = planner("report", str(tmp_path / "empty"))
    priced = planner("report", str(compared), "--prices", str(prices))

    assert (twice.code, nothing.code, priced.code) == (0, 2, 2)
    assert "sizes (1) and sizes (2) hold the same." in twice.out
    assert "no plan and no comparison" in nothing.err
    assert "planner compare" in priced.err


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_of_a_comparison_becomes_markup(
    planner: Planner, compared: Path, tmp_path: Path, name: str
) -> None:
    text = json.dumps(json.loads(compared.read_text()))
    hostile = json.dumps(name)[1:-1]
    dirty = tmp_path / "dirty.json"
    dirty.write_text(text.replace("generic-sn16", hostile).replace("own best", hostile))

    ran = planner("report", str(dirty))

    assert ran.code == 0, ran.err
    clean = planner("report", str(compared)).out
    tags = re.compile(r"<([a-z0-9]+)[ >]")
    assert set(tags.findall(ran.out)) == set(tags.findall(clean))
    assert ran.out.count("<script>") == 1


def test_given_layouts_are_called_by_their_files_and_have_no_flips(
    planner: Planner, tmp_path: Path
) -> None:
    files = []
    for name, degrees in (("wide", "tp: 8\npp: 1\n"), ("deep", "tp: 2\npp: 4\n")):
        path = tmp_path / f"{name}.yaml"
        path.write_text(f"{degrees}zero: 1\nglobal_batch: 32\n")
        files += ["--layout", str(path)]
    out = tmp_path / "layouts.json"
    where = ("--supernode", "8", "--gpus", "16", "--model", "llama-3.1-8b")
    assert planner("compare", *where, *files, "--json", "--out", str(out)).code == 0

    page = planner("report", str(out)).out

    assert re.search(r"<p class=\"lead\">Take (wide|deep)[ ,:]", page)
    assert "where the winner flips was not looked for" in page


def test_a_browser_shows_a_comparison_without_an_error_or_a_request(
    browser: Browser, planner: Planner, compared: Path, tmp_path: Path
) -> None:
    page = opened(browser, planner, tmp_path / "report.html", compared)

    assert browser.troubles() == []
    assert browser.addresses() == [page.as_uri()]
    browser.send("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1,
                 mobile=True)  # fmt: skip
    assert browser.value("document.documentElement.scrollWidth") <= 390


def test_a_plan_beside_a_comparison_keeps_its_own_parts(
    planner: Planner, compared: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "mine.json"
    plan.write_text(json.dumps(small_plan()))

    page = planner("report", str(plan), str(compared)).out

    assert ">mine: who sits where</h2>" in page
    assert ">Where the winner flips, and where to spend</h2>" in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_a_step_in_rank_order_is_no_gap_and_its_box_says_how_few_bytes_there_could_be(
    planner: Planner, compared: Path, tmp_path: Path
) -> None:
    document = json.loads(compared.read_text())
    for one in document["ranked"]:  # the seats of the step cross twice what the least would
        one["seating"] = "rank-order"
        one["seated_bytes"] = 2 * one["cut"]["objective_bytes"]
        one["crossed_bytes"] = {d: 2 * v for d, v in one["crossed_bytes"].items()}
        if one["seated_bytes"] != sum(one["crossed_bytes"].values()):
            one["crossed_bytes"] = {**dict.fromkeys(one["crossed_bytes"], 0.0),
                                    "pp": one["seated_bytes"]}  # fmt: skip
    moved = tmp_path / "moved.json"
    moved.write_text(json.dumps(document))

    page = planner("report", str(moved)).out

    least = format_bytes(document["ranked"][0]["cut"]["objective_bytes"])
    assert f"a step, in rank order, which takes less time; the least is {least}</dd>" in page
    assert f">{least}</td>" in page
    assert "gap" not in page.partition("</dl>")[0].partition('class="figures"')[2]
    assert "not ruled out" not in page


def test_what_a_bound_leaves_open_is_said_with_what_follows_from_it(
    planner: Planner, compared: Path, tmp_path: Path
) -> None:
    document = json.loads(compared.read_text())
    for one in document["ranked"]:
        one["cut"] |= {"lower_bound_bytes": 0.75 * one["cut"]["objective_bytes"], "gap": 0.25,
                       "proof": "time_limit"}  # fmt: skip
    opened_up = tmp_path / "open.json"
    opened_up.write_text(json.dumps(document))

    page = planner("report", str(opened_up)).out

    said = "a step; open: that another seating saves up to 25 % was not ruled out in the time given"
    assert f"<dd>{said}</dd>" in page
    assert ">25 % open</td>" in page


def test_two_comparisons_have_a_recommendation_and_parts_of_their_own(
    browser: Browser, planner: Planner, compared: Path, tmp_path: Path
) -> None:
    other = tmp_path / "dense.json"
    dense = ("--supernode", "8,16", "--gpus", "16", "--model", "llama-3.1-8b", "--tp", "2", "--cp",
             "1", "--pp", "1", "--zero", "1")  # fmt: skip
    assert planner("compare", *dense, "--json", "--out", str(other)).code == 0

    opened(browser, planner, tmp_path / "both.html", compared, other)
    page = (tmp_path / "both.html").read_text()

    assert browser.troubles() == []
    assert "<h3>sizes: mixtral-8x7b</h3>" in page
    assert "<h3>dense: llama-3.1-8b</h3>" in page
    assert page.count('<p class="lead">Take generic-sn') == 2
    assert page.count('<dl class="figures">') == 2
    for name in ("sizes", "dense"):
        for part in ("candidates side by side", "parts, power and money"):
            assert f">{name}: {part}</h2>" in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    assert "planner report sizes.json dense.json --out report.html" in page
    whose = page.partition("What must hold")[2].partition("</table>")[0]
    assert "sizes: generic-sn8" in whose
    assert "all" in re.findall(r">([^<>]*)</td>", whose)


def test_the_page_of_several_models_begins_with_a_cluster_for_all(
    planner: Planner, compared: Path, tmp_path: Path
) -> None:
    text = compared.read_text()
    documents = [json.loads(text), json.loads(text.replace("mixtral-8x7b", "other-8x7b"))]
    file = tmp_path / "both.json"
    file.write_text(json_text(models_document(documents)))

    page = planner("report", str(file)).out

    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(file.read_text()))
    first, _, rest = page.partition("<h3>For all models</h3>")[2].partition("<h3>mixtral-8x7b")
    assert "For all models, as many tokens of each model, one after the other: take " in first
    assert "<h3>other-8x7b" in rest
