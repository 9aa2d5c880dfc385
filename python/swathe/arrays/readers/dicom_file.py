"""Read the data set of a DICOM file up to its pixel data, within limits.

References:
    DICOM PS3.5 (data structures and encoding), PS3.10 (media storage and file format).
"""

from __future__ import annotations

import io
import itertools
import warnings
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from struct import Struct
from typing import IO, TYPE_CHECKING, Any, cast

from swathe.arrays.readers.limits import BoundedFile, typed_errors
from swathe.core.errors import FormatError, LimitError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PREFIX_AT, PREFIX = 128, b"DICM"
"""Position and bytes by which a file is DICOM."""
IMPLICIT, BIG_ENDIAN = "1.2.840.10008.1.2", "1.2.840.10008.1.2.2"
DEFLATE = "1.2.840.10008.1.2.1.99"
"""Transfer syntaxes whose data set is written in another way than explicit, little-endian."""
PIXELS = {0x7FE00008: "FloatPixelData", 0x7FE00009: "DoubleFloatPixelData", 0x7FE00010: "PixelData"}
"""Elements with pixels, by their tag."""
LONG_LENGTHS = ("OB", "OD", "OF", "OL", "OV", "OW", "UN")
"""Value representations of pixels with a length of four bytes, in explicit ones."""
UNKNOWN_LENGTH = 0xFFFFFFFF
MOST_VALUE = 1 << 20
"""Longest value that is read, in bytes; longer ones are passed over."""
MOST_ELEMENTS = 20_000
"""Limit of the elements outside of sequences."""
MOST_READS = 400_000
"""Limit of the reads of a data set: two for an element, one for an item of a sequence."""
MOST_DATA_SET = 256 << 20
"""Largest data set that is inflated, in bytes."""
PIECE = 1 << 20


@dataclass(frozen=True)
class PixelElement:
    """The element with the pixels, where it lies in the data set.

    Attributes:
        keyword: its name, such as `PixelData`.
        vr: its value representation; empty if the file does not say.
        offset: first byte of the value.
        length: bytes of the value; None if it is in fragments.
    """

    keyword: str
    vr: str
    offset: int
    length: int | None


@dataclass(frozen=True)
class DicomFile:
    """A data set, without its pixels.

    Attributes:
        source: what it was read from: the file, or the bytes that were inflated.
        elements: the elements before the pixels, a data set of pydicom.
        pixels: the element with the pixels; None without one.
        syntax: UID of the transfer syntax; empty if the file does not say.
        data_start: first byte of the data set in the file.
        data_end: end of the file.
    """

    source: BoundedFile
    elements: Any
    pixels: PixelElement | None
    syntax: str
    data_start: int
    data_end: int

    @property
    def is_little_endian(self) -> bool:
        """Check whether numbers have their lowest byte first."""
        return bool(self.elements.original_encoding[1])

    @property
    def is_deflated(self) -> bool:
        """Check whether positions are those of bytes that were inflated."""
        return self.syntax == DEFLATE


@contextmanager
def pydicom_calls() -> Iterator[None]:
    """Call pydicom: its errors become ours, and odd values are no warnings.

    Raises:
        OptionError: If it is not installed.
    """
    try:
        from pydicom import config
    except ImportError as error:
        raise OptionError("DICOM needs pydicom: pip install swathe[dicom]") from error
    with (
        warnings.catch_warnings(),
        config.disable_value_validation(),
        typed_errors("pydicom"),
    ):
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", ".* in file <no filename>")  # its end, within an element
        try:
            yield
        except OSError as error:
            # What pydicom makes of any error in an item of a sequence, too many levels among them.
            if type(error) is OSError and error.errno is None:
                raise FormatError(f"pydicom: {error}") from error
            raise


