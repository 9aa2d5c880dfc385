"""Read regions of an image by boxes and NumPy slices."""

from __future__ import annotations

import math
from functools import cached_property
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Protocol

from swathe.core.argument_checks import check_objective
from swathe.core.errors import RegionError, SwatheError
from swathe.files.cutout import Cutout
from swathe.files.planes import plane_span
from swathe.files.slices import axis_range, one_per_axis

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from astropy.io import fits
    from astropy.wcs import WCS
    from numpy.typing import DTypeLike, NDArray

    from swathe import _swathe
    from swathe.core.argument_checks import Objective
    from swathe.core.box import Box, Mode
    from swathe.core.sky import SkyMapping
    from swathe.files.hdu import HduInfo
    from swathe.files.planes import Planes
    from swathe.files.slices import Slices

PREVIEW_SIDE = 256
PREVIEW_BYTES = 16 << 20
"""Limit of bytes read or decoded to show a picture of an image."""
MOST_STEPPED_ROWS = 4096
"""Rows of a slice with a step that are read one by one: each comes with its own header."""


class ImageFile(Protocol):
    """Part of a `File` that an image uses."""

    url: str
    version: str

    @property
    def compression(self) -> str | None:
        """Return the compression of the whole file."""

    @property
    def hdus(self) -> list[HduInfo]:
        """Return the properties of all HDUs."""

    @property
    def _native(self) -> _swathe.Object:
        """Return the engine's file."""


