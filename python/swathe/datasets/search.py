"""Search images and arrays by position, time and band."""

from __future__ import annotations

import json
import math
from contextlib import closing
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from swathe._swathe import assumed_costs
from swathe.core.argument_checks import check_text
from swathe.core.errors import DatasetError, RegionError
from swathe.core.value_errors import short_text
from swathe.datasets.search_table import COLUMNS, columns_of, read_shape, sorted_table
from swathe.datasets.search_times import read_times
from swathe.files.targets.bounds import BOUNDS

if TYPE_CHECKING:
    import numpy as np
    from astropy.coordinates import SkyCoord
    from astropy.table import Table
    from numpy.typing import NDArray

    from swathe.catalog import Catalog, GranuleCopy
    from swathe.core.sky import SkyMapping
    from swathe.datasets.earth_search import EarthArea
    from swathe.datasets.search_table import Outline

NEAR = 1e-10
"""Tolerance in radians (20 microarcseconds) between a point and the edge of its polygon."""
USUAL_BYTES = 1e6
"""Typical size of a read for a cut, in bytes, to compare copies."""
DISC_RINGS = 24
"""Spacing of sample positions in a circle, as a part of its radius, for images without outline."""


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
    most_files: int | None = None,
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
            An end as `2005-10-01`, without a time, is the end of that day.
        band: filter name as in headers, or a range of wavelengths in metres, as a pair or as text,
            `5e-7,6e-7`.
        catalog: catalogue to search; `None` for the default one.
        limit: largest number of images; the first ones catalogued are returned.
        bounds: `(west, south, east, north)` on the Earth in degrees; arrays that overlap the box
            match. `west > east` crosses the dateline.
        place: `(longitude, latitude)` on the Earth in degrees; arrays that cover it match.
        most_files: number of files above which the search is an error, and ends.

    Returns:
        One row per image or array, sorted by `file` (`STORE:path`) and `hdu`, with the columns of
        `COLUMNS`. If an image has several copies, `file` is the one that is fastest to read from
        here. Unknown values are masked. `t_min` and `t_max` are MJD in UTC. With `sky` there are
        also `ra` and `dec`, so that with a column `size_deg` it is a table for `cut_many`; with
        `bounds` there are `west`, `south`, `east` and `north`, so that it is one, too. `sky` finds
        no place on the Earth, `bounds` and `place` none in the sky.

    Raises:
        DatasetError: If position, time or band are invalid, or more files match than `most_files`.
        NoSuchDatasetError: If there is no such dataset.
        CatalogError: If the catalogue cannot be read.
    """
    from swathe.catalog import GranuleQuery, use_catalog

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
    with use_catalog(catalog) as open_catalog:
        columns: list[list[Any]] = [[] for _ in COLUMNS]
        files: set[Any] = set()
        with closing(open_catalog.copies_by_parts(criteria)) as parts:
            for part in parts:
                copies = {number: list(of_it) for number, of_it in groupby(part, attrgetter("id"))}
                some = _with_outlines([first for first, *_ in copies.values()])
                some = some if circle is None else _that_show(circle, some)
                some = some if area is None else _that_touch(area, some)
                for column, values in zip(columns, columns_of(some, copies), strict=True):
                    column += values
                if most_files is not None:
                    files.update(columns[0][-len(some) :] if some else ())
                    if len(files) > most_files:
                        raise DatasetError(
                            f"expected {most_files:,} matching files at most, found more; give a "
                            "shorter time or a smaller place"
                        )
                if limit is not None and len(columns[0]) >= limit:
                    break
        if limit is not None:
            for column in columns:
                del column[limit:]
        # Not earlier: many searches that wait for a second connection would wait for each other.
        columns[0] = _soonest(columns[0], open_catalog)
    table = sorted_table(columns, None if circle is None else (circle.ra_deg, circle.dec_deg))
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
    area: EarthArea, candidates: list[tuple[GranuleCopy, Outline]]
) -> list[tuple[GranuleCopy, Outline]]:
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


def _that_show(
    place: _SearchArea, candidates: list[tuple[GranuleCopy, Outline]]
) -> list[tuple[GranuleCopy, Outline]]:
    """Return the images that the circle touches; a point is compared to a small part of a pixel."""
    from swathe.datasets.spherical import outlines_near

    outlines = [outline for _, outline in candidates if outline is not None]
    near = iter(outlines_near(outlines, place.direction, place.reach).tolist())
    matches = []
    for copy, outline in candidates:
        if next(near) if outline is not None else _shows(copy, place):
            matches.append((copy, outline))
    return matches


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


def _with_outlines(copies: list[GranuleCopy]) -> list[tuple[GranuleCopy, Outline]]:
    """Return copies with their outlines, parsed all at once."""
    texts = (copy.outline or "null" for copy in copies)
    return list(zip(copies, json.loads(f"[{','.join(texts)}]"), strict=True))


def _shows(copy: GranuleCopy, place: _SearchArea) -> bool:
    """Check whether an image shows a position, by its WCS if it has one."""
    if copy.wcs is None:
        return False
    key = (copy.wcs, copy.shape)
    if key not in place.is_covered:
        place.is_covered[key] = _touches(read_shape(copy.shape), copy.wcs, place)
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
