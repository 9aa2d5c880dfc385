"""The page of an image: picture by tiles, header, copies, and the same place in other images."""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from swathe.catalog import GranuleQuery
from swathe.core.errors import NotFoundError, RegionError
from swathe.datasets.healpix import ranges_around
from swathe.datasets.search import NEAR
from swathe.files.preview import STRETCHES
from swathe.portal.access import Reader
from swathe.portal.context import portal_of
from swathe.portal.pages.render import PageRoute, page
from swathe.portal.run_slices import COLOUR_MAPS
from swathe.portal.vo.errors import VoError
from swathe.portal.vo.geometry.overlap import shows
from swathe.portal.vo.geometry.regions import Circle
from swathe.portal.vo.identifiers import did_of
from swathe.portal.vo.service import service_of
from swathe.portal.vo.viewer import MOST_FIELD_DEG

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.catalog import Match

router = APIRouter(route_class=PageRoute)
MOST_OTHERS = 48
"""Other images of the same place that are shown."""
STAMP_PIXELS = 128
"""Side of the pictures of the same place, in pixels of the image, if no size is given."""
LINES = 2000
"""Cards that are shown of a header."""
Did = Annotated[str, Query(alias="ID", max_length=4000)]
Degrees = Annotated[float | None, Query(ge=-360, le=360, allow_inf_nan=False)]


@router.api_route("/image", methods=["GET", "HEAD"])
def image(
    request: Request,
    _user: Reader,
    did: Did,
    ra: Degrees = None,
    dec: Annotated[float | None, Query(ge=-90, le=90, allow_inf_nan=False)] = None,
    size: Annotated[float | None, Query(gt=0, le=MOST_FIELD_DEG, allow_inf_nan=False)] = None,
) -> Response:
    """Show an image, and the images of the same place, by default its centre."""
    match = _match(request, did)
    granule, footprint = match.granule, match.granule.footprint
    place = None
    if footprint is not None:
        place = _place(footprint.s_ra, footprint.s_dec, ra, dec)
        size = size or min(STAMP_PIXELS * footprint.s_pixel_scale / 3600, MOST_FIELD_DEG)
    others = [] if place is None else _others(request, match, *place)
    return page(
        request,
        "image.html",
        match=match,
        granule=granule,
        name=granule.path.rpartition("/")[2],
        did=quote(did, safe=""),
        identifier=did,
        api=f"/vo/image/{{}}?ID={quote(did, safe='')}",
        place=place,
        is_searched=ra is not None and dec is not None,
        size=size,
        stamp=_stamps(place, size),
        others=others[:MOST_OTHERS],
        more=len(others) > MOST_OTHERS,
        copies=portal_of(request).catalog.copies(match.dataset, granule.path),
        stretches=STRETCHES,
        colour_maps=tuple(COLOUR_MAPS),
        job=None if place is None or size is None else _job(match, place, size),
    )


@router.api_route("/image/header", methods=["GET", "HEAD"])
def header(
    request: Request,
    _user: Reader,
    did: Did,
    find: Annotated[str, Query(max_length=80)] = "",
) -> Response:
    """Show the header of an image, or its cards with a text."""
    match = _match(request, did)
    word = find.strip().casefold()
    native = service_of(request).images.get(did).image
    cards = [card.rstrip() for card in _cards(native._native.header(native.index))]
    lines = [card for card in cards if word in card.casefold()]
    return page(
        request,
        "image_header.html",
        match=match,
        name=match.granule.path.rpartition("/")[2],
        did=quote(did, safe=""),
        identifier=did,
        find=find.strip(),
        lines=lines[:LINES],
        count=len(lines),
        all_cards=len(cards),
    )


def _cards(header: bytes) -> list[str]:
    text = header.decode("ascii", "replace")
    # Standard headers have no control characters; pages must not.
    text = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    cards = [text[at : at + 80] for at in range(0, len(text), 80)]
    return [card for card in cards if not card.isspace()]


def _match(request: Request, did: str) -> Match:
    """Return the image that a DID names.

    Raises:
        NotFoundError: If there is none.
    """
    try:
        return service_of(request).images.match(did)
    except VoError as error:
        raise NotFoundError(str(error)) from error


def _place(s_ra: float, s_dec: float, ra: float | None, dec: float | None) -> tuple[float, float]:
    """Return the position that is asked for, else the centre of the image.

    Raises:
        RegionError: If only one of two coordinates is there.
    """
    if (ra is None) != (dec is None):
        raise RegionError("ra, dec: expected both coordinates, found one")
    return (s_ra, s_dec) if ra is None or dec is None else (ra % 360, dec)


def _others(request: Request, match: Match, ra: float, dec: float) -> list[dict[str, Any]]:
    """Return other images of a place, by band and time; one more than are shown if there are."""
    circle = Circle(ra, dec, 0.0)
    ranges = ranges_around(circle.centre, NEAR)
    catalog, authority = portal_of(request).catalog, portal_of(request).config.vo.authority
    granules = catalog.each_granule(GranuleQuery(ranges, is_hdu=True))
    own = (match.dataset, match.granule.path, match.granule.hdu)
    others = (
        each
        for each in granules
        if (each.dataset, each.granule.path, each.granule.hdu) != own and shows(each, circle)
    )
    some = list(islice(others, MOST_OTHERS + 1))
    some.sort(
        key=lambda each: (each.granule.em_min or math.inf, each.granule.t_min or 0, each.file)
    )
    return [
        {
            "match": each,
            "granule": each.granule,
            "name": each.granule.path.rpartition("/")[2],
            "did": quote(did_of(authority, each.dataset, each.granule), safe=""),
        }
        for each in some
    ]


def _stamps(place: tuple[float, float] | None, size: float | None) -> Callable[[str], str]:
    """Return the function that gives the picture of the place in an image, by its quoted DID."""
    if place is None or size is None:
        return lambda did: f"/vo/preview?ID={did}"
    query = urlencode({"RA": f"{place[0]:.7f}", "DEC": f"{place[1]:.7f}", "SIZE": f"{size:.7f}"})
    return lambda did: f"/vo/image/place?ID={did}&{query}"


def _job(match: Match, place: tuple[float, float], size: float) -> str:
    target = f"{place[0]:.7f} {place[1]:.7f} {size * 3600:.6g}arcsec"
    return f"/new?{urlencode({'targets': target, 'dataset': match.dataset})}"
