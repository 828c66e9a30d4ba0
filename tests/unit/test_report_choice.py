"""Which of several candidates is taken: by speed, money, what crosses, or what a run needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cli.report_choice import Cost, Offer, chosen_by_need, chosen_by_speed

BASE = Offer(name="a", gpus=8, tokens_per_s=1000.0, best_tokens_per_s=1000.0, step_s=2.0,
             tier="supernode", is_tie=False, cut_bytes=10e9, fits=True, million=None,
             run=None)  # fmt: skip


def usd(amount: float) -> Cost:
    return Cost(amount, f"{amount:g} USD")


def test_the_fastest_is_taken_where_it_is_told_from_the_others() -> None:
    slow = replace(BASE, name="slow", tokens_per_s=500.0, best_tokens_per_s=500.0, cut_bytes=1.0)

    choice = chosen_by_speed([slow, BASE])

    assert choice is not None
    assert (
        choice.sentence == "Take a: 1,000 tokens/s, a step of 2 s, 10 GB a step across supernodes."
    )
    assert choice.alike == (BASE,)


def test_money_against_time_names_both_and_what_each_brings() -> None:
    fast = replace(BASE, name="fast", million=usd(2.5))
    cheap = replace(
        BASE, name="cheap", tokens_per_s=500.0, best_tokens_per_s=500.0, million=usd(1.25)
    )

    choice = chosen_by_speed([cheap, fast])

    assert choice is not None
    assert choice.sentence == (
        "Take fast if time decides, cheap if money does: fast is the fastest, 1,000 tokens/s, a "
        "step of 2 s, 10 GB a step across supernodes; cheap trains a million tokens for 1.25 USD, "
        "not 2.5 USD, at 500 tokens/s."
    )
    assert choice.named == (fast, cheap)


def test_a_tie_is_broken_by_money_and_a_slower_one_that_costs_less_is_still_named() -> None:
    one = replace(BASE, name="one", million=usd(3))
    two = replace(
        BASE, name="two", tokens_per_s=990.0, best_tokens_per_s=990.0, is_tie=True, million=usd(2)
    )
    slow = replace(BASE, name="slow", tokens_per_s=400.0, best_tokens_per_s=400.0, million=usd(1))

    tie = chosen_by_speed([one, two])
    more = chosen_by_speed([one, two, slow])

    assert tie is not None
    assert more is not None
    assert tie.sentence.startswith("Take two, the cheapest of the fastest, at 2 USD a million")
    assert more.sentence.startswith(
        "Take two if time decides, slow if money does: two is the cheap"
    )


def test_a_tie_without_all_prices_is_broken_by_what_crosses() -> None:
    one = replace(BASE, name="one", million=usd(3))
    two = replace(
        BASE, name="two", tokens_per_s=990.0, best_tokens_per_s=990.0, is_tie=True, cut_bytes=1e9
    )

    choice = chosen_by_speed([one, two])

    assert choice is not None
    assert choice.sentence.startswith("Take two, the one that asks least of the network between")


def test_what_does_not_fit_is_not_taken() -> None:
    full = replace(
        BASE,
        name="full",
        tokens_per_s=9000.0,
        best_tokens_per_s=9000.0,
        fits=False,
        million=usd(0.1),
    )

    choice = chosen_by_speed([full, replace(BASE, million=usd(1))])

    assert choice is not None
    assert (choice.pick.name, choice.cheaper) == ("a", None)
    assert chosen_by_speed([full]) is None
    assert chosen_by_need([full], None) is None


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (None, "Take b, which does the run for the least money, 5 USD with 16 GPUs: "),
        (6.0, "Take b, which does the run for the least money, 5 USD with 16 GPUs: "),
        (4.0, "None of them does the run within the budget. The nearest is b, which does the run "),
    ],
)
def test_a_run_is_given_to_who_does_it_for_least_and_not_to_the_fastest(
    budget: float | None, said: str
) -> None:
    fast = replace(BASE, run=usd(7))
    cheap = replace(
        BASE, name="b", gpus=16, tokens_per_s=700.0, best_tokens_per_s=700.0, run=usd(5)
    )

    choice = chosen_by_need([fast, cheap], budget)

    assert choice is not None
    assert choice.sentence.startswith(said)
    assert [one.name for one in choice.order] == (["b", "a"] if budget is None else ["b"])


def test_a_run_without_prices_is_given_to_who_needs_the_fewest_gpus() -> None:
    choice = chosen_by_need([replace(BASE, gpus=16), replace(BASE, name="b", run=usd(5))], None)

    assert choice is not None
    assert choice.sentence.startswith("Take b, which does the run with the fewest GPUs, 8: ")
