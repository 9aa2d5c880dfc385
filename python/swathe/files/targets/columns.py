"""Convert the columns of a list of targets, with any names, units and frame.

`standard_columns` returns the columns that the package uses: `ra` and `dec` in ICRS degrees,
`size_deg` (or `size`, if not all are squares of an angle), and pixels unchanged. An invalid cell is
kept, so that only its row has a fault.

The columns of the position are: those named by the user (`ra=`, `dec=`), else `ra` and `dec`, else
the one column of coordinates, else the two that their UCDs call main, else those with a known name
or UCD. If several remain, the user must choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from swathe.core.errors import RegionError, TargetsError
from swathe.files.targets.cells import (
    InvalidCell,
    degrees_per_unit,
    float_column,
    mask_to_nan,
    numbers_of,
    read_cells,
    texts,
)
from swathe.files.targets.frames import frame_by_name, in_frame
from swathe.files.targets.positions import degrees_of, is_equatorial, is_pixel
from swathe.files.targets.sizes import SIZE_COLUMNS, enter_pixels, has_pixels, sizes_of

if TYPE_CHECKING:
    from astropy.coordinates import BaseCoordinateFrame
    from astropy.table import Table

CENTER = ("x", "y", "height", "width")
BOX = ("x0", "y0", "width", "height")
PIXEL_COLUMNS = frozenset({*CENTER, *BOX})
OTHER_COLUMNS = ("file", "id", "hdu", "frame", "group", "band", "planes", "dataset")
COORDINATES = ("sky", "coord", "coords", "skycoord", "position")
"""Names that select the position among several columns of coordinates."""

# Names decide about the frame only if a file does not state it (COOSYS). RAJ2000 and similar names
# count as ICRS then. VizieR labels them FK5 at J2000, but the catalogues since Hipparcos that use
# them (2MASS, SDSS, AllWISE) are tied to ICRS, which differs from FK5 at J2000 by 0.03".
EQUATORIAL = (
    ("ra_icrs", "de_icrs"),
    ("ra_icrs", "dec_icrs"),
    ("_ra", "_de"),
    ("_ra_icrs", "_de_icrs"),
    ("_ra.icrs", "_de.icrs"),
    ("raj2000", "dej2000"),
    ("raj2000", "decj2000"),
    ("_raj2000", "_dej2000"),
    ("ra_j2000", "dec_j2000"),
    ("ra2000", "dec2000"),
    ("ra_deg", "dec_deg"),
    ("radeg", "dedeg"),
    ("radeg", "decdeg"),
    ("s_ra", "s_dec"),
    ("alpha_j2000", "delta_j2000"),
    ("alphawin_j2000", "deltawin_j2000"),
    ("ramean", "decmean"),
    ("rastack", "decstack"),
    ("right_ascension", "declination"),
)
PAIRS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("icrs", EQUATORIAL),
    ("fk4", (("rab1950", "deb1950"), ("_rab1950", "_deb1950"), ("ra1950", "dec1950"))),
    ("galactic", (("l", "b"), ("glon", "glat"), ("_glon", "_glat"), ("gal_lon", "gal_lat"))),
    ("ecliptic", (("elon", "elat"), ("_elon", "_elat"), ("ecl_lon", "ecl_lat"))),
    ("supergalactic", (("sgl", "sgb"),)),
)
UCDS = (
    ("icrs", "pos.eq.ra", "pos.eq.dec", "pos_eq_ra", "pos_eq_dec"),
    ("galactic", "pos.galactic.lon", "pos.galactic.lat", "pos_gal_lon", "pos_gal_lat"),
    ("ecliptic", "pos.ecliptic.lon", "pos.ecliptic.lat", "pos_ec_lon", "pos_ec_lat"),
)
FRAMELESS = (("lon", "lat"), ("longitude", "latitude"))
POSITION_NAMES = frozenset(
    name for _, pairs in PAIRS for pair in pairs for name in pair if len(name) > 1
) | {"ra", "dec", *COORDINATES}


@dataclass(frozen=True)
class ListOptions:
    """Options of the user for a list of targets.

    Attributes:
        file: object of rows without one.
        size: size of rows without one: an angle or pixels, as Quantity or text.
        frame: frame of positions without a column `frame`; by default that of the columns.
        ra: name of the column of right ascension or longitude.
        dec: name of the column of declination or latitude.
    """

    file: str | None = None
    size: Any = None
    frame: str | None = None
    ra: str | None = None
    dec: str | None = None


class CoordinatePair(NamedTuple):
    """Two columns that form a position, and their frame."""

    lon: str
    lat: str
    frame: str

    def __str__(self) -> str:
        return f"{self.lon}/{self.lat}"


def standard_columns(table: Table, choices: ListOptions | None = None) -> dict[str, Any]:
    """Return the columns of a list of targets by standard names; other names in lower case.

    Raises:
        TargetsError: If columns are ambiguous, or a unit cannot be converted.
    """
    choices = choices or ListOptions()
    try:
        return _standard(table, choices)
    except RegionError as error:
        raise TargetsError(f"the targets: {error}") from error


def _standard(table: Table, choices: ListOptions) -> dict[str, Any]:
    columns = _by_key(table)
    if choices.file is not None:
        columns["file"] = _fill_file(columns.get("file"), choices.file, len(table))
    is_whole = all(name in columns for name in BOX) or all(name in columns for name in CENTER)
    has_size = choices.size is not None or any(name in columns for name in SIZE_COLUMNS)
    if not is_whole or has_size:
        _enter_place(table, columns, choices, is_whole)
    for name in PIXEL_COLUMNS & columns.keys():
        columns[name] = _pixels(columns[name], name)
    return columns


def _enter_place(
    table: Table, columns: dict[str, Any], choices: ListOptions, is_whole: bool
) -> None:
    """Replace the columns of the sky position and the sizes by the standard ones."""
    pair = _pair(table, columns, choices)
    if isinstance(pair, CoordinatePair):
        columns["ra"], columns["dec"] = _icrs(table, columns, pair, choices.frame)
    elif pair is not None:
        columns["ra"], columns["dec"] = _of_coordinates(table[pair], choices.frame)
    if pair is not None:
        columns.pop("frame", None)
    sizes = sizes_of(columns, choices.size, len(table), in_sky=pair is not None)
    if sizes is None:
        return
    for name in SIZE_COLUMNS:
        columns.pop(name, None)
    if pair is None:
        enter_pixels(columns, sizes)
        return
    columns["size_deg" if sizes.dtype.kind == "f" else "size"] = sizes
    # If a list has both, the user may mean either; sizes that are angles belong to the sky.
    if choices.ra is not None or not (is_whole or has_pixels(sizes)):
        for name in PIXEL_COLUMNS:
            columns.pop(name, None)
    elif not is_whole and "x" in columns:
        enter_pixels(columns, sizes)


def _by_key(table: Table) -> dict[str, Any]:
    """Return columns by name in lower case."""
    standard_names = {*OTHER_COLUMNS, "ra", "dec", *SIZE_COLUMNS, *PIXEL_COLUMNS}
    columns: dict[str, Any] = {}
    names: dict[str, str] = {}
    for name in table.colnames:
        key = name.strip().lower()
        if key in columns and key in standard_names:
            raise TargetsError(
                f"the targets: expected one column {key!r}, found {names[key]!r} and {name!r}"
            )
        if key not in columns:
            columns[key], names[key] = table[name], name
    if "array" in columns:
        paths = [_absolute(path) for path in texts(columns.pop("array"))]
        hdus = texts(columns["hdu"]) if "hdu" in columns else [""] * len(paths)
        if any(path and hdu for path, hdu in zip(paths, hdus, strict=True)):
            raise TargetsError("the targets: expected an 'hdu' or an 'array' in a row, found both")
        columns["hdu"] = [path or hdu for path, hdu in zip(paths, hdus, strict=True)]
    return columns


def _absolute(path: str) -> str:
    """Return the path of an array from `/`; an empty text stays so."""
    return path if not path or path.startswith("/") else f"/{path}"


def _fill_file(column: Any, file: str, count: int) -> list[str]:
    return [file] * count if column is None else [name or file for name in texts(column)]


def _pixels(column: Any, name: str) -> Any:
    """Return a column of pixels without its unit, which must be pixels."""
    unit = getattr(column, "unit", None)
    if unit is not None and str(unit) and not is_pixel(unit):
        raise TargetsError(f"column {name}: expected pixels, found unit {str(unit)!r}")
    return numbers_of(column)


# The position.


def _pair(
    table: Table, columns: Mapping[str, Any], choices: ListOptions
) -> CoordinatePair | str | None:
    """Return the columns of the position, or the name of the one column of coordinates."""
    if choices.ra is not None or choices.dec is not None:
        return _chosen_pair(table, choices)
    if "ra" in columns and "dec" in columns:
        names = {name.strip().lower(): name for name in table.colnames}
        return CoordinatePair(names["ra"], names["dec"], _coosys(table[names["ra"]]) or "icrs")
    mixin = _coordinate_column(table)
    if mixin is not None:
        return mixin
    mains = _by_ucd(table, main=True)
    if mains:
        return _only(mains)
    by_name = _by_name(table)
    used_names = {name for pair in by_name for name in pair[:2]}
    by_ucd = [pair for pair in _by_ucd(table, main=False) if not used_names & set(pair[:2])]
    pairs = [*by_name, *by_ucd]
    equatorial = [pair for pair in pairs if pair.frame in ("icrs", "fk4", "fk5")]
    if equatorial or pairs:
        return _only(equatorial or pairs)
    return _frameless(table, choices)


def _chosen_pair(table: Table, choices: ListOptions) -> CoordinatePair:
    choice_of = {"ra": choices.ra, "dec": choices.dec}
    for what, name in choice_of.items():
        if name is None:
            raise TargetsError(f"{what}: expected a column, since {_other(what)} is given")
        if name not in table.colnames:
            names = ", ".join(table.colnames)[:300]
            raise TargetsError(f"{what}: there is no column {name!r}; there are {names}")
    pair = CoordinatePair(str(choices.ra), str(choices.dec), "icrs")
    matches = [each for each in _by_name(table) if each[:2] == pair[:2]]
    frame = matches[0].frame if matches else "icrs"
    return pair._replace(frame=_coosys(table[pair.lon]) or frame)


def _other(what: str) -> str:
    return "dec" if what == "ra" else "ra"


def _coordinate_column(table: Table) -> str | None:
    """Return the name of the column of coordinates: the only one, or the one with a known name."""
    names: list[str] = [name for name in table.colnames if hasattr(table[name], "transform_to")]
    if len(names) > 1:
        matches = [name for name in names if name.strip().lower() in COORDINATES]
        if len(matches) != 1:
            raise TargetsError(
                f"the targets have several columns of coordinates: {', '.join(names)}; name one "
                "of them 'sky'"
            )
        return matches[0]
    return names[0] if names else None


def _only(pairs: list[CoordinatePair]) -> CoordinatePair:
    if len(pairs) > 1:
        raise TargetsError(
            f"the targets have several positions: {', '.join(map(str, pairs))}; choose one: "
            f"--ra {pairs[0].lon} --dec {pairs[0].lat}, or ra=, dec= in Python"
        )
    return pairs[0]


def _by_name(table: Table) -> list[CoordinatePair]:
    names = {name.strip().lower(): name for name in table.colnames}
    pairs = []
    for frame, names_of_frame in PAIRS:
        for lon, lat in names_of_frame:
            if lon in names and lat in names:
                where = _coosys(table[names[lon]]) or frame
                pairs.append(CoordinatePair(names[lon], names[lat], where))
    return pairs


def _frameless(table: Table, choices: ListOptions) -> CoordinatePair | None:
    """Return columns that form a position in the user's frame."""
    names = {name.strip().lower(): name for name in table.colnames}
    for lon, lat in FRAMELESS:
        if lon in names and lat in names:
            frame = choices.frame or _coosys(table[names[lon]])
            if frame is None and "frame" not in names:
                raise TargetsError(
                    f"columns {names[lon]}, {names[lat]}: expected a frame; give --frame galactic "
                    "or another, frame= in Python, or a column 'frame'"
                )
            return CoordinatePair(names[lon], names[lat], frame or "icrs")
    return None


