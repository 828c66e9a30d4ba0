"""Hard rules as text: what a group may not do, whatever it costs.

    ep within supernode            every EP group in one supernode
    tp within board                every TP group on one board (an inner tier)
    pp at most 2 supernodes        no PP group over more than two
    dp on sn00,sn01                the whole job on the named domains
    stage 0 on sn00                the ranks of one pipeline stage
    dp group 3 on sn02,sn03        the ranks of one group

``bound_rules`` ties them to a layout and a cluster; ``rules_solve.py`` keeps them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from math import prod
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.layout import PART_OF

if TYPE_CHECKING:
    from planner.fabric import Fabric
    from planner.layout import Layout

DIGITS = ("tp", "cp", "ep", "etp", "dp", "edp", "pp", *PART_OF)
MOST_RULES = 16
_LONGEST = 2000
_FORMS = (
    "'ep within supernode', 'tp within board', 'pp at most 2 supernodes', 'dp on sn00,sn01', "
    "'stage 0 on sn00' or 'dp group 3 on sn02,sn03'"
)
_WHO = r"(?:(?P<digit>[a-z_]+)(?:\s+group\s+(?P<group>\d{1,9}))?|stage\s+(?P<stage>\d{1,9}))"
_WHAT = (
    r"(?:within\s+(?P<within>[a-z_-]+)"
    r"|at\s+most\s+(?P<most>\d{1,9})\s+(?P<counted>[a-z_-]+)"
    r"|on\s+(?P<names>[^\s,]+(?:\s?,\s?[^\s,]+)*))"
)
_RULE = re.compile(rf"{_WHO}\s+{_WHAT}", re.IGNORECASE)


class Form(Enum):
    """What a rule demands."""

    WITHIN = "within"  # every group in one domain of a tier
    AT_MOST = "at_most"  # every group in at most so many domains
    ON = "on"  # some ranks, or all, on named domains only


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One hard rule, as read.

    Args:
        text: as the user wrote it, blanks made single.
        form: what it demands.
        digit: ``tp`` … ``pp``, or a part of hybrid sharding: whose groups.
        group: number of the one group meant, -1 for all.
        stage: whether *group* is a pipeline stage: the ranks with that index along PP.
        tier: tier that the groups may not leave, or whose domains are counted; empty for ``on``.
        most: domains that a group may touch [1]; 0 unless ``at most``.
        names: domains of ``on``.
    """

    text: str
    form: Form
    digit: str
    group: int = -1
    stage: bool = False
    tier: str = ""
    most: int = 0
    names: tuple[str, ...] = ()


