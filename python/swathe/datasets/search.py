"""Finding images by where, when and in what light they were taken."""

from __future__ import annotations

import math
from functools import lru_cache
from numbers import Real
from typing import TYPE_CHECKING, Any

from swathe.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np
    from astropy.coordinates import SkyCoord
    from astropy.table import Table
    from numpy.typing import NDArray

    from swathe.boxes import Sky
    from swathe.catalog import Catalog, Match

NEAR = 1e-10
"""Radians, 20 micro arc seconds: what rounding may put between a point and a polygon it is on."""
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
    sky: SkyCoord | tuple[float, float] | None = None,
    radius_deg: float = 0.0,
    *,
    dataset: str | None = None,
    time: tuple[Any, Any] | None = None,
    band: str | tuple[float, float] | None = None,
    catalog: Catalog | None = None,
) -> Table:
    """Find the images of datasets that show a place in the sky, of a time, in a band.

    What is not asked for does not matter; what an image does not tell of itself it is not found by.

    Args:
        sky: right ascension and declination in degrees (ICRS), or a coordinate of astropy.
        radius_deg: images that show any part of this circle around it are found.
        dataset: only images of this one.
        time: from and to, as MJD (UTC), ISO text or astropy times; images that overlap.
        band: the name of a filter as headers have it, or wavelengths in metres, from and to.
        catalog: where to look; the usual one if not given.

    Returns:
        A row for each image, in order of `file` (`STORE:path`) and `hdu`, with the columns of
        `COLUMNS`: masked where nothing is known; `t_min` and `t_max` are MJD in UTC. With `sky`
        also `ra` and `dec`, so that with a column `size_deg` it is a table for `cut_many`.

    Raises:
        DatasetError: where place, time or band make no sense.
        NoSuchDatasetError: where there is no such dataset.
        CatalogError: where the catalogue cannot be read.
    """
    from swathe.catalog import Catalog, Wanted

    place = None if sky is None else _place(sky, radius_deg)
    if place is None and radius_deg:
        raise DatasetError("a radius needs a place: sky=(ra, dec)")
    ranges = None
    if place is not None:
        from swathe.datasets.cells import ranges_around

        ranges = ranges_around(place.direction, place.radius + NEAR)
    wanted = Wanted(ranges, dataset, read_times(time), _band(band))
    if catalog is None:
        with Catalog.open() as usual:
            found = usual.find_granules(wanted)
    else:
        found = catalog.find_granules(wanted)
    if place is not None:
        found = _that_show(place, found)
    return _table(found, place)


class _Place:
    """A circle in the sky, or a point where its radius is 0."""

    def __init__(self, ra_deg: float, dec_deg: float, radius_deg: float) -> None:
        import numpy as np

        from swathe.datasets.sphere import directions

        self.ra_deg, self.dec_deg = ra_deg, dec_deg
        self.direction = directions(np.array(ra_deg), np.array(dec_deg))
        self.radius = math.radians(radius_deg)


def _place(sky: Any, radius_deg: float) -> _Place:
    if isinstance(sky, tuple | list):
        if len(sky) != 2 or not all(isinstance(value, Real) for value in sky):
            raise DatasetError(f"sky is (ra, dec) in degrees, or a coordinate; not {sky!r}")
        ra, dec = map(float, sky)
    else:
        try:
            icrs = sky.icrs
            ra, dec = float(icrs.ra.deg), float(icrs.dec.deg)
        except Exception as error:  # frames that lead nowhere, arrays, what is no coordinate
            raise DatasetError(
                f"sky is (ra, dec) in degrees, or one coordinate of astropy: {error}"
            ) from error
    if not (math.isfinite(ra) and abs(dec) <= 90):
        raise DatasetError(
            "a place is a right ascension and a declination from -90 to 90 degrees, "
            f"not {ra}, {dec}"
        )
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
    if isinstance(band, str):
        if not band.strip():
            raise DatasetError("a band has a name, or is two wavelengths in metres")
        return band.strip()
    try:
        shortest, longest = map(float, band)
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"a band is a name, or two wavelengths in metres; not {band!r}"
        ) from error
    if not 0 <= shortest <= longest < math.inf:
        raise DatasetError(
            f"wavelengths are positive metres, the shorter first; not {shortest}, {longest}"
        )
    return shortest, longest


