"""Read TIFF, BigTIFF, GeoTIFF and COG with tifffile.

Every image is an array: `/0`, `/1`, ... are full images, `/0/overview_1` is a smaller copy of `/0`,
`/0/mask` tells which of its pixels are valid, `/0/mask_overview_1` is a smaller copy of that, and
`/0/image_1` is another image that `/0` refers to (SubIFDs). Axes
are `y, x`, or `y, x, band` where the samples of a pixel are stored together, or `band, y, x` where
each band is stored by itself; volumes have `z` before `y`. GeoTIFF keys are attributes of the
array. Palettes and colour spaces are not applied.

References:
    TIFF 6.0; TIFF Technical Note 3 (predictor 3); OGC 19-008r4 (GeoTIFF); GDAL's tags 42112 and
    42113.
"""

from __future__ import annotations

import logging
import math
from contextlib import contextmanager
from enum import Enum
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, Literal, cast

import numpy as np

from swathe.arrays.index_writer import (
    IndexWriter,
    by_library,
    contiguous,
    encode_attribute,
    refusal,
)
from swathe.arrays.readers.limits import (
    BoundedFile,
    check_chunk,
    check_shape,
    chunk_fault,
    typed_errors,
)
from swathe.arrays.readers.tiff_attributes import attributes_of, fill_of, nodata_of
from swathe.core.errors import FormatError, NoSuchHduError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

MOST_IMAGES = 10_000
MOST_MESSAGES, LONGEST_MESSAGE = 20, 300
"""Messages of tifffile that become warnings about a file, and characters of one."""
FILTERS = {1: None, 5: "lzw", 8: "deflate", 32773: "packbits", 32946: "deflate", 50000: "zstd"}
"""Filter of each compression that is read natively."""
PREDICTORS = {2: "horizontal", 3: "floating"}
WITHOUT_PREDICTOR = (1, 32773)
"""Compressions that have no predictor: libtiff ignores it there, tifffile does not."""


def describe(file: IO[bytes]) -> bytes:
    """Return the chunk index of a TIFF file.

    Args:
        file: the file, for reading at any position.

    Raises:
        FormatError: If it is damaged or not TIFF.
        OptionError: If tifffile is not installed.
    """
    source = BoundedFile(file)
    messages: list[str] = []
    with _log_of_library(messages):
        tiff = _open(source)
        import tifffile

        index = IndexWriter("tiff", f"tifffile {tifffile.__version__}", notes=messages)
        for name, page in _images(tiff, source):
            _add(index, name, page, source)
        return index.to_bytes()


def read(file: IO[bytes], name: str, start: int, stop: int) -> bytes:
    """Return elements of an image that tifffile decodes.

    Args:
        file: the file, for reading at any position.
        name: name of the image.
        start: first element, in C order.
        stop: end of the elements.

    Returns:
        The elements, in the byte order of the index.

    Raises:
        FormatError: If the file is damaged, or tifffile does not decode the image.
        NoSuchHduError: If it has no such image.
        OptionError: If tifffile is not installed.
    """
    source = BoundedFile(file)
    with _log_of_library([]):
        tiff = _open(source)
        for each, page in _images(tiff, source):
            if each == name:
                return _decode(source, name, page, start, stop)
    raise NoSuchHduError(f"expected an image of the file, found {name}")


@contextmanager
def _log_of_library(messages: list[str]) -> Iterator[None]:
    """Append what tifffile logs to messages, and turn what it raises into FormatError.

    Nothing is logged besides: the log would be text on the terminal of who opens a file.
    """

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            """Append a message, unless there are many."""
            text = encode_attribute(f"tifffile: {record.getMessage()[:LONGEST_MESSAGE]}")
            if text not in messages and len(messages) < MOST_MESSAGES:
                messages.append(text)

    logger, collector = logging.getLogger("tifffile"), Collector(logging.WARNING)
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(collector)
    try:
        with typed_errors("tifffile"):
            yield
    finally:
        logger.removeHandler(collector)
        logger.propagate = propagates


