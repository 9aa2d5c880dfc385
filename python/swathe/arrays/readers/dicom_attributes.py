"""Attributes of a DICOM data set: texts and numbers of bounded size, under the keywords of DICOM.

Scale, offset, unit and padding value are those of the CF conventions, under their names there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.arrays.index_writer import encode_attribute

if TYPE_CHECKING:
    from collections.abc import Iterator

PIXEL_GROUP = 0x0028
OF_PIXELS = {"ImagePositionPatient", "ImageOrientationPatient", "SliceThickness", "SliceLocation"}
OF_PIXELS |= {"SpacingBetweenSlices"}
"""Elements outside of the group of pixels that are attributes of the array."""
FRAME_GROUPS = "SharedFunctionalGroupsSequence"
MACROS = (
    *("PixelMeasuresSequence", "PlaneOrientationSequence", "PlanePositionSequence"),
    "PixelValueTransformationSequence",
)
"""Sequences of one item, shared by all frames, whose elements count as those of the data set."""
PACKING = {"RescaleSlope", "RescaleIntercept", "RescaleType", "PixelPaddingValue"}
PACKING |= {"DoseGridScaling", "DoseUnits"}
"""Elements that become attributes of CF."""
PLACE = {"ImagePositionPatient": 3, "ImageOrientationPatient": 6, "PixelSpacing": 2}
"""Elements that say where pixels are, and how many numbers they have."""
STRUCTURE = {"Rows", "Columns", "NumberOfFrames", "SamplesPerPixel", "PlanarConfiguration"}
STRUCTURE |= {"BitsAllocated", "PixelRepresentation", "GridFrameOffsetVector"}
"""Elements that shape, type and coordinates of the array tell."""
NO_UNIT = ("", "US", "RELATIVE")
UNITS = {"GY": "Gy"}
"""Units that DICOM writes otherwise than others do."""
NUMBERS = {"US": "u2", "SS": "i2", "UL": "u4", "SL": "i4", "UV": "u8", "SV": "i8"}
NUMBERS |= {"FL": "f4", "FD": "f8", "DS": "f8", "IS": "i4"}
TABLE = "PaletteColorLookupTableData"
MOST_TEXT = 4096
"""Longest text, in characters; a longer one is cut and says so."""
MOST_ITEMS, MOST_LEVELS = 20, 4
"""Limits of a sequence that becomes a text of JSON; a larger one is the number of its items."""


def attributes_of(elements: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes of the file, and those of its pixels.

    Private elements, empty values, and values of plain bytes are left out.

    Args:
        elements: a data set of pydicom.
    """
    of_file: dict[str, Any] = {}
    of_pixels: dict[str, Any] = {}
    for element in _values(elements):
        if element.keyword in PACKING | STRUCTURE:
            continue
        is_of_pixels = element.tag.group == PIXEL_GROUP or element.keyword in OF_PIXELS
        value = _attribute(element, elements)
        if value is not None and not (isinstance(value, str) and not value):
            (of_pixels if is_of_pixels else of_file)[element.keyword] = encode_attribute(value)
    return of_file, of_pixels


def add_macros(elements: Any) -> None:
    """Add the elements that all frames share to those of the data set."""
    groups = elements.get(FRAME_GROUPS)
    for name in MACROS if groups else ():
        items = groups[0].get(name)
        for element in _values(items[0]) if items else ():
            if element.keyword not in elements:
                elements.add(element)


