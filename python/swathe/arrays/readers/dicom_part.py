"""Write the data set of a part of a DICOM image, up to its pixels.

It keeps the elements of the source but those that only the whole image has, and is an image of its
own: with another UID, which names the source.

References:
    DICOM PS3.3 C.7.6.1.1.2 (image type), C.7.6.2 (image plane), C.12.4 (derivation).
"""

from __future__ import annotations

import io
from struct import pack
from typing import IO, Any, cast

from swathe.arrays.readers.dicom import PixelLayout
from swathe.arrays.readers.dicom_attributes import PLACE, number, position_of
from swathe.arrays.readers.dicom_file import (
    BIG_ENDIAN,
    MOST_VALUE,
    PIXELS,
    DicomFile,
    open_dicom,
    pydicom_calls,
)
from swathe.core.errors import FormatError, OutputError

EXPLICIT = "1.2.840.10008.1.2.1"
OF_WHOLE = (
    *("IconImageSequence", "SmallestImagePixelValue", "LargestImagePixelValue"),
    *("MACParametersSequence", "DigitalSignaturesSequence"),
)
"""Elements that are wrong for a part."""
PLANES = (0x50, 0x60)
"""High bytes of groups of curves and overlays, which have the size of the whole image."""
PLACES = (
    *("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"),
    *("TotalPixelMatrixColumns", "TotalPixelMatrixRows"),
)
"""Elements of images whose frames have places of their own."""
MOST_PIXELS = (1 << 32) - 2


def head(file: IO[bytes], box: list[int], size: int, text: str) -> bytes:
    """Return a DICOM file of a part with all frames, without the bytes of its pixels.

    Args:
        file: the source, for reading at any position.
        box: first column and row of the part, and their numbers.
        size: bytes of the pixels.
        text: what the part is (DerivationDescription).

    Raises:
        FormatError: If the source is damaged.
        OutputError: If DICOM cannot hold the part so.
        OptionError: If pydicom is not installed.
    """
    with pydicom_calls():
        dicom = open_dicom(file)
        if dicom.pixels is None:
            raise FormatError("expected pixels, found none")
        layout = PixelLayout.of(dicom)
        _check(dicom, layout, box, size)
        data = dicom.elements
        _set_origin(data, text)
        _set_place(data, *box[:2])
        data.Columns, data.Rows = box[2:]
        if layout.bits == 1:
            for keyword, bits in {"BitsAllocated": 8, "BitsStored": 1, "HighBit": 0}.items():
                setattr(data, keyword, bits)
        for tag in list(data.keys()):
            if tag.group >> 8 in PLANES and not tag.is_private:
                del data[tag]
        for keyword in OF_WHOLE:
            if keyword in data:
                del data[keyword]
        return _bytes_of(dicom, size)


def _check(dicom: DicomFile, layout: PixelLayout, box: list[int], size: int) -> None:
    """Raise OutputError if a part cannot be written."""
    data = dicom.elements
    if keyword := next((name for name in PLACES if name in data), None):
        raise OutputError(f"expected frames without places of their own, found {keyword}")
    for tag in data.keys():  # noqa: SIM118 (elements would be converted)
        raw = data.get_item(tag, keep_deferred=True)
        if raw.value is None and getattr(raw, "length", None):
            raise OutputError(f"element {tag}: expected at most {MOST_VALUE} bytes")
    if "SOPClassUID" not in data:
        raise OutputError("expected SOPClassUID, found none")
    shape = (layout.frames, box[3], box[2], layout.samples)
    if not all(0 < length < 1 << 16 for length in box[2:]) or size + size % 2 > MOST_PIXELS:
        raise OutputError(f"expected at most 65535 x 65535 pixels in 4 GiB, found {shape}")


def _set_origin(data: Any, text: str) -> None:
    """Set new UIDs of a data set, and name the image that it was made from."""
    from pydicom.dataset import Dataset
    from pydicom.uid import generate_uid

    source = Dataset()
    source.ReferencedSOPClassUID = data.SOPClassUID
    source.ReferencedSOPInstanceUID = data.get("SOPInstanceUID") or ""
    data.SourceImageSequence = [source]
    data.SOPInstanceUID = generate_uid()
    kinds = data.get("ImageType") or ["ORIGINAL", "PRIMARY"]
    data.ImageType = ["DERIVED", *(kinds if hasattr(kinds, "append") else [kinds])[1:]]
    data.DerivationDescription = text.encode("ascii", "replace").decode()[:1024]


def _set_place(data: Any, column: int, row: int) -> None:
    """Move the position of the first pixel; without direction and spacing it is left out."""
    from pydicom.valuerep import DSfloat

    if "ImagePositionPatient" not in data:
        return
    position, *vectors = (number(data, name, count) for name, count in PLACE.items())
    if position is None or any(each is None for each in vectors):
        del data.ImagePositionPatient
        return
    place = position_of(position, vectors[0], vectors[1], row, column)
    data.ImagePositionPatient = [DSfloat(float(each), auto_format=True) for each in place]


def _bytes_of(dicom: DicomFile, size: int) -> bytes:
    """Return a file of the elements, and the head of the element with the pixels."""
    from pydicom import dcmwrite
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import UID

    keyword = cast("Any", dicom.pixels).keyword
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = UID(EXPLICIT if dicom.is_little_endian else BIG_ENDIAN)
    content = io.BytesIO()
    data = FileDataset(content, dicom.elements, preamble=bytes(128), file_meta=meta)
    data.set_original_encoding(*dicom.elements.original_encoding)
    dcmwrite(content, data, enforce_file_format=True)
    tag = next(each for each, name in PIXELS.items() if name == keyword)
    bits = dicom.elements.get("BitsAllocated")
    vr = {"FloatPixelData": b"OF", "DoubleFloatPixelData": b"OD"}.get(keyword)
    vr = vr or (b"OB" if bits == 8 else b"OW")
    order = "<" if dicom.is_little_endian else ">"
    pixels = pack(f"{order}HH2sHL", tag >> 16, tag & 0xFFFF, vr, 0, size + size % 2)
    return content.getvalue() + pixels