class Image:
    """An image of a file: an array whose pixels are read on indexing.

    `image[y0:y1, x0:x1]` reads a part; `image.data` and `numpy.asarray(image)` read the whole. It
    can be pickled: by the path and version of its file, without its pixels.

    Attributes:
        index: number of its HDU, from 0.
        url: absolute path or URL of its file, without credentials.
        version: version of its file.
    """

    def __init__(self, file: ImageFile, index: int) -> None:
        """Set the file and the number of the HDU. Users get images from a `File`."""
        self._file = file
        self.index = index
        self.url, self.version = file.url, file.version

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the parts from which pickle and copy rebuild the image."""
        return Image, (self._file, self.index)

    def __repr__(self) -> str:
        return f"<Image {self.url}, HDU {self.index}>"

    def _repr_html_(self) -> str:
        from swathe.files.notebook import card_facts, page

        facts = {
            "path": f"{self.url}, HDU {self.index}",
            "shape": self.shape,
            **card_facts(self.header),
        }
        try:
            middle = self._middle()
        except SwatheError as error:
            return page("Image", {**facts, "picture": f"none: {error}"})
        if middle is None:
            facts["picture"] = "none: too many bytes to read; cut a part"
            return page("Image", facts)
        x0, y0, width, height = middle.box
        facts["picture"] = f"the middle, {width} x {height} pixels from [{x0}, {y0}]"
        return page("Image", facts, middle._thumbnail())

    def _repr_png_(self) -> bytes | None:
        middle = self._middle()
        return None if middle is None else middle._repr_png_()

    def _middle(self) -> Cutout | None:
        """Cut the middle of the first plane, if that reads at most `PREVIEW_BYTES` of a disk."""
        lengths = self.shape[::-1]
        away = "://" in self.url or self._file.compression is not None
        if away or len(lengths) < 2 or not all(lengths):
            return None
        start = [max(0, (length - PREVIEW_SIDE) // 2) for length in lengths[:2]]
        stop = [min(at + PREVIEW_SIDE, length) for at, length in zip(start, lengths, strict=False)]
        if self._bytes_read(start, stop) > PREVIEW_BYTES:
            return None
        rest = len(lengths) - 2
        return self.cut_all_axes([*start, *[0] * rest], [*stop, *[1] * rest], "strict")

    def _bytes_read(self, start: list[int], stop: list[int]) -> int:
        """Return an upper limit of the bytes that a region of one plane needs."""
        info = self._file.hdus[self.index]
        tile = info.tile_shape or (1,) * self.ndim
        pixels = math.prod(tile[:-2])
        for first, last, length in zip(start, stop, tile[::-1], strict=False):
            pixels *= ((last - 1) // length - first // length + 1) * length
        return pixels * abs(info.bitpix or 64) // 8

    @property
    def _native(self) -> _swathe.Object:
        return self._file._native

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Return the shape in NumPy order, `(..., NAXIS2, NAXIS1)`.

        Raises:
            FormatError: If the HDU holds no image.
        """
        return tuple(self._native.shape(self.index))

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.shape)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the physical pixels; one pixel is read to find it."""
        corner = self.cut_all_axes([0] * self.ndim, [1] * self.ndim, "strict")
        return corner.dtype

    @property
    def data(self) -> NDArray[Any]:
        """Return all physical pixels; each use reads them again."""
        data: NDArray[Any] = self.section[...]
        return data

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, slices: Slices) -> NDArray[Any]:
        """Read physical pixels, as `section[slices]` does."""
        return self.section[slices]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Read all physical pixels for NumPy.

        Raises:
            ValueError: If `copy` is False, since pixels that are read are always new.
        """
        if copy is False:
            raise ValueError(f"{self.url}, HDU {self.index}: pixels cannot be read without a copy")
        return self.data if dtype is None else self.data.astype(dtype, copy=False)

    @cached_property
    def header(self) -> fits.Header:
        """Return the header; for a compressed image, that of the uncompressed one."""
        from astropy.io import fits

        return fits.Header.fromstring(self._native.header(self.index))

    @cached_property
    def sky(self) -> SkyMapping:
        """Return the sky mapping of the image.

        Raises:
            RegionError: If its WCS has no celestial axes.
        """
        from swathe.core.sky import SkyMapping

        return SkyMapping(lambda: self.wcs, f"{self.url}, HDU {self.index}")

    @cached_property
    def wcs(self) -> WCS:
        """Return the WCS, with the lookup tables that it names."""
        from swathe.core.sky import read_wcs

        native = self._native
        return read_wcs(native.header(self.index), native.wcs_hdus(self.index))

    @property
    def section(self) -> Section:
        """Return a reader of physical pixels by NumPy slices, `image.section[y0:y1, x0:x1]`."""
        return Section(self)

    def cut(
        self,
        box: Box,
        *,
        mode: Mode = "trim",
        fill: float | None = None,
        planes: Planes | None = None,
        objective: Objective = "auto",
    ) -> Cutout:
        """Cut a box, `(x0, y0, width, height)`, as `swathe.cut` does; all planes by default."""
        start, stop = self.ends(box, planes)
        return self.cut_all_axes(start, stop, mode, fill, check_objective(objective))

    def ends(self, box: Box, planes: Planes | None = None) -> tuple[list[int], list[int]]:
        """Return `[start, stop)` of all axes, for `cut_all_axes`.

        Raises:
            FormatError: If the HDU holds no image.
            RegionError: If the image has no plane, or lacks these planes.
        """
        x0, y0, width, height = box
        start, stop = [x0, y0], [x0 + width, y0 + height]
        lengths = self.shape[::-1]
        if len(lengths) < 2:
            raise RegionError(f"{self.url}, HDU {self.index}: its shape {self.shape} has no plane")
        spans = [(0, length) for length in lengths[2:]]
        if planes is not None:
            spans[:1] = [self._plane_span(planes)]
        for first, last in spans:
            start.append(first)
            stop.append(last)
        return start, stop

    def slice_ends(self, slices: Slices) -> tuple[list[int], list[int]]:
        """Return `[start, stop)` of all axes for NumPy slices, for `cut_all_axes`.

        Raises:
            RegionError: If there are more slices than axes, one is not a slice or has a step, or
                the slices are empty.
        """
        slices = slices if isinstance(slices, tuple) else (slices,)
        wrong = [each for each in slices if not isinstance(each, slice | EllipsisType)]
        if wrong:
            raise RegionError(
                f"section: expected slices such as numpy.s_[10:20, 30:40], found {wrong[0]!r:.60}"
            )
        start, stop = [], []
        for index, length in zip(one_per_axis(slices, self.ndim), self.shape, strict=True):
            assert isinstance(index, slice)
            first, last, step = index.indices(length)
            if step != 1 or first >= last:
                raise RegionError(
                    f"{self.url}, HDU {self.index}: section: expected step 1 and at least a pixel "
                    f"of the shape {self.shape}, found {index.start}:{index.stop}:{index.step}"
                )
            start.append(first)
            stop.append(last)
        return start[::-1], stop[::-1]

    def cut_all_axes(
        self,
        start: list[int],
        stop: list[int],
        mode: Mode,
        fill: float | None = None,
        objective: Objective = "auto",
    ) -> Cutout:
        """Cut `[start, stop)` of all axes, zero-based, NAXIS1 first."""
        native = self._native.cut(self.index, start, stop, mode, fill, objective)
        return Cutout(native, self._native.url, self._native.version, self.index)

    def cut_regions(self, regions: Iterable[tuple[list[int], list[int]]]) -> list[Cutout]:
        """Cut several regions, `start` and `stop` of all axes, NAXIS1 first, read together."""
        native = self._native
        cuts = native.cut_each(self.index, list(regions))
        return [Cutout(each, native.url, native.version, self.index) for each in cuts]

    def _plane_span(self, planes: Planes) -> tuple[int, int]:
        """Return `[first, last)` of planes along NAXIS3, zero-based.

        Raises:
            RegionError: If there are none, some are missing, or they are not consecutive.
        """
        what, lengths = f"{self.url}, HDU {self.index}", list(self.shape[::-1])
        length = lengths[2] if len(lengths) > 2 else 0
        first, last = plane_span(planes, length)
        span_text = planes if isinstance(planes, int) else f"{first}:{last}"
        if not 0 <= first < last <= length:
            raise RegionError(
                f"{what}: planes {span_text} of NAXIS3 are not within the image of shape {lengths}"
            )
        return first, last


