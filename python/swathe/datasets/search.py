"""Search images and arrays by position, time and band."""

from __future__ import annotations

import json
import math
from contextlib import closing, nullcontext
from functools import lru_cache
from itertools import groupby
from numbers import Real
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from swathe._swathe import assumed_costs
from swathe.core.argument_checks import check_text
from swathe.core.errors import DatasetError, RegionError
from swathe.core.value_errors import short_text
from swathe.files.targets.bounds import BOUNDS

if TYPE_CHECKING:
    import numpy as np
    from astropy.coordinates import SkyCoord
    from astropy.table import Table
    from numpy.typing import NDArray

    from swathe.catalog import Catalog, GranuleCopy
    from swathe.core.sky import SkyMapping
    from swathe.datasets.earth_search import EarthArea

NEAR = 1e-10
"""Tolerance in radians (20 microarcseconds) between a point and the edge of its polygon."""
USUAL_BYTES = 1e6
"""Typical size of a read for a cut, in bytes, to compare copies."""
DISC_RINGS = 24
"""Spacing of sample positions in a circle, as a part of its radius, for images without outline."""
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
"""Names, types and units of columns, as in ObsCore; `shape` is NAXIS1 x NAXIS2 ..., the
fastest axis first. `body` is `sky` or `earth`: where the position is."""


