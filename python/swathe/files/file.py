"""Open FITS files, and read regions of their images by NumPy slices."""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from functools import cached_property
from threading import Lock
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from swathe import _swathe
from swathe.core.argument_checks import check_objective
from swathe.core.errors import (
    ChangedError,
    FormatError,
    NoSuchHduError,
    NotAnImageError,
    RegionError,
    SwatheError,
)
from swathe.files.cutout import Cutout
from swathe.files.hdu import HduInfo
from swathe.files.planes import plane_span
from swathe.files.slices import axis_range, one_per_axis
from swathe.files.source_name import name_of
from swathe.stores.registry import stores_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    import numpy as np
    from astropy.io import fits
    from astropy.wcs import WCS
    from numpy.typing import DTypeLike, NDArray

    from swathe._swathe import HduKey
    from swathe.core.argument_checks import Objective
    from swathe.core.box import Box, Mode
    from swathe.core.sky import SkyMapping
    from swathe.files.planes import Planes
    from swathe.files.slices import Slices
    from swathe.files.source_name import Source


IMAGES = ("image", "compressed-image")


def open(path: Source) -> File:
    """Open a FITS file by path or URL: plain, gzip, bzip2 or compress.

    URLs have a scheme `http(s)://`, `s3://`, `gs://`, `az://`, `root(s)://` or `dav(s)://`. An
    object in a store of the catalogue is `NAME:path`. Only the needed headers are read. A file that
    is open for reading is opened again by its path, from its beginning.

    Raises:
        TypeError: If it is something else, such as the bytes of a file or an HDUList.
        NotFoundError, AccessError, SourceError: If it cannot be read.
        FormatError: If it is not a FITS file.
    """
    return open_cached(path, fresh=True)


class File:
    """An open file, at the version it had when it was opened.

    It is closed at the end of a `with` block, by `close`, or when nothing refers to it.

    It is the sequence of its HDUs: `len(file)`, iteration and `file.hdus` include all of them, and
    `file[3]` is the image in HDU 3. `file.images` are the HDUs that hold an image.

    It can be pickled: by path and version, without its content.

    Attributes:
        url: absolute path or URL, without credentials.
        version: size, and ETag or modification time.
    """

    def __init__(
        self, native: _swathe.Object, notes: list[str] | None = None, name: str | None = None
    ) -> None:
        """Wrap the engine's file and its warnings. Users call `swathe.open`.

        `name` is the name of an object in a store, `NAME:path`.
        """
        self._object: _swathe.Object | None = native
        self.url, self.version = native.url, native.version
        self._notes = [] if notes is None else notes
        self._name = name

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the path and version that pickle and copy open again."""
        return reopen, (self._name or self.url, self.version)

    def __repr__(self) -> str:
        return f"<File {self.url}>"

    def _repr_html_(self) -> str:
        from swathe.files.notebook import page, table

        facts = {
            "path": self.url,
            "size": f"{self.size:,} bytes, {self.compression or 'not compressed'}",
            "version": self.version,
        }
        rows = [
            [hdu.index, hdu.name or "", hdu.kind, tuple(hdu.shape) or "", hdu.bitpix or ""]
            for hdu in self.hdus
        ]
        return page(
            "File", facts, tables=[table(["HDU", "name", "holds", "shape", "BITPIX"], rows)]
        )

    def __enter__(self) -> File:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file. To use it or its images then raises ValueError; cutouts stay valid."""
        native, self._object = self._object, None
        with _recent_lock:
            for key in [key for key, entry in _recent.items() if entry[1] is native]:
                del _recent[key]

    @property
    def _native(self) -> _swathe.Object:
        if self._object is None:
            raise ValueError(
                f"{self.url}: expected an open file, found a closed one; open it again"
            )
        return self._object

    @property
    def compression(self) -> str | None:
        """Return the compression of the whole file: gzip, bzip2 or compress; `None` without."""
        return None if self._native.kind == "plain" else self._native.kind

    @property
    def size(self) -> int:
        """Return the stored size in bytes."""
        return self._native.size

    @cached_property
    def hdus(self) -> list[HduInfo]:
        """Return the properties of all HDUs."""
        return [HduInfo.of(native) for native in self._native.hdus()]

    @property
    def notes(self) -> list[str]:
        """Return warnings about ignored parts of the file, such as bytes after its last HDU."""
        # The engine reports each warning once; collect them here.
        self._notes.extend(note for note in self._native.notes() if note not in self._notes)
        return list(self._notes)

    def __len__(self) -> int:
        return len(self.hdus)

    def __iter__(self) -> Iterator[HduInfo]:
        """Iterate over all HDUs, as in `hdus`."""
        return iter(self.hdus)

    @property
    def images(self) -> list[Image]:
        """Return the HDUs that hold an image."""
        return [Image(self, info.index) for info in self.hdus if info.kind in IMAGES]

    def __getitem__(self, hdu: HduKey) -> Image:
        """Return the image in an HDU by number (-1: the last), name, or name and EXTVER.

        Raises:
            NoSuchHduError: If there is no such HDU.
            NotAnImageError: If it holds no image; `header` returns the header of any HDU.
        """
        return self._image(self._index(hdu))

    def header(self, hdu: HduKey = 0) -> fits.Header:
        """Return the header of any HDU, by default the primary one.

        Raises:
            NoSuchHduError: If there is no such HDU.
        """
        return Image(self, self._index(hdu)).header

    def image(self, hdu: HduKey | None = None) -> Image:
        """Return the image in an HDU, by default the first image.

        Raises:
            NoSuchHduError, NotAnImageError: As in `file[hdu]`.
        """
        return Image(self, self._native.find()) if hdu is None else self[hdu]

    def _index(self, hdu: HduKey) -> int:
        if isinstance(hdu, int) and hdu < 0:
            count = len(self.hdus)
            if hdu < -count:
                raise NoSuchHduError(
                    f"{self.url}: no HDU {hdu}: expected {-count} to {count - 1}; it has only "
                    f"{count} HDUs"
                )
            hdu += count
        return self._native.find(hdu)

    def _image(self, index: int) -> Image:
        """Return the image in an HDU, after a check that the HDU holds one."""
        image = Image(self, index)
        try:
            # Every use of an image begins with this call.
            _ = image.shape
        except FormatError:
            info = self.hdus[index]
            if info.kind in IMAGES:
                return image  # a damaged one, whose use raises the error
            raise NotAnImageError(
                f"{self.url}, HDU {_hdu_label(info)}: expected an image, "
                f"found {HOLDINGS[info.kind]}; {self._where_images_are()}"
            ) from None
        return image

    def _where_images_are(self) -> str:
        images = [_hdu_label(info) for info in self.hdus if info.kind in IMAGES]
        if not images:
            return "no HDU of the file holds an image"
        label_list = ", ".join(images[:MOST_NAMED]) + (", ..." if len(images) > MOST_NAMED else "")
        return f"images are in HDU{'s' if len(images) > 1 else ''} {label_list}"


