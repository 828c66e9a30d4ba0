"""A file that is given where another kind of file belongs is told in one line what it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cli.step_inputs import read_plan_document, told_of
from planner.errors import InputError, SpecError
from topologies.cluster_chip import cluster_chip
from topologies.efficiency_catalogue import read_efficiencies
from topologies.fabric_catalogue import load_cluster, load_spec
from topologies.layout_reader import read_layout_run
from topologies.model_reader import read_model
from topologies.own_efficiency import read_own_fits
from topologies.price_list import read_price_list
from topologies.steps_table import read_steps

CHIP = "name: Nova-1\n  peak: {bf16: 1500 TFLOP/s}\n  memory: 128 GiB\n  memory_rate: 4 TB/s\n"
FILES = {
    "chip": f"accelerator:\n  {CHIP}",
    "bare chip": CHIP.replace("  ", ""),
    "cluster": f"name: ours\naccelerator:\n  {CHIP}gpus: 64\nsupernode: {{size: 8}}\n",
    "model": "hidden: 64\nlayers: 2\nvocab: 100\nattention: {heads: 4}\n",
    "config": '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2}',
    "layout": "tp: 8\npp: 2\n",
    "plan": '{"inputs": {}, "schema": "planner.place/1"}',
    "result": '{"inputs": {}, "schema": "planner.search/1"}',
    "prices": "currency: EUR\nitems: {leaf: {price: 1, source: me, date: 2026-01-01}}\n",
    "efficiency": "H100-SXM:\n  gemm: {bf16: 0.7}\n  memory: {fused: 0.5}\n  inner: 0.8\n",
    "runs": "id,model,layers,hidden,heads,vocab,seq,gpu,n_gpus,measured_step_s\n",
}
SAID = {
    "chip": "is an accelerator's data sheet without a network: planner calibrate RUNS.csv",
    "bare chip": "is an accelerator's data sheet: under 'accelerator:'",
    "cluster": "is a cluster: --cluster",
    "model": "is a model: --model",
    "config": "is a model: --model",
    "layout": "is a layout: --layout",
    "plan": "is a plan of planner place: planner step --placement",
    "result": "is what a planner command found: only planner report",
    "prices": "is a price list: --prices",
    "efficiency": "is a fit of planner calibrate: --efficiency",
    "runs": "is a table of training runs: planner calibrate",
}
READERS: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "a cluster": (load_cluster, {"cluster"}),
    "a cluster to rebuild": (load_spec, {"cluster"}),
    "a chip": (lambda path: cluster_chip(str(path)), {"cluster", "chip"}),
    "a model": (read_model, {"model", "config"}),
    "a layout": (read_layout_run, {"layout"}),
    "a fit": (read_own_fits, {"efficiency"}),
    "fits": (read_efficiencies, {"efficiency"}),
    "prices": (read_price_list, {"prices"}),
    "runs": (read_steps, {"runs"}),
    "a plan": (lambda path: told_of(path, read_plan_document(path)), {"plan", "result"}),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("reader", READERS)
def test_a_file_of_another_kind_is_named_with_what_takes_it(
    tmp_path: Path, reader: str, kind: str
) -> None:
    path = tmp_path / "given.txt"
    path.write_text(FILES[kind], encoding="utf-8")
    read, own = READERS[reader]
    if kind in own:
        return

    with pytest.raises(SpecError) as refused:
        read(path)

    (said,) = refused.value.faults
    assert said.startswith(f"{path}: {SAID[kind]}")
    assert "; expected " in said


@pytest.mark.parametrize(("reader", "kind"), [("a cluster", "cluster"), ("a fit", "efficiency")])
def test_faults_of_a_file_of_the_right_kind_stay(tmp_path: Path, reader: str, kind: str) -> None:
    path = tmp_path / "given.txt"
    path.write_text(FILES[kind], encoding="utf-8")

    with pytest.raises(InputError, match="missing key") as refused:
        READERS[reader][0](path)

    assert len(refused.value.faults) > 1


def test_what_is_no_file_of_any_kind_keeps_its_readers_words(tmp_path: Path) -> None:
    path = tmp_path / "given.txt"
    path.write_text("nothing: known\n", encoding="utf-8")

    with pytest.raises(InputError, match="no model: found 'nothing'"):
        read_model(path)


def test_what_takes_a_plan_is_named_by_commands_that_need_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(FILES["plan"], encoding="utf-8")

    with pytest.raises(SpecError) as refused:
        read_model(path)

    assert f"step --placement {path} and planner report {path} take it" in str(refused.value)