def find(
    sky: SkyCoord | tuple[Any, Any] | str | None = None,
    radius_deg: float = 0.0,
    *,
    radius: Any = None,
    frame: str | None = None,
    dataset: str | None = None,
    time: tuple[Any, Any] | None = None,
    band: str | tuple[float, float] | None = None,
    catalog: Catalog | None = None,
    limit: int | None = None,
    bounds: tuple[float, float, float, float] | None = None,
    place: tuple[float, float] | None = None,
) -> Table:
    """Find the images and arrays of datasets by position, time and band.

    Omitted criteria are ignored. Images whose header lacks a value never match a search on it.

    Args:
        sky: right ascension and declination (ICRS) in degrees, as angles or as text; or an astropy
            coordinate.
        radius_deg: radius of a circle around the position; images that show any part of it match.
        radius: the radius as an angle, or text such as `30arcsec`.
        frame: frame of `sky`, if not ICRS, such as `galactic`.
        dataset: name of the only dataset to search.
        time: start and end, as MJD (UTC), ISO text or astropy times; images that overlap match.
        band: filter name as in headers, or a range of wavelengths in metres, as a pair or as text,
            `5e-7,6e-7`.
        catalog: catalogue to search; `None` for the default one.
        limit: largest number of images; the first ones catalogued are returned.
        bounds: `(west, south, east, north)` on the Earth in degrees; arrays that overlap the box
            match. `west > east` crosses the dateline.
        place: `(longitude, latitude)` on the Earth in degrees; arrays that cover it match.

    Returns:
        One row per image or array, sorted by `file` (`STORE:path`) and `hdu`, with the columns of
        `COLUMNS`. If an image has several copies, `file` is the one that is fastest to read from
        here. Unknown values are masked. `t_min` and `t_max` are MJD in UTC. With `sky` there are
        also `ra` and `dec`, so that with a column `size_deg` it is a table for `cut_many`; with
        `bounds` there are `west`, `south`, `east` and `north`, so that it is one, too. `sky` finds
        no place on the Earth, `bounds` and `place` none in the sky.

    Raises:
        DatasetError: If position, time or band are invalid.
        NoSuchDatasetError: If there is no such dataset.
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.catalog import Catalog, GranuleQuery

    try:
        if dataset is not None:
            check_text("dataset", dataset)
        if isinstance(band, str):
            check_text("band", band)
    except ValueError as error:
        raise DatasetError(str(error)) from None
    reach_deg = _radius_deg(radius, radius_deg)
    circle = None if sky is None else _place(sky, reach_deg, frame)
    area = _earth_area(sky, bounds, place)
    if circle is None and reach_deg:
        raise DatasetError("a radius needs a position: sky=(ra, dec)")
    ranges = None
    if circle is not None:
        from swathe.datasets.healpix import ranges_around

        ranges = ranges_around(circle.direction, circle.reach)
    elif area is not None:
        ranges = area.ranges
    on_earth = area is not None
    criteria = GranuleQuery(ranges, dataset, read_times(time), _band(band), limit, on_earth)
    with nullcontext(catalog) if catalog is not None else Catalog.open() as open_catalog:
        columns: list[list[Any]] = [[] for _ in COLUMNS]
        with closing(open_catalog.copies_by_parts(criteria)) as parts:
            for part in parts:
                copies = {number: list(of_it) for number, of_it in groupby(part, attrgetter("id"))}
                some = _with_outlines([first for first, *_ in copies.values()])
                some = some if circle is None else _that_show(circle, some)
                some = some if area is None else _that_touch(area, some)
                for column, values in zip(columns, _values(some, copies), strict=True):
                    column += values
                if limit is not None and len(columns[0]) >= limit:
                    break
        if limit is not None:
            for column in columns:
                del column[limit:]
        # Not earlier: many searches that wait for a second connection would wait for each other.
        columns[0] = _soonest(columns[0], open_catalog)
    table = _table(columns, circle)
    if bounds is not None:
        for name, degrees in zip(BOUNDS, bounds, strict=True):
            table[name] = float(degrees)
            table[name].unit = "deg"
    return table


class _SearchArea:
    """A circle in the sky; a point if its radius is 0."""

    def __init__(self, ra_deg: float, dec_deg: float, radius_deg: float) -> None:
        import numpy as np

        from swathe.datasets.spherical import directions

        self.ra_deg, self.dec_deg = ra_deg, dec_deg
        self.direction = directions(np.array(ra_deg), np.array(dec_deg))
        self.radius = math.radians(radius_deg)
        self.reach = self.radius + NEAR
        # Whether images without outline show it, by WCS and shape. Whole-sky maps often share both,
        # so the result is computed once.
        self.is_covered: dict[tuple[str, str], bool] = {}


def _earth_area(sky: Any, bounds: Any, place: Any) -> EarthArea | None:
    """Return the box or point of a search on the Earth.

    Raises:
        DatasetError: If it is invalid, or there is a position in the sky, too.
    """
    from swathe.datasets.earth_search import EarthArea
    from swathe.files.places.bounds import Bounds

    if sum(each is not None for each in (sky, bounds, place)) > 1:
        raise DatasetError("give one of sky, bounds and place: it is in the sky or on the Earth")
    try:
        if place is not None:
            lon, lat = place
            return EarthArea(Bounds.of((lon, lat, lon, lat)))
        return None if bounds is None else EarthArea(Bounds.of(bounds))
    except RegionError as error:
        raise DatasetError(str(error)) from error
    except (TypeError, ValueError) as error:
        text = short_text(place)
        raise DatasetError(f"place: expected (longitude, latitude), found {text}") from error


def _that_touch(
    area: EarthArea, candidates: list[tuple[GranuleCopy, _Outline]]
) -> list[tuple[GranuleCopy, _Outline]]:
    """Return the arrays that a box on the Earth touches."""
    texts = ",".join(copy.outlines or "[]" for copy, _ in candidates)
    touches = area.touches(json.loads(f"[{texts}]"))
    return [each for each, is_there in zip(candidates, touches, strict=True) if is_there]


def _radius_deg(radius: Any, radius_deg: float) -> float:
    from swathe.files.targets.positions import degrees_of

    try:
        number = float(radius_deg)
    except (TypeError, ValueError, OverflowError):
        text = short_text(radius_deg)
        raise DatasetError(f"radius_deg: expected a number, found {text}") from None
    if radius is None:
        return number
    if number:
        raise DatasetError("give one of radius and radius_deg")
    try:
        return degrees_of(radius, "radius")
    except RegionError as error:
        raise DatasetError(str(error)) from error


def _place(sky: Any, radius_deg: float, frame: str | None) -> _SearchArea:
    from swathe.files.targets.positions import position

    try:
        icrs = position(sky, frame).icrs
        ra, dec = float(icrs.ra.deg[0]), float(icrs.dec.deg[0])
    except Exception as error:  # frames that cannot be converted
        raise DatasetError(str(error)) from error
    if not 0 <= radius_deg <= 180:
        raise DatasetError(f"radius: expected 0 to 180 degrees, found {radius_deg}")
    return _SearchArea(ra % 360.0, dec, radius_deg)


def read_times(time: tuple[Any, Any] | None) -> tuple[float, float] | None:
    """Return start and end, as `find` accepts them, as MJD in UTC.

    Raises:
        DatasetError: If they are invalid.
    """
    if time is None:
        return None
    if not isinstance(time, tuple | list) or len(time) != 2:
        raise DatasetError(f"time: expected a start and an end, found {time!r}")
    start, end = _mjd(time[0]), _mjd(time[1])
    if start > end:
        raise DatasetError(f"time: expected the start before the end, found MJD {start} to {end}")
    return start, end


def _mjd(value: Any) -> float:
    text = str(value).strip()
    try:
        mjd = float(value if isinstance(value, Real) else text)
    except ValueError:
        from astropy.time import Time

        try:
            moment = value if isinstance(value, Time) else Time(text, scale="utc")
            mjd = float(moment.utc.mjd)
        except Exception as error:  # each format of astropy has its own
            raise DatasetError(
                f"time: expected an MJD, or text as 2005-09-21T04:30:00 (UTC); found {text[:50]!r}"
            ) from error
    except TypeError as error:
        raise DatasetError(f"time: expected an MJD or text, found {text[:50]!r}") from error
    if not math.isfinite(mjd):
        raise DatasetError(f"time: expected a finite MJD, found {mjd}")
    return mjd


def _band(band: str | tuple[float, float] | None) -> str | tuple[float, float] | None:
    if band is None:
        return None
    if isinstance(band, str) and not band.strip():
        raise DatasetError("band: expected a name, or two wavelengths in metres, found none")
    try:
        shortest, longest = map(float, band.split(",") if isinstance(band, str) else band)
    except (TypeError, ValueError) as error:
        if isinstance(band, str):
            return band.strip()
        raise DatasetError(
            f"band: expected a name, or two wavelengths in metres; found {band!r}"
        ) from error
    if not 0 <= shortest <= longest < math.inf:
        raise DatasetError(
            f"band: expected positive metres, the shorter first; found {shortest}, {longest}"
        )
    return shortest, longest


_Outline = list[float] | None


def _that_show(
    place: _SearchArea, candidates: list[tuple[GranuleCopy, _Outline]]
) -> list[tuple[GranuleCopy, _Outline]]:
    """Return the images that the circle touches; a point is compared to a small part of a pixel."""
    from swathe.datasets.spherical import outlines_near

    outlines = [outline for _, outline in candidates if outline is not None]
    near = iter(outlines_near(outlines, place.direction, place.reach).tolist())
    matches = []
    for copy, outline in candidates:
        if next(near) if outline is not None else _shows(copy, place):
            matches.append((copy, outline))
    return matches


def _files(copies: list[GranuleCopy]) -> tuple[str, ...]:
    """Return the files of an image's copies, the first store of its dataset first."""
    if len(copies) > 1:
        copies = sorted(copies, key=lambda copy: (not copy.is_first, copy.store))
    return tuple(copy.file for copy in copies)


