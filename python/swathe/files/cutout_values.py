"""A cutout as plain values, for pickle: what the engine's own object cannot be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swathe import _swathe


@dataclass(frozen=True)
class Parts:
    """A cutout made by the engine, held by Python, with the same attributes.

    Attributes:
        file: the FITS file.
        header_span: first byte of the header in it, and one past the last; pixels follow.
        bitpix: BITPIX.
        shape: in NumPy order.
        native: whether the source was tile-compressed.
        scaling: BSCALE, BZERO and BLANK.
        start: first pixel of each axis in the image, NAXIS1 first.
    """

    file: bytes
    header_span: tuple[int, int]
    bitpix: int
    shape: list[int]
    native: bool
    scaling: tuple[float, float, int | None]
    start: list[int]

    @property
    def header(self) -> bytes:
        """The header blocks of the image."""
        return self.file[slice(*self.header_span)]

    @property
    def stored(self) -> memoryview:
        """The stored pixels, big-endian."""
        count = abs(self.bitpix) // 8
        for length in self.shape:
            count *= length
        return memoryview(self.file)[self.header_span[1] :][:count]

    def fits(self) -> bytes:
        """Return the FITS file."""
        return self.file


def parts_of(cutout: _swathe.Cutout | Parts) -> Parts:
    """Return a cutout of the engine as plain values."""
    if isinstance(cutout, Parts):
        return cutout
    file, header = cutout.fits(), cutout.header
    # No other header is the same: the primary one begins with another card.
    start = file.index(header)
    return Parts(
        file,
        (start, start + len(header)),
        cutout.bitpix,
        list(cutout.shape),
        cutout.native,
        cutout.scaling,
        list(cutout.start),
    )
