"""Attributes of an image of TIFF: texts and numbers of its tags, GeoTIFF keys, packing of GDAL.

References:
    TIFF 6.0; OGC 19-008r4 (GeoTIFF); GDAL's tags 42112 and 42113.
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from typing import Any

import numpy as np

from swathe.arrays.gdal_metadata import packing_of
from swathe.arrays.index_writer import encode_attribute

TEXTS = {
    270: "ImageDescription",
    269: "DocumentName",
    285: "PageName",
    305: "Software",
    306: "DateTime",
    315: "Artist",
    33432: "Copyright",
    42112: "GDAL_METADATA",
    42113: "GDAL_NODATA",
    50909: "GEO_METADATA",
}
NUMBERS = {
    262: "PhotometricInterpretation",
    282: "XResolution",
    283: "YResolution",
    296: "ResolutionUnit",
    320: "ColorMap",
    338: "ExtraSamples",
    33550: "ModelPixelScale",
    33922: "ModelTiepoint",
    34264: "ModelTransformation",
}
"""Tags that become attributes, by their number."""
NODATA = 42113
RGB, YCBCR = 2, 6
"""Values of `PhotometricInterpretation`."""
JPEG = (6, 7)
"""Codes of compressions whose colours tifffile decodes."""


def fill_of(page: Any, dtype: np.dtype[Any]) -> bytes | None:
    """Return the element of missing chunks: that of GDAL_NODATA, or None."""
    nodata = nodata_of(page)
    if page.dtype is None or nodata is None or not nodata:
        return None
    value: bytes = np.array(nodata).astype(dtype).tobytes()
    return value


def attributes_of(page: Any) -> dict[str, Any]:
    """Return the tags of an image that its user needs."""
    values: dict[str, Any] = {}
    for code, name in {**TEXTS, **NUMBERS}.items():
        value = page.tags.valueof(code)
        if value is None or (code in TEXTS and not isinstance(value, str | bytes)):
            continue
        values[name] = value
    for code in (282, 283):
        ratio = values.get(NUMBERS[code])
        if ratio is not None:
            top, bottom = ratio
            values[NUMBERS[code]] = top / bottom if bottom else float("nan")
    if values.get(NUMBERS[262]) == YCBCR and page.compression in JPEG and page.planarconfig == 1:
        values[NUMBERS[262]] = RGB  # tifffile decodes it so
    values |= page.geotiff_tags or {}
    values |= _packing(page, str(values.get("GDAL_METADATA", "")))
    values |= values.pop("RPCCoefficient", {})
    if page.subfiletype:
        values["NewSubfileType"] = page.subfiletype
    return {str(name): encode_attribute(_plain(value)) for name, value in values.items()}


def _packing(page: Any, metadata: str) -> dict[str, Any]:
    """Return fill value, scale, offset and unit that GDAL names, as attributes of CF.

    A scale or unit is that of all bands, and a fill value an element of the type, or it is none.
    """
    packing: dict[str, Any] = {}
    if (fill := nodata_of(page)) is not None:
        packing["_FillValue"] = fill
    bands = page.shaped[0] if page.shaped[0] > 1 else page.shaped[4]
    return packing | packing_of(metadata, bands)


def nodata_of(page: Any) -> Any:
    """Return the element that stands for no data; `None` if none does.

    GDAL writes it as text, as `-9999` or `-9999.0`. tifffile reads 0 for a number that is not
    exactly one of the type, as -3.4028234663852886e+38 of float32.
    """
    dtype = np.dtype("u1" if page.dtype is None else page.dtype)
    text = _text(page, NODATA)
    if not text or dtype.kind not in "iuf":
        return None
    with suppress(ValueError, OverflowError):  # a text, or a number that the type does not have
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                return dtype.type(float(text))
        if text.lstrip("+-").isdecimal():
            return dtype.type(int(text))
        return dtype.type(int(float(text))) if float(text).is_integer() else None
    return None


def _text(page: Any, code: int) -> str:
    value = page.tags.valueof(code)
    text = value.decode("ascii", "replace") if isinstance(value, bytes) else value
    return text.strip(" \0") if isinstance(text, str) else ""


def _plain(value: Any) -> Any:
    """Return a value without tifffile's own types."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value
