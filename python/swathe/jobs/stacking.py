"""One image of several: each is put onto a grid around its target, then pixel by pixel together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from swathe.catalog.work import KeptRow
    from swathe.cutout import Cutout
    from swathe.jobs.values import Options


@dataclass(frozen=True)
class Grid:
    """Pixels around a place in the sky, north up, east left."""

    ra_deg: float
    dec_deg: float
    side: int
    scale_deg: float

    @classmethod
    def of(cls, row: KeptRow) -> Grid | None:
        """Give that of a result; `None` where its size is not known."""
        if row.box is None or row.sky is None:
            return None
        ra, dec, size = row.sky
        return cls(ra, dec, row.box[2], size / row.box[2])

    def at(self, ra_deg: float, dec_deg: float) -> Grid:
        """Give the same pixels around another place."""
        return Grid(ra_deg, dec_deg, self.side, self.scale_deg)


def aligned(cutout: Cutout, grid: Grid) -> NDArray[np.float32]:
    """Give the pixels of an image at those of a grid."""
    raise NotImplementedError


def made(
    path: Path,
    folder: Path,
    grid: Grid,
    rows: Sequence[KeptRow],
    options: Options,
    stopped: Callable[[], bool],
) -> bool:
    """Write the result of rows; tells whether it was not stopped before."""
    raise NotImplementedError