def parse_rules(texts: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules that *texts* say.

    Raises:
        InputError: every text that is none, with what would be right.

    >>> rule, = parse_rules(["PP at most 2  supernodes"])
    >>> rule.text, rule.form.value, rule.digit, rule.most, rule.tier
    ('PP at most 2 supernodes', 'at_most', 'pp', 2, 'supernode')
    """
    rules, faults = [], []
    if len(texts) > MOST_RULES:
        faults.append(f"{len(texts)} rules: expected {MOST_RULES} at most")
    for text in texts[:MOST_RULES]:
        try:
            rules.append(_parsed(text))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return tuple({rule.text.lower(): rule for rule in rules}.values())


def _parsed(text: str) -> Rule:
    clean = " ".join(text.split())
    shown = clean if len(clean) <= 60 else f"{clean[:60]}…"
    match = _RULE.fullmatch(clean) if len(clean) <= _LONGEST else None
    if match is None:
        raise InputError(f"rule {shown!r} is not understood: expected e.g. {_FORMS}")
    found = match.groupdict()
    digit = (found["digit"] or "pp").lower()
    if digit not in DIGITS:
        near = get_close_matches(digit, DIGITS, n=1)
        raise InputError(
            f"rule {shown!r}: {digit!r} is no parallel group: one of {', '.join(DIGITS)} or "
            f"'stage N'" + (f"; did you mean {near[0]}?" if near else "")
        )
    one = found["group"] if found["stage"] is None else found["stage"]
    group = -1 if one is None else int(one)
    if found["names"] is not None:
        names = tuple(dict.fromkeys(name.strip() for name in found["names"].split(",")))
        return Rule(
            text=clean, form=Form.ON, digit=digit, group=group, stage=found["stage"] is not None,
            names=names,
        )  # fmt: skip
    if group >= 0:
        raise InputError(
            f"rule {shown!r}: one group can be put 'on' named domains only; 'within' and "
            f"'at most' are for all groups: expected e.g. '{digit} within supernode'"
        )
    if found["within"] is not None:
        return Rule(text=clean, form=Form.WITHIN, digit=digit, tier=_singular(found["within"]))
    most = int(found["most"])
    if most == 0:
        raise InputError(f"rule {shown!r}: a group sits in one domain at least; expected 1 or more")
    return Rule(
        text=clean, form=Form.AT_MOST, digit=digit, tier=_singular(found["counted"]), most=most
    )


def _singular(word: str) -> str:
    word = word.lower()
    return "leaf" if word == "leaves" else word.removesuffix("s")


def check_rules(
    rules: Sequence[Rule], layout: Layout, fabric: Fabric, tier: str
) -> tuple[Rule, ...]:
    """Return *rules* with ``at most 1`` read as ``within``, once each name in them is known.

    Raises:
        InputError: tiers, domains or groups that there are not; every fault is named.
    """
    faults = [fault for rule in rules for fault in _faults_of(rule, layout, fabric, tier)]
    if faults:
        raise InputError(*faults)
    return tuple(
        Rule(text=rule.text, form=Form.WITHIN, digit=rule.digit, tier=rule.tier)
        if rule.form is Form.AT_MOST and rule.most == 1
        else rule
        for rule in rules
    )


def _faults_of(rule: Rule, layout: Layout, fabric: Fabric, tier: str) -> list[str]:
    tiers = [t.name for t in fabric.tiers]
    said = f"rule {rule.text!r}"
    if rule.form is Form.WITHIN and is_host(rule.tier, fabric):
        return []
    if rule.form is Form.ON:
        return [*_group_faults(rule, layout, said), *_name_faults(rule, fabric, tier, said)]
    if rule.tier not in tiers:
        return [f"{said}: {fabric.name} has no tier {rule.tier!r}: one of {', '.join(tiers)}"]
    if rule.form is Form.AT_MOST and rule.tier != tier:
        instead = f"'{rule.digit} at most {rule.most} {tier}s'"
        wrong = f"{said}: only the {tier}s that are placed can be counted"
        return [f"{wrong}: expected {instead}, or --tier {rule.tier}"]
    if tiers.index(rule.tier) > tiers.index(tier):
        inside = ", ".join(tiers[: tiers.index(tier) + 1])
        wrong = f"{said}: a {rule.tier} is outside the {tier}s whose cut is made least"
        return [f"{wrong}: expected --tier {rule.tier}, or a rule about one of {inside}"]
    return []


def is_host(tier: str, fabric: Fabric) -> bool:
    """Return whether *tier* means the machines of a cluster that has no tier of that name."""
    named = any(t.name == tier for t in fabric.tiers)
    return tier in {"board", "host"} and not named and bool(fabric.hosts)


def _group_faults(rule: Rule, layout: Layout, said: str) -> list[str]:
    if rule.group < 0:
        return []
    size = prod(layout.axes[i].size for i in layout.axes_of(rule.digit))
    count = size if rule.stage else layout.gpus // size
    if rule.group < count:
        return []
    what = "stages" if rule.stage else f"{rule.digit.upper()} groups"
    return [f"{said}: the layout has {count} {what}: expected 0 to {count - 1}"]


def _name_faults(rule: Rule, fabric: Fabric, tier: str, said: str) -> list[str]:
    tiers = [t.name for t in fabric.tiers]
    known = [d.name for t in fabric.tiers[tiers.index(tier) :] for d in t.domains]
    inner = {d.name: t.name for t in fabric.tiers[: tiers.index(tier)] for d in t.domains}
    faults = []
    for name in rule.names:
        if name in known:
            continue
        if name in inner:
            faults.append(
                f"{said}: {name} is a {inner[name]}, inside the {tier}s that are seated: expected "
                f"a {tier} such as {known[0]}, or --tier {inner[name]}"
            )
            continue
        near = get_close_matches(name, known, n=3)
        faults.append(
            f"{said}: {fabric.name} has no domain {name!r}"
            + (f": did you mean {', '.join(near)}?" if near else f": they are called {known[0]} …")
        )
    return faults