def _by_ucd(table: Table, *, main: bool) -> list[CoordinatePair]:
    """Return positions by UCD: those called main, or the others if there is one of each."""
    pairs = []
    ucds = {name: _ucd(table, name) for name in table.colnames}
    for frame, *words in UCDS:
        lons = [name for name, ucd in ucds.items() if _means(ucd, words[::2], main)]
        lats = [name for name, ucd in ucds.items() if _means(ucd, words[1::2], main)]
        if len(lons) == 1 and len(lats) == 1:
            pairs.append(CoordinatePair(lons[0], lats[0], _coosys(table[lons[0]]) or frame))
        elif main and len(lons) > 1 and len(lats) > 1:
            pairs += [CoordinatePair(lon, lat, frame) for lon, lat in zip(lons, lats, strict=False)]
    return pairs


def _ucd(table: Table, name: str) -> str:
    """Return the UCD of a column from a VOTable, or from TUCDn of a FITS table."""
    at = table.colnames.index(name) + 1
    ucd = (getattr(getattr(table[name], "info", None), "meta", None) or {}).get("ucd")
    return str(ucd or table.meta.get(f"TUCD{at}") or "").strip().lower()


def _means(ucd: str, words: Iterable[str], main: bool) -> bool:
    first, *others = ucd.split(";") or [""]
    new, old = words
    is_main = first.strip() == f"{old}_main" or "meta.main" in map(str.strip, others)
    return first.strip() in (new, old, f"{old}_main") and is_main == main


