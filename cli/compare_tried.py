"""The sizes of one cluster that were tried for a comparison, and why none of them does."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.errors import InfeasibleError, InputError
from planner.procure.run import DAY_S
from planner.units import format_number

_TRILLION = 1e12


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of each size that was tried, by its GPUs.

    Args:
        rates: tokens a second of those that train [1/s].
        unfit: why no layout fits or can run on it.
        unbuilt: why the network cannot be built so large.
        whole_gpus: GPUs of a cluster whose graph is fixed; 0 of one that can be built larger [1].
    """

    rates: dict[int, float] = field(default_factory=dict)
    unfit: dict[int, str] = field(default_factory=dict)
    unbuilt: dict[int, str] = field(default_factory=dict)
    whole_gpus: int = 0

    @property
    def ends(self) -> bool:
        """Whether the cluster's file, not the model, ends the sizes that can be asked."""
        if self.whole_gpus:
            return True
        return bool(self.unbuilt) and max(self.unbuilt) > max([*self.rates, *self.unfit], default=0)

    def why_none_fits(self) -> str:
        """Return why no layout fits on the largest such size, and why it cannot be built larger.

        >>> Tried({}, {32: "needs 232 GB"}, {64: "no core", 128: "no core"}).why_none_fits()
        'no layout fits on 32 GPUs: needs 232 GB; it cannot be built with 64: no core'
        """
        said = []
        if self.unfit:
            most = max(self.unfit)
            said.append(f"no layout fits on {most:,} GPUs: {self.unfit[most]}")
        return "; ".join([*said, *self._end()])

    def none_in_time(self, tokens: float, days: float, most: int, goodput_share: float) -> None:
        """Say that no size does a run in time, and why.

        Args:
            tokens, days: of the run [1], [days].
            most: GPUs up to which sizes are tried [1].
            goodput_share: of the time that trains [1].

        Raises:
            InputError: larger sizes might, but the cluster's file cannot be built so large.
            InfeasibleError: even the largest does not.
        """
        run = f"trains {tokens_words(tokens)} tokens in {days:g} days"
        built = self.ends and not self.whole_gpus
        which = "that can be built" if built else f"up to {most:,} GPUs"
        said = [f"of the sizes tried, {which}, none {run}"]
        if self.rates:
            best = max(self.rates, key=lambda gpus: self.rates[gpus])
            took = tokens / (self.rates[best] * goodput_share * DAY_S)
            said.append(f"{best:,} GPUs take {format_number(took, digits=4)} days")
        if self.unfit and max(self.unfit) > max(self.rates, default=0):
            size = max(self.unfit)
            said.append(f"no layout fits on {size:,} GPUs: {self.unfit[size]}")
        said += self._end()
        if not self.ends:
            raise InfeasibleError("; ".join(said))
        more = "a larger cluster" if self.whole_gpus else "a network that goes on"
        raise InputError(
            "; ".join([*said, f"describe {more}, give more days, or leave this cluster out"])
        )

    def _end(self) -> list[str]:
        if not self.ends:
            return []
        if self.whole_gpus:
            return [f"its file or what is dead in it fixes its {self.whole_gpus:,} GPUs"]
        larger = min(gpus for gpus in self.unbuilt if gpus > max([*self.rates, *self.unfit, 0]))
        return [f"it cannot be built with {larger:,}: {self.unbuilt[larger]}"]


def tokens_words(tokens: float) -> str:
    """Return so many tokens as ``--tokens`` takes them.

    >>> tokens_words(15e12), tokens_words(2.5e9)
    ('15T', '2.5B')
    """
    for unit, letter in ((_TRILLION, "T"), (1e9, "B"), (1e6, "M")):
        if tokens >= unit:
            return f"{format_number(tokens / unit, digits=4)}{letter}"
    return f"{tokens:,.0f}"
