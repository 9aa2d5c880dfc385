"""Finding images by where, when and in what light they were taken."""

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
from swathe.core.errors import DatasetError, RegionError

if TYPE_CHECKING:
    import numpy as np
    from astropy.coordinates import SkyCoord
    from astropy.table import Table
    from numpy.typing import NDArray

    from swathe.catalog import Catalog, GranuleCopy
    from swathe.core.sky import SkyMapping

NEAR = 1e-10
"""Radians, 20 micro arc seconds: what rounding may put between a point and a polygon it is on."""
USUAL_BYTES = 1e6
"""Read for a cut, more or less, when copies are compared."""
DISC_RINGS = 24
"""Circles are compared with images that have no outline at places this part of a radius apart."""
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
)
"""Names, types and units, those of ObsCore where it has one; `shape` is as NAXIS1 x NAXIS2 ..."""


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
) -> Table:
    """Find the images of datasets that show a place in the sky, of a time, in a band.

    What is not asked for does not matter; what an image does not tell of itself it is not found by.

    Args:
        sky: right ascension and declination (ICRS) in degrees, as angles or as text; or a
            coordinate of astropy.
        radius_deg: images that show any part of this circle around it are found.
        radius: the same as an angle, or text such as `30arcsec`.
        frame: of `sky`, if not ICRS: as `galactic`.
        dataset: only images of this one.
        time: from and to, as MJD (UTC), ISO text or astropy times; images that overlap.
        band: the name of a filter as headers have it, or wavelengths in metres, from and to: as a
            pair, or as text, `5e-7,6e-7`.
        catalog: where to look; the usual one if not given.
        limit: give no more than so many: the first that were catalogued.

    Returns:
        A row for each image, of several copies the one that is soonest read from here, in order of
        `file` (`STORE:path`) and `hdu`, with the columns of `COLUMNS`: masked where nothing is
        known; `t_min` and `t_max` are MJD in UTC. With `sky` also `ra` and `dec`, so that with a
        column `size_deg` it is a table for `cut_many`.

    Raises:
        DatasetError: where place, time or band make no sense.
        NoSuchDatasetError: where there is no such dataset.
        CatalogError: where the catalogue cannot be read.
    """
    from swathe.catalog import Catalog, Wanted

    reach_deg = _radius_deg(radius, radius_deg)
    place = None if sky is None else _place(sky, reach_deg, frame)
    if place is None and reach_deg:
        raise DatasetError("a radius needs a place: sky=(ra, dec)")
    ranges = None
    if place is not None:
        from swathe.datasets.healpix import ranges_around

        ranges = ranges_around(place.direction, place.reach)
    wanted = Wanted(ranges, dataset, read_times(time), _band(band), limit)
    with nullcontext(catalog) if catalog is not None else Catalog.open() as known:
        columns: list[list[Any]] = [[] for _ in COLUMNS]
        with closing(known.copies_by_parts(wanted)) as parts:
            for part in parts:
                copies = {number: list(of_it) for number, of_it in groupby(part, attrgetter("id"))}
                some = _with_outlines([first for first, *_ in copies.values()])
                some = some if place is None else _that_show(place, some)
                for column, values in zip(columns, _values(some, copies), strict=True):
                    column += values
                if limit is not None and len(columns[0]) >= limit:
                    break
        if limit is not None:
            for column in columns:
                del column[limit:]
        # Not before: many that wait for a second connection would wait for each other.
        columns[0] = _soonest(columns[0], known)
    return _table(columns, place)


class _Place:
    """A circle in the sky, or a point where its radius is 0."""

    def __init__(self, ra_deg: float, dec_deg: float, radius_deg: float) -> None:
        import numpy as np

        from swathe.datasets.spherical import directions

        self.ra_deg, self.dec_deg = ra_deg, dec_deg
        self.direction = directions(np.array(ra_deg), np.array(dec_deg))
        self.radius = math.radians(radius_deg)
        self.reach = self.radius + NEAR
        # Whether images that have no outline show it, by WCS and shape: maps of the whole sky are
        # often many of one shape.
        self.shown: dict[tuple[str, str], bool] = {}


def _radius_deg(radius: Any, radius_deg: float) -> float:
    from swathe.files.targets.positions import degrees_of

    if radius is None:
        return radius_deg
    if radius_deg:
        raise DatasetError("give one of radius and radius_deg")
    try:
        return degrees_of(radius, "radius")
    except RegionError as error:
        raise DatasetError(str(error)) from error


