"""A cutout as plain values that can be pickled; the engine's object cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swathe import _swathe


@dataclass(frozen=True)
class Parts:
    """Copy of an engine's cutout in Python, with the same attributes.

    Attributes:
        file: FITS file.
        header_span: first byte of the header in the file, and one past its last; pixels follow.
        bitpix: BITPIX.
        shape: shape in NumPy order.
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
        """Return the header blocks of the image."""
        return self.file[slice(*self.header_span)]

    @property
    def stored(self) -> memoryview:
        """Return the stored pixels, big-endian."""
        count = abs(self.bitpix) // 8
        for length in self.shape:
            count *= length
        return memoryview(self.file)[self.header_span[1] :][:count]

    def fits(self) -> bytes:
        """Return the bytes of the FITS file."""
        return self.file


def parts_of(cutout: _swathe.Cutout | Parts) -> Parts:
    """Return an engine's cutout as plain values."""
    if isinstance(cutout, Parts):
        return cutout
    file, header = cutout.fits(), cutout.header
    # No other header matches: the primary one begins with another card.
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