def open_dicom(file: IO[bytes]) -> DicomFile:
    """Read the elements of a file before its pixels. Call it within `pydicom_calls`.

    Raises:
        FormatError: If it is damaged, or not DICOM.
        LimitError: If it has too many elements, or inflates to too much.
    """
    from pydicom.filereader import read_dataset

    source: BoundedFile = _CountedFile(file)
    prefix = source.part("DICOM", 0, PREFIX_AT + len(PREFIX))[PREFIX_AT:]
    if prefix != PREFIX:
        raise FormatError(f"expected {PREFIX!r} at byte {PREFIX_AT}, found {prefix!r}")
    meta = read_dataset(cast("Any", source), False, True, stop_when=lambda tag, *_: tag >> 16 != 2)
    syntax = str(meta.get("TransferSyntaxUID") or "")
    data_start, data_end = source.tell(), source.size
    if syntax == DEFLATE:
        source = _CountedFile(io.BytesIO(_inflate(source)))
    elements = read_dataset(
        cast("Any", source),
        syntax in ("", IMPLICIT),
        syntax != BIG_ENDIAN,
        stop_when=_pixel_stop(),
        defer_size=MOST_VALUE,
    )
    _check_ends(elements, source)
    pixels = _pixel_element(source, *elements.original_encoding)
    if pixels is None and not len(elements):
        raise FormatError("expected elements, found none")
    return DicomFile(source, elements, pixels, syntax, data_start, data_end)


class _CountedFile(BoundedFile):
    """A file that is read only so often: pydicom takes some 50 microseconds for each item."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self._reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes; fewer at the end of the file.

        Raises:
            LimitError: If it was read too often.
        """
        self._reads += 1
        if self._reads > MOST_READS:
            raise LimitError(f"expected elements and items in at most {MOST_READS} reads")
        return super().read(size)


def _pixel_stop() -> Callable[..., bool]:
    """Return a function that says of each element whether it has the pixels.

    It raises LimitError after too many.
    """
    numbers = itertools.count()

    def is_pixels(tag: int, *_: Any) -> bool:
        if next(numbers) > MOST_ELEMENTS:
            raise LimitError(f"expected at most {MOST_ELEMENTS} elements, found more")
        return tag in PIXELS

    return is_pixels


def _inflate(file: BoundedFile) -> bytes:
    """Return the rest of a file, inflated (RFC 1951, without a header)."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    pieces: list[bytes] = []
    size = 0
    while not inflater.eof:
        part = inflater.unconsumed_tail or file.read(PIECE)
        piece = inflater.decompress(part, PIECE)
        if not part and not piece:
            raise FormatError("deflated data set: expected its end, found that of the file")
        pieces.append(piece)
        size += len(piece)
        if size > MOST_DATA_SET:
            raise LimitError(f"deflated data set: expected at most {MOST_DATA_SET} bytes")
    return b"".join(pieces)


def _check_ends(elements: Any, source: BoundedFile) -> None:
    """Raise FormatError if the value of an element is not all in the file."""
    from pydicom.dataelem import RawDataElement

    for tag in elements.keys():  # noqa: SIM118 (elements would be converted)
        element = elements.get_item(tag, keep_deferred=True)
        if not isinstance(element, RawDataElement) or element.length == UNKNOWN_LENGTH:
            continue
        end = element.value_tell + element.length
        if end > source.size:
            raise FormatError(
                f"element {element.tag}: expected its end in {source.size} bytes, found {end}"
            )


def _pixel_element(
    source: BoundedFile, is_implicit: bool, is_little_endian: bool
) -> PixelElement | None:
    """Read the head of the element with the pixels, where the other elements end."""
    order = "<" if is_little_endian else ">"
    head = source.read(12)
    if len(head) < 8:
        return None
    group, number = Struct(f"{order}HH").unpack_from(head)
    keyword = PIXELS.get(group << 16 | number)
    if keyword is None:
        raise FormatError(
            f"element ({group:04x},{number:04x}) at {source.tell() - len(head)}: "
            "expected pixels or the end of the file"
        )
    start = source.tell() - len(head)
    vr = "" if is_implicit else head[4:6].decode("ascii", "replace")
    if vr and (vr not in LONG_LENGTHS or len(head) < 12):
        raise FormatError(f"{keyword}: expected one of {', '.join(LONG_LENGTHS)}, found {vr!r}")
    length_at = 8 if vr else 4
    length = Struct(f"{order}L").unpack_from(head, length_at)[0]
    offset = start + length_at + 4
    return PixelElement(keyword, vr, offset, None if length == UNKNOWN_LENGTH else length)