def _place(sky: Any, radius_deg: float, frame: str | None) -> _Place:
    from swathe.files.targets.positions import position

    try:
        icrs = position(sky, frame).icrs
        ra, dec = float(icrs.ra.deg[0]), float(icrs.dec.deg[0])
    except Exception as error:  # frames that lead nowhere
        raise DatasetError(str(error)) from error
    if not 0 <= radius_deg <= 180:
        raise DatasetError(f"a radius is 0 to 180 degrees, not {radius_deg}")
    return _Place(ra % 360.0, dec, radius_deg)


def read_times(time: tuple[Any, Any] | None) -> tuple[float, float] | None:
    """Read a start and an end, as `find` takes them: MJD in UTC.

    Raises:
        DatasetError: where they make no sense.
    """
    if time is None:
        return None
    if not isinstance(time, tuple | list) or len(time) != 2:
        raise DatasetError(f"a time is a start and an end, not {time!r}")
    start, end = _mjd(time[0]), _mjd(time[1])
    if start > end:
        raise DatasetError(f"a time starts before it ends, not MJD {start} to {end}")
    return start, end


def _mjd(given: Any) -> float:
    text = str(given).strip()
    try:
        mjd = float(given if isinstance(given, Real) else text)
    except ValueError:
        from astropy.time import Time

        try:
            moment = given if isinstance(given, Time) else Time(text, scale="utc")
            mjd = float(moment.utc.mjd)
        except Exception as error:  # each format of astropy has its own
            raise DatasetError(
                f"a time is an MJD, or as 2005-09-21T04:30:00 (UTC); not {text[:50]!r}"
            ) from error
    except TypeError as error:
        raise DatasetError(f"a time is an MJD or a text, not {text[:50]!r}") from error
    if not math.isfinite(mjd):
        raise DatasetError(f"a time is finite, not {mjd}")
    return mjd


def _band(band: str | tuple[float, float] | None) -> str | tuple[float, float] | None:
    if band is None:
        return None
    if isinstance(band, str) and not band.strip():
        raise DatasetError("a band has a name, or is two wavelengths in metres")
    try:
        shortest, longest = map(float, band.split(",") if isinstance(band, str) else band)
    except (TypeError, ValueError) as error:
        if isinstance(band, str):
            return band.strip()
        raise DatasetError(
            f"a band is a name, or two wavelengths in metres; not {band!r}"
        ) from error
    if not 0 <= shortest <= longest < math.inf:
        raise DatasetError(
            f"wavelengths are positive metres, the shorter first; not {shortest}, {longest}"
        )
    return shortest, longest


_Outline = list[float] | None


def _that_show(
    place: _Place, candidates: list[tuple[GranuleCopy, _Outline]]
) -> list[tuple[GranuleCopy, _Outline]]:
    """Give the images that the circle touches, to a small part of a pixel where it is a point."""
    from swathe.datasets.spherical import outlines_near

    lined = [outline for _, outline in candidates if outline is not None]
    near = iter(outlines_near(lined, place.direction, place.reach).tolist())
    found = []
    for copy, outline in candidates:
        if next(near) if outline is not None else _shows(copy, place):
            found.append((copy, outline))
    return found


def _files(copies: list[GranuleCopy]) -> tuple[str, ...]:
    """Name the copies of an image, the one in the first store of its dataset first."""
    if len(copies) > 1:
        copies = sorted(copies, key=lambda copy: (not copy.is_first, copy.store))
    return tuple(copy.file for copy in copies)


def _soonest(images: list[tuple[str, ...]], catalog: Catalog) -> list[str]:
    """Give of each image the copy in the store which takes least time, seen from here.

    Of stores that take as long, the first.
    """
    if all(len(files) == 1 for files in images):
        return [file for (file,) in images]
    seconds = _seconds_of_stores(catalog)

    def takes(file: str) -> float:
        # The store may have been removed since.
        return seconds.get(file.partition(":")[0], math.inf)

    return [min(files, key=takes) for files in images]