def _soonest(images: list[tuple[str, ...]], catalog: Catalog) -> list[str]:
    """Return for each image the copy that is fastest to read from here.

    If stores are equally fast, the first is used.
    """
    if all(len(files) == 1 for files in images):
        return [file for (file,) in images]
    seconds = _seconds_of_stores(catalog)

    def takes(file: str) -> float:
        # The store may have been removed meanwhile.
        return seconds.get(file.partition(":")[0], math.inf)

    return [min(files, key=takes) for files in images]


def _seconds_of_stores(catalog: Catalog) -> dict[str, float]:
    """Return the time of a typical read from each store, measured or assumed."""
    import numpy as np

    from swathe.catalog import this_host
    from swathe.stores.registry import LOCAL_ROOT

    host = this_host()
    profiles = {
        profile.root: profile.costs for profile in catalog.profiles() if profile.host == host
    }
    seconds_by_store = {}
    for store in catalog.stores():
        local = store.kind.is_local
        costs: dict[str, Any] | None = profiles.get(store.key)
        if costs is None and local:
            costs = profiles.get(LOCAL_ROOT)
        sizes, seconds = zip(*(costs or json.loads(assumed_costs(local)))["request"], strict=True)
        seconds_by_store[store.name] = float(np.interp(USUAL_BYTES, sizes, seconds))
    return seconds_by_store


