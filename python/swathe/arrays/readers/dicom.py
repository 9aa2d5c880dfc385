"""Read DICOM with pydicom: the pixels of an object are one array.

Its name is the keyword of its element: `/PixelData`, `/FloatPixelData`, `/DoubleFloatPixelData`.
Axes are `y, x`; several frames have `frame` before them; several samples of a pixel have `band`
after them, or before them where each is stored by itself. Pixels are as stored: colour spaces,
palettes and rescaling are not applied. `/y` and `/x` are positions of the pixels in mm: along the
directions of columns and rows, from the origin of the patient if the file has a place.

Plain pixels, also of a deflated data set, are read by us; others by pydicom. Bits of an element
above BitsStored are kept, but cleared if pixels have a sign or hold overlays.

References:
    DICOM PS3.3 C.7.6.3 (image pixel), C.7.6.2 (image plane); PS3.5 8 and annex A.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from swathe.arrays.index_writer import (
    IndexWriter,
    by_library,
    contiguous,
    encode_attribute,
    inline,
    refusal,
)
from swathe.arrays.readers.dicom_attributes import add_macros, attributes_of, number, packing_of
from swathe.arrays.readers.dicom_file import DicomFile, open_dicom, pydicom_calls
from swathe.arrays.readers.limits import check_chunk, check_shape, fill_chunk_shape
from swathe.core.errors import FormatError, NoSuchHduError

if TYPE_CHECKING:
    from collections.abc import Sequence

HALF_COLOURS = "YBR_FULL_422"
DECODERS = ("PIL", "gdcm", "jpeg_ls", "libjpeg", "openjpeg", "pylibjpeg", "rle")
"""Modules with which pydicom decodes more."""
WIDTHS = (8, 16, 32, 64)
"""Bits of an element that NumPy has."""
PART_BYTES = 1 << 16
"""Bytes of a chunk of pixels with unused bits."""
FLOATS = {"FloatPixelData": "f4", "DoubleFloatPixelData": "f8"}


def describe(file: IO[bytes]) -> bytes:
    """Return the chunk index of a DICOM file.

    Args:
        file: the file, for reading at any position.

    Raises:
        FormatError: If it is damaged or not DICOM.
        LimitError: If it has too many elements.
        OptionError: If pydicom is not installed.
    """
    with pydicom_calls():
        import pydicom

        dicom = open_dicom(file)
        add_macros(dicom.elements)
        of_file, of_pixels = attributes_of(dicom.elements)
        library = f"pydicom {pydicom.__version__}"
        index = IndexWriter("dicom", library, {"/": of_file})
        if dicom.pixels is not None:
            _add(index, dicom, of_pixels)
        return index.to_bytes()


def read(file: IO[bytes], name: str, start: Sequence[int], stop: Sequence[int]) -> bytes:
    """Return elements of pixels that pydicom decodes.

    Args:
        file: the file, for reading at any position.
        name: name of the array.
        start: first element along each axis.
        stop: element after the last along each axis.

    Returns:
        The elements, in the byte order of the index.

    Raises:
        FormatError: If the file is damaged, or pydicom does not decode the pixels.
        NoSuchHduError: If it has no such array.
        OptionError: If pydicom is not installed.
    """
    with pydicom_calls():
        dicom = open_dicom(file)
        if dicom.pixels is None or name != f"/{dicom.pixels.keyword}":
            raise NoSuchHduError(f"expected the pixels of the file, found {name}")
        layout = PixelLayout.of(dicom)
        shape = layout.shape(is_planar=False)
        first, last = list(start), list(stop)
        is_inside = len(first) == len(last) == len(shape) and all(
            0 <= a <= b <= length for a, b, length in zip(first, last, shape, strict=True)
        )
        if not is_inside:
            raise FormatError(f"{name}: expected a region of {shape}, found {first} to {last}")
        check_chunk(f"a frame of {name}", layout.frame_bytes)
        size = math.prod(b - a for a, b in zip(first, last, strict=True))
        check_chunk(name, size * layout.dtype.itemsize)
        within = tuple(map(slice, first, last))
        if layout.frames == 1:
            parts = [_decode(dicom, layout, 0)[within]]
        else:
            frames = range(first[0], last[0])
            parts = [_decode(dicom, layout, frame)[within[1:]] for frame in frames]
        return b"".join(part.tobytes() for part in parts)


@dataclass(frozen=True)
class PixelLayout:
    """How the pixels are stored.

    Attributes:
        frames: number of frames.
        rows: rows of a frame.
        columns: pixels of a row.
        samples: samples of a pixel.
        is_planar: whether each sample is stored by itself.
        bits: bits of an element.
        used_bits: bits of these that are the value.
        high_bit: number of the highest of them.
        is_signed: whether it has a sign.
        colours: how samples are to be understood (PhotometricInterpretation).
        dtype: type of the elements.
    """

    frames: int
    rows: int
    columns: int
    samples: int
    is_planar: bool
    bits: int
    used_bits: int
    high_bit: int
    is_signed: bool
    colours: str
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, dicom: DicomFile) -> PixelLayout:
        """Read the layout.

        Raises:
            FormatError: If a needed element is absent, or no such number.
        """
        elements, keyword = dicom.elements, cast("Any", dicom.pixels).keyword

        def whole(name: str, default: int | None = None) -> int:
            value = number(elements, name)
            if value is None and name not in elements and default is not None:
                return default
            if value is None or value != int(value) or value < 0:
                raise FormatError(f"{name}: expected a number, found {elements.get(name)!r:.60}")
            return int(value)

        samples = whole("SamplesPerPixel", 1)
        order = "<" if dicom.is_little_endian else ">"
        bits = 8 * np.dtype(FLOATS[keyword]).itemsize if keyword in FLOATS else None
        is_signed = bits is None and whole("PixelRepresentation") == 1
        width = whole("BitsAllocated") if bits is None else bits
        value_bits = whole("BitsStored", width) if bits is None else bits
        kind = "i" if is_signed else "u"
        # Bits that are packed become bytes.
        code = FLOATS.get(keyword) or f"{kind}{width // 8 if width in WIDTHS else 1}"
        return cls(
            whole("NumberOfFrames", 1),
            whole("Rows"),
            whole("Columns"),
            samples,
            samples > 1 and whole("PlanarConfiguration") == 1,
            width,
            value_bits,
            whole("HighBit", value_bits - 1) if bits is None else value_bits - 1,
            is_signed,
            str(elements.get("PhotometricInterpretation") or ""),
            np.dtype(f"{order}{code}"),
        )

    def axes(self, is_planar: bool) -> list[tuple[str, int]]:
        """Return names and lengths of the axes, slowest first."""
        axes = [("y", self.rows), ("x", self.columns)]
        if self.samples > 1:
            axes.insert(0 if is_planar else 2, ("band", self.samples))
        return [("frame", self.frames), *axes] if self.frames > 1 else axes

    def shape(self, is_planar: bool) -> list[int]:
        """Return the lengths of the axes, slowest first."""
        return [length for _, length in self.axes(is_planar)]

    @property
    def frame_bytes(self) -> int:
        """Return the bytes of a frame in memory."""
        return self.rows * self.columns * self.samples * self.dtype.itemsize


def _add(index: IndexWriter, dicom: DicomFile, attributes: dict[str, Any]) -> None:
    """Add the pixels and their coordinates to an index."""
    pixels = cast("Any", dicom.pixels)
    name = f"/{pixels.keyword}"
    try:
        layout = PixelLayout.of(dicom)
        check_shape(name, layout.shape(layout.is_planar))
    except FormatError as error:
        index.add(name, np.dtype("u1"), [0], refusal(str(error)), attributes=attributes)
        return
    storage = _storage(index, dicom, layout)
    is_native = storage["kind"] not in ("library", "refused")
    axes = layout.axes(layout.is_planar and is_native)
    packing = packing_of(dicom.elements, layout.dtype)
    fill = packing.get("_FillValue")
    index.add(
        name,
        layout.dtype,
        [length for _, length in axes],
        storage,
        dims=[axis for axis, _ in axes],
        attributes=attributes | {key: encode_attribute(value) for key, value in packing.items()},
        fill=None if fill is None else fill.tobytes(),
    )
    if storage["kind"] == "refused":
        return
    for axis, values in _positions(dicom.elements, layout).items():
        index.add(
            f"/{axis}",
            values.dtype,
            values.shape,
            inline(values.tobytes()),
            dims=[axis],
            attributes={"units": "mm", "axis": axis.upper()} if axis in "yx" else {"units": "mm"},
        )


def _storage(index: IndexWriter, dicom: DicomFile, layout: PixelLayout) -> dict[str, Any]:
    """Return how pixels are stored, and by whom they are read."""
    from pydicom.pixels.decoders.base import get_decoder
    from pydicom.uid import UID

    pixels = cast("Any", dicom.pixels)
    if 0 in (layout.samples, *layout.shape(is_planar=False)):
        return refusal(
            f"{layout.samples} samples of {layout.rows} rows and {layout.columns} columns"
        )
    if layout.bits not in (1, *WIDTHS):
        return refusal(f"elements of {layout.bits} bits")
    if not 1 <= layout.used_bits == layout.high_bit + 1 <= layout.bits:
        return refusal(
            f"values in {layout.used_bits} bits up to bit {layout.high_bit} of {layout.bits}: "
            "expected them to begin at bit 0"
        )
    uid = UID(dicom.syntax)
    if pixels.length is None or (dicom.syntax and uid.is_transfer_syntax and uid.is_encapsulated):
        try:
            has_decoder = get_decoder(uid).is_available
        except NotImplementedError:
            has_decoder = False
        why = f"transfer syntax {uid.name or 'unknown'}"
        if has_decoder:
            return by_library(why)
        index.missing.update(name for name in DECODERS if find_spec(name) is None)
        return refusal(f"{why}, which pydicom does not decode")
    if dicom.syntax and not uid.is_transfer_syntax:
        return refusal(f"transfer syntax {str(uid)[:64]!r}, which is none of DICOM")
    bits = layout.rows * layout.columns * layout.samples * layout.bits
    if layout.colours == HALF_COLOURS:
        bits = bits // 3 * 2
    byte_count = -(-layout.frames * bits // 8)
    if byte_count > pixels.length or pixels.offset + byte_count > dicom.source.size:
        rest = min(pixels.length, max(dicom.source.size - pixels.offset, 0))
        return refusal(f"pixels: expected {byte_count} bytes, found {rest}")
    why = _why_library(dicom, layout)
    return by_library(why) if why else _plain_storage(index, dicom, layout)


def _why_library(dicom: DicomFile, layout: PixelLayout) -> str:
    """Return why plain pixels are read by pydicom; empty if they are not."""
    if layout.bits == 1:
        return "pixels of one bit"
    if layout.colours == HALF_COLOURS:
        return f"colours of fewer samples than pixels ({HALF_COLOURS})"
    if layout.bits == 8 and not dicom.is_little_endian and cast("Any", dicom.pixels).vr == "OW":
        return "bytes in swapped words"
    return ""


def _plain_storage(index: IndexWriter, dicom: DicomFile, layout: PixelLayout) -> dict[str, Any]:
    """Return where plain pixels lie: one after the other, or in chunks with filters."""
    offset = cast("Any", dicom.pixels).offset
    shape, size = layout.shape(layout.is_planar), layout.dtype.itemsize
    filters: list[dict[str, Any]] = []
    is_partial = layout.used_bits < layout.bits
    if is_partial and (layout.is_signed or _has_overlay_bits(dicom.elements)):
        filters.append(
            {
                "name": "bits",
                "size": size,
                "bits": layout.used_bits,
                "signed": layout.is_signed,
                "big_endian": not dicom.is_little_endian,
            }
        )
    if dicom.is_deflated:
        filters.append({"name": "rawdeflate", "from": offset, "size": dicom.source.size})
        start, stop = dicom.data_start, dicom.data_end
        return index.chunks(shape, filters, [0], [start], [stop - start])
    if not filters:
        return contiguous(offset)
    part = fill_chunk_shape(shape, size, PART_BYTES)
    grid = [-(-length // step) for length, step in zip(shape, part, strict=True)]
    corners = np.indices(grid).reshape(len(grid), -1)
    lengths = np.full(math.prod(grid), size, np.uint64)
    for at, length, step in zip(corners, shape, part, strict=True):
        lengths *= np.minimum(step, length - at * step).astype(np.uint64)
    # A chunk is as many last axes as fit, so that each begins where the one before ends.
    starts = np.cumsum(lengths) - lengths
    numbers = np.arange(math.prod(grid))
    return index.chunks(part, filters, numbers, starts + offset, lengths, is_padded=False)


def _has_overlay_bits(elements: Any) -> bool:
    """Check whether unused bits of the pixels are overlays (retired since 2001)."""
    return any(
        tag.group >> 8 == 0x60 and tag.element == 0x0102 and elements[tag].value
        for tag in elements.keys()  # noqa: SIM118 (elements would be converted)
    )


def _positions(elements: Any, layout: PixelLayout) -> dict[str, Any]:
    """Return positions in mm along the axes, by the names of the axes."""
    positions = {}
    spacing = number(elements, "PixelSpacing", 2)
    if spacing is not None and (spacing > 0).all():
        origin = number(elements, "ImagePositionPatient", 3)
        directions = number(elements, "ImageOrientationPatient", 6)
        starts = [0.0, 0.0]
        if origin is not None and directions is not None:
            starts = [float(directions[3:] @ origin), float(directions[:3] @ origin)]
        lengths = (layout.rows, layout.columns)
        for axis, start, step, length in zip("yx", starts, spacing, lengths, strict=True):
            positions[axis] = start + step * np.arange(length)
    offsets = number(elements, "GridFrameOffsetVector", layout.frames)
    if layout.frames > 1 and offsets is not None:
        positions["frame"] = offsets
    return positions


def _decode(dicom: DicomFile, layout: PixelLayout, frame: int) -> Any:
    """Return a frame that pydicom decodes, of axes `y, x` or `y, x, band`."""
    from pydicom.pixels.decoders.base import get_decoder

    pixels = cast("Any", dicom.pixels)
    dicom.source.seek(pixels.offset)
    options = {
        "rows": layout.rows,
        "columns": layout.columns,
        "samples_per_pixel": layout.samples,
        "number_of_frames": layout.frames,
        "bits_allocated": layout.bits,
        "bits_stored": layout.used_bits,
        "pixel_representation": int(layout.is_signed),
        "photometric_interpretation": layout.colours,
        "pixel_keyword": pixels.keyword,
        "pixel_vr": pixels.vr or "OW",
    }
    if layout.samples > 1:
        options["planar_configuration"] = int(layout.is_planar)
    decoder = get_decoder(cast("Any", dicom.syntax))
    values, _ = decoder.as_array(cast("Any", dicom.source), index=frame, raw=True, **options)
    if values.shape != tuple(layout.shape(is_planar=False)[layout.frames > 1 :]):
        raise FormatError(
            f"frame {frame}: expected {layout.shape(is_planar=False)}, found {values.shape}"
        )
    return values.astype(layout.dtype, copy=False)