def _seconds_of_stores(catalog: Catalog) -> dict[str, float]:
    """Say how long a usual read takes from each store: as measured, or taken for granted."""
    import numpy as np

    from swathe.catalog import this_host
    from swathe.stores.registry import LOCAL_ROOT

    host = this_host()
    profiles = {kept.root: kept.costs for kept in catalog.profiles() if kept.host == host}
    found = {}
    for store in catalog.stores():
        local = store.url.startswith("file://")
        costs: dict[str, Any] | None = profiles.get(store.key)
        if costs is None and local:
            costs = profiles.get(LOCAL_ROOT)
        sizes, seconds = zip(*(costs or json.loads(assumed_costs(local)))["request"], strict=True)
        found[store.name] = float(np.interp(USUAL_BYTES, sizes, seconds))
    return found


def _with_outlines(copies: list[GranuleCopy]) -> list[tuple[GranuleCopy, _Outline]]:
    """Read their outlines, all at once."""
    texts = (copy.outline or "null" for copy in copies)
    return list(zip(copies, json.loads(f"[{','.join(texts)}]"), strict=True))


@lru_cache(maxsize=256)
def _read_shape(text: str) -> tuple[int, ...]:
    return tuple(json.loads(text))


def _shows(copy: GranuleCopy, place: _Place) -> bool:
    """Compare with an image by its WCS, if it has one."""
    if copy.wcs is None:
        return False
    key = (copy.wcs, copy.shape)
    if key not in place.shown:
        place.shown[key] = _touches(_read_shape(copy.shape), copy.wcs, place)
    return place.shown[key]


def _touches(shape: tuple[int, ...], cards: str, place: _Place) -> bool:
    """Compare with an image by its WCS: a circle at places that lie close together."""
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
    """Give the place in the sky of an image that has no outline."""
    from swathe.core.sky import SkyMapping, read_wcs

    return SkyMapping(lambda: read_wcs(cards.encode("ascii")), "an image of a dataset")


def _disc(place: _Place) -> NDArray[np.float64]:
    """Give directions all over a circle, its centre first."""
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


def _table(found: list[list[Any]], place: _Place | None) -> Table:
    """Make a table, in order, of the columns, which are taken away one by one: it is as large."""
    import numpy as np
    from astropy.table import Table

    order = sorted(range(len(found[0])), key=lambda at: (found[0][at], found[1][at]))
    columns: dict[str, Any] = {}
    for name, kind, _ in COLUMNS:
        unordered = found.pop(0)
        values = [unordered[at] for at in order]
        blank: Any = "" if kind == "U" else 0
        known = [blank if value is None else value for value in values]
        data = np.array(known, dtype=kind if known or kind != "U" else "U1")
        if None in values:
            data = np.ma.MaskedArray(data, [value is None for value in values])
        columns[name] = data
    units = _units()
    if place is not None:
        for name, value in (("ra", place.ra_deg), ("dec", place.dec_deg)):
            columns[name] = np.full(len(order), value)
    # Made once: a column that is copied takes as long again.
    return Table(
        columns, units={name: units[name] for name in columns if name in units}, copy=False
    )


@lru_cache(maxsize=1)
def _units() -> dict[str, Any]:
    """Give the units of columns, read once: astropy takes long over a text."""
    from astropy.units import Unit

    named = {name: unit for name, _, unit in COLUMNS if unit is not None}
    return {name: Unit(unit) for name, unit in {**named, "ra": "deg", "dec": "deg"}.items()}


def _values(
    rows: list[tuple[GranuleCopy, _Outline]], copies: dict[int, list[GranuleCopy]]
) -> list[list[Any]]:
    """Give the columns of a table, of some of its rows; in place of a file those of all copies."""
    found = [copy for copy, _ in rows]
    regions = [None if outline is None else _region(outline) for _, outline in rows]
    return [
        [_files(copies[copy.id]) for copy in found],
        [copy.hdu for copy in found],
        [copy.dataset for copy in found],
        [copy.name for copy in found],
        [copy.t_min for copy in found],
        [copy.t_max for copy in found],
        [copy.band for copy in found],
        [copy.em_min for copy in found],
        [copy.em_max for copy in found],
        [copy.s_ra for copy in found],
        [copy.s_dec for copy in found],
        [copy.s_fov for copy in found],
        [copy.s_pixel_scale for copy in found],
        regions,
        [_naxis(copy.shape) for copy in found],
        [-(-copy.size // 1000) for copy in found],
        [copy.version for copy in found],
    ]


@lru_cache(maxsize=256)
def _naxis(shape: str) -> str:
    return " x ".join(map(str, _read_shape(shape)[::-1]))


def _region(outline: list[float]) -> str:
    return f"POLYGON ICRS{' %.8f' * len(outline)}" % tuple(outline)
