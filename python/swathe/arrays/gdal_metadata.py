"""Read the tag GDAL_METADATA of a TIFF. It is XML with items; an item may belong to one band.

References:
    GDAL, GTiff driver, "Metadata": https://gdal.org/drivers/raster/gtiff.html
"""

from __future__ import annotations

import re
from contextlib import suppress
from html import unescape
from typing import Any

ITEM = re.compile(r"<Item\b([^<>]{0,1000})>([^<]{0,1000})</Item>")
FIELD = re.compile(r"""\b(\w{1,40})=["']([^"']*)["']""")
SAMPLE = re.compile(r"""(\bsample=["'])(\d{1,9})(["'])""")
MOST_METADATA = 1 << 20
"""Characters that are looked into."""
ROLES = {"scale": "scale_factor", "offset": "add_offset", "unittype": "units"}
"""Attributes of CF by the role of an item."""


def packing_of(metadata: str, bands: int) -> dict[str, Any]:
    """Return scale, offset and unit as attributes of CF, each if it is that of all bands."""
    packing: dict[str, Any] = {}
    by_name: dict[str, dict[str, str]] = {}
    for item in ITEM.finditer(metadata[:MOST_METADATA]):
        fields = dict(FIELD.findall(item[1]))
        name = ROLES.get(fields.get("role", ""))
        if name is not None and "domain" not in fields:
            # As GDAL writes it, it is escaped twice.
            text = unescape(unescape(item[2])).strip()
            by_name.setdefault(name, {})[fields.get("sample", "0")] = text
    for name, by_band in by_name.items():
        values = {by_band.get(str(band)) for band in range(bands)}
        value = values.pop()
        if values or value is None:
            continue
        if name == "units":
            packing[name] = value
            continue
        with suppress(ValueError):
            packing[name] = float(value)
    # What changes nothing would only make integers floats.
    if (packing.get("scale_factor", 1), packing.get("add_offset", 0)) == (1, 0):
        packing.pop("scale_factor", None)
        packing.pop("add_offset", None)
    return packing


def metadata_of_bands(metadata: str, start: int, stop: int) -> str:
    """Return the metadata of some bands, which are numbered from 0 in it; the rest is as it was."""

    def of_item(item: re.Match[str]) -> str:
        sample = SAMPLE.search(item[1])
        if sample is None:
            return item[0]
        if not start <= int(sample[2]) < stop:
            return ""
        fields = SAMPLE.sub(rf"\g<1>{int(sample[2]) - start}\g<3>", item[1])
        return f"<Item{fields}>{item[2]}</Item>"

    return ITEM.sub(of_item, metadata[:MOST_METADATA]) + metadata[MOST_METADATA:]
