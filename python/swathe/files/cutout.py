"""A cutout: pixels, header, WCS, and ways to write it."""

from __future__ import annotations

import math
import operator
import re
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO

from swathe.core.errors import FormatError, OutputError, RegionError
from swathe.files.cutout_values import Parts, parts_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from astropy.io import fits
    from astropy.nddata import CCDData, NDData
    from astropy.units import UnitBase
    from astropy.wcs import WCS
    from numpy.typing import DTypeLike, NDArray

    from swathe import _swathe
    from swathe.core.box import Box

FITS_SUFFIXES = (".fits", ".fit", ".fts")
_CHANGEABLE = ("data", "header", "notes")
"""Cached values that a user may have changed; copies carry the changes."""
_COUNTS = re.compile(
    r"(?P<name>adu|dn|counts?|cts?|electrons?|e-)(?P<per>/s(ec(onds?)?)?)?", re.IGNORECASE
)
_PIXEL_TYPES = {8: "u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}


class Cutout:
    """A region of an image: an array and a value.

    NumPy functions use it as the array of its physical pixels, and `+ - * /` return arrays. It can
    be pickled and copied. Changes to `data` or `header` affect this object and its copies only:
    `write` and `to_bytes` give the unchanged cutout.

    Attributes:
        url: path or URL of the source.
        version: version of the source: its size, and its ETag or modification time.
        hdu: number of the HDU, from 0.
        notes: warnings about the source, as of damage that a striped store rebuilt.
    """

    def __init__(self, native: _swathe.Cutout | Parts, url: str, version: str, hdu: int) -> None:
        """Wrap the engine's cutout. Users get cutouts from `swathe.cut`."""
        self._native = native
        self.url = url
        self.version = version
        self.hdu = hdu
        self.notes: list[str] = []

    def __repr__(self) -> str:
        x0, y0, width, height = self.box
        return f"<Cutout [{x0}, {y0}] {width} x {height} of {self.url}, HDU {self.hdu}>"

    def _repr_html_(self) -> str:
        from swathe.files.notebook import card_facts, page

        x0, y0, width, height = self.box
        pixels = self._thumbnail()
        facts = {
            "source": f"{self.url}, HDU {self.hdu}",
            "box": f"x {x0} to {x0 + width - 1}, y {y0} to {y0 + height - 1}, counted from 0",
            "shape": f"{self.shape}, BITPIX {self._native.bitpix}",
            **card_facts(self.header),
        }
        if pixels is not None and self.ndim > 2:
            facts["picture"] = f"plane 0 of {self.size // (width * height)}"
        return page("Cutout", facts, pixels)

    def _repr_png_(self) -> bytes | None:
        from swathe.files.notebook import png

        pixels = self._thumbnail()
        return None if pixels is None else png(pixels)

    def _thumbnail(self) -> NDArray[Any] | None:
        """Return physical pixels for a small picture; `None` if there is no plane."""
        from swathe.files.notebook import thin_pixels

        if self.ndim < 2:
            return None
        return physical(thin_pixels(self.stored), *self._native.scaling, native=self._native.native)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the parts from which pickle and copy rebuild the cutout."""
        changeable = {name: self.__dict__[name] for name in _CHANGEABLE if name in self.__dict__}
        return (
            Cutout,
            (parts_of(self._native), self.url, self.version, self.hdu),
            changeable,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape in NumPy order, `(..., NAXIS2, NAXIS1)`."""
        return tuple(self._native.shape)

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Return the number of pixels."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the physical pixels."""
        return self.data.dtype

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the physical pixels for NumPy; `data` itself if no copy is needed.

        Raises:
            ValueError: If `copy` is False and a conversion needs one.
        """
        import numpy as np

        data = self.data
        if dtype is None or np.dtype(dtype) == data.dtype:
            return data.copy() if copy else data
        if copy is False:
            raise ValueError(f"pixels of {data.dtype} cannot be {np.dtype(dtype)} without a copy")
        return data.astype(dtype)

    def __add__(self, other: Any) -> Any:
        return operator.add(self.data, other)

    def __radd__(self, other: Any) -> Any:
        return operator.add(other, self.data)

    def __sub__(self, other: Any) -> Any:
        return operator.sub(self.data, other)

    def __rsub__(self, other: Any) -> Any:
        return operator.sub(other, self.data)

    def __mul__(self, other: Any) -> Any:
        return operator.mul(self.data, other)

    def __rmul__(self, other: Any) -> Any:
        return operator.mul(other, self.data)

    def __truediv__(self, other: Any) -> Any:
        return operator.truediv(self.data, other)

    def __rtruediv__(self, other: Any) -> Any:
        return operator.truediv(other, self.data)

    def __neg__(self) -> Any:
        return operator.neg(self.data)

    @property
    def box(self) -> Box:
        """Return the position in the image: `(x0, y0, width, height)`, zero-based."""
        x0, y0 = [*self._native.start, 0][:2]
        height, width = (1, *self.shape)[-2:]
        return x0, y0, width, height

    @cached_property
    def stored(self) -> NDArray[Any]:
        """Return the pixels as stored, big-endian, before BSCALE and BZERO; read-only."""
        import numpy as np

        pixels = memoryview(self._native.stored)
        flat: NDArray[Any] = np.frombuffer(pixels, _PIXEL_TYPES[self._native.bitpix])
        return flat.reshape(self.shape)

    @cached_property
    def data(self) -> NDArray[Any]:
        """Return the physical pixels, with the values, type and byte order of astropy."""
        return physical(self.stored, *self._native.scaling, native=self._native.native)

    @cached_property
    def header(self) -> fits.Header:
        """Return the source's cards in their order; only those that a cut affects are changed."""
        from astropy.io import fits

        return fits.Header.fromstring(self._native.header)

    @cached_property
    def wcs(self) -> WCS:
        """Return the WCS of the cutout: each pixel keeps its sky position in the image."""
        from swathe.core.sky import read_wcs

        return read_wcs(self._native.header, self._native.fits())

    def to_nddata(self, unit: Any = None) -> NDData:
        """Return pixels, header and WCS as an `astropy.nddata.NDData`.

        Args:
            unit: unit of the pixels; by default that of BUNIT, or none without BUNIT.

        Raises:
            FormatError: If astropy does not know BUNIT, and `unit` is not given.
        """
        from astropy.nddata import NDData

        return NDData(self.data, wcs=self.wcs, meta=self.header, unit=self._unit(unit))

    def to_ccddata(self, unit: Any = None) -> CCDData:
        """Return pixels, header and WCS as an `astropy.nddata.CCDData`, which needs a unit.

        Args:
            unit: unit of the pixels; by default that of BUNIT.

        Raises:
            FormatError: If there is no BUNIT, or astropy does not know it, and `unit` is not given.
        """
        from astropy.nddata import CCDData

        ccd_unit = self._unit(unit)
        if ccd_unit is None:
            raise FormatError(
                f"{self.url}, HDU {self.hdu}: a CCDData needs a unit, and there is no BUNIT: "
                'give one, such as unit="adu", or unit="" for none'
            )
        return CCDData(self.data, wcs=self.wcs, meta=self.header, unit=ccd_unit)

    def _unit(self, unit: Any) -> UnitBase | None:
        """Return the given unit, or that of BUNIT; `None` if there is neither."""
        from astropy.units import Unit

        if unit is not None:
            return Unit(unit)
        text = self.header.get("BUNIT")
        if text is None or not str(text).strip():
            return None
        unit_object = parse_unit(str(text))
        if unit_object is None:
            raise FormatError(
                f"{self.url}, HDU {self.hdu}: BUNIT: expected a unit that astropy knows, "
                f'found {str(text)!r}: give one, such as unit="adu", or unit="" for none'
            )
        return unit_object

    def to_bytes(self) -> bytes:
        """Return the bytes of the FITS file that `write` writes."""
        return self._native.fits()

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write `.fits` (`.fit`, `.fts`), `.npy` (the physical pixels) or a `.png` preview.

        The file gets its name when it is complete. The source image is never replaced. The folder
        must exist.

        Args:
            path: file to write.
            overwrite: whether an existing file may be replaced.

        Raises:
            OutputExistsError: If the file exists and `overwrite` is false.
            OutputError: If the suffix is another, or the file cannot be written.
            RegionError: If the file is a picture and the cutout has no plane, or several.
        """
        from pathlib import Path

        from swathe.core.outputs import write_file

        path = Path(path)
        save = saving(self, path)
        write_file(path, save, overwrite=overwrite, sources=[self.url])


def saving(cutout: Cutout, path: Path) -> Callable[[BinaryIO], object]:
    """Return the function that writes the kind of file given by the suffix.

    Raises:
        OutputError: If the suffix is unknown.
        RegionError: If the file is a picture and the cutout has no plane, or several.
    """
    match path.suffix.lower():
        case ".npy":
            import numpy as np

            return lambda file: np.save(file, cutout.data, allow_pickle=False)
        case ".png":
            from swathe.files.preview import picture

            planes = math.prod(cutout.shape[:-2])
            if planes != 1:
                raise RegionError(
                    f"{path}: a picture shows one plane, and the cutout has {planes}: choose "
                    "one with planes= (in the shell --planes)"
                )
            return lambda file: picture(cutout.data).save(file, "PNG")
        case suffix if suffix in FITS_SUFFIXES:
            return lambda file: file.write(cutout.to_bytes())
        case suffix:
            suffixes = ", ".join((*FITS_SUFFIXES, ".npy", ".png"))
            raise OutputError(
                f"{path}: cannot write {suffix or 'without a suffix'}; known: {suffixes}"
            )


def parse_unit(text: str) -> UnitBase | None:
    """Return the unit that a BUNIT names; `None` if neither FITS nor astropy has this unit.

    Only names of counts are read in either case: MJY could be MJy or mJy.
    """
    from astropy.units import Unit

    counts = _COUNTS.fullmatch("".join(text.split()))
    if counts is not None:
        name, per = counts.group("name").lower(), counts.group("per")
        text = {"a": "adu", "d": "DN", "c": "ct", "e": "electron"}[name[0]] + ("/s" if per else "")
    for way in ("fits", "generic"):
        with suppress(ValueError):
            unit: UnitBase = Unit(text.strip(), format=way)
            return unit
    return None


def physical(
    stored_pixels: NDArray[Any], bscale: float, bzero: float, blank: int | None, *, native: bool
) -> NDArray[np.generic]:
    """Return physical pixels from stored ones, with the same operations as astropy.

    The unsigned conventions (BZERO = 2^(n-1), or -128 for bytes) give integers. Other scaling gives
    float32 for up to 16 bits and float64 beyond, with NaN for BLANK. Pixels without scaling keep
    their type. `native` is for tile-compressed images, whose byte order astropy changes. As in
    astropy, BLANK = 0 marks no pixel.
    """
    import numpy as np

    raw = stored_pixels.astype(stored_pixels.dtype.newbyteorder("=")) if native else stored_pixels
    bits, integer = 8 * raw.dtype.itemsize, raw.dtype.kind in "iu"
    if bscale == 1 and bzero == 0 and (blank is None or not integer):
        return raw if native else raw.copy()
    if integer and bscale == 1:
        if bits == 8 and bzero == -128:
            return (raw ^ 0x80).view(np.int8)
        if bits > 8 and bzero == 2 ** (bits - 1):
            shifted_pixels = np.array(raw, dtype=f"u{bits // 8}")
            shifted_pixels -= shifted_pixels.dtype.type(1 << (bits - 1))
            return shifted_pixels
    # Floats keep their type and byte order.
    data = np.array(raw, dtype=("f8" if bits > 16 else "f4") if integer else raw.dtype)
    if bscale != 1:
        np.multiply(data, bscale, data)
    if bzero != 0:
        data += bzero
    if blank and integer:
        data[raw == blank] = np.nan
    return data
