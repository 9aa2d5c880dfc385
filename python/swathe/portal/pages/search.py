"""The page that searches the images of all datasets: by name or position, time, band and dataset.

Its address is the query. The same is values as CSV here, as JSON by `/api/find` and as a VOTable by
`/vo/query`.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from swathe.catalog import GranuleQuery
from swathe.core.angles import parse_angle
from swathe.core.errors import DatasetError, RegionError
from swathe.datasets.healpix import ranges_around
from swathe.datasets.search import NEAR
from swathe.datasets.search_times import read_times
from swathe.files.manifest import harmless_cell
from swathe.files.targets.place_text import Place, read_place
from swathe.portal.access import Reader
from swathe.portal.context import portal_of
from swathe.portal.http_errors import status_of, text_of
from swathe.portal.pages.render import HEADERS, PageRoute, page
from swathe.portal.vo.geometry.overlap import shows
from swathe.portal.vo.geometry.regions import Circle
from swathe.portal.vo.identifiers import did_of
from swathe.portal.vo.viewer import MOST_FIELD_DEG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swathe.catalog import Match

router = APIRouter(route_class=PageRoute)
MOST_IMAGES = 1000
"""Images of one search; the first ones catalogued."""
ROWS = 24
"""Images on one page."""
LEAST_PIXELS, MOST_PIXELS = 32, 256
"""Radius of the picture of an image around the place, if the circle is smaller or larger."""
USUAL_RADIUS = "1arcmin"
MOST_RADIUS_DEG = 90.0
FIRST_DAY, LAST_DAY = "1800-01-01", "2200-01-01"
COLUMNS = ("file", "hdu", "dataset", "band", "t_min", "t_max", "s_ra", "s_dec", "s_fov", "did")
Text = Annotated[str, Query(max_length=200)]
Start = Annotated[int, Query(ge=0, le=MOST_IMAGES)]


def _fields(
    q: Text = "",
    radius: Text = "",
    dataset: Text = "",
    band: Text = "",
    time_from: Text = "",
    time_to: Text = "",
) -> dict[str, str]:
    """Return the fields of the form, as the address has them."""
    names = ("q", "radius", "dataset", "band", "time_from", "time_to")
    values = (q, radius, dataset, band, time_from, time_to)
    return dict(zip(names, map(str.strip, values), strict=True))


Fields = Annotated[dict[str, str], Depends(_fields)]


@dataclass(frozen=True)
class Criteria:
    """What is searched for.

    Attributes:
        place: the position; `None` if any.
        radius_deg: radius of the circle around it.
        query: criteria of the catalogue.
        circle: the circle.
    """

    place: Place | None
    radius_deg: float
    query: GranuleQuery
    circle: Circle | None


@router.api_route("/search", methods=["GET", "HEAD"])
def search(
    request: Request,
    _user: Reader,
    fields: Fields,
    start: Start = 0,
) -> Response:
    """Show the form, and the images that match it; without a criterion the form alone."""
    error, code = "", 200
    criteria, matches = None, []
    try:
        if any(fields.values()):
            criteria = _criteria(fields)
            matches = _matches(request, criteria)
    except (DatasetError, RegionError) as fault:
        error, code = text_of(fault), status_of(fault)
    visible = matches[:MOST_IMAGES]
    place = None if criteria is None else criteria.place
    return page(
        request,
        "search.html",
        code=code,
        fields={**fields, "radius": fields["radius"] or USUAL_RADIUS},
        datasets=[each.name for each in portal_of(request).catalog.datasets()],
        error=error,
        place=place,
        is_answer=criteria is not None and not error,
        images=[_image(request, each, criteria) for each in visible[start : start + ROWS]],
        count=len(visible),
        start=start,
        rows=ROWS,
        more=len(matches) > MOST_IMAGES,
        facets={
            name: Counter(values).most_common()
            for name, values in (
                ("dataset", [each.dataset for each in visible]),
                ("band", [each.granule.band for each in visible if each.granule.band]),
            )
        },
        links={} if criteria is None else _links(fields, criteria),
    )


@router.api_route("/search.csv", methods=["GET", "HEAD"])
def search_csv(request: Request, _user: Reader, fields: Fields) -> Response:
    """Return the images that match, as a table in CSV."""
    criteria = _criteria(fields)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for match in _matches(request, criteria)[:MOST_IMAGES]:
        values = _row(request, match)
        writer.writerow(
            "" if value is None else harmless_cell(value) if isinstance(value, str) else value
            for value in values
        )
    headers = {**HEADERS, "Content-Disposition": 'attachment; filename="images.csv"'}
    return Response(text.getvalue(), 200, headers, "text/csv; charset=utf-8")


def _criteria(fields: Mapping[str, str]) -> Criteria:
    """Return what the fields ask for.

    Raises:
        RegionError: If the position, name or radius is none.
        DatasetError: If a time is none.
    """
    place = read_place(fields["q"]) if fields["q"] else None
    radius_deg = parse_angle(fields["radius"] or USUAL_RADIUS, "radius")
    if not 0 <= radius_deg <= MOST_RADIUS_DEG:
        raise RegionError(
            f"radius: expected 0 to {MOST_RADIUS_DEG:g} degrees, found {radius_deg:g}"
        )
    circle = None if place is None else Circle(place.ra_deg, place.dec_deg, radius_deg)
    ranges = None
    if circle is not None:
        ranges = ranges_around(circle.centre, min(circle.radius + NEAR, math.pi))
    times = None
    if fields["time_from"] or fields["time_to"]:
        times = read_times((fields["time_from"] or FIRST_DAY, fields["time_to"] or LAST_DAY))
    query = GranuleQuery(
        ranges, fields["dataset"] or None, times, fields["band"] or None, is_hdu=True
    )
    return Criteria(place, radius_deg, query, circle)


def _matches(request: Request, criteria: Criteria) -> list[Match]:
    """Return the images that match, one more than are shown if there are more.

    Raises:
        NoSuchDatasetError: If there is no such dataset.
    """
    granules = portal_of(request).catalog.each_granule(criteria.query)
    circle = criteria.circle
    matches = (each for each in granules if circle is None or shows(each, circle))
    some = list(islice(matches, MOST_IMAGES + 1))
    # Those of one night stand together.
    return sorted(some, key=lambda each: (each.granule.t_min or 0, each.file, each.granule.hdu))


def _image(request: Request, match: Match, criteria: Criteria | None) -> dict[str, Any]:
    """Return what the page shows of an image."""
    did = quote(_did(request, match), safe="")
    image: dict[str, Any] = {"match": match, "granule": match.granule, "did": did}
    place = None if criteria is None else criteria.place
    footprint = match.granule.footprint
    if place is None or criteria is None or footprint is None:
        return image | {"picture": f"/vo/preview?ID={did}", "cut": None, "page": f"/image?ID={did}"}
    pixel_deg = footprint.s_pixel_scale / 3600
    least, most = LEAST_PIXELS * pixel_deg, MOST_PIXELS * pixel_deg
    radius_deg = min(max(criteria.radius_deg, least), most)
    circle = quote(f"{place.ra_deg:.7f} {place.dec_deg:.7f} {radius_deg:.7f}")
    at = {"ra": f"{place.ra_deg:.7f}", "dec": f"{place.dec_deg:.7f}"}
    at["size"] = f"{min(2 * radius_deg, MOST_FIELD_DEG):.7f}"
    return image | {
        "picture": f"/vo/image/place?ID={did}&{urlencode(at)}",
        "cut": f"/vo/sync?ID={did}&CIRCLE={circle}",
        "page": f"/image?ID={did}&{urlencode(at)}",
    }


def _did(request: Request, match: Match) -> str:
    return did_of(portal_of(request).config.vo.authority, match.dataset, match.granule)


def _row(request: Request, match: Match) -> tuple[Any, ...]:
    granule, footprint = match.granule, match.granule.footprint
    place = (None,) * 3 if footprint is None else (footprint.s_ra, footprint.s_dec, footprint.s_fov)
    times = granule.t_min, granule.t_max
    return (
        *(match.file, granule.hdu, match.dataset, granule.band, *times),
        *(*place, _did(request, match)),
    )


def _links(fields: Mapping[str, str], criteria: Criteria) -> dict[str, str]:
    """Return addresses of the same search for programs, and of a job with it."""
    values = {name: value for name, value in fields.items() if value}
    links = {"CSV": f"/search.csv?{urlencode(values)}"}
    api: dict[str, Any] = {
        name: value for name, value in values.items() if name in {"dataset", "band"}
    }
    if "time_from" in values or "time_to" in values:
        api["time_from"] = values.get("time_from", FIRST_DAY)
        api["time_to"] = values.get("time_to", LAST_DAY)
    if criteria.place is not None:
        ra, dec = criteria.place.ra_deg, criteria.place.dec_deg
        api |= {"ra": ra, "dec": dec, "radius": criteria.radius_deg}
        if criteria.query.time is None and "band" not in values:
            siap = {"POS": f"CIRCLE {ra} {dec} {criteria.radius_deg}"}
            siap |= {"COLLECTION": values["dataset"]} if "dataset" in values else {}
            links["VOTable"] = f"/vo/query?{urlencode(siap)}"
        target = f"{ra:.7f} {dec:.7f} {2 * criteria.radius_deg * 3600:g}arcsec"
        job = {"targets": target, **({"dataset": values["dataset"]} if "dataset" in values else {})}
        links["New job here"] = f"/new?{urlencode(job)}"
    return {"JSON": f"/api/find?{urlencode(api)}", **links}