def _with_outlines(copies: list[GranuleCopy]) -> list[tuple[GranuleCopy, _Outline]]:
    """Return copies with their outlines, parsed all at once."""
    texts = (copy.outline or "null" for copy in copies)
    return list(zip(copies, json.loads(f"[{','.join(texts)}]"), strict=True))


@lru_cache(maxsize=256)
def _read_shape(text: str) -> tuple[int, ...]:
    return tuple(json.loads(text))


def _shows(copy: GranuleCopy, place: _SearchArea) -> bool:
    """Check whether an image shows a position, by its WCS if it has one."""
    if copy.wcs is None:
        return False
    key = (copy.wcs, copy.shape)
    if key not in place.is_covered:
        place.is_covered[key] = _touches(_read_shape(copy.shape), copy.wcs, place)
    return place.is_covered[key]


def _touches(shape: tuple[int, ...], cards: str, place: _SearchArea) -> bool:
    """Check whether an image touches a circle, by its WCS at closely spaced positions."""
    from swathe.datasets.footprint import on_image

    sky = sky_of_cards(cards)
    height, width = shape[-2:]
    if on_image(sky, width, height, place.direction[None])[0]:
        return True
    if place.radius == 0:
        return False
    margin_pixels = math.degrees(place.radius) / DISC_RINGS / min(sky.scales)
    return bool(on_image(sky, width, height, _disc(place), margin_pixels).any())


@lru_cache(maxsize=64)
def sky_of_cards(cards: str) -> SkyMapping:
    """Return the sky mapping of an image without outline, from its cards."""
    from swathe.core.sky import SkyMapping, read_wcs

    return SkyMapping(lambda: read_wcs(cards.encode("ascii")), "an image of a dataset")


def _disc(place: _SearchArea) -> NDArray[np.float64]:
    """Return directions all over a circle, its centre first."""
    import numpy as np

    centre = place.direction
    east = np.cross(np.eye(3)[np.argmin(np.abs(centre))], centre)
    east /= np.linalg.norm(east)
    north = np.cross(centre, east)
    points = [centre[None]]
    for ring in range(1, DISC_RINGS + 1):
        away = place.radius * ring / DISC_RINGS
        turn = np.linspace(0, 2 * math.pi, 6 * ring, endpoint=False)[:, None]
        across = np.cos(turn) * east + np.sin(turn) * north
        points.append(math.cos(away) * centre + math.sin(away) * across)
    return np.concatenate(points)


def _table(unsorted_columns: list[list[Any]], place: _SearchArea | None) -> Table:
    """Return a sorted table of the columns; each is freed when copied, to save memory."""
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
        for name, value in (("ra", place.ra_deg), ("dec", place.dec_deg)):
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


def _values(
    rows: list[tuple[GranuleCopy, _Outline]], copies: dict[int, list[GranuleCopy]]
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
        [_naxis(copy.shape) for copy in matches],
        [-(-copy.size // 1000) for copy in matches],
        [copy.version for copy in matches],
        [copy.array for copy in matches],
        [_body(copy) for copy in matches],
    ]


@lru_cache(maxsize=256)
def _naxis(shape: str) -> str:
    return " x ".join(map(str, _read_shape(shape)[::-1]))


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