def _open(file: BoundedFile) -> Any:
    try:
        from tifffile import TiffFile
    except ImportError as error:
        raise OptionError("TIFF needs tifffile: pip install swathe[geotiff]") from error
    with typed_errors("tifffile"):
        tiff = TiffFile(cast("IO[bytes]", file))
        _check_chain(tiff, file)
        return tiff


def _check_chain(tiff: Any, file: BoundedFile) -> None:
    """Raise FormatError if the chain of images has a loop, leaves the file, or is too long."""
    layout = tiff.tiff
    file.seek(8 if tiff.is_bigtiff else 4)
    order: Literal["little", "big"] = "little" if tiff.byteorder == "<" else "big"
    offset = int.from_bytes(file.read(layout.offsetsize), order)
    offsets: set[int] = set()
    while offset:
        what = f"image {len(offsets)}"
        if offset in offsets:
            raise FormatError(f"{what}: expected a later directory, found that at {offset} again")
        if len(offsets) == MOST_IMAGES:
            raise FormatError(f"expected at most {MOST_IMAGES} images")
        offsets.add(offset)
        tags = int.from_bytes(file.part(what, offset, layout.tagnosize), order)
        end = offset + layout.tagnosize + tags * layout.tagsize
        offset = int.from_bytes(file.part(what, end, layout.offsetsize), order)


def _images(tiff: Any, file: BoundedFile) -> Iterator[tuple[str, Any]]:
    """Return the images with their names."""
    full = -1
    numbers: dict[str, int] = {}

    def name_of(page: Any, is_inner: bool) -> str:
        nonlocal full
        kind = page.subfiletype
        if full < 0 or not (kind & 5 or is_inner):
            full += 1
            return f"/{full}"
        mask = f"/{full}/mask"
        name = {
            0: f"/{full}/image_",
            1: f"/{full}/overview_",
            4: mask,
            5: f"{mask}_overview_",
        }[kind & 5]
        number = numbers[name] = numbers.get(name, 0) + 1
        if name == mask:
            return mask if number == 1 else f"{mask}_{number}"
        return f"{name}{number}"

    for page in tiff.pages:
        yield name_of(page, is_inner=False), page
        for each in _inner_images(page, file):
            yield name_of(each, is_inner=True), each


def _inner_images(page: Any, file: BoundedFile) -> list[Any]:
    """Return the images that an image refers to (SubIFDs)."""
    offsets = page.subifds or ()
    if len(set(offsets)) != len(offsets) or len(offsets) > MOST_IMAGES:
        raise FormatError(f"image {page.index}: expected inner images, each once")
    for offset in offsets:
        file.part(f"image inside image {page.index}", offset, 2)
    return list(page.pages) if offsets else []


def _add(index: IndexWriter, name: str, page: Any, file: BoundedFile) -> None:
    """Add an image to an index."""
    dtype = _dtype(page)
    shape, dims, chunk_shape = _axes(page)
    check_shape(f"image {name}", shape)
    check_shape(f"parts of image {name}", chunk_shape)
    index.add(
        name,
        dtype,
        shape,
        _storage(index, page, dtype, file),
        dims=dims,
        attributes=attributes_of(page),
        fill=fill_of(page, dtype),
    )


def _dtype(page: Any) -> np.dtype[Any]:
    """Return the type of the decoded elements, in the byte order of the file."""
    dtype = np.dtype("u1" if page.dtype is None else page.dtype)
    return dtype.newbyteorder(page.parent.byteorder)


def _axes(page: Any) -> tuple[list[int], list[str], list[int]]:
    """Return the shape, the names of the axes, and the shape of a chunk."""
    bands, depth, length, width, samples = page.shaped
    chunk_depth, chunk_length, chunk_width = (
        (page.tiledepth, page.tilelength, page.tilewidth)
        if page.is_tiled
        else (1, page.rowsperstrip, width)
    )
    axes = [
        ("band", bands, 1, bands > 1),
        ("z", depth, chunk_depth, depth > 1),
        ("y", length, chunk_length, True),
        ("x", width, chunk_width, True),
        ("band", samples, samples, samples > 1),
    ]
    present = [axis for axis in axes if axis[3]]
    return [axis[1] for axis in present], [axis[0] for axis in present], [a[2] for a in present]


