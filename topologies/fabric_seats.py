"""Where each GPU of a cluster file sits: supernode, board, place, rail; and what it is called.

Arrays run over all GPUs of the file in order, dead ones too; ``usable`` picks the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from topologies.fabric_spec import FabricSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray


def sums(index: NDArray[np.int64], values: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Return the sum of *values* at each index from 0 to *count* - 1.

    >>> sums(np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0]), 3).tolist()
    [1.0, 5.0, 0.0]
    """
    return np.bincount(index, values, count).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """Every GPU's seat.

    Args:
        supernode: supernode of each GPU; shape (gpus,), never decreasing.
        place: place within the supernode; shape (gpus,).
        board: board, counted over the whole cluster; shape (gpus,), never decreasing.
        usable: whether the GPU works; shape (gpus,).
        supernode_names, board_names: in order.
    """

    supernode: NDArray[np.int64]
    place: NDArray[np.int64]
    board: NDArray[np.int64]
    usable: NDArray[np.bool_]
    supernode_names: tuple[str, ...]
    board_names: tuple[str, ...]
    _place_digits: int

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the usable GPUs; shape (usable,)."""
        return np.flatnonzero(self.usable)

    def names(self, part: str) -> list[str]:
        """Return ``sn003.<part>05`` for every GPU, dead ones too."""
        places = [f".{part}{p:0{self._place_digits}d}" for p in range(int(self.place.max()) + 1)]
        owners = self.supernode_names
        return [
            owners[s] + places[p]
            for s, p in zip(self.supernode.tolist(), self.place.tolist(), strict=True)
        ]


def seats_of(spec: FabricSpec) -> Seats:
    """Return where each GPU of *spec* sits."""
    sizes = np.array(spec.supernode.sizes, np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    supernode = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(starts[-1]) - starts[supernode]
    boards = -(-sizes // spec.supernode.board_gpus)
    first_board = np.concatenate([[0], np.cumsum(boards)])
    board = first_board[supernode] + place // spec.supernode.board_gpus
    usable = np.ones(int(starts[-1]), bool)
    usable[list(spec.dead.gpus)] = False
    digits = max(2, len(str(len(sizes) - 1)))
    names = tuple(f"sn{i:0{digits}d}" for i in range(len(sizes)))
    board_names = tuple(
        f"{name}.board{b:02d}"
        for name, n in zip(names, boards.tolist(), strict=True)
        for b in range(n)
    )
    return Seats(
        supernode=supernode,
        place=place,
        board=board,
        usable=usable,
        supernode_names=names,
        board_names=board_names,
        _place_digits=max(2, len(str(int(sizes.max()) - 1))),
    )
