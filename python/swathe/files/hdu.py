"""Properties of an HDU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from swathe import _swathe

BLOCK = 2880
"""Bytes of a block of a FITS file: a header has whole blocks, and so has data."""
Size = TypeVar("Size", int, "NDArray[np.float64]")
HduKind = Literal["image", "compressed-image", "table", "empty", "other"]


def whole_blocks(size: Size) -> Size:
    """Return the bytes of the blocks that hold `size` bytes; also for an array of sizes."""
    return -(-size // BLOCK) * BLOCK


@dataclass(frozen=True)
class HduInfo:
    """Properties of an HDU.

    Attributes:
        index: number of the HDU, from 0.
        name: its EXTNAME.
        version: its EXTVER; 1 without one.
        kind: `image`, `compressed-image`, `table`, `empty` or `other`.
        bitpix: BITPIX of the image; `None` for other HDUs.
        shape: shape of the image in NumPy order, `(..., NAXIS2, NAXIS1)`; empty for other HDUs.
        codec: codec of the tiles, such as `RICE_1`; `None` if the image is not compressed.
        tile_shape: shape of a tile in NumPy order; `None` if the image is not compressed.
        data_start: position of the data in the uncompressed file, bytes.
        problem: reason if regions cannot be cut from the image.
    """

    index: int
    name: str | None
    version: int
    kind: HduKind
    bitpix: int | None
    shape: tuple[int, ...]
    codec: str | None
    tile_shape: tuple[int, ...] | None
    data_start: int
    problem: str | None

    @classmethod
    def of(cls, native: _swathe.HduInfo) -> HduInfo:
        """Return the properties that the engine reports."""
        tile = native.tile_shape
        return cls(
            native.index,
            native.name,
            native.version,
            native.kind,
            native.bitpix,
            tuple(native.shape),
            native.codec,
            None if tile is None else tuple(tile),
            native.data_start,
            native.problem,
        )