class Section:
    """Reader of regions of an image by NumPy slices."""

    def __init__(self, image: Image) -> None:
        """Set the image to read from."""
        self._image = image

    def __getitem__(self, slices: Slices) -> NDArray[Any]:
        """Return physical pixels as `array[slices]` would, reading only the needed bytes.

        Of a slice of rows with a step, only these rows are read, if they are at most 4096.

        Raises:
            RegionError: If there are more indices than axes.
            PixelIndexError: If an index is out of range.
        """
        import numpy as np

        shape = self._image.shape
        indices = slices if isinstance(slices, tuple) else (slices,)
        start, stop, rest = [], [], []
        for index, length in zip(one_per_axis(indices, len(shape)), shape, strict=True):
            first, last, within = axis_range(index, length)
            start.append(first)
            stop.append(last)
            rest.append(within)
        if any(first == last for first, last in zip(start, stop, strict=True)):
            empty = [last - first for first, last in zip(start, stop, strict=True)]
            return np.empty(empty, self._image.dtype)[tuple(rest)]
        down = rest[-2] if len(rest) > 1 else 0
        step = down.step or 1 if isinstance(down, slice) else 1
        rows = range(start[-2], stop[-2], abs(step)) if len(start) > 1 else range(0)
        if abs(step) > 1 and len(rows) <= MOST_STEPPED_ROWS:
            cuts = self._image.cut_regions(
                ([*start[:-2], row, start[-1]][::-1], [*stop[:-2], row + 1, stop[-1]][::-1])
                for row in rows
            )
            pixels = [each.data for each in cuts]
            data = np.concatenate(pixels, axis=-2, dtype=pixels[0].dtype)
            rest[-2] = slice(None, None, 1 if step > 0 else -1)
        else:
            data = self._image.cut_all_axes(start[::-1], stop[::-1], "strict").data
        # Indices of one pixel give a number; with an ellipsis they give an array without axes.
        dots = (Ellipsis,) if Ellipsis in indices else ()
        section: NDArray[Any] = data[(*dots, *rest)]
        return section