def packing_of(elements: Any, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return scale, offset, unit and fill value, as CF names them.

    Args:
        elements: a data set of pydicom.
        dtype: type of the pixels.
    """
    values: dict[str, Any] = {}
    slope, offset = (number(elements, f"Rescale{name}") for name in ("Slope", "Intercept"))
    unit = str(elements.get("RescaleType") or "")
    if slope is None and (slope := number(elements, "DoseGridScaling")) is not None:
        unit = str(elements.get("DoseUnits") or "")
    if slope is not None:
        values["scale_factor"] = slope
    if offset is not None:
        values["add_offset"] = offset
    if unit not in NO_UNIT:
        values["units"] = UNITS.get(unit, unit)[:MOST_TEXT]
    if "PixelPaddingValue" in elements and dtype.kind in "iu":
        element = elements["PixelPaddingValue"]
        padding = np.asarray(_attribute(element, elements))
        limits = np.iinfo(dtype)
        if padding.shape == () and padding.dtype.kind in "iu":
            # Written as unsigned by some, where the pixels have a sign.
            if padding > limits.max and padding.dtype == np.uint16 and dtype.itemsize == 2:
                padding = padding.view("i2")
            if limits.min <= padding <= limits.max:
                values["_FillValue"] = padding.astype(dtype)[()]
    return values


def number(elements: Any, keyword: str, count: int = 1) -> Any:
    """Return finite numbers of an element, one or an array; None if it has no such ones."""
    element = _value(elements, keyword) if keyword in elements else None
    array = np.asarray(None if element is None else _attribute(element, elements))
    if array.size != count or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        return None
    return np.float64(array.ravel()[0]) if count == 1 else array.ravel().astype("f8")


def position_of(position: Any, directions: Any, spacing: Any, row: int, column: int) -> Any:
    """Return where a pixel is, in mm (PS3.3 C.7.6.2.1.1).

    Args:
        position: place of the first pixel, x, y and z in mm.
        directions: directions of rows and of columns, three numbers each.
        spacing: distance between rows and between columns in mm.
        row: row of the pixel.
        column: its column.
    """
    row_mm, column_mm = spacing
    return position + column * column_mm * directions[:3] + row * row_mm * directions[3:]


def _values(elements: Any) -> Iterator[Any]:
    """Return the elements with a keyword and a value that was read."""
    for tag in sorted(elements.keys()):
        element = _value(elements, tag)
        if element is not None and element.keyword and not tag.is_private:
            yield element


def _value(elements: Any, tag: Any) -> Any:
    """Return an element; None if its value was too long to be read."""
    from pydicom.dataelem import DataElement, RawDataElement

    raw = elements.get_item(tag, keep_deferred=True)
    if isinstance(raw, RawDataElement) and raw.value is None and raw.length:
        return None
    try:
        return elements[tag]
    except (ValueError, TypeError, OverflowError, NotImplementedError, LookupError):
        # Not what its value representation says: the text as it is stored.
        content = raw.value if isinstance(raw.value, bytes) else b""
        return DataElement(raw.tag, "LT", content[: MOST_TEXT + 1].decode("latin-1"))


def _attribute(element: Any, elements: Any) -> Any:
    """Return a value as text, numbers, or texts; None if it is none of these."""
    vr, value = str(element.VR), element.value
    if value is None or element.keyword == FRAME_GROUPS:
        return None
    if vr == "SQ":
        return _sequence_text(value)
    if isinstance(value, bytes):
        if vr.startswith("US or SS") and len(value) % 2 == 0:
            is_signed = elements.get("PixelRepresentation") == 1
            return _one(np.frombuffer(value, f"{_order(elements)}{'i2' if is_signed else 'u2'}"))
        if element.keyword.endswith(TABLE) and len(value) % 2 == 0:
            return np.frombuffer(value, f"{_order(elements)}u2")
        return None
    if vr in NUMBERS:
        many = value if isinstance(value, list) or hasattr(value, "append") else [value]
        try:
            return _one(np.array([float(x) if vr == "DS" else x for x in many], NUMBERS[vr]))
        except (ValueError, TypeError, OverflowError):
            return _text(value)
    if hasattr(value, "append"):
        return [_text(each) for each in value[:MOST_TEXT]]
    return _text(value)


def _order(elements: Any) -> str:
    return ">" if elements.original_encoding[1] is False else "<"


def _one(array: Any) -> Any:
    """Return an array of one element as that element; None if it has none."""
    if not array.size:
        return None
    return array[0] if array.size == 1 else array


def _text(value: Any) -> str:
    text = str(value)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}... ({len(text)} characters)"


def _sequence_text(items: Any) -> str:
    """Return a sequence as JSON, or the number of its items if it is large."""
    count = f"{len(items)} items"
    if len(items) > MOST_ITEMS:
        return count
    plain = _plain(items, MOST_LEVELS)
    text = json.dumps(plain)
    return text if len(text) <= MOST_TEXT and plain is not None else count


def _plain(items: Any, levels: int) -> list[dict[str, Any]] | None:
    """Return items for JSON; None if they have too many levels."""
    if not levels:
        return None
    plain = []
    for item in items:
        entries: dict[str, Any] = {}
        for element in _values(item):
            if element.VR == "SQ":
                entries[element.keyword] = _plain(element.value, levels - 1)
            elif (value := _attribute(element, item)) is not None:
                is_text = isinstance(value, str)
                entries[element.keyword] = value if is_text else np.asarray(value).tolist()
        plain.append(entries)
    return plain
