"""A user's price list by its file; a file of another kind is named as what it is."""

from __future__ import annotations

from pathlib import Path

from planner.procure.price_file import read_prices
from planner.procure.prices import PriceList
from topologies.file_kinds import handed_as


def read_price_list(path: Path | str) -> PriceList:
    """Return the price list in the file at *path*.

    Raises:
        SpecError: it is a file that another option takes, or every fault of the list.
    """
    with handed_as("prices", path):
        return read_prices(path)