def _coosys(column: Any) -> str | None:
    """Return the frame of a column in a VOTable, with its equinox."""
    meta = getattr(getattr(column, "info", None), "meta", None) or {}
    frame = meta.get("coosys")
    return None if frame is None else str(frame)


# Angles.


def _icrs(
    table: Table, columns: Mapping[str, Any], pair: CoordinatePair, frame: str | None
) -> tuple[Any, Any]:
    """Return ICRS degrees of two columns; cells that are not angles are kept."""
    usual = frame or pair.frame
    names = _frame_names(columns.get("frame"), usual, len(table))
    lon = _angles(table[pair.lon], pair.lon, is_equatorial(_parts(usual)[0]))
    lat = _angles(table[pair.lat], pair.lat, False)
    if names is None:
        return _to_icrs(lon, lat, _frame(usual))
    return _rows_to_icrs(lon, lat, names)


def _parts(frame: str) -> tuple[str, str | None]:
    name, _, equinox = frame.partition("@")
    return name, equinox or None


def _frame(name: str) -> BaseCoordinateFrame:
    return frame_by_name(*_parts(name))


def _frame_names(column: Any, usual: str, count: int) -> list[str] | None:
    """Return the frame of each row, if there is a column of frame names."""
    if column is None or getattr(getattr(column, "dtype", None), "kind", "O") not in "UOS":
        return None
    names = texts(column)
    return [name or usual for name in names] if count else None


