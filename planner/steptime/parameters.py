"""Parameters of a stage: which layers it holds, and how many parameters on one rank."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model import ModelSpec
from planner.steptime.columns import LayoutColumns, Values, select, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLayers:
    """Layers of the first, the fullest middle and the last stage, dense and MoE apart [1].

    With pp = 1 the first stage holds everything and *last* repeats it; with pp = 2 there is no
    middle. ``middle_mean`` averages the pp - 2 middle stages.
    """

    first_dense: Values
    first_moe: Values
    middle_dense: Values
    middle_moe: Values
    middle_mean_dense: Values
    middle_mean_moe: Values
    last_dense: Values
    last_moe: Values


def stage_layers(model: ModelSpec, columns: LayoutColumns) -> StageLayers:
    """Return how the layers fall on the stages: the ends the lighter where pp does not divide.

    The last stage also has the logits and the first the embedding, so the middle stages take
    ceil(layers / pp) and the ends share what is left (Megatron's
    ``--account-for-embedding-in-pipeline-split`` and ``--account-for-loss-in-pipeline-split``:
    126 layers on 8 stages are 15, 6 x 16, 15). Leading dense layers sit on the first stages.
    """
    pp = columns.pp
    total = float(model.layers)
    high = whole(total / pp)
    rest = total - high * (pp - 2.0)
    low = total // pp
    enough = (rest >= 2.0) * (pp > 1)
    first = select(pp > 1, select(enough, whole(rest / 2.0), low), total)
    last = select(enough, rest // 2.0, low)
    between = select(pp > 2, pp - 2.0, 1.0)
    mean = (total - first - last) / between
    fullest = whole(mean)
    dense = float(model.dense_layer_count)
    if not dense or not model.moe_layer_count:
        moe = 0.0 if dense else 1.0
        return StageLayers(
            first_dense=first * (1.0 - moe),
            first_moe=first * moe,
            middle_dense=fullest * (1.0 - moe),
            middle_moe=fullest * moe,
            middle_mean_dense=mean * (1.0 - moe),
            middle_mean_moe=mean * moe,
            last_dense=last * (1.0 - moe),
            last_moe=last * moe,
        )
    lead = select(first > dense, dense, first)
    behind = (dense - lead) / between
    last_dense = select(pp > 1, 0.0, lead)
    return StageLayers(
        first_dense=lead,
        first_moe=first - lead,
        middle_dense=0.0 * fullest,
        middle_moe=fullest,
        middle_mean_dense=behind,
        middle_mean_moe=mean - behind,
        last_dense=last_dense,
        last_moe=last - last_dense,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageParameters:
    """Parameters of one rank of the heaviest stage, before data parallelism shards them [1].

    Args:
        dense: what the dense gradient group (cp x dp) reduces.
        experts: what the expert data-parallel group reduces.
        layers: layers of the stage, and one for its tables: what full sharding gathers apart [1].
        moe_layers: those of them with routed experts [1].
    """

    dense: Values
    experts: Values
    layers: Values
    moe_layers: Values


def stage_parameters(
    model: ModelSpec, columns: LayoutColumns, layers: StageLayers, stage: str
) -> StageParameters:
    """Return the parameters one rank of the ``first``, ``middle`` or ``last`` stage holds.

    The first stage adds the input tables, the last the head and the MTP layers; with pp = 1 the
    first has all of them. Norms are counted as if TP split them, which errs by under 0.1 %.
    """
    dense_layers = getattr(layers, f"{stage}_dense")
    moe_layers = getattr(layers, f"{stage}_moe")
    head = float(model.vocab * model.hidden + model.final_norm_parameters)
    mtp_experts = float(
        model.mtp_layers * model.experts * (model.expert_parameters if model.experts else 0)
    )
    ends = head + model.mtp_parameters - mtp_experts
    alone = head * (0.0 if model.tied_embeddings else 1.0) + model.mtp_parameters - mtp_experts
    piped = columns.pp > 1
    tables: Values = 0.0
    routed = moe_layers * model.experts * (model.expert_parameters if model.experts else 0)
    if stage == "first":
        tables = model.embedding_parameters + select(piped, 0.0, alone)
        routed = routed + select(piped, 0.0, mtp_experts)
    elif stage == "last":
        tables = select(piped, ends, model.embedding_parameters + alone)
        routed = routed + mtp_experts
    shared = model.moe_layer_shared_parameters if model.experts else 0
    dense = dense_layers * model.dense_layer_parameters + moe_layers * shared + tables
    return StageParameters(
        dense=dense / columns.tp,
        experts=routed / (columns.ep * columns.etp),
        layers=dense_layers + moe_layers + 1.0,
        moe_layers=moe_layers,
    )
