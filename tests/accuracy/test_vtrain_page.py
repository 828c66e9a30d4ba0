"""What the page of step times says of vTrain: pairs, picks, and what could mend them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

from tests.accuracy.steps_page import PROSE, Validated


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two of vTrain's layouts of one model, and whether the faster is predicted faster."""

    first: str
    second: str
    right: bool


def pairs_of(validated: Validated, apart_share: float) -> list[Pair]:
    """Return vTrain's pairs of layouts whose steps differ by *apart_share* or more."""
    groups: dict[str, list[str]] = {}
    for name, row in validated.rows.items():
        if row["source"] == "vtrain_multi":
            groups.setdefault(row["model"], []).append(name)
    pairs = []
    for names in groups.values():
        for a, b in combinations(names, 2):
            first, second = (float(validated.rows[one]["measured_step_s"]) for one in (a, b))
            if abs(np.log(first / second)) > np.log1p(apart_share):
                faster = validated.step_s[a] < validated.step_s[b]
                pairs.append(Pair(first=a, second=b, right=(first < second) == faster))
    return pairs


def right_share(validated: Validated, apart_share: float) -> float:
    """Return the share of vTrain's pairs that differ by *apart_share* that are ordered right."""
    return float(np.mean([pair.right for pair in pairs_of(validated, apart_share)]))


def test_the_shares_of_pairs_and_the_regret_are_those_printed(validated: Validated) -> None:
    shares = [100 * right_share(validated, apart) for apart in (0.02, 0.05, 0.10, 0.20)]
    groups = [g for g in validated.document["groups"] if g["source"] == "vtrain_multi"]
    by_model = [f"{100 * g['right'] / g['pairs']:.0f}" for g in groups]

    assert f"{shares[0]:.0f} % of the pairs of layouts that differ by more than 2 %" in PROSE
    assert (
        "{:.0f} % of those that differ by 5 %, {:.0f} % by 10 %, {:.0f} % by 20 %".format(
            *shares[1:]
        )
        in PROSE
    )
    assert (
        "By model, {} % are right of 3.6B, {} % of 18.4B, {} % of 39.1B, {} % of 175B".format(
            *by_model
        )
        in PROSE
    )
    regret = max(g["regret_share"] for g in groups)
    assert f"the layout that is picked is {100 * regret:.2f} % slower than the fastest" in PROSE


def test_most_wrong_pairs_have_one_of_the_same_twenty_layouts(validated: Validated) -> None:
    odd = {
        name
        for name, row in validated.rows.items()
        if row["source"] == "vtrain_multi" and "39.1" in row["model"] and row["tp"] in ("2", "4")
    }
    pairs = pairs_of(validated, 0.02)
    wrong = [pair for pair in pairs if not pair.right]
    with_odd = [pair for pair in wrong if odd & {pair.first, pair.second}]
    apart = [
        np.mean([p.right for p in pairs_of(validated, a) if not odd & {p.first, p.second}])
        for a in (0.02, 0.10)
    ]

    assert f"{len(with_odd)} of the {len(wrong)} wrong ones have one of the {len(odd)} layouts" in (
        PROSE
    )
    assert "without those {:.0f} % are right, and {:.0f} % of the pairs that differ by 10 %".format(
        *(100 * share for share in apart)
    ) in (PROSE)


def test_the_ceiling_of_a_smooth_correction_is_that_printed(validated: Validated) -> None:
    ceilings = [g for g in validated.document["ceilings"] if g["source"] == "vtrain_multi"]
    share = sum(g["right"] for g in ceilings) / sum(g["pairs"] for g in ceilings)
    regret = max(g["regret_share"] for g in ceilings)

    assert f"{100 * share:.0f} % (39.1B" in PROSE
    assert f"with a regret of {100 * regret:.1f} %" in PROSE


LEVELS = {
    "tp": "with one for each TP (the median of measured over predicted) {right:.0f} % are right "
    "and the worst pick is {regret:.1f} % slower",
    "model tp": "for each model and TP, {levels} of them, {right:.0f} % and {regret:.1f} %",
    "model tp pp": "for each model, TP and PP, {levels} of them, {right:.0f} % and still "
    "{regret:.1f} %",
}


@pytest.mark.parametrize("of", LEVELS)
def test_what_levels_set_on_vtrains_own_rows_would_order_is_printed(
    of: str, validated: Validated
) -> None:
    groups: dict[tuple[str, ...], list[str]] = {}
    models: dict[str, list[str]] = {}
    for name, row in validated.rows.items():
        if row["source"] == "vtrain_multi":
            groups.setdefault(tuple(row[column] for column in of.split()), []).append(name)
            models.setdefault(row["model"], []).append(name)
    measured = {
        n: float(validated.rows[n]["measured_step_s"]) for names in models.values() for n in names
    }
    step_s = {}
    for names in groups.values():
        level = np.exp(np.median([np.log(measured[n] / validated.step_s[n]) for n in names]))
        step_s.update({n: level * validated.step_s[n] for n in names})
    levelled = Validated(document={}, step_s=step_s, rows=validated.rows, runs=validated.runs)
    picks = [min(names, key=lambda n: step_s[n]) for names in models.values()]
    fastest = [min(measured[n] for n in names) for names in models.values()]
    regret = max(measured[pick] / best - 1 for pick, best in zip(picks, fastest, strict=True))

    assert (
        LEVELS[of].format(
            levels=len(groups), right=100 * right_share(levelled, 0.02), regret=100 * regret
        )
        in PROSE
    )


def test_the_tiny_models_of_one_stage_are_sums_of_32_times_of_a_layer(
    validated: Validated,
) -> None:
    """Layers x micro-batches x a time of each width, TP and micro-batch, and terms beside it."""
    alike: dict[tuple[str, ...], list[list[float]]] = {}
    for row in validated.rows.values():
        if row["source"] == "vtrain_single" and row["pp"] == "1":
            layers, dp, batch = (float(row[key]) for key in ("layers", "dp", "global_batch"))
            passes, shared = batch / dp / float(row["micro_batch"]), float(dp > 1)
            terms = [layers * passes, passes, layers, 1.0, shared * layers, shared]
            key = (row["hidden"], row["tp"], row["micro_batch"])
            alike.setdefault(key, []).append([*terms, float(row["measured_step_s"])])
    errors = []
    for members in alike.values():
        shares = np.array(members)[:, :-1] / np.array(members)[:, -1:]
        found = np.linalg.lstsq(shares, np.ones(len(shares)), rcond=None)[0]
        errors += list(np.abs(shares @ found - 1.0))

    assert (len(alike), len(errors)) == (32, 720)
    assert np.mean(errors) < 0.001


def test_every_bad_pick_of_the_tiny_models_hangs_on_the_same_two_times(
    validated: Validated,
) -> None:
    groups = [
        group
        for group in validated.document["groups"]
        if group["source"] == "vtrain_single" and group["regret_share"] > 0.2
    ]

    def layer(name: str) -> tuple[str, ...]:
        return tuple(validated.rows[name][key] for key in ("hidden", "tp", "micro_batch"))

    assert f"All {len(groups)} groups whose pick is more than 20 % slower" in PROSE
    assert {layer(group["fastest"]) for group in groups} == {("2048", "4", "2")}
    assert {layer(group["picked"]) for group in groups} == {("2048", "2", "2")}