PREVIEW_SIDE = 256
PREVIEW_BYTES = 16 << 20
"""Limit of bytes read or decoded to show a picture of an image."""
HOLDINGS = {"empty": "no data", "table": "a table", "other": "data of another kind"}
MOST_NAMED = 20
"""Number of HDUs named in an error."""


def _hdu_label(info: HduInfo) -> str:
    """Return number and name of an HDU as text."""
    return str(info.index) if info.name is None else f"{info.index} ({info.name})"


class Image:
    """An image of a file: an array whose pixels are read on indexing.

    `image[y0:y1, x0:x1]` reads a part; `image.data` and `numpy.asarray(image)` read the whole. It
    can be pickled: by the path and version of its file, without its pixels.

    Attributes:
        index: number of its HDU, from 0.
        url: absolute path or URL of its file, without credentials.
        version: version of its file.
    """

    def __init__(self, file: File, index: int) -> None:
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
        """Return all physical pixels, read anew each time."""
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
            RegionError: If there are more slices than axes, one is no slice or has a step, or the
                slices are empty.
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
        cut = self._image.cut_all_axes(start[::-1], stop[::-1], "strict")
        # Indices of one pixel give a number; with an ellipsis they give an array without axes.
        dots = (Ellipsis,) if Ellipsis in indices else ()
        data: NDArray[Any] = cut.data[(*dots, *rest)]
        return data


RECENT = 8
"""Local files kept open, so that the next cut from them need not read headers."""

_recent: OrderedDict[str, tuple[tuple[int, ...], _swathe.Object, list[str]]] = OrderedDict()
_recent_lock = Lock()


def reopen(name: str, version: str) -> File:
    """Open a file again, as after unpickling.

    Raises:
        ChangedError: If it has another version now.
    """
    file = open_cached(name, fresh=True)
    if file.version != version:
        raise ChangedError(
            f"{file.url}: expected the version {version}, found {file.version}: it changed; "
            "open it again"
        )
    return file


def open_cached(path: Source, fresh: bool = False) -> File:
    """Open a file, or return the one opened before if it has not changed.

    The index entry of an object on a server is taken as valid, unless `fresh`. If it is not, a cut
    raises `ChangedError`.
    """
    name = name_of(path)
    state = _state(name)
    if state is None:
        native = _swathe.open(name, stores_for([name]), fresh)
        return File(native, name=None if "://" in name else name)
    # The working directory may have changed since.
    key = os.path.abspath(name)
    with _recent_lock:
        entry = _recent.get(key)
        if entry is not None and entry[0] == state:
            _recent.move_to_end(key)
            return File(*entry[1:])
    native, notes = _swathe.open(name), list[str]()
    with _recent_lock:
        _recent[key] = (state, native, notes)
        _recent.move_to_end(key)
        while len(_recent) > RECENT:
            _recent.popitem(last=False)
    return File(native, notes)


def _state(name: str) -> tuple[int, ...] | None:
    """Return a value that changes when a local file does; `None` for a URL or a missing file."""
    if "://" in name:
        return None
    try:
        stat = os.stat(name)
    except (OSError, ValueError):
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
