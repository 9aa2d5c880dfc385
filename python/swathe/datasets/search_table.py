"""The table of images and arrays that a search found."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from astropy.table import Table

    from swathe.catalog import GranuleCopy

Outline: TypeAlias = "list[float] | None"
"""Right ascension and declination of corners in turn, in degrees; `None` if unknown."""
COLUMNS: tuple[tuple[str, str, str | None], ...] = (
    ("file", "U", None),
    ("hdu", "i4", None),
    ("dataset", "U", None),
    ("name", "U", None),
    ("t_min", "f8", "d"),
    ("t_max", "f8", "d"),
    ("band", "U", None),
    ("em_min", "f8", "m"),
    ("em_max", "f8", "m"),
    ("s_ra", "f8", "deg"),
    ("s_dec", "f8", "deg"),
    ("s_fov", "f8", "deg"),
    ("s_pixel_scale", "f8", "arcsec"),
    ("s_region", "U", None),
    ("shape", "U", None),
    ("access_estsize", "i8", "kbyte"),
    ("version", "U", None),
    ("array", "U", None),
    ("body", "U", None),
)
"""Names, types and units of columns, as in ObsCore. `shape` of an image is NAXIS1 x NAXIS2 ..., the
fastest axis first; that of an array of another format has the fastest axis last, as in NumPy.
`body` is `sky` or `earth`: where the position is."""


def sorted_table(unsorted_columns: list[list[Any]], place: tuple[float, float] | None) -> Table:
    """Return a table of the columns, sorted by file; each is freed when copied, to save memory.

    Args:
        unsorted_columns: as from `columns_of`, with one file for each row; they are emptied.
        place: right ascension and declination in degrees of all rows, for two more columns.
    """
    import numpy as np
    from astropy.table import Table

    order = sorted(
        range(len(unsorted_columns[0])),
        # Arrays of one file stay in its order.
        key=lambda at: (unsorted_columns[0][at], unsorted_columns[1][at] or 0),
    )
    columns: dict[str, Any] = {}
    for name, kind, _ in COLUMNS:
        unsorted_values = unsorted_columns.pop(0)
        values = [unsorted_values[at] for at in order]
        blank: Any = "" if kind == "U" else 0
        cells = [blank if value is None else value for value in values]
        data = np.array(cells, dtype=kind if cells or kind != "U" else "U1")
        if None in values:
            data = np.ma.MaskedArray(data, [value is None for value in values])
        columns[name] = data
    units = _units()
    if place is not None:
        for name, value in zip(("ra", "dec"), place, strict=True):
            columns[name] = np.full(len(order), value)
    # Made in one step: copying a column takes as long again.
    return Table(
        columns, units={name: units[name] for name in columns if name in units}, copy=False
    )


@lru_cache(maxsize=1)
def _units() -> dict[str, Any]:
    """Return the units of columns, parsed once, since astropy is slow at it."""
    from astropy.units import Unit

    units = {name: unit for name, _, unit in COLUMNS if unit is not None}
    return {name: Unit(unit) for name, unit in {**units, "ra": "deg", "dec": "deg"}.items()}


def columns_of(
    rows: list[tuple[GranuleCopy, Outline]], copies: dict[int, list[GranuleCopy]]
) -> list[list[Any]]:
    """Return the columns of a table for some rows, with all copies in place of `file`."""
    matches = [copy for copy, _ in rows]
    regions = [_region(copy, outline) for copy, outline in rows]
    return [
        [_files(copies[copy.id]) for copy in matches],
        [None if copy.array else copy.hdu for copy in matches],
        [copy.dataset for copy in matches],
        [copy.name for copy in matches],
        [copy.t_min for copy in matches],
        [copy.t_max for copy in matches],
        [copy.band for copy in matches],
        [copy.em_min for copy in matches],
        [copy.em_max for copy in matches],
        [copy.s_ra for copy in matches],
        [copy.s_dec for copy in matches],
        [copy.s_fov for copy in matches],
        [copy.s_pixel_scale for copy in matches],
        regions,
        [_axes(copy.shape, copy.array is None) for copy in matches],
        [-(-copy.size // 1000) for copy in matches],
        [copy.version for copy in matches],
        [copy.array for copy in matches],
        [_body(copy) for copy in matches],
    ]


@lru_cache(maxsize=256)
def _axes(shape: str, is_image: bool) -> str:
    return " x ".join(map(str, read_shape(shape)[:: -1 if is_image else 1]))


def _body(copy: GranuleCopy) -> str | None:
    if copy.outlines is not None:
        return "earth"
    return None if copy.s_ra is None else "sky"


def _region(copy: GranuleCopy, outline: list[float] | None) -> str | None:
    if copy.outlines is not None:
        from swathe.datasets.earth_search import region_text

        return region_text(json.loads(copy.outlines))
    if outline is None:
        return None
    return f"POLYGON ICRS{' %.8f' * len(outline)}" % tuple(outline)


def _files(copies: list[GranuleCopy]) -> tuple[str, ...]:
    """Return the files of an image's copies, the first store of its dataset first."""
    if len(copies) > 1:
        copies = sorted(copies, key=lambda copy: (not copy.is_first, copy.store))
    return tuple(copy.file for copy in copies)


@lru_cache(maxsize=256)
def read_shape(text: str) -> tuple[int, ...]:
    """Return a shape as the catalogue has it, a list of JSON with the slowest axis first."""
    return tuple(json.loads(text))
