"""The map of the sky: coverage in cells, and outlines of images where there are few."""

from __future__ import annotations

import gzip
import json
import math
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import numpy as np
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from swathe.catalog import GranuleQuery
from swathe.core.errors import DatasetError
from swathe.datasets.healpix import ranges_around
from swathe.datasets.spherical import directions
from swathe.portal.access import Reader
from swathe.portal.context import portal_of
from swathe.portal.pages.archive import archive_counts_of
from swathe.portal.pages.render import HEADERS, PageRoute, page
from swathe.portal.pages.skymap import FINEST, scale_svg
from swathe.portal.vo.identifiers import did_of

if TYPE_CHECKING:
    from swathe.catalog import Match

router = APIRouter(route_class=PageRoute)
MOST_OUTLINES = 5000
"""Outlines that are drawn; where there are more, cells are."""
COARSEST = 2
CORNERS = 64
"""Corners of an outline that are sent; of longer ones, some are left out."""
PLACES = 5
"""Decimals of degrees of corners."""
Dataset = Annotated[str, Query(max_length=200)]


@router.api_route("/sky", methods=["GET", "HEAD"])
def sky(request: Request, _user: Reader, dataset: Dataset = "") -> Response:
    """Show the map; without JavaScript, a picture of the whole sky."""
    counts = archive_counts_of(request)
    name = dataset.strip() or None
    datasets = [each for each in counts.all() if each.summary.images_on_sky]
    if name is not None:
        portal_of(request).catalog.dataset(name)
    return page(
        request,
        "sky.html",
        dataset=name or "",
        datasets=[each.dataset.name for each in datasets],
        finest=FINEST,
        coarsest=COARSEST,
        sky=counts.map(name),
        scale=scale_svg(),
    )


@router.api_route("/sky/cells.json", methods=["GET", "HEAD"])
def sky_cells(
    request: Request,
    _user: Reader,
    order: Annotated[int, Query(ge=COARSEST, le=FINEST)],
    dataset: Dataset = "",
) -> Response:
    """Return the HEALPix cells (nested) that have images, and how many each has."""
    cells = archive_counts_of(request).cells(dataset.strip() or None)
    numbers = cells.by_order[order]
    at = np.flatnonzero(numbers)
    return _json(
        request,
        {
            "order": order,
            "cells": at.tolist(),
            "counts": numbers[at].tolist(),
            "all_sky": cells.all_sky,
        },
    )


@router.api_route("/sky/outlines.json", methods=["GET", "HEAD"])
def outlines(
    request: Request,
    _user: Reader,
    ra: Annotated[float, Query(ge=-360, le=360, allow_inf_nan=False)],
    dec: Annotated[float, Query(ge=-90, le=90, allow_inf_nan=False)],
    radius: Annotated[float, Query(gt=0, le=180, allow_inf_nan=False)],
    dataset: Dataset = "",
) -> Response:
    """Return the outlines of images near a circle, degrees; none if there are more than 5,000."""
    centre = directions(np.array([ra % 360]), np.array([dec]))[0]
    ranges = ranges_around(centre, min(math.radians(radius), math.pi))
    name = dataset.strip() or None
    catalog, authority = portal_of(request).catalog, portal_of(request).config.vo.authority
    if name is not None:
        catalog.dataset(name)
    query = GranuleQuery(ranges, name, is_hdu=True)
    if name is None and catalog.has_more_near(query, MOST_OUTLINES):
        return _json(request, {"more": True, "images": []})
    granules = catalog.each_granule(query)
    matches = list(islice((each for each in granules if _is_drawn(each)), MOST_OUTLINES + 1))
    if len(matches) > MOST_OUTLINES:
        return _json(request, {"more": True, "images": []})
    return _json(request, {"more": False, "images": [_image(authority, each) for each in matches]})


def _is_drawn(match: Match) -> bool:
    footprint = match.granule.footprint
    return footprint is not None and bool(footprint.outline)


def _image(authority: str, match: Match) -> dict[str, Any]:
    footprint = match.granule.footprint
    if footprint is None or not footprint.outline:
        raise DatasetError(f"{match.file}: expected an outline, found none")
    corners = np.array(footprint.outline, float).reshape(-1, 2)
    corners = corners[:: -(-len(corners) // CORNERS)]
    return {
        "url": f"/image?ID={quote(did_of(authority, match.dataset, match.granule), safe='')}",
        "name": match.granule.path.rpartition("/")[2],
        "band": match.granule.band or "",
        "outline": np.round(corners, PLACES).ravel().tolist(),
    }


def _json(request: Request, content: dict[str, Any]) -> Response:
    """Return JSON, compressed if the client takes that: it shrinks to a third."""
    body = json.dumps(content, separators=(",", ":")).encode()
    headers = {**HEADERS, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, 1, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return Response(body, 200, headers, "application/json")