def _to_icrs(lon: Any, lat: Any, frame: BaseCoordinateFrame) -> tuple[Any, Any]:
    """Convert columns of degrees to ICRS, in the rows where both are valid."""
    import numpy as np

    if frame.name == "icrs":
        return lon, lat
    lons, lats = float_column(lon), float_column(lat)
    good = np.isfinite(lons) & np.isfinite(lats) & (np.abs(lats) <= 90)
    place = in_frame(lons[good], lats[good], frame) if good.any() else None
    if place is None:
        return lon, lat
    if good.all():
        return place.ra.deg, place.dec.deg
    ra, dec = np.array(lon, object), np.array(lat, object)
    ra[good], dec[good] = place.ra.deg, place.dec.deg
    return ra, dec


def _rows_to_icrs(lon: Any, lat: Any, names: list[str]) -> tuple[Any, Any]:
    """Convert rows with several frames; an unknown frame is a fault of its rows."""
    import numpy as np

    ra, dec = np.array(lon, object), np.array(lat, object)
    for name in dict.fromkeys(names):
        rows = [row for row, each in enumerate(names) if each == name]
        try:
            frame = _frame(name)
            some = _to_icrs(_take_rows(lon, rows), _take_rows(lat, rows), frame)
        except RegionError as error:
            ra[rows] = InvalidCell(str(error), name)
            continue
        ra[rows], dec[rows] = some
    return ra, dec


def _take_rows(column: Any, rows: list[int]) -> Any:
    import numpy as np

    return np.asarray(column)[rows]


def _of_coordinates(column: Any, frame: str | None) -> tuple[Any, Any]:
    """Return ICRS degrees of a column of coordinates."""
    import numpy as np

    if frame is not None:
        raise TargetsError(f"frame: expected none beside a column of coordinates, found {frame!r}")
    try:
        place = column.icrs
    except Exception as error:  # astropy's classes for frames share no base
        raise TargetsError(
            f"the column of coordinates cannot be converted to ICRS: {error}"
        ) from error
    ra, dec = (mask_to_nan(angle.deg) for angle in (place.ra, place.dec))
    return np.atleast_1d(ra), np.atleast_1d(dec)


def _angles(column: Any, name: str, hours: bool) -> Any:
    """Return a column in degrees: floats, or cells if some are not angles.

    Raises:
        TargetsError: If its unit is not an angle.
    """
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    unit = getattr(column, "unit", None)
    if kind in "iuf" or hasattr(column, "to_value"):
        return mask_to_nan(numbers_of(column)) * degrees_per_unit(unit, name)
    scale, hours = _text_unit(unit, name, hours)
    what = "ra" if hours else name.strip()

    def parse(cell: Any) -> float:
        if isinstance(cell, str) and scale != 1:
            from swathe.core.angles import parse_angle

            return parse_angle(cell, what, hours=hours, unit_deg=scale)
        return degrees_of(cell, what, hours=hours)

    return read_cells(column, parse)


def _text_unit(unit: Any, name: str, hours: bool) -> tuple[float, bool]:
    """Return degrees per unit of numbers in text, and whether sexagesimal text is in hours."""
    word = str(unit or "").strip().strip("\"'").lower()
    # Units that VizieR writes for sexagesimal columns.
    if word in ("h:m:s", "hms"):
        return 1.0, True
    if word in ("d:m:s", "dms"):
        return 1.0, False
    return degrees_per_unit(unit, name), hours and word not in ("deg", "degree")
