"""What a document keeps of its inputs: all that an answer depends on, as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cli.fabric_figures_document import fabric_document
from cli.planner_inputs import DEFAULT_ORDER
from planner.layout import layout_values
from topologies.own_efficiency import efficiency_file

if TYPE_CHECKING:
    from cli.given_layout import LaunchFileRead
    from cli.planner_inputs import Inputs, Question
    from planner.model import ModelSpec


def inputs_document(inputs: Inputs, **more: Any) -> dict[str, Any]:
    """Return everything the answer depends on, for ``cli.planner_output.document``.

    Enough to build the model and the layout again without the files they came from.
    """
    layout = inputs.layout
    return question_document(inputs) | {
        "layout": {
            **layout_values(layout), "zero": layout.zero_stage, "edp": layout.edp,
            "micro_batches": layout.micro_batches,
        },
        "order": layout.order,
        **more,
    }  # fmt: skip


def question_document(question: Question, **more: Any) -> dict[str, Any]:
    """Return everything that an answer depends on which looks at every layout.

    The numbers of the cluster's tiers too, so that the hash changes when a figure of the file does.
    """
    fabric, model = question.fabric, question.model
    return {
        "cluster": fabric.name,
        "cluster_asked": question.cluster,
        "supernode": fabric.full_supernode_gpus,
        "gpus": question.gpus,
        "model": model.name,
        "model_shape": {
            name: value for name, value in asdict_of(model).items() if name != "assumed"
        },
        "layout": dict(question.fixed),
        "layout_given": question.given,
        "order": question.fixed.get("order", DEFAULT_ORDER),
        "fabric": fabric_document(fabric),
        "efficiency": None if question.efficiency is None else asdict(question.efficiency),
        **({"efficiency_file": efficiency_file(question.own_fits)} if question.own_fits else {}),
        **({"layout_file": _launch_document(question.launch)} if question.launch else {}),
        "assumed": {**fabric.assumed, **model.assumed, **question.assumed},
        **more,
    }


def _launch_document(launch: LaunchFileRead) -> dict[str, Any]:
    """Return what a document keeps of a launch file that stands as the layout."""
    return {"file": launch.name, "sha256": launch.sha256, "fields": launch.fields}


def efficiency_notes(questions: Iterable[Question]) -> tuple[str, ...]:
    """Return a line for each accelerator: whose numbers it is timed with where that was asked."""
    told = {one.fabric.accelerator.name: one.assumed.get("efficiency") for one in questions}
    return tuple(f"{chip} is timed with {why}" for chip, why in told.items() if why)


def asdict_of(model: ModelSpec) -> dict[str, Any]:
    """Return a model's fields, those of its attention too, as plain values."""
    shape = {name: getattr(model, name) for name in model.__dataclass_fields__}
    return {**shape, "attention": asdict(model.attention)}