def _storage(
    index: IndexWriter, page: Any, dtype: np.dtype[Any], file: BoundedFile
) -> dict[str, Any]:
    """Return how an image is stored, and by whom it is read."""
    shape, _, chunk_shape = _axes(page)
    if page.dtype is None:
        return refusal(f"samples: {page.bitspersample} bits of format {int(page.sampleformat)}")
    if 0 in shape or 0 in chunk_shape:
        return refusal(f"an image of {shape} in parts of {chunk_shape}")
    grid = [-(-length // part) for length, part in zip(shape, chunk_shape, strict=True)]
    if not math.prod(grid) == len(page.dataoffsets) == len(page.databytecounts):
        return refusal(
            f"parts: expected {math.prod(grid)}, found {len(page.dataoffsets)} positions and "
            f"{len(page.databytecounts)} lengths"
        )
    offsets = np.array(page.dataoffsets, np.uint64)
    lengths = np.array(page.databytecounts, np.uint64)
    numbers = np.flatnonzero((offsets > 0) & (lengths > 0))
    offsets, lengths = offsets[numbers], lengths[numbers]
    ends = offsets + lengths
    if len(ends) and (ends.max() > file.size or (ends < offsets).any()):
        return refusal(f"parts: expected their ends in the file of {file.size} bytes")
    if fault := chunk_fault(chunk_shape, dtype.itemsize):
        return refusal(fault)
    filters, library = _filters(index, page, dtype)
    if not len(numbers):
        filters, library = [], None
    if library is not None:
        return library
    if page.compression == 1:
        sizes = _sizes(shape, chunk_shape, numbers, page.is_tiled) * dtype.itemsize
        if (lengths < sizes).any():
            number = int(np.argmax(lengths < sizes))
            return refusal(
                f"part {numbers[number]}: expected {sizes[number]} bytes, found {lengths[number]}"
            )
        lengths = sizes
        is_whole = not page.is_tiled or chunk_shape == shape
        follows = offsets[1:] == offsets[:-1] + lengths[:-1]
        if is_whole and len(numbers) == math.prod(grid) and follows.all():
            return contiguous(int(offsets[0]))
    return index.chunks(
        chunk_shape, filters, numbers, offsets, lengths, is_padded=bool(page.is_tiled)
    )


def _sizes(
    shape: list[int], chunk_shape: list[int], numbers: NDArray[Any], is_padded: bool
) -> NDArray[np.uint64]:
    """Return the elements that chunks store."""
    if is_padded:
        return np.full(len(numbers), math.prod(chunk_shape), np.uint64)
    grid = [-(-length // part) for length, part in zip(shape, chunk_shape, strict=True)]
    sizes = np.ones(len(numbers), np.uint64)
    for at, length, part in zip(np.unravel_index(numbers, grid), shape, chunk_shape, strict=True):
        sizes *= np.minimum(part, length - at * part).astype(np.uint64)
    return sizes


def _filters(
    index: IndexWriter, page: Any, dtype: np.dtype[Any]
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return the filters of an image, or the storage of one that is not read natively."""
    compression, predictor = int(page.compression), int(page.predictor)
    is_plain = compression in FILTERS
    if predictor != 1 and compression in WITHOUT_PREDICTOR:
        return [], refusal(f"predictor {predictor} with compression {compression}, which has none")
    if is_plain and predictor not in (1, *PREDICTORS):
        return [], refusal(f"predictor {predictor}")
    if is_plain and predictor == 3 and dtype.kind != "f":
        return [], refusal(f"predictor 3 of {dtype}: expected floating-point numbers")
    if is_plain and page.is_subsampled:
        return [], refusal("colours of fewer samples than pixels (YCbCrSubSampling)")
    if page.jpegheader is not None:
        return [], refusal("one JPEG in parts (NDPI)")
    sample_format = page.tags.get(339)
    if sample_format is not None and np.unique(sample_format.value).size > 1:
        return [], refusal("samples of several formats")
    why = ""
    if page.bitspersample != 8 * dtype.itemsize:
        why = f"samples of {page.bitspersample} bits"
    elif page.fillorder != 1:
        why = f"bits in order {int(page.fillorder)}"
    elif not is_plain:
        why = f"compression {_name_of(page.compression)}"
    elif predictor == 2 and dtype.itemsize > 8:
        return [], refusal(f"predictor 2 of {dtype}")
    if why:
        return [], _by_tifffile(index, page, why)
    filters: list[dict[str, Any]] = []
    if predictor != 1:
        filters = [
            {
                "name": PREDICTORS[predictor],
                "size": dtype.itemsize,
                "samples": page.shaped[4],
                "width": page.tilewidth if page.is_tiled else page.imagewidth,
                "big_endian": page.parent.byteorder == ">",
            }
        ]
    if name := FILTERS[compression]:
        filters.append({"name": name})
    return filters, None


def _by_tifffile(index: IndexWriter, page: Any, why: str) -> dict[str, Any]:
    """Return the storage of an image that tifffile decodes, if it does here."""
    import tifffile
    from tifffile import TIFF

    has_more = hasattr(tifffile.tifffile, "imagecodecs") and hasattr(
        tifffile.tifffile.imagecodecs, "PACKINTS"
    )
    fault = ""
    if int(page.compression) not in TIFF.DECOMPRESSORS or (
        int(page.predictor) != 1
        and int(page.compression) not in TIFF.IMAGE_COMPRESSIONS
        and int(page.predictor) not in TIFF.UNPREDICTORS
    ):
        fault = "which tifffile does not decode here; imagecodecs may add it"
    elif page.bitspersample not in (1, 8, 16, 32, 64) and not has_more:
        fault = "which tifffile decodes with imagecodecs only"
    if fault:
        index.missing.update({"imagecodecs"} if find_spec("imagecodecs") is None else ())
        return refusal(f"{why}, {fault}")
    return by_library(why)


def _name_of(value: Any) -> str:
    return str(value.name) if isinstance(value, Enum) else str(value)


def _decode(file: BoundedFile, name: str, page: Any, start: int, stop: int) -> bytes:
    """Return elements `[start, stop)` of an image, decoding no more parts than they touch."""
    shape, _, chunk_shape = _axes(page)
    check_chunk(f"image {name}", math.prod(chunk_shape) * page.dtype.itemsize)
    if not 0 <= start <= stop <= math.prod(shape):
        raise FormatError(
            f"image {name}: expected elements in 0 to {math.prod(shape)}, found {start} to {stop}"
        )
    check_chunk(f"image {name}", (stop - start) * page.dtype.itemsize)
    answer = np.full(stop - start, nodata_of(page) or 0, _dtype(page))
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    grid = [-(-length // part) for length, part in zip(shape, chunk_shape, strict=True)]
    for number, (offset, length) in enumerate(
        zip(page.dataoffsets, page.databytecounts, strict=True)
    ):
        corner = [
            int(at) * part
            for at, part in zip(np.unravel_index(number, grid), chunk_shape, strict=True)
        ]
        size = [
            min(part, whole - first)
            for part, whole, first in zip(chunk_shape, shape, corner, strict=True)
        ]
        first = sum(a * b for a, b in zip(corner, strides, strict=True))
        last = first + sum((a - 1) * b for a, b in zip(size, strides, strict=True))
        if last < start or first >= stop or not offset or not length:
            continue
        data = file.part(f"image {name}, part {number}", offset, length)
        tile, place, _ = page.decode(data, number, jpegtables=page.jpegtables)
        rest = [slice(whole - at) for whole, at in zip(page.shaped[1:4], place[1:4], strict=True)]
        values = tile[tuple(rest)].reshape(size)
        places = np.full(size, first)
        for axis, stride in enumerate(strides):
            steps = np.arange(size[axis]) * stride
            places += steps.reshape([-1 if i == axis else 1 for i in range(len(size))])
        inside = (places >= start) & (places < stop)
        answer[places[inside] - start] = values[inside]
    return answer.tobytes()