def _that_show(place: _Place, candidates: list[Match]) -> list[Match]:
    """Give the images that the circle touches, to a small part of a pixel where it is a point."""
    from swathe.datasets.sphere import outline_distances

    lined, others = [], []
    for match in candidates:
        covered = match.granule.footprint
        if covered is not None and covered.outline is not None:
            lined.append((match, covered.outline))
        elif covered is not None and covered.wcs is not None:
            others.append((match, covered.wcs))
    apart = outline_distances([outline for _, outline in lined], place.direction)
    near = [
        match for (match, _), off in zip(lined, apart, strict=True) if off <= place.radius + NEAR
    ]
    # Maps of the whole sky are often many of one shape.
    shown: dict[tuple[str, tuple[int, ...]], bool] = {}
    for match, wcs in others:
        key = (wcs, match.granule.shape[-2:])
        if key not in shown:
            shown[key] = _shows(match, wcs, place)
        if shown[key]:
            near.append(match)
    return sorted(near, key=lambda match: (match.file, match.granule.hdu))


def _shows(match: Match, cards: str, place: _Place) -> bool:
    """Compare with an image by its WCS: a circle at places that lie close together."""
    from swathe.datasets.footprint import on_image

    sky = sky_of_cards(cards)
    height, width = match.granule.shape[-2:]
    if on_image(sky, width, height, place.direction[None])[0]:
        return True
    if place.radius == 0:
        return False
    margin_pixels = math.degrees(place.radius) / DISC_RINGS / min(sky.scales)
    return bool(on_image(sky, width, height, _disc(place), margin_pixels).any())


@lru_cache(maxsize=64)
def sky_of_cards(cards: str) -> Sky:
    """Give the place in the sky of an image that has no outline."""
    from swathe.boxes import Sky, read_wcs

    return Sky(lambda: read_wcs(cards.encode("ascii")), "an image of a dataset")


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


def _table(found: list[Match], place: _Place | None) -> Table:
    import numpy as np
    from astropy.table import Table

    rows = [_row(match) for match in found]
    columns: dict[str, Any] = {}
    for number, (name, kind, _) in enumerate(COLUMNS):
        values = [row[number] for row in rows]
        mask = [value is None for value in values]
        blank: Any = "" if kind == "U" else 0
        plain = [blank if value is None else value for value in values]
        data = np.array(plain, dtype=kind if plain or kind != "U" else "U1")
        columns[name] = np.ma.MaskedArray(data, mask)
    units = {name: unit for name, _, unit in COLUMNS if unit is not None}
    if place is not None:
        for name, value in (("ra", place.ra_deg), ("dec", place.dec_deg)):
            columns[name] = np.full(len(rows), value)
            units[name] = "deg"
    # Made once: a column that is copied takes as long again.
    return Table(columns, units=units, copy=False)


def _row(match: Match) -> tuple[Any, ...]:
    granule, place = match.granule, match.granule.footprint
    sky: tuple[Any, ...] = (None,) * 5
    if place is not None:
        region = None
        if place.outline is not None:
            region = "POLYGON ICRS " + " ".join(f"{value:.8f}" for value in place.outline)
        sky = (place.s_ra, place.s_dec, place.s_fov, place.s_pixel_scale, region)
    return (
        match.file,
        granule.hdu,
        match.dataset,
        granule.name,
        granule.t_min,
        granule.t_max,
        granule.band,
        granule.em_min,
        granule.em_max,
        *sky,
        " x ".join(map(str, granule.shape[::-1])),
        -(-granule.size // 1000),
        granule.version,
    )
