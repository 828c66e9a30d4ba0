"""How a layout was chosen, in words that the pages of ``place`` and ``step`` share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.search.defaults import TOO_LARGE, WHOLE_FITS
from planner.search.given import spelled_layout
from planner.search.training import usual_batch
from planner.units import format_share
from planner.words import counted

if TYPE_CHECKING:
    from cli.planner_inputs import Inputs
    from planner.search.defaults import Choice
    from planner.steptime.memory import Memory

_WHICH = {
    "usual": "within 2 % of their shortest step, the one with the fewest pipeline stages",
    "fastest": "the shortest step of all, whatever it rests on",
}
_CONSIDERED = {
    "usual": "considered (planner search looks at more than these, the usual ways to run)",
    "all": "considered",
}
_SECOND = {"usual": "Next", "fastest": "Usually taken"}
_SPELLED = {"micro_batch": "micro-batch", "zero_stage": "ZeRO"}
_DEGREES = ("tp", "cp", "ep", "etp", "dp", "pp")


def taken_words(inputs: Inputs) -> str:
    """Return what the layout has that nobody gave, or nothing where all of it was given.

    Degrees of 1 go without saying; virtual stages are told of a pipeline only.
    """
    layout, given = inputs.layout, inputs.given
    names = [name for name in _DEGREES if getattr(layout, name) > 1]
    names += ["vpp"] if layout.pp > 1 else []
    values = {name: getattr(layout, name) for name in (*names, "micro_batch", "zero_stage")}
    left = {name: value for name, value in values.items() if name not in given}
    told = [
        counted(value, "virtual stage") if name == "vpp" else f"{_SPELLED.get(name, name)} {value}"
        for name, value in left.items()
    ]
    if "recompute" not in given:
        told.append(f"{'no' if layout.recompute == 'none' else layout.recompute} recomputation")
    return ", ".join(told)


def chosen_words(inputs: Inputs, memory: Memory) -> str:
    """Return what was given of the layout, and from what and how the rest of it was taken.

    Nothing where there was nothing to choose from: :func:`given_words` says then who gave it.

    Args:
        inputs: with the layout that was taken.
        memory: of that layout; where it does not fit, others were counted whether they fit or not.
    """
    choice = inputs.choice
    if choice.considered == 1:
        return ""
    stated = f"{', '.join(inputs.given_by)} given" if inputs.given_by else "none of it given"
    text = (
        f"{stated}; of {choice.considered:,} {_CONSIDERED[choice.ways]} {choice.feasible:,} "
        f"{'fit' if memory.fits else 'can run, in memory or not'}; "
        f"{_sure(choice)}{_WHICH[choice.take]}"
    )
    falls = sorted(choice.rejected.items(), key=lambda item: (-item[1], item[0]))
    if falls:
        most = "; ".join(f"{count:,} {_as_verb(count, reason)}" for reason, count in falls[:3])
        text += f". Out: {most}"
    if choice.runner_up is not None:
        apart = choice.runner_up_step_s / (choice.seated_s or choice.step_s) - 1
        text += (
            f". {_SECOND[choice.take]}: {spelled_layout(choice.runner_up)}, "
            + (f"{format_share(abs(apart))} {'slower' if apart > 0 else 'faster'}"
               if abs(apart) >= 5e-4 else "as fast")
        )  # fmt: skip
    return text + _batch_to_type(inputs)


def _batch_to_type(inputs: Inputs) -> str:
    """Return the batch to give beside the degrees, where these would round it otherwise."""
    layout = inputs.layout
    typed = {name: getattr(layout, name) for name in ("dp", "pp", "vpp", "micro_batch", "seq")}
    rounded = usual_batch(inputs.model, layout.gpus, typed).global_batch
    if "global_batch" not in inputs.assumed or rounded == layout.global_batch:
        return ""
    return (
        f". To type it back add --global-batch {layout.global_batch}, for with its degrees given "
        f"the batch is rounded to {rounded:,}"
    )


def given_words(inputs: Inputs) -> str:
    """Return what gave a layout that was not chosen; nothing where one was."""
    if inputs.choice.considered > 1:
        return ""
    by = f"given by {', '.join(inputs.given_by)}" if inputs.given_by else "the only one"
    return by + _batch_to_type(inputs)


def _sure(choice: Choice) -> str:
    """Return how it is known that no other is faster, or by no more than 2 %."""
    if not choice.seated:
        return ""
    more = "" if choice.take == "fastest" else " by more than 2 %"
    return (
        f"{choice.seated:,} of them seated, so that no other of these can be shorter{more} in any "
        "seats; "
    )


def _as_verb(count: int, reason: str) -> str:
    """Return a reason as the end of a sentence that begins with how many fell to it.

    >>> _as_verb(1, TOO_LARGE), _as_verb(2, TOO_LARGE)
    ('does not fit in memory', 'do not fit in memory')
    >>> _as_verb(3, WHOLE_FITS), _as_verb(2, "more stages than layers")
    ('shard weights where ZeRO 1 fits and is no slower', 'for more stages than layers')
    """
    if reason == TOO_LARGE:
        return reason if count == 1 else reason.replace("does", "do")
    if reason == WHOLE_FITS:
        return f"{'shards' if count == 1 else 'shard'} weights where ZeRO 1 fits and is no slower"
    return f"for {reason}"
